/* tune.h - finding the best tuning row for a class of problems: which classes there are (tune_classes.c), which rows are
 * candidates (tune_search.c), a candidate against the best row so far (tune_contest.c, tune_measure.c), whether its
 * results are right (tune_check.c), all of it for one class (tune_best.c), the file of rows (tune_file.c), and what is
 * printed (tune_report.c). Times are in seconds. */
#ifndef TOOLS_TUNE_H
#define TOOLS_TUNE_H

#include "bench.h"
#include "json.h"
#include "plan/lookup.h"
#include "problem_list.h"

/* ---- Classes ----------------------------------------------------------------------------------------------------- */

#define TUNE_MAX_PROBLEMS 4

/* Problems that share a row, and those of them that are timed. */
typedef struct tune_class {
    clfd_tuning_class shared;
    bench_problem problems[TUNE_MAX_PROBLEMS];
    size_t num_problems;
} tune_class;

typedef struct tune_list {
    tune_class *classes; /* malloc'ed */
    size_t count;
} tune_list;

/* The classes of the given problems, in their order; without problems those of common models, of sizes that suit the
 * device. quick: the commonest few of these, each with one problem. Exit code USAGE: more than TUNE_MAX_PROBLEMS of one
 * class, or a prefix, which is two classes at once. */
bool tune_list_make(const problem_list *given, const clfd_device_info *device, bool quick, tune_list *list,
                    tool_fault *fault);

/* "f16 d128 ratio 4"; "int8,int4 d192,128 ratio 16". Returns text. */
#define TUNE_CLASS_BYTES 96
const char *tune_class_print(const clfd_tuning_class *shared, char text[TUNE_CLASS_BYTES]);

/* ---- The search -------------------------------------------------------------------------------------------------- */

typedef enum tune_verdict { TUNE_LOST, TUNE_WON, TUNE_STOPPED } tune_verdict;

/* Lets a row challenge the best one so far, and remembers it as the best where it wins. STOPPED comes with a fault. */
typedef struct tune_judge {
    tune_verdict (*challenge)(void *user, const clfd_tuning *row, tool_fault *fault);
    void *user;
} tune_judge;

typedef struct tune_limits {
    uint32_t rounds, max_rows; /* max_rows: that challenge */
} tune_limits;

/* From starts[0], which is the best so far: lets the other starts challenge it; then changes one number of the best row
 * after the other, upwards and downwards, by factors of 2 and where it has few values one by one, until two values in a
 * row have lost, round by round within the limits or until a
 * round changes nothing. No row challenges twice. *best is the winner. False where the judge stopped. */
bool tune_search(const clfd_tuning *starts, size_t num_starts, const tune_limits *limits, const tune_judge *judge,
                 clfd_tuning *best, tool_fault *fault);

/* ---- The check --------------------------------------------------------------------------------------------------- */

/* Small problems of a class with what the double-precision reference gives for them. */
#define TUNE_CHECKS 2
typedef struct tune_check {
    struct {
        bench_memory memory;
        double *out, *lse; /* [rows * head_dim_v], [rows] */
        size_t rows, head_dim_v;
    } cases[TUNE_CHECKS];
} tune_check;

/* *check needs tune_check_close whatever happens. */
bool tune_check_open(bench_device *device, const bench_problem *problem, tune_check *check, tool_fault *fault);
void tune_check_close(tune_check *check);

/* Whether a row computes them right; *right is false, too, where its kernel cannot be made. */
bool tune_check_row(bench_device *device, const tune_check *check, const char *words, bool *right, tool_fault *fault);

/* Whether `count` results are within the tolerance of what is expected; `type` is what they were rounded to. */
bool tune_check_equal(const float *actual, const double *expected, size_t count, clfd_type type);

/* ---- The contest ------------------------------------------------------------------------------------------------- */

/* Enough for every word of a row, and its family. */
#define TUNE_WORDS_BYTES 384

/* Rows against each other on the problems of one class. */
typedef struct tune_contest {
    bench_device *device;
    const tune_class *class;
    uint32_t repeats; /* measurements per problem and row */
    bench_memory memory[TUNE_MAX_PROBLEMS];
    bench_decoder best[TUNE_MAX_PROBLEMS];
    tune_check check;
    uint32_t tried, refused, wrong; /* rows; refused: no kernel; wrong: results */
    void (*progress)(void *user, const struct tune_contest *contest);
    void *user; /* of progress */
} tune_contest;

/* "family=... wg=... ..." of a row. Returns words. */
const char *tune_words(const clfd_tuning *row, char words[TUNE_WORDS_BYTES]);

/* Allocates the problems of a class and the check. device, class, repeats and progress are set before. *contest needs
 * tune_contest_close whatever happens. */
bool tune_contest_open(tune_contest *contest, tool_fault *fault);
void tune_contest_close(tune_contest *contest);

/* Makes a row the best one without a contest. *right is false where it has no kernel or computes wrong results. */
bool tune_contest_begin(tune_contest *contest, const clfd_tuning *row, bool *right, tool_fault *fault);

/* Measures a row against the best one, problem by problem in turns. It wins where it is faster by TUNE_MARGIN in the
 * geometric mean over the problems, on none slower by that much, and right. */
#define TUNE_MARGIN 0.03
tune_verdict tune_contest_challenge(void *contest, const clfd_tuning *row, tool_fault *fault);

/* Measures the best row against another one at length, which then stands in its place: medians of the other one and of
 * the best, and how many times as fast the best is. */
bool tune_contest_compare(tune_contest *contest, const clfd_tuning *row, double seconds[2][TUNE_MAX_PROBLEMS],
                          double *speedup, tool_fault *fault);

/* ---- All of it for one class ------------------------------------------------------------------------------------- */

/* What was found for one class. */
typedef struct tune_result {
    const tune_class *class;
    bool is_tuned;                        /* the best row is none that would be taken without it */
    char words[TUNE_WORDS_BYTES];         /* of the best row */
    char shipped[TUNE_WORDS_BYTES];       /* of the row that it was measured against */
    double seconds[2][TUNE_MAX_PROBLEMS]; /* of the shipped row, and of the best */
    double speedup;                       /* geometric mean over the problems */
    uint32_t tried, refused, wrong;
} tune_result;

/* Searches from the rows that a plan would try without a user's file. contest: open. */
bool tune_find_best(tune_contest *contest, const clfd_caps *caps, const clfd_tuning_files *shipped,
                    const tune_limits *limits, tune_result *result, tool_fault *fault);

/* ---- The file ---------------------------------------------------------------------------------------------------- */

typedef struct tune_file {
    char *path; /* malloc'ed */
    cJSON *whole;
} tune_file;

/* Whose rows are written, and which run of which tuner. */
typedef struct tune_owner {
    clfd_tuning_scope scope;
    const char *name, *driver;
    bool quick;
} tune_owner;

/* Reads the file that is there, or begins an empty one. A file that is no tuning file is a fault: it is not overwritten.
 * *file needs tune_file_close whatever happens. */
bool tune_file_open(tune_file *file, const char *path, tool_fault *fault);
void tune_file_close(tune_file *file);

/* Whether the file has a row for the class that was measured by this version with this driver, and not quickly unless
 * `owner` is quick, too. */
bool tune_file_has(const tune_file *file, const tune_owner *owner, const clfd_tuning_class *shared);

/* The result as a row of the file; NULL without memory. */
cJSON *tune_file_row(const tune_owner *owner, const tune_result *result);

/* Puts the result into the file in place of what it had for the class, and writes the whole file anew: it appears whole
 * or stays as it was. */
bool tune_file_put(tune_file *file, const tune_owner *owner, const tune_result *result, tool_fault *fault);

/* ---- What is printed --------------------------------------------------------------------------------------------- */

void tune_report_print(const tune_result *result);

#endif

#include "plan/words.h"
#include "tune.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REPEATS 64u
/* After so many measurements a row that takes longer by a quarter is given up. */
#define EARLY_REPEATS 2u
#define EARLY_SPEEDUP 0.8

const char *tune_words(const clfd_tuning *row, char words[TUNE_WORDS_BYTES])
{
    const int used = snprintf(words, TUNE_WORDS_BYTES, "family=%s ", clfd_family_name(row->family));

    clfd_tuning_print(row, words + used, TUNE_WORDS_BYTES - (size_t)used);
    return words;
}

/* Both rows of a contest: times[row][problem][repeat]; row 0 is the best one. */
typedef struct measured {
    double times[2][TUNE_MAX_PROBLEMS][MAX_REPEATS];
    double seconds[2][TUNE_MAX_PROBLEMS];
    double mean;  /* how many times as fast row 1 is in the geometric mean */
    double worst; /* and on the problem that it likes least */
} measured;

static void close_row(const tune_contest *contest, bench_decoder decoders[TUNE_MAX_PROBLEMS])
{
    for (size_t p = 0; p < contest->class->num_problems; p++)
        bench_decoder_close(&decoders[p]);
}

/* Plans and outputs of a row for every problem. False where the row cannot be made; nothing is left open then. */
static bool open_row(const tune_contest *contest, const char *words, bench_decoder decoders[TUNE_MAX_PROBLEMS],
                     tool_fault *fault)
{
    for (size_t p = 0; p < contest->class->num_problems; p++)
        decoders[p] = (bench_decoder){.num_stages = 0};
    for (size_t p = 0; p < contest->class->num_problems; p++)
        if (!bench_decoder_plan(contest->device, &contest->memory[p], words, &decoders[p], fault) ||
            !bench_decoder_open(contest->device, &contest->memory[p], &decoders[p], fault)) {
            close_row(contest, decoders);
            return false;
        }
    return true;
}

/* By the medians and by the shortest times: on a machine that others use, too, one of them alone is luck. */
static void summarise(const tune_contest *contest, size_t repeats, measured *m)
{
    double medians = 0, shortest = 0, sorted[2][MAX_REPEATS];

    m->worst = INFINITY;
    for (size_t p = 0; p < contest->class->num_problems; p++) {
        for (int row = 0; row < 2; row++) {
            memcpy(sorted[row], m->times[row][p], repeats * sizeof sorted[row][0]);
            m->seconds[row][p] = bench_median(sorted[row], repeats);
        }
        medians += log(m->seconds[0][p] / m->seconds[1][p]);
        shortest += log(sorted[0][0] / sorted[1][0]);
        m->worst = fmin(m->worst, m->seconds[0][p] / m->seconds[1][p]);
    }
    m->mean = exp(fmin(medians, shortest) / (double)contest->class->num_problems);
}

static bool measure_once(tune_contest *contest, bench_decoder *decoders, size_t p, double *seconds, tool_fault *fault)
{
    bench_times times;

    bench_decoder_rotate(&contest->memory[p], &decoders[p]);
    if (!bench_decoder_time(contest->device, &decoders[p], &times, fault))
        return false;
    *seconds = times.single;
    return true;
}

/* Rows and problems take turns, so that all see the same machine. LOST: the challenger does not run. */
static tune_verdict measure(tune_contest *contest, bench_decoder *challenger, uint32_t repeats, bool hurry, measured *m,
                            tool_fault *fault)
{
    for (size_t i = 0; i < repeats; i++) {
        for (size_t p = 0; p < contest->class->num_problems; p++) {
            if (!measure_once(contest, contest->best, p, &m->times[0][p][i], fault))
                return TUNE_STOPPED;
            if (!measure_once(contest, challenger, p, &m->times[1][p][i], fault))
                return TUNE_LOST;
        }
        if (hurry && i + 1 == EARLY_REPEATS) {
            summarise(contest, EARLY_REPEATS, m);
            if (m->mean < EARLY_SPEEDUP)
                return TUNE_WON;
        }
    }
    summarise(contest, repeats, m);
    return TUNE_WON;
}

/* One row's results on the first copy of a problem; malloc'ed. */
static float *compute(tune_contest *contest, bench_decoder *decoders, size_t p, size_t *count, tool_fault *fault)
{
    const bench_problem *problem = &contest->class->problems[p];
    bench_decoder *decoder = &decoders[p];
    void *raw;
    float *values;

    *count = (size_t)decoder->rows * problem->head_dim_v;
    raw = malloc(*count * clfd_type_size(problem->out_type));
    values = malloc(*count * sizeof values[0]);
    contest->memory[p].next = 0;
    bench_decoder_rotate(&contest->memory[p], decoder);
    if (raw == NULL || values == NULL)
        fault_failed(fault, "no memory for %zu results", *count);
    if (raw == NULL || values == NULL || !bench_decoder_enqueue(decoder, contest->device->session.queue, fault) ||
        !session_read(&contest->device->session, decoder->stages[0].out, *count * clfd_type_size(problem->out_type),
                      raw, fault)) {
        free(values);
        values = NULL;
    } else {
        clfd_convert_to_float(problem->out_type, raw, values, *count);
    }
    free(raw);
    return values;
}

/* Whether both rows give the same results on what is timed. False with TUNE_STOPPED in *verdict on a fault. */
static bool agree(tune_contest *contest, bench_decoder *challenger, tune_verdict *verdict, tool_fault *fault)
{
    bool same = true;

    for (size_t p = 0; p < contest->class->num_problems && same; p++) {
        size_t count = 0;
        float *const known = compute(contest, contest->best, p, &count, fault);
        float *const given = known != NULL ? compute(contest, challenger, p, &count, fault) : NULL;
        double *const expected = given != NULL ? malloc(count * sizeof expected[0]) : NULL;
        for (size_t i = 0; i < count && expected != NULL; i++)
            expected[i] = known[i];
        if (expected == NULL)
            *verdict = TUNE_STOPPED;
        /* Both are rounded: a unit, not half of one. */
        same = expected != NULL && tune_check_equal(given, expected, count, contest->class->problems[p].out_type);
        free(known);
        free(given);
        free(expected);
    }
    return same;
}

bool tune_contest_open(tune_contest *contest, tool_fault *fault)
{
    const tune_class *class = contest->class;

    for (size_t p = 0; p < class->num_problems; p++) {
        bench_memory *memory = &contest->memory[p];
        if (!bench_lay_out(&class->problems[p], &contest->device->session.device, memory, fault))
            return false;
        /* The problems take turns: all copies of the others are read before one is read again. */
        memory->num_copies = (memory->num_copies + (uint32_t) class->num_problems - 1) / (uint32_t) class->num_problems;
        if (memory->num_copies == 1 && memory->copy_bytes * 2 <= contest->device->session.device.max_alloc_bytes)
            memory->num_copies = 2;
        if (!bench_allocate(contest->device, &class->problems[p], memory, fault))
            return false;
    }
    return tune_check_open(contest->device, &class->problems[0], &contest->check, fault);
}

void tune_contest_close(tune_contest *contest)
{
    close_row(contest, contest->best);
    for (size_t p = 0; p < contest->class->num_problems; p++)
        bench_free(&contest->memory[p]);
    tune_check_close(&contest->check);
}

bool tune_contest_begin(tune_contest *contest, const clfd_tuning *row, bool *right, tool_fault *fault)
{
    char words[TUNE_WORDS_BYTES];

    contest->tried++;
    *right = false;
    close_row(contest, contest->best);
    if (!open_row(contest, tune_words(row, words), contest->best, fault)) {
        contest->refused++;
        fault_clear(fault);
        return true;
    }
    if (!tune_check_row(contest->device, &contest->check, words, right, fault))
        return false;
    contest->wrong += !*right;
    return true;
}

/* Whether a measured row takes over. */
static tune_verdict decide(tune_contest *contest, const char *words, bench_decoder *challenger, const measured *m,
                           tool_fault *fault)
{
    tune_verdict verdict = TUNE_LOST;
    bool right;

    if (m->mean < 1 + TUNE_MARGIN || m->worst < 1 - TUNE_MARGIN)
        return TUNE_LOST;
    if (!tune_check_row(contest->device, &contest->check, words, &right, fault))
        return TUNE_STOPPED;
    if (right && agree(contest, challenger, &verdict, fault))
        return TUNE_WON;
    contest->wrong += verdict == TUNE_LOST;
    return verdict;
}

tune_verdict tune_contest_challenge(void *user, const clfd_tuning *row, tool_fault *fault)
{
    tune_contest *contest = user;
    bench_decoder challenger[TUNE_MAX_PROBLEMS];
    char words[TUNE_WORDS_BYTES];
    tune_verdict verdict;
    measured m;

    contest->tried++;
    if (contest->progress != NULL)
        contest->progress(contest->user, contest);
    if (!open_row(contest, tune_words(row, words), challenger, fault)) {
        contest->refused++;
        fault_clear(fault);
        return TUNE_LOST;
    }
    verdict = measure(contest, challenger, contest->repeats, true, &m, fault);
    if (verdict == TUNE_WON)
        verdict = decide(contest, words, challenger, &m, fault);
    else
        contest->refused += verdict == TUNE_LOST;
    if (verdict == TUNE_WON) {
        close_row(contest, contest->best);
        memcpy(contest->best, challenger, sizeof challenger);
        return TUNE_WON;
    }
    close_row(contest, challenger);
    if (verdict == TUNE_LOST)
        fault_clear(fault);
    return verdict;
}

bool tune_contest_compare(tune_contest *contest, const clfd_tuning *row, double seconds[2][TUNE_MAX_PROBLEMS],
                          double *speedup, tool_fault *fault)
{
    bench_decoder found[TUNE_MAX_PROBLEMS];
    char words[TUNE_WORDS_BYTES];
    measured m;
    bool good;

    /* The shipped row is defended, so that the better one must win again. */
    memcpy(found, contest->best, sizeof found);
    good = open_row(contest, tune_words(row, words), contest->best, fault) &&
           measure(contest, found, 2 * contest->repeats, false, &m, fault) == TUNE_WON;
    close_row(contest, found);
    if (good) {
        memcpy(seconds, m.seconds, sizeof m.seconds);
        *speedup = m.mean;
    }
    return good;
}

/* tune_measure.h - two rows of a contest on its problems: their times and their results. */
#ifndef TOOLS_TUNE_MEASURE_H
#define TOOLS_TUNE_MEASURE_H

#include "tune.h"

#define TUNE_MAX_REPEATS 64u

/* Both rows of a contest: times[row][problem][repeat]; row 0 is the best one. */
typedef struct tune_measured {
    double times[2][TUNE_MAX_PROBLEMS][TUNE_MAX_REPEATS];
    double seconds[2][TUNE_MAX_PROBLEMS];
    double mean;  /* how many times as fast row 1 is in the geometric mean */
    double worst; /* and on the problem that it likes least */
} tune_measured;

/* Plans and outputs of a row for every problem. False where the row cannot be made; nothing is left open then. */
bool tune_row_open(const tune_contest *contest, const char *words, bench_decoder decoders[TUNE_MAX_PROBLEMS],
                   tool_fault *fault);
void tune_row_close(const tune_contest *contest, bench_decoder decoders[TUNE_MAX_PROBLEMS]);

/* Rows and problems take turns, so that all see the same machine. hurry: gives up after a few measurements where the
 * challenger is much slower. LOST: the challenger does not run; STOPPED: the best row does not. */
tune_verdict tune_measure(tune_contest *contest, bench_decoder *challenger, uint32_t repeats, bool hurry,
                          tune_measured *m, tool_fault *fault);

/* Whether both rows give the same results on what is timed. False with STOPPED in *verdict on a fault. */
bool tune_agree(tune_contest *contest, bench_decoder *challenger, tune_verdict *verdict, tool_fault *fault);

#endif

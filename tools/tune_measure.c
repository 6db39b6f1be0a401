#include "tune_measure.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* After so many measurements a row that takes longer by a quarter is given up. */
#define EARLY_REPEATS 2u
#define EARLY_SPEEDUP 0.8

void tune_row_close(const tune_contest *contest, bench_decoder decoders[TUNE_MAX_PROBLEMS])
{
    for (size_t p = 0; p < contest->class->num_problems; p++)
        bench_decoder_close(&decoders[p]);
}

bool tune_row_open(const tune_contest *contest, const char *words, bench_decoder decoders[TUNE_MAX_PROBLEMS],
                   tool_fault *fault)
{
    for (size_t p = 0; p < contest->class->num_problems; p++)
        decoders[p] = (bench_decoder){.num_stages = 0};
    for (size_t p = 0; p < contest->class->num_problems; p++)
        if (!bench_decoder_plan(contest->device, &contest->memory[p], words, &decoders[p], fault) ||
            !bench_decoder_open(contest->device, &contest->memory[p], &decoders[p], fault)) {
            tune_row_close(contest, decoders);
            return false;
        }
    return true;
}

/* By the medians and by the shortest times: on a machine that others use, too, one of them alone is luck. */
static void summarise(const tune_contest *contest, size_t repeats, tune_measured *m)
{
    double medians = 0, shortest = 0, sorted[2][TUNE_MAX_REPEATS];

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

    if (!bench_decoder_time(contest->device, &contest->memory[p], &decoders[p], &times, fault))
        return false;
    *seconds = times.single;
    return true;
}

tune_verdict tune_measure(tune_contest *contest, bench_decoder *challenger, uint32_t repeats, bool hurry,
                          tune_measured *m, tool_fault *fault)
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

bool tune_agree(tune_contest *contest, bench_decoder *challenger, tune_verdict *verdict, tool_fault *fault)
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
        if (expected == NULL && given != NULL)
            fault_failed(fault, "no memory for %zu results", count);
        /* Both are rounded: a unit, not half of one. */
        same = expected != NULL && tune_check_equal(given, expected, count, contest->class->problems[p].out_type);
        free(known);
        free(given);
        free(expected);
    }
    return same;
}

#include "compare.h"
#include <math.h>
#include <stdio.h>

static const struct tolerance_row {
    const char *name;
    double absolute, relative;
} tolerances[NUM_TOLERANCES] = {
    [TOLERANCE_EXACT] = {"exact", 0.0, 0.0},
    [TOLERANCE_DOUBLE] = {"double", 1e-13, 1e-13},
    [TOLERANCE_STATE] = {"state", 1e-6, 1e-6},
    [TOLERANCE_PRINTED3] = {"printed3", 5.01e-4, 0.0},
    [TOLERANCE_PRINTED4] = {"printed4", 5.01e-5, 0.0},
    [TOLERANCE_OUT_F32] = {"out f32", 1e-4, 0.0},
    [TOLERANCE_OUT_F16] = {"out f16", 1e-4, 0x1p-10},
    [TOLERANCE_OUT_BF16] = {"out bf16", 1e-4, 0x1p-7},
    [TOLERANCE_OUT_WEIGHTS] = {"out f16 weights", 1e-3, 0x1p-7},
    [TOLERANCE_OUT_HOT] = {"out hot", 2e-3, 0.0},
    [TOLERANCE_LSE] = {"lse", 1e-4, 1e-6},
};

static bool row_matches(double actual, double expected, const struct tolerance_row *row)
{
    if (isnan(expected) || isnan(actual))
        return isnan(expected) && isnan(actual);
    if (isinf(expected) || isinf(actual))
        return expected == actual;
    return fabs(actual - expected) <= fmax(row->absolute, row->relative * fabs(expected));
}

bool compare_value(double actual, double expected, compare_tolerance tolerance)
{
    return row_matches(actual, expected, &tolerances[tolerance]);
}

/* The running account of a comparison. */
typedef struct compare_count {
    size_t mismatches, first;
    double actual, expected; /* of the first mismatch */
} compare_count;

static void count_value(compare_count *count, size_t index, double actual, double expected,
                        const struct tolerance_row *row)
{
    if (row_matches(actual, expected, row))
        return;
    if (count->mismatches++ == 0) {
        count->first = index;
        count->actual = actual;
        count->expected = expected;
    }
}

static bool conclude(const compare_count *count, size_t values, const struct tolerance_row *row,
                     char message[COMPARE_MESSAGE_BYTES])
{
    if (count->mismatches == 0)
        return true;
    snprintf(message, COMPARE_MESSAGE_BYTES,
             "%zu of %zu values differ; the first is [%zu] = %.9g instead of %.9g (%s: absolute %g, relative %g)",
             count->mismatches, values, count->first, count->actual, count->expected, row->name, row->absolute,
             row->relative);
    return false;
}

bool compare_floats(const float *actual, const double *expected, size_t count, compare_tolerance tolerance,
                    char message[COMPARE_MESSAGE_BYTES])
{
    compare_count differences = {0};

    for (size_t i = 0; i < count; i++)
        count_value(&differences, i, actual[i], expected[i], &tolerances[tolerance]);
    return conclude(&differences, count, &tolerances[tolerance], message);
}

bool compare_doubles(const double *actual, const double *expected, size_t count, compare_tolerance tolerance,
                     char message[COMPARE_MESSAGE_BYTES])
{
    compare_count differences = {0};

    for (size_t i = 0; i < count; i++)
        count_value(&differences, i, actual[i], expected[i], &tolerances[tolerance]);
    return conclude(&differences, count, &tolerances[tolerance], message);
}

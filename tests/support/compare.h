/* compare.h - comparing arrays of numbers, with every tolerance of the tests in one table (compare.c).
 *
 * A value matches what was expected when |actual - expected| <= max(absolute, relative * |expected|). An infinity
 * matches the same infinity only, and NaN matches where NaN was expected and nowhere else.
 */
#ifndef SUPPORT_COMPARE_H
#define SUPPORT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum compare_tolerance {
    TOLERANCE_EXACT,    /* equal in value */
    TOLERANCE_DOUBLE,   /* double arithmetic in another order */
    TOLERANCE_STATE,    /* an fp32 state after a few roundings */
    TOLERANCE_PRINTED3, /* a value printed with three decimals */
    TOLERANCE_PRINTED4, /* with four */
    TOLERANCE_OUT_F32,  /* out of a kernel against the reference, by its type */
    TOLERANCE_OUT_F16,
    TOLERANCE_OUT_BF16,
    TOLERANCE_OUT_WEIGHTS, /* the same where weights are rounded to f16 */
    TOLERANCE_OUT_HOT,     /* the same where scores reach the hundreds */
    TOLERANCE_LSE,         /* lse of a kernel against the reference */
    NUM_TOLERANCES
} compare_tolerance;

#define COMPARE_MESSAGE_BYTES 256

/* Whether actual[i] matches expected[i] for every i < count. If not, `message` receives one sentence: how many do not,
 * the first of them, and the tolerance. */
bool compare_floats(const float *actual, const double *expected, size_t count, compare_tolerance tolerance,
                    char message[COMPARE_MESSAGE_BYTES]);
bool compare_doubles(const double *actual, const double *expected, size_t count, compare_tolerance tolerance,
                     char message[COMPARE_MESSAGE_BYTES]);

/* Whether one value matches. */
bool compare_value(double actual, double expected, compare_tolerance tolerance);

/* The same as assertions of Check; the failure is reported where they stand. */
#define ASSERT_MATCH(compare, actual, expected, count, tolerance)                                                      \
    do {                                                                                                               \
        char match_message[COMPARE_MESSAGE_BYTES] = "";                                                                \
        const bool match = compare(actual, expected, count, tolerance, match_message);                                 \
        ck_assert_msg(match, "%s against %s: %s", #actual, #expected, match_message);                                  \
    } while (0)
#define ASSERT_FLOATS(actual, expected, count, tolerance)                                                              \
    ASSERT_MATCH(compare_floats, actual, expected, count, tolerance)
#define ASSERT_DOUBLES(actual, expected, count, tolerance)                                                             \
    ASSERT_MATCH(compare_doubles, actual, expected, count, tolerance)
#define ASSERT_VALUE(actual, expected, tolerance)                                                                      \
    do {                                                                                                               \
        const double match_actual = (actual), match_expected = (expected);                                             \
        ASSERT_DOUBLES(&match_actual, &match_expected, 1, tolerance);                                                  \
    } while (0)

#endif

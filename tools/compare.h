/* compare.h - results against an expected array. */
#ifndef TOOLS_COMPARE_H
#define TOOLS_COMPARE_H

#include "npy.h"

/* Absolute: |actual - expected| <= tolerance. LSE: <= tolerance * max(1, |expected| / 100), since the spacing of the
 * numbers that a score is computed in grows with it. Equal infinities match; NaN matches NaN and nothing else; any other
 * pair with an infinity or a NaN differs by infinity. */
typedef enum compare_rule { COMPARE_ABSOLUTE, COMPARE_LSE } compare_rule;

typedef struct comparison {
    double max_error;        /* the largest |actual - expected| */
    size_t worst;            /* index of the element that fits its tolerance worst */
    double actual, expected; /* that element */
    bool passed;
} comparison;

/* Whether an array can be compared: f8 or f4 elements, and exactly this shape. */
bool compare_check(const npy_array *expected, const char *path, uint32_t num_dims, const uint64_t *shape,
                   tool_fault *fault);

/* Compares expected->count elements. `expected` has passed compare_check. `rounded`: the plain type that the actual
 * values were rounded to, which adds half a unit in the last place of the value to the tolerance; DEFAULT adds none. */
comparison compare_array(const float *actual, const npy_array *expected, compare_rule rule, clfd_type rounded,
                         double tolerance);

#endif

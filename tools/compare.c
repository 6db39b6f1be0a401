#include "compare.h"
#include <math.h>
#include <string.h>

bool compare_check(const npy_array *expected, const char *path, uint32_t num_dims, const uint64_t *shape,
                   tool_fault *fault)
{
    char is[NPY_SHAPE_BYTES], must_be[NPY_SHAPE_BYTES];
    npy_array wanted = {.num_dims = num_dims};

    memcpy(wanted.shape, shape, num_dims * sizeof shape[0]);
    if (expected->kind != 'f' || expected->item_bytes < 4)
        return fault_failed(fault, "%s holds %s elements; expected values must be f8 or f4", path,
                            npy_type(expected).text);
    if (expected->num_dims != num_dims || memcmp(expected->shape, shape, num_dims * sizeof shape[0]) != 0)
        return fault_failed(fault, "%s has shape %s; what is computed has shape %s", path, npy_shape(expected, is),
                            npy_shape(&wanted, must_be));
    return true;
}

static double error_between(double actual, double expected)
{
    if (actual == expected || (isnan(actual) && isnan(expected)))
        return 0.0;
    return isfinite(actual) && isfinite(expected) ? fabs(actual - expected) : INFINITY;
}

comparison compare_array(const float *actual, const npy_array *expected, compare_rule rule, double tolerance)
{
    comparison result = {.passed = true};
    double worst_ratio = -1.0;

    for (size_t i = 0; i < expected->count; i++) {
        const double want =
            expected->item_bytes == 8 ? ((const double *)expected->data)[i] : ((const float *)expected->data)[i];
        const double error = error_between(actual[i], want);
        const double factor = rule == COMPARE_LSE && isfinite(want) ? fmax(1.0, fabs(want) / 100.0) : 1.0;
        const double ratio = error / factor;
        if (error > result.max_error)
            result.max_error = error;
        if (ratio > tolerance)
            result.passed = false;
        if (ratio > worst_ratio) {
            worst_ratio = ratio;
            result.worst = i;
            result.actual = actual[i];
            result.expected = want;
        }
    }
    return result;
}

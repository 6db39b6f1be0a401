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

/* Half a unit in the last place of a type at the larger of two finite values: what rounding to the type may add. */
static double half_unit(clfd_type type, double actual, double expected)
{
    static const struct {
        int digits, min_exponent; /* of the significand, the hidden one included; of the least normal number */
    } formats[] = {
        [CLFD_TYPE_F32] = {24, -126},
        [CLFD_TYPE_F16] = {11, -14},
        [CLFD_TYPE_BF16] = {8, -126},
    };
    const double value = fmax(fabs(actual), fabs(expected));
    int exponent;

    if (type == CLFD_TYPE_DEFAULT || !isfinite(value) || value == 0.0)
        return 0.0;
    exponent = ilogb(value) > formats[type].min_exponent ? ilogb(value) : formats[type].min_exponent;
    return ldexp(1.0, exponent - formats[type].digits);
}

comparison compare_array(const float *actual, const npy_array *expected, compare_rule rule, clfd_type rounded,
                         double tolerance)
{
    comparison result = {.passed = true};
    double worst_ratio = -1.0;

    for (size_t i = 0; i < expected->count; i++) {
        const double want =
            expected->item_bytes == 8 ? ((const double *)expected->data)[i] : ((const float *)expected->data)[i];
        const double error = error_between(actual[i], want);
        const double factor = rule == COMPARE_LSE && isfinite(want) ? fmax(1.0, fabs(want) / 100.0) : 1.0;
        const double ratio = fmax(error - half_unit(rounded, actual[i], want), 0.0) / factor;
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

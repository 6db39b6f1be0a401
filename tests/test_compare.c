#include "compare.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

static npy_array array_of(double *value)
{
    return (npy_array){.kind = 'f', .item_bytes = 8, .num_dims = 1, .shape = {1}, .count = 1, .data = value};
}

/* Compares one number. */
static comparison compare_one(float actual, double expected, compare_rule rule, double tolerance)
{
    const npy_array array = array_of(&expected);
    return compare_array(&actual, &array, rule, CLFD_TYPE_DEFAULT, tolerance);
}

START_TEST(tolerance_is_absolute_and_included)
{
    ck_assert(compare_one(1000.0f, 1000.5, COMPARE_ABSOLUTE, 0.5).passed);
    ck_assert(!compare_one(1000.0f, 1000.5, COMPARE_ABSOLUTE, 0.4999).passed);
    ck_assert(compare_one(0.5f, 0.5, COMPARE_ABSOLUTE, 0).passed);
}
END_TEST

START_TEST(lse_tolerance_grows_with_the_expected_value)
{
    ck_assert(compare_one(1000.0f, 1001.0, COMPARE_LSE, 0.1).passed);
    ck_assert(!compare_one(1000.0f, 1001.5, COMPARE_LSE, 0.1).passed);
    ck_assert(compare_one(-1000.0f, -1001.0, COMPARE_LSE, 0.1).passed);
    ck_assert(!compare_one(1.0f, 1.2, COMPARE_LSE, 0.1).passed);
}
END_TEST

START_TEST(infinities_match_themselves_and_nan_matches_nan_only)
{
    static const double values[] = {1.0, INFINITY, -INFINITY, NAN};

    for (int a = 0; a < 4; a++)
        for (int e = 0; e < 4; e++)
            for (int rule = COMPARE_ABSOLUTE; rule <= COMPARE_LSE; rule++) {
                const comparison c = compare_one((float)values[a], values[e], (compare_rule)rule, 1e30);
                ck_assert_msg(c.passed == (a == e), "%g against %g", values[a], values[e]);
                ck_assert_double_eq(c.max_error, a == e ? 0.0 : INFINITY);
            }
}
END_TEST

START_TEST(worst_element_is_the_one_that_exceeds_its_own_tolerance_most)
{
    const float actual[] = {0, 1001, 0.05f};
    const float values[] = {0, 1000, 0};
    const npy_array expected = {
        .kind = 'f', .item_bytes = 4, .num_dims = 1, .shape = {3}, .count = 3, .data = (void *)values};
    const comparison absolute = compare_array(actual, &expected, COMPARE_ABSOLUTE, CLFD_TYPE_DEFAULT, 0.01);
    const comparison lse = compare_array(actual, &expected, COMPARE_LSE, CLFD_TYPE_DEFAULT, 0.01);

    ck_assert_uint_eq(absolute.worst, 1);
    ck_assert_double_eq(absolute.max_error, 1.0);
    ck_assert_double_eq(absolute.actual, 1001);
    ck_assert_double_eq(absolute.expected, 1000);
    /* 1 in 10 * 0.01 against 0.05 in 0.01. */
    ck_assert_uint_eq(lse.worst, 1);
    ck_assert_double_eq(compare_array(actual, &expected, COMPARE_LSE, CLFD_TYPE_DEFAULT, 0.11).max_error, 1.0);
    ck_assert(compare_array(actual, &expected, COMPARE_LSE, CLFD_TYPE_DEFAULT, 0.11).passed);
}
END_TEST

/* The neighbours of a value lie two halves away: what rounds to the value passes, what rounds to a neighbour fails. */
START_TEST(rounding_to_the_type_of_the_values_is_no_error)
{
    static const struct {
        clfd_type type;
        float actual;
        double half;
    } cases[] = {
        {CLFD_TYPE_F32, 1.0f, 0x1p-24},     {CLFD_TYPE_F16, 1.0f, 0x1p-11},       {CLFD_TYPE_BF16, 1.0f, 0x1p-8},
        {CLFD_TYPE_F16, 1.5f, 0x1p-11},     {CLFD_TYPE_F16, -2.0f, 0x1p-10},      {CLFD_TYPE_BF16, 1000.0f, 2.0},
        {CLFD_TYPE_F16, 0x1p-20f, 0x1p-25}, {CLFD_TYPE_F32, 0x1p-140f, 0x1p-150},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int side = -1; side <= 1; side += 2) {
            const double actual = cases[i].actual, half = side * cases[i].half;
            const npy_array inside = array_of(&(double){actual + half}),
                            outside = array_of(&(double){actual + 1.01 * half});
            ck_assert(compare_array(&cases[i].actual, &inside, COMPARE_ABSOLUTE, cases[i].type, 0).passed);
            ck_assert_msg(!compare_array(&cases[i].actual, &outside, COMPARE_ABSOLUTE, cases[i].type, 0).passed,
                          "%s %g and %.9g", clfd_type_name(cases[i].type), actual, actual + 1.01 * half);
            ck_assert(!compare_array(&cases[i].actual, &inside, COMPARE_ABSOLUTE, CLFD_TYPE_DEFAULT, 0).passed);
        }
}
END_TEST

START_TEST(array_of_another_type_or_shape_is_refused)
{
    const uint64_t shape[] = {2, 3};
    npy_array array = {.kind = 'f', .item_bytes = 4, .num_dims = 2, .shape = {2, 3}, .count = 6};
    tool_fault fault = {.exit_code = EXIT_CODE_OK};

    ck_assert(compare_check(&array, "name", 2, shape, &fault));
    array.item_bytes = 2;
    ck_assert(!compare_check(&array, "name", 2, shape, &fault));
    ck_assert_str_eq(fault.sentence, "name holds f2 elements; expected values must be f8 or f4");
    array.item_bytes = 8;
    array.shape[1] = 4;
    ck_assert(!compare_check(&array, "name", 2, shape, &fault));
    ck_assert_str_eq(fault.sentence, "name has shape (2, 4); what is computed has shape (2, 3)");
    array.num_dims = 1;
    ck_assert(!compare_check(&array, "name", 2, shape, &fault));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        tolerance_is_absolute_and_included,
        lse_tolerance_grows_with_the_expected_value,
        infinities_match_themselves_and_nan_matches_nan_only,
        worst_element_is_the_one_that_exceeds_its_own_tolerance_most,
        rounding_to_the_type_of_the_values_is_no_error,
        array_of_another_type_or_shape_is_refused,
    };
    return run_suite("compare", tests, sizeof tests / sizeof tests[0]);
}

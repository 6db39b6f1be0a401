/* The support code that other tests stand on: comparison and random numbers. */
#include "support/compare.h"
#include "support/random.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

START_TEST(values_match_within_the_greater_of_the_two_tolerances)
{
    ck_assert(compare_value(1.0 + 0.9e-6, 1.0, TOLERANCE_STATE)); /* absolute 1e-6, relative 1e-6 */
    ck_assert(!compare_value(1.0 + 1.1e-6, 1.0, TOLERANCE_STATE));
    ck_assert(compare_value(-100.0 - 0.9e-4, -100.0, TOLERANCE_STATE));
    ck_assert(!compare_value(-100.0 - 1.1e-4, -100.0, TOLERANCE_STATE));
    ck_assert(!compare_value(1.0, -1.0, TOLERANCE_STATE));
    ck_assert(compare_value(0.5, 0.5, TOLERANCE_EXACT));
    ck_assert(!compare_value(0.5 + 0x1p-50, 0.5, TOLERANCE_EXACT));
}
END_TEST

START_TEST(infinities_match_their_equals_and_nan_only_where_expected)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, 0.0, 1e300};

    for (int tolerance = 0; tolerance < NUM_TOLERANCES; tolerance++)
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < 5; j++)
                ck_assert(compare_value(values[i], values[j], (compare_tolerance)tolerance) == (i == j));
}
END_TEST

START_TEST(a_mismatch_is_counted_and_the_first_one_named)
{
    const float actual[4] = {1.0f, 2.5f, NAN, 4.0f};
    const double expected[4] = {1.0, 2.0, 3.0, 4.0}, same[4] = {1.0, 2.5, NAN, 4.0};
    char message[COMPARE_MESSAGE_BYTES] = "";

    ck_assert(compare_floats(actual, same, 4, TOLERANCE_EXACT, message));
    ck_assert_str_eq(message, "");
    ck_assert(!compare_floats(actual, expected, 4, TOLERANCE_LSE, message));
    ck_assert_ptr_nonnull(strstr(message, "2 of 4 values differ; the first is [1] = 2.5 instead of 2 (lse:"));
    ck_assert(!compare_doubles(same, expected, 3, TOLERANCE_LSE, message));
    ck_assert_ptr_nonnull(strstr(message, "2 of 3"));
}
END_TEST

START_TEST(the_generator_is_splitmix64)
{
    random_source source = {0};

    ck_assert_uint_eq(random_bits(&source), UINT64_C(0xe220a8397b1dcdaf));
    ck_assert_uint_eq(random_bits(&source), UINT64_C(0x6e789e6aa1b965f4));
}
END_TEST

START_TEST(random_numbers_keep_their_range_and_their_moments)
{
    enum { DRAWS = 100000 };
    random_source source = {2026};
    double sum = 0.0, squares = 0.0, uniform_sum = 0.0;
    int seen[7] = {0};

    for (int i = 0; i < DRAWS; i++) {
        const float normal = random_normal(&source), uniform = random_uniform(&source, -3.0f, 5.0f);
        EXPECT(fabsf(normal) <= 6.0f && uniform >= -3.0f && uniform < 5.0f, "drew %g and %g", (double)normal,
               (double)uniform);
        sum += (double)normal;
        squares += (double)normal * (double)normal;
        uniform_sum += (double)uniform;
        seen[random_below(&source, 7)]++;
    }
    ck_assert_double_eq_tol(sum / DRAWS, 0.0, 0.02); /* six standard errors */
    ck_assert_double_eq_tol(squares / DRAWS, 1.0, 0.03);
    ck_assert_double_eq_tol(uniform_sum / DRAWS, 1.0, 0.05);
    for (int i = 0; i < 7; i++)
        ck_assert_int_gt(seen[i], DRAWS / 8);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        values_match_within_the_greater_of_the_two_tolerances,
        infinities_match_their_equals_and_nan_only_where_expected,
        a_mismatch_is_counted_and_the_first_one_named,
        the_generator_is_splitmix64,
        random_numbers_keep_their_range_and_their_moments,
    };
    return run_suite("support", tests, sizeof tests / sizeof tests[0]);
}

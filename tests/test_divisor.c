#include "run/divisor.h"
#include "support/suite.h"

/* divisor.cl is C but for these words. */
#define uint uint32_t
#define ulong uint64_t
#include "divisor.cl"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define MOST 0x7fffffff

static void expect_quotient(int n, int d)
{
    const int quotient = divide(n, clfd_make_divisor((uint32_t)d));
    ck_assert_msg(quotient == n / d, "%d / %d: %d", n, d, quotient);
}

START_TEST(quotients_next_to_every_multiple_are_those_of_c)
{
    for (int d = 1; d <= 300; d++)
        for (int k = 0; k < 300; k++)
            for (int n = k * d > 0 ? k * d - 1 : 0; n <= k * d + 1; n++)
                expect_quotient(n, d);
}
END_TEST

START_TEST(the_greatest_numbers_divide_like_any_others)
{
    static const int divisors[] = {1, 2, 3, 5, 7, 64, 641, 65535, 65536, 65537, 1 << 30, (1 << 30) + 1, MOST - 1, MOST};

    for (size_t i = 0; i < COUNT(divisors); i++) {
        const int d = divisors[i], last = MOST / d * d;
        for (int back = 0; back < 1000; back++)
            expect_quotient(MOST - back, d);
        expect_quotient(last, d);
        expect_quotient(last - 1, d);
        expect_quotient(d - 1, d);
    }
}
END_TEST

START_TEST(a_divisor_of_0_is_taken_for_1)
{
    ck_assert_int_eq(divide(12345, clfd_make_divisor(0)), 12345);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        quotients_next_to_every_multiple_are_those_of_c,
        the_greatest_numbers_divide_like_any_others,
        a_divisor_of_0_is_taken_for_1,
    };
    return run_suite("divisor", tests, COUNT(tests));
}

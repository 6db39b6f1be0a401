/* suite.h - main() of a test program. */
#ifndef SUPPORT_SUITE_H
#define SUPPORT_SUITE_H

#include <check.h>
#include <stddef.h>

/* Runs the tests in this very process (a fork after OpenCL has been touched deadlocks) and prints the failures. Returns
 * the exit status.
 *
 *     int main(void)
 *     {
 *         const TTest *const tests[] = {first_test, second_test};
 *         return run_suite("convert", tests, sizeof tests / sizeof tests[0]);
 *     } */
int run_suite(const char *name, const TTest *const *tests, size_t count);

/* The same with set_up before each test and tear_down after it; either may be NULL. */
int run_suite_around(const char *name, const TTest *const *tests, size_t count, SFun set_up, SFun tear_down);

/* ck_assert_msg for long loops: an assertion of Check costs a write even where it holds, this one only if it fails. */
#define EXPECT(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            ck_abort_msg(__VA_ARGS__);                                                                                 \
    } while (0)

#endif

#include "suite.h"
#include <stdlib.h>

int run_suite(const char *name, const TTest *const *tests, size_t count)
{
    return run_suite_around(name, tests, count, NULL, NULL);
}

int run_suite_around(const char *name, const TTest *const *tests, size_t count, SFun set_up, SFun tear_down)
{
    Suite *suite = suite_create(name);
    TCase *group = tcase_create(name);
    SRunner *runner = srunner_create(suite);
    int failed;

    /* Rows that a developer's own tuning file has are none of the tests'. */
    setenv("CLFD_TUNING", "none", 1);
    suite_add_tcase(suite, group);
    tcase_add_checked_fixture(group, set_up, tear_down);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(group, tests[i]);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

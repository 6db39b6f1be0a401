/* A machine without any OpenCL platform: the loader of this process is shown an empty place before its first call. */
#include "support/log.h"
#include "support/suite.h"
#include <clfd/device.h>
#include <stdlib.h>
#include <string.h>

static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    heard = (test_log){0};
    logger = test_logger(&heard);
}

START_TEST(list_is_empty_with_a_status_and_a_sentence)
{
    clfd_device_info infos[1];
    size_t count = 7;

    ck_assert_int_eq(clfd_list_devices(infos, 1, &count, &logger), CLFD_ERROR_NO_PLATFORM);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "no OpenCL platform"));
}
END_TEST

START_TEST(nothing_can_be_selected)
{
    static const char *const specs[] = {NULL, "gpu", "0:0", "index=0"};
    clfd_device_info info;

    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        ck_assert_int_eq(clfd_select_device(specs[i], &info, &logger), CLFD_ERROR_NO_PLATFORM);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 4);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "no OpenCL platform"));
}
END_TEST

START_TEST(malformed_spec_is_malformed_here_too)
{
    clfd_device_info info;

    ck_assert_int_eq(clfd_select_device("type=gpuu", &info, &logger), CLFD_ERROR_DEVICE_SPEC);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        list_is_empty_with_a_status_and_a_sentence,
        nothing_can_be_selected,
        malformed_spec_is_malformed_here_too,
    };

    setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
    unsetenv("OCL_ICD_FILENAMES");
    unsetenv("CLFD_DEVICE");
    return run_suite_around("no_platform", tests, sizeof tests / sizeof tests[0], set_up, NULL);
}

#include "device/query.h"
#include "support/fake_opencl.h"
#include "support/log.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

static fake_device device;
static fake_platform platform;
static test_log heard;
static clfd_logger logger;

static cl_device_id id(void) { return fake_device_id(&device); }

static void set_up(void)
{
    device = fake_plain_device();
    platform = (fake_platform){.name = "Acme OpenCL", .devices = &device, .num_devices = 1};
    fake_opencl = (struct fake_opencl){.platforms = &platform, .num_platforms = 1};
    heard = (test_log){0};
    logger = test_logger(&heard);
}

START_TEST(numbers_of_both_widths_are_read)
{
    uint64_t value = 0;

    device.compute_units = 0xfffffffeu;
    device.memory = 0xfedcba9876543210u;
    ck_assert_int_eq(clfd_query_number(id(), CLFD_DEVICE_QUERY(CL_DEVICE_MAX_COMPUTE_UNITS), &value, &logger),
                     CLFD_SUCCESS);
    ck_assert_uint_eq(value, 0xfffffffeu);
    ck_assert_int_eq(clfd_query_number(id(), CLFD_DEVICE_QUERY(CL_DEVICE_GLOBAL_MEM_SIZE), &value, &logger),
                     CLFD_SUCCESS);
    ck_assert_uint_eq(value, 0xfedcba9876543210u);
}
END_TEST

START_TEST(number_of_another_width_is_refused)
{
    uint64_t value = 0;

    device.profile = "ab";
    ck_assert_int_eq(clfd_query_number(id(), CLFD_DEVICE_QUERY(CL_DEVICE_PROFILE), &value, &logger), CL_INVALID_VALUE);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "CL_DEVICE_PROFILE"));
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "3 bytes"));
}
END_TEST

START_TEST(failed_call_passes_its_code_through_and_is_named)
{
    static const char *const sentence = "clGetDeviceInfo(CL_DEVICE_NAME) failed: CL_OUT_OF_RESOURCES (-5)";
    char text[8] = "before";
    void *copy = NULL;
    uint64_t value = 0;

    device.broken = CL_DEVICE_NAME;
    ck_assert_int_eq(clfd_query_text(id(), CLFD_DEVICE_QUERY(CL_DEVICE_NAME), text, sizeof text, &logger),
                     CL_OUT_OF_RESOURCES);
    ck_assert_str_eq(heard.last[CLFD_LOG_ERROR], sentence);
    ck_assert_str_eq(text, "before");
    ck_assert_int_eq(clfd_query_copy(id(), CLFD_DEVICE_QUERY(CL_DEVICE_NAME), &copy, NULL, &logger),
                     CL_OUT_OF_RESOURCES);
    ck_assert_ptr_null(copy);
    ck_assert_int_eq(clfd_query_number(id(), CLFD_DEVICE_QUERY(CL_DEVICE_NAME), &value, &logger), CL_OUT_OF_RESOURCES);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 3);
}
END_TEST

START_TEST(long_text_is_cut_and_terminated)
{
    char name[5000], text[16];

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    device.name = name;
    platform.name = name;
    ck_assert_int_eq(clfd_query_text(id(), CLFD_DEVICE_QUERY(CL_DEVICE_NAME), text, sizeof text, &logger),
                     CLFD_SUCCESS);
    ck_assert_str_eq(text, "nnnnnnnnnnnnnnn");
    text[0] = '\0';
    ck_assert_int_eq(clfd_query_platform_text(fake_platform_id(&platform), CLFD_PLATFORM_QUERY(CL_PLATFORM_NAME), text,
                                              sizeof text, &logger),
                     CLFD_SUCCESS);
    ck_assert_str_eq(text, "nnnnnnnnnnnnnnn");
}
END_TEST

START_TEST(copy_is_whole_and_has_a_zero_after_it)
{
    void *copy = NULL;
    size_t bytes = 0;

    device.work_items[2] = 17;
    ck_assert_int_eq(clfd_query_copy(id(), CLFD_DEVICE_QUERY(CL_DEVICE_MAX_WORK_ITEM_SIZES), &copy, &bytes, &logger),
                     CLFD_SUCCESS);
    ck_assert_uint_eq(bytes, 3 * sizeof(size_t));
    ck_assert_uint_eq(((const size_t *)copy)[2], 17);
    ck_assert_int_eq(((const char *)copy)[bytes], 0);
    free(copy);
}
END_TEST

START_TEST(table_of_texts_stops_at_the_first_failure)
{
    struct texts {
        char vendor[8], name[4], driver[8];
    } texts = {"", "", "before"};
    static const clfd_query rows[] = {
        CLFD_QUERY(struct texts, vendor, CL_DEVICE_VENDOR),
        CLFD_QUERY(struct texts, name, CL_DEVICE_NAME),
        CLFD_QUERY(struct texts, driver, CL_DRIVER_VERSION),
    };

    ck_assert_int_eq(clfd_query_texts(id(), rows, CLFD_COUNT(rows), &texts, &logger), CLFD_SUCCESS);
    ck_assert_str_eq(texts.vendor, "Acme");
    ck_assert_str_eq(texts.name, "Acm");
    ck_assert_str_eq(texts.driver, "1.0");
    device.broken = CL_DEVICE_NAME;
    device.driver = "2.0";
    ck_assert_int_eq(clfd_query_texts(id(), rows, CLFD_COUNT(rows), &texts, &logger), CL_OUT_OF_RESOURCES);
    ck_assert_str_eq(texts.driver, "1.0");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        numbers_of_both_widths_are_read,
        number_of_another_width_is_refused,
        failed_call_passes_its_code_through_and_is_named,
        long_text_is_cut_and_terminated,
        copy_is_whole_and_has_a_zero_after_it,
        table_of_texts_stops_at_the_first_failure,
    };
    return run_suite_around("query", tests, sizeof tests / sizeof tests[0], set_up, NULL);
}

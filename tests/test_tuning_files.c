/* Which file of tuning rows a context reads, and what it does with one that is no good. */
#include "support/device.h"
#include "support/folder.h"
#include "support/suite.h"
#include <clfd/clfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file with one row for the device of the test, marked by its min_split. */
#define FILE_TEXT                                                                                                      \
    "{\"clfd_tuning\": 1, \"rows\": [%s{\"device\": \"%s\", \"k_type\": \"f32\", \"v_type\": \"f32\", "                \
    "\"head_dim\": 64, \"head_dim_v\": 64, \"ratio\": 1, \"tuning\": \"%s\"}]}"
#define GOOD_WORDS "family=decode_vector min_split=%d"

static char folder[64], path[128];
static clfd_device_info device;
static cl_context cl;
static test_log heard;

static void set_up(void)
{
    test_folder_create(folder);
    snprintf(path, sizeof path, "%s/named.json", folder);
    memset(&heard, 0, sizeof heard);
    device.device = test_device();
    ck_assert_int_eq(clGetDeviceInfo(device.device, CL_DEVICE_NAME, sizeof device.name, device.name, NULL), CL_SUCCESS);
    cl = clCreateContext(NULL, 1, &device.device, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(cl);
    unsetenv("CLFD_TUNING");
    setenv("XDG_CONFIG_HOME", folder, 1);
}

static void tear_down(void)
{
    char own[128];

    snprintf(own, sizeof own, "%s/clfd", folder);
    if (access(own, F_OK) == 0)
        test_folder_remove(own);
    ck_assert_int_eq(clReleaseContext(cl), CL_SUCCESS);
    test_folder_remove(folder);
    setenv("CLFD_TUNING", "none", 1);
}

static void write_file(const char *name, const char *before, const char *words, int mark)
{
    char text[2048], filled[256];

    snprintf(filled, sizeof filled, words, mark);
    snprintf(text, sizeof text, FILE_TEXT, before, device.name, filled);
    test_folder_write(folder, name, text);
}

static void write_own(const char *text)
{
    char own[128];

    snprintf(own, sizeof own, "%s/clfd", folder);
    mkdir(own, 0700);
    test_folder_write(own, "tuning.json", text);
}

static void write_own_row(int mark)
{
    char text[2048], words[256];

    snprintf(words, sizeof words, GOOD_WORDS, mark);
    snprintf(text, sizeof text, FILE_TEXT, "", device.name, words);
    write_own(text);
}

static clfd_status create(clfd_context **context)
{
    const clfd_context_options options = {.struct_size = sizeof options, .logger = test_logger(&heard)};

    *context = NULL;
    return clfd_context_create(cl, device.device, &options, context);
}

/* min_split of the plan that a new context makes. */
static int planned(void)
{
    const clfd_attention attention = {
        .struct_size = sizeof attention, .num_q_heads = 1, .head_dim = 64, .max_kv_len = 4096};
    clfd_context *context;
    clfd_plan *plan = NULL;
    int mark = 0;

    ck_assert_msg(create(&context) == CLFD_SUCCESS, "%s", heard.last[CLFD_LOG_ERROR]);
    ck_assert_int_eq(clfd_plan_create(context, &attention, &plan), CLFD_SUCCESS);
    ck_assert_int_eq(sscanf(strstr(clfd_plan_describe(plan), "min_split="), "min_split=%d", &mark), 1);
    clfd_plan_release(plan);
    clfd_context_release(context);
    return mark;
}

START_TEST(the_file_that_clfd_tuning_names_is_read)
{
    write_file("named.json", "", GOOD_WORDS, 1234);
    setenv("CLFD_TUNING", path, 1);
    ck_assert_int_eq(planned(), 1234);
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 0);
}
END_TEST

START_TEST(without_it_the_users_own_file_is_read_where_there_is_one)
{
    ck_assert_int_ne(planned(), 2345);
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 0);
    write_own_row(2345);
    ck_assert_int_eq(planned(), 2345);
    /* The named one takes its place. */
    write_file("named.json", "", GOOD_WORDS, 1234);
    setenv("CLFD_TUNING", path, 1);
    ck_assert_int_eq(planned(), 1234);
}
END_TEST

START_TEST(home_stands_in_for_a_config_folder_that_is_unset_or_relative)
{
    static const char *const configs[] = {"", "not/absolute"};
    char line[512];

    write_own_row(2345);
    snprintf(line, sizeof line, "mkdir -p %s/.config && mv %s/clfd %s/.config/clfd", folder, folder, folder);
    ck_assert_int_eq(system(line), 0);
    setenv("HOME", folder, 1);
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        setenv("XDG_CONFIG_HOME", configs[i], 1);
        ck_assert_int_eq(planned(), 2345);
    }
    snprintf(line, sizeof line, "rm -r %s/.config", folder);
    ck_assert_int_eq(system(line), 0);
    ck_assert_int_ne(planned(), 2345);
}
END_TEST

START_TEST(empty_and_none_mean_no_file)
{
    static const char *const values[] = {"", "none"};

    write_own_row(2345);
    for (size_t i = 0; i < 2; i++) {
        setenv("CLFD_TUNING", values[i], 1);
        ck_assert_int_ne(planned(), 2345);
    }
}
END_TEST

START_TEST(a_named_file_that_is_missing_or_malformed_fails_the_context)
{
    clfd_context *context;

    setenv("CLFD_TUNING", path, 1);
    ck_assert_int_eq(create(&context), CLFD_ERROR_TUNING_FILE);
    ck_assert_ptr_null(context);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], path));
    test_folder_write(folder, "named.json", "{\"clfd_tuning\": 1,\n");
    ck_assert_int_eq(create(&context), CLFD_ERROR_TUNING_FILE);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], path));
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "is no JSON"));
    setenv("CLFD_TUNING", folder, 1);
    ck_assert_int_eq(create(&context), CLFD_ERROR_TUNING_FILE);
}
END_TEST

START_TEST(a_malformed_row_is_a_warning_and_the_next_one_counts)
{
    write_file("named.json", "{\"device\": 7}, ", GOOD_WORDS, 1234);
    setenv("CLFD_TUNING", path, 1);
    ck_assert_int_eq(planned(), 1234);
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 1);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_WARNING], path));
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_WARNING], "row 1 is skipped"));
}
END_TEST

START_TEST(the_users_own_file_never_fails_a_context)
{
    write_own("{nonsense");
    ck_assert_int_gt(planned(), 0);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 1);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_WARNING], "clfd/tuning.json is no tuning file"));
}
END_TEST

/* Past the checks of a plan, what the compiler refuses falls to the next row like any other. */
START_TEST(a_row_whose_kernel_cannot_be_built_falls_to_the_shipped_ones)
{
    char line[512], kernels[128];

    write_file("named.json", "", "family=decode_lanes min_split=%d", 1234);
    setenv("CLFD_TUNING", path, 1);
    snprintf(kernels, sizeof kernels, "%s/kernels", folder);
    snprintf(line, sizeof line, "mkdir %s && cp %s/* %s && echo '#error no lanes' > %s/decode_lanes.cl", kernels,
             TEST_KERNEL_DIR, kernels, kernels);
    ck_assert_int_eq(system(line), 0);
    ck_assert_int_eq(planned(), 1234);
    setenv("CLFD_KERNEL_DIR", kernels, 1);
    ck_assert_int_ne(planned(), 1234);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_WARNING], "trying the next"));
    unsetenv("CLFD_KERNEL_DIR");
    test_folder_remove(kernels);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_file_that_clfd_tuning_names_is_read,
        without_it_the_users_own_file_is_read_where_there_is_one,
        home_stands_in_for_a_config_folder_that_is_unset_or_relative,
        empty_and_none_mean_no_file,
        a_named_file_that_is_missing_or_malformed_fails_the_context,
        a_malformed_row_is_a_warning_and_the_next_one_counts,
        the_users_own_file_never_fails_a_context,
        a_row_whose_kernel_cannot_be_built_falls_to_the_shipped_ones,
    };
    return run_suite_around("tuning_files", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
}

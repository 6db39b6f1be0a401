#include "program/embedded.h"
#include "run/context.h"
#include "support/device.h"
#include "support/folder.h"
#include "support/suite.h"
#include <clfd/clfd.h>
#include <stdlib.h>
#include <string.h>

static cl_device_id device;
static cl_context cl;
static test_log heard;
static clfd_context_options options;

static void set_up(void)
{
    unsetenv("CLFD_DISABLE");
    unsetenv("CLFD_KERNEL_DIR");
    device = test_device();
    cl = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(cl);
    memset(&heard, 0, sizeof heard);
    options = (clfd_context_options){.struct_size = sizeof options, .logger = test_logger(&heard)};
}

static cl_uint references(void)
{
    cl_uint count = 0;

    ck_assert_int_eq(clGetContextInfo(cl, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL), CL_SUCCESS);
    return count;
}

/* Whatever a test did, nothing is left behind. */
static void tear_down(void)
{
    unsetenv("CLFD_DISABLE");
    unsetenv("CLFD_KERNEL_DIR");
    ck_assert_uint_eq(references(), 1);
    ck_assert_int_eq(clReleaseContext(cl), CL_SUCCESS);
}

static clfd_context *create(void)
{
    clfd_context *context = NULL;

    ck_assert_msg(clfd_context_create(cl, device, &options, &context) == CLFD_SUCCESS, "%s",
                  heard.last[CLFD_LOG_ERROR]);
    return context;
}

static void expect_sentence(const char *value, const char *rule)
{
    const char *const said = heard.last[CLFD_LOG_ERROR];

    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_msg(strstr(said, value) != NULL && strstr(said, rule) != NULL, "\"%s\" lacks \"%s\" or \"%s\"", said,
                  value, rule);
    heard.count[CLFD_LOG_ERROR] = 0;
}

static void expect_refused(cl_context given, cl_device_id asked, clfd_status expected, const char *value,
                           const char *rule)
{
    clfd_context *const mark = (clfd_context *)&heard;
    clfd_context *context = mark;

    ck_assert_int_eq(clfd_context_create(given, asked, &options, &context), expected);
    ck_assert_ptr_eq(context, mark);
    expect_sentence(value, rule);
    ck_assert_uint_eq(references(), 1);
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

START_TEST(a_context_retains_the_cl_context_until_its_last_reference)
{
    clfd_context *const context = create();

    ck_assert_uint_eq(references(), 2);
    clfd_context_retain(context);
    clfd_context_release(context);
    ck_assert_uint_eq(references(), 2);
    clfd_context_release(context);
    ck_assert_uint_eq(references(), 1);
}
END_TEST

START_TEST(options_may_be_absent_or_of_another_version)
{
    struct {
        clfd_context_options known;
        char unknown[8];
    } newer = {.known = options};
    clfd_context *context = NULL;

    ck_assert_int_eq(clfd_context_create(cl, device, NULL, &context), CLFD_SUCCESS);
    clfd_context_release(context);
    newer.known.struct_size = sizeof newer;
    ck_assert_int_eq(clfd_context_create(cl, device, &newer.known, &context), CLFD_SUCCESS);
    clfd_context_release(context);
    newer.unknown[3] = 1;
    context = NULL;
    ck_assert_int_eq(clfd_context_create(cl, device, &newer.known, &context), CLFD_ERROR_STRUCT_SIZE);
    ck_assert_ptr_null(context);
    expect_sentence("clfd_context_options.struct_size", "newer version");
}
END_TEST

START_TEST(nothing_is_done_to_no_context)
{
    clfd_device_info info;

    clfd_context_retain(NULL);
    clfd_context_release(NULL);
    ck_assert_int_eq(clfd_context_info(NULL, &info), CLFD_ERROR_NULL_ARGUMENT);
}
END_TEST

START_TEST(a_missing_argument_is_named)
{
    expect_refused(NULL, device, CLFD_ERROR_NULL_ARGUMENT, "context", "is NULL");
    expect_refused(cl, NULL, CLFD_ERROR_NULL_ARGUMENT, "device", "is NULL");
    ck_assert_int_eq(clfd_context_create(cl, device, &options, NULL), CLFD_ERROR_NULL_ARGUMENT);
    expect_sentence("created", "is NULL");
}
END_TEST

/* Any handle that is not among the context's devices: it is compared and never used. */
START_TEST(a_device_of_another_context_is_refused)
{
    expect_refused(cl, (cl_device_id)&heard, CLFD_ERROR_DEVICE_CONTEXT, "the device",
                   "none of the 1 of the cl_context");
}
END_TEST

/* ---- Environment ------------------------------------------------------------------------------------------------- */

START_TEST(disabled_upgrades_are_off_for_this_context_only)
{
    clfd_context *const whole = create();

    setenv("CLFD_DISABLE", "prefetch,ptx,subgroups,fp16", 1);
    clfd_context *const bare = create();
    setenv("CLFD_DISABLE", "", 1);
    clfd_context *const again = create();
    ck_assert(!bare->caps.prefetch && !bare->caps.ptx && !bare->caps.sub_groups && !bare->caps.shuffle);
    ck_assert(!bare->caps.fp16 && !bare->caps.matrix && !bare->caps.fused_merge);
    ck_assert(again->caps.prefetch == whole->caps.prefetch && again->caps.fp16 == whole->caps.fp16);
    ck_assert(again->caps.ptx == whole->caps.ptx && again->caps.sub_groups == whole->caps.sub_groups);
    clfd_context_release(whole);
    clfd_context_release(bare);
    clfd_context_release(again);
}
END_TEST

START_TEST(a_list_that_names_no_upgrade_is_refused)
{
    setenv("CLFD_DISABLE", "ptx,warp", 1);
    expect_refused(cl, device, CLFD_ERROR_DISABLE_LIST, "'warp'", "it takes, separated by commas");
}
END_TEST

static clfd_status create_plan(clfd_context *context, clfd_plan **plan)
{
    const clfd_attention attention = {
        .struct_size = sizeof attention, .num_q_heads = 1, .head_dim = 64, .max_kv_len = 64};

    return clfd_plan_create(context, &attention, plan);
}

START_TEST(a_kernel_folder_that_is_not_there_fails_the_plan)
{
    clfd_context *context;
    clfd_plan *plan = NULL;

    setenv("CLFD_KERNEL_DIR", "/nonexistent/kernels", 1);
    context = create();
    unsetenv("CLFD_KERNEL_DIR");
    ck_assert_int_eq(create_plan(context, &plan), CLFD_ERROR_KERNEL_SOURCE);
    ck_assert_ptr_null(plan);
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 0);
    expect_sentence(".cl\" cannot be read", "/nonexistent/kernels");
    clfd_context_release(context);
}
END_TEST

/* The folder is that of the moment of creation: not the environment's later one. */
START_TEST(a_copy_of_the_kernels_works_as_they_do)
{
    char folder[64];
    clfd_context *context;
    clfd_plan *plan = NULL;
    cl_command_queue queue = clCreateCommandQueue(cl, device, 0, NULL);

    test_folder_create(folder);
    for (const struct clfd_embedded *kernel = clfd_kernels; kernel->name != NULL; kernel++)
        test_folder_write(folder, kernel->name, kernel->text);
    setenv("CLFD_KERNEL_DIR", folder, 1);
    context = create();
    setenv("CLFD_KERNEL_DIR", "/nonexistent/kernels", 1);
    ck_assert_msg(create_plan(context, &plan) == CLFD_SUCCESS, "%s", heard.last[CLFD_LOG_ERROR]);
    ck_assert_int_eq(clfd_plan_warmup(plan, queue), CLFD_SUCCESS);
    clfd_plan_release(plan);
    clfd_context_release(context);
    test_folder_remove(folder);
    ck_assert_int_eq(clReleaseCommandQueue(queue), CL_SUCCESS);
}
END_TEST

/* ---- What it says of its device ---------------------------------------------------------------------------------------- */

START_TEST(a_context_tells_of_its_device_what_the_list_tells)
{
    clfd_device_info listed[32], info;
    clfd_context *const context = create();
    size_t count = 0, found = 0;

    ck_assert_int_eq(clfd_list_devices(listed, 32, &count, NULL), CLFD_SUCCESS);
    memset(&info, 0x5A, sizeof info);
    ck_assert_int_eq(clfd_context_info(context, &info), CLFD_SUCCESS);
    for (size_t i = 0; i < count && i < 32; i++) {
        if (listed[i].device != device)
            continue;
        found++;
        ck_assert_str_eq(info.spec, listed[i].spec);
        ck_assert_str_eq(info.name, listed[i].name);
        ck_assert_str_eq(info.family, listed[i].family);
        ck_assert_str_eq(info.unsupported, "");
        ck_assert_ptr_eq(info.platform, listed[i].platform);
        ck_assert_uint_eq(info.compute_units, listed[i].compute_units);
        ck_assert_uint_eq(info.max_alloc_bytes, listed[i].max_alloc_bytes);
    }
    ck_assert_uint_eq(found, 1);
    ck_assert_int_eq(clfd_context_info(context, NULL), CLFD_ERROR_NULL_ARGUMENT);
    expect_sentence("info", "is NULL");
    clfd_context_release(context);
}
END_TEST

START_TEST(a_context_tells_of_its_device_what_is_left_of_it)
{
    clfd_device_info info;
    clfd_context *context;

    setenv("CLFD_DISABLE", "fp16,subgroups", 1);
    context = create();
    ck_assert_int_eq(clfd_context_info(context, &info), CLFD_SUCCESS);
    ck_assert_uint_eq(info.fp16, 0);
    ck_assert_uint_eq(info.sub_groups, 0);
    ck_assert_uint_eq(info.sub_group_shuffle, 0);
    clfd_context_release(context);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_context_retains_the_cl_context_until_its_last_reference,
        options_may_be_absent_or_of_another_version,
        nothing_is_done_to_no_context,
        a_missing_argument_is_named,
        a_device_of_another_context_is_refused,
        disabled_upgrades_are_off_for_this_context_only,
        a_list_that_names_no_upgrade_is_refused,
        a_kernel_folder_that_is_not_there_fails_the_plan,
        a_copy_of_the_kernels_works_as_they_do,
        a_context_tells_of_its_device_what_the_list_tells,
        a_context_tells_of_its_device_what_is_left_of_it,
    };
    return run_suite_around("context", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
}

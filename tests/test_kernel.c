/* What a kernel must be to belong to a plan: built, of the right name, and within the device's limits. */
#include "plan/check.h"
#include "plan/describe.h"
#include "run/kernel.h"
#include "support/session.h"
#include "support/suite.h"
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static test_session *session;
static char options[768];
static clfd_tuning row;

/* The options of the row that `tuning` asks for, for one small attention. */
static void choose(const char *tuning)
{
    const clfd_attention given = {
        .struct_size = sizeof given, .num_q_heads = 2, .head_dim = 64, .max_kv_len = 64, .tuning = tuning};
    const clfd_caps *const caps = &session->context->caps;
    clfd_attention complete;
    clfd_tuning rows[CLFD_MAX_CANDIDATES];
    clfd_schedule schedule;
    size_t count;

    ck_assert_int_eq(clfd_complete_attention(&given, &complete, NULL), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_tuning_candidates(caps, &complete, rows, &count, NULL), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_schedule_make(caps, &complete, &rows[0], &schedule, NULL), CLFD_SUCCESS);
    ck_assert_int_lt(clfd_decode_options(caps, &complete, &rows[0], &schedule, false, options, sizeof options),
                     (int)sizeof options);
    row = rows[0];
}

static void set_up(void)
{
    session = test_session_get();
    memset(&session->heard, 0, sizeof session->heard);
    choose("family=decode_lanes exchange=local wg=32 lanes=8");
}

static clfd_status create(const char *name, size_t work_group, uint32_t sub_group, clfd_log_level level,
                          clfd_kernel *kernel)
{
    memset(kernel, 0, sizeof *kernel);
    return clfd_kernel_create(session->context, "decode_lanes", name, options, work_group, sub_group, level, kernel);
}

static void expect_refused(clfd_status actual, clfd_status expected, clfd_log_level level, const char *sentence,
                           const clfd_kernel *kernel)
{
    ck_assert_int_eq(actual, expected);
    ck_assert_ptr_null(kernel->handle);
    for (clfd_log_level l = CLFD_LOG_ERROR; l <= CLFD_LOG_WARNING; l++)
        ck_assert_int_eq(session->heard.count[l], l == level);
    ck_assert_msg(strstr(session->heard.last[level], sentence) != NULL, "\"%s\" lacks \"%s\"",
                  session->heard.last[level], sentence);
    memset(session->heard.count, 0, sizeof session->heard.count);
}

START_TEST(a_kernel_within_the_limits_is_created)
{
    clfd_kernel kernel;

    ck_assert_int_eq(create("decode_lanes", row.work_group, 0, CLFD_LOG_ERROR, &kernel), CLFD_SUCCESS);
    ck_assert_ptr_nonnull(kernel.handle);
    ck_assert_uint_eq(kernel.work_group, 32);
    clfd_kernel_destroy(&kernel);
    ck_assert_ptr_null(kernel.handle);
    clfd_kernel_destroy(&kernel); /* once more does nothing */
}
END_TEST

START_TEST(a_work_group_that_it_is_not_compiled_for_is_refused_at_the_level_asked_for)
{
    clfd_kernel kernel;

    expect_refused(create("decode_lanes", 64, 0, CLFD_LOG_WARNING, &kernel), CLFD_ERROR_NO_KERNEL, CLFD_LOG_WARNING,
                   "compiled for is 32, 64 needed", &kernel);
    expect_refused(create("decode_lanes", 64, 0, CLFD_LOG_ERROR, &kernel), CLFD_ERROR_NO_KERNEL, CLFD_LOG_ERROR,
                   "compiled for is 32, 64 needed", &kernel);
}
END_TEST

/* The device's limits are made smaller than what the driver compiled. */
START_TEST(a_kernel_of_too_much_local_memory_is_refused)
{
    clfd_caps *const caps = &session->context->caps;
    const uint64_t local_mem_bytes = caps->local_mem_bytes;
    clfd_kernel kernel;

    caps->local_mem_bytes = 100;
    expect_refused(create("decode_lanes", row.work_group, 0, CLFD_LOG_WARNING, &kernel), CLFD_ERROR_NO_KERNEL,
                   CLFD_LOG_WARNING, "local memory is 100, ", &kernel);
    caps->local_mem_bytes = local_mem_bytes;
}
END_TEST

/* What the tuning layer counts is what the compiler needs, or the row would be refused only after a build. */
START_TEST(local_memory_that_the_tuning_row_counts_is_enough)
{
    static const char *const tunings[] = {
        "family=decode_lanes exchange=local wg=32 lanes=8",
        "family=decode_lanes exchange=local wg=128 lanes=16 parts=2",
        "family=decode_lanes exchange=local wg=64 lanes=8 unroll=4",
    };
    clfd_caps *const caps = &session->context->caps;
    const uint64_t local_mem_bytes = caps->local_mem_bytes;

    for (size_t i = 0; i < COUNT(tunings); i++) {
        const clfd_attention given = {
            .struct_size = sizeof given, .num_q_heads = 2, .head_dim = 64, .max_kv_len = 64, .tuning = tunings[i]};
        clfd_attention complete;
        clfd_tuning rows[CLFD_MAX_CANDIDATES];
        clfd_kernel kernel;
        uint64_t least = 0;
        size_t count;

        choose(tunings[i]);
        ck_assert_int_eq(clfd_complete_attention(&given, &complete, NULL), CLFD_SUCCESS);
        for (uint64_t step = 1 << 20; step > 0; step /= 2) { /* the largest local memory that it refuses */
            caps->local_mem_bytes = least + step;
            if (clfd_tuning_candidates(caps, &complete, rows, &count, NULL) != CLFD_SUCCESS)
                least += step;
        }
        caps->local_mem_bytes = least + 1;
        ck_assert_msg(create("decode_lanes", row.work_group, 0, CLFD_LOG_WARNING, &kernel) == CLFD_SUCCESS, "%s: %s",
                      tunings[i], session->heard.last[CLFD_LOG_WARNING]);
        clfd_kernel_destroy(&kernel);
        caps->local_mem_bytes = local_mem_bytes;
    }
}
END_TEST

/* A sub-group of 2^20 work-items is on no device, and one without sub-groups must not even be asked. */
START_TEST(a_sub_group_that_the_device_does_not_have_is_refused)
{
    clfd_kernel kernel;

    expect_refused(create("decode_lanes", row.work_group, 1 << 20, CLFD_LOG_WARNING, &kernel), CLFD_ERROR_NO_KERNEL,
                   CLFD_LOG_WARNING, "1048576 needed", &kernel);
}
END_TEST

START_TEST(a_name_that_the_program_lacks_is_an_opencl_status)
{
    clfd_kernel kernel;

    expect_refused(create("decode_nothing", row.work_group, 0, CLFD_LOG_ERROR, &kernel), CL_INVALID_KERNEL_NAME,
                   CLFD_LOG_ERROR, "clCreateKernel failed: CL_INVALID_KERNEL_NAME", &kernel);
}
END_TEST

/* The largest work-group that the device takes, or a smaller one, is found from one above it. */
START_TEST(a_merge_takes_a_smaller_work_group_where_the_device_refuses)
{
    clfd_kernel kernel = {0};
    uint32_t limit = 1;

    while (limit * 2 <= session->context->caps.max_work_group)
        limit *= 2;
    ck_assert_int_eq(
        clfd_kernel_create_merge(session->context, "merge", CLFD_PARTIAL_LSE, 64, CLFD_TYPE_F32, limit * 2, &kernel),
        CLFD_SUCCESS);
    ck_assert_uint_le(kernel.work_group, limit);
    ck_assert_int_ge(session->heard.count[CLFD_LOG_WARNING], 1);
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 0);
    clfd_kernel_destroy(&kernel);
}
END_TEST

/* The launch tells which call OpenCL refused. */
START_TEST(a_failed_launch_names_its_call)
{
    const clfd_argument wrong = {.bytes = 1, .value = options};
    clfd_kernel kernel;

    ck_assert_int_eq(create("decode_lanes", row.work_group, 0, CLFD_LOG_ERROR, &kernel), CLFD_SUCCESS);
    ck_assert_int_eq(
        clfd_kernel_launch(&kernel, session->queue, &wrong, 1, 1, 0, NULL, NULL, &session->context->logger),
        CL_INVALID_ARG_SIZE);
    ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_ERROR], "clSetKernelArg failed: CL_INVALID_ARG_SIZE"));
    ck_assert_int_eq(clfd_kernel_launch(&kernel, session->queue, NULL, 0, 1, 0, NULL, NULL, &session->context->logger),
                     CL_INVALID_KERNEL_ARGS);
    ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_ERROR], "clEnqueueNDRangeKernel failed"));
    clfd_kernel_destroy(&kernel);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_kernel_within_the_limits_is_created,
        a_work_group_that_it_is_not_compiled_for_is_refused_at_the_level_asked_for,
        a_kernel_of_too_much_local_memory_is_refused,
        local_memory_that_the_tuning_row_counts_is_enough,
        a_sub_group_that_the_device_does_not_have_is_refused,
        a_name_that_the_program_lacks_is_an_opencl_status,
        a_merge_takes_a_smaller_work_group_where_the_device_refuses,
        a_failed_launch_names_its_call,
    };
    const int failed = run_suite_around("kernel", tests, COUNT(tests), set_up, NULL);

    test_session_close();
    return failed;
}

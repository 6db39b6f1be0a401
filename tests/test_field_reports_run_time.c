/* FIELD_REPORTS.md, "OpenCL run time": the report stands beside the test. */
#include "plan/describe.h"
#include "run/context.h"
#include "run/plan.h"
#include "support/field_report.h"
#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cl_uint num_arguments(const clfd_kernel *kernel)
{
    cl_uint count = 0;

    ck_assert_int_eq(clGetKernelInfo(kernel->handle, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL), CL_SUCCESS);
    return count;
}

/* Of a decode kernel without options. */
#define PLAIN_ARGUMENTS 9u

/* 30 [MNN#4653]: every variant runs, all with the arguments of a call without options; a failure of OpenCL comes back
 * as it is. */
START_TEST(arguments_of_a_variant_were_missing)
{
    const cl_event no_event = NULL;

    for (int variant = 0; variant < 16; variant++) {
        attention_problem p = report_problem(2, 1, 64, F16, 40);
        static const int32_t length = 33;
        p.no_lse = (variant & 1) != 0;
        p.kv_lens = (variant & 2) != 0 ? &length : NULL;
        p.attention.v_from_k = (variant & 4) != 0;
        report_split(&p, CLFD_SPLIT_TOKENS, (variant & 8) != 0 ? 10 : 40);
        attention_call *const call = attention_open(&p);
        ck_assert_uint_eq(num_arguments(&call->plan->decode), PLAIN_ARGUMENTS);
        if (call->plan->merge.handle != NULL)
            ck_assert_uint_eq(num_arguments(&call->plan->merge), 10);
        attention_run(call);
        attention_expect_reference(call);
        ck_assert_int_lt(clfd_enqueue_decode(call->plan, test_session_get()->queue, &call->buffers, 1, &no_event, NULL),
                         0);
        attention_close(call);
    }
}
END_TEST

/* The same of every option: each has the arguments that it reads, and they are what the kernel has. */
START_TEST(arguments_of_an_option_were_missing)
{
    static const struct {
        clfd_attention set;
        cl_uint more;
    } options[] = {
        {{.alibi = 1}, 1},
        {{.bias_type = F32}, 1},
        {{.mask = CLFD_MASK_TREE}, 1},
        {{.sinks = 1, .kv_start = 1}, 2},
        {{.query_positions = 1, .window = 20}, 1},
        {{.cache_batch_idx = 1}, 1},
        {{.paging = CLFD_PAGING_TABLE, .page_size = 16}, 1},
        {{.paging = CLFD_PAGING_CSR, .page_size = 16}, 2},
        {{.k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_INT4}, 2},
        {{.k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_INT4, .k_quant.zeros = 1, .v_quant.zeros = 1}, 4},
        {{.k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_INT8, .v_from_k = 1, .k_quant.zeros = 1}, 2},
        {{.k_type = CLFD_TYPE_FP8_E4M3, .v_type = CLFD_TYPE_FP8_E5M2}, 2},
        {{.shared_kv = 1}, 0},
    };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        attention_problem p = report_problem(2, 1, 64, F16, 40);
        set_options(&p.attention, &options[i].set);
        report_split(&p, CLFD_SPLIT_TOKENS, 10);
        attention_call *const call = attention_open(&p);
        ck_assert_uint_eq(num_arguments(&call->plan->decode), PLAIN_ARGUMENTS + options[i].more);
        ck_assert_uint_eq(num_arguments(&call->plan->merge), 10);
        attention_run(call);
        attention_expect_reference(call);
        attention_close(call);
    }
}
END_TEST

/* Runs a problem in a context of its own whose device claims to be a GPU with these limits. */
static void verify_under_limits(const attention_problem *problem, uint32_t work_group, uint64_t local_bytes)
{
    test_session *const session = test_session_get();
    clfd_context *const unlimited = session->context;

    ck_assert_int_eq(clfd_context_create(session->cl, session->device, NULL, &session->context), CLFD_SUCCESS);
    session->context->caps.type = CL_DEVICE_TYPE_GPU;
    session->context->caps.max_work_group = work_group;
    session->context->caps.local_mem_bytes = local_bytes;
    attention_verify(problem);
    clfd_context_release(session->context);
    session->context = unlimited;
}

/* 31 [llama.cpp#25870] */
START_TEST(accepted_plan_could_not_be_enqueued)
{
    static const uint32_t limits[] = {1, 32, 64};
    static const int32_t length = 99;
    attention_problem p = report_problem(1, 1, 64, F16, 100);

    p.kv_lens = &length;
    report_split(&p, CLFD_SPLIT_TOKENS, 30);
    for (size_t i = 0; i < 3; i++)
        verify_under_limits(&p, limits[i], 64 << 10);
    verify_under_limits(&p, 256, 16 << 10);
    verify_under_limits(&p, 32, 1 << 10);
    /* With options, and with the balanced schedule, whose kernel needs more local memory. */
    set_options(
        &p.attention,
        &(clfd_attention){
            .max_batch = 2, .k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_Q8_0, .mask = CLFD_MASK_BOOL, .sinks = 1});
    p.kv_lens = (const int32_t[]){99, 7};
    report_split(&p, CLFD_SPLIT_AUTO, 0);
    for (size_t i = 0; i < 3; i++)
        verify_under_limits(&p, limits[i], 64 << 10);
    verify_under_limits(&p, 256, 16 << 10);
    verify_under_limits(&p, 32, 1 << 10);
}
END_TEST

/* Opens a context under this CLFD_DISABLE, besides what the environment disables already, and runs the problems there. */
static void verify_disabled(const char *list, const attention_problem *problems, size_t count)
{
    test_session *const session = test_session_get();
    clfd_context *const whole = session->context;
    const char *const given = getenv("CLFD_DISABLE");
    char kept[128] = "", both[256];

    if (given != NULL)
        snprintf(kept, sizeof kept, "%s", given);
    snprintf(both, sizeof both, "%s%s%s", kept, kept[0] != '\0' ? "," : "", list);
    ck_assert_int_eq(setenv("CLFD_DISABLE", both, 1), 0);
    ck_assert_int_eq(clfd_context_create(session->cl, session->device, NULL, &session->context), CLFD_SUCCESS);
    for (size_t i = 0; i < count; i++)
        attention_verify(&problems[i]);
    clfd_context_release(session->context);
    session->context = whole;
    ck_assert_int_eq(given != NULL ? setenv("CLFD_DISABLE", kept, 1) : unsetenv("CLFD_DISABLE"), 0);
}

/* 32 [llama.cpp#22762, #22006]: each upgrade off by itself, and all of them. CLFD_DISABLE does the same to the whole suite. */
START_TEST(device_without_an_upgrade_was_wrong)
{
    static const char *const lists[] = {"fp16",
                                        "subgroups",
                                        "shuffle",
                                        "ptx",
                                        "matrix",
                                        "fused_merge",
                                        "cache_hints",
                                        "prefetch",
                                        "fp16,subgroups,matrix",
                                        "subgroups,shuffle,ptx,matrix,fused_merge,cache_hints,prefetch,fp16"};
    static const int32_t lens[] = {0, 40, 1, 100};
    attention_problem problems[3];

    for (size_t i = 0; i < 3; i++) {
        problems[i] = report_problem(8, 2, 64, F16, 100);
        problems[i].attention.max_batch = 4;
        problems[i].kv_lens = lens;
        report_split(&problems[i], CLFD_SPLIT_TOKENS, 30);
    }
    set_options(&problems[1].attention, &(clfd_attention){.mask = CLFD_MASK_BOOL, .bias_type = F16, .sinks = 1});
    set_options(&problems[2].attention, &(clfd_attention){.k_type = CLFD_TYPE_FP8_E4M3,
                                                          .v_type = CLFD_TYPE_INT4,
                                                          .paging = CLFD_PAGING_TABLE,
                                                          .page_size = 16});
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        verify_disabled(lists[i], problems, 3);
}
END_TEST

/* 33 [gpuowl#81] */
START_TEST(barrier_was_assumed_away)
{
    static const char *const tunings[] = {"family=decode_lanes exchange=local wg=32 lanes=8 parts=1",
                                          "family=decode_lanes exchange=local wg=64 lanes=8 parts=1"};

    for (size_t i = 0; i < 2; i++) {
        attention_problem p = report_problem(2, 2, 64, F16, 150);
        p.attention.tuning = tunings[i];
        report_split(&p, CLFD_SPLIT_TOKENS, 50);
        attention_call *const call = attention_open(&p);
        float out[2 * 64];
        attention_run(call);
        attention_expect_reference(call);
        for (int turn = 0; turn < 1000; turn++) {
            ck_assert_int_eq(clfd_enqueue_decode(call->plan, test_session_get()->queue, &call->buffers, 0, NULL, NULL),
                             CLFD_SUCCESS);
            test_buffer_read(call->buffers.out.mem, call->buffers.out.offset, out, sizeof out);
            EXPECT(memcmp(out, call->out, sizeof out) == 0, "turn %d gave other bits", turn);
        }
        attention_close(call);
    }
}
END_TEST

/* 34 [OpenCL.jl#460] */
START_TEST(work_items_without_a_key_missed_a_barrier)
{
    for (int32_t n = 0; n <= 9; n++) {
        attention_problem p = report_problem(2, 2, 64, F16, 10);
        p.kv_lens = &n;
        p.attention.tuning = "family=decode_lanes exchange=local wg=64 lanes=8 parts=1";
        attention_verify(&p);
    }
}
END_TEST

/* 35 [darktable#2122]: the programs above are the shipped ones; no option among theirs takes infinities away. */
START_TEST(build_options_took_infinities_away)
{
    static const char *const forbidden[] = {"fast", "finite", "unsafe", "-cl-no-signed-zeros", "denorms"};
    const attention_problem p = report_problem(2, 2, 64, F16, 16);
    attention_call *const call = attention_open(&p);
    char options[1024] = "";

    clfd_decode_options(&test_session_get()->context->caps, &call->plan->attention, &call->plan->tuning,
                        &call->plan->schedule, false, options, sizeof options);
    ck_assert_ptr_nonnull(strstr(options, "-DHEAD_DIM=64"));
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
        ck_assert_ptr_null(strstr(options, forbidden[i]));
    attention_close(call);
}
END_TEST

/* 37 [CLBlast#47, nntrainer#4227]: what becomes of references is the matter of test_leaks. */
START_TEST(programs_of_one_context_served_another)
{
    test_session *const session = test_session_get();
    clfd_context *const first = session->context;
    clfd_context *contexts[2];

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(clfd_context_create(session->cl, session->device, NULL, &contexts[i]), CLFD_SUCCESS);
    for (int turn = 0; turn < 8; turn++) {
        const attention_problem p = report_problem(2, 2, turn / 2 % 2 == 0 ? 64 : 128, F16, 50);
        session->context = contexts[turn % 2];
        attention_verify(&p);
    }
    clfd_context_release(contexts[0]);
    clfd_context_release(contexts[1]);
    session->context = first;
}
END_TEST

/* 39 [aparapi#135]: without a platform: test_no_platform. */
START_TEST(empty_batch_never_completed)
{
    test_session *const session = test_session_get();
    const attention_problem p = report_problem(2, 2, 64, F16, 16);
    attention_call *const call = attention_open(&p);
    cl_event event = NULL;

    attention_upload(call);
    call->buffers.batch = 0;
    ck_assert_int_eq(clfd_enqueue_decode(call->plan, session->queue, &call->buffers, 0, NULL, &event), CLFD_SUCCESS);
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(clWaitForEvents(1, &event), CL_SUCCESS);
    clReleaseEvent(event);
    attention_read(call); /* out still holds what it held */
    for (size_t i = 0; i < call->num_rows; i++)
        ck_assert(isnan(call->out[i * 64]) && isnan(call->lse[i]));
    attention_close(call);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        arguments_of_a_variant_were_missing,
        arguments_of_an_option_were_missing,
        accepted_plan_could_not_be_enqueued,
        device_without_an_upgrade_was_wrong,
        barrier_was_assumed_away,
        work_items_without_a_key_missed_a_barrier,
        build_options_took_infinities_away,
        programs_of_one_context_served_another,
        empty_batch_never_completed,
    };
    const int result = run_suite("field_reports_run_time", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

/* FIELD_REPORTS.md, "Empty sets, LSE, merge": the report stands beside the test. */
#include "run/context.h"
#include "support/compare.h"
#include "support/field_report.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

enum { STATE_DIM = 64 };

/* (o1, s1) (+) (o2, s2) on the device; the o of a state holds one value throughout. Returns S of the result. */
static float merge_pair(float o1, float s1, float o2, float s2, float out[STATE_DIM])
{
    test_session *const session = test_session_get();
    const clfd_merge merge = {.struct_size = sizeof merge, .max_rows = 1, .head_dim_v = STATE_DIM};
    const float stats[3] = {s1, s2, 0.0f};
    float o[3 * STATE_DIM] = {0.0f}, lse;
    clfd_state_buffers states[3];
    clfd_merge_plan *plan;
    cl_mem mem[2];

    for (int d = 0; d < STATE_DIM; d++) {
        o[d] = o1;
        o[STATE_DIM + d] = o2;
    }
    mem[0] = test_buffer_create_from(CL_MEM_READ_WRITE, o, sizeof o);
    mem[1] = test_buffer_create_from(CL_MEM_READ_WRITE, stats, sizeof stats);
    for (size_t i = 0; i < 3; i++)
        states[i] = (clfd_state_buffers){.o = test_buffer(mem[0], i * STATE_DIM * sizeof(float)),
                                         .lse = test_buffer(mem[1], i * sizeof(float))};
    ck_assert_int_eq(clfd_merge_plan_create(session->context, &merge, &plan), CLFD_SUCCESS);
    ck_assert_int_eq(
        clfd_enqueue_merge_pair(plan, session->queue, 1, &states[0], &states[1], &states[2], 0, NULL, NULL),
        CLFD_SUCCESS);
    test_buffer_read(mem[0], states[2].o.offset, out, STATE_DIM * sizeof(float));
    test_buffer_read(mem[1], states[2].lse.offset, &lse, sizeof lse);
    clfd_merge_plan_release(plan);
    clReleaseMemObject(mem[0]);
    clReleaseMemObject(mem[1]);
    return lse;
}

/* 1 [flashinfer#4051] */
START_TEST(merge_of_two_empty_states_was_nan)
{
    float out[STATE_DIM];

    ck_assert(merge_pair(0.0f, -INFINITY, 0.0f, -INFINITY, out) == -INFINITY);
    ck_assert_int_eq(memcmp(out, report_nothing, sizeof out), 0);
    ck_assert(merge_pair(NAN, -INFINITY, 3.0f, 5.0f, out) == 5.0f && out[63] == 3.0f);
    ck_assert(merge_pair(3.0f, 5.0f, NAN, -INFINITY, out) == 5.0f && out[63] == 3.0f);
}
END_TEST

/* 2 [flash-attention#978]: and what a merge makes of an LSE that is none. */
START_TEST(lse_of_no_keys_was_plus_infinity)
{
    static const int32_t lens[] = {0};
    attention_problem p = report_problem(2, 2, 64, F16, 16);
    float out[STATE_DIM];

    p.kv_lens = lens;
    attention_call *const call = attention_open(&p);
    attention_run(call);
    report_expect_empty(call, 0, 0, 0);
    report_expect_empty(call, 0, 0, 1);
    attention_close(call);
    ck_assert(isnan(merge_pair(1.0f, INFINITY, 2.0f, 0.0f, out)) && isnan(out[0]));
    ck_assert(isnan(merge_pair(1.0f, 0.0f, 2.0f, NAN, out)) && isnan(out[0]));
}
END_TEST

/* 3 [flashinfer#363]: out is filled with 0xFF before the call. */
START_TEST(row_without_keys_was_not_written)
{
    static const int32_t lens[] = {5, 0, 5};
    attention_problem p = report_problem(2, 2, 64, F16, 16);

    p.attention.max_batch = 3;
    p.kv_lens = lens;
    attention_call *const call = attention_open(&p);
    attention_run(call);
    report_expect_empty(call, 1, 0, 0);
    attention_expect_reference(call);
    attention_close(call);
}
END_TEST

/* 4 [flashinfer#4267, #4450] */
START_TEST(finite_sentinel_outranked_real_scores)
{
    static const float levels[] = {-1e4f, -45000.0f, -54000.0f, -55000.0f, -56000.0f, -65504.0f, -1e5f, -1e6f};

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        attention_problem p = report_problem(16, 1, 128, F32, 64);
        p.attention.scale = 1.0f;
        report_split(&p, CLFD_SPLIT_TOKENS, 16);
        attention_call *const call = attention_open(&p);
        for (uint32_t h = 0; h < 16; h++) {
            image_put_row(&call->images[ATTENTION_Q], 0, 0, h, 0.0f);
            image_put(&call->images[ATTENTION_Q], 0, 0, h, 0, 1.0f);
        }
        for (uint32_t j = 0; j < 64; j++)
            image_put(&call->images[ATTENTION_K], 0, j, 0, 0, j == 0 ? levels[i] + 5000.0f : levels[i]);
        attention_run(call);
        for (uint32_t h = 0; h < 16; h++)
            for (uint32_t d = 0; d < 128; d++) {
                const float v = image_get(&call->images[ATTENTION_V], 0, 0, 0, d),
                            out = attention_out(call, 0, 0, h)[d];
                EXPECT(compare_value(out, v, TOLERANCE_STATE), "scores of %g: %.9g instead of %.9g", levels[i], out, v);
            }
        attention_close(call);
    }
}
END_TEST

/* 5 [flashinfer#4452] */
START_TEST(queries_before_the_first_key_were_nan)
{
    static const int32_t lens[] = {2};
    attention_problem p = report_problem(2, 1, 64, F16, 16);

    p.attention.q_len = 4;
    p.attention.causal = 1;
    p.kv_lens = lens;
    attention_call *const call = attention_open(&p);
    attention_run(call);
    for (uint32_t h = 0; h < 2; h++) {
        report_expect_empty(call, 0, 0, h);
        report_expect_empty(call, 0, 1, h);
    }
    attention_expect_reference(call);
    attention_close(call);
}
END_TEST

/* 6 [sglang#33064]: a mistake of base 2 gives 0.723. */
START_TEST(lse_was_in_units_of_log2)
{
    attention_problem p = report_problem(2, 2, 64, F16, 33);
    float out[STATE_DIM];

    ASSERT_VALUE(merge_pair(0.0f, 0.693147181f, 1.0f, 2.07944154f, out), log(10.0), TOLERANCE_STATE);
    ASSERT_VALUE(out[0], 0.8, TOLERANCE_STATE);
    attention_verify(&p); /* which compares lse with the reference's logsumexp */
}
END_TEST

/* 7 [pegainfer#21] */
START_TEST(splits_without_keys_entered_the_result)
{
    /* Tiles of matrix units have 64 tokens. */
    const char *const tuning =
        test_session_get()->context->caps.matrix ? "family=decode_lanes split_tile=1" : "split_tile=1";

    for (int32_t n = 1; n <= 8; n++) {
        attention_problem p = report_problem(2, 2, 64, F16, 8);
        p.kv_lens = &n;
        p.attention.tuning = tuning;
        report_split(&p, CLFD_SPLIT_COUNT, 4);
        attention_verify(&p);
        report_split(&p, CLFD_SPLIT_TOKENS, 2);
        attention_verify(&p);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        merge_of_two_empty_states_was_nan,      lse_of_no_keys_was_plus_infinity,      row_without_keys_was_not_written,
        finite_sentinel_outranked_real_scores,  queries_before_the_first_key_were_nan, lse_was_in_units_of_log2,
        splits_without_keys_entered_the_result,
    };
    const int result = run_suite("field_reports_empty", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

/* FIELD_REPORTS.md, "Splits, precision, determinism": the report stands beside the test. */
#include "support/field_report.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

/* 8 [flash-attention#777]: ceil gives 6 blocks each, and the last split starts past the end. */
START_TEST(last_split_began_past_the_end)
{
    enum { TILES = 64, TILE = 64 };
    static const uint32_t splits[] = {12, 0, 1, TILES + 1, 10000};

    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        attention_problem p = report_problem(1, 1, 8, F16, TILES * TILE);
        report_split(&p, CLFD_SPLIT_COUNT, splits[i]);
        attention_verify(&p);
    }
}
END_TEST

/* 9 [flash-attention#1417] */
START_TEST(capacity_of_the_cache_changed_bits)
{
    static const uint32_t capacities[] = {40960, 65536, 131072, 262144};
    static const int32_t length = 40960;

    for (clfd_split_policy policy = CLFD_SPLIT_COUNT; policy <= CLFD_SPLIT_TOKENS; policy++) {
        attention_call *calls[4];
        for (size_t i = 0; i < 4; i++) {
            attention_problem p = report_problem(1, 1, 8, F16, capacities[i]);
            p.kv_lens = &length; /* the same keys are drawn each time, behind them lies NaN */
            report_split(&p, policy, policy == CLFD_SPLIT_COUNT ? 33 : 1000);
            calls[i] = attention_open(&p);
            attention_run(calls[i]);
            ck_assert(attention_same_bits(calls[i], calls[0]));
        }
        attention_expect_reference(calls[3]);
        for (size_t i = 0; i < 4; i++)
            attention_close(calls[i]);
    }
}
END_TEST

/* 10 [FlashMLA#212, flash-attention#1897] */
START_TEST(batch_changed_a_rows_bits)
{
    static const uint32_t batches[] = {1, 2, 7, 64};
    int32_t lens[64];
    attention_call *alone = NULL;

    for (int32_t b = 0; b < 64; b++)
        lens[b] = b == 0 ? 77 : b * 29 % 100;
    for (size_t i = 0; i < 4; i++) {
        attention_problem p = report_problem(4, 2, 64, F16, 100);
        p.attention.max_batch = batches[i];
        p.kv_lens = lens;
        report_split(&p, CLFD_SPLIT_TOKENS, 16);
        attention_call *const call = attention_open(&p);
        if (i == 0)
            alone = call;
        for (int tensor = ATTENTION_Q; tensor <= ATTENTION_V; tensor++)
            memcpy(call->images[tensor].data, alone->images[tensor].data, alone->images[tensor].bytes);
        attention_run(call);
        ck_assert_int_eq(memcmp(call->out, alone->out, 4 * 64 * sizeof(float)), 0);
        ck_assert_int_eq(memcmp(call->lse, alone->lse, 4 * sizeof(float)), 0);
        attention_expect_reference(call);
        if (i != 0)
            attention_close(call);
    }
    attention_close(alone);
}
END_TEST

static double greatest_error(const attention_call *call)
{
    double greatest = 0.0;

    for (size_t i = 0; i < call->num_rows * call->complete.head_dim_v; i++)
        greatest = fmax(greatest, fabs((double)call->out[i] - call->expected_out[i]));
    return greatest;
}

/* 11 [flashinfer#5107]: partial states were rounded to bf16. */
START_TEST(splits_lost_precision_in_bf16)
{
    double errors[2];

    for (int i = 0; i < 2; i++) {
        attention_problem p = report_problem(2, 2, 64, BF16, 8192);
        p.attention.out_type = BF16;
        report_split(&p, CLFD_SPLIT_COUNT, i == 0 ? 1 : 16);
        attention_call *const call = attention_open(&p);
        attention_run(call);
        attention_expect_reference(call);
        errors[i] = greatest_error(call);
        attention_close(call);
    }
    ck_assert_msg(errors[1] <= errors[0] + 1e-6, "an error of %g with 16 splits and of %g with one", errors[1],
                  errors[0]);
}
END_TEST

/* 12 [vllm#50781]: the fixture gives the workspace its exact size, with guards on both sides. */
START_TEST(workspace_was_written_past_its_size)
{
    for (int variant = 0; variant < 4; variant++) {
        attention_problem p = report_problem(32, 2, 64, F16, 300);
        p.attention.partial = variant / 2 == 0 ? CLFD_PARTIAL_LSE : CLFD_PARTIAL_MLO;
        p.no_lse = variant % 2 == 1;
        report_split(&p, CLFD_SPLIT_TOKENS, 32);
        attention_verify(&p);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        last_split_began_past_the_end, capacity_of_the_cache_changed_bits,  batch_changed_a_rows_bits,
        splits_lost_precision_in_bf16, workspace_was_written_past_its_size,
    };
    const int result = run_suite("field_reports_splits", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

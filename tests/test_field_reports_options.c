/* FIELD_REPORTS.md, "Options": the report stands beside the test. */
#include "support/compare.h"
#include "support/field_report.h"
#include "support/suite.h"
#include <math.h>

/* 26 [transformers#39408]: q = 0 and V[i] = i; the window ends with the last key. */
START_TEST(window_was_off_by_one)
{
    attention_problem p = report_problem(2, 2, 64, F16, 10);

    p.attention.window = 4;
    attention_call *const call = attention_open(&p);
    for (uint32_t h = 0; h < 2; h++) {
        image_put_row(&call->images[ATTENTION_Q], 0, 0, h, 0.0f);
        for (uint32_t j = 0; j < 10; j++)
            image_put_row(&call->images[ATTENTION_V], 0, j, h, (float)j);
    }
    attention_run(call);
    for (size_t d = 0; d < 2 * 64; d++)
        ck_assert(fabsf(call->out[d] - 7.5f) < 1e-6f);
    ASSERT_VALUE(call->lse[1], log(4.0), TOLERANCE_LSE);
    attention_close(call);
}
END_TEST

/* 27 [llama.cpp#23800] */
START_TEST(causal_was_inferred)
{
    attention_call *calls[2];

    for (uint32_t causal = 0; causal < 2; causal++) {
        attention_problem p = report_problem(2, 2, 64, F16, 4);
        p.attention.q_len = 4;
        p.attention.causal = causal;
        calls[causal] = attention_open(&p);
        attention_run(calls[causal]);
        attention_expect_reference(calls[causal]);
    }
    /* The last query sees all keys either way, the first one does not. */
    ck_assert(fabsf(attention_out(calls[0], 0, 0, 0)[0] - attention_out(calls[1], 0, 0, 0)[0]) > 1e-3f);
    ck_assert(fabsf(attention_out(calls[0], 0, 3, 0)[0] - attention_out(calls[1], 0, 3, 0)[0]) < 1e-6f);
    attention_close(calls[0]);
    attention_close(calls[1]);
}
END_TEST

enum { CAPPED_KEYS = 30 };

/* The log-sum-exp of the first `count` keys of a head, whose scores are 8 q, as the formula has it. */
static double capped_lse(double softcap, uint32_t count)
{
    double sum = 0.0;

    for (uint32_t j = 0; j < count; j++) {
        const double score = 0.5 * ((double)j - 15.0);
        sum += exp(softcap > 0.0 ? softcap * tanh(score / softcap) : score);
    }
    return log(sum);
}

/* 28 [sgl-kernel-xpu#491]: on natural scores, before the mask, which hides the greater half of them from query 0. */
START_TEST(softcap_was_taken_of_other_units_or_after_masks)
{
    static const float softcaps[] = {0.0f, 5.0f, 50.0f};

    for (size_t i = 0; i < 3; i++) {
        attention_problem p = report_problem(2, 1, 64, F32, CAPPED_KEYS);
        p.attention.q_len = 2;
        p.attention.scale = 0.125f;
        p.attention.softcap = softcaps[i];
        p.attention.mask = CLFD_MASK_BOOL;
        report_split(&p, CLFD_SPLIT_TOKENS, 8);
        attention_call *const call = attention_open(&p);
        for (uint32_t row = 0; row < 4; row++) {
            image_put_row(&call->images[ATTENTION_Q], 0, row / 2, row % 2, 0.0f);
            image_put(&call->images[ATTENTION_Q], 0, row / 2, row % 2, 11, 4.0f);
        }
        for (uint32_t j = 0; j < CAPPED_KEYS; j++) {
            image_put_row(&call->images[ATTENTION_K], 0, j, 0, (float)j - 15.0f);
            image_put_row(&call->images[ATTENTION_V], 0, j, 0, (float)j);
            *image_at(&call->images[ATTENTION_MASK], 0, 0, 0, j) = j < CAPPED_KEYS / 2;
            *image_at(&call->images[ATTENTION_MASK], 0, 1, 0, j) = 1;
        }
        attention_run(call);
        attention_expect_reference(call);
        for (uint32_t h = 0; h < 2; h++) {
            ASSERT_VALUE(call->lse[attention_row(call, 0, 0, h)], capped_lse(softcaps[i], CAPPED_KEYS / 2),
                         TOLERANCE_LSE);
            ASSERT_VALUE(call->lse[attention_row(call, 0, 1, h)], capped_lse(softcaps[i], CAPPED_KEYS), TOLERANCE_LSE);
        }
        attention_close(call);
    }
}
END_TEST

/* 29 [universal#1134]: one key, so that out is V. */
START_TEST(float_to_bf16_was_truncated)
{
    static const uint32_t nan_bits = 0x7f800001;
    attention_problem p = report_problem(1, 1, 8, F32, 1);

    p.attention.out_type = BF16;
    attention_call *const call = attention_open(&p);
    image_put_row(&call->images[ATTENTION_V], 0, 0, 0, 0.2691408770292272f);
    *(uint32_t *)image_at(&call->images[ATTENTION_V], 0, 0, 0, 1) = nan_bits;
    attention_run(call);
    ck_assert(call->out[0] == 0.26953125f);
    ck_assert(isnan(call->out[1]));
    attention_close(call);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        window_was_off_by_one,
        causal_was_inferred,
        softcap_was_taken_of_other_units_or_after_masks,
        float_to_bf16_was_truncated,
    };
    const int result = run_suite("field_reports_options", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

/* Quantised K and V in every form of the decode kernels, against the reference on the dequantised values. Where the scales
 * of int8 and int4 lie is the matter of test_decode_scales, what each code stands for that of test_formats. */
#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* Every type as K and as V, beside another one. */
static const struct {
    clfd_type k, v;
} pairs[] = {
    {CLFD_TYPE_INT8, CLFD_TYPE_INT4},         {CLFD_TYPE_INT4, CLFD_TYPE_FP8_E4M3},
    {CLFD_TYPE_FP8_E4M3, CLFD_TYPE_FP8_E5M2}, {CLFD_TYPE_FP8_E5M2, CLFD_TYPE_Q8_0},
    {CLFD_TYPE_Q8_0, CLFD_TYPE_Q4_0},         {CLFD_TYPE_Q4_0, CLFD_TYPE_INT8},
};

static attention_problem quantised_case(size_t pair)
{
    return option_case((clfd_attention){.k_type = pairs[pair].k, .v_type = pairs[pair].v});
}

START_TEST(every_type_as_k_and_as_v_matches_the_reference)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        attention_problem p = quantised_case(i);
        p.seed = i;
        verify_forms_and_splits(&p);
    }
}
END_TEST

/* Dense and apart, heads before tokens, one cache for all: numbers of the call. All rows are aligned as they are densely. */
START_TEST(layouts_of_quantised_rows_match_the_reference)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        attention_problem p = quantised_case(i);
        p.attention.kv_layout = CLFD_LAYOUT_BHSD;
        p.kv_offset = 64;
        verify_forms(&p);
        p.attention.k_strides.batch = p.attention.v_strides.batch = CLFD_STRIDE_BROADCAST;
        verify_forms(&p);
    }
}
END_TEST

/* The scale of fp8 of each KV head, of both tensors, is a factor of its head's scores and values alone. */
START_TEST(fp8_scales_of_tensors_and_heads_match_the_reference)
{
    static const int64_t strides[] = {0, 1};

    for (size_t k = 0; k < COUNT(strides); k++)
        for (size_t v = 0; v < COUNT(strides); v++) {
            attention_problem p =
                option_case((clfd_attention){.k_type = CLFD_TYPE_FP8_E4M3, .v_type = CLFD_TYPE_FP8_E5M2});
            p.attention.k_quant.strides.head = strides[k];
            p.attention.v_quant.strides.head = strides[v];
            verify_forms_and_splits(&p);
        }
}
END_TEST

/* What is NaN in a row before it is quantised is NaN for the rows that see it: a whole group, or an element of fp8. */
START_TEST(visible_nan_in_a_quantised_key_or_value_reaches_the_result)
{
    float row[64];

    for (int d = 0; d < 64; d++)
        row[d] = d == 40 ? NAN : (float)d / 16.0f;
    for (size_t i = 0; i < COUNT(pairs); i++)
        for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
            for (int tensor = ATTENTION_K; tensor <= ATTENTION_V; tensor++) {
                const attention_problem all = quantised_case(i), p = in_form(&all, f);
                const key_place place = {4, 50};
                attention_call *const call = attention_open(&p);
                attention_put_row(call, (attention_tensor)tensor, &place, 1, row);
                attention_run(call);
                attention_expect_reference(call);
                ck_assert(isnan(attention_out(call, 4, 2, 2)[40]) && isfinite(attention_out(call, 4, 2, 1)[40]));
                ck_assert_int_eq(isnan(call->lse[attention_row(call, 4, 2, 2)]) != 0, tensor == ATTENTION_K);
                attention_close(call);
            }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_type_as_k_and_as_v_matches_the_reference,
        layouts_of_quantised_rows_match_the_reference,
        fp8_scales_of_tensors_and_heads_match_the_reference,
        visible_nan_in_a_quantised_key_or_value_reaches_the_result,
    };
    const int result = run_suite("decode_quantised", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

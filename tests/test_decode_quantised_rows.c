/* Quantised K and V beside what else a call may say: alignment promises, V from K, masks, types of q and out. */
#include "support/option_cases.h"
#include "support/suite.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* Bases and rows that keep no more than a storage unit's alignment. */
START_TEST(unaligned_quantised_rows_match_the_reference)
{
    static const struct {
        clfd_type type;
        uint32_t promise;
        int64_t token;
    } rows[] = {
        {CLFD_TYPE_INT8, 1, 129},
        {CLFD_TYPE_INT4, 1, 65},
        {CLFD_TYPE_FP8_E5M2, 1, 131},
        {CLFD_TYPE_Q8_0, 2, 5},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t f = 0; f < NUM_DECODE_FORMS; f += NUM_DECODE_FORMS - 1) {
            const attention_problem all = option_case((clfd_attention){.k_type = rows[i].type});
            attention_problem p = in_form(&all, f);
            p.attention.k_strides.token = p.attention.v_strides.token = rows[i].token;
            p.attention.k_alignment = p.attention.v_alignment = rows[i].promise;
            p.kv_offset = rows[i].promise;
            attention_verify(&p);
        }
}
END_TEST

START_TEST(v_from_quantised_k_matches_the_reference)
{
    static const clfd_attention options[] = {
        {.head_dim_v = 32, .k_type = CLFD_TYPE_INT8},
        {.head_dim_v = 32, .k_type = CLFD_TYPE_INT4, .k_quant = {.group = 16, .zeros = 1}},
        {.head_dim_v = 32, .k_type = CLFD_TYPE_Q8_0},
        {.head_dim_v = 32, .k_type = CLFD_TYPE_FP8_E4M3, .k_quant = {.strides.head = 1}},
    };

    for (size_t i = 0; i < COUNT(options); i++)
        for (size_t f = 0; f < NUM_DECODE_FORMS; f += NUM_DECODE_FORMS - 1) {
            attention_problem all = option_case(options[i]);
            all.attention.v_from_k = 1;
            const attention_problem p = in_form(&all, f);
            attention_verify(&p);
        }
}
END_TEST

/* Keys that nobody sees hold NaN in their scales, codes and blocks. */
START_TEST(quantised_keys_that_are_hidden_are_not_used)
{
    attention_problem p = option_case((clfd_attention){.k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_INT4});

    p.attention.k_quant.zeros = p.attention.v_quant.zeros = 1;
    p.attention.mask = CLFD_MASK_BOOL;
    p.attention.window = 40;
    p.attention.causal = 1;
    verify_forms(&p);
    p = option_case((clfd_attention){.k_type = CLFD_TYPE_Q8_0, .v_type = CLFD_TYPE_Q4_0});
    p.attention.mask = CLFD_MASK_TREE;
    attention_verify(&p);
}
END_TEST

START_TEST(quantised_types_serve_every_type_of_q_and_out)
{
    static const clfd_type types[] = {CLFD_TYPE_F32, CLFD_TYPE_F16, CLFD_TYPE_BF16};

    for (size_t i = 0; i < COUNT(types); i++) {
        attention_problem p = option_case((clfd_attention){.k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_INT4});
        p.attention.q_type = types[i];
        p.attention.out_type = types[(i + 1) % COUNT(types)];
        p.attention.partial = CLFD_PARTIAL_MLO;
        attention_verify(&p);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        unaligned_quantised_rows_match_the_reference,
        v_from_quantised_k_matches_the_reference,
        quantised_keys_that_are_hidden_are_not_used,
        quantised_types_serve_every_type_of_q_and_out,
    };
    const int result = run_suite("decode_quantised_rows", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

#include "plan/check.h"
#include "support/descriptor.h"
#include "support/suite.h"
#include <stddef.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define TWO_48 ((int64_t)1 << 48)

static const clfd_merge plain_merge = {.struct_size = sizeof(clfd_merge), .max_rows = 5, .head_dim_v = 64};

/* ---- Attention --------------------------------------------------------------------------------------------------- */

static const refusal refusals[] = {
    {{ATTENTION(max_batch, (1 << 24) + 1)}, CLFD_ERROR_BATCH, "max_batch is 16777217", "1 to 16777216"},
    {{ATTENTION(q_len, 17)}, CLFD_ERROR_Q_LEN, "q_len is 17", "1 to 16"},
    {{ATTENTION(num_q_heads, 0)}, CLFD_ERROR_HEADS, "num_q_heads is 0", "1 to 65536"},
    {{ATTENTION(num_q_heads, 65538)}, CLFD_ERROR_HEADS, "num_q_heads is 65538", "1 to 65536"},
    {{ATTENTION(num_kv_heads, 65537)}, CLFD_ERROR_HEADS, "num_kv_heads is 65537", "1 to 65536"},
    {{ATTENTION(num_q_heads, 0), ATTENTION(num_kv_heads, 0)}, CLFD_ERROR_HEADS, "num_q_heads is 0", "1 to 65536"},
    {{ATTENTION(num_q_heads, 3)}, CLFD_ERROR_HEAD_RATIO, "num_q_heads is 3 and num_kv_heads is 2", "multiple"},
    {{ATTENTION(num_q_heads, 33)}, CLFD_ERROR_HEAD_RATIO, "num_q_heads is 33 and num_kv_heads is 2", "multiple"},
    {{ATTENTION(num_q_heads, 1)}, CLFD_ERROR_HEAD_RATIO, "num_q_heads is 1 and num_kv_heads is 2", "multiple"},
    {{ATTENTION(head_dim, 0)}, CLFD_ERROR_HEAD_DIM, "head_dim is 0", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim, 7)}, CLFD_ERROR_HEAD_DIM, "head_dim is 7", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim, 12)}, CLFD_ERROR_HEAD_DIM, "head_dim is 12", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim, 584)}, CLFD_ERROR_HEAD_DIM, "head_dim is 584", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim_v, 4)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 4", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim_v, 65)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 65", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim_v, 584)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 584", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(max_kv_len, 0)}, CLFD_ERROR_KV_LEN, "max_kv_len is 0", "1 to 2147483647"},
    {{ATTENTION(max_kv_len, 0x80000000)}, CLFD_ERROR_KV_LEN, "max_kv_len is 2147483648", "1 to 2147483647"},
    {{ATTENTION(expected_kv_len, 101)}, CLFD_ERROR_KV_LEN, "expected_kv_len is 101", "not exceed max_kv_len, 100"},
    {{ATTENTION(q_type, CLFD_TYPE_INT8)}, CLFD_ERROR_TYPE, "q_type is 4", "f32, f16 or bf16"},
    {{ATTENTION(q_type, -1)}, CLFD_ERROR_TYPE, "q_type is -1", "f32, f16 or bf16"},
    {{ATTENTION(out_type, CLFD_TYPE_Q8_0)}, CLFD_ERROR_TYPE, "out_type is 8", "f32, f16 or bf16"},
    {{ATTENTION(k_type, 10)}, CLFD_ERROR_TYPE, "k_type is 10", "a clfd_type"},
    {{ATTENTION(v_type, 77)}, CLFD_ERROR_TYPE, "v_type is 77", "a clfd_type"},
    {{ATTENTION(k_type, CLFD_TYPE_F16), ATTENTION(v_type, CLFD_TYPE_BF16)},
     CLFD_ERROR_TYPE,
     "v_type is bf16 and k_type is f16",
     "must be equal"},
    {{ATTENTION(causal, 2)}, CLFD_ERROR_OPTION, "causal is 2", "0 or 1"},
    {{ATTENTION(alibi, 2)}, CLFD_ERROR_OPTION, "alibi is 2", "0 or 1"},
    {{ATTENTION(sinks, 3)}, CLFD_ERROR_OPTION, "sinks is 3", "0 or 1"},
    {{ATTENTION(query_positions, 4)}, CLFD_ERROR_OPTION, "query_positions is 4", "0 or 1"},
    {{ATTENTION(kv_start, 5)}, CLFD_ERROR_OPTION, "kv_start is 5", "0 or 1"},
    {{ATTENTION(cache_batch_idx, 6)}, CLFD_ERROR_OPTION, "cache_batch_idx is 6", "0 or 1"},
    {{ATTENTION(shared_kv, 7)}, CLFD_ERROR_OPTION, "shared_kv is 7", "0 or 1"},
    {{ATTENTION(v_from_k, 2)}, CLFD_ERROR_OPTION, "v_from_k is 2", "0 or 1"},
    {{ATTENTION(kv_layout, 2)}, CLFD_ERROR_LAYOUT, "kv_layout is 2", "a clfd_layout"},
    {{ATTENTION(partial, 2)}, CLFD_ERROR_PARTIAL_FORMAT, "partial is 2", "a clfd_partial"},
    {{ATTENTION(split_policy, 3)}, CLFD_ERROR_SPLIT_POLICY, "split_policy is 3", "a clfd_split_policy"},
    {{ATTENTION(split_size, 1)}, CLFD_ERROR_SPLIT_POLICY, "split_size is 1", "under AUTO it must be 0"},
    {{ATTENTION(split_policy, CLFD_SPLIT_COUNT), ATTENTION(split_size, (1 << 20) + 1)},
     CLFD_ERROR_SPLIT_POLICY,
     "split_size is 1048577",
     "under COUNT it must be 0 to 1048576"},
    {{ATTENTION(split_policy, CLFD_SPLIT_TOKENS)},
     CLFD_ERROR_SPLIT_POLICY,
     "split_size is 0",
     "under TOKENS it must be 1 to 2147483647"},
    {{ATTENTION(split_policy, CLFD_SPLIT_TOKENS), ATTENTION(split_size, 0x80000000)},
     CLFD_ERROR_SPLIT_POLICY,
     "split_size is 2147483648",
     "under TOKENS it must be 1 to 2147483647"},
};

START_TEST(each_broken_rule_has_its_status_and_a_sentence_with_value_and_rule)
{
    expect_refusals(refusals, COUNT(refusals));
}
END_TEST

static const refusal alignment_refusals[] = {
    {{ATTENTION(q_alignment, 3)}, CLFD_ERROR_ALIGNMENT_PROMISE, "q_alignment is 3", "a power of two"},
    {{ATTENTION(q_alignment, 2)}, CLFD_ERROR_ALIGNMENT_PROMISE, "q_alignment is 2", "from the element's 4 bytes"},
    {{ATTENTION(k_alignment, 24)}, CLFD_ERROR_ALIGNMENT_PROMISE, "k_alignment is 24", "a power of two"},
    {{ATTENTION(k_alignment, 1), ATTENTION(k_type, CLFD_TYPE_F16)},
     CLFD_ERROR_ALIGNMENT_PROMISE,
     "k_alignment is 1",
     "from the element's 2 bytes"},
    {{ATTENTION(v_alignment, 8192)}, CLFD_ERROR_ALIGNMENT_PROMISE, "v_alignment is 8192", "to 4096"},
    {{ATTENTION(out_alignment, 1), ATTENTION(out_type, CLFD_TYPE_BF16)},
     CLFD_ERROR_ALIGNMENT_PROMISE,
     "out_alignment is 1",
     "from the element's 2 bytes"},
    {{ATTENTION(k_alignment, 1), ATTENTION(k_type, CLFD_TYPE_Q8_0)},
     CLFD_ERROR_ALIGNMENT_PROMISE,
     "k_alignment is 1",
     "from the element's 2 bytes"},
};

START_TEST(an_alignment_promise_is_a_power_of_two_from_the_element_to_a_page)
{
    expect_refusals(alignment_refusals, COUNT(alignment_refusals));
}
END_TEST

static const acceptance acceptances[] = {
    {{ATTENTION(max_batch, 1 << 24)}},
    {{ATTENTION(q_len, 16)}},
    {{ATTENTION(num_q_heads, 65536)}},
    {{ATTENTION(num_q_heads, 65536), ATTENTION(num_kv_heads, 65536)}},
    {{ATTENTION(num_q_heads, 2)}},
    {{ATTENTION(num_q_heads, 142)}},
    {{ATTENTION(head_dim, 8)}},
    {{ATTENTION(head_dim, 576), ATTENTION(head_dim_v, 512)}},
    {{ATTENTION(head_dim_v, 8)}},
    {{ATTENTION(head_dim_v, 576)}},
    {{ATTENTION(max_kv_len, 1)}},
    {{ATTENTION(max_kv_len, 0x7fffffff)}},
    {{ATTENTION(expected_kv_len, 100)}},
    {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(k_type, CLFD_TYPE_BF16), ATTENTION(out_type, CLFD_TYPE_F32)}},
    {{ATTENTION(k_type, CLFD_TYPE_BF16), ATTENTION(v_type, CLFD_TYPE_BF16)}},
    {{ATTENTION(causal, 1)}},
    {{ATTENTION(v_from_k, 1), ATTENTION(head_dim_v, 64)}},
    {{ATTENTION(kv_layout, CLFD_LAYOUT_BHSD)}},
    {{ATTENTION(partial, CLFD_PARTIAL_MLO)}},
    {{ATTENTION(split_policy, CLFD_SPLIT_COUNT), ATTENTION(split_size, 1 << 20)}},
    {{ATTENTION(split_policy, CLFD_SPLIT_TOKENS), ATTENTION(split_size, 1)}},
    {{ATTENTION(split_policy, CLFD_SPLIT_TOKENS), ATTENTION(split_size, 0x7fffffff)}},
    {{ATTENTION(k_strides.batch, TWO_48)}},
    {{ATTENTION(k_strides.token, 1), ATTENTION(v_strides.head, 1)}},
    {{ATTENTION(q_strides.head, 1)}},
    /* The axes of out in every order, packed without a gap; and a stride that no step is taken with. */
    {{ATTENTION(out_strides.batch, 512), ATTENTION(out_strides.token, 1024)}},
    {{ATTENTION(out_strides.batch, 64), ATTENTION(out_strides.token, 128), ATTENTION(out_strides.head, 384)}},
    {{ATTENTION(out_strides.head, 65), ATTENTION(out_strides.token, 519), ATTENTION(out_strides.batch, 1557)}},
    {{ATTENTION(max_batch, 1), ATTENTION(out_strides.batch, 1)}},
    {{ATTENTION(q_len, 1), ATTENTION(out_strides.token, 1)}},
    {{ATTENTION(q_alignment, 4), ATTENTION(k_alignment, 4096), ATTENTION(out_alignment, 4)}},
    {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(q_alignment, 2), ATTENTION(k_alignment, 2), ATTENTION(v_alignment, 2),
      ATTENTION(out_alignment, 2)}},
    {{ATTENTION(k_type, CLFD_TYPE_INT4), ATTENTION(k_alignment, 1), ATTENTION(v_type, CLFD_TYPE_FP8_E4M3),
      ATTENTION(v_alignment, 1)}},
    {{ATTENTION(k_type, CLFD_TYPE_Q4_0), ATTENTION(k_alignment, 2), ATTENTION(v_type, CLFD_TYPE_INT8),
      ATTENTION(v_alignment, 1)}},
};

START_TEST(the_last_legal_value_of_each_rule_is_accepted) { expect_acceptances(acceptances, COUNT(acceptances)); }
END_TEST

START_TEST(zero_fields_become_their_defaults)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(max_batch, 0), ATTENTION(q_len, 0), ATTENTION(num_kv_heads, 0)};
    const clfd_attention a = completed_settings(settings);

    ck_assert_uint_eq(a.struct_size, sizeof a);
    ck_assert_uint_eq(a.max_batch, 1);
    ck_assert_uint_eq(a.q_len, 1);
    ck_assert_uint_eq(a.num_kv_heads, 8);
    ck_assert_uint_eq(a.head_dim_v, 64);
    ck_assert_uint_eq(a.expected_kv_len, 100);
    ck_assert_int_eq(a.q_type, CLFD_TYPE_F32);
    ck_assert_int_eq(a.k_type, CLFD_TYPE_F32);
    ck_assert_int_eq(a.v_type, CLFD_TYPE_F32);
    ck_assert_int_eq(a.out_type, CLFD_TYPE_F32);
    ck_assert(a.scale == 0.125f);
    ck_assert_uint_eq(a.q_alignment, 16);
    ck_assert_uint_eq(a.k_alignment, 16);
    ck_assert_uint_eq(a.v_alignment, 16);
    ck_assert_uint_eq(a.out_alignment, 16);
    ck_assert_int_eq(a.split_policy, CLFD_SPLIT_AUTO);
}
END_TEST

START_TEST(count_without_a_size_is_auto)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(split_policy, CLFD_SPLIT_COUNT)};

    ck_assert_int_eq(completed_settings(settings).split_policy, CLFD_SPLIT_AUTO);
}
END_TEST

/* A complete descriptor is complete: the second time nothing changes. Only what 0 says cannot be said twice: a broadcast,
 * and the tensors that v_from_k does without. */
START_TEST(completing_twice_is_completing_once)
{
    static const acceptance cases[] = {
        {{ATTENTION(kv_layout, CLFD_LAYOUT_BHSD), ATTENTION(q_type, CLFD_TYPE_F16)}},
        {{ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(v_type, CLFD_TYPE_FP8_E5M2), ATTENTION(k_quant.group, 16),
          ATTENTION(paging, CLFD_PAGING_TABLE), ATTENTION(page_size, 16), ATTENTION(num_pages, 30)}},
        {{ATTENTION(bias_type, CLFD_TYPE_F16), ATTENTION(mask, CLFD_MASK_TREE), ATTENTION(cache_batch_idx, 1),
          ATTENTION(window, 9), ATTENTION(paging, CLFD_PAGING_CSR), ATTENTION(page_size, 16),
          ATTENTION(num_pages, 30)}},
        {{ATTENTION(shared_kv, 1), ATTENTION(mask, CLFD_MASK_BOOL), ATTENTION(mask_strides.key, 1)}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const clfd_attention once = completed_settings(cases[i].settings);
        clfd_attention twice;
        memcpy(&twice, &once, sizeof twice); /* with its padding */
        ck_assert_int_eq(clfd_complete_attention(&once, &twice, &listener), CLFD_SUCCESS);
        ck_assert_mem_eq(&twice, &once, sizeof twice);
    }
}
END_TEST

/* ---- Merge ------------------------------------------------------------------------------------------------------- */

static const refusal merge_refusals[] = {
    {{MERGE(max_rows, 0)}, CLFD_ERROR_NUM_STATES, "max_rows is 0", "1 to 1073741824"},
    {{MERGE(max_rows, (1 << 30) + 1)}, CLFD_ERROR_NUM_STATES, "max_rows is 1073741825", "1 to 1073741824"},
    {{MERGE(num_states, (1 << 20) + 1)}, CLFD_ERROR_NUM_STATES, "num_states is 1048577", "1 to 1048576"},
    {{MERGE(head_dim_v, 0)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 0", "a multiple of 8 from 8 to 576"},
    {{MERGE(head_dim_v, 4)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 4", "a multiple of 8 from 8 to 576"},
    {{MERGE(head_dim_v, 66)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 66", "a multiple of 8 from 8 to 576"},
    {{MERGE(head_dim_v, 584)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 584", "a multiple of 8 from 8 to 576"},
    {{MERGE(partial, 2)}, CLFD_ERROR_PARTIAL_FORMAT, "partial is 2", "a clfd_partial"},
    {{MERGE(out_type, CLFD_TYPE_INT8)}, CLFD_ERROR_TYPE, "out_type is 4", "f32, f16 or bf16"},
};

START_TEST(each_broken_rule_of_a_merge_has_its_status_and_a_sentence)
{
    for (size_t i = 0; i < COUNT(merge_refusals); i++) {
        clfd_merge m = plain_merge, out, untouched;
        hear_nothing();
        memset(&out, 0x5A, sizeof out);
        memcpy(&untouched, &out, sizeof out);
        apply_settings(&m, merge_refusals[i].settings);
        expect_sentence(clfd_complete_merge(&m, &out, &listener), &merge_refusals[i]);
        ck_assert_mem_eq(&out, &untouched, sizeof out);
    }
}
END_TEST

static const acceptance merge_acceptances[] = {
    {{MERGE(max_rows, 1)}},
    {{MERGE(max_rows, 1 << 30)}},
    {{MERGE(num_states, 1)}},
    {{MERGE(num_states, 1 << 20)}},
    {{MERGE(head_dim_v, 8)}},
    {{MERGE(head_dim_v, 576)}},
    {{MERGE(partial, CLFD_PARTIAL_MLO)}},
    {{MERGE(out_type, CLFD_TYPE_BF16)}},
};

START_TEST(the_last_legal_value_of_each_rule_of_a_merge_is_accepted)
{
    for (size_t i = 0; i < COUNT(merge_acceptances); i++) {
        clfd_merge m = plain_merge, out;
        hear_nothing();
        apply_settings(&m, merge_acceptances[i].settings);
        ck_assert_msg(clfd_complete_merge(&m, &out, &listener) == CLFD_SUCCESS, "case %zu: %s", i,
                      heard.last[CLFD_LOG_ERROR]);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    }
}
END_TEST

START_TEST(a_merge_is_of_two_states_into_f32_unless_told)
{
    clfd_merge out;

    ck_assert_int_eq(clfd_complete_merge(&plain_merge, &out, &listener), CLFD_SUCCESS);
    ck_assert_uint_eq(out.num_states, 2);
    ck_assert_int_eq(out.out_type, CLFD_TYPE_F32);
    ck_assert_int_eq(out.partial, CLFD_PARTIAL_LSE);
}
END_TEST

/* ---- Callers of other versions ----------------------------------------------------------------------------------- */

START_TEST(a_shorter_descriptor_is_extended_by_defaults)
{
    clfd_attention a = plain_attention, out;

    a.struct_size = offsetof(clfd_attention, causal);
    a.causal = 9; /* past the end of what the caller has */
    a.split_policy = (clfd_split_policy)9;
    ck_assert_int_eq(clfd_complete_attention(&a, &out, &listener), CLFD_SUCCESS);
    ck_assert_uint_eq(out.struct_size, sizeof out);
    ck_assert_uint_eq(out.max_kv_len, 100);
    ck_assert_uint_eq(out.causal, 0);
    ck_assert_int_eq(out.split_policy, CLFD_SPLIT_AUTO);
}
END_TEST

START_TEST(a_longer_descriptor_must_end_in_zeros)
{
    struct {
        clfd_attention known;
        char unknown[24];
    } newer = {.known = plain_attention};
    const refusal expected = {{{0}}, CLFD_ERROR_STRUCT_SIZE, "clfd_attention.struct_size is", "newer version"};
    clfd_attention out;

    newer.known.struct_size = sizeof newer;
    ck_assert_int_eq(clfd_complete_attention(&newer.known, &out, &listener), CLFD_SUCCESS);
    ck_assert_uint_eq(out.struct_size, sizeof out);
    newer.unknown[sizeof newer.unknown - 1] = 1;
    expect_sentence(clfd_complete_attention(&newer.known, &out, &listener), &expected);
    newer.known.struct_size--; /* the last byte is not the caller's any more */
    ck_assert_int_eq(clfd_complete_attention(&newer.known, &out, &listener), CLFD_SUCCESS);
}
END_TEST

START_TEST(a_descriptor_without_a_size_and_no_descriptor_are_refused)
{
    const refusal no_size = {
        {{0}}, CLFD_ERROR_STRUCT_SIZE, "clfd_attention.struct_size is 0", "sizeof(clfd_attention)"};
    const refusal nothing = {{{0}}, CLFD_ERROR_NULL_ARGUMENT, "clfd_attention", "is NULL"};
    const refusal no_merge_size = {{{0}}, CLFD_ERROR_STRUCT_SIZE, "clfd_merge.struct_size is 0", "sizeof(clfd_merge)"};
    clfd_attention a = plain_attention, out;
    clfd_merge m = plain_merge, merge_out;

    a.struct_size = 0;
    expect_sentence(clfd_complete_attention(&a, &out, &listener), &no_size);
    hear_nothing();
    expect_sentence(clfd_complete_attention(NULL, &out, &listener), &nothing);
    hear_nothing();
    m.struct_size = 0;
    expect_sentence(clfd_complete_merge(&m, &merge_out, &listener), &no_merge_size);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_broken_rule_has_its_status_and_a_sentence_with_value_and_rule,
        an_alignment_promise_is_a_power_of_two_from_the_element_to_a_page,
        the_last_legal_value_of_each_rule_is_accepted,
        zero_fields_become_their_defaults,
        count_without_a_size_is_auto,
        completing_twice_is_completing_once,
        each_broken_rule_of_a_merge_has_its_status_and_a_sentence,
        the_last_legal_value_of_each_rule_of_a_merge_is_accepted,
        a_merge_is_of_two_states_into_f32_unless_told,
        a_shorter_descriptor_is_extended_by_defaults,
        a_longer_descriptor_must_end_in_zeros,
        a_descriptor_without_a_size_and_no_descriptor_are_refused,
    };
    return run_suite_around("check", tests, COUNT(tests), hear_nothing, NULL);
}

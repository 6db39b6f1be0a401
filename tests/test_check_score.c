#include "plan/check.h"
#include "support/descriptor.h"
#include "support/suite.h"
#include <math.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define TWO_48 ((int64_t)1 << 48)

START_TEST(scale_must_be_finite)
{
    static const struct {
        float scale;
        const char *name;
    } cases[] = {{INFINITY, "scale is inf"},
                 {-INFINITY, "scale is -inf"},
                 {NAN, "nan"},
                 {2.4e38f, "scale is 2.4e+38"},
                 {-3.4e38f, "scale is -3.4e+38"}};
    clfd_attention a = plain_attention, out;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const refusal expected = {{{0}}, CLFD_ERROR_SCALE, cases[i].name, "must be finite"};
        hear_nothing();
        a.scale = cases[i].scale;
        expect_sentence(clfd_complete_attention(&a, &out, &listener), &expected);
    }
    hear_nothing();
    a.scale = -2.0e38f;
    ck_assert_int_eq(clfd_complete_attention(&a, &out, &listener), CLFD_SUCCESS);
    ck_assert(out.scale == -2.0e38f);
}
END_TEST

START_TEST(softcap_is_finite_and_not_negative)
{
    static const struct {
        float softcap;
        const char *name;
    } cases[] = {{INFINITY, "softcap is inf"}, {-1.0f, "softcap is -1"}, {NAN, "nan"}};
    clfd_attention a = plain_attention, out;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const refusal expected = {{{0}}, CLFD_ERROR_SOFTCAP, cases[i].name, "finite and not negative"};
        hear_nothing();
        a.softcap = cases[i].softcap;
        expect_sentence(clfd_complete_attention(&a, &out, &listener), &expected);
    }
    hear_nothing();
    a.softcap = 0x1p-126f;
    ck_assert_int_eq(clfd_complete_attention(&a, &out, &listener), CLFD_SUCCESS);
    ck_assert(out.softcap == 0x1p-126f);
}
END_TEST

#define BIAS ATTENTION(bias_type, CLFD_TYPE_F32)
#define BOOL ATTENTION(mask, CLFD_MASK_BOOL)
#define TREE ATTENTION(mask, CLFD_MASK_TREE)
#define SHARED ATTENTION(shared_kv, 1)

static const refusal refusals[] = {
    {{ATTENTION(window, 0x80000000)}, CLFD_ERROR_WINDOW, "window is 2147483648", "0 to 2147483647"},
    {{ATTENTION(bias_type, CLFD_TYPE_BF16)}, CLFD_ERROR_BIAS, "bias_type is 3", "f32 or f16"},
    {{ATTENTION(bias_type, CLFD_TYPE_INT8)}, CLFD_ERROR_BIAS, "bias_type is 4", "f32 or f16"},
    {{ATTENTION(bias_type, -1)}, CLFD_ERROR_BIAS, "bias_type is -1", "f32 or f16"},
    {{ATTENTION(bias_strides.batch, 1)}, CLFD_ERROR_BIAS, "bias_strides are set", "no bias"},
    {{ATTENTION(bias_strides.head, 1)}, CLFD_ERROR_BIAS, "bias_strides are set", "no bias"},
    {{ATTENTION(bias_strides.query, 1)}, CLFD_ERROR_BIAS, "bias_strides are set", "no bias"},
    {{ATTENTION(bias_strides.key, -1)}, CLFD_ERROR_BIAS, "bias_strides are set", "no bias"},
    {{BIAS, ATTENTION(bias_strides.query, -1)}, CLFD_ERROR_STRIDE, "bias_strides.query is -1", "0 to 2^48"},
    {{BIAS, ATTENTION(bias_strides.batch, CLFD_STRIDE_BROADCAST)}, CLFD_ERROR_STRIDE, "bias_strides.batch", "0 to"},
    {{BIAS, ATTENTION(bias_strides.head, TWO_48 + 1)},
     CLFD_ERROR_STRIDE,
     "bias_strides.head is 281474976710657",
     "0 to"},
    {{BIAS, ATTENTION(bias_strides.key, 1), ATTENTION(bias_strides.batch, TWO_48), ATTENTION(max_batch, (1 << 13) + 1)},
     CLFD_ERROR_OVERFLOW,
     "bias reaches beyond",
     "max_batch 8193"},
    {{ATTENTION(mask, 3)}, CLFD_ERROR_MASK, "mask is 3", "a clfd_mask"},
    {{ATTENTION(mask_strides.key, 1)}, CLFD_ERROR_MASK, "mask_strides are set", "no mask"},
    {{BOOL, ATTENTION(mask_strides.head, 1)}, CLFD_ERROR_MASK, "mask_strides.head is 1", "it must be 0"},
    {{TREE, ATTENTION(mask_strides.head, 1)}, CLFD_ERROR_MASK, "mask_strides.head is 1", "it must be 0"},
    {{TREE, ATTENTION(mask_strides.key, 1)}, CLFD_ERROR_MASK, "mask_strides.key is 1", "it must be 0"},
    {{BOOL, ATTENTION(mask_strides.key, -1)}, CLFD_ERROR_STRIDE, "mask_strides.key is -1", "0 to 2^48"},
    {{TREE, ATTENTION(mask_strides.batch, TWO_48 + 1)}, CLFD_ERROR_STRIDE, "mask_strides.batch is 2814", "0 to 2^48"},
    {{BOOL, ATTENTION(mask_strides.batch, TWO_48), ATTENTION(max_batch, (1 << 15) + 1)},
     CLFD_ERROR_OVERFLOW,
     "mask reaches beyond",
     "max_batch 32769"},
    {{SHARED, TREE}, CLFD_ERROR_SHARED_KV, "shared_kv with a tree mask", "not shared"},
    {{SHARED, TREE, ATTENTION(query_positions, 1)}, CLFD_ERROR_SHARED_KV, "shared_kv with a tree mask", "not shared"},
    {{SHARED, ATTENTION(causal, 1)}, CLFD_ERROR_SHARED_KV, "shared_kv with causal", "query_positions"},
    {{SHARED, ATTENTION(window, 1)}, CLFD_ERROR_SHARED_KV, "shared_kv with window", "query_positions"},
    {{SHARED, ATTENTION(alibi, 1)}, CLFD_ERROR_SHARED_KV, "shared_kv with alibi", "query_positions"},
};

START_TEST(each_broken_rule_of_the_score_has_its_status_and_a_sentence) { expect_refusals(refusals, COUNT(refusals)); }
END_TEST

static const acceptance acceptances[] = {
    {{ATTENTION(window, 0x7fffffff)}},
    {{ATTENTION(bias_type, CLFD_TYPE_F16), ATTENTION(bias_strides.key, TWO_48), ATTENTION(max_kv_len, 1 << 13)}},
    {{BOOL, ATTENTION(mask_strides.batch, TWO_48), ATTENTION(max_batch, 1 << 14)}},
    {{SHARED, BOOL, BIAS, ATTENTION(sinks, 1), ATTENTION(kv_start, 1)}},
    {{SHARED, ATTENTION(query_positions, 1), ATTENTION(causal, 1), ATTENTION(window, 9), ATTENTION(alibi, 1)}},
};

START_TEST(the_last_legal_score_is_accepted) { expect_acceptances(acceptances, COUNT(acceptances)); }
END_TEST

START_TEST(a_bias_is_dense_unless_told_and_then_broadcasts_where_a_stride_is_0)
{
    const setting dense[MAX_SETTINGS] = {BIAS};
    const setting one_head[MAX_SETTINGS] = {BIAS, ATTENTION(bias_strides.query, 100), ATTENTION(bias_strides.key, 1)};
    const setting of_heads[MAX_SETTINGS] = {BIAS, ATTENTION(bias_strides.head, 1)};
    const setting none[MAX_SETTINGS] = {{0}};
    clfd_attention a = completed_settings(dense);

    expect_score_strides(&a.bias_strides, 8 * 3 * 100, 3 * 100, 100, 1);
    a = completed_settings(one_head);
    expect_score_strides(&a.bias_strides, 0, 0, 100, 1);
    a = completed_settings(of_heads);
    expect_score_strides(&a.bias_strides, 0, 1, 0, 0);
    a = completed_settings(none);
    expect_score_strides(&a.bias_strides, 0, 0, 0, 0);
}
END_TEST

START_TEST(a_mask_is_dense_unless_told_and_a_tree_has_a_word_for_each_query)
{
    const setting dense[MAX_SETTINGS] = {BOOL};
    const setting shared[MAX_SETTINGS] = {BOOL, ATTENTION(mask_strides.key, 2)};
    const setting tree[MAX_SETTINGS] = {TREE};
    const setting far[MAX_SETTINGS] = {TREE, ATTENTION(mask_strides.batch, 16)};
    clfd_attention a = completed_settings(dense);

    expect_score_strides(&a.mask_strides, 3 * 100, 0, 100, 1);
    a = completed_settings(shared);
    expect_score_strides(&a.mask_strides, 0, 0, 0, 2);
    a = completed_settings(tree);
    expect_score_strides(&a.mask_strides, 3, 0, 1, 0);
    a = completed_settings(far);
    expect_score_strides(&a.mask_strides, 16, 0, 0, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        scale_must_be_finite,
        softcap_is_finite_and_not_negative,
        each_broken_rule_of_the_score_has_its_status_and_a_sentence,
        the_last_legal_score_is_accepted,
        a_bias_is_dense_unless_told_and_then_broadcasts_where_a_stride_is_0,
        a_mask_is_dense_unless_told_and_a_tree_has_a_word_for_each_query,
    };
    return run_suite_around("check_score", tests, COUNT(tests), hear_nothing, NULL);
}

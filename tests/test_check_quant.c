#include "support/descriptor.h"
#include "support/suite.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define TWO_48 ((int64_t)1 << 48)
#define INT8 ATTENTION(k_type, CLFD_TYPE_INT8)
#define FP8 ATTENTION(k_type, CLFD_TYPE_FP8_E4M3)

static const refusal refusals[] = {
    {{ATTENTION(k_quant.group, 64)}, CLFD_ERROR_QUANT, "k_quant is set with the type f32", "must be all 0"},
    {{ATTENTION(k_type, CLFD_TYPE_Q8_0), ATTENTION(v_quant.scale_type, CLFD_TYPE_F32)},
     CLFD_ERROR_QUANT,
     "v_quant is set with the type q8_0",
     "must be all 0"},
    {{ATTENTION(k_type, CLFD_TYPE_Q4_0), ATTENTION(k_quant.zeros, 1)}, CLFD_ERROR_QUANT, "k_quant is set", "all 0"},
    {{ATTENTION(k_quant.group_stride, 1)}, CLFD_ERROR_QUANT, "k_quant is set", "all 0"},
    {{ATTENTION(k_quant.strides.batch, 1)}, CLFD_ERROR_QUANT, "k_quant is set", "all 0"},
    {{ATTENTION(k_quant.strides.token, 1)}, CLFD_ERROR_QUANT, "k_quant is set", "all 0"},
    {{ATTENTION(v_quant.strides.head, 1)}, CLFD_ERROR_QUANT, "v_quant is set", "all 0"},
    {{INT8, ATTENTION(k_quant.scale_type, CLFD_TYPE_BF16)}, CLFD_ERROR_TYPE, "k_quant.scale_type is 3", "f32 or f16"},
    {{ATTENTION(k_type, CLFD_TYPE_FP8_E4M3), ATTENTION(v_quant.scale_type, CLFD_TYPE_INT8)},
     CLFD_ERROR_TYPE,
     "v_quant.scale_type is 4",
     "f32 or f16"},
    {{INT8, ATTENTION(k_quant.group, 4)}, CLFD_ERROR_QUANT, "k_quant.group is 4", "a multiple of 8 that divides 64"},
    {{INT8, ATTENTION(k_quant.group, 24)}, CLFD_ERROR_QUANT, "k_quant.group is 24", "a multiple of 8 that divides 64"},
    {{INT8, ATTENTION(k_quant.group, 128)}, CLFD_ERROR_QUANT, "k_quant.group is 128", "that divides 64"},
    {{INT8, ATTENTION(head_dim_v, 48), ATTENTION(v_quant.group, 32)},
     CLFD_ERROR_QUANT,
     "v_quant.group is 32",
     "that divides 48"},
    {{INT8, ATTENTION(k_quant.zeros, 2)}, CLFD_ERROR_OPTION, "k_quant.zeros is 2", "0 or 1"},
    {{INT8, ATTENTION(k_quant.group_stride, -1)}, CLFD_ERROR_STRIDE, "k_quant.group_stride is -1", "0 to 2^48"},
    {{INT8, ATTENTION(k_quant.group_stride, TWO_48 + 1)},
     CLFD_ERROR_STRIDE,
     "k_quant.group_stride is 281474976710657",
     "0 to 2^48"},
    {{INT8, ATTENTION(v_quant.strides.token, -1)}, CLFD_ERROR_STRIDE, "v_quant.strides.token is -1", "0 to 2^48"},
    {{FP8, ATTENTION(k_quant.group, 32)}, CLFD_ERROR_QUANT, "k_quant.group is 32", "no groups, it must be 0"},
    {{FP8, ATTENTION(k_quant.zeros, 1)}, CLFD_ERROR_QUANT, "k_quant.zeros is 1", "it must be 0"},
    {{FP8, ATTENTION(k_quant.group_stride, 1)}, CLFD_ERROR_QUANT, "k_quant.group_stride is 1", "it must be 0"},
    {{FP8, ATTENTION(k_quant.strides.batch, 1)}, CLFD_ERROR_QUANT, "k_quant.strides.batch is 1", "it must be 0"},
    {{FP8, ATTENTION(v_quant.strides.token, 1)}, CLFD_ERROR_QUANT, "v_quant.strides.token is 1", "it must be 0"},
    {{FP8, ATTENTION(k_quant.strides.head, 2)}, CLFD_ERROR_QUANT, "k_quant.strides.head is 2", "it must be 0 or 1"},
    {{FP8, ATTENTION(k_quant.strides.head, -1)}, CLFD_ERROR_QUANT, "k_quant.strides.head is -1", "it must be 0 or 1"},
    {{INT8, ATTENTION(v_from_k, 1), ATTENTION(v_quant.group, 64)}, CLFD_ERROR_V_FROM_K, "v_quant", "the scales of K"},
    {{INT8, ATTENTION(v_from_k, 1), ATTENTION(head_dim_v, 40), ATTENTION(k_quant.group, 16)},
     CLFD_ERROR_QUANT,
     "head_dim_v 40 and k_quant.group 16",
     "whole groups"},
    {{INT8, ATTENTION(max_batch, (1 << 13) + 1), ATTENTION(k_quant.strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "k_quant reaches beyond 2^63 bytes",
     "max_batch 8193"},
};

START_TEST(each_type_has_the_scales_that_it_can_have) { expect_refusals(refusals, COUNT(refusals)); }
END_TEST

static const acceptance acceptances[] = {
    {{INT8, ATTENTION(k_quant.group, 8), ATTENTION(v_quant.group, 64)}},
    {{INT8, ATTENTION(k_quant.zeros, 1), ATTENTION(v_quant.zeros, 1)}},
    {{INT8, ATTENTION(k_quant.group_stride, TWO_48), ATTENTION(k_quant.group, 32)}},
    {{INT8, ATTENTION(max_batch, 1 << 12), ATTENTION(k_quant.strides.batch, TWO_48)}},
    {{ATTENTION(k_type, CLFD_TYPE_INT4), ATTENTION(k_quant.group, 8)}},
    {{FP8, ATTENTION(k_quant.strides.head, 1), ATTENTION(v_quant.scale_type, CLFD_TYPE_F16)}},
    {{ATTENTION(k_type, CLFD_TYPE_Q8_0), ATTENTION(v_type, CLFD_TYPE_INT8), ATTENTION(v_quant.group, 32)}},
};

START_TEST(the_last_legal_scales_are_accepted) { expect_acceptances(acceptances, COUNT(acceptances)); }
END_TEST

static void expect_quant(const clfd_quant *q, uint32_t group, clfd_type scale_type, int64_t batch, int64_t token,
                         int64_t head, int64_t group_stride)
{
    ck_assert_uint_eq(q->group, group);
    ck_assert_int_eq(q->scale_type, scale_type);
    expect_strides(&q->strides, batch, token, head);
    ck_assert_int_eq(q->group_stride, group_stride);
}

START_TEST(scales_of_integers_are_dense_in_the_order_of_the_layout)
{
    const setting whole[MAX_SETTINGS] = {INT8};
    const setting groups[MAX_SETTINGS] = {INT8, ATTENTION(head_dim_v, 32), ATTENTION(k_quant.group, 16),
                                          ATTENTION(v_quant.group, 8), ATTENTION(k_quant.zeros, 1)};
    const setting heads_first[MAX_SETTINGS] = {INT8, ATTENTION(kv_layout, CLFD_LAYOUT_BHSD),
                                               ATTENTION(k_quant.group, 16)};
    clfd_attention a = completed_settings(whole);

    expect_quant(&a.k_quant, 64, CLFD_TYPE_F32, 100 * 2, 2, 1, 1);
    expect_quant(&a.v_quant, 64, CLFD_TYPE_F32, 100 * 2, 2, 1, 1);
    ck_assert_uint_eq(a.k_quant.zeros, 0);
    a = completed_settings(groups);
    expect_quant(&a.k_quant, 16, CLFD_TYPE_F32, 100 * 2 * 4, 2 * 4, 4, 1);
    expect_quant(&a.v_quant, 8, CLFD_TYPE_F32, 100 * 2 * 4, 2 * 4, 4, 1);
    ck_assert_uint_eq(a.k_quant.zeros, 1);
    ck_assert_uint_eq(a.v_quant.zeros, 0);
    a = completed_settings(heads_first);
    expect_quant(&a.k_quant, 16, CLFD_TYPE_F32, 2 * 100 * 4, 4, 100 * 4, 1);
    expect_quant(&a.v_quant, 64, CLFD_TYPE_F32, 2 * 100, 1, 100, 1);
}
END_TEST

START_TEST(scales_of_pages_lie_by_page_and_token_within_it)
{
    const setting settings[MAX_SETTINGS] = {INT8, ATTENTION(k_quant.group, 32), ATTENTION(paging, CLFD_PAGING_TABLE),
                                            ATTENTION(page_size, 16), ATTENTION(num_pages, 9)};
    const clfd_attention a = completed_settings(settings);

    expect_quant(&a.k_quant, 32, CLFD_TYPE_F32, 16 * 2 * 2, 2 * 2, 2, 1);
}
END_TEST

START_TEST(strides_of_scales_override_the_defaults_one_by_one_and_may_broadcast)
{
    const setting settings[MAX_SETTINGS] = {INT8,
                                            ATTENTION(k_quant.group, 32),
                                            ATTENTION(k_quant.scale_type, CLFD_TYPE_F16),
                                            ATTENTION(k_quant.strides.token, CLFD_STRIDE_BROADCAST),
                                            ATTENTION(k_quant.strides.head, 7),
                                            ATTENTION(k_quant.group_stride, 1000)};
    const clfd_attention a = completed_settings(settings);

    expect_quant(&a.k_quant, 32, CLFD_TYPE_F16, 100 * 2 * 2, 0, 7, 1000);
}
END_TEST

START_TEST(an_fp8_tensor_has_one_scale_or_one_for_each_head)
{
    const setting settings[MAX_SETTINGS] = {FP8, ATTENTION(head_dim_v, 32), ATTENTION(v_quant.strides.head, 1)};
    const clfd_attention a = completed_settings(settings);

    expect_quant(&a.k_quant, 64, CLFD_TYPE_F32, 0, 0, 0, 0);
    expect_quant(&a.v_quant, 32, CLFD_TYPE_F32, 0, 0, 1, 0);
}
END_TEST

START_TEST(types_without_scales_have_none)
{
    static const clfd_type types[] = {CLFD_TYPE_F32, CLFD_TYPE_BF16, CLFD_TYPE_Q8_0, CLFD_TYPE_Q4_0};

    for (size_t i = 0; i < COUNT(types); i++) {
        const setting settings[MAX_SETTINGS] = {ATTENTION(k_type, types[i])};
        const clfd_attention a = completed_settings(settings);
        expect_quant(&a.k_quant, 0, CLFD_TYPE_DEFAULT, 0, 0, 0, 0);
        expect_quant(&a.v_quant, 0, CLFD_TYPE_DEFAULT, 0, 0, 0, 0);
    }
}
END_TEST

/* Of K's groups V has the whole ones that it covers, or part of the first. */
START_TEST(v_from_k_has_the_scales_of_k)
{
    const setting groups[MAX_SETTINGS] = {INT8, ATTENTION(v_from_k, 1), ATTENTION(head_dim_v, 32),
                                          ATTENTION(k_quant.group, 16), ATTENTION(k_quant.zeros, 1)};
    const setting part[MAX_SETTINGS] = {INT8, ATTENTION(v_from_k, 1), ATTENTION(head_dim_v, 40)};
    const setting fp8[MAX_SETTINGS] = {FP8, ATTENTION(v_from_k, 1), ATTENTION(head_dim_v, 40),
                                       ATTENTION(k_quant.strides.head, 1)};
    clfd_attention a = completed_settings(groups);

    expect_quant(&a.v_quant, 16, CLFD_TYPE_F32, 100 * 2 * 4, 2 * 4, 4, 1);
    ck_assert_uint_eq(a.v_quant.zeros, 1);
    a = completed_settings(part);
    expect_quant(&a.k_quant, 64, CLFD_TYPE_F32, 100 * 2, 2, 1, 1);
    expect_quant(&a.v_quant, 40, CLFD_TYPE_F32, 100 * 2, 2, 1, 1);
    a = completed_settings(fp8);
    expect_quant(&a.v_quant, 40, CLFD_TYPE_F32, 0, 0, 1, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_type_has_the_scales_that_it_can_have,
        the_last_legal_scales_are_accepted,
        scales_of_integers_are_dense_in_the_order_of_the_layout,
        scales_of_pages_lie_by_page_and_token_within_it,
        strides_of_scales_override_the_defaults_one_by_one_and_may_broadcast,
        an_fp8_tensor_has_one_scale_or_one_for_each_head,
        types_without_scales_have_none,
        v_from_k_has_the_scales_of_k,
    };
    return run_suite_around("check_quant", tests, COUNT(tests), hear_nothing, NULL);
}

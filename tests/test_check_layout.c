#include "support/descriptor.h"
#include "support/suite.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define TWO_48 ((int64_t)1 << 48)

static const refusal stride_refusals[] = {
    {{ATTENTION(q_strides.batch, -1)}, CLFD_ERROR_STRIDE, "q_strides.batch is -1", "0 to 2^48"},
    {{ATTENTION(k_strides.token, -64)}, CLFD_ERROR_STRIDE, "k_strides.token is -64", "0 to 2^48"},
    {{ATTENTION(v_strides.head, INT64_MIN + 1)}, CLFD_ERROR_STRIDE, "v_strides.head is -9223372036854775807", "2^48"},
    {{ATTENTION(out_strides.batch, TWO_48 + 1)}, CLFD_ERROR_STRIDE, "out_strides.batch is 281474976710657", "2^48"},
    {{ATTENTION(q_strides.head, CLFD_STRIDE_BROADCAST)},
     CLFD_ERROR_STRIDE,
     "q_strides.head is CLFD_STRIDE_BROADCAST",
     "only K and V may broadcast"},
    {{ATTENTION(out_strides.token, CLFD_STRIDE_BROADCAST)},
     CLFD_ERROR_STRIDE,
     "out_strides.token is CLFD_STRIDE_BROADCAST",
     "only K and V may broadcast"},
    /* A row of out is 64 elements, its heads are 512, its queries 1536. */
    {{ATTENTION(out_strides.head, 63)}, CLFD_ERROR_STRIDE, "out_strides are [1536, 512, 63]", "would overlap"},
    {{ATTENTION(out_strides.token, 511)}, CLFD_ERROR_STRIDE, "out_strides are [1536, 511, 64]", "would overlap"},
    {{ATTENTION(out_strides.batch, 1535)}, CLFD_ERROR_STRIDE, "out_strides are [1535, 512, 64]", "would overlap"},
    {{ATTENTION(out_strides.batch, 64), ATTENTION(out_strides.token, 127), ATTENTION(out_strides.head, 381)},
     CLFD_ERROR_STRIDE,
     "out_strides are [64, 127, 381]",
     "would overlap"},
};

START_TEST(strides_are_refused_where_they_are_negative_huge_or_overlap_what_is_written)
{
    expect_refusals(stride_refusals, COUNT(stride_refusals));
}
END_TEST

static const refusal v_from_k_refusals[] = {
    {{ATTENTION(v_from_k, 1), ATTENTION(head_dim_v, 72)},
     CLFD_ERROR_V_FROM_K,
     "head_dim_v 72 and head_dim 64",
     "must fit into a row of K"},
    {{ATTENTION(v_from_k, 1), ATTENTION(v_strides.batch, 1)}, CLFD_ERROR_V_FROM_K, "v_strides", "the strides of K"},
    {{ATTENTION(v_from_k, 1), ATTENTION(v_strides.token, 128)}, CLFD_ERROR_V_FROM_K, "v_strides", "the strides of K"},
    {{ATTENTION(v_from_k, 1), ATTENTION(v_strides.head, CLFD_STRIDE_BROADCAST)},
     CLFD_ERROR_V_FROM_K,
     "v_strides",
     "the strides of K"},
    {{ATTENTION(v_from_k, 1), ATTENTION(v_type, CLFD_TYPE_F16)}, CLFD_ERROR_V_FROM_K, "v_type is f16", "must be equal"},
};

START_TEST(v_from_k_takes_no_dim_type_or_stride_of_its_own)
{
    expect_refusals(v_from_k_refusals, COUNT(v_from_k_refusals));
}
END_TEST

START_TEST(default_strides_are_those_of_the_layout)
{
    const setting token_major[MAX_SETTINGS] = {ATTENTION(head_dim_v, 32)};
    const setting head_major[MAX_SETTINGS] = {ATTENTION(head_dim_v, 32), ATTENTION(kv_layout, CLFD_LAYOUT_BHSD)};
    clfd_attention a = completed_settings(token_major);

    expect_strides(&a.q_strides, 3 * 8 * 64, 8 * 64, 64);
    expect_strides(&a.k_strides, 100 * 2 * 64, 2 * 64, 64);
    expect_strides(&a.v_strides, 100 * 2 * 32, 2 * 32, 32);
    expect_strides(&a.out_strides, 3 * 8 * 32, 8 * 32, 32);
    a = completed_settings(head_major);
    expect_strides(&a.q_strides, 3 * 8 * 64, 8 * 64, 64);
    expect_strides(&a.k_strides, 2 * 100 * 64, 64, 100 * 64);
    expect_strides(&a.v_strides, 2 * 100 * 32, 32, 100 * 32);
    expect_strides(&a.out_strides, 3 * 8 * 32, 8 * 32, 32);
}
END_TEST

START_TEST(a_stride_overrides_one_default_and_broadcast_is_a_true_zero)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(k_strides.token, 129),
                                            ATTENTION(k_strides.batch, CLFD_STRIDE_BROADCAST),
                                            ATTENTION(v_strides.head, CLFD_STRIDE_BROADCAST)};
    const clfd_attention a = completed_settings(settings);

    expect_strides(&a.k_strides, 0, 129, 64);
    expect_strides(&a.v_strides, 100 * 2 * 64, 2 * 64, 0);
}
END_TEST

START_TEST(v_from_k_gives_v_the_strides_of_k)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(v_from_k, 1), ATTENTION(head_dim_v, 32),
                                            ATTENTION(k_strides.token, 192),
                                            ATTENTION(k_strides.batch, CLFD_STRIDE_BROADCAST)};
    const clfd_attention a = completed_settings(settings);

    expect_strides(&a.k_strides, 0, 192, 64);
    expect_strides(&a.v_strides, 0, 192, 64);
    ck_assert_uint_eq(a.head_dim_v, 32);
}
END_TEST

START_TEST(default_strides_count_storage_units)
{
    const setting blocks[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_Q8_0), ATTENTION(v_type, CLFD_TYPE_INT4)};
    const setting heads_first[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_INT4), ATTENTION(v_type, CLFD_TYPE_Q4_0),
                                               ATTENTION(head_dim_v, 32), ATTENTION(kv_layout, CLFD_LAYOUT_BHSD)};
    const setting bytes[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_FP8_E5M2)};
    clfd_attention a = completed_settings(blocks);

    expect_strides(&a.k_strides, 100 * 2 * 2, 2 * 2, 2);
    expect_strides(&a.v_strides, 100 * 2 * 32, 2 * 32, 32);
    expect_strides(&a.out_strides, 3 * 8 * 64, 8 * 64, 64);
    a = completed_settings(heads_first);
    expect_strides(&a.k_strides, 2 * 100 * 32, 32, 100 * 32);
    expect_strides(&a.v_strides, 2 * 100 * 1, 1, 100 * 1);
    a = completed_settings(bytes);
    expect_strides(&a.v_strides, 100 * 2 * 64, 2 * 64, 64);
}
END_TEST

START_TEST(default_strides_of_pages_are_those_of_dense_pages)
{
    const setting tokens_first[MAX_SETTINGS] = {ATTENTION(paging, CLFD_PAGING_TABLE), ATTENTION(page_size, 16),
                                                ATTENTION(num_pages, 50)};
    const setting heads_first[MAX_SETTINGS] = {ATTENTION(paging, CLFD_PAGING_CSR), ATTENTION(page_size, 16),
                                               ATTENTION(num_pages, 50), ATTENTION(kv_layout, CLFD_LAYOUT_BHSD),
                                               ATTENTION(v_strides.batch, 999)};
    clfd_attention a = completed_settings(tokens_first);

    expect_strides(&a.k_strides, 16 * 2 * 64, 2 * 64, 64);
    expect_strides(&a.v_strides, 16 * 2 * 64, 2 * 64, 64);
    a = completed_settings(heads_first);
    expect_strides(&a.k_strides, 2 * 16 * 64, 64, 16 * 64);
    expect_strides(&a.v_strides, 999, 64, 16 * 64);
}
END_TEST

/* With (2^14 + 1) sequences 2^48 elements apart, K ends shortly after element 2^62: 4 bytes each would wrap to a small
 * number, which any buffer holds. */
static const refusal extent_refusals[] = {
    {{ATTENTION(max_batch, 1 << 24), ATTENTION(k_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "max_batch 16777216",
     "2^63"},
    {{ATTENTION(max_batch, (1 << 14) + 1), ATTENTION(k_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "max_batch 16385",
     "2^63"},
    {{ATTENTION(max_batch, (1 << 14) + 1), ATTENTION(v_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "max_batch 16385",
     "2^63"},
    {{ATTENTION(max_batch, (1 << 14) + 1), ATTENTION(q_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "max_batch 16385",
     "2^63"},
    {{ATTENTION(max_batch, (1 << 14) + 1), ATTENTION(out_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "max_batch 16385",
     "2^63"},
    {{ATTENTION(cache_batch_idx, 1), ATTENTION(num_cache_rows, (1 << 14) + 1), ATTENTION(k_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "K reaches beyond",
     "num_cache_rows 16385"},
    {{ATTENTION(paging, CLFD_PAGING_CSR), ATTENTION(page_size, 1), ATTENTION(num_pages, (1 << 14) + 1),
      ATTENTION(v_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "V reaches beyond",
     "num_pages 16385"},
    {{ATTENTION(max_batch, 1 << 24), ATTENTION(max_kv_len, 0x7fffffff), ATTENTION(num_q_heads, 65536),
      ATTENTION(num_kv_heads, 65536)},
     CLFD_ERROR_OVERFLOW,
     "max_kv_len 2147483647",
     "2^63"},
};

START_TEST(a_tensor_whose_bytes_do_not_fit_in_63_bits_is_refused)
{
    const setting last[MAX_SETTINGS] = {ATTENTION(max_batch, 1 << 13), ATTENTION(k_strides.batch, TWO_48)};

    expect_refusals(extent_refusals, COUNT(extent_refusals));
    hear_nothing();
    completed_settings(last);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        strides_are_refused_where_they_are_negative_huge_or_overlap_what_is_written,
        v_from_k_takes_no_dim_type_or_stride_of_its_own,
        default_strides_are_those_of_the_layout,
        a_stride_overrides_one_default_and_broadcast_is_a_true_zero,
        v_from_k_gives_v_the_strides_of_k,
        default_strides_count_storage_units,
        default_strides_of_pages_are_those_of_dense_pages,
        a_tensor_whose_bytes_do_not_fit_in_63_bits_is_refused,
    };
    return run_suite_around("check_layout", tests, COUNT(tests), hear_nothing, NULL);
}

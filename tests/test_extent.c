#include "plan/extent.h"
#include "support/descriptor.h"
#include "support/suite.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

START_TEST(an_extent_ends_after_the_furthest_element)
{
    const clfd_strides strides = {1000, 100, 10};
    const clfd_strides broadcast = {0, 100, 0};
    uint64_t elements = 7;

    ck_assert(clfd_tensor_extent(&strides, 3, 4, 5, 8, &elements));
    ck_assert_uint_eq(elements, 2 * 1000 + 3 * 100 + 4 * 10 + 8);
    ck_assert(clfd_tensor_extent(&broadcast, 3, 4, 5, 8, &elements));
    ck_assert_uint_eq(elements, 3 * 100 + 8);
    ck_assert(clfd_tensor_extent(&strides, 1, 1, 1, 8, &elements));
    ck_assert_uint_eq(elements, 8);
}
END_TEST

START_TEST(an_extent_without_rows_is_empty)
{
    const clfd_strides strides = {INT64_MAX, INT64_MAX, INT64_MAX};
    uint64_t elements;

    for (int axis = 0; axis < 4; axis++) {
        elements = 7;
        ck_assert(clfd_tensor_extent(&strides, axis != 0 ? 9 : 0, axis != 1 ? 9 : 0, axis != 2 ? 9 : 0,
                                     axis != 3 ? 9 : 0, &elements));
        ck_assert_uint_eq(elements, 0);
    }
}
END_TEST

START_TEST(an_extent_beyond_63_bits_is_told)
{
    const clfd_strides half = {INT64_MAX / 2, INT64_MAX / 2, 1};
    uint64_t elements;

    ck_assert(clfd_tensor_extent(&half, 2, 2, 1, 1, &elements));
    ck_assert_uint_eq(elements, INT64_MAX);
    ck_assert(!clfd_tensor_extent(&half, 2, 2, 1, 2, &elements));
    ck_assert(!clfd_tensor_extent(&half, 2, 2, 3, 1, &elements));
    ck_assert(!clfd_tensor_extent(&half, 4, 1, 1, 1, &elements));
    ck_assert(!clfd_tensor_extent(&half, UINT64_MAX, 1, 1, 1, &elements));
}
END_TEST

static const setting blocks[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_Q8_0), ATTENTION(v_type, CLFD_TYPE_INT4),
                                             ATTENTION(head_dim_v, 32)};

static uint64_t bytes_of_k(const clfd_attention *a, uint64_t batch, uint64_t tokens)
{
    uint64_t bytes = 7;
    ck_assert(clfd_kv_extent(a, &a->k_strides, a->head_dim, a->k_type, batch, tokens, &bytes));
    return bytes;
}

static uint64_t bytes_of_v(const clfd_attention *a, uint64_t batch, uint64_t tokens)
{
    uint64_t bytes = 7;
    ck_assert(clfd_kv_extent(a, &a->v_strides, a->head_dim_v, a->v_type, batch, tokens, &bytes));
    return bytes;
}

/* K has 2 blocks of 34 bytes per row and strides 400, 4, 2; V has 16 bytes and strides 3200, 32, 16. */
START_TEST(a_cache_ends_after_the_last_row_of_the_last_sequence)
{
    const clfd_attention a = completed_settings(blocks);

    ck_assert_uint_eq(bytes_of_k(&a, 2, 100), 2 * 100 * 2 * 2 * 34);
    ck_assert_uint_eq(bytes_of_v(&a, 2, 100), 2 * 100 * 2 * 16);
    ck_assert_uint_eq(bytes_of_k(&a, 1, 10), 10 * 4 * 34);
    ck_assert_uint_eq(bytes_of_v(&a, 2, 1), 3200 + 16 + 16);
    ck_assert_uint_eq(bytes_of_k(&a, 0, 100), 0);
    ck_assert_uint_eq(bytes_of_k(&a, 2, 0), 0);
}
END_TEST

START_TEST(an_index_may_choose_any_row_of_the_cache_and_a_shared_one_has_one)
{
    clfd_attention a = completed_settings(blocks);

    a.num_cache_rows = 5;
    ck_assert_uint_eq(bytes_of_k(&a, 1, 100), 400 * 34);
    ck_assert_uint_eq(clfd_cache_rows(&a, 1), 1);
    a.cache_batch_idx = 1;
    ck_assert_uint_eq(bytes_of_k(&a, 1, 100), 5 * 400 * 34);
    ck_assert_uint_eq(clfd_cache_rows(&a, 1), 5);
    a.shared_kv = 1;
    ck_assert_uint_eq(bytes_of_k(&a, 2, 100), 5 * 400 * 34);
    a.cache_batch_idx = 0;
    ck_assert_uint_eq(bytes_of_k(&a, 2, 100), 400 * 34);
    ck_assert_uint_eq(bytes_of_k(&a, 0, 100), 0);
}
END_TEST

START_TEST(any_page_may_be_used_up_to_its_last_token_or_the_longest_sequence)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_F16), ATTENTION(paging, CLFD_PAGING_CSR),
                                            ATTENTION(page_size, 16), ATTENTION(num_pages, 9)};
    const clfd_attention a = completed_settings(settings);

    ck_assert_uint_eq(bytes_of_k(&a, 1, 100), 9 * 16 * 2 * 64 * 2);
    ck_assert_uint_eq(bytes_of_k(&a, 2, 16), 9 * 16 * 2 * 64 * 2);
    ck_assert_uint_eq(bytes_of_k(&a, 1, 3), (8 * 16 + 3) * 2 * 64 * 2);
    ck_assert_uint_eq(bytes_of_k(&a, 0, 100), 0);
}
END_TEST

START_TEST(bytes_beyond_63_bits_are_told)
{
    clfd_attention a = completed_settings(blocks);
    uint64_t bytes;

    a.k_strides.batch = (int64_t)1 << 57; /* 2^62 and a bit for 33 rows, at 34 bytes each */
    ck_assert(!clfd_kv_extent(&a, &a.k_strides, 64, CLFD_TYPE_Q8_0, 33, 1, &bytes));
    ck_assert(!clfd_kv_extent(&a, &a.k_strides, 64, CLFD_TYPE_F16, 33, 1, &bytes));
    ck_assert(clfd_kv_extent(&a, &a.k_strides, 64, CLFD_TYPE_INT8, 33, 1, &bytes));
    ck_assert_uint_eq(bytes, ((uint64_t)1 << 62) + 2 + 64);
}
END_TEST

static uint64_t bytes_of_scales(const clfd_attention *a, const clfd_quant *quant, uint64_t batch, uint64_t tokens)
{
    uint64_t bytes = 7;
    ck_assert(clfd_scale_extent(a, quant, 64, batch, tokens, &bytes));
    return bytes;
}

START_TEST(scales_end_after_the_last_group_of_the_last_row)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(k_quant.group, 16),
                                            ATTENTION(v_quant.scale_type, CLFD_TYPE_F16),
                                            ATTENTION(k_quant.group_stride, 1000)};
    const setting fp8[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_FP8_E4M3), ATTENTION(v_quant.strides.head, 1)};
    const setting paged[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_INT4), ATTENTION(paging, CLFD_PAGING_TABLE),
                                         ATTENTION(page_size, 16), ATTENTION(num_pages, 9)};
    clfd_attention a = completed_settings(settings);

    /* K: strides 800, 8, 4. */
    ck_assert_uint_eq(bytes_of_scales(&a, &a.k_quant, 2, 100), (800 + 99 * 8 + 4 + 3 * 1000 + 1) * 4);
    ck_assert_uint_eq(bytes_of_scales(&a, &a.v_quant, 2, 100), 2 * 100 * 2 * 2);
    ck_assert_uint_eq(bytes_of_scales(&a, &a.v_quant, 0, 100), 0);
    a = completed_settings(fp8);
    ck_assert_uint_eq(bytes_of_scales(&a, &a.k_quant, 2, 100), 4);
    ck_assert_uint_eq(bytes_of_scales(&a, &a.v_quant, 2, 100), 2 * 4);
    a = completed_settings(paged);
    ck_assert_uint_eq(bytes_of_scales(&a, &a.k_quant, 1, 100), 9 * 16 * 2 * 4);
    a = completed_settings(blocks);
    ck_assert_uint_eq(bytes_of_scales(&a, &a.k_quant, 2, 100), 0);
}
END_TEST

START_TEST(a_bias_and_a_mask_end_after_the_last_key_of_the_last_query)
{
    const setting dense[MAX_SETTINGS] = {ATTENTION(bias_type, CLFD_TYPE_F16), ATTENTION(mask, CLFD_MASK_BOOL)};
    const setting thin[MAX_SETTINGS] = {ATTENTION(bias_type, CLFD_TYPE_F32), ATTENTION(bias_strides.head, 500),
                                        ATTENTION(bias_strides.key, 3), ATTENTION(mask, CLFD_MASK_TREE)};
    clfd_attention a = completed_settings(dense);
    uint64_t bytes;

    ck_assert(clfd_bias_extent(&a, 2, 100, &bytes));
    ck_assert_uint_eq(bytes, 2 * 8 * 3 * 100 * 2);
    ck_assert(clfd_bias_extent(&a, 1, 10, &bytes));
    ck_assert_uint_eq(bytes, (7 * 300 + 2 * 100 + 10) * 2);
    ck_assert(clfd_mask_extent(&a, 2, 10, &bytes));
    ck_assert_uint_eq(bytes, 300 + 200 + 10);
    a = completed_settings(thin);
    ck_assert(clfd_bias_extent(&a, 2, 100, &bytes));
    ck_assert_uint_eq(bytes, (7 * 500 + 99 * 3 + 1) * 4);
    ck_assert(clfd_mask_extent(&a, 2, 10, &bytes));
    ck_assert_uint_eq(bytes, 2 * 3 * 4);
    a = completed_settings(blocks);
    ck_assert(clfd_bias_extent(&a, 2, 100, &bytes) && bytes == 0);
    ck_assert(clfd_mask_extent(&a, 2, 100, &bytes) && bytes == 0);
}
END_TEST

START_TEST(a_block_table_ends_after_the_last_page_of_the_last_row)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(paging, CLFD_PAGING_TABLE), ATTENTION(page_size, 16),
                                            ATTENTION(num_pages, 9), ATTENTION(block_table_stride, 20)};
    clfd_attention a = completed_settings(settings);
    uint64_t bytes;

    ck_assert(clfd_block_table_extent(&a, 2, 100, &bytes) && bytes == (20 + 7) * 4);
    ck_assert(clfd_block_table_extent(&a, 2, 96, &bytes) && bytes == (20 + 6) * 4);
    ck_assert(clfd_block_table_extent(&a, 1, 97, &bytes) && bytes == 7 * 4);
    ck_assert(clfd_block_table_extent(&a, 0, 97, &bytes) && bytes == 0);
    a.cache_batch_idx = 1;
    a.num_cache_rows = 3;
    ck_assert(clfd_block_table_extent(&a, 1, 100, &bytes) && bytes == (2 * 20 + 7) * 4);
    a.paging = CLFD_PAGING_CSR;
    ck_assert(clfd_block_table_extent(&a, 1, 100, &bytes) && bytes == 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        an_extent_ends_after_the_furthest_element,
        an_extent_without_rows_is_empty,
        an_extent_beyond_63_bits_is_told,
        a_cache_ends_after_the_last_row_of_the_last_sequence,
        an_index_may_choose_any_row_of_the_cache_and_a_shared_one_has_one,
        any_page_may_be_used_up_to_its_last_token_or_the_longest_sequence,
        bytes_beyond_63_bits_are_told,
        scales_end_after_the_last_group_of_the_last_row,
        a_bias_and_a_mask_end_after_the_last_key_of_the_last_query,
        a_block_table_ends_after_the_last_page_of_the_last_row,
    };
    return run_suite_around("extent", tests, COUNT(tests), hear_nothing, NULL);
}

#include "support/descriptor.h"
#include "support/suite.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define TWO_48 ((int64_t)1 << 48)

/* ---- Element types ----------------------------------------------------------------------------------------------- */

START_TEST(a_type_that_is_not_given_is_the_one_that_the_field_names)
{
    const setting of_q[MAX_SETTINGS] = {ATTENTION(q_type, CLFD_TYPE_F16)};
    const setting of_k[MAX_SETTINGS] = {ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(k_type, CLFD_TYPE_BF16)};
    clfd_attention a = completed_settings(of_q);

    ck_assert_int_eq(a.k_type, CLFD_TYPE_F16);
    ck_assert_int_eq(a.v_type, CLFD_TYPE_F16);
    ck_assert_int_eq(a.out_type, CLFD_TYPE_F16);
    a = completed_settings(of_k);
    ck_assert_int_eq(a.v_type, CLFD_TYPE_BF16);
    ck_assert_int_eq(a.out_type, CLFD_TYPE_F16);
}
END_TEST

static const refusal type_refusals[] = {
    {{ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(v_type, CLFD_TYPE_F16)},
     CLFD_ERROR_TYPE,
     "v_type is f16 and k_type is int8",
     "must be equal"},
    {{ATTENTION(v_type, CLFD_TYPE_Q4_0)}, CLFD_ERROR_TYPE, "v_type is q4_0 and k_type is f32", "must be equal"},
    {{ATTENTION(v_from_k, 1), ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(v_type, CLFD_TYPE_INT4)},
     CLFD_ERROR_V_FROM_K,
     "v_type is int4 and k_type is int8",
     "must be equal"},
    {{ATTENTION(head_dim, 48), ATTENTION(k_type, CLFD_TYPE_Q8_0)},
     CLFD_ERROR_HEAD_DIM,
     "head_dim is 48",
     "k_type of q8_0 it must be a multiple of 32"},
    {{ATTENTION(head_dim_v, 40), ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(v_type, CLFD_TYPE_Q4_0)},
     CLFD_ERROR_HEAD_DIM,
     "head_dim_v is 40",
     "v_type of q4_0 it must be a multiple of 32"},
    {{ATTENTION(v_from_k, 1), ATTENTION(head_dim_v, 48), ATTENTION(k_type, CLFD_TYPE_Q8_0)},
     CLFD_ERROR_HEAD_DIM,
     "head_dim_v is 48",
     "a multiple of 32"},
};

START_TEST(a_plain_type_stands_beside_itself_only_and_blocks_are_whole)
{
    expect_refusals(type_refusals, COUNT(type_refusals));
}
END_TEST

START_TEST(quantised_types_of_k_and_v_combine_freely)
{
    for (int k = CLFD_TYPE_INT8; k <= CLFD_TYPE_Q4_0; k++)
        for (int v = CLFD_TYPE_INT8; v <= CLFD_TYPE_Q4_0; v++) {
            const setting settings[MAX_SETTINGS] = {ATTENTION(k_type, k), ATTENTION(v_type, v)};
            const clfd_attention a = completed_settings(settings);
            ck_assert_int_eq(a.k_type, k);
            ck_assert_int_eq(a.v_type, v);
            ck_assert_int_eq(a.q_type, CLFD_TYPE_F32);
        }
}
END_TEST

START_TEST(v_of_a_quantised_k_is_of_the_same_type)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_Q8_0), ATTENTION(v_from_k, 1),
                                            ATTENTION(head_dim_v, 32)};

    ck_assert_int_eq(completed_settings(settings).v_type, CLFD_TYPE_Q8_0);
}
END_TEST

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static const refusal row_refusals[] = {
    {{ATTENTION(num_cache_rows, 1)}, CLFD_ERROR_CACHE_ROWS, "num_cache_rows is 1", "at least max_batch, 2"},
    {{ATTENTION(num_cache_rows, 0x80000000)}, CLFD_ERROR_CACHE_ROWS, "num_cache_rows is 2147483648", "2147483647"},
    {{ATTENTION(num_cache_rows, 0xffffffff), ATTENTION(cache_batch_idx, 1)},
     CLFD_ERROR_CACHE_ROWS,
     "num_cache_rows is 4294967295",
     "2147483647"},
};

START_TEST(the_cache_has_a_row_for_each_sequence_unless_an_index_chooses)
{
    expect_refusals(row_refusals, COUNT(row_refusals));
}
END_TEST

START_TEST(the_cache_has_as_many_rows_as_there_are_sequences_unless_told)
{
    static const struct {
        setting settings[MAX_SETTINGS];
        uint32_t rows;
    } cases[] = {
        {{{0}}, 2},
        {{ATTENTION(num_cache_rows, 2)}, 2},
        {{ATTENTION(num_cache_rows, 7)}, 7},
        {{ATTENTION(cache_batch_idx, 1)}, 2},
        {{ATTENTION(cache_batch_idx, 1), ATTENTION(num_cache_rows, 1)}, 1},
        {{ATTENTION(cache_batch_idx, 1), ATTENTION(num_cache_rows, 0x7fffffff)}, 0x7fffffff},
        {{ATTENTION(shared_kv, 1)}, 1},
        {{ATTENTION(shared_kv, 1), ATTENTION(num_cache_rows, 1)}, 1},
        {{ATTENTION(shared_kv, 1), ATTENTION(cache_batch_idx, 1)}, 2},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_uint_eq(completed_settings(cases[i].settings).num_cache_rows, cases[i].rows);
}
END_TEST

/* ---- Pages ------------------------------------------------------------------------------------------------------- */

#define TABLE(size, pages) ATTENTION(paging, CLFD_PAGING_TABLE), ATTENTION(page_size, size), ATTENTION(num_pages, pages)
#define CSR(size, pages) ATTENTION(paging, CLFD_PAGING_CSR), ATTENTION(page_size, size), ATTENTION(num_pages, pages)

static const refusal page_refusals[] = {
    {{ATTENTION(paging, 3)}, CLFD_ERROR_PAGING, "paging is 3", "a clfd_paging"},
    {{ATTENTION(page_size, 16)}, CLFD_ERROR_PAGING, "page_size is 16", "without paging it must be 0"},
    {{ATTENTION(num_pages, 9)}, CLFD_ERROR_PAGING, "num_pages is 9", "without paging it must be 0"},
    {{ATTENTION(block_table_stride, 7)}, CLFD_ERROR_PAGING, "block_table_stride is 7", "it must be 0"},
    {{TABLE(0, 9)}, CLFD_ERROR_PAGING, "page_size is 0", "1 to 2147483647"},
    {{TABLE(16, 0)}, CLFD_ERROR_PAGING, "num_pages is 0", "1 to 2147483647"},
    {{TABLE(0x80000000, 9)}, CLFD_ERROR_PAGING, "page_size is 2147483648", "1 to 2147483647"},
    {{TABLE(16, 0x80000000)}, CLFD_ERROR_PAGING, "num_pages is 2147483648", "1 to 2147483647"},
    {{CSR(0, 9)}, CLFD_ERROR_PAGING, "page_size is 0", "1 to 2147483647"},
    {{CSR(16, 0)}, CLFD_ERROR_PAGING, "num_pages is 0", "1 to 2147483647"},
    {{CSR(16, 9), ATTENTION(block_table_stride, 7)}, CLFD_ERROR_PAGING, "block_table_stride is 7", "it must be 0"},
    {{TABLE(16, 9), ATTENTION(block_table_stride, 6)}, CLFD_ERROR_PAGING, "block_table_stride is 6", "it must be 7"},
    {{TABLE(16, 9), ATTENTION(block_table_stride, -7)}, CLFD_ERROR_PAGING, "block_table_stride is -7", "it must be 7"},
    {{TABLE(16, 9), ATTENTION(max_batch, 1), ATTENTION(block_table_stride, -1)},
     CLFD_ERROR_PAGING,
     "block_table_stride is -1",
     "it must be 7"},
    {{TABLE(16, 9), ATTENTION(block_table_stride, TWO_48 + 1)},
     CLFD_ERROR_PAGING,
     "block_table_stride is 281474976710657",
     "to 2^48"},
    {{TABLE(16, 9), ATTENTION(block_table_stride, TWO_48), ATTENTION(cache_batch_idx, 1),
      ATTENTION(num_cache_rows, (1 << 13) + 1)},
     CLFD_ERROR_OVERFLOW,
     "block_table reaches beyond 2^63 bytes",
     "num_cache_rows 8193"},
};

START_TEST(pages_and_their_table_have_sizes_that_fit_the_sequences)
{
    expect_refusals(page_refusals, COUNT(page_refusals));
}
END_TEST

START_TEST(a_row_of_the_block_table_holds_the_longest_sequence_unless_told)
{
    static const struct {
        setting settings[MAX_SETTINGS];
        int64_t stride;
    } cases[] = {
        {{TABLE(16, 9)}, 7},
        {{TABLE(10, 9)}, 10},
        {{TABLE(1, 0x7fffffff)}, 100},
        {{TABLE(100, 1)}, 1},
        {{TABLE(0x7fffffff, 1)}, 1},
        {{TABLE(16, 9), ATTENTION(block_table_stride, 7)}, 7},
        {{TABLE(16, 9), ATTENTION(block_table_stride, TWO_48)}, TWO_48},
        {{TABLE(16, 9), ATTENTION(max_batch, 1), ATTENTION(block_table_stride, 1)}, 1},
        {{TABLE(16, 9), ATTENTION(shared_kv, 1), ATTENTION(block_table_stride, 1)}, 1},
        {{CSR(16, 9)}, 0},
        {{CSR(1, 1)}, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_int_eq(completed_settings(cases[i].settings).block_table_stride, cases[i].stride);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_type_that_is_not_given_is_the_one_that_the_field_names,
        a_plain_type_stands_beside_itself_only_and_blocks_are_whole,
        quantised_types_of_k_and_v_combine_freely,
        v_of_a_quantised_k_is_of_the_same_type,
        the_cache_has_a_row_for_each_sequence_unless_an_index_chooses,
        the_cache_has_as_many_rows_as_there_are_sequences_unless_told,
        pages_and_their_table_have_sizes_that_fit_the_sequences,
        a_row_of_the_block_table_holds_the_longest_sequence_unless_told,
    };
    return run_suite_around("check_cache", tests, COUNT(tests), hear_nothing, NULL);
}

/* Where the reference finds a row of K and V: cache rows, pages, shared caches; and what a quantised row is worth. */
#include "support/compare.h"
#include "support/host_call.h"
#include "support/random.h"
#include "support/suite.h"
#include <clfd/cache.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static uint32_t status;

/* ---- Rows of the cache ------------------------------------------------------------------------------------------- */

START_TEST(an_index_gives_a_sequence_the_cache_row_that_it_names)
{
    static const int32_t rows[3] = {2, 0, 2}, lengths[3] = {5, 3, 1};
    static const size_t row_size = 7 * 2 * 8;
    static float k_rows[4 * 7 * 2 * 8], v_rows[4 * 7 * 2 * 8];

    set_problem(3, 1, 4, 2, 8, 8, 7);
    fill(k_rows, COUNT(k_rows), NAN);
    fill(v_rows, COUNT(v_rows), NAN);
    memcpy(k + 2 * row_size, k, row_size * sizeof *k); /* sequences 0 and 2 share row 2 */
    memcpy(v + 2 * row_size, v, row_size * sizeof *v);
    for (size_t b = 0; b < 2; b++) {
        memcpy(k_rows + (size_t)rows[b] * row_size, k + b * row_size, row_size * sizeof *k);
        memcpy(v_rows + (size_t)rows[b] * row_size, v + b * row_size, row_size * sizeof *v);
    }
    tensors.kv_lens = lengths;
    keep();
    attention.cache_batch_idx = 1;
    attention.num_cache_rows = 4;
    tensors.cache_batch_idx = rows;
    tensors.k = k_rows;
    tensors.v = v_rows;
    tensors.status = &status;
    status = 0x80;
    assert_kept();
    ck_assert_uint_eq(status, 0x80);
}
END_TEST

START_TEST(a_row_that_does_not_exist_shows_no_key_and_is_reported)
{
    static const int32_t bad[] = {-1, 2, INT32_MIN, INT32_MAX};
    static const float sinks[2] = {1.5f, -INFINITY};

    for (size_t i = 0; i < COUNT(bad); i++) {
        const int32_t rows[2] = {bad[i], 1};
        set_counting_problem(2, 1, 2, 6);
        attention.cache_batch_idx = attention.sinks = 1;
        tensors.cache_batch_idx = rows;
        tensors.sinks = sinks;
        tensors.status = &status;
        status = CLFD_FLAG_CAPACITY;
        run();
        assert_row(0, 0.0, 1.5);
        assert_row(1, 0.0, -INFINITY);
        assert_count(3, 6);
        ck_assert_uint_eq(status, CLFD_FLAG_CAPACITY | CLFD_FLAG_CACHE_ROW);
        tensors.status = NULL;
        run();
        assert_count(3, 6);
    }
}
END_TEST

/* One element of kv_lens, kv_start and cache_batch_idx, whatever the batch; positions and masks of each sequence. */
START_TEST(a_shared_cache_is_one_sequence_for_all)
{
    static const int32_t lengths[3] = {6, 6, 6}, starts[3] = {1, 1, 1}, positions[6] = {3, 4, 9, 0, 2, 5};
    static const float slopes[2] = {0.25f, 0.5f};
    static const int32_t row = 2;
    static const size_t row_size = 8 * 8;

    set_problem(3, 2, 2, 1, 8, 8, 8);
    for (size_t b = 1; b < 3; b++) {
        memcpy(k + b * row_size, k, row_size * sizeof *k);
        memcpy(v + b * row_size, v, row_size * sizeof *v);
    }
    attention.kv_start = attention.query_positions = attention.causal = attention.alibi = 1;
    attention.window = 5;
    tensors.alibi = slopes;
    tensors.kv_lens = lengths;
    tensors.kv_start = starts;
    tensors.query_positions = positions;
    keep();
    static int32_t one_length, one_start;
    one_length = 6;
    one_start = 1;
    tensors.kv_lens = &one_length;
    tensors.kv_start = &one_start;
    attention.shared_kv = 1;
    fill(k + row_size, 2 * row_size, NAN);
    fill(v + row_size, 2 * row_size, NAN);
    assert_kept();
    memmove(k + 2 * row_size, k, row_size * sizeof *k);
    memmove(v + 2 * row_size, v, row_size * sizeof *v);
    fill(k, row_size, NAN);
    fill(v, row_size, NAN);
    attention.cache_batch_idx = 1; /* of three rows */
    tensors.cache_batch_idx = &row;
    assert_kept();
}
END_TEST

/* ---- Pages ------------------------------------------------------------------------------------------------------- */

enum { NUM_PAGES = 150, MAX_PAGE = 200 };
static float k_pages[1 << 20], v_pages[1 << 20];
static int32_t table[1024];

/* Copies the first lengths[b] tokens of each sequence to pages in a random order, in memory that is NaN elsewhere, and
 * fills rows of the block table; entries that no key needs are garbage. */
static void cut_into_pages(const int32_t *lengths, uint32_t page_size, size_t table_stride, uint64_t seed)
{
    const size_t k_row = (size_t)attention.num_kv_heads * attention.head_dim;
    const size_t v_row = (size_t)attention.num_kv_heads * attention.head_dim_v;
    random_source source = {seed};
    int32_t order[NUM_PAGES];
    size_t next = 0;

    for (int i = 0; i < NUM_PAGES; i++)
        order[i] = i;
    for (uint32_t i = NUM_PAGES - 1; i > 0; i--) {
        const uint32_t other = random_below(&source, i + 1);
        const int32_t page = order[i];
        order[i] = order[other];
        order[other] = page;
    }
    fill(k_pages, COUNT(k_pages), NAN);
    fill(v_pages, COUNT(v_pages), NAN);
    for (size_t i = 0; i < COUNT(table); i++)
        table[i] = (int32_t)random_bits(&source);
    for (size_t b = 0; b < attention.max_batch; b++)
        for (size_t j = 0; j < (size_t)lengths[b]; j++) {
            if (j % page_size == 0) {
                ck_assert_uint_lt(next, NUM_PAGES);
                table[b * table_stride + j / page_size] = order[next++];
            }
            const size_t place = (size_t)table[b * table_stride + j / page_size] * page_size + j % page_size;
            ck_assert_uint_le((place + 1) * k_row, COUNT(k_pages));
            memcpy(k_pages + place * k_row, k + (b * attention.max_kv_len + j) * k_row, k_row * sizeof *k);
            memcpy(v_pages + place * v_row, v + (b * attention.max_kv_len + j) * v_row, v_row * sizeof *v);
        }
    attention.paging = CLFD_PAGING_TABLE;
    attention.page_size = page_size;
    attention.num_pages = NUM_PAGES;
    attention.block_table_stride = (int64_t)table_stride;
    tensors.k = k_pages;
    tensors.v = v_pages;
    tensors.block_table = table;
    tensors.status = &status;
    status = 0;
}

START_TEST(pages_of_any_size_in_any_order_give_the_same_bits)
{
    static const int32_t lengths[3] = {48, 17, 50};
    static const uint32_t sizes[] = {1, 3, 16, 48, MAX_PAGE};

    for (size_t i = 0; i < COUNT(sizes); i++) {
        set_problem(3, 2, 4, 2, 8, 16, 50);
        attention.causal = 1;
        tensors.kv_lens = lengths;
        keep();
        cut_into_pages(lengths, sizes[i], (50 + sizes[i] - 1) / sizes[i] + 2, i);
        assert_kept();
        ck_assert_uint_eq(status, 0);
    }
}
END_TEST

START_TEST(the_default_table_has_a_row_of_pages_for_the_longest_sequence)
{
    static const int32_t lengths[3] = {48, 17, 50};

    set_problem(3, 1, 4, 2, 8, 16, 50);
    tensors.kv_lens = lengths;
    keep();
    cut_into_pages(lengths, 16, 4, 5);
    attention.block_table_stride = 0;
    assert_kept();
}
END_TEST

/* Page p at element 300 p; then K with its heads outside its tokens. */
START_TEST(pages_have_strides_of_their_own_and_head_major_ones_are_a_layout)
{
    static const int32_t lengths[2] = {20, 11};
    static float k_far[NUM_PAGES * 300];

    set_problem(2, 1, 4, 2, 8, 8, 20);
    tensors.kv_lens = lengths;
    keep();
    cut_into_pages(lengths, 4, 5, 9);
    fill(k_far, COUNT(k_far), NAN);
    for (size_t i = 0; i < (size_t)NUM_PAGES * 4 * 2; i++) /* [page][token][head] */
        memcpy(k_far + i / 8 * 300 + i / 2 % 4 * 9 + i % 2 * 100, k_pages + i * 8, 8 * sizeof *k);
    attention.k_strides = (clfd_strides){300, 9, 100};
    tensors.k = k_far;
    assert_kept();
    attention.k_strides = (clfd_strides){0};
    attention.kv_layout = CLFD_LAYOUT_BHSD;
    attention.v_strides = (clfd_strides){4 * 2 * 8, 2 * 8, 8}; /* as it lies */
    fill(k_far, COUNT(k_far), NAN);
    for (size_t i = 0; i < (size_t)NUM_PAGES * 4 * 2; i++)
        memcpy(k_far + (i / 8 * 8 + i % 2 * 4 + i / 2 % 4) * 8, k_pages + i * 8, 8 * sizeof *k);
    assert_kept();
}
END_TEST

START_TEST(sequences_may_share_pages)
{
    static const int32_t lengths[2] = {20, 20}, own[2] = {20, 12};

    set_problem(2, 1, 2, 1, 8, 8, 20);
    memcpy(k + 20 * 8, k, 12 * 8 * sizeof *k); /* the same first 12 keys */
    memcpy(v + 20 * 8, v, 12 * 8 * sizeof *v);
    tensors.kv_lens = lengths;
    keep();
    cut_into_pages(lengths, 4, 5, 1);
    for (size_t page = 0; page < 3; page++)
        table[5 + page] = table[page];
    assert_kept();
    tensors.kv_lens = own;
    run();
    ck_assert(lse[0] == kept_lse[0]);
}
END_TEST

START_TEST(a_cache_row_chooses_the_row_of_the_table)
{
    static const int32_t lengths[3] = {20, 9, 14}, rows[3] = {1, 2, 0};

    set_problem(3, 1, 2, 1, 8, 8, 20);
    tensors.kv_lens = lengths;
    keep();
    cut_into_pages(lengths, 4, 5, 3);
    static int32_t turned[15];
    for (size_t b = 0; b < 3; b++)
        memcpy(turned + rows[b] * 5, table + b * 5, 5 * sizeof *table);
    attention.cache_batch_idx = 1;
    tensors.cache_batch_idx = rows;
    tensors.block_table = turned;
    assert_kept();
}
END_TEST

START_TEST(a_shared_cache_uses_the_first_row_of_the_table)
{
    static const int32_t lengths[2] = {10, 10};

    set_problem(2, 1, 2, 1, 8, 8, 20);
    memcpy(k + 20 * 8, k, 10 * 8 * sizeof *k);
    memcpy(v + 20 * 8, v, 10 * 8 * sizeof *v);
    tensors.kv_lens = lengths;
    keep();
    cut_into_pages(lengths, 4, 5, 3);
    for (size_t i = 5; i < 10; i++)
        table[i] = -1;
    attention.shared_kv = 1;
    assert_kept();
    ck_assert_uint_eq(status, 0);
}
END_TEST

/* ---- CSR --------------------------------------------------------------------------------------------------------- */

START_TEST(csr_rows_follow_one_another)
{
    static const int32_t lengths[3] = {9, 0, 20};
    static const int32_t indptr[4] = {2, 5, 5, 10};
    static int32_t indices[10];

    set_problem(3, 1, 2, 1, 8, 8, 20);
    tensors.kv_lens = lengths;
    keep();
    cut_into_pages(lengths, 4, 5, 3);
    indices[0] = indices[1] = -5;
    memcpy(indices + 2, table, 3 * sizeof *table);
    memcpy(indices + 5, table + 10, 5 * sizeof *table);
    attention.paging = CLFD_PAGING_CSR;
    attention.block_table_stride = 0;
    tensors.block_table = indices;
    tensors.page_indptr = indptr;
    tensors.num_page_indices = 10;
    assert_kept();
    ck_assert_uint_eq(status, 0);
}
END_TEST

START_TEST(an_entry_past_its_csr_row_or_the_table_hides_its_keys_and_is_reported)
{
    static const struct {
        int32_t indptr[3];
        uint32_t num_page_indices;
        unsigned counts[2]; /* of 20 keys in pages of 4 */
    } cases[] = {
        {{0, 5, 10}, 10, {20, 20}},
        {{0, 2, 7}, 10, {8, 20}},  /* the first row is short */
        {{0, 5, 10}, 8, {20, 12}}, /* the table is */
        {{0, 5, 10}, 0, {0, 0}},
        {{-1, 4, 9}, 10, {16, 20}}, /* the entry before the table */
        {{5, 5, 3}, 10, {0, 0}},
        {{INT32_MAX, INT32_MAX, INT32_MIN}, 10, {0, 0}},
        {{INT32_MIN, INT32_MAX, INT32_MAX}, 10, {0, 0}},
    };
    static const int32_t indices[10] = {0, 1, 2, 3, 4, 4, 3, 2, 1, 0};

    for (size_t i = 0; i < COUNT(cases); i++) {
        set_counting_problem(2, 1, 1, 20);
        attention.paging = CLFD_PAGING_CSR;
        attention.page_size = 4;
        attention.num_pages = 5;
        tensors.block_table = indices;
        tensors.page_indptr = cases[i].indptr;
        tensors.num_page_indices = cases[i].num_page_indices;
        tensors.status = &status;
        status = 0;
        run();
        for (size_t b = 0; b < 2; b++)
            assert_count(b, cases[i].counts[b]);
        ck_assert_uint_eq(status, i == 0 ? 0 : CLFD_FLAG_PAGE);
    }
}
END_TEST

/* ---- Pages that do not exist ------------------------------------------------------------------------------------- */

START_TEST(a_needed_page_that_does_not_exist_hides_its_keys_and_is_reported)
{
    static const int32_t bad[] = {-1, 5, INT32_MIN, INT32_MAX}, length = 18;

    for (size_t i = 0; i < COUNT(bad); i++) {
        const int32_t pages[5] = {3, bad[i], 0, 1, 4}, last[5] = {3, 1, 0, 2, bad[i]};
        set_counting_problem(1, 1, 2, 20);
        attention.paging = CLFD_PAGING_TABLE;
        attention.page_size = 4;
        attention.num_pages = 5;
        tensors.kv_lens = &length;
        tensors.block_table = pages;
        tensors.status = &status;
        status = 0;
        run();
        assert_count(0, 14);
        assert_count(1, 14);
        ck_assert_uint_eq(status, CLFD_FLAG_PAGE);
        tensors.block_table = last;
        run();
        assert_count(0, 16);
    }
}
END_TEST

/* kv_len 20 in pages of 4: entry 0 is before the start or the window, 4 is past the length; entry 1 is masked, which
 * does not make it unneeded. */
START_TEST(only_pages_in_the_range_of_a_row_are_needed_whatever_its_mask)
{
    static const struct {
        uint32_t window, causal;
        int32_t start, length;
        int bad;
        uint32_t status;
    } cases[] = {
        {0, 0, 0, 16, 4, 0},
        {0, 0, 0, 17, 4, CLFD_FLAG_PAGE},
        {0, 0, 4, 20, 0, 0},
        {0, 0, 3, 20, 0, CLFD_FLAG_PAGE},
        {15, 0, 0, 20, 0, 0}, /* positions 18 and 19: keys from 4 */
        {16, 0, 0, 20, 0, CLFD_FLAG_PAGE},
        {0, 1, 0, 20, 4, CLFD_FLAG_PAGE},
        {0, 0, 0, 20, 1, CLFD_FLAG_PAGE},
        {0, 0, 0, 0, 0, 0},
    };
    static uint8_t mask[20];

    for (size_t i = 0; i < COUNT(cases); i++) {
        int32_t pages[5] = {4, 3, 2, 1, 0};
        pages[cases[i].bad] = -7;
        set_counting_problem(1, 2, 1, 20);
        for (int j = 0; j < 20; j++)
            mask[j] = j / 4 != 1;
        attention.mask = CLFD_MASK_BOOL;
        attention.mask_strides.key = 1;
        attention.window = cases[i].window;
        attention.causal = cases[i].causal;
        attention.kv_start = 1;
        attention.paging = CLFD_PAGING_TABLE;
        attention.page_size = 4;
        attention.num_pages = 5;
        tensors.mask = mask;
        tensors.kv_start = &cases[i].start;
        tensors.kv_lens = &cases[i].length;
        tensors.block_table = pages;
        tensors.status = &status;
        status = 0;
        run();
        EXPECT(status == cases[i].status, "case %zu: status %u", i, status);
    }
}
END_TEST

/* Queries that see keys far apart do not need the pages between. */
START_TEST(pages_between_the_ranges_of_two_queries_are_not_needed)
{
    static const int32_t positions[2] = {2, 19}, pages[5] = {0, 9, 9, 9, 1};

    set_counting_problem(1, 2, 1, 20);
    attention.causal = attention.query_positions = 1;
    attention.window = 3;
    attention.paging = CLFD_PAGING_TABLE;
    attention.page_size = 4;
    attention.num_pages = 2;
    tensors.query_positions = positions;
    tensors.block_table = pages;
    tensors.status = &status;
    status = 0;
    run();
    assert_count(0, 3);
    assert_count(1, 3);
    ck_assert_uint_eq(status, 0);
}
END_TEST

/* ---- Quantised K and V ------------------------------------------------------------------------------------------- */

static uint8_t k_codes[1 << 18], v_codes[1 << 18];
static float k_scales[1 << 16], v_scales[1 << 16], k_zeros[1 << 16], v_zeros[1 << 16];

/* Random codes for rows of a tensor with dense scales, and in `values` what they are worth. Scales are powers of two and
 * zeros small integers, so that every value is exact. */
static void draw_codes(random_source *source, clfd_type type, size_t rows, uint32_t dim, uint32_t group, uint8_t *codes,
                       float *scales, float *zeros, float *values)
{
    const size_t bytes = dim / clfd_type_elements(type) * clfd_type_size(type), groups = dim / group;

    for (size_t i = 0; i < rows * bytes; i++)
        do
            codes[i] = (uint8_t)random_bits(source);
        while ((type == CLFD_TYPE_FP8_E4M3 && (codes[i] & 127) > 120) ||
               (type == CLFD_TYPE_FP8_E5M2 && (codes[i] & 127) > 75));
    for (size_t i = 0; i < rows * groups; i++) {
        scales[i] = ldexpf(1.0f, -(int)random_below(source, 5) - (type == CLFD_TYPE_FP8_E4M3 ? 8 : 5));
        zeros[i] = (float)((int)random_below(source, 9) - 4);
    }
    for (size_t row = 0; row < rows; row++) {
        for (size_t block = 0; type >= CLFD_TYPE_Q8_0 && block < dim / 32; block++) {
            const uint16_t half = (uint16_t)(0x2000 + random_below(source, 0x400)); /* 2^-7 .. 2^-6 */
            memcpy(codes + row * bytes + block * clfd_type_size(type), &half, 2);
        }
        ck_assert_int_eq(clfd_dequantise_row(type, dim, type < CLFD_TYPE_FP8_E4M3 ? group : 0, codes + row * bytes,
                                             scales + row * groups, zeros + row * groups, values + row * dim),
                         CLFD_SUCCESS);
    }
}

/* fp8 has one scale: that of the first row, for all of them. */
static void use_first_scale(clfd_type type, size_t rows, uint32_t dim, uint8_t *codes, const float *scales,
                            float *values)
{
    for (size_t row = 0; row < rows; row++)
        ck_assert_int_eq(clfd_dequantise_row(type, dim, 0, codes + row * dim, scales, NULL, values + row * dim),
                         CLFD_SUCCESS);
}

static bool is_fp8(clfd_type type) { return type == CLFD_TYPE_FP8_E4M3 || type == CLFD_TYPE_FP8_E5M2; }

static bool is_integer(clfd_type type) { return type == CLFD_TYPE_INT8 || type == CLFD_TYPE_INT4; }

START_TEST(every_pair_of_quantised_types_equals_its_values_as_floats)
{
    random_source source = {99};

    for (int k_type = CLFD_TYPE_INT8; k_type <= CLFD_TYPE_Q4_0; k_type++)
        for (int v_type = CLFD_TYPE_INT8; v_type <= CLFD_TYPE_Q4_0; v_type++) {
            set_problem(2, 2, 4, 2, 64, 32, 9);
            const size_t rows = 2 * 9 * 2;
            draw_codes(&source, (clfd_type)k_type, rows, 64, 16, k_codes, k_scales, k_zeros, k);
            draw_codes(&source, (clfd_type)v_type, rows, 32, 32, v_codes, v_scales, v_zeros, v);
            if (is_fp8((clfd_type)k_type))
                use_first_scale((clfd_type)k_type, rows, 64, k_codes, k_scales, k);
            if (is_fp8((clfd_type)v_type))
                use_first_scale((clfd_type)v_type, rows, 32, v_codes, v_scales, v);
            keep();
            attention.k_type = (clfd_type)k_type;
            attention.v_type = (clfd_type)v_type;
            tensors.k = k_codes;
            tensors.v = v_codes;
            tensors.k_scale = k_type < CLFD_TYPE_Q8_0 ? k_scales : NULL;
            tensors.v_scale = v_type < CLFD_TYPE_Q8_0 ? v_scales : NULL;
            if (is_integer((clfd_type)k_type)) {
                attention.k_quant = (clfd_quant){.group = 16, .zeros = 1};
                tensors.k_zero = k_zeros;
            }
            if (is_integer((clfd_type)v_type)) {
                attention.v_quant.zeros = 1;
                tensors.v_zero = v_zeros;
            }
            assert_kept();
        }
}
END_TEST

START_TEST(without_zeros_the_zero_is_0)
{
    random_source source = {7};

    set_problem(2, 1, 2, 1, 64, 32, 9);
    draw_codes(&source, CLFD_TYPE_INT4, 18, 64, 8, k_codes, k_scales, k_zeros, k);
    for (size_t row = 0; row < 18; row++)
        ck_assert_int_eq(
            clfd_dequantise_row(CLFD_TYPE_INT4, 64, 8, k_codes + row * 32, k_scales + row * 8, NULL, k + row * 64),
            CLFD_SUCCESS);
    draw_codes(&source, CLFD_TYPE_Q4_0, 18, 32, 32, v_codes, v_scales, v_zeros, v);
    keep();
    attention.k_type = CLFD_TYPE_INT4;
    attention.v_type = CLFD_TYPE_Q4_0;
    attention.k_quant.group = 8;
    tensors.k = k_codes;
    tensors.v = v_codes;
    tensors.k_scale = k_scales;
    assert_kept();
}
END_TEST

/* Scale of [b][j][h][group] at 500 b + 3 j + 90 h + 31 group, as f32 and as f16; zeros in the same places. */
START_TEST(scales_and_zeros_are_found_by_their_strides_in_both_types)
{
    static float far_scales[1000], far_zeros[1000];
    static uint16_t half_scales[1000], half_zeros[1000];
    random_source source = {3};

    set_problem(2, 1, 4, 2, 16, 16, 9);
    draw_codes(&source, CLFD_TYPE_INT8, 36, 16, 8, k_codes, k_scales, k_zeros, k);
    draw_codes(&source, CLFD_TYPE_INT8, 36, 16, 16, v_codes, v_scales, v_zeros, v);
    keep();
    fill(far_scales, 1000, NAN);
    fill(far_zeros, 1000, NAN);
    for (size_t i = 0; i < 72; i++) { /* [2][9][2][2] */
        const size_t place = i / 36 * 500 + i / 4 % 9 * 3 + i / 2 % 2 * 90 + i % 2 * 31;
        far_scales[place] = k_scales[i];
        far_zeros[place] = k_zeros[i];
    }
    attention.k_type = CLFD_TYPE_INT8;
    attention.k_quant =
        (clfd_quant){.group = 8, .zeros = 1, .strides = {500, 3, 90}, .group_stride = 31, .scale_type = CLFD_TYPE_F32};
    attention.v_quant.zeros = 1;
    tensors.k = k_codes;
    tensors.v = v_codes;
    tensors.k_scale = far_scales;
    tensors.k_zero = far_zeros;
    tensors.v_scale = v_scales;
    tensors.v_zero = v_zeros;
    assert_kept();
    clfd_convert_from_float(CLFD_TYPE_F16, far_scales, half_scales, 1000);
    clfd_convert_from_float(CLFD_TYPE_F16, far_zeros, half_zeros, 1000);
    attention.k_quant.scale_type = CLFD_TYPE_F16;
    tensors.k_scale = half_scales;
    tensors.k_zero = half_zeros;
    assert_kept();
}
END_TEST

START_TEST(an_fp8_scale_may_be_of_each_head)
{
    static const float scales[2] = {0.5f, 0.0625f};
    random_source source = {12};

    set_problem(2, 1, 4, 2, 16, 16, 9);
    draw_codes(&source, CLFD_TYPE_FP8_E5M2, 36, 16, 16, k_codes, k_scales, k_zeros, k);
    draw_codes(&source, CLFD_TYPE_FP8_E4M3, 36, 16, 16, v_codes, v_scales, v_zeros, v);
    use_first_scale(CLFD_TYPE_FP8_E4M3, 36, 16, v_codes, v_scales, v);
    for (size_t row = 0; row < 36; row++)
        ck_assert_int_eq(
            clfd_dequantise_row(CLFD_TYPE_FP8_E5M2, 16, 0, k_codes + row * 16, &scales[row % 2], NULL, k + row * 16),
            CLFD_SUCCESS);
    keep();
    attention.k_type = CLFD_TYPE_FP8_E5M2;
    attention.v_type = CLFD_TYPE_FP8_E4M3;
    attention.k_quant.strides.head = 1;
    tensors.k = k_codes;
    tensors.v = v_codes;
    tensors.k_scale = scales;
    tensors.v_scale = v_scales;
    assert_kept();
}
END_TEST

START_TEST(v_from_k_shares_codes_scales_and_zeros)
{
    static const struct {
        clfd_type type;
        uint32_t group, dim_v;
    } cases[] = {{CLFD_TYPE_INT8, 16, 32},     {CLFD_TYPE_INT4, 64, 40}, {CLFD_TYPE_Q8_0, 64, 32},
                 {CLFD_TYPE_FP8_E4M3, 64, 40}, {CLFD_TYPE_Q4_0, 64, 64}, {CLFD_TYPE_F16, 64, 8}};
    random_source source = {31};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const clfd_type type = cases[i].type;
        set_problem(2, 1, 2, 1, 64, cases[i].dim_v, 9);
        if (type == CLFD_TYPE_F16) {
            clfd_convert_from_float(type, k, k_codes, 18 * 64);
            clfd_convert_to_float(type, k_codes, k, 18 * 64);
        } else {
            draw_codes(&source, type, 18, 64, cases[i].group, k_codes, k_scales, k_zeros, k);
        }
        if (is_fp8(type))
            use_first_scale(type, 18, 64, k_codes, k_scales, k);
        for (size_t row = 0; row < 18; row++)
            memcpy(v + row * cases[i].dim_v, k + row * 64, cases[i].dim_v * sizeof *v);
        keep();
        attention.k_type = type;
        attention.v_from_k = 1;
        tensors.k = k_codes;
        tensors.v = NULL;
        if (is_integer(type)) {
            attention.k_quant = (clfd_quant){.group = cases[i].group, .zeros = 1};
            tensors.k_zero = k_zeros;
        }
        if (is_integer(type) || is_fp8(type))
            tensors.k_scale = k_scales;
        assert_kept();
    }
}
END_TEST

/* Pages of codes: the scale of a token lies where its codes do, by page and token within it. */
START_TEST(scales_of_pages_follow_their_pages)
{
    static const int32_t pages[2][3] = {{5, 0, 3}, {1, 4, 2}};
    static uint8_t paged_codes[6 * 4 * 16];
    static float paged_scales[6 * 4];
    random_source source = {8};

    set_problem(2, 1, 1, 1, 16, 16, 12);
    draw_codes(&source, CLFD_TYPE_INT8, 24, 16, 16, k_codes, k_scales, k_zeros, k);
    for (size_t row = 0; row < 24; row++)
        ck_assert_int_eq(
            clfd_dequantise_row(CLFD_TYPE_INT8, 16, 0, k_codes + row * 16, &k_scales[row], NULL, k + row * 16),
            CLFD_SUCCESS);
    memcpy(v, k, num_v() * sizeof *v);
    keep();
    for (size_t row = 0; row < 24; row++) {
        const size_t place = (size_t)pages[row / 12][row % 12 / 4] * 4 + row % 4;
        memcpy(paged_codes + place * 16, k_codes + row * 16, 16);
        paged_scales[place] = k_scales[row];
    }
    attention.k_type = CLFD_TYPE_INT8;
    attention.paging = CLFD_PAGING_TABLE;
    attention.page_size = 4;
    attention.num_pages = 6;
    tensors.k = tensors.v = paged_codes;
    tensors.k_scale = tensors.v_scale = paged_scales;
    tensors.block_table = &pages[0][0];
    assert_kept();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        an_index_gives_a_sequence_the_cache_row_that_it_names,
        a_row_that_does_not_exist_shows_no_key_and_is_reported,
        a_shared_cache_is_one_sequence_for_all,
        pages_of_any_size_in_any_order_give_the_same_bits,
        the_default_table_has_a_row_of_pages_for_the_longest_sequence,
        pages_have_strides_of_their_own_and_head_major_ones_are_a_layout,
        sequences_may_share_pages,
        a_cache_row_chooses_the_row_of_the_table,
        a_shared_cache_uses_the_first_row_of_the_table,
        csr_rows_follow_one_another,
        an_entry_past_its_csr_row_or_the_table_hides_its_keys_and_is_reported,
        a_needed_page_that_does_not_exist_hides_its_keys_and_is_reported,
        only_pages_in_the_range_of_a_row_are_needed_whatever_its_mask,
        pages_between_the_ranges_of_two_queries_are_not_needed,
        every_pair_of_quantised_types_equals_its_values_as_floats,
        without_zeros_the_zero_is_0,
        scales_and_zeros_are_found_by_their_strides_in_both_types,
        an_fp8_scale_may_be_of_each_head,
        v_from_k_shares_codes_scales_and_zeros,
        scales_of_pages_follow_their_pages,
    };
    return run_suite("reference_cache", tests, COUNT(tests));
}

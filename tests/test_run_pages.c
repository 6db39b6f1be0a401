/* Cutting K and V into shuffled pages, judged by the reference: the same attention, from pages that hold nothing else. */
#include "run.h"
#include "support/random.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, Q_LEN = 2, Q_HEADS = 4, KV_HEADS = 2, DIM = 32, TOKENS = 37, ROWS = 5 };

static npy_array array_of(char kind, uint32_t item_bytes, uint32_t num_dims, const uint64_t *shape)
{
    npy_array array = {.kind = kind, .item_bytes = item_bytes, .num_dims = num_dims, .count = 1};

    for (uint32_t i = 0; i < num_dims; i++) {
        array.shape[i] = shape[i];
        array.count *= shape[i];
    }
    array.data = calloc(array.count, item_bytes);
    ck_assert_ptr_nonnull(array.data);
    return array;
}

static npy_array random_array(uint64_t rows, uint64_t tokens, uint64_t heads, random_source *source)
{
    const npy_array array = array_of('f', 4, 4, (const uint64_t[]){rows, tokens, heads, DIM});

    random_fill_normal(source, array.data, array.count, 1.0f);
    return array;
}

static npy_array integers(uint32_t count, const int32_t *values)
{
    const npy_array array = array_of('i', 4, 1, (const uint64_t[]){count});

    memcpy(array.data, values, count * sizeof values[0]);
    return array;
}

/* What a case adds to plain K and V. */
struct variant {
    const char *name;
    const char *kv_type;
    uint32_t window;
    bool kv_lens, kv_start, positions, cache_rows, shared_kv;
};

static const struct variant variants[] = {
    {.name = "capacity"},
    {.name = "lengths", .kv_lens = true},
    {.name = "window", .kv_lens = true, .window = 9},
    {.name = "window at positions", .window = 9, .positions = true},
    {.name = "left padding", .kv_lens = true, .kv_start = true},
    {.name = "cache rows", .kv_lens = true, .cache_rows = true},
    {.name = "shared", .shared_kv = true, .window = 20, .positions = true},
    {.name = "int8 and q4_0", .kv_type = "int8,q4_0", .kv_lens = true},
    {.name = "int4 and fp8", .kv_type = "int4,fp8"},
};

static const uint32_t page_sizes[] = {1, 7, 16, 48};

static run_input make_input(const struct variant *variant)
{
    static const int32_t lengths[] = {TOKENS + 5, 0, 20}, starts[] = {30, 0, -4}, indices[] = {4, 4, 1};
    static const int32_t positions[] = {36, 30, 8, 9, 20, 12};
    random_source source = {.state = 7};
    const uint32_t rows = variant->cache_rows ? ROWS : variant->shared_kv ? 1 : BATCH;
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    run_input input = {.arrays = {{0}}};

    input.attention = (clfd_attention){.struct_size = sizeof(clfd_attention),
                                       .max_batch = BATCH,
                                       .q_len = Q_LEN,
                                       .num_q_heads = Q_HEADS,
                                       .num_kv_heads = KV_HEADS,
                                       .head_dim = DIM,
                                       .head_dim_v = DIM,
                                       .q_type = CLFD_TYPE_F32,
                                       .k_type = CLFD_TYPE_F32,
                                       .v_type = CLFD_TYPE_F32,
                                       .max_kv_len = TOKENS,
                                       .window = variant->window,
                                       .kv_start = variant->kv_start,
                                       .query_positions = variant->positions,
                                       .cache_batch_idx = variant->cache_rows,
                                       .num_cache_rows = variant->cache_rows ? ROWS : 0,
                                       .shared_kv = variant->shared_kv};
    input.arrays[RUN_Q] = random_array(BATCH, Q_LEN, Q_HEADS, &source);
    input.arrays[RUN_K] = random_array(rows, TOKENS, KV_HEADS, &source);
    input.arrays[RUN_V] = random_array(rows, TOKENS, KV_HEADS, &source);
    if (variant->kv_lens)
        input.arrays[RUN_KV_LENS] = integers(BATCH, lengths);
    if (variant->kv_start)
        input.arrays[RUN_KV_START] = integers(BATCH, starts);
    if (variant->cache_rows)
        input.arrays[RUN_CACHE_BATCH_IDX] = integers(BATCH, indices);
    if (variant->positions)
        input.arrays[RUN_QUERY_POSITIONS] = integers(BATCH * Q_LEN, positions);
    if (variant->kv_type != NULL)
        ck_assert_msg(run_quantise(&input, variant->kv_type, 0, false, &fault), "%s", fault.sentence);
    return input;
}

static double *reference(const run_input *input)
{
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    double *out;

    ck_assert_msg(run_reference(&input->attention, input->arrays, &out, &fault), "%s", fault.sentence);
    return out;
}

static void cut(run_input *input, uint32_t page_size, uint64_t seed, bool csr)
{
    tool_fault fault = {.exit_code = EXIT_CODE_OK};

    ck_assert_msg(run_cut_pages(input, page_size, seed, csr, &fault), "%s", fault.sentence);
}

START_TEST(pages_hold_the_same_attention)
{
    const size_t bytes = BATCH * Q_LEN * Q_HEADS * DIM * sizeof(double);

    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++)
        for (size_t p = 0; p < sizeof page_sizes / sizeof page_sizes[0]; p++)
            for (int csr = 0; csr <= 1; csr++) {
                run_input input = make_input(&variants[v]);
                double *const expected = reference(&input);
                cut(&input, page_sizes[p], 1, csr != 0);
                double *const actual = reference(&input);
                ck_assert_msg(memcmp(actual, expected, bytes) == 0, "%s, pages of %u, csr %d", variants[v].name,
                              page_sizes[p], csr);
                free(expected);
                free(actual);
                run_input_free(&input);
            }
}
END_TEST

/* Tokens of the pages that hold anything but 0xFF. */
static uint32_t count_tokens(const npy_array *pages)
{
    const size_t tokens = pages->shape[0] * pages->shape[1];
    const size_t token_bytes = pages->count * pages->item_bytes / tokens;
    uint32_t count = 0;

    for (size_t t = 0; t < tokens; t++) {
        const unsigned char *token = (const unsigned char *)pages->data + t * token_bytes;
        size_t filled = 0;
        for (size_t i = 0; i < token_bytes; i++)
            filled += token[i] != 0xff;
        count += filled > 0;
    }
    return count;
}

START_TEST(pages_hold_only_what_a_sequence_needs)
{
    static const struct {
        size_t variant;
        uint32_t tokens;
    } cases[] = {
        {0, 3 * TOKENS},                     /* capacity */
        {1, TOKENS + 20},      {2, 10 + 10}, /* a window of 9 and two queries */
        {3, 15 + TOKENS + 33}, /* windows from 22, 0 and 4 on; without causal they end with the sequence */
        {4, TOKENS - 30 + 20}, {5, TOKENS + 20}, /* row 4 for both of the first, of which one is empty */
        {6, TOKENS},                             /* the lowest position is 8 */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_input input = make_input(&variants[cases[i].variant]);
        cut(&input, 7, 1, false);
        ck_assert_uint_eq(count_tokens(&input.arrays[RUN_K]), cases[i].tokens);
        ck_assert_uint_eq(count_tokens(&input.arrays[RUN_V]), cases[i].tokens);
        run_input_free(&input);
    }
}
END_TEST

/* Counts how often each page is named; entries that name none must lie outside. */
static uint32_t check_table(const run_input *input, const npy_array *table)
{
    const uint32_t num_pages = input->attention.num_pages;
    uint32_t *const uses = calloc(num_pages, sizeof uses[0]), used = 0;

    ck_assert_ptr_nonnull(uses);
    for (size_t i = 0; i < table->count; i++) {
        const int32_t page = ((const int32_t *)table->data)[i];
        if (page >= 0 && (uint32_t)page < num_pages) {
            ck_assert_uint_eq(uses[page], 0);
            uses[page]++;
            used++;
        }
    }
    free(uses);
    return used;
}

START_TEST(table_names_each_needed_page_once_and_no_other)
{
    for (int csr = 0; csr <= 1; csr++) {
        run_input input = make_input(&variants[1]);
        cut(&input, 7, 1, csr != 0);
        const npy_array *const table = &input.arrays[csr ? RUN_PAGE_INDICES : RUN_BLOCK_TABLE];
        /* ceil(37 / 7) + ceil(20 / 7); more entries and more pages than that. */
        ck_assert_uint_eq(check_table(&input, table), 6 + 3);
        ck_assert_uint_gt(table->count, 9);
        ck_assert_uint_gt(input.attention.num_pages, 9);
        ck_assert_uint_eq(input.arrays[RUN_K].shape[0], input.attention.num_pages);
        run_input_free(&input);
    }
}
END_TEST

START_TEST(seed_decides_the_order_of_pages)
{
    run_input inputs[3];
    static const uint64_t seeds[] = {1, 1, 2};
    bool ascending = true;

    for (int i = 0; i < 3; i++) {
        inputs[i] = make_input(&variants[0]);
        cut(&inputs[i], 1, seeds[i], false);
    }
    const npy_array *const tables[] = {&inputs[0].arrays[RUN_BLOCK_TABLE], &inputs[1].arrays[RUN_BLOCK_TABLE],
                                       &inputs[2].arrays[RUN_BLOCK_TABLE]};
    const size_t bytes = tables[0]->count * sizeof(int32_t);
    ck_assert_mem_eq(tables[0]->data, tables[1]->data, bytes);
    ck_assert_int_ne(memcmp(tables[0]->data, tables[2]->data, bytes), 0);
    for (uint32_t i = 1; i < TOKENS; i++)
        ascending = ascending && ((const int32_t *)tables[0]->data)[i] > ((const int32_t *)tables[0]->data)[i - 1];
    ck_assert(!ascending);
    for (int i = 0; i < 3; i++)
        run_input_free(&inputs[i]);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        pages_hold_the_same_attention,
        pages_hold_only_what_a_sequence_needs,
        table_names_each_needed_page_once_and_no_other,
        seed_decides_the_order_of_pages,
    };
    return run_suite("run_pages", tests, sizeof tests / sizeof tests[0]);
}

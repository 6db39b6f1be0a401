/* Appending to a paged cache: pages in any order, of any size, by table and by CSR; pages that there are not. */
#include "support/append_case.h"
#include "support/random.h"
#include "support/suite.h"
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { BATCH = 3, MAX_KV_LEN = 40, MAX_PAGES = BATCH * MAX_KV_LEN, STRIDE = MAX_KV_LEN + 2 };

static const int32_t lens[BATCH] = {0, 7, 30};

/* Pages of three sequences in a shuffled order: as a table with rows of STRIDE, and as CSR with row lengths that suffice
 * just for the appended tokens. What belongs to no page is no page's id. */
typedef struct page_lists {
    int32_t table[BATCH * STRIDE], indices[MAX_PAGES], indptr[BATCH + 1];
    uint32_t num_pages, num_indices;
} page_lists;

static append_problem paged_problem(clfd_type k_type, clfd_type v_type, clfd_paging paging, uint32_t page_size)
{
    return (append_problem){.attention = {.max_batch = BATCH,
                                          .num_q_heads = 2,
                                          .head_dim = 32,
                                          .q_type = CLFD_TYPE_F16,
                                          .k_type = k_type,
                                          .v_type = v_type,
                                          .max_kv_len = MAX_KV_LEN,
                                          .paging = paging,
                                          .page_size = page_size,
                                          .block_table_stride = paging == CLFD_PAGING_TABLE ? STRIDE : 0},
                            .append = {.num_tokens = 9},
                            .kv_lens = lens};
}

static void shuffle_pages(append_problem *p, page_lists *lists, uint64_t seed)
{
    const uint32_t size = p->attention.page_size, per_row = (MAX_KV_LEN + size - 1) / size;
    random_source source = {seed};
    int32_t ids[MAX_PAGES];

    lists->num_pages = BATCH * per_row;
    for (uint32_t i = 0; i < lists->num_pages; i++) {
        const uint32_t j = random_below(&source, i + 1);
        ids[i] = ids[j];
        ids[j] = (int32_t)i;
    }
    memset(lists->table, 0xff, sizeof lists->table);
    lists->num_indices = 0;
    for (uint32_t b = 0; b < BATCH; b++) {
        const uint32_t needed = ((uint32_t)lens[b] + p->append.num_tokens + size - 1) / size;
        lists->indptr[b] = (int32_t)lists->num_indices;
        for (uint32_t i = 0; i < per_row && i < needed; i++) {
            lists->table[b * STRIDE + i] = ids[b * per_row + i];
            lists->indices[lists->num_indices++] = ids[b * per_row + i];
        }
    }
    lists->indptr[BATCH] = (int32_t)lists->num_indices;
    p->attention.num_pages = lists->num_pages;
    if (p->attention.paging == CLFD_PAGING_CSR) {
        p->block_table = lists->indices;
        p->page_indptr = lists->indptr;
        p->num_page_indices = lists->num_indices;
    } else {
        p->block_table = lists->table;
    }
}

/* Runs the problem, compares it with the loop, and requires exactly these flags. */
static void expect_status(const append_problem *problem, uint32_t status)
{
    for (int gpu = 0; gpu <= 1; gpu++) {
        append_problem p = *problem;
        p.gpu = gpu;
        append_call *const call = append_open(&p);
        append_run(call);
        append_expect_loop(call);
        EXPECT(append_status(call) == status, "%s: status %#x instead of %#x", clfd_append_plan_describe(call->plan),
               append_status(call), status);
        append_close(call);
    }
}

START_TEST(pages_of_any_size_and_order_are_written)
{
    static const uint32_t sizes[] = {1, 5, 16, 48};
    page_lists lists;

    for (size_t i = 0; i < COUNT(sizes); i++)
        for (clfd_paging paging = CLFD_PAGING_TABLE; paging <= CLFD_PAGING_CSR; paging++) {
            append_problem p = paged_problem(CLFD_TYPE_F16, CLFD_TYPE_F16, paging, sizes[i]);
            shuffle_pages(&p, &lists, sizes[i]);
            expect_status(&p, 0);
        }
}
END_TEST

START_TEST(scales_lie_in_pages_too)
{
    page_lists lists;

    for (uint32_t size = 4; size <= 5; size++) {
        append_problem p = paged_problem(CLFD_TYPE_INT8, CLFD_TYPE_INT4, CLFD_PAGING_TABLE, size);
        p.attention.kv_layout = CLFD_LAYOUT_BHSD;
        p.attention.k_quant = (clfd_quant){.group = 16, .zeros = 1};
        p.attention.v_quant = (clfd_quant){.strides = {.batch = 100, .token = 7, .head = 1}};
        shuffle_pages(&p, &lists, size);
        expect_status(&p, 0);
        p = paged_problem(CLFD_TYPE_Q8_0, CLFD_TYPE_FP8_E4M3, CLFD_PAGING_CSR, size);
        p.attention.v_quant.strides.head = 1;
        shuffle_pages(&p, &lists, size);
        expect_status(&p, 0);
    }
}
END_TEST

/* The cache row of a sequence chooses the row of the table, or of the CSR. */
START_TEST(sequences_use_the_rows_that_cache_batch_idx_names)
{
    static const int32_t rows[] = {2, 2}, own_lens[] = {30, 36};
    page_lists lists;

    for (clfd_paging paging = CLFD_PAGING_TABLE; paging <= CLFD_PAGING_CSR; paging++) {
        append_problem p = paged_problem(CLFD_TYPE_F16, CLFD_TYPE_F16, paging, 4);
        shuffle_pages(&p, &lists, 7);
        p.attention.max_batch = 2;
        p.attention.cache_batch_idx = 1;
        p.attention.num_cache_rows = BATCH;
        p.append.num_tokens = 3; /* two branches of one sequence write tokens 30..32 and 36..38 */
        p.cache_batch_idx = rows;
        p.kv_lens = own_lens;
        expect_status(&p, 0);
    }
}
END_TEST

START_TEST(tokens_of_pages_that_there_are_not_are_dropped_and_reported)
{
    page_lists lists;
    append_problem p = paged_problem(CLFD_TYPE_F16, CLFD_TYPE_F16, CLFD_PAGING_TABLE, 4);

    shuffle_pages(&p, &lists, 3);
    const int32_t wrong[] = {-1, (int32_t)lists.num_pages, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const int32_t right = lists.table[STRIDE + 2];
        lists.table[STRIDE + 2] = wrong[i];
        expect_status(&p, CLFD_FLAG_PAGE);
        lists.table[STRIDE + 2] = right;
    }
    lists.table[STRIDE] = -1; /* of tokens 0..3, which sequence 1 has long had */
    expect_status(&p, 0);
}
END_TEST

START_TEST(entries_beyond_a_csr_row_are_not_used)
{
    page_lists lists;
    append_problem p = paged_problem(CLFD_TYPE_F16, CLFD_TYPE_F16, CLFD_PAGING_CSR, 4);

    shuffle_pages(&p, &lists, 4);
    p.num_page_indices--; /* the last row loses its last page */
    expect_status(&p, CLFD_FLAG_PAGE);
    p.num_page_indices++;
    lists.indptr[2]--; /* row 1 loses one to row 2, in which the pages are not where they were, but are pages */
    expect_status(&p, CLFD_FLAG_PAGE);
    lists.indptr[2]++;
    lists.indptr[0] = INT32_MIN;
    expect_status(&p, CLFD_FLAG_PAGE);
    lists.indptr[0] = INT32_MAX;
    expect_status(&p, CLFD_FLAG_PAGE);
}
END_TEST

/* What is past the capacity has no page at all: its reason is the capacity. */
START_TEST(a_page_table_is_not_read_past_the_capacity)
{
    static const int32_t full[] = {MAX_KV_LEN, MAX_KV_LEN - 1, MAX_KV_LEN - 9};
    page_lists lists;

    for (clfd_paging paging = CLFD_PAGING_TABLE; paging <= CLFD_PAGING_CSR; paging++) {
        append_problem p = paged_problem(CLFD_TYPE_F16, CLFD_TYPE_F16, paging, 8);
        p.append.num_tokens = MAX_KV_LEN; /* every page is there */
        shuffle_pages(&p, &lists, 5);
        p.append.num_tokens = 9;
        p.kv_lens = full;
        expect_status(&p, CLFD_FLAG_CAPACITY);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        pages_of_any_size_and_order_are_written,
        scales_lie_in_pages_too,
        sequences_use_the_rows_that_cache_batch_idx_names,
        tokens_of_pages_that_there_are_not_are_dropped_and_reported,
        entries_beyond_a_csr_row_are_not_used,
        a_page_table_is_not_read_past_the_capacity,
    };
    const int result = run_suite("append_pages", tests, COUNT(tests));

    test_session_close();
    return result;
}

#include "support/attention.h"
#include "support/random.h"
#include "support/suite.h"
#include "type.h"
#include <stdlib.h>

static uint32_t pages_per_row(const clfd_attention *a) { return (a->max_kv_len + a->page_size - 1) / a->page_size; }

/* Whether a query of some sequence of a cache row has a key of the page in its range. */
static bool page_needed(const attention_call *call, int64_t row, uint32_t page)
{
    const index_array *const rows = &call->indices[ATTENTION_CACHE_ROWS];
    const int64_t begin = (int64_t)page * call->complete.page_size, end = begin + call->complete.page_size;

    for (uint32_t b = 0; b < call->batch; b++) {
        const uint32_t sequence = call->complete.shared_kv ? 0 : b;
        if ((rows->values != NULL ? rows->values[sequence] : (int64_t)sequence) != row)
            continue;
        for (uint32_t i = 0; i < call->complete.q_len; i++) {
            const key_range range = attention_range(call, b, i);
            if (range.first < range.limit && range.first < end && range.limit > begin)
                return true;
        }
    }
    return false;
}

/* Page ids in a shuffled order. */
static int32_t *shuffled_ids(uint32_t count, uint64_t seed)
{
    random_source source = {seed};
    int32_t *const ids = malloc(count * sizeof *ids);

    ck_assert_ptr_nonnull(ids);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t j = random_below(&source, i + 1);
        ids[i] = ids[j];
        ids[j] = (int32_t)i;
    }
    return ids;
}

/* Entries of a CSR row: up to the last page that is needed, and in odd rows one that is not. */
static uint32_t row_entries(const attention_call *call, int64_t row)
{
    uint32_t entries = (uint32_t)row % 2;

    for (uint32_t page = 0; page < pages_per_row(&call->complete); page++)
        if (page_needed(call, row, page))
            entries = page + 1 + (uint32_t)row % 2;
    return entries;
}

/* The first entry belongs to no row, nor does the last. */
static void make_page_indptr(attention_call *call)
{
    index_array *const indptr = &call->indices[ATTENTION_PAGE_INDPTR];

    indptr->values[0] = 1;
    for (size_t row = 0; row + 1 < indptr->count; row++)
        indptr->values[row + 1] = indptr->values[row] + (int32_t)row_entries(call, (int64_t)row);
    call->indices[ATTENTION_BLOCK_TABLE].count = (size_t)indptr->values[indptr->count - 1] + 1;
}

void attention_make_block_table(attention_call *call)
{
    const clfd_attention *const a = &call->complete;
    const size_t rows = a->cache_batch_idx ? a->num_cache_rows : call->sequences;
    index_array *const table = &call->indices[ATTENTION_BLOCK_TABLE], *const indptr =
                                                                          &call->indices[ATTENTION_PAGE_INDPTR];
    int32_t *const ids = shuffled_ids(a->num_pages, call->problem.page_seed + 1);
    uint32_t used = 0;

    if (a->paging == CLFD_PAGING_CSR) {
        make_page_indptr(call);
        ck_assert_uint_eq(indptr->count, rows + 1);
    } else {
        table->count = (rows - 1) * (size_t)a->block_table_stride + pages_per_row(a);
    }
    table->values = malloc(table->count * sizeof *table->values);
    ck_assert_ptr_nonnull(table->values);
    for (size_t i = 0; i < table->count; i++)
        table->values[i] = call->problem.unused_entry != 0 ? call->problem.unused_entry : -1;
    for (size_t row = 0; row < rows; row++) {
        int32_t *const entries = table->values + (indptr->values != NULL ? (size_t)indptr->values[row]
                                                                         : row * (size_t)a->block_table_stride);
        for (uint32_t page = 0; page < pages_per_row(a); page++)
            if (page_needed(call, (int64_t)row, page)) {
                EXPECT(used < a->num_pages, "a test needs more than its %u pages", a->num_pages);
                entries[page] = ids[used++];
            }
    }
    free(ids);
}

void attention_copy_page(attention_call *call, uint32_t from, uint32_t to)
{
    static const attention_tensor tensors[] = {ATTENTION_K,       ATTENTION_V,      ATTENTION_K_SCALE,
                                               ATTENTION_V_SCALE, ATTENTION_K_ZERO, ATTENTION_V_ZERO};

    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        tensor_image *const image = &call->images[tensors[i]];
        if (image->data == NULL || image->batch != call->complete.num_pages)
            continue; /* an fp8 type has a scale for all pages */
        for (uint32_t t = 0; t < image->tokens; t++)
            for (uint32_t h = 0; h < image->heads; h++)
                image_copy_row(image, to, t, image, from, t, h);
    }
}

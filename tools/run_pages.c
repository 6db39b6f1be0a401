#include "rng.h"
#include "run.h"
#include <stdlib.h>
#include <string.h>

#define PURPOSE_PAGES 1u
/* Entries of a block table's row beyond its capacity, and of a CSR table's end, that name no page. */
#define SPARE_ENTRIES 2u

/* Entries that name no page; a kernel that follows one reads far outside. */
static const int32_t no_pages[] = {-1, INT32_MAX, INT32_MIN, 1 << 24};

/* The tokens of a cache row that some sequence needs. */
struct cache_row {
    int64_t low, high; /* low < high, or none */
};

/* What cutting needs. */
struct cutter {
    run_input *input;
    uint32_t page_size, num_rows, num_pages;
    struct cache_row *rows; /* [num_rows] */
    uint32_t *pages;        /* a permutation of 0 .. num_pages - 1: the pages in the order of their use */
};

/* Arrays stored beside each other: [row][token][...]. */
static const run_operand cut_operands[] = {RUN_K, RUN_V, RUN_K_SCALE, RUN_V_SCALE, RUN_K_ZERO, RUN_V_ZERO};

/* The first key that a window shows to some query of the sequence. */
static int64_t window_start(const run_input *input, uint32_t sequence)
{
    const clfd_attention *a = &input->attention;
    const int32_t *positions = input->arrays[RUN_QUERY_POSITIONS].data;
    const uint32_t first = a->shared_kv ? 0 : sequence, last = a->shared_kv ? a->max_batch - 1 : sequence;
    int64_t start = INT64_MAX;

    if (a->window == 0)
        return 0;
    for (uint32_t b = first; b <= last; b++)
        for (uint32_t i = 0; i < a->q_len; i++) {
            const int64_t position =
                positions != NULL ? positions[(size_t)b * a->q_len + i] : run_kv_len(input, sequence) - a->q_len + i;
            if (position - a->window + 1 < start)
                start = position - a->window + 1;
        }
    return start;
}

static void find_needed(struct cutter *cutter)
{
    const run_input *input = cutter->input;
    const int32_t *indices = input->arrays[RUN_CACHE_BATCH_IDX].data, *starts = input->arrays[RUN_KV_START].data;

    for (uint32_t s = 0; s < run_num_sequences(input); s++) {
        const int64_t index = indices != NULL ? indices[s] : (int64_t)s, high = run_kv_len(input, s);
        int64_t low = window_start(input, s);
        if (index < 0 || index >= cutter->num_rows)
            continue;
        if (starts != NULL && starts[s] > low)
            low = starts[s];
        if (low < 0)
            low = 0;
        if (low >= high)
            continue;
        struct cache_row *row = &cutter->rows[index];
        const bool empty = row->low >= row->high;
        row->low = empty || low < row->low ? low : row->low;
        row->high = empty || high > row->high ? high : row->high;
    }
}

static int64_t first_page(const struct cutter *cutter, uint32_t row)
{
    return cutter->rows[row].low / cutter->page_size;
}

static int64_t end_page(const struct cutter *cutter, uint32_t row)
{
    return (cutter->rows[row].high + cutter->page_size - 1) / cutter->page_size;
}

/* Counts the pages, a quarter more than are needed, and shuffles them. */
static bool draw_pages(struct cutter *cutter, uint64_t seed, tool_fault *fault)
{
    rng_state rng = rng_start(seed, PURPOSE_PAGES, cutter->page_size);
    int64_t used = 0;

    for (uint32_t r = 0; r < cutter->num_rows; r++)
        used += end_page(cutter, r) - first_page(cutter, r);
    if (used + used / 4 + 1 > INT32_MAX)
        return fault_failed(fault, "--page-size is %u; it cuts K and V into %lld pages, and 2^31 are too many",
                            cutter->page_size, (long long)used);
    cutter->num_pages = (uint32_t)(used + used / 4 + 1);
    cutter->pages = malloc(cutter->num_pages * sizeof cutter->pages[0]);
    if (cutter->pages == NULL)
        return fault_failed(fault, "no memory for %u pages", cutter->num_pages);
    for (uint32_t i = 0; i < cutter->num_pages; i++) {
        const uint32_t j = rng_below(&rng, i + 1);
        cutter->pages[i] = cutter->pages[j];
        cutter->pages[j] = i;
    }
    return true;
}

/* Moves one array into pages; everything that is not needed becomes 0xFF. */
static bool cut(const struct cutter *cutter, npy_array *array, tool_fault *fault)
{
    const uint64_t tokens = array->shape[1], page_size = cutter->page_size;
    const size_t token_bytes = array->count / array->shape[0] / tokens * array->item_bytes;
    const char *from = array->data;
    npy_array paged = *array;
    const uint32_t *page = cutter->pages;

    if (token_bytes > SIZE_MAX / page_size / cutter->num_pages)
        return fault_failed(fault, "%u pages of %u tokens do not fit in memory", cutter->num_pages, cutter->page_size);
    paged.shape[0] = cutter->num_pages;
    paged.shape[1] = page_size;
    paged.count = token_bytes * page_size * cutter->num_pages / array->item_bytes;
    paged.data = malloc(paged.count * array->item_bytes);
    if (paged.data == NULL)
        return fault_failed(fault, "no memory for %u pages of %zu bytes", cutter->num_pages, token_bytes * page_size);
    memset(paged.data, 0xff, paged.count * array->item_bytes);
    for (uint32_t r = 0; r < cutter->num_rows; r++)
        for (int64_t p = first_page(cutter, r); p < end_page(cutter, r); p++, page++) {
            const int64_t start = p * cutter->page_size, end = start + cutter->page_size;
            const int64_t low = start > cutter->rows[r].low ? start : cutter->rows[r].low;
            const int64_t high = end < cutter->rows[r].high ? end : cutter->rows[r].high;
            memcpy((char *)paged.data + (*page * page_size + (size_t)(low - start)) * token_bytes,
                   from + (r * tokens + (size_t)low) * token_bytes, (size_t)(high - low) * token_bytes);
        }
    npy_free(array);
    *array = paged;
    return true;
}

static bool make_integers(npy_array *array, uint32_t num_dims, uint64_t rows, uint64_t columns, tool_fault *fault)
{
    *array = (npy_array){.kind = 'i', .item_bytes = sizeof(int32_t), .num_dims = num_dims};
    array->shape[0] = rows;
    array->shape[num_dims - 1] = columns;
    array->count = (size_t)(rows * columns);
    array->data = malloc(array->count * sizeof(int32_t));
    if (array->data == NULL)
        return fault_failed(fault, "no memory for a block table of %zu entries", array->count);
    for (size_t i = 0; i < array->count; i++)
        ((int32_t *)array->data)[i] = no_pages[i % (sizeof no_pages / sizeof no_pages[0])];
    return true;
}

static bool make_table(const struct cutter *cutter, tool_fault *fault)
{
    run_input *input = cutter->input;
    npy_array *table = &input->arrays[RUN_BLOCK_TABLE];
    const uint64_t columns = (input->attention.max_kv_len + (uint64_t)cutter->page_size - 1) / cutter->page_size;
    const uint32_t *page = cutter->pages;

    if (!make_integers(table, 2, cutter->num_rows, columns + SPARE_ENTRIES, fault))
        return false;
    for (uint32_t r = 0; r < cutter->num_rows; r++)
        for (int64_t p = first_page(cutter, r); p < end_page(cutter, r); p++)
            ((int32_t *)table->data)[r * table->shape[1] + (size_t)p] = (int32_t)*page++;
    input->attention.block_table_stride = (int64_t)table->shape[1];
    return true;
}

/* A row has an entry for each of its pages up to the last one that is needed. */
static bool make_csr(const struct cutter *cutter, tool_fault *fault)
{
    npy_array *indices = &cutter->input->arrays[RUN_PAGE_INDICES], *pointers = &cutter->input->arrays[RUN_PAGE_INDPTR];
    const uint32_t *page = cutter->pages;
    int32_t *pointer;

    if (!make_integers(pointers, 1, 1, cutter->num_rows + (uint64_t)1, fault))
        return false;
    pointer = pointers->data;
    pointer[0] = 0;
    for (uint32_t r = 0; r < cutter->num_rows; r++) {
        if (end_page(cutter, r) > INT32_MAX - (int64_t)SPARE_ENTRIES - pointer[r])
            return fault_failed(fault, "--csr names more than 2^31 pages");
        pointer[r + 1] = pointer[r] + (int32_t)end_page(cutter, r);
    }
    if (!make_integers(indices, 1, 1, (uint64_t)pointer[cutter->num_rows] + SPARE_ENTRIES, fault))
        return false;
    for (uint32_t r = 0; r < cutter->num_rows; r++)
        for (int64_t p = first_page(cutter, r); p < end_page(cutter, r); p++)
            ((int32_t *)indices->data)[pointer[r] + p] = (int32_t)*page++;
    return true;
}

bool run_cut_pages(run_input *input, uint32_t page_size, uint64_t seed, bool csr, tool_fault *fault)
{
    struct cutter cutter = {
        .input = input, .page_size = page_size, .num_rows = (uint32_t)input->arrays[RUN_K].shape[0]};
    bool good = false;

    cutter.rows = calloc(cutter.num_rows, sizeof cutter.rows[0]);
    if (cutter.rows == NULL) {
        fault_failed(fault, "no memory for %u cache rows", cutter.num_rows);
        goto done;
    }
    find_needed(&cutter);
    if (!draw_pages(&cutter, seed, fault))
        goto done;
    for (size_t i = 0; i < sizeof cut_operands / sizeof cut_operands[0]; i++) {
        npy_array *array = &input->arrays[cut_operands[i]];
        /* The one scale of an fp8 tensor is no part of a page. */
        if (array->num_dims == 4 && !cut(&cutter, array, fault))
            goto done;
    }
    if (csr ? !make_csr(&cutter, fault) : !make_table(&cutter, fault))
        goto done;
    input->attention.paging = csr ? CLFD_PAGING_CSR : CLFD_PAGING_TABLE;
    input->attention.page_size = page_size;
    input->attention.num_pages = cutter.num_pages;
    good = true;

done:
    free(cutter.rows);
    free(cutter.pages);
    return good;
}

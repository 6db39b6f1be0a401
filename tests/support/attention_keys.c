#include "support/attention.h"
#include <string.h>

/* Which K and V sequence a sequence of queries attends to. */
static uint32_t kv_sequence(const attention_call *call, uint32_t batch) { return call->complete.shared_kv ? 0 : batch; }

static int64_t index_value(const attention_call *call, attention_index index, size_t at, int64_t otherwise)
{
    const index_array *const array = &call->indices[index];
    return array->values != NULL ? array->values[at] : otherwise;
}

uint32_t attention_kv_len(const attention_call *call, uint32_t batch)
{
    const int64_t max = call->complete.max_kv_len, given = call->problem.kv_len_bound;
    const int64_t bound = given > 0 && given < max ? given : max;
    const int64_t length = index_value(call, ATTENTION_KV_LENS, kv_sequence(call, batch), bound);

    return (uint32_t)(length < 0 ? 0 : length > bound ? bound : length);
}

/* The cache row of a sequence, or -1. */
static int64_t cache_row(const attention_call *call, uint32_t batch)
{
    const uint32_t sequence = kv_sequence(call, batch);
    const int64_t row = index_value(call, ATTENTION_CACHE_ROWS, sequence, sequence);

    return row >= 0 && row < call->complete.num_cache_rows ? row : -1;
}

static int64_t position(const attention_call *call, uint32_t batch, uint32_t query)
{
    const uint32_t q_len = call->complete.q_len;
    const int64_t aligned = (int64_t)attention_kv_len(call, batch) - q_len + query;

    return index_value(call, ATTENTION_POSITIONS, (size_t)batch * q_len + query, aligned);
}

key_range attention_range(const attention_call *call, uint32_t batch, uint32_t query)
{
    const clfd_attention *const a = &call->complete;
    const int64_t p = position(call, batch, query);
    key_range range = {index_value(call, ATTENTION_START, kv_sequence(call, batch), 0), attention_kv_len(call, batch)};

    if (range.first < 0)
        range.first = 0;
    if (a->window > 0 && p - a->window + 1 > range.first)
        range.first = p - a->window + 1;
    if (a->causal && p + 1 < range.limit)
        range.limit = p + 1;
    if (cache_row(call, batch) < 0)
        range.limit = range.first;
    return range;
}

bool attention_sees(const attention_call *call, uint32_t batch, uint32_t query, uint32_t key)
{
    const tensor_image *const mask = &call->images[ATTENTION_MASK];
    const key_range range = attention_range(call, batch, query);
    const int64_t bit = (int64_t)key - ((int64_t)attention_kv_len(call, batch) - call->complete.q_len);
    uint32_t word;

    if (key < range.first || key >= range.limit)
        return false;
    if (call->complete.mask == CLFD_MASK_BOOL)
        return *image_at(mask, batch, query, 0, key) != 0;
    if (call->complete.mask != CLFD_MASK_TREE || bit < 0)
        return true;
    memcpy(&word, image_at(mask, batch, query, 0, 0), sizeof word);
    return (word >> bit & 1u) != 0;
}

int32_t *attention_page_of(const attention_call *call, uint32_t batch, uint32_t key)
{
    const clfd_attention *const a = &call->complete;
    const int64_t row = cache_row(call, batch), page = key / a->page_size;
    const int32_t *const indptr = call->indices[ATTENTION_PAGE_INDPTR].values;
    int32_t *const table = call->indices[ATTENTION_BLOCK_TABLE].values;

    if (row < 0)
        return NULL;
    if (a->paging == CLFD_PAGING_TABLE)
        return table + row * a->block_table_stride + page;
    return indptr[row] + page < indptr[row + 1] ? table + indptr[row] + page : NULL;
}

bool attention_find_key(const attention_call *call, uint32_t batch, uint32_t key, key_place *place)
{
    const clfd_attention *const a = &call->complete;
    const int64_t row = cache_row(call, batch);

    *place = (key_place){(uint32_t)row, key};
    if (a->paging == CLFD_PAGING_NONE || row < 0)
        return row >= 0;
    const int32_t *const page = attention_page_of(call, batch, key);
    if (page == NULL || *page < 0 || (uint32_t)*page >= a->num_pages)
        return false;
    *place = (key_place){(uint32_t)*page, key % a->page_size};
    return true;
}

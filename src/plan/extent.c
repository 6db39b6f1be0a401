#include "plan/extent.h"
#include "type.h"

typedef struct axis {
    uint64_t count;
    int64_t stride;
} axis;

/* sum of (count - 1) * stride over the axes, + inner; 0 where a count is 0. */
static bool reach(const axis *axes, int num_axes, uint64_t inner, uint64_t *extent)
{
    uint64_t last = 0;

    *extent = 0;
    if (inner == 0)
        return true;
    for (int i = 0; i < num_axes; i++)
        if (axes[i].count == 0)
            return true;
    for (int i = 0; i < num_axes; i++) {
        const uint64_t step = (uint64_t)axes[i].stride;
        if (step != 0 && axes[i].count - 1 > ((uint64_t)INT64_MAX - last) / step)
            return false;
        last += (axes[i].count - 1) * step;
    }
    if (inner > (uint64_t)INT64_MAX - last)
        return false;
    *extent = last + inner;
    return true;
}

/* The same in bytes, of units of `size` bytes. */
static bool reach_bytes(const axis *axes, int num_axes, uint64_t inner, uint64_t size, uint64_t *bytes)
{
    uint64_t units;

    *bytes = 0;
    if (!reach(axes, num_axes, inner, &units) || units > (uint64_t)INT64_MAX / size)
        return false;
    *bytes = units * size;
    return true;
}

bool clfd_tensor_extent(const clfd_strides *strides, uint64_t batch, uint64_t tokens, uint64_t heads, uint64_t units,
                        uint64_t *extent)
{
    const axis axes[] = {{batch, strides->batch}, {tokens, strides->token}, {heads, strides->head}};

    return reach(axes, 3, units, extent);
}

uint64_t clfd_cache_rows(const clfd_attention *a, uint64_t batch)
{
    return batch == 0 ? 0 : a->cache_batch_idx ? a->num_cache_rows : a->shared_kv ? 1 : batch;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* A tensor that lies as K and V do: per cache row or page, token, and KV head, `inner` units of `size` bytes. */
static bool cache_extent(const clfd_attention *a, const clfd_strides *strides, uint64_t inner, uint64_t size,
                         uint64_t batch, uint64_t tokens, uint64_t *bytes)
{
    const bool paged = a->paging != CLFD_PAGING_NONE;
    const axis axes[] = {{paged && batch > 0 ? a->num_pages : clfd_cache_rows(a, batch), strides->batch},
                         {paged ? smaller(a->page_size, tokens) : tokens, strides->token},
                         {a->num_kv_heads, strides->head}};

    return reach_bytes(axes, 3, inner, size, bytes);
}

bool clfd_kv_extent(const clfd_attention *a, const clfd_strides *strides, uint32_t dim, clfd_type type, uint64_t batch,
                    uint64_t tokens, uint64_t *bytes)
{
    return cache_extent(a, strides, clfd_row_units(type, dim), clfd_type_size(type), batch, tokens, bytes);
}

bool clfd_scale_extent(const clfd_attention *a, const clfd_quant *quant, uint32_t dim, uint64_t batch, uint64_t tokens,
                       uint64_t *bytes)
{
    if (quant->group == 0) {
        *bytes = 0;
        return true;
    }
    const uint64_t inner = (dim / quant->group - 1) * (uint64_t)quant->group_stride + 1;
    return cache_extent(a, &quant->strides, inner, clfd_type_size(quant->scale_type), batch, tokens, bytes);
}

bool clfd_bias_extent(const clfd_attention *a, uint64_t batch, uint64_t tokens, uint64_t *bytes)
{
    const clfd_score_strides *s = &a->bias_strides;
    const axis axes[] = {{batch, s->batch}, {a->num_q_heads, s->head}, {a->q_len, s->query}, {tokens, s->key}};

    *bytes = 0;
    return a->bias_type == CLFD_TYPE_DEFAULT || reach_bytes(axes, 4, 1, clfd_type_size(a->bias_type), bytes);
}

bool clfd_mask_extent(const clfd_attention *a, uint64_t batch, uint64_t tokens, uint64_t *bytes)
{
    const bool tree = a->mask == CLFD_MASK_TREE;
    const clfd_score_strides *s = &a->mask_strides;
    const axis axes[] = {{batch, s->batch}, {a->q_len, s->query}, {tree ? 1 : tokens, s->key}};

    *bytes = 0;
    return a->mask == CLFD_MASK_NONE || reach_bytes(axes, 3, 1, tree ? sizeof(uint32_t) : 1, bytes);
}

bool clfd_block_table_extent(const clfd_attention *a, uint64_t batch, uint64_t tokens, uint64_t *bytes)
{
    const axis rows = {clfd_cache_rows(a, batch), a->block_table_stride};

    *bytes = 0;
    return a->paging != CLFD_PAGING_TABLE ||
           reach_bytes(&rows, 1, tokens / a->page_size + (tokens % a->page_size != 0), sizeof(int32_t), bytes);
}

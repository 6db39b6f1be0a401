#include "plan/check_parts.h"
#include "plan/extent.h"
#include "type.h"
#include <stdlib.h>

static clfd_status complete_stride(int64_t *stride, int64_t otherwise, bool may_broadcast, const char *name,
                                   const char *axis, const clfd_logger *logger)
{
    if (*stride == CLFD_STRIDE_BROADCAST) {
        if (!may_broadcast)
            return clfd_fail(logger, CLFD_ERROR_STRIDE, "%s.%s is CLFD_STRIDE_BROADCAST; only K and V may broadcast",
                             name, axis);
        *stride = 0;
        return CLFD_SUCCESS;
    }
    if (*stride < 0 || *stride > CLFD_MAX_STRIDE)
        return clfd_fail(logger, CLFD_ERROR_STRIDE, "%s.%s is %lld; it must be 0 to 2^48", name, axis,
                         (long long)*stride);
    if (*stride == 0)
        *stride = otherwise;
    return CLFD_SUCCESS;
}

clfd_status clfd_complete_strides(clfd_strides *strides, const clfd_strides *defaults, bool may_broadcast,
                                  const char *name, const clfd_logger *logger)
{
    clfd_status status = complete_stride(&strides->batch, defaults->batch, may_broadcast, name, "batch", logger);
    if (status == CLFD_SUCCESS)
        status = complete_stride(&strides->token, defaults->token, may_broadcast, name, "token", logger);
    if (status == CLFD_SUCCESS)
        status = complete_stride(&strides->head, defaults->head, may_broadcast, name, "head", logger);
    return status;
}

static clfd_strides token_major(uint32_t tokens, uint32_t heads, uint32_t units)
{
    return (clfd_strides){(int64_t)tokens * heads * units, (int64_t)heads * units, units};
}

static clfd_strides head_major(uint32_t tokens, uint32_t heads, uint32_t units)
{
    return (clfd_strides){(int64_t)tokens * heads * units, units, (int64_t)tokens * units};
}

clfd_strides clfd_dense_cache(const clfd_attention *a, uint32_t units)
{
    const uint32_t tokens = a->paging != CLFD_PAGING_NONE ? a->page_size : a->max_kv_len;

    return a->kv_layout == CLFD_LAYOUT_BSHD ? token_major(tokens, a->num_kv_heads, units)
                                            : head_major(tokens, a->num_kv_heads, units);
}

typedef struct axis {
    uint64_t count, stride;
} axis;

static int compare_axes(const void *left, const void *right)
{
    const axis *a = left, *b = right;
    return a->stride < b->stride ? -1 : a->stride > b->stride;
}

/* A written tensor must not overlap itself: with its axes sorted by stride, each must step over all of the inner ones. */
static bool overlaps_itself(const clfd_strides *s, uint64_t batch, uint64_t tokens, uint64_t heads, uint64_t dim)
{
    axis axes[3] = {{batch, (uint64_t)s->batch}, {tokens, (uint64_t)s->token}, {heads, (uint64_t)s->head}};
    uint64_t inner = dim;

    qsort(axes, 3, sizeof axes[0], compare_axes);
    for (int i = 0; i < 3; i++) {
        if (axes[i].count == 1)
            continue;
        if (axes[i].stride < inner)
            return true;
        inner += (axes[i].count - 1) * axes[i].stride;
    }
    return false;
}

clfd_status clfd_fail_overflow(const clfd_attention *a, const char *tensor, const clfd_logger *logger)
{
    return clfd_fail(logger, CLFD_ERROR_OVERFLOW,
                     "%s reaches beyond 2^63 bytes (max_batch %u, num_cache_rows %u, max_kv_len %u, num_pages %u)",
                     tensor, a->max_batch, a->num_cache_rows, a->max_kv_len, a->num_pages);
}

/* Whether the furthest byte of q or out has a 63-bit offset: what is counted in bytes after this does not wrap. */
static bool rows_fit(const clfd_attention *a, const clfd_strides *strides, uint32_t dim, clfd_type type)
{
    uint64_t elements;

    return clfd_tensor_extent(strides, a->max_batch, a->q_len, a->num_q_heads, dim, &elements) &&
           elements <= (uint64_t)INT64_MAX / clfd_type_size(type);
}

static clfd_status complete_rows(clfd_attention *a, const clfd_logger *logger)
{
    const clfd_strides q = token_major(a->q_len, a->num_q_heads, a->head_dim);
    const clfd_strides out = token_major(a->q_len, a->num_q_heads, a->head_dim_v);
    clfd_status status = clfd_complete_strides(&a->q_strides, &q, false, "q_strides", logger);

    if (status == CLFD_SUCCESS)
        status = clfd_complete_strides(&a->out_strides, &out, false, "out_strides", logger);
    if (status != CLFD_SUCCESS)
        return status;
    if (!rows_fit(a, &a->q_strides, a->head_dim, a->q_type))
        return clfd_fail_overflow(a, "q", logger);
    if (!rows_fit(a, &a->out_strides, a->head_dim_v, a->out_type))
        return clfd_fail_overflow(a, "out", logger);
    if (overlaps_itself(&a->out_strides, a->max_batch, a->q_len, a->num_q_heads, a->head_dim_v))
        return clfd_fail(logger, CLFD_ERROR_STRIDE,
                         "out_strides are [%lld, %lld, %lld]; rows of out would overlap, and it is written",
                         (long long)a->out_strides.batch, (long long)a->out_strides.token,
                         (long long)a->out_strides.head);
    return CLFD_SUCCESS;
}

static clfd_status complete_kv(clfd_attention *a, const clfd_logger *logger)
{
    const clfd_strides k = clfd_dense_cache(a, clfd_row_units(a->k_type, a->head_dim));
    const clfd_strides v = clfd_dense_cache(a, clfd_row_units(a->v_type, a->head_dim_v));
    uint64_t bytes;
    clfd_status status = clfd_complete_strides(&a->k_strides, &k, true, "k_strides", logger);

    if (status == CLFD_SUCCESS && a->v_from_k)
        a->v_strides = a->k_strides;
    else if (status == CLFD_SUCCESS)
        status = clfd_complete_strides(&a->v_strides, &v, true, "v_strides", logger);
    if (status != CLFD_SUCCESS)
        return status;
    if (!clfd_kv_extent(a, &a->k_strides, a->head_dim, a->k_type, a->num_cache_rows, a->max_kv_len, &bytes))
        return clfd_fail_overflow(a, "K", logger);
    if (!clfd_kv_extent(a, &a->v_strides, a->head_dim_v, a->v_type, a->num_cache_rows, a->max_kv_len, &bytes))
        return clfd_fail_overflow(a, "V", logger);
    return CLFD_SUCCESS;
}

clfd_status clfd_complete_layout(clfd_attention *a, const clfd_logger *logger)
{
    if (a->kv_layout != CLFD_LAYOUT_BSHD && a->kv_layout != CLFD_LAYOUT_BHSD)
        return clfd_fail(logger, CLFD_ERROR_LAYOUT, "kv_layout is %d; it must be a clfd_layout", (int)a->kv_layout);
    if (a->v_from_k) {
        if (a->head_dim_v > a->head_dim)
            return clfd_fail(logger, CLFD_ERROR_V_FROM_K,
                             "v_from_k with head_dim_v %u and head_dim %u; V must fit into a row of K", a->head_dim_v,
                             a->head_dim);
        if (a->v_strides.batch != 0 || a->v_strides.token != 0 || a->v_strides.head != 0)
            return clfd_fail(logger, CLFD_ERROR_V_FROM_K, "v_from_k with v_strides; V has the strides of K");
    }
    const clfd_status status = complete_kv(a, logger);
    return status == CLFD_SUCCESS ? complete_rows(a, logger) : status;
}

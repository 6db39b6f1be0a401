#include "support/attention.h"
#include "support/suite.h"
#include "type.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEAD_DIM = 576, MAX_GROUPS = MAX_HEAD_DIM / 8 };

/* ---- Images ------------------------------------------------------------------------------------------------------ */

/* Elements before each tensor but q, K, V and out: no two have the same number, so that no one's place is another's. */
static const size_t elements_before[ATTENTION_TENSORS] = {
    [ATTENTION_K_SCALE] = 3, [ATTENTION_V_SCALE] = 5, [ATTENTION_K_ZERO] = 7, [ATTENTION_V_ZERO] = 9,
    [ATTENTION_ALIBI] = 1,   [ATTENTION_SINKS] = 2,   [ATTENTION_BIAS] = 11,  [ATTENTION_MASK] = 13,
};

/* And the bytes that V lies behind K's place: a multiple of every promise. */
#define V_BEHIND 64

/* A tensor of the problem. */
typedef struct shape {
    clfd_type type;
    clfd_strides strides;
    int64_t dim_stride;
    uint32_t batch, tokens, heads, dim;
    size_t offset, guard;
} shape;

static shape cache_shape(const attention_call *call, const clfd_strides *strides, clfd_type type, uint32_t dim)
{
    const clfd_attention *const a = &call->complete;
    const bool paged = a->paging != CLFD_PAGING_NONE;

    return (shape){type,
                   *strides,
                   1,
                   paged ? a->num_pages : a->num_cache_rows,
                   paged && a->page_size < a->max_kv_len ? a->page_size : a->max_kv_len,
                   a->num_kv_heads,
                   dim,
                   call->problem.kv_offset,
                   0};
}

static shape scale_shape(const attention_call *call, const clfd_quant *quant, clfd_type type, uint32_t dim)
{
    shape s = cache_shape(call, &quant->strides, quant->scale_type, dim / (quant->group > 0 ? quant->group : 1));

    s.dim_stride = quant->group_stride;
    if (!clfd_type_is_grouped(type))
        s.batch = s.tokens = s.dim = 1;
    return s;
}

static shape head_shape(const attention_call *call)
{
    return (shape){CLFD_TYPE_F32, {0}, 1, 1, 1, 1, call->complete.num_q_heads, 0, 0};
}

static void add_image(attention_call *call, attention_tensor tensor, bool wanted, shape s)
{
    tensor_image *const image = &call->images[tensor];

    if (!wanted)
        return;
    if (elements_before[tensor] > 0)
        s.offset = elements_before[tensor] * clfd_type_size(s.type);
    *image = (tensor_image){s.type, s.strides, s.dim_stride, s.batch, s.tokens, s.heads, s.dim, s.offset, 0, NULL};
    image_create(image, s.guard, call->problem.poison == 0.0f ? NAN : call->problem.poison);
}

static void make_rows(attention_call *call)
{
    const attention_problem *const p = &call->problem;
    const clfd_attention *const a = &call->complete;
    const clfd_score_strides *const bias = &a->bias_strides, *const mask = &a->mask_strides;
    const bool tree = a->mask == CLFD_MASK_TREE;

    add_image(call, ATTENTION_Q, true,
              (shape){a->q_type, a->q_strides, 1, a->max_batch, a->q_len, a->num_q_heads, a->head_dim, p->q_offset, 0});
    add_image(call, ATTENTION_OUT, true,
              (shape){a->out_type, a->out_strides, 1, a->max_batch, a->q_len, a->num_q_heads, a->head_dim_v,
                      ATTENTION_GUARD + p->out_offset, ATTENTION_GUARD});
    add_image(call, ATTENTION_ALIBI, a->alibi, head_shape(call));
    add_image(call, ATTENTION_SINKS, a->sinks, head_shape(call));
    add_image(call, ATTENTION_BIAS, a->bias_type != CLFD_TYPE_DEFAULT,
              (shape){a->bias_type,
                      {.batch = bias->batch, .token = bias->query, .head = bias->head},
                      bias->key,
                      a->max_batch,
                      a->q_len,
                      a->num_q_heads,
                      a->max_kv_len,
                      0,
                      0});
    add_image(call, ATTENTION_MASK, a->mask != CLFD_MASK_NONE,
              (shape){tree ? CLFD_TYPE_F32 : CLFD_TYPE_INT8,
                      {.batch = mask->batch, .token = mask->query},
                      mask->key,
                      a->max_batch,
                      a->q_len,
                      1,
                      tree ? 1 : a->max_kv_len,
                      0,
                      0});
}

static void make_cache(attention_call *call)
{
    const clfd_attention *const a = &call->complete;
    const bool k = clfd_type_has_scales(a->k_type), v = clfd_type_has_scales(a->v_type) && !a->v_from_k;
    const shape k_scale = scale_shape(call, &a->k_quant, a->k_type, a->head_dim),
                v_scale = scale_shape(call, &a->v_quant, a->v_type, a->head_dim_v);
    shape values = cache_shape(call, &a->v_strides, a->v_type, a->head_dim_v);

    values.offset += V_BEHIND;
    add_image(call, ATTENTION_K, true, cache_shape(call, &a->k_strides, a->k_type, a->head_dim));
    add_image(call, ATTENTION_V, !a->v_from_k, values);
    add_image(call, ATTENTION_K_SCALE, k, k_scale);
    add_image(call, ATTENTION_V_SCALE, v, v_scale);
    add_image(call, ATTENTION_K_ZERO, k && a->k_quant.zeros, k_scale);
    add_image(call, ATTENTION_V_ZERO, v && a->v_quant.zeros, v_scale);
}

/* ---- Indices ----------------------------------------------------------------------------------------------------- */

static void add_index(attention_call *call, attention_index index, bool wanted, size_t count, const int32_t *given)
{
    index_array *const array = &call->indices[index];

    if (!wanted)
        return;
    array->count = count;
    array->values = malloc(count * sizeof *array->values);
    ck_assert_ptr_nonnull(array->values);
    for (size_t i = 0; i < count; i++)
        array->values[i] = given != NULL ? given[i] : 0;
}

static void make_indices(attention_call *call)
{
    const attention_problem *const p = &call->problem;
    const clfd_attention *const a = &call->complete;
    const size_t rows = a->cache_batch_idx ? a->num_cache_rows : call->sequences;

    add_index(call, ATTENTION_KV_LENS, p->kv_lens != NULL, call->sequences, p->kv_lens);
    add_index(call, ATTENTION_POSITIONS, a->query_positions, (size_t)call->batch * a->q_len, p->query_positions);
    add_index(call, ATTENTION_START, a->kv_start, call->sequences, p->kv_start);
    add_index(call, ATTENTION_CACHE_ROWS, a->cache_batch_idx, call->sequences, p->cache_batch_idx);
    add_index(call, ATTENTION_PAGE_INDPTR, a->paging == CLFD_PAGING_CSR, rows + 1, NULL);
}

void attention_make_tensors(attention_call *call)
{
    make_rows(call);
    make_cache(call);
    make_indices(call);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

void attention_put_row(attention_call *call, attention_tensor tensor, const key_place *place, uint32_t head,
                       const float *values)
{
    const bool k = tensor == ATTENTION_K;
    const clfd_quant *const quant = k ? &call->complete.k_quant : &call->complete.v_quant;
    tensor_image *const image = &call->images[tensor];
    tensor_image *const scale = &call->images[k ? ATTENTION_K_SCALE : ATTENTION_V_SCALE];
    tensor_image *const zero = &call->images[k ? ATTENTION_K_ZERO : ATTENTION_V_ZERO];
    float scales[MAX_GROUPS], zeros[MAX_GROUPS];

    if (clfd_type_has_scales(image->type) && !clfd_type_is_grouped(image->type))
        scales[0] = image_get(scale, 0, 0, head, 0);
    const clfd_status status =
        clfd_quantise_row(image->type, image->dim, quant->group, values,
                          image_at(image, place->batch, place->token, head, 0), scales, quant->zeros ? zeros : NULL);
    EXPECT(status == CLFD_SUCCESS, "%s", clfd_status_string(status));
    if (!clfd_type_is_grouped(image->type))
        return;
    for (uint32_t group = 0; group < scale->dim; group++) {
        image_put(scale, place->batch, place->token, head, group, scales[group]);
        if (quant->zeros)
            image_put(zero, place->batch, place->token, head, group, zeros[group]);
    }
}

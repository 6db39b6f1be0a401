#include "plan/extent.h"
#include "run/append.h"
#include "run/buffers.h"
#include "run/cache_args.h"
#include "type.h"
#include <string.h>

/* One tensor of a call. */
typedef struct tensor {
    const char *name;
    const clfd_buffer *buffer;
    clfd_footprint footprint;
    size_t element, alignment; /* bytes */
    bool wanted;               /* the plan has a use for it */
    bool optional;             /* it may be absent all the same */
    bool read, written;
} tensor;

enum { NUM_TENSORS = 19 };

static clfd_footprint ints(uint64_t count) { return clfd_footprint_run(count * sizeof(int32_t)); }

static uint64_t block_table_bytes(const clfd_append_plan *plan, const clfd_append_buffers *b)
{
    uint64_t bytes = b->num_page_indices * sizeof(int32_t);

    /* Under TABLE; the plan checked that it fits at max_batch. */
    if (plan->attention.paging == CLFD_PAGING_TABLE)
        clfd_block_table_extent(&plan->attention, b->batch, plan->attention.max_kv_len, &bytes);
    return bytes;
}

/* The cache, the new rows and q. */
static size_t add_rows(const clfd_append_plan *plan, const clfd_append_buffers *b, tensor *tensors)
{
    const clfd_attention *const a = &plan->attention;
    const clfd_append *const p = &plan->append;
    const uint64_t batch = b->batch;
    const size_t new_bytes = clfd_type_size(p->new_type), k_scale = clfd_type_size(a->k_quant.scale_type),
                 v_scale = clfd_type_size(a->v_quant.scale_type);
    const bool own_v = !a->v_from_k, k_groups = clfd_type_is_grouped(a->k_type),
               v_groups = clfd_type_is_grouped(a->v_type);
    const clfd_footprint k_scales = clfd_append_scale_footprint(p, &a->k_quant, a->head_dim, batch);
    const clfd_footprint v_scales = clfd_append_scale_footprint(p, &a->v_quant, a->head_dim_v, batch);
    const tensor rows[] = {
        {"new_k", &b->new_k, clfd_append_new_k_footprint(p, batch), new_bytes, new_bytes, true, false, true, false},
        {"new_v", &b->new_v, clfd_append_new_v_footprint(p, batch), new_bytes, new_bytes, own_v, false, true, false},
        {"k", &b->k, clfd_append_k_footprint(p, batch), clfd_type_alignment(a->k_type), a->k_alignment, true, false,
         false, true},
        {"v", &b->v, clfd_append_v_footprint(p, batch), clfd_type_alignment(a->v_type), a->v_alignment, own_v, false,
         false, true},
        {"k_scale", &b->k_scale, k_scales, k_scale, k_scale, clfd_type_has_scales(a->k_type), false, !k_groups,
         k_groups},
        {"v_scale", &b->v_scale, v_scales, v_scale, v_scale, clfd_type_has_scales(a->v_type) && own_v, false, !v_groups,
         v_groups},
        {"k_zero", &b->k_zero, k_scales, k_scale, k_scale, a->k_quant.zeros, false, false, true},
        {"v_zero", &b->v_zero, v_scales, v_scale, v_scale, a->v_quant.zeros && own_v, false, false, true},
        {"q", &b->q, clfd_append_q_footprint(p, batch), clfd_type_size(a->q_type), a->q_alignment, p->rope_q, false,
         true, true},
    };

    memcpy(tensors, rows, sizeof rows);
    return sizeof rows / sizeof rows[0];
}

/* Everything else is dense, and of 4-byte elements. */
static size_t add_lists(const clfd_append_plan *plan, const clfd_append_buffers *b, tensor *tensors, size_t count)
{
    const clfd_attention *const a = &plan->attention;
    const clfd_append *const p = &plan->append;
    const uint64_t batch = b->batch, table = (uint64_t)p->max_positions * (p->rotary_dim / 2);
    const bool rope = p->rope != CLFD_ROPE_NONE, csr = a->paging == CLFD_PAGING_CSR;
    const struct {
        const char *name;
        const clfd_buffer *buffer;
        clfd_footprint footprint;
        bool wanted, optional, read, written;
    } lists[] = {
        {"block_table", &b->block_table, clfd_footprint_run(block_table_bytes(plan, b)), a->paging != CLFD_PAGING_NONE,
         false, true, false},
        {"page_indptr", &b->page_indptr, ints(clfd_cache_rows(a, batch) + 1), csr, false, true, false},
        {"cache_batch_idx", &b->cache_batch_idx, ints(batch), a->cache_batch_idx, false, true, false},
        {"kv_lens", &b->kv_lens, ints(batch), true, true, true, false},
        {"kv_lens_out", &b->kv_lens_out, ints(batch), true, true, false, true},
        {"new_lens", &b->new_lens, ints(batch), p->ragged, false, true, false},
        {"cos", &b->cos, ints(table), rope, false, true, false},
        {"sin", &b->sin, ints(table), rope, false, true, false},
        {"positions", &b->positions, ints(batch * p->num_tokens), p->positions, false, true, false},
        {"status", &b->status, ints(1), true, true, true, true},
    };

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        tensors[count++] = (tensor){.name = lists[i].name,
                                    .buffer = lists[i].buffer,
                                    .footprint = lists[i].footprint,
                                    .element = sizeof(int32_t),
                                    .alignment = sizeof(int32_t),
                                    .wanted = lists[i].wanted,
                                    .optional = lists[i].optional,
                                    .read = lists[i].read,
                                    .written = lists[i].written};
    return count;
}

clfd_status clfd_check_append_buffers(const clfd_append_plan *plan, const clfd_append_buffers *b)
{
    const clfd_logger *const logger = &plan->context->logger;
    tensor tensors[NUM_TENSORS];
    clfd_range ranges[NUM_TENSORS];
    clfd_footprint footprints[NUM_TENSORS];
    const size_t count = add_lists(plan, b, tensors, add_rows(plan, b, tensors));

    if (plan->attention.paging != CLFD_PAGING_CSR && b->num_page_indices != 0)
        return clfd_fail(logger, CLFD_ERROR_BUFFER_UNEXPECTED,
                         "num_page_indices is %u; without CLFD_PAGING_CSR it must be 0", b->num_page_indices);
    for (size_t i = 0; i < count; i++) {
        const tensor *const t = &tensors[i];
        if (!t->wanted && t->buffer->kind != CLFD_BUFFER_NONE)
            return clfd_fail(logger, CLFD_ERROR_BUFFER_UNEXPECTED, "%s is given; the plan has no use for it", t->name);
        footprints[i] = t->footprint;
        ranges[i] = (clfd_range){.name = t->name,
                                 .buffer = t->buffer,
                                 .bytes = clfd_footprint_bytes(&t->footprint),
                                 .element = t->element,
                                 .alignment = t->alignment,
                                 .required = t->wanted && !t->optional,
                                 .written = t->written,
                                 .scratch = t->written && t->read,
                                 .too_small = CLFD_ERROR_BUFFER_SIZE};
    }
    return clfd_check_footprints(plan->context, ranges, footprints, count);
}

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

static row_args make_rows(const clfd_buffer *buffer, const clfd_strides *strides, clfd_type type)
{
    return (row_args){clfd_offset(buffer, clfd_type_size(type)), strides->batch, strides->token, strides->head};
}

append_args clfd_make_append_args(const clfd_append_plan *plan, const clfd_append_buffers *b)
{
    const clfd_attention *const a = &plan->attention;
    const clfd_append *const p = &plan->append;

    return (append_args){
        .new_k = make_rows(&b->new_k, &p->new_k_strides, p->new_type),
        .new_v = make_rows(&b->new_v, &p->new_v_strides, p->new_type),
        .q = make_rows(&b->q, &a->q_strides, a->q_type),
        .k = clfd_make_kv_args(&b->k, &a->k_strides, a->k_type),
        .v = clfd_make_kv_args(&b->v, &a->v_strides, a->v_type),
        .k_scale = clfd_make_scale_args(&b->k_scale, &b->k_zero, &a->k_quant),
        .v_scale = clfd_make_scale_args(&b->v_scale, &b->v_zero, &a->v_quant),
        .block_table_offset = clfd_offset(&b->block_table, sizeof(int32_t)),
        .page_indptr_offset = clfd_offset(&b->page_indptr, sizeof(int32_t)),
        .cache_rows_offset = clfd_offset(&b->cache_batch_idx, sizeof(int32_t)),
        .kv_lens_offset = clfd_offset(&b->kv_lens, sizeof(int32_t)),
        .kv_lens_out_offset = clfd_offset(&b->kv_lens_out, sizeof(int32_t)),
        .new_lens_offset = clfd_offset(&b->new_lens, sizeof(int32_t)),
        .cos_offset = clfd_offset(&b->cos, sizeof(float)),
        .sin_offset = clfd_offset(&b->sin, sizeof(float)),
        .positions_offset = clfd_offset(&b->positions, sizeof(int32_t)),
        .status_offset = clfd_offset(&b->status, sizeof(uint32_t)),
        .pages = clfd_make_page_args(a, b->num_page_indices),
        .num_sequences = (cl_int)b->batch,
        .num_tokens = (cl_int)p->num_tokens,
        .num_kv_heads = (cl_int)a->num_kv_heads,
        .num_q_heads = (cl_int)a->num_q_heads,
        .max_kv_len = (cl_int)a->max_kv_len,
        .num_cache_rows = (cl_int)clfd_cache_rows(a, b->batch),
        .max_positions = (cl_int)p->max_positions,
        .has_kv_lens = b->kv_lens.kind != CLFD_BUFFER_NONE,
        .has_kv_lens_out = b->kv_lens_out.kind != CLFD_BUFFER_NONE,
        .has_new_lens = b->new_lens.kind != CLFD_BUFFER_NONE,
        .has_cache_rows = b->cache_batch_idx.kind != CLFD_BUFFER_NONE,
        .has_positions = b->positions.kind != CLFD_BUFFER_NONE,
        .has_status = b->status.kind != CLFD_BUFFER_NONE,
    };
}

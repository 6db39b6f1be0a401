#include "run/buffers.h"
#include "run/decode.h"
#include "type.h"

uint32_t clfd_decode_wants(const clfd_attention *a)
{
    const bool own_v = !a->v_from_k, k_groups = clfd_type_is_grouped(a->k_type),
               v_groups = clfd_type_is_grouped(a->v_type);

    return (a->alibi ? CLFD_WANTS_ALIBI : 0) | (a->bias_type != 0 ? CLFD_WANTS_BIAS : 0) |
           (a->mask != CLFD_MASK_NONE ? CLFD_WANTS_MASK : 0) | (a->sinks ? CLFD_WANTS_SINKS : 0) |
           (a->query_positions ? CLFD_WANTS_POSITIONS : 0) | (a->kv_start ? CLFD_WANTS_KV_START : 0) |
           (a->cache_batch_idx ? CLFD_WANTS_CACHE_ROWS : 0) |
           (a->paging != CLFD_PAGING_NONE ? CLFD_WANTS_BLOCK_TABLE : 0) |
           (a->paging == CLFD_PAGING_CSR ? CLFD_WANTS_PAGE_INDPTR : 0) |
           (clfd_type_has_scales(a->k_type) ? CLFD_WANTS_K_SCALE : 0) |
           (clfd_type_has_scales(a->v_type) && own_v ? CLFD_WANTS_V_SCALE : 0) |
           (k_groups && a->k_quant.zeros ? CLFD_WANTS_K_ZERO : 0) |
           (v_groups && a->v_quant.zeros && own_v ? CLFD_WANTS_V_ZERO : 0);
}

uint64_t clfd_row_bytes(const clfd_attention *attention, const clfd_strides *strides, uint32_t batch, uint32_t dim,
                        clfd_type type)
{
    uint64_t elements;

    clfd_tensor_extent(strides, batch, attention->q_len, attention->num_q_heads, dim, &elements);
    return elements * clfd_type_size(type);
}

void clfd_workspace_range(const clfd_plan *plan, const clfd_buffer *workspace, clfd_range *range)
{
    *range = (clfd_range){.name = "workspace",
                          .buffer = workspace,
                          .bytes = plan->schedule.workspace_bytes,
                          .element = sizeof(float),
                          .alignment = CLFD_WORKSPACE_ALIGNMENT,
                          .required = true,
                          .written = true,
                          .scratch = true,
                          .too_small = CLFD_ERROR_WORKSPACE_SIZE};
}

/* Extents that the plan checked at max_batch and max_kv_len, in bytes, at those of a call. */
typedef struct call_extents {
    uint64_t k, v, k_scale, v_scale, bias, mask, block_table;
} call_extents;

static call_extents find_extents(const clfd_attention *a, const clfd_decode_call *call)
{
    const uint64_t batch = call->buffers.batch, tokens = call->kv_len;
    call_extents e;

    clfd_kv_extent(a, &a->k_strides, a->head_dim, a->k_type, batch, tokens, &e.k);
    clfd_kv_extent(a, &a->v_strides, a->head_dim_v, a->v_type, batch, tokens, &e.v);
    clfd_scale_extent(a, &a->k_quant, a->head_dim, batch, tokens, &e.k_scale);
    clfd_scale_extent(a, &a->v_quant, a->head_dim_v, batch, tokens, &e.v_scale);
    clfd_bias_extent(a, batch, tokens, &e.bias);
    clfd_mask_extent(a, batch, tokens, &e.mask);
    clfd_block_table_extent(a, batch, tokens, &e.block_table);
    if (a->paging == CLFD_PAGING_CSR)
        e.block_table = call->buffers.num_page_indices * sizeof(int32_t);
    return e;
}

/* An operand of the call beside its range: whether the plan has a use for it. */
typedef struct operand {
    const char *name;
    const clfd_buffer *buffer;
    uint64_t bytes;
    size_t element, alignment; /* alignment 0: the element's */
    bool wanted, optional, written;
} operand;

static clfd_status add_range(const clfd_plan *plan, const operand *o, clfd_range *ranges, size_t *count)
{
    if (!o->wanted && o->buffer->kind != CLFD_BUFFER_NONE)
        return clfd_fail(&plan->context->logger, CLFD_ERROR_BUFFER_UNEXPECTED,
                         "%s has kind %d; no option of the plan asks for it, so it must be CLFD_BUFFER_NONE", o->name,
                         (int)o->buffer->kind);
    if (o->wanted)
        ranges[(*count)++] = (clfd_range){.name = o->name,
                                          .buffer = o->buffer,
                                          .bytes = o->bytes,
                                          .element = o->element,
                                          .alignment = o->alignment != 0 ? o->alignment : o->element,
                                          .required = !o->optional,
                                          .written = o->written,
                                          .too_small = CLFD_ERROR_BUFFER_SIZE};
    return CLFD_SUCCESS;
}

clfd_status clfd_check_decode_buffers(const clfd_plan *plan, const clfd_decode_call *call)
{
    const clfd_attention *const a = &plan->attention;
    const clfd_buffers *const b = &call->buffers;
    const call_extents e = find_extents(a, call);
    const uint64_t batch = b->batch, sequences = a->shared_kv ? 1 : batch, i4 = sizeof(int32_t), f4 = sizeof(float);
    const size_t k_scale = clfd_type_size(a->k_quant.scale_type), v_scale = clfd_type_size(a->v_quant.scale_type);
    const uint32_t wants = clfd_decode_wants(a);
    const operand operands[] = {
        {"q", &b->q, clfd_row_bytes(a, &a->q_strides, b->batch, a->head_dim, a->q_type), clfd_type_size(a->q_type),
         a->q_alignment, true, false, false},
        {"k", &b->k, e.k, clfd_type_alignment(a->k_type), a->k_alignment, true, false, false},
        {"v", &b->v, e.v, clfd_type_alignment(a->v_type), a->v_alignment, !a->v_from_k, false, false},
        {"kv_lens", &b->kv_lens, sequences * i4, i4, 0, true, true, false},
        {"alibi", &b->alibi, a->num_q_heads * f4, f4, 0, (wants & CLFD_WANTS_ALIBI) != 0, false, false},
        {"bias", &b->bias, e.bias, clfd_type_size(a->bias_type), 0, (wants & CLFD_WANTS_BIAS) != 0, false, false},
        {"mask", &b->mask, e.mask, a->mask == CLFD_MASK_TREE ? 4 : 1, 0, (wants & CLFD_WANTS_MASK) != 0, false, false},
        {"sinks", &b->sinks, a->num_q_heads * f4, f4, 0, (wants & CLFD_WANTS_SINKS) != 0, false, false},
        {"query_positions", &b->query_positions, batch * a->q_len * i4, i4, 0, (wants & CLFD_WANTS_POSITIONS) != 0,
         false, false},
        {"kv_start", &b->kv_start, sequences * i4, i4, 0, (wants & CLFD_WANTS_KV_START) != 0, false, false},
        {"cache_batch_idx", &b->cache_batch_idx, sequences * i4, i4, 0, (wants & CLFD_WANTS_CACHE_ROWS) != 0, false,
         false},
        {"block_table", &b->block_table, e.block_table, i4, 0, (wants & CLFD_WANTS_BLOCK_TABLE) != 0, false, false},
        {"page_indptr", &b->page_indptr, (clfd_cache_rows(a, batch) + 1) * i4, i4, 0,
         (wants & CLFD_WANTS_PAGE_INDPTR) != 0, false, false},
        {"k_scale", &b->k_scale, e.k_scale, k_scale, 0, (wants & CLFD_WANTS_K_SCALE) != 0, false, false},
        {"v_scale", &b->v_scale, e.v_scale, v_scale, 0, (wants & CLFD_WANTS_V_SCALE) != 0, false, false},
        {"k_zero", &b->k_zero, e.k_scale, k_scale, 0, (wants & CLFD_WANTS_K_ZERO) != 0, false, false},
        {"v_zero", &b->v_zero, e.v_scale, v_scale, 0, (wants & CLFD_WANTS_V_ZERO) != 0, false, false},
        {"out", &b->out, clfd_row_bytes(a, &a->out_strides, b->batch, a->head_dim_v, a->out_type),
         clfd_type_size(a->out_type), a->out_alignment, true, false, true},
        {"lse", &b->lse, batch * a->q_len * a->num_q_heads * f4, f4, 0, true, true, true},
        {"status", &b->status, sizeof(uint32_t), sizeof(uint32_t), 0, true, true, true},
    };
    clfd_range ranges[CLFD_MAX_RANGES];
    size_t count = 0;

    if (a->paging != CLFD_PAGING_CSR && b->num_page_indices != 0)
        return clfd_fail(&plan->context->logger, CLFD_ERROR_PAGING,
                         "num_page_indices is %u; without CLFD_PAGING_CSR it must be 0", b->num_page_indices);
    if (b->num_page_indices > INT32_MAX)
        return clfd_fail(&plan->context->logger, CLFD_ERROR_PAGING, "num_page_indices is %u; it must be 0 to %d",
                         b->num_page_indices, INT32_MAX);
    for (size_t i = 0; i < sizeof operands / sizeof operands[0]; i++) {
        const clfd_status status = add_range(plan, &operands[i], ranges, &count);
        if (status != CLFD_SUCCESS)
            return status;
    }
    clfd_workspace_range(plan, &b->workspace, &ranges[count++]);
    return clfd_check_ranges(plan->context, ranges, count);
}

#include "run/cache_args.h"
#include "run/decode.h"
#include "run/divisor.h"
#include <string.h>

static cl_long ints(const clfd_buffer *buffer) { return clfd_offset(buffer, sizeof(cl_int)); }

static plane_args make_plane_args(const clfd_buffer *buffer, const clfd_score_strides *strides, size_t element)
{
    return (plane_args){clfd_offset(buffer, element), strides->batch, strides->head, strides->query, strides->key};
}

static split_args make_split_args(const clfd_plan *plan, const clfd_decode_call *call)
{
    return (split_args){
        .max_kv_len = (cl_int)call->kv_len,
        .num_splits = (cl_int)plan->schedule.num_splits,
        .split_tokens = (cl_int)plan->schedule.split_tokens,
        .split_tile = (cl_int)plan->tuning.split_tile,
        .by_tile = clfd_make_divisor(plan->tuning.split_tile),
        .grid_splits = (cl_int)call->grid_splits,
        .has_kv_lens = call->buffers.kv_lens.kind != CLFD_BUFFER_NONE,
    };
}

/* A place in the workspace as an index of 4-byte elements of its buffer. */
static cl_long place(const clfd_decode_call *call, uint64_t offset)
{
    return call->warmup ? 0 : (cl_long)((call->buffers.workspace.offset + offset) / sizeof(cl_float));
}

static const clfd_partials *partials_of(const clfd_plan *plan, const clfd_decode_call *call)
{
    return call->balanced ? &plan->schedule.balanced : &plan->schedule.partials;
}

decode_args clfd_make_decode_args(const clfd_plan *plan, const clfd_decode_call *call)
{
    const clfd_attention *const a = &plan->attention;
    const clfd_buffers *const b = &call->buffers;
    const clfd_schedule *const s = &plan->schedule;
    const clfd_partials *const partials = partials_of(plan, call);
    decode_args args;

    memset(&args, 0, sizeof args);
    args.q_offset = clfd_offset(&b->q, clfd_type_size(a->q_type));
    args.q_batch = a->q_strides.batch, args.q_token = a->q_strides.token, args.q_head = a->q_strides.head;
    args.out_offset = clfd_offset(&b->out, clfd_type_size(a->out_type));
    args.out_batch = a->out_strides.batch, args.out_token = a->out_strides.token, args.out_head = a->out_strides.head;
    args.k = clfd_make_kv_args(&b->k, &a->k_strides, a->k_type);
    args.v = clfd_make_kv_args(a->v_from_k ? &b->k : &b->v, &a->v_strides, a->v_type);
    args.k_scale = clfd_make_scale_args(&b->k_scale, &b->k_zero, &a->k_quant);
    args.v_scale = clfd_make_scale_args(a->v_from_k ? &b->k_scale : &b->v_scale, a->v_from_k ? &b->k_zero : &b->v_zero,
                                        &a->v_quant);
    args.bias = make_plane_args(&b->bias, &a->bias_strides, clfd_type_size(a->bias_type));
    args.mask = make_plane_args(&b->mask, &a->mask_strides, a->mask == CLFD_MASK_TREE ? sizeof(cl_uint) : 1);
    args.kv_lens_offset = ints(&b->kv_lens);
    args.lse_offset = clfd_offset(&b->lse, sizeof(float));
    args.alibi_offset = clfd_offset(&b->alibi, sizeof(float));
    args.sinks_offset = clfd_offset(&b->sinks, sizeof(float));
    args.positions_offset = ints(&b->query_positions);
    args.kv_start_offset = ints(&b->kv_start);
    args.cache_rows_offset = ints(&b->cache_batch_idx);
    args.status_offset = ints(&b->status);
    args.block_table_offset = ints(&b->block_table);
    args.page_indptr_offset = ints(&b->page_indptr);
    args.partial_o_offset = place(call, partials->o_offset);
    args.stats_offset = place(call, partials->stats_offset);
    args.stats_stride = (cl_long)(partials->stats_bytes / sizeof(float));
    args.list_offset = place(call, partials->list_offset);
    args.control_offset = place(call, 0);
    args.pages = clfd_make_page_args(a, b->num_page_indices);
    args.split = make_split_args(plan, call);
    args.partial_slots = (cl_int)s->grid_splits;
    args.num_kv_heads = (cl_int)a->num_kv_heads;
    args.heads = (cl_int)s->heads;
    args.ratio = (cl_int)s->ratio;
    args.q_len = (cl_int)a->q_len;
    args.sequences = a->shared_kv ? 1 : (cl_int)b->batch;
    args.rows = (cl_int)(a->q_len * s->ratio * (a->shared_kv ? b->batch : 1));
    args.passes = (cl_int)clfd_schedule_passes(s, a, b->batch);
    args.head_groups = (cl_int)(a->num_kv_heads / s->heads);
    args.items = args.sequences * args.head_groups * args.passes * (cl_int)call->grid_splits;
    args.by_passes = clfd_make_divisor((uint32_t)args.passes);
    args.by_splits = clfd_make_divisor(call->grid_splits);
    args.by_head_groups = clfd_make_divisor((uint32_t)args.head_groups);
    args.by_ratio = clfd_make_divisor(s->ratio);
    args.by_blocks = clfd_make_divisor((uint32_t)(args.head_groups * args.passes));
    args.by_shares = clfd_make_divisor(s->num_shares);
    args.num_cache_rows = (cl_int)a->num_cache_rows;
    args.direct = call->grid_splits == 1;
    args.has_lse = b->lse.kind != CLFD_BUFFER_NONE;
    args.has_status = b->status.kind != CLFD_BUFFER_NONE;
    args.window = (cl_int)a->window;
    args.num_shares = (cl_int)s->num_shares;
    args.min_tiles = (cl_int)s->min_tiles;
    args.scale = a->scale;
    args.softcap = a->softcap;
    return args;
}

merge_args clfd_make_merge_args(const clfd_plan *plan, const clfd_decode_call *call)
{
    const clfd_attention *const a = &plan->attention;
    const clfd_buffers *const b = &call->buffers;
    const clfd_schedule *const s = &plan->schedule;
    const clfd_partials *const partials = partials_of(plan, call);
    merge_args args;

    memset(&args, 0, sizeof args);
    args.o_offset = place(call, partials->o_offset);
    args.stat0_offset = place(call, partials->stats_offset);
    args.stat1_offset = args.stat0_offset + (cl_long)(partials->stats_bytes / sizeof(float));
    args.out_offset = clfd_offset(&b->out, clfd_type_size(a->out_type));
    args.out_batch = a->out_strides.batch, args.out_token = a->out_strides.token, args.out_head = a->out_strides.head;
    args.sinks_offset = clfd_offset(&b->sinks, sizeof(float));
    args.list_offset = place(call, partials->list_offset);
    args.stats.lse_offset = clfd_offset(&b->lse, sizeof(float));
    args.stats.has_lse = b->lse.kind != CLFD_BUFFER_NONE;
    args.num_rows = (cl_int)(b->batch * a->q_len * a->num_q_heads);
    args.q_len = (cl_int)a->q_len;
    args.num_q_heads = (cl_int)a->num_q_heads;
    args.partial_slots = call->warmup ? 0 : (cl_int)s->grid_splits;
    args.list = call->warmup     ? MERGE_ALL
                : call->balanced ? MERGE_SHARES
                : a->shared_kv   ? MERGE_SHARED
                                 : MERGE_SEQUENCES;
    args.has_sinks = b->sinks.kind != CLFD_BUFFER_NONE;
    args.ratio = (cl_int)s->ratio;
    args.heads = (cl_int)s->heads;
    args.passes = (cl_int)s->passes;
    args.block_rows = (cl_int)s->rows;
    return args;
}

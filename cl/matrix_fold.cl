/* matrix_fold.cl - the end of a matrix item: states of a query row, of the warps of the work-group or of splits, become
 * one, which is written. One piece of code does all of it, because each line of it waits for the memory when it runs for
 * the first time.
 *
 * The splits of a row are merged in the kernel that made them where DECODE_FUSED says so: the last work-group to finish
 * does it, warp by warp. A warp of each work-group owns the same rows; it counts itself in when their partial states are
 * written, and the one that finds itself the last merges them, in the order of the splits. More than MERGE_MOST splits
 * merge in two levels: the last of every MERGE_GROUP neighbours merges these into the first one's slot, and the last of
 * the groups merges what they made.
 *
 * Counters lie in the control region of the workspace, [sequence][kv_head][pass][warp] and then, group by group,
 * [sequence][kv_head][pass][warp][MERGE_MOST]; they are left at zero.
 *
 * Memory model: PTX ISA, "Memory consistency model": what the lanes of a warp wrote before bar.warp.sync is released by an
 * acq_rel operation of one of them, and acquired by the operation that reads the count.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_FOLD_CL
#define CLFD_MATRIX_FOLD_CL

#include "matrix.cl"

/* States of a row that become one: slots first, first + step, ... of the row's. */
typedef struct matrix_set {
    int first, count, step;
} matrix_set;

/* A warp's states of a block, where its ring was: o of eight rows, then m, l and the unit of each. */
MATRIX_INLINE __local float *matrix_fold_o(__local uchar *rings, int warp, int row)
{
    return (__local float *)(rings + warp * WARP_BYTES) + row * FOLD_STRIDE;
}

MATRIX_INLINE __local float4 *matrix_fold_stats(__local uchar *rings, int warp, int row)
{
    return (__local float4 *)(rings + warp * WARP_BYTES) + 2 * FOLD_STRIDE + row;
}

/* Whether a row of o that has dim d is one. */
MATRIX_INLINE bool matrix_has_dim(int d) { return V_LEAD == 0 || d >= 0; }

/* Puts this warp's states of block b down. */
MATRIX_INLINE void matrix_put_states(const matrix_place *at, __local uchar *rings, const matrix_stream *stream, int b)
{
    const int first_dim = V_LEAD > 0 ? 0 : matrix_value_dim(0, at->row, 0);
    __local float *const first = matrix_fold_o(rings, at->warp, LANE_ROWS * at->pair) + first_dim;
    float2 l = (float2)(stream->l[b][0], stream->l[b][LANE_ROWS - 1]);

    if (b * 8 + LANE_ROWS * at->pair < DECODE_ROWS)
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < V_STEPS; c++) { /* distances of dims are the same for every row of the operand */
            const int upper = matrix_value_dim(c, V_LEAD > 0 ? at->row : 0, 0);
            const int lower = matrix_value_dim(c, V_LEAD > 0 ? at->row : 0, 1);
            const float4 o = stream->o[b][c];
            if (matrix_has_dim(upper))
                first[upper] = MATRIX_SPREAD ? o.x + o.y : o.x;
            if (matrix_has_dim(lower))
                first[lower] = MATRIX_SPREAD ? o.z + o.w : o.z;
            if (!MATRIX_SPREAD && matrix_has_dim(upper))
                first[upper + FOLD_STRIDE] = o.y;
            if (!MATRIX_SPREAD && matrix_has_dim(lower))
                first[lower + FOLD_STRIDE] = o.w;
        }
#pragma unroll MATRIX_UNROLL
    for (int mask = 4; mask < 32; mask *= 2) {
        l.x += matrix_xor(at, l.x, mask);
        l.y += matrix_xor(at, l.y, mask);
    }
    if (at->row < LANE_ROWS) {
        const bool first_row = at->row == 0;
        *matrix_fold_stats(rings, at->warp, LANE_ROWS * at->pair + at->row) =
            (float4)(first_row ? stream->m[b][0] : stream->m[b][LANE_ROWS - 1], first_row ? l.x : l.y,
                     !V_SCALED   ? 1.0f
                     : first_row ? stream->unit[b][0]
                                 : stream->unit[b][LANE_ROWS - 1],
                     0.0f);
    }
}

/* Folds `count` states of a row and writes the result. Lane i has state i's exponent in units of log2 / `unit`, its l, and
 * what its o is counted in; their o lie `stride` floats apart in local memory. `exists` says whether the row does: all
 * lanes of the emulation must come here together. */
MATRIX_INLINE void matrix_fold_row(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                   const matrix_place *at, const decode_row *row, bool exists, int count, float3 state,
                                   float unit, const __local float *states, int stride, __global out_element *out,
                                   __global float *lse, __global float *workspace)
{
    float top = state.x, total;

#pragma unroll MATRIX_UNROLL
    for (int mask = 16; mask > 0; mask /= 2)
        top = state_max(top, matrix_xor(at, top, mask));
    const float weight = state_weight_in(state.x, top, unit), share = weight * state.z;
    total = weight * state.y;
#pragma unroll MATRIX_UNROLL
    for (int mask = 16; mask > 0; mask /= 2)
        total += matrix_xor(at, total, mask);
    const float natural = unit == 1.0f ? state_natural(top) : top, inverse = state_inverse(total);
    const float sink_share = decode_sink_share_natural(args, in, item, row, natural, total);
#pragma unroll 1
    for (int d = at->lane * 4; d < (HEAD_DIM_V + 127) / 128 * 128; d += 128) {
        const __local float *from = states + min(d, HEAD_DIM_V - 4);
        float4 o = 0.0f;
#pragma unroll 1
        for (int s = 0; s < count; s += 4, from += 4 * stride)
#pragma unroll MATRIX_UNROLL
            for (int i = 0; i < 4; i++) {
                const float share_of = as_float(matrix_from(at, as_uint(share), s + i));
                if (s + i < count)
                    o = fma(share_of, *(const __local float4 *)(from + i * stride), o);
            }
        if (exists && d < HEAD_DIM_V)
            decode_store_quad(args, item, row, out, workspace, d, o * inverse, sink_share);
    }
    if (exists && at->lane == 0)
        decode_store_natural_stats(args, in, item, row, lse, workspace, natural, total);
}

#if DECODE_FUSED
/* Counts this warp in; true for the last of `count`, which leaves the counter at 0. */
MATRIX_INLINE bool matrix_arrive(const matrix_place *at, __global int *counter, int count)
{
    int before = 0;

    matrix_sync();
    if (at->lane == 0) {
        asm volatile("atom.acq_rel.gpu.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
        if (before == count - 1)
            *counter = 0;
    }
    before = (int)matrix_from(at, (uint)before, 0);
    matrix_sync();
    return before == count - 1;
}

/* The counter of a set of the item's splits: of all, or of a group of them. */
MATRIX_INLINE __global int *matrix_counter(const decode_args *args, const decode_item *item, const matrix_place *at,
                                           bool all, int first, __global float *workspace)
{
    const int blocks = args->sequences * args->num_kv_heads * args->passes;
    const int block = (item->batch * args->num_kv_heads + item->kv_head) * args->passes + item->first_row / DECODE_ROWS;
    const int own = block * MATRIX_WARPS + at->warp;
    return (__global int *)workspace + args->control_offset +
           (all ? own : blocks * MATRIX_WARPS + own * MERGE_MOST + first / MERGE_GROUP);
}

/* Copies o of a set of a row's partial states, `slot` being the first, to the warp's ring, and returns the lane's state. */
MATRIX_INLINE float3 matrix_fetch_states(const decode_args *args, const matrix_place *at, const matrix_set *set,
                                         long slot, const __global float *workspace)
{
    const int quads = HEAD_DIM_V / 4;
    const __global float *const o = workspace + args->partial_o_offset;
    const __global float *const stats = workspace + args->stats_offset;
    float3 state = (float3)(-INFINITY, 0.0f, 0.0f);

#pragma unroll 1
    for (int x = at->lane; x < set->count * quads; x += 32)
        matrix_copy_if16(at, at->base + 16 * x,
                         (const __global uchar *)(o + ((slot + x / quads * set->step) * quads + x % quads) * 4), true);
    matrix_commit();
    if (at->lane < set->count) {
        const float2 loaded = state_load(stats, stats + args->stats_stride, slot + at->lane * set->step);
        state = (float3)(loaded.x, loaded.y, loaded.y);
    }
    matrix_wait(0);
    matrix_sync();
    return state;
}
#endif

/* Writes the rows of the item; a row belongs to one warp, the same in all work-groups. Under DECODE_FUSED then merges what
 * is complete by that. */
MATRIX_INLINE void matrix_finish(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                 const matrix_place *at, __local uchar *rings, const matrix_stream *stream,
                                 __global out_element *out, __global float *lse, __global float *workspace)
{
    decode_item target = *item; /* where states go */
    matrix_set set = {item->slot, MATRIX_WARPS, 1};
    const int levels = MATRIX_BLOCKS + (DECODE_FUSED && !item->direct ? 2 : 0);

#pragma unroll 1
    for (int level = 0; level < levels; level++) { /* the blocks of the warps' states, then merges */
        const bool merges = DECODE_FUSED && level >= MATRIX_BLOCKS;
        const int begin = merges ? 0 : level * 8, end = merges ? DECODE_ROWS : min(DECODE_ROWS, begin + 8);
        if (!merges) {
            if (CLFD_PTX && MATRIX_BLOCKS > 1 && level > 0)
                matrix_put_states(at, rings, stream, MATRIX_BLOCKS - 1);
            else
                matrix_put_states(at, rings, stream, CLFD_PTX ? 0 : level);
            barrier(CLK_LOCAL_MEM_FENCE);
        }
#if DECODE_FUSED
        else {
            const bool all = level > MATRIX_BLOCKS || item->splits <= MERGE_MOST;
            set.step = level > MATRIX_BLOCKS ? MERGE_GROUP : 1;
            set.first = all ? 0 : item->slot / MERGE_GROUP * MERGE_GROUP;
            set.count = all ? (item->splits + set.step - 1) / set.step : min(MERGE_GROUP, item->splits - set.first);
            if (!matrix_arrive(at, matrix_counter(args, item, at, all, set.first, workspace), set.count))
                return;
            target.slot = set.first;
            target.direct = all;
            target.v_scale = 1.0f; /* partial states have it already */
        }
#endif
#pragma unroll 1
        for (int turn = 0; turn < (8 * MATRIX_BLOCKS + MATRIX_WARPS - 1) / MATRIX_WARPS; turn++) {
            const int r = begin + turn * MATRIX_WARPS + (at->warp + MATRIX_WARPS - begin % MATRIX_WARPS) % MATRIX_WARPS;
            const bool exists = r < end && decode_row_exists(args, item, r);
            if (CLFD_PTX && !exists)
                break;
            const decode_row row = decode_find_row(args, item, min(r, end - 1));
            float3 state = (float3)(-INFINITY, 0.0f, 0.0f);
            const __local float *states = matrix_fold_o(rings, 0, min(r, end - 1) - begin);
#if DECODE_FUSED
            if (merges) {
                state = matrix_fetch_states(args, at, &set, decode_slot(args, &target, &row), workspace);
                states = (const __local float *)at->ring;
            } else
#endif
                if (at->lane < MATRIX_WARPS)
                state = matrix_fold_stats(rings, at->lane, min(r, end - 1) - begin)->xyz;
            matrix_fold_row(args, in, &target, at, &row, exists, set.count, state, merges ? STATE_LOG2E : 1.0f, states,
                            merges ? HEAD_DIM_V : WARP_BYTES / 4, out, lse, workspace);
            if (merges)
                matrix_sync(); /* the ring is free again */
        }
#if DECODE_FUSED
        if (merges && target.direct)
            return;
#endif
        if (DECODE_BALANCED || level + 1 < levels && !merges)
            barrier(CLK_LOCAL_MEM_FENCE); /* before rings are written to again */
    }
}

#endif

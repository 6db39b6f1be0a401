/* matrix_merge.cl - merging the splits of a row in the kernel that made them: the last work-group to finish does it, warp
 * by warp. A warp of each work-group owns the same rows; it counts itself in when their partial states are written, and
 * the one that finds itself the last merges them, in the order of the splits. More than MERGE_MOST splits merge in two
 * levels: the last of every MERGE_GROUP neighbours merges these into the first one's slot, and the last of the groups
 * merges what they made.
 *
 * Counters lie in the control region of the workspace, [sequence][kv_head][pass][warp] and then, group by group,
 * [sequence][kv_head][pass][warp][MERGE_MOST]; they are left at zero.
 *
 * Memory model: PTX ISA, "Memory consistency model": what the lanes of a warp wrote before bar.warp.sync is released by an
 * acq_rel operation of one of them, and acquired by the operation that reads the count.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_MERGE_CL
#define CLFD_MATRIX_MERGE_CL

#include "matrix.cl"

#if DECODE_FUSED

#define MERGE_MOST 16 /* states that one merge takes: half as many as there are lanes, so that two rows go together */
#define MERGE_GROUP 8

/* The states that a merge takes of each row: slots first, first + step, ... of the row's. */
typedef struct matrix_set {
    int first, count, step;
} matrix_set;

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

/* Of the lanes of a half warp. */
MATRIX_INLINE float matrix_max_half(const matrix_place *at, float value)
{
#pragma unroll MATRIX_UNROLL
    for (int mask = 8; mask > 0; mask /= 2)
        value = state_max(value, matrix_xor(at, value, mask));
    return value;
}

MATRIX_INLINE float matrix_sum_half(const matrix_place *at, float value)
{
#pragma unroll MATRIX_UNROLL
    for (int mask = 8; mask > 0; mask /= 2)
        value += matrix_xor(at, value, mask);
    return value;
}

/* Slot of split 0 of a row. */
MATRIX_INLINE long matrix_first_slot(const decode_args *args, const decode_item *item, const decode_row *row)
{
    decode_item first = *item;
    first.slot = 0;
    return decode_slot(args, &first, row);
}

/* Writes dims [d, d + 4) of a merged row, and its statistics (natural units) once: as a partial state again, or as the
 * result. */
MATRIX_INLINE void matrix_write_merged(const decode_args *args, const decode_inputs *in, const matrix_place *at,
                                       const decode_row *row, bool last, long slot, int d, float4 sum, float top,
                                       float total, __global out_element *out, __global float *lse,
                                       __global float *workspace)
{
    const bool writes_stats = at->lane == 0 && d == 0;
    const float4 o = (float4)(state_normalise(sum.x, total), state_normalise(sum.y, total),
                              state_normalise(sum.z, total), state_normalise(sum.w, total));
    if (!last) {
        *(__global float4 *)(workspace + (args->partial_o_offset + slot * HEAD_DIM_V + d)) = o;
        if (writes_stats)
            state_store_natural(workspace, args->stats_offset + slot, args->stats_stride, top, total);
        return;
    }
    const long index =
        args->out_offset + row->batch * args->out_batch + row->query * args->out_token + row->head * args->out_head + d;
    float2 sunk = (float2)(state_lse(top, total), 1.0f);
#if DECODE_SINKS
    sunk = state_sink(sunk.x, in->sinks[args->sinks_offset + row->head]);
#endif
    out_store(out, index, o.x * sunk.y);
    out_store(out, index + 1, o.y * sunk.y);
    out_store(out, index + 2, o.z * sunk.y);
    out_store(out, index + 3, o.w * sunk.y);
    if (writes_stats && args->has_lse)
        lse[args->lse_offset + decode_lse_index(args, row)] = sunk.x;
}

/* Merges a set of states of this warp's rows r and r + MATRIX_WARPS, where these exist. All loads are under way before the
 * first is used. */
MATRIX_INLINE void matrix_merge_rows(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                     const matrix_place *at, const matrix_set *set, int r, bool last,
                                     __global out_element *out, __global float *lse, __global float *workspace)
{
    const bool second = r + MATRIX_WARPS < DECODE_ROWS && decode_row_exists(args, item, r + MATRIX_WARPS);
    const decode_row row = decode_find_row(args, item, r);
    const decode_row other = decode_find_row(args, item, second ? r + MATRIX_WARPS : r);
    const long row_slot = matrix_first_slot(args, item, &row) + set->first;
    const long other_slot = matrix_first_slot(args, item, &other) + set->first;
    const __global float *const stats = workspace + args->stats_offset;
    const int i = at->lane & 15, distance = set->step * HEAD_DIM_V;
    float2 state = state_load(stats, stats + args->stats_stride,
                              (at->lane < 16 ? row_slot : other_slot) + min(i, set->count - 1) * set->step);

#pragma unroll 1
    for (int d = at->lane * 4; d < (HEAD_DIM_V + 127) / 128 * 128; d += 128) {
        const __global float *const o = workspace + (args->partial_o_offset + min(d, HEAD_DIM_V - 4));
        const __global float *const row_o = o + row_slot * HEAD_DIM_V, *const other_o = o + other_slot * HEAD_DIM_V;
        float4 loaded[2][MERGE_MOST], sums[2] = {-0.0f, -0.0f};
#pragma unroll MATRIX_UNROLL
        for (int s = 0; s < MERGE_MOST; s++) {
            loaded[0][s] = loaded[1][s] = 0.0f;
            if (s < set->count) {
                loaded[0][s] = *(const __global float4 *)(row_o + s * distance);
                loaded[1][s] = *(const __global float4 *)(other_o + s * distance);
            }
        }
        state = i < set->count ? state : (float2)(-INFINITY, 0.0f);
        const float top = matrix_max_half(at, state.x), share = state_share(state, top);
        const float total = matrix_sum_half(at, share);
        const uint counts = matrix_ballot(at, state.y != 0.0f); /* an empty state's o is not used, whatever it holds */
#pragma unroll MATRIX_UNROLL
        for (int s = 0; s < MERGE_MOST; s++) {
#pragma unroll MATRIX_UNROLL
            for (int x = 0; x < 2; x++) {
                const float weight = as_float(matrix_from(at, as_uint(share), 16 * x + s));
                if ((counts >> (16 * x + s) & 1u) != 0)
                    sums[x] = fma(weight, loaded[x][s], sums[x]);
            }
        }
        const float other_top = as_float(matrix_from(at, as_uint(top), 16));
        const float other_total = as_float(matrix_from(at, as_uint(total), 16));
        const float row_top = as_float(matrix_from(at, as_uint(top), 0));
        const float row_total = as_float(matrix_from(at, as_uint(total), 0));
        if (d >= HEAD_DIM_V)
            continue;
        matrix_write_merged(args, in, at, &row, last, row_slot, d, sums[0], row_top, row_total, out, lse, workspace);
        if (second)
            matrix_write_merged(args, in, at, &other, last, other_slot, d, sums[1], other_top, other_total, out, lse,
                                workspace);
    }
}

/* Counts this warp's rows of the item in, and merges what is complete by that. */
MATRIX_INLINE void matrix_merge(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                const matrix_place *at, __global out_element *out, __global float *lse,
                                __global float *workspace)
{
    __global int *const counters = (__global int *)workspace + args->control_offset;
    const int blocks = args->sequences * args->num_kv_heads * args->passes;
    const int block = (item->batch * args->num_kv_heads + item->kv_head) * args->passes + item->first_row / DECODE_ROWS;
    const int own = block * MATRIX_WARPS + at->warp;
    bool last = item->splits <= MERGE_MOST;
    matrix_set set;

    set.first = last ? 0 : item->slot / MERGE_GROUP * MERGE_GROUP;
    set.count = last ? item->splits : min(MERGE_GROUP, item->splits - set.first);
    set.step = 1;
    for (;;) {
        const int group = blocks * MATRIX_WARPS + own * MERGE_MOST + set.first / MERGE_GROUP;
        if (!matrix_arrive(at, counters + (last ? own : group), set.count))
            return;
#pragma unroll 1
        for (int r = at->warp; r < DECODE_ROWS; r += 2 * MATRIX_WARPS)
            if (decode_row_exists(args, item, r))
                matrix_merge_rows(args, in, item, at, &set, r, last, out, lse, workspace);
        if (last)
            return;
        last = true;
        set.first = 0;
        set.count = (item->splits + MERGE_GROUP - 1) / MERGE_GROUP;
        set.step = MERGE_GROUP;
    }
}

#endif

#endif

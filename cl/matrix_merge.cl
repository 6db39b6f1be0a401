/* matrix_merge.cl - the splits of a row merged in the kernel that made them, where DECODE_FUSED says so: the last
 * work-group to finish does it, warp by warp. A warp of each work-group owns the same rows; it counts itself in when it
 * has written their partial states, and the one that finds itself the last merges them, in the order of the splits. More
 * than MERGE_MOST splits are merged by several: matrix_share.cl.
 *
 * Counters lie in the control region of the workspace, [sequence][kv_head][pass][warp], and are left at zero.
 *
 * Memory model: PTX ISA, "Memory consistency model". What the lanes of a warp wrote before bar.warp.sync is released by
 * an acq_rel operation of one of them, and acquired by the operation that reads the count; matrix_states.cl says what
 * is done without that release.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_MERGE_CL
#define CLFD_MATRIX_MERGE_CL

#include "matrix_share.cl"

#if DECODE_FUSED
#if MERGE_MARKS
#define MERGE_ORDER "acquire"
#else
#define MERGE_ORDER "acq_rel"
#endif

/* Counts this warp in. The counter before. */
MATRIX_INLINE ulong matrix_arrive(const matrix_place *at, __global ulong *counter)
{
    ulong before = 0;

    matrix_sync();
    if (at->lane == 0)
        asm volatile("atom." MERGE_ORDER ".gpu.global.add.u64 %0, [%1], 1;" : "=l"(before) : "l"(counter) : "memory");
    before = matrix_from(at, (uint)before, 0) | (ulong)matrix_from(at, (uint)(before >> 32), 0) << 32;
    matrix_sync();
    return before;
}

/* Merges this warp's rows of all splits. `target`: where the result goes. `first`: the row of the first turn. */
MATRIX_INLINE void matrix_merge_rows(const decode_args *args, const decode_inputs *in, const decode_item *target,
                                     const matrix_place *at, const matrix_folded *first, __global out_element *out,
                                     __global float *lse, __global float *workspace)
{
    decode_item source = *target;
    matrix_states states;

    states.count = target->splits;
#if DECODE_BALANCED
    states.step = 2 * schedule_blocks(args) * DECODE_ROWS;
    source.slot = target->first_slot;
#else
    source.slot = 0;
#endif
#pragma unroll 1
    for (int turn = 0; turn < FOLD_TURNS(DECODE_ROWS); turn += FOLD_ROWS) {
        const matrix_folded own = turn == 0 ? *first : matrix_find_folded(args, target, at, turn, 0, DECODE_ROWS);
        bool whole = !MERGE_MARKS;
        matrix_fold fold;

        if (!matrix_any(at, own.exists))
            break;
        states.first = decode_state(args, &source, &own.row);
#pragma unroll 1
        for (;;) { /* a NaN is what is missing, or the result */
            matrix_merge_states(args, at, &states, workspace, &fold);
            if (whole || !matrix_any(at, matrix_merged_nan(&fold)))
                break;
            whole = !matrix_any(at, matrix_misses_state(args, at, &states, workspace));
        }
        matrix_end_fold(args, in, target, at, &own.row, own.exists, &fold, out, lse, workspace);
    }
}

/* Counts this warp's rows of the item in, and does its part of their merge. `row`: the first turn's. */
MATRIX_INLINE void matrix_merge(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                const matrix_place *at, __global ulong *counter, const matrix_folded *row,
                                __global out_element *out, __global float *lse, __global float *workspace)
{
    decode_item target = *item;

    target.v_scale = 1.0f; /* partial states have it already */
    target.direct = true;
    const ulong before = matrix_arrive(at, counter);
#if MATRIX_SHARES
    if (matrix_shares(item)) {
        matrix_share(args, in, &target, at, counter, before, out, lse, workspace);
        return;
    }
#endif
    if (MERGE_ARRIVED(before) != item->splits - 1)
        return;
    if (at->lane == 0)
        *counter = 0;
    matrix_merge_rows(args, in, &target, at, row, out, lse, workspace);
}
#endif

/* Writes the rows of the item; a row belongs to one warp, the same in all work-groups. Under DECODE_FUSED then merges
 * what is complete by that. */
MATRIX_INLINE void matrix_finish(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                 const matrix_place *at, __local uchar *rings, const matrix_stream *stream,
                                 __global out_element *out, __global float *lse, __global float *workspace)
{
    const bool written_again = DECODE_BALANCED || DECODE_LOOPS; /* the rings, by the next item */
    /* Found once, before anything waits. */
    const matrix_folded row = matrix_find_folded(args, item, at, 0, 0, min(DECODE_ROWS, 8));
#if DECODE_FUSED
    __global ulong *const counter = matrix_counter(args, item, at, workspace);
#endif

    matrix_fold_block(args, in, item, at, rings, stream, 0, &row, out, lse, workspace);
#if MATRIX_BLOCKS > 1
    barrier(CLK_LOCAL_MEM_FENCE);
    matrix_fold_block(args, in, item, at, rings, stream, 1, &row, out, lse, workspace);
#endif
    if (written_again)
        barrier(CLK_LOCAL_MEM_FENCE);
#if DECODE_FUSED
    if (!item->direct)
        matrix_merge(args, in, item, at, counter, &row, out, lse, workspace);
#endif
}

#endif

/* matrix_merge.cl - the splits of a row merged in the kernel that made them, where DECODE_FUSED says so: the last
 * work-group to finish does it, warp by warp. A warp of each work-group owns the same rows; it counts itself in when it
 * has written their partial states, and the one that finds itself the last merges them, in the order of the splits.
 * More than MERGE_MOST splits merge in two levels: the last of every MERGE_GROUP neighbours merges these into a slot
 * behind those of all splits, and the last of the groups merges what they made.
 *
 * Counters lie in the control region of the workspace, [sequence][kv_head][pass][warp] and then, group by group,
 * [sequence][kv_head][pass][warp][MERGE_MOST]; they are left at zero.
 *
 * Memory model: PTX ISA, "Memory consistency model". What the lanes of a warp wrote before bar.warp.sync is released by
 * an acq_rel operation of one of them, and acquired by the operation that reads the count; matrix_states.cl says what
 * is done without that release.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_MERGE_CL
#define CLFD_MATRIX_MERGE_CL

#include "matrix_states.cl"

#if DECODE_FUSED
#if MERGE_MARKS
#define MERGE_ORDER "acquire"
#else
#define MERGE_ORDER "acq_rel"
#endif

/* Counts this warp in; true for the last of `count`, which leaves the counter at 0. */
MATRIX_INLINE bool matrix_arrive(const matrix_place *at, __global int *counter, int count)
{
    int before = 0;

    matrix_sync();
    if (at->lane == 0) {
        asm volatile("atom." MERGE_ORDER ".gpu.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
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
    const int blocks = args->sequences * args->num_kv_heads * decode_passes(args);
    const int block =
        (item->batch * args->num_kv_heads + item->kv_head) * decode_passes(args) + item->first_row / DECODE_ROWS;
    const int own = block * MATRIX_WARPS + at->warp;
    return (__global int *)workspace + args->control_offset +
           (all ? own : blocks * MATRIX_WARPS + own * MERGE_MOST + first / MERGE_GROUP);
}

/* Counts this warp's rows of the item in, and merges what is complete by that: all splits, or a group of them and then
 * the groups. */
MATRIX_INLINE void matrix_merge(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                const matrix_place *at, __global out_element *out, __global float *lse,
                                __global float *workspace)
{
    const bool grouped = matrix_merges_groups(item);
    decode_item target = *item; /* where states go */
    target.v_scale = 1.0f;      /* partial states have it already */

#pragma unroll 1
    for (int level = grouped ? 0 : 1; level < 2; level++) {
        const bool all = level == 1;
        const int first = all ? 0 : item->slot / MERGE_GROUP * MERGE_GROUP;
        const int count = !all      ? min(MERGE_GROUP, item->splits - first)
                          : grouped ? (item->splits + MERGE_GROUP - 1) / MERGE_GROUP
                                    : item->splits;

        target.direct = all;
        if (!matrix_arrive(at, matrix_counter(args, item, at, all, first, workspace), count))
            return;
#pragma unroll 1
        for (int turn = 0; turn < FOLD_TURNS(DECODE_ROWS); turn += FOLD_ROWS) {
            const int r = matrix_own_row(at, turn, 0);
            const bool exists = r < DECODE_ROWS && decode_row_exists(args, item, r);
            if (!matrix_any(at, exists))
                break;
            const decode_row row = decode_find_row(args, item, min(r, DECODE_ROWS - 1));
            matrix_states states;
            matrix_fold fold;
            target.slot = DECODE_BALANCED ? item->first_slot : all && grouped ? matrix_group_slot(item, 0) : first;
            states.slot = decode_slot(args, &target, &row);
            states.count = count;
#if DECODE_BALANCED
            states.step = 2 * schedule_blocks(args) * DECODE_ROWS;
#endif
            fold.log2 = STATE_LOG2E;
#pragma unroll 1
            for (int again = 0; again < 2; again++) {
                matrix_merge_states(args, at, &states, workspace, &fold);
                if (!MERGE_MARKS || again || !matrix_any(at, matrix_merged_nan(&fold)))
                    break;
                matrix_await_states(args, at, &states, workspace);
            }
            target.slot = matrix_group_slot(item, first);
            matrix_end_fold(args, in, &target, at, &row, exists, &fold, out, lse, workspace);
        }
    }
}
#endif

/* Writes the rows of the item; a row belongs to one warp, the same in all work-groups. Under DECODE_FUSED then merges
 * what is complete by that. */
MATRIX_INLINE void matrix_finish(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                 const matrix_place *at, __local uchar *rings, const matrix_stream *stream,
                                 __global out_element *out, __global float *lse, __global float *workspace)
{
    const bool written_again = DECODE_BALANCED || DECODE_LOOPS; /* the rings, by the next item */

    matrix_fold_block(args, in, item, at, rings, stream, 0, out, lse, workspace);
#if MATRIX_BLOCKS > 1
    barrier(CLK_LOCAL_MEM_FENCE);
    matrix_fold_block(args, in, item, at, rings, stream, 1, out, lse, workspace);
#endif
    if (written_again)
        barrier(CLK_LOCAL_MEM_FENCE);
#if DECODE_FUSED
    if (!item->direct)
        matrix_merge(args, in, item, at, out, lse, workspace);
#endif
}

#endif

/* matrix_merge.cl - the splits of a row merged in the kernel that made them, where DECODE_FUSED says so: the last
 * work-group to finish does it, warp by warp. A warp of each work-group owns the same rows; it counts itself in when it
 * has written their partial states, and the one that finds itself the last merges them, in the order of the splits.
 * More than MERGE_MOST splits merge in two levels: the last of every MERGE_GROUP neighbours merges these into a slot
 * behind those of all splits, and the last of all merges what the groups became. It waits for no other's merge: what a
 * group has not become yet, it computes itself, to the same bits.
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

/* What a warp finds itself the last of. */
typedef struct matrix_arrival {
    bool of_group, of_all;
} matrix_arrival;

/* Counts this warp in: one lane for all of the item's splits, another for its group's, if they merge in groups. A counter
 * that is complete is left at 0. */
MATRIX_INLINE matrix_arrival matrix_arrive(const decode_args *args, const decode_item *item, const matrix_place *at,
                                           __global float *workspace)
{
    const bool grouped = matrix_merges_groups(item), of_group = at->lane == 1;
    const int blocks = args->sequences * args->num_kv_heads * decode_passes(args);
    const int block =
        (item->batch * args->num_kv_heads + item->kv_head) * decode_passes(args) + item->first_row / DECODE_ROWS;
    const int all = block * MATRIX_WARPS + at->warp;
    const int group = blocks * MATRIX_WARPS + all * MERGE_MOST + item->slot / MERGE_GROUP;
    __global int *const counter = (__global int *)workspace + args->control_offset + (of_group ? group : all);
    bool last = false;
    matrix_arrival arrival;

    matrix_sync();
    if (at->lane < (grouped ? 2 : 1)) {
        int before;
        asm volatile("atom." MERGE_ORDER ".gpu.global.add.s32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
        last = before == (of_group ? matrix_group_size(item, item->slot) : item->splits) - 1;
        if (last)
            *counter = 0;
    }
    arrival.of_all = matrix_from(at, (uint)last, 0) != 0;
    arrival.of_group = matrix_from(at, (uint)last, 1) != 0;
    matrix_sync();
    return arrival;
}

/* Merges this warp's rows of `states` from slot `slot` on, of which `target` says where the result goes. `first`: the row
 * of the first turn. False if some of it is missing: where `others` write them, that is no matter of time. */
MATRIX_INLINE bool matrix_merge_rows(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                     const matrix_place *at, const matrix_folded *first, int slot,
                                     matrix_states *states, const decode_item *target, bool others,
                                     __global out_element *out, __global float *lse, __global float *workspace)
{
    decode_item source = *item;
    source.slot = slot;

#pragma unroll 1
    for (int turn = 0; turn < FOLD_TURNS(DECODE_ROWS); turn += FOLD_ROWS) {
        const matrix_folded own = turn == 0 ? *first : matrix_find_folded(args, item, at, turn, 0, DECODE_ROWS);
        bool whole = !MERGE_MARKS && !others;
        matrix_fold fold;

        if (!matrix_any(at, own.exists))
            break;
        states->first = decode_state(args, &source, &own.row);
#pragma unroll 1
        for (int again = 0;; again++) { /* a NaN is what is missing, or the result */
            matrix_merge_states(args, at, states, workspace, &fold);
            if (whole || !matrix_any(at, matrix_merged_nan(&fold)))
                break;
            if (again > 0)
                whole = !matrix_any(at, matrix_misses_state(args, at, states, workspace));
            if (others && !whole && again == MERGE_PATIENCE)
                return false;
        }
        matrix_end_fold(args, in, target, at, &own.row, own.exists, &fold, out, lse, workspace);
    }
    return true;
}

/* Counts this warp's rows of the item in, and merges what is complete by that: all splits, or a group of them and then
 * the groups. `row`: the first turn's. */
MATRIX_INLINE void matrix_merge(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                const matrix_place *at, const matrix_folded *row, __global out_element *out,
                                __global float *lse, __global float *workspace)
{
    const int groups = matrix_merges_groups(item) ? matrix_num_groups(item) : 0;
    bool alone = false;                                    /* this warp merges all groups */
    int group = groups > 0 ? item->slot / MERGE_GROUP : 0; /* == groups: all of them */

    if (!MERGE_MARKS && groups > 0)
        matrix_mark_slot(args, item, at, matrix_group_slot(item, item->slot), workspace);
    const matrix_arrival last = matrix_arrive(args, item, at, workspace);
    if (!last.of_all && !(groups > 0 && last.of_group))
        return;
#pragma unroll 1
    for (;;) {
        const bool all = group == groups;
        const int first = group * MERGE_GROUP;
        decode_item target = *item; /* where states go */
        matrix_states states;

        target.v_scale = 1.0f; /* partial states have it already */
        target.direct = all;
        target.slot = matrix_group_slot(item, first);
        states.count = !all ? matrix_group_size(item, first) : groups > 0 ? groups : item->splits;
#if DECODE_BALANCED
        states.step = 2 * schedule_blocks(args) * DECODE_ROWS;
        const int slot = item->first_slot;
#else
        const int slot = !all ? first : groups > 0 ? matrix_group_slot(item, 0) : 0;
#endif
        const bool merged =
            matrix_merge_rows(args, in, item, at, row, slot, &states, &target, all && groups > 0, out, lse, workspace);
        if (all ? merged : !last.of_all)
            return;
        alone |= all;
        group = all ? 0 : alone ? group + 1 : groups;
        matrix_sync();
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
    /* Found once, before anything waits. */
    const matrix_folded row = matrix_find_folded(args, item, at, 0, 0, min(DECODE_ROWS, 8));

    matrix_fold_block(args, in, item, at, rings, stream, 0, &row, out, lse, workspace);
#if MATRIX_BLOCKS > 1
    barrier(CLK_LOCAL_MEM_FENCE);
    matrix_fold_block(args, in, item, at, rings, stream, 1, &row, out, lse, workspace);
#endif
    if (written_again)
        barrier(CLK_LOCAL_MEM_FENCE);
#if DECODE_FUSED
    if (!item->direct)
        matrix_merge(args, in, item, at, &row, out, lse, workspace);
#endif
}

#endif

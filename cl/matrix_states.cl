/* matrix_states.cl - the states of a row's splits in the workspace, which other work-groups read: where they lie, what
 * stands there before, and what they become together.
 *
 * Memory model: PTX ISA, "Memory consistency model". To release what was written, and with it the count, waits until it
 * has arrived, a way to the second-level cache and back. Where DECODE_FUSED is 2 a work-group instead marks its slots
 * as MISSING when it begins, which a fence puts before its count; and who finds itself the last, having acquired all
 * counts, sees of each float the mark or the state. What is still missing it reads again: it was written before the
 * count, and is on its way.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_STATES_CL
#define CLFD_MATRIX_STATES_CL

#include "matrix_fold.cl"

#if DECODE_FUSED
#define MERGE_MOST 16 /* states that one merge takes */
#define MERGE_GROUP 8
#define MERGE_MARKS (DECODE_FUSED == 2)

/* What stands for a float of a state that is not there yet: a NaN that no operation results in. */
#define MISSING as_float(0xffffffffu)

MATRIX_INLINE bool matrix_is_missing(float x) { return as_uint(x) == 0xffffffffu; }

/* States whose o a lane has on their way to registers at once: a part of MERGE_MOST, so that none is met twice. */
#define MERGE_BATCH (FOLD_QUADS > 2 ? 4 : 16 / FOLD_QUADS)

/* The states of a row that are merged: where the first one lies, and how many they are. */
typedef struct matrix_states {
    long slot;
    int count;
    int step; /* balanced: from one share's to the next's */
} matrix_states;

/* Where state i lies. That of the share in which a sequence begins is the second one there. */
MATRIX_INLINE long matrix_state_slot(const matrix_states *states, int i)
{
    return DECODE_BALANCED ? states->slot + (long)i * states->step + (i == 0 ? DECODE_ROWS : 0) : states->slot + i;
}

/* The lane's one of the FOLD_LANES states from `first` on. */
MATRIX_INLINE void matrix_load_state(const decode_args *args, const matrix_place *at, const matrix_states *states,
                                     int first, const __global float *workspace, matrix_fold *fold)
{
    const __global float *const stats = workspace + args->stats_offset;
    const int i = first + at->lane % FOLD_LANES;

    fold->exponent = -INFINITY;
    fold->l = fold->unit = 0.0f;
    if (i < states->count) {
        const float2 state = state_load(stats, stats + args->stats_stride, matrix_state_slot(states, i));
        fold->exponent = state.x;
        fold->l = fold->unit = state.y;
    }
}

/* Loads the lane's first state, and finds its part of the maximum of all. */
MATRIX_INLINE void matrix_begin_merge(const decode_args *args, const matrix_place *at, const matrix_states *states,
                                      const __global float *workspace, matrix_fold *fold)
{
    float top = -INFINITY;

#if DECODE_BALANCED
#pragma unroll 1
    for (int first = FOLD_LANES; first < states->count; first += FOLD_LANES) {
        matrix_load_state(args, at, states, first, workspace, fold);
        top = state_max(top, fold->exponent);
    }
#endif
    matrix_load_state(args, at, states, 0, workspace, fold);
    matrix_begin_fold(at, DECODE_BALANCED ? state_max(top, fold->exponent) : fold->exponent, fold);
}

/* Merges those states. */
MATRIX_INLINE void matrix_merge_states(const decode_args *args, const matrix_place *at, const matrix_states *states,
                                       const __global float *workspace, matrix_fold *fold)
{
    const __global float *from = workspace + (args->partial_o_offset + states->slot * HEAD_DIM_V);
    const int count = states->count;

#pragma unroll 1
    for (int first = 0; first < count; first += MERGE_BATCH) {
        float4 o[MERGE_BATCH][FOLD_QUADS];
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < MERGE_BATCH; i++) {
            const long distance = matrix_state_slot(states, first + i) - states->slot;
#pragma unroll MATRIX_UNROLL
            for (int q = 0; q < FOLD_QUADS; q++)
                o[i][q] = STATE_READ4_IF(
                    from + ((DECODE_BALANCED ? distance : i) * HEAD_DIM_V + matrix_fold_dim(at, q)), first + i < count);
        }
        if (first == 0) { /* not before the loads, which would wait for it */
            matrix_begin_merge(args, at, states, workspace, fold);
        } else if (DECODE_BALANCED && first % FOLD_LANES == 0) {
            matrix_load_state(args, at, states, first, workspace, fold);
            matrix_weigh_states(fold);
        }
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < MERGE_BATCH; i++) { /* the shares of what is no state are 0 */
            const float2 share = matrix_share(at, fold, (first + i) % FOLD_LANES);
            fold->total += share.y;
#pragma unroll MATRIX_UNROLL
            for (int q = 0; q < FOLD_QUADS; q++)
                fold->o[q] = fma(share.x, o[i][q], fold->o[q]);
        }
        from += DECODE_BALANCED ? 0 : MERGE_BATCH * HEAD_DIM_V;
    }
}

/* Whether something of what was merged was NaN, as what is missing is. */
MATRIX_INLINE bool matrix_merged_nan(const matrix_fold *fold)
{
    bool any = isnan(fold->total);
#pragma unroll MATRIX_UNROLL
    for (int q = 0; q < FOLD_QUADS; q++)
        any |= isnan(fold->o[q].x) || isnan(fold->o[q].y) || isnan(fold->o[q].z) || isnan(fold->o[q].w);
    return any;
}

/* Waits until none of those states is missing. */
MATRIX_INLINE void matrix_await_states(const decode_args *args, const matrix_place *at, const matrix_states *states,
                                       const __global float *workspace)
{
    bool missing;
    do {
        missing = false;
#pragma unroll 1
        for (int i = 0; i < states->count; i++) {
            const long slot = matrix_state_slot(states, i);
            missing |= state_has(workspace, args->stats_offset + slot, args->stats_stride, MISSING);
#pragma unroll MATRIX_UNROLL
            for (int q = 0; q < FOLD_QUADS; q++) {
                const float4 o = STATE_READ4_IF(
                    workspace + (args->partial_o_offset + slot * HEAD_DIM_V + matrix_fold_dim(at, q)), true);
                missing |= matrix_is_missing(o.x) || matrix_is_missing(o.y) || matrix_is_missing(o.z) ||
                           matrix_is_missing(o.w);
            }
        }
    } while (matrix_any(at, missing));
}

/* Whether the item's splits merge in two levels. The balanced schedule's do not: few sequences have many. */
MATRIX_INLINE bool matrix_merges_groups(const decode_item *item)
{
    return !DECODE_BALANCED && item->splits > MERGE_MOST;
}

/* The slot of a group of splits. */
MATRIX_INLINE int matrix_group_slot(const decode_item *item, int split) { return item->splits + split / MERGE_GROUP; }
#endif

/* Marks as missing what the warp's rows of the item will have in the workspace, and in the slot of the split's group:
 * the last of those who do so counts itself in before the group is merged. Whether there was something to mark. */
MATRIX_INLINE bool matrix_mark_states(const decode_args *args, const decode_item *item, const matrix_place *at,
                                      __global float *workspace)
{
#if DECODE_FUSED == 2
    decode_item target = *item;

    if (item->direct)
        return false;
#pragma unroll 1
    for (int level = matrix_merges_groups(item) ? 0 : 1; level < 2; level++) {
        target.slot = level == 0 ? matrix_group_slot(item, item->slot) : item->slot;
#pragma unroll 1
        for (int turn = 0; turn < FOLD_TURNS(DECODE_ROWS); turn += FOLD_ROWS) {
            const int r = matrix_own_row(at, turn, 0);
            if (r >= DECODE_ROWS || !decode_row_exists(args, item, r))
                continue;
            const decode_row row = decode_find_row(args, item, r);
            const long slot = decode_slot(args, &target, &row);
#pragma unroll MATRIX_UNROLL
            for (int q = 0; q < FOLD_QUADS; q++)
                ptx_write4(workspace + (args->partial_o_offset + slot * HEAD_DIM_V + matrix_fold_dim(at, q)),
                           (float4)MISSING);
            if (at->lane % FOLD_LANES == 0)
                state_fill(workspace, args->stats_offset + slot, args->stats_stride, MISSING);
        }
    }
    matrix_sync(); /* one lane counts for all */
    return true;
#else
    return false;
#endif
}

/* How many tokens before the item's end a warp whose first tile is `left` before it puts the fence behind its marks.
 * There it waits for all copies on their way, so that warps take turns, and none does before it has read some tiles (an
 * H200, 4 splits of 512 tokens: 20.7 us; all warps with the first tile 21.0, with the last one 20.9; without a fence
 * 20.5). */
MATRIX_INLINE int matrix_fence_place(const decode_item *item, const matrix_place *at, int left)
{
    return max(left - (2 + (at->warp + item->slot) % 4) * item->stride, 0);
}

MATRIX_INLINE void matrix_fence(void)
{
#if DECODE_FUSED
    ptx_fence();
#endif
}

#endif

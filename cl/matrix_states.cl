/* matrix_states.cl - the states of a row's splits in the workspace, which other work-groups read: where they lie, what
 * stands there before, and how one work-group merges them.
 *
 * Memory model: PTX ISA, "Memory consistency model". To release what was written, and with it the count, waits until it
 * has arrived, a way to the second-level cache and back. Where DECODE_FUSED is 2 a work-group instead marks its slots
 * as MISSING when it begins, which a fence puts before its count; and who merges, having acquired all counts, sees of
 * each float the mark or the state. What is still missing the last one reads again: it was written before the count, and
 * is on its way. Who merges before the last one is done (matrix_share.cl) looks for a while.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_STATES_CL
#define CLFD_MATRIX_STATES_CL

#include "matrix_fold.cl"

#if DECODE_FUSED
#define MERGE_MOST 16 /* splits that the last work-group merges alone */
#define MERGE_MARKS (DECODE_FUSED == 2)

/* What stands for a float of a state that is not there yet: a NaN that no operation results in. */
#define MISSING as_float(0xffffffffu)

/* Whether one of four floats is that. */
MATRIX_INLINE bool matrix_misses(float4 x)
{
    const uint4 bits = as_uint4(x);
    return max(max(bits.x, bits.y), max(bits.z, bits.w)) == as_uint(MISSING);
}

/* A warp's counter, in fields of 16 bits: of the warps with its rows those that are done with them; those that have put
 * the fence behind their marks; and, a bit for each that shares the merge, those that see to their part of it, and those
 * that leave that to the last one. */
#define MERGE_ARRIVED(word) ((int)((word)&0xffff))
#define MERGE_BEGUN(word) ((int)((word) >> 16 & 0xffff))
#define MERGE_SEEN(word) ((uint)((word) >> 32) & 0xffffu)
#define MERGE_LEFT(word) ((uint)((word) >> 48))
#define MERGE_ONE_BEGUN (1ul << 16)
#define MERGE_ONE_SEES (1ul << 32)
#define MERGE_ONE_LEAVES (1ul << 48)

MATRIX_INLINE __global ulong *matrix_counter(const decode_args *args, const decode_item *item, const matrix_place *at,
                                             __global float *workspace)
{
    const int block =
        (item->batch * args->num_kv_heads + item->kv_head) * decode_passes(args) + item->first_row / DECODE_ROWS;
    return (__global ulong *)((__global int *)workspace + args->control_offset) + (block * MATRIX_WARPS + at->warp);
}

/* Whether there are items whose merge several work-groups share. They live at once, and have no other items. */
#define MATRIX_SHARES (!DECODE_BALANCED && !DECODE_LOOPS)

MATRIX_INLINE bool matrix_shares(const decode_item *item) { return MATRIX_SHARES && item->splits > MERGE_MOST; }

/* States whose o a lane has on their way to registers at once: a part of MERGE_MOST, so that none is met twice. */
#define MERGE_BATCH (FOLD_QUADS > 2 ? 4 : DECODE_LOOPS || DECODE_BALANCED || !MERGE_MARKS ? 16 / FOLD_QUADS : 16)
#define MERGE_AT_ONCE (MERGE_BATCH == MERGE_MOST && !DECODE_BALANCED) /* which may have more states */
/* Asked once in a while within a batch: whether no state is left. */
#define MERGE_ENDS(first, i, count) ((i) == 8 && (first) + 8 >= (count))

/* The states of a row that are merged: where the first one lies, and how many they are. */
typedef struct matrix_states {
    long first;
    int count;
    int step; /* balanced: from one share's to the next's */
} matrix_states;

/* Where state i lies. That of the share in which a sequence begins is the second one there. */
MATRIX_INLINE long matrix_state_place(const matrix_states *states, int i)
{
    return DECODE_BALANCED ? states->first + (long)i * states->step + (i == 0 ? DECODE_ROWS : 0) : states->first + i;
}

/* Reads the lane's one of the FOLD_LANES states from `first` on; the last one where there is none. */
MATRIX_INLINE float2 matrix_read_state(const decode_args *args, const matrix_place *at, const matrix_states *states,
                                       int first, const __global float *workspace)
{
    const __global float *const stats = workspace + args->stats_offset;
    const int i = min(first + at->lane % FOLD_LANES, states->count - 1);
    return state_read(stats, stats + args->stats_stride, matrix_state_place(states, i));
}

/* What it read as (exponent, weight); the empty state where there is none. */
MATRIX_INLINE float2 matrix_take_state(const matrix_place *at, const matrix_states *states, int first, float2 read)
{
    return first + at->lane % FOLD_LANES < states->count ? state_weighted(read) : (float2)(-INFINITY, 0.0f);
}

/* The share of the lane's state under the maximum of all. */
MATRIX_INLINE float matrix_weigh_state(float2 state, const matrix_fold *fold)
{
    return state_weight_in(state.x, fold->top, fold->log2) * state.y;
}

/* Finds the maximum, of which a lane's first state has a part. */
MATRIX_INLINE void matrix_begin_merge(const decode_args *args, const matrix_place *at, const matrix_states *states,
                                      const __global float *workspace, float2 state, matrix_fold *fold)
{
    float top = state.x;

#if DECODE_BALANCED
#pragma unroll 1
    for (int first = FOLD_LANES; first < states->count; first += FOLD_LANES)
        top = state_max(top, state_weighted(matrix_read_state(args, at, states, first, workspace)).x);
#endif
#pragma unroll MATRIX_UNROLL
    for (int mask = FOLD_LANES / 2; mask > 0; mask /= 2)
        top = state_max(top, matrix_xor(at, top, mask));
    fold->log2 = STATE_LOG2E;
    matrix_begin_fold(top, fold);
}

/* Merges those states. */
MATRIX_INLINE void matrix_merge_states(const decode_args *args, const matrix_place *at, const matrix_states *states,
                                       const __global float *workspace, matrix_fold *fold)
{
    const __global float *from =
        workspace + (args->partial_o_offset + states->first * HEAD_DIM_V) + matrix_fold_dim(at);
    const int count = matrix_opaque(states->count); /* or all comparisons with it come before the first read */
    /* Before all o, which are on their way while the states are weighed; and not looked at before they are. */
    const float2 read = matrix_read_state(args, at, states, 0, workspace);
    float own;

#pragma unroll 1
    for (int first = 0; first < (MERGE_AT_ONCE ? 1 : count); first += MERGE_BATCH) {
        float4 o[MERGE_BATCH][FOLD_QUADS];
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < MERGE_BATCH; i++) {
            if (MERGE_ENDS(first, i, count))
                break;
            const long distance = matrix_state_place(states, first + i) - states->first;
#pragma unroll MATRIX_UNROLL
            for (int q = 0; q < FOLD_QUADS; q++)
                o[i][q] =
                    STATE_READ4_IF(from + ((DECODE_BALANCED ? distance : i) * HEAD_DIM_V + matrix_fold_step(at, q)),
                                   first + i < count);
        }
        if (first == 0) {
            const float2 late =
                (float2)(as_float(matrix_opaque(as_int(read.x))), as_float(matrix_opaque(as_int(read.y))));
            const float2 state = matrix_take_state(at, states, 0, late);
            matrix_begin_merge(args, at, states, workspace, state, fold);
            own = matrix_weigh_state(state, fold);
        } else if (DECODE_BALANCED && first % FOLD_LANES == 0) {
            const float2 later = matrix_read_state(args, at, states, first, workspace);
            own = matrix_weigh_state(matrix_take_state(at, states, first, later), fold);
        }
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < MERGE_BATCH; i++) { /* the shares of what is no state are 0 */
            if (MERGE_ENDS(first, i, count))
                break;
            const int lane = at->lane / FOLD_LANES * FOLD_LANES + (first + i) % FOLD_LANES;
            const float share = as_float(matrix_from(at, as_uint(own), lane)); /* of o and of l */
            fold->total += share;
#pragma unroll MATRIX_UNROLL
            for (int q = 0; q < FOLD_QUADS; q++)
                fold->o[q] = fma(share, o[i][q], fold->o[q]);
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

/* Whether one of those states is missing, or a part of it. */
MATRIX_INLINE bool matrix_misses_state(const decode_args *args, const matrix_place *at, const matrix_states *states,
                                       const __global float *workspace)
{
    const __global float *const stats = workspace + args->stats_offset;
    bool missing = false;
#pragma unroll 1
    for (int i = 0; i < states->count; i++) {
        const long place = matrix_state_place(states, i);
        missing |= state_has(state_read(stats, stats + args->stats_stride, place), MISSING);
#pragma unroll MATRIX_UNROLL
        for (int q = 0; q < FOLD_QUADS; q++)
            missing |= matrix_misses(STATE_READ4_IF(workspace + (args->partial_o_offset + place * HEAD_DIM_V) +
                                                        matrix_fold_dim(at) + matrix_fold_step(at, q),
                                                    true));
    }
    return missing;
}

/* Marks as missing what the warp's rows of the item will have in the workspace. */
MATRIX_INLINE void matrix_mark_rows(const decode_args *args, const decode_item *item, const matrix_place *at,
                                    __global float *workspace)
{
#pragma unroll 1
    for (int turn = 0; turn < FOLD_TURNS(DECODE_ROWS); turn += FOLD_ROWS) {
        const int r = matrix_own_row(at, turn, 0);
        if (r >= DECODE_ROWS || !decode_row_exists(args, item, r))
            continue;
        const decode_row row = decode_find_row(args, item, r);
        __global float *const o = decode_state_row(args, item, &row, workspace) + matrix_fold_dim(at);
#pragma unroll MATRIX_UNROLL
        for (int q = 0; q < FOLD_QUADS; q++)
            ptx_write4(o + matrix_fold_step(at, q), (float4)MISSING);
        if (at->lane % FOLD_LANES == 0)
            state_fill(workspace, args->stats_offset + decode_state(args, item, &row), args->stats_stride, MISSING);
    }
}
#endif

/* Marks what the warp will write for the item. Whether there is something to mark. */
MATRIX_INLINE bool matrix_mark_states(const decode_args *args, const decode_item *item, const matrix_place *at,
                                      __global float *workspace)
{
#if DECODE_FUSED == 2
    if (item->direct)
        return false;
    matrix_mark_rows(args, item, at, workspace);
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

/* Puts the fence there. Where the merge is shared, says so. */
MATRIX_INLINE void matrix_fence(const decode_args *args, const decode_item *item, const matrix_place *at,
                                __global float *workspace)
{
#if DECODE_FUSED == 2
    ptx_fence();
    if (matrix_shares(item) && at->lane == 0)
        ptx_add(matrix_counter(args, item, at, workspace), MERGE_ONE_BEGUN);
#endif
}

#endif

/* matrix_fold.cl - the end of a matrix item: states of a query row become one, which is written. Those of the warps of
 * the work-group meet in local memory; those of splits, which other work-groups wrote, come to registers.
 *
 * The splits of a row are merged in the kernel that made them where DECODE_FUSED says so: the last work-group to finish
 * does it, warp by warp. A warp of each work-group owns the same rows; it counts itself in when it has written their
 * partial states, and the one that finds itself the last merges them, in the order of the splits. More than MERGE_MOST
 * splits merge in two levels: the last of every MERGE_GROUP neighbours merges these into a slot behind those of all
 * splits, and the last of the groups merges what they made.
 *
 * Counters lie in the control region of the workspace, [sequence][kv_head][pass][warp] and then, group by group,
 * [sequence][kv_head][pass][warp][MERGE_MOST]; they are left at zero.
 *
 * Memory model: PTX ISA, "Memory consistency model". What the lanes of a warp wrote before bar.warp.sync is released by
 * an acq_rel operation of one of them, and acquired by the operation that reads the count. That release waits until
 * what was written has arrived, a way to the second-level cache and back. Where DECODE_FUSED is 2 a work-group instead
 * marks its slots as MISSING when it begins, which a fence puts before its count; and who finds itself the last, having
 * acquired all counts, sees of each float the mark or the state. What is still missing it reads again: it was written
 * before the count, and is on its way.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_FOLD_CL
#define CLFD_MATRIX_FOLD_CL

#include "matrix.cl"

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

/* Rows that a warp folds at once, each with a part of its lanes; the 4 dims that a lane has of each. */
#define FOLD_ROWS (DECODE_ROWS > MATRIX_WARPS ? 2 : 1)
#define FOLD_LANES (32 / FOLD_ROWS)
#define FOLD_QUADS ((HEAD_DIM_V / 4 + FOLD_LANES - 1) / FOLD_LANES)

/* A row's states that become one, as its lanes have them: lane i has state i's exponent, its l, and what its o is counted
 * in. */
typedef struct matrix_fold {
    float exponent, l, unit;
    float log2; /* exponents are in units of log2 / log2 */
    float top, total, share, l_share;
    float4 o[FOLD_QUADS];
} matrix_fold;

/* The first of a lane's dims of quad q; past the last one the last are meant again. */
MATRIX_INLINE int matrix_fold_dim(const matrix_place *at, int q)
{
    return min((at->lane % FOLD_LANES + q * FOLD_LANES) * 4, HEAD_DIM_V - 4);
}

/* The shares of the states under the maximum of all. */
MATRIX_INLINE void matrix_weigh_states(matrix_fold *fold)
{
    const float weight = state_weight_in(fold->exponent, fold->top, fold->log2);
    fold->share = weight * fold->unit;
    fold->l_share = weight * fold->l;
}

/* Finds the maximum, of which each lane has a part, before any state is added. */
MATRIX_INLINE void matrix_begin_fold(const matrix_place *at, float top, matrix_fold *fold)
{
    fold->top = top;
#pragma unroll MATRIX_UNROLL
    for (int mask = FOLD_LANES / 2; mask > 0; mask /= 2)
        fold->top = state_max(fold->top, matrix_xor(at, fold->top, mask));
    matrix_weigh_states(fold);
    fold->total = 0.0f;
#pragma unroll MATRIX_UNROLL
    for (int q = 0; q < FOLD_QUADS; q++)
        fold->o[q] = 0.0f;
}

/* The share of state i, and of its l. */
MATRIX_INLINE float2 matrix_share(const matrix_place *at, const matrix_fold *fold, int i)
{
    const int lane = at->lane / FOLD_LANES * FOLD_LANES + i;
    return (float2)(as_float(matrix_from(at, as_uint(fold->share), lane)),
                    as_float(matrix_from(at, as_uint(fold->l_share), lane)));
}

/* Adds the states of all warps, whose o lie in their rings. */
MATRIX_INLINE void matrix_add_warps(const matrix_place *at, const __local float *states, matrix_fold *fold)
{
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < MATRIX_WARPS; i++) {
        const float2 share = matrix_share(at, fold, i);
        fold->total += share.y;
#pragma unroll MATRIX_UNROLL
        for (int q = 0; q < FOLD_QUADS; q++)
            fold->o[q] =
                fma(share.x, *(const __local float4 *)(states + (i * (int)(WARP_BYTES / 4) + matrix_fold_dim(at, q))),
                    fold->o[q]);
    }
}

/* Writes what the states became, where the row exists. */
MATRIX_INLINE void matrix_end_fold(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                   const matrix_place *at, const decode_row *row, bool exists, const matrix_fold *fold,
                                   __global out_element *out, __global float *lse, __global float *workspace)
{
    const float natural = fold->log2 == 1.0f ? state_natural(fold->top) : fold->top;
    const float inverse = state_inverse(fold->total);

    if (!exists)
        return;
    const float sink_share = decode_sink_share_natural(args, in, item, row, natural, fold->total);
#pragma unroll MATRIX_UNROLL
    for (int q = 0; q < FOLD_QUADS; q++)
        if (HEAD_DIM_V / 4 % FOLD_LANES == 0 || at->lane % FOLD_LANES + q * FOLD_LANES < HEAD_DIM_V / 4)
            decode_store_quad(args, item, row, out, workspace, matrix_fold_dim(at, q), fold->o[q] * inverse,
                              sink_share);
    if (at->lane % FOLD_LANES == 0)
        decode_store_natural_stats(args, in, item, row, lse, workspace, natural, fold->total);
}

#if DECODE_FUSED
#define MERGE_MOST 16 /* states that one merge takes */
#define MERGE_GROUP 8
#define MERGE_MARKS (DECODE_FUSED == 2)
#if MERGE_MARKS
#define MERGE_ORDER "acquire"
#else
#define MERGE_ORDER "acq_rel"
#endif

/* What stands for a float of a state that is not there yet: a NaN that no operation results in. */
#define MISSING as_float(0xffffffffu)

MATRIX_INLINE bool matrix_is_missing(float x) { return as_uint(x) == 0xffffffffu; }

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
#endif

/* The rows that a warp's lanes fold or merge together, turn by turn: those of [begin, end) that are its own in all
 * work-groups. Behind the last one where there is none. */
MATRIX_INLINE int matrix_own_row(const matrix_place *at, int turn, int begin)
{
    return begin + (turn + at->lane / FOLD_LANES) * MATRIX_WARPS +
           (at->warp + MATRIX_WARPS - begin % MATRIX_WARPS) % MATRIX_WARPS;
}

#define FOLD_TURNS(rows) (((rows) + MATRIX_WARPS - 1) / MATRIX_WARPS)

#if DECODE_FUSED
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

/* Folds block b of the warps' states and writes it. */
MATRIX_INLINE void matrix_fold_block(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                     const matrix_place *at, __local uchar *rings, const matrix_stream *stream, int b,
                                     __global out_element *out, __global float *lse, __global float *workspace)
{
    const int begin = b * 8, end = min(DECODE_ROWS, begin + 8);

    matrix_put_states(at, rings, stream, b);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int turn = 0; turn < FOLD_TURNS(8); turn += FOLD_ROWS) {
        const int r = matrix_own_row(at, turn, begin), place = min(r, end - 1) - begin;
        const bool exists = r < end && decode_row_exists(args, item, r);
        if (CLFD_PTX && !matrix_any(at, exists))
            break;
        const decode_row row = decode_find_row(args, item, begin + place);
        const bool holds = at->lane % FOLD_LANES < MATRIX_WARPS;
        const float4 state = *matrix_fold_stats(rings, at->lane % FOLD_LANES % MATRIX_WARPS, place);
        matrix_fold fold;
        fold.log2 = 1.0f;
        fold.exponent = holds ? state.x : -INFINITY;
        fold.l = holds ? state.y : 0.0f;
        fold.unit = holds ? state.z : 0.0f;
        matrix_begin_fold(at, fold.exponent, &fold);
        matrix_add_warps(at, matrix_fold_o(rings, 0, place), &fold);
        matrix_end_fold(args, in, item, at, &row, exists, &fold, out, lse, workspace);
    }
}

#if DECODE_FUSED
/* Counts this warp's rows of the item in, and merges what is complete by that: all splits, or a group of them and then the
 * groups. */
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

/* Writes the rows of the item; a row belongs to one warp, the same in all work-groups. Under DECODE_FUSED then merges what
 * is complete by that. */
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

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

/* The shares of the states, before any is added. */
MATRIX_INLINE void matrix_begin_fold(const matrix_place *at, matrix_fold *fold)
{
    fold->top = fold->exponent;
#pragma unroll MATRIX_UNROLL
    for (int mask = FOLD_LANES / 2; mask > 0; mask /= 2)
        fold->top = state_max(fold->top, matrix_xor(at, fold->top, mask));
    const float weight = state_weight_in(fold->exponent, fold->top, fold->log2);
    fold->share = weight * fold->unit;
    fold->l_share = weight * fold->l;
    fold->total = 0.0f;
#pragma unroll MATRIX_UNROLL
    for (int q = 0; q < FOLD_QUADS; q++)
        fold->o[q] = 0.0f;
}

/* Adds states [first, first + num), whose o lie `stride` floats apart in local memory. */
MATRIX_INLINE void matrix_add_states(const matrix_place *at, matrix_fold *fold, int first, int num,
                                     const __local float *states, int stride)
{
    const int lanes = at->lane / FOLD_LANES * FOLD_LANES;

#pragma unroll 1
    for (int s = 0; s < num; s += 4, states += 4 * stride)
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < 4; i++) {
            const int lane = lanes + (first + s + i) % FOLD_LANES;
            const float share = as_float(matrix_from(at, as_uint(fold->share), lane));
            const float l_share = as_float(matrix_from(at, as_uint(fold->l_share), lane));
            if (s + i < num) {
                fold->total += l_share;
#pragma unroll MATRIX_UNROLL
                for (int q = 0; q < FOLD_QUADS; q++)
                    fold->o[q] = fma(share, *(const __local float4 *)(states + (i * stride + matrix_fold_dim(at, q))),
                                     fold->o[q]);
            }
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

/* States of a row that lie in the warp's ring at once, and where. */
#define MERGE_CHUNK (MERGE_MOST / FOLD_ROWS)
#define MERGE_PLACE(at) ((at)->lane / FOLD_LANES * (MERGE_CHUNK * HEAD_DIM_V * 4))

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

/* The lane's state of a set of a row's, `slot` being the first. */
MATRIX_INLINE void matrix_load_state(const decode_args *args, const matrix_place *at, const matrix_set *set, long slot,
                                     const __global float *workspace, matrix_fold *fold)
{
    const __global float *const stats = workspace + args->stats_offset;
    const int i = at->lane % FOLD_LANES;

    fold->exponent = -INFINITY;
    fold->l = fold->unit = 0.0f;
    if (i < set->count) {
        const float2 state = state_load(stats, stats + args->stats_stride, slot + i * set->step);
        fold->exponent = state.x;
        fold->l = fold->unit = state.y;
    }
}

/* Begins to copy o of `num` partial states of a row, `step` apart from `slot` on, to the row's part of the warp's ring. */
MATRIX_INLINE void matrix_copy_states(const decode_args *args, const matrix_place *at, long slot, int num, int step,
                                      const __global float *workspace)
{
    const __global float *const from = workspace + (args->partial_o_offset + slot * HEAD_DIM_V);

#pragma unroll MATRIX_UNROLL
    for (int q = 0; q < FOLD_QUADS; q++) {
        const int d = matrix_fold_dim(at, q);
        const __global float *quad = from + d;
        uint to = at->base + MERGE_PLACE(at) + d * 4;
#pragma unroll 4
        for (int s = 0; s < num; s++, quad += step * HEAD_DIM_V, to += HEAD_DIM_V * 4)
            matrix_copy_if16(at, to, (const __global uchar *)quad, true);
    }
    matrix_commit();
}
#endif

/* Writes the rows of the item; a row belongs to one warp, the same in all work-groups. Under DECODE_FUSED then merges what
 * is complete by that. */
MATRIX_INLINE void matrix_finish(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                 const matrix_place *at, __local uchar *rings, const matrix_stream *stream,
                                 __global out_element *out, __global float *lse, __global float *workspace)
{
    decode_item target = *item; /* where states go */
#if DECODE_FUSED
    matrix_set set;
#endif
    const int levels = MATRIX_BLOCKS + (DECODE_FUSED && !item->direct ? 2 : 0);

#pragma unroll 1
    for (int level = 0; level < levels; level++) { /* the blocks of the warps' states, then merges */
        const bool merges = DECODE_FUSED && level >= MATRIX_BLOCKS;
        const int begin = merges ? 0 : level * 8, end = merges ? DECODE_ROWS : min(DECODE_ROWS, begin + 8);
        if (!merges) {
#if !CLFD_PTX
            matrix_put_states(at, rings, stream, level);
#elif MATRIX_BLOCKS > 1 /* no index that would put registers into memory */
            if (level > 0)
                matrix_put_states(at, rings, stream, 1);
            else
                matrix_put_states(at, rings, stream, 0);
#else
            matrix_put_states(at, rings, stream, 0);
#endif
            barrier(CLK_LOCAL_MEM_FENCE);
        }
#if DECODE_FUSED
        else {
            const bool all = level > MATRIX_BLOCKS || item->splits <= MERGE_MOST;
            set.step = level > MATRIX_BLOCKS ? MERGE_GROUP : 1;
            set.first = all ? 0 : item->slot / MERGE_GROUP * MERGE_GROUP;
            set.count = !all                    ? min(MERGE_GROUP, item->splits - set.first)
                        : level > MATRIX_BLOCKS ? (item->splits + MERGE_GROUP - 1) / MERGE_GROUP
                                                : item->splits;
            if (!matrix_arrive(at, matrix_counter(args, item, at, all, set.first, workspace), set.count))
                return;
            target.slot = set.first;
            target.direct = all;
            target.v_scale = 1.0f; /* partial states have it already */
        }
#endif
#pragma unroll 1
        for (int turn = 0; turn < (8 * MATRIX_BLOCKS + MATRIX_WARPS - 1) / MATRIX_WARPS; turn += FOLD_ROWS) {
            const int r = begin + (turn + at->lane / FOLD_LANES) * MATRIX_WARPS +
                          (at->warp + MATRIX_WARPS - begin % MATRIX_WARPS) % MATRIX_WARPS;
            const bool exists = r < end && decode_row_exists(args, item, r);
            if (CLFD_PTX && !matrix_any(at, exists))
                break;
            const decode_row row = decode_find_row(args, item, min(r, end - 1));
            const __local float *states = matrix_fold_o(rings, 0, min(r, end - 1) - begin);
            int count = MATRIX_WARPS, chunk = MATRIX_WARPS, stride = WARP_BYTES / 4;
            matrix_fold fold;
            fold.log2 = merges ? STATE_LOG2E : 1.0f;
#if DECODE_FUSED
            const long slot = decode_slot(args, &target, &row);
            if (merges) {
                states = (const __local float *)(at->ring + MERGE_PLACE(at));
                count = set.count;
                chunk = MERGE_CHUNK;
                stride = HEAD_DIM_V;
                matrix_load_state(args, at, &set, slot, workspace, &fold);
            } else
#endif
            {
                const bool holds = at->lane % FOLD_LANES < MATRIX_WARPS;
                const float4 state =
                    *matrix_fold_stats(rings, at->lane % FOLD_LANES % MATRIX_WARPS, min(r, end - 1) - begin);
                fold.exponent = holds ? state.x : -INFINITY;
                fold.l = holds ? state.y : 0.0f;
                fold.unit = holds ? state.z : 0.0f;
            }
#pragma unroll 1
            for (int first = 0; first < count; first += chunk) {
                const int num = min(count - first, chunk);
#if DECODE_FUSED
                if (merges)
                    matrix_copy_states(args, at, slot + first * set.step, num, set.step, workspace);
#endif
                if (first == 0)
                    matrix_begin_fold(at, &fold);
#if DECODE_FUSED
                if (merges) {
                    matrix_wait(0);
                    matrix_sync();
                }
#endif
                matrix_add_states(at, &fold, first, num, states, stride);
#if DECODE_FUSED
                if (merges)
                    matrix_sync(); /* before the ring is written to again */
#endif
            }
            matrix_end_fold(args, in, &target, at, &row, exists, &fold, out, lse, workspace);
        }
#if DECODE_FUSED
        if (merges && target.direct)
            return;
#endif
#if DECODE_BALANCED || DECODE_LOOPS
        const bool written_again = !merges; /* the rings, by the next item */
#else
        const bool written_again = !merges && level + 1 < levels;
#endif
        if (written_again)
            barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

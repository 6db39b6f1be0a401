/* matrix_fold.cl - the end of a matrix item: states of a query row, which lanes of a warp have, become one, which is
 * written. Those of the warps of the work-group meet in local memory; those of splits come from matrix_merge.cl.
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

/* What a row's states become, as a lane has it. */
typedef struct matrix_fold {
    float log2; /* exponents are in units of log2 / log2 */
    float top, total;
    float4 o[FOLD_QUADS];
} matrix_fold;

/* The first dim of a lane's quad 0; and how far its quad q is from there, a constant where lanes have the same number of
 * quads. Past the last one the last is meant again. */
MATRIX_INLINE int matrix_fold_dim(const matrix_place *at) { return at->lane % FOLD_LANES * 4; }

MATRIX_INLINE int matrix_fold_step(const matrix_place *at, int q)
{
    const int dim = matrix_fold_dim(at), step = q * FOLD_LANES * 4;
    return HEAD_DIM_V / 4 % FOLD_LANES == 0 ? step : min(dim + step, HEAD_DIM_V - 4) - dim;
}

/* Before any state is added. `top`: the maximum of their exponents. */
MATRIX_INLINE void matrix_begin_fold(float top, matrix_fold *fold)
{
    fold->top = top;
    fold->total = 0.0f;
#pragma unroll MATRIX_UNROLL
    for (int q = 0; q < FOLD_QUADS; q++)
        fold->o[q] = 0.0f;
}

/* Adds the states of all warps for row `row` of a block. Every lane reads the statistics of all, which takes less time
 * than to tell each other. */
MATRIX_INLINE void matrix_add_warps(const matrix_place *at, __local uchar *rings, int row, matrix_fold *fold)
{
    const __local float *const states = matrix_fold_o(rings, 0, row) + matrix_fold_dim(at);
    float4 stats[MATRIX_WARPS]; /* m, l, and what o is counted in */
    float top = -INFINITY;

#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < MATRIX_WARPS; i++)
        stats[i] = *matrix_fold_stats(rings, i, row);
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < MATRIX_WARPS; i++)
        top = state_max(top, stats[i].x);
    fold->log2 = 1.0f;
    matrix_begin_fold(top, fold);
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < MATRIX_WARPS; i++) {
        const float weight = state_weight_in(stats[i].x, top, fold->log2);
        fold->total = fma(weight, stats[i].y, fold->total);
#pragma unroll MATRIX_UNROLL
        for (int q = 0; q < FOLD_QUADS; q++)
            fold->o[q] = fma(weight * stats[i].z,
                             *(const __local float4 *)(states + (i * (int)(WARP_BYTES / 4) + matrix_fold_step(at, q))),
                             fold->o[q]);
    }
}

/* Writes what the states became, where the row exists. */
MATRIX_INLINE void matrix_end_fold(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                   const matrix_place *at, const decode_row *row, bool exists, matrix_fold *fold,
                                   __global out_element *out, __global float *lse, __global float *workspace)
{
    const float natural = fold->log2 == 1.0f ? state_natural(fold->top) : fold->top;
    const float inverse = state_inverse(fold->total);

    if (!exists)
        return;
    const float sink_share = decode_sink_share_natural(args, in, item, row, natural, fold->total);
#pragma unroll MATRIX_UNROLL
    for (int q = 0; q < FOLD_QUADS; q++)
        fold->o[q] *= inverse;
    decode_store_quads(args, item, row, out, workspace, matrix_fold_dim(at), FOLD_LANES * 4, fold->o, FOLD_QUADS,
                       sink_share);
    if (at->lane % FOLD_LANES == 0)
        decode_store_natural_stats(args, in, item, row, lse, workspace, natural, fold->total);
}

/* The rows that a warp's lanes fold or merge together, turn by turn: those of [begin, end) that are its own in all
 * work-groups. Behind the last one where there is none. */
MATRIX_INLINE int matrix_own_row(const matrix_place *at, int turn, int begin)
{
    return begin + (turn + at->lane / FOLD_LANES) * MATRIX_WARPS +
           (at->warp + MATRIX_WARPS - begin % MATRIX_WARPS) % MATRIX_WARPS;
}

#define FOLD_TURNS(rows) (((rows) + MATRIX_WARPS - 1) / MATRIX_WARPS)

/* One of those rows. */
typedef struct matrix_folded {
    int r;
    bool exists;
    decode_row row;
} matrix_folded;

MATRIX_INLINE matrix_folded matrix_find_folded(const decode_args *args, const decode_item *item, const matrix_place *at,
                                               int turn, int begin, int end)
{
    matrix_folded folded;
    folded.r = matrix_own_row(at, turn, begin);
    folded.exists = folded.r < end && decode_row_exists(args, item, folded.r);
    folded.row = decode_find_row(args, item, min(folded.r, end - 1));
    return folded;
}

/* Folds block b of the warps' states and writes it. `first`: the row of block 0's first turn. */
MATRIX_INLINE void matrix_fold_block(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                     const matrix_place *at, __local uchar *rings, const matrix_stream *stream, int b,
                                     const matrix_folded *first, __global out_element *out, __global float *lse,
                                     __global float *workspace)
{
    const int begin = b * 8, end = min(DECODE_ROWS, begin + 8);

    matrix_put_states(at, rings, stream, b);
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int turn = 0; turn < FOLD_TURNS(8); turn += FOLD_ROWS) {
        const matrix_folded own = b == 0 && turn == 0 ? *first : matrix_find_folded(args, item, at, turn, begin, end);
        const int place = min(own.r, end - 1) - begin;
        if (CLFD_PTX && !matrix_any(at, own.exists))
            break;
        matrix_fold fold;
        matrix_add_warps(at, rings, place, &fold);
        matrix_end_fold(args, in, item, at, &own.row, own.exists, &fold, out, lse, workspace);
    }
}

#endif

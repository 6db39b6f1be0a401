/* matrix_fold.cl - the end of a matrix item: the warps' states become one state per query row, which is written.
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
    __local float *const first = matrix_fold_o(rings, at->warp, LANE_ROWS * at->pair);
    __local float *const second = first + FOLD_STRIDE;
    float2 l = (float2)(stream->l[b][0], stream->l[b][LANE_ROWS - 1]);

    if (b * 8 + LANE_ROWS * at->pair < DECODE_ROWS)
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < V_STEPS; c++) {
            const int upper = matrix_value_dim(c, at->row, 0), lower = matrix_value_dim(c, at->row, 1);
            const float4 o = stream->o[b][c];
            if (matrix_has_dim(upper))
                first[upper] = MATRIX_SPREAD ? o.x + o.y : o.x;
            if (matrix_has_dim(lower))
                first[lower] = MATRIX_SPREAD ? o.z + o.w : o.z;
            if (!MATRIX_SPREAD && matrix_has_dim(upper))
                second[upper] = o.y;
            if (!MATRIX_SPREAD && matrix_has_dim(lower))
                second[lower] = o.w;
        }
#pragma unroll MATRIX_UNROLL
    for (int mask = 4; mask < 32; mask *= 2) {
        l.x += matrix_xor(at, l.x, mask);
        l.y += matrix_xor(at, l.y, mask);
    }
    if (at->row < LANE_ROWS) {
        const int i = at->row;
        *matrix_fold_stats(rings, at->warp, LANE_ROWS * at->pair + i) =
            (float4)(i == 0 ? stream->m[b][0] : stream->m[b][LANE_ROWS - 1], i == 0 ? l.x : l.y,
                     !V_SCALED ? 1.0f
                     : i == 0  ? stream->unit[b][0]
                               : stream->unit[b][LANE_ROWS - 1],
                     0.0f);
    }
}

/* Adds up the warps' states of row r of block b and writes it: the work of one warp. */
MATRIX_INLINE void matrix_write_row(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                    const matrix_place *at, __local uchar *rings, int b, int r,
                                    __global out_element *out, __global float *lse, __global float *workspace)
{
    const decode_row row = decode_find_row(args, item, b * 8 + r);
    float top = -INFINITY, sum = 0.0f, shares[MATRIX_WARPS];
    float4 stats[MATRIX_WARPS];

#pragma unroll MATRIX_UNROLL
    for (int w = 0; w < MATRIX_WARPS; w++)
        stats[w] = *matrix_fold_stats(rings, w, r);
#pragma unroll MATRIX_UNROLL
    for (int w = 0; w < MATRIX_WARPS; w++)
        top = state_max(top, stats[w].x);
#pragma unroll MATRIX_UNROLL
    for (int w = 0; w < MATRIX_WARPS; w++) {
        const float weight = state_weight(stats[w].x, top);
        sum += weight * stats[w].y;
        shares[w] = weight * stats[w].z;
    }
    const float sink_share = decode_sink_share(args, in, item, &row, top, sum);
    for (int d = at->lane * 4; d < HEAD_DIM_V; d += 128) {
        float4 o = 0.0f;
#pragma unroll MATRIX_UNROLL
        for (int w = 0; w < MATRIX_WARPS; w++)
            o = fma(shares[w], *(const __local float4 *)(matrix_fold_o(rings, w, r) + d), o);
        o = (float4)(state_normalise(o.x, sum), state_normalise(o.y, sum), state_normalise(o.z, sum),
                     state_normalise(o.w, sum));
        decode_store_quad(args, item, &row, out, workspace, d, o, sink_share);
    }
    if (at->lane == 0)
        decode_store_stats(args, in, item, &row, lse, workspace, top, sum);
}

/* Writes the rows of the item. A row belongs to one warp, the same in all work-groups: matrix_merge.cl. */
MATRIX_INLINE void matrix_finish(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                 const matrix_place *at, __local uchar *rings, const matrix_stream *stream,
                                 __global out_element *out, __global float *lse, __global float *workspace)
{
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        const int skipped =
            (MATRIX_WARPS - b * 8 % MATRIX_WARPS) % MATRIX_WARPS; /* rows of the block before warp 0's */
        matrix_put_states(at, rings, stream, b);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int r = (at->warp + skipped) % MATRIX_WARPS; r < min(DECODE_ROWS - b * 8, 8); r += MATRIX_WARPS)
            if (decode_row_exists(args, item, b * 8 + r))
                matrix_write_row(args, in, item, at, rings, b, r, out, lse, workspace);
        if (DECODE_BALANCED || b + 1 < MATRIX_BLOCKS)
            barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

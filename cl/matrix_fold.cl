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

MATRIX_INLINE __local float *matrix_fold_stats(__local uchar *rings, int warp, int row)
{
    return (__local float *)(rings + warp * WARP_BYTES) + 8 * FOLD_STRIDE + row * 3;
}

/* Puts this warp's states of block b down. */
MATRIX_INLINE void matrix_put_states(const matrix_place *at, __local uchar *rings, const matrix_stream *stream, int b)
{
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < 2; i++) {
        const int row = 2 * at->pair + i;
        float l = stream->l[b][i];
#pragma unroll MATRIX_UNROLL
        for (int mask = 4; mask < 32; mask *= 2)
            l += matrix_xor(at, l, mask);
        if (b * 8 + row >= DECODE_ROWS)
            continue;
        __local float *const o = matrix_fold_o(rings, at->warp, row);
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < V_STEPS; c++) {
            o[matrix_value_dim(c, at->row, 0)] = i == 0 ? stream->o[b][c].x : stream->o[b][c].y;
            o[matrix_value_dim(c, at->row, 1)] = i == 0 ? stream->o[b][c].z : stream->o[b][c].w;
        }
        if (at->row == 0) {
            __local float *const stats = matrix_fold_stats(rings, at->warp, row);
            stats[0] = stream->m[b][i];
            stats[1] = l;
            stats[2] = V_SCALED ? stream->unit[b][i] : 1.0f;
        }
    }
}

/* Adds up the warps' states of a row of block b and writes it: the work of one warp. */
MATRIX_INLINE void matrix_write_row(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                    const matrix_place *at, __local uchar *rings, int b, int r,
                                    __global out_element *out, __global float *lse, __global float *workspace)
{
    const decode_row row = decode_find_row(args, item, b * 8 + r);
    float top = -INFINITY, sum = 0.0f, shares[MATRIX_WARPS];

#pragma unroll MATRIX_UNROLL
    for (int w = 0; w < MATRIX_WARPS; w++)
        top = state_max(top, matrix_fold_stats(rings, w, r)[0]);
#pragma unroll MATRIX_UNROLL
    for (int w = 0; w < MATRIX_WARPS; w++) {
        const __local float *const stats = matrix_fold_stats(rings, w, r);
        const float weight = state_weight(stats[0], top);
        sum += weight * stats[1];
        shares[w] = weight * stats[2];
    }
    const float sink_share = decode_sink_share(args, in, item, &row, top, sum);
#pragma unroll 1
    for (int d = at->lane; d < HEAD_DIM_V; d += 32) {
        float o = 0.0f;
#pragma unroll MATRIX_UNROLL
        for (int w = 0; w < MATRIX_WARPS; w++)
            o = fma(shares[w], matrix_fold_o(rings, w, r)[d], o);
        decode_store_o(args, item, &row, out, workspace, d, state_normalise(o, sum), sink_share);
    }
    if (at->lane == 0)
        decode_store_stats(args, in, item, &row, lse, workspace, top, sum);
}

/* Writes the rows of the item. */
MATRIX_INLINE void matrix_finish(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                 const matrix_place *at, __local uchar *rings, const matrix_stream *stream,
                                 __global out_element *out, __global float *lse, __global float *workspace)
{
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        matrix_put_states(at, rings, stream, b);
        barrier(CLK_LOCAL_MEM_FENCE);
        /* A row belongs to one warp, the same in all work-groups: matrix_merge.cl. */
#pragma unroll 1
        for (int r = 0; r < min(DECODE_ROWS - b * 8, 8); r++)
            if ((b * 8 + r) % MATRIX_WARPS == at->warp && decode_row_exists(args, item, b * 8 + r))
                matrix_write_row(args, in, item, at, rings, b, r, out, lse, workspace);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

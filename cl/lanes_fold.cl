/* lanes_fold.cl - the end of a lanes work-group: its lane groups, each a stream with a state of its own, become one state
 * per query row, which is written.
 *
 * Tunables: those of lanes.cl.
 */
#ifndef CLFD_LANES_FOLD_CL
#define CLFD_LANES_FOLD_CL

#include "lanes_exchange.cl"

/* One chunk of o into 8 planes of local memory, element by element. */
LANES_INLINE void lanes_put_chunk(__local float *plane, float8 chunk)
{
    plane[0] = chunk.s0;
    plane[FOLD_STRIDE] = chunk.s1;
    plane[2 * FOLD_STRIDE] = chunk.s2;
    plane[3 * FOLD_STRIDE] = chunk.s3;
    plane[4 * FOLD_STRIDE] = chunk.s4;
    plane[5 * FOLD_STRIDE] = chunk.s5;
    plane[6 * FOLD_STRIDE] = chunk.s6;
    plane[7 * FOLD_STRIDE] = chunk.s7;
}

/* Chunk c of row r of every part, put by all lane groups into `planes`: adds up the groups and writes the elements. */
LANES_INLINE void lanes_write_chunk(const decode_args *args, const decode_item *item, const lanes_place *at, int r,
                                    int c, const __local float *planes, const __local float2 *totals,
                                    __global out_element *out, __global float *workspace)
{
    for (int x = at->item; x < LANES_PARTS * LANES * 8; x += LANES_WG) {
        const int part = x / (LANES * 8), y = x % (LANES * 8);
        const int d = lanes_value_dim(c, y / 8, at->odd, y % 8);
        const __local float *const column = planes + y % 8 * FOLD_STRIDE + part * PART_WG + y / 8;
        float sum = 0.0f;
        if (d >= HEAD_DIM_V || !lanes_row_exists(args, item, part, r))
            continue;
        for (int g = 0; g < GROUPS; g++)
            sum += column[g * LANES];
        const decode_row row = decode_find_row(args, item, lanes_row(part, r));
        const float2 total = totals[lanes_row(part, r)];
        decode_store_o(args, item, &row, out, workspace, d, state_normalise(sum, total.x), total.y);
    }
}

/* Folds the lane groups of each part into one state per row and writes it. `stats` and `totals` are scratch; totals are
 * the sums of the rows' weights, and what their sinks leave of them. */
LANES_INLINE void lanes_finish(const decode_args *args, const decode_inputs *in, const decode_item *item,
                               const lanes_place *at, lanes_stream *stream, __local float *stats,
                               __local float2 *totals, __global out_element *out, __global float *lse,
                               __global float *workspace)
{
    __local float *const part_m = stats + at->part * (2 * PADDED_ROWS * GROUPS);
    __local float *const part_l = part_m + PADDED_ROWS * GROUPS;
    float l = stream->l;

    for (int width = ROW_LANES / 2; width >= COPIES; width /= 2)
        l += lanes_xor(at, l, width);
    if (at->lane % ROW_LANES == 0) {
        part_m[at->lane / ROW_LANES * GROUPS + at->group] = stream->m;
        part_l[at->lane / ROW_LANES * GROUPS + at->group] = l;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int r = 0; r < LANES_ROWS; r++) {
        float top = -INFINITY, sum = 0.0f;
        for (int g = 0; g < GROUPS; g++)
            top = state_max(top, part_m[r * GROUPS + g]);
        for (int g = 0; g < GROUPS; g++)
            sum += state_weight(part_m[r * GROUPS + g], top) * part_l[r * GROUPS + g];
        const float weight = state_weight(part_m[r * GROUPS + at->group], top);
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS_V; c++)
            stream->o[r][c] *= weight;
        if (at->item % PART_WG == 0 && lanes_row_exists(args, item, at->part, r)) {
            const decode_row row = decode_find_row(args, item, lanes_row(at->part, r));
            totals[lanes_row(at->part, r)] = (float2)(sum, decode_sink_share(args, in, item, &row, top, sum));
            decode_store_stats(args, in, item, &row, lse, workspace, top, sum);
        }
    }
#pragma unroll
    for (int first = 0; first < LANES_ROWS * LANE_CHUNKS_V; first += FOLD_CHUNKS) {
        const int count = min(FOLD_CHUNKS, LANES_ROWS * LANE_CHUNKS_V - first);
#pragma unroll
        for (int i = 0; i < FOLD_CHUNKS; i++)
            if (i < count)
                lanes_put_chunk(at->share + i * 8 * FOLD_STRIDE + at->item,
                                stream->o[(first + i) / LANE_CHUNKS_V][(first + i) % LANE_CHUNKS_V]);
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int i = 0; i < FOLD_CHUNKS; i++)
            if (i < count)
                lanes_write_chunk(args, item, at, (first + i) / LANE_CHUNKS_V, (first + i) % LANE_CHUNKS_V,
                                  at->share + i * 8 * FOLD_STRIDE, totals, out, workspace);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

#endif

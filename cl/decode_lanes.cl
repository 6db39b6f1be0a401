/* decode_lanes.cl - a group of work-items ("lanes") per KV row: the family for GPUs.
 *
 * A work-group is LANES_PARTS parts of GROUPS lane groups. A part owns LANES_ROWS of the block's query rows; the parts
 * read the same K and V at about the same time, so that all but the first find them in the cache. Each lane group is a
 * stream: it takes LANES_UNROLL tokens per step, holds its own (m, l, o) and meets the other groups of its part only at
 * the end, in local memory. A lane holds every LANES-th chunk of 8 elements of a row, so a lane group reads a row as
 * one contiguous run. The scores of a step, LANES_UNROLL tokens by LANES_ROWS query rows, are summed over the lanes by a
 * transposing reduction: at each stage a lane passes on half of its sums, so that at the end the sums are spread over
 * the lanes and each exp is computed once.
 *
 * Tunables: those of lanes.cl.
 */
#include "lanes_fold.cl"

/* Chunk c of this lane in a row, zeros past the last one. */
static inline kv_raw8 lanes_load(const __global kv_element *row, int c, int lane, int chunks, int lane_chunks)
{
    const int chunk = c * LANES + lane;
    kv_raw8 raw = 0;
    if (lane_chunks * LANES == chunks || chunk < chunks)
        raw = kv_load8(row, chunk * 8);
    return raw;
}

static inline float lanes_dot8(float8 a, float8 b, float sum)
{
    sum = fma(a.s0, b.s0, sum);
    sum = fma(a.s1, b.s1, sum);
    sum = fma(a.s2, b.s2, sum);
    sum = fma(a.s3, b.s3, sum);
    sum = fma(a.s4, b.s4, sum);
    sum = fma(a.s5, b.s5, sum);
    sum = fma(a.s6, b.s6, sum);
    return fma(a.s7, b.s7, sum);
}

/* Chunk c of query row r as floats, for this lane; zeros past the last one. */
static inline float8 lanes_load_q(const __global q_element *q, const decode_args *args, const decode_item *item, int r,
                                  int c, int lane)
{
    const int chunk = c * LANES + lane;
    float values[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    if (chunk < CHUNKS) {
        const decode_row row = decode_find_row(args, item, r);
        const long index = decode_q_index(args, item, &row) + chunk * 8;
#pragma unroll
        for (int e = 0; e < 8; e++)
            values[e] = q_load(q, index + e);
    }
    return vload8(0, values);
}

/* Raises the stream's maxima to `top` where that is greater: what was summed under the old ones shrinks. */
static inline void lanes_raise(const lanes_place *at, lanes_stream *stream, float top)
{
    const float raised = state_max(top, stream->m);
    const float shrink = state_weight(stream->m, raised);
    lanes_publish(at, &shrink, 1);
#pragma unroll
    for (int r = 0; r < LANES_ROWS; r++) {
        const float row_shrink = lanes_read(at, &shrink, 0, r * ROW_LANES);
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS_V; c++)
            stream->o[r][c] *= row_shrink;
    }
    lanes_retire();
    stream->l *= shrink;
    stream->m = raised;
}

/* Turns this lane's sums of a step into weights under the stream's maxima, which they may raise. A key that the row may
 * not see gets the weight -1, which no other has. True where some lane that runs together with this one has such a
 * key. Of the step's tokens the row sees the first `visible`. */
static inline bool lanes_weigh(const lanes_place *at, lanes_stream *stream, float *sums, float factor, int visible)
{
    float top = -INFINITY;
    bool hidden = false;
#pragma unroll
    for (int i = 0; i < SLOTS; i++) {
        const int u = (at->lane / COPIES * SLOTS + i) % LANES_UNROLL;
        sums[i] = u * GROUPS + at->group >= visible ? -INFINITY : sums[i] * factor;
        top = state_max(top, sums[i]);
        hidden |= sums[i] == -INFINITY;
    }
#pragma unroll
    for (int width = ROW_LANES / 2; width >= COPIES; width /= 2)
        top = state_max(top, lanes_xor(at, top, width));
    if (lanes_any(top > stream->m))
        lanes_raise(at, stream, top);
    const float under = state_base(stream->m);
#pragma unroll
    for (int i = 0; i < SLOTS; i++) {
        const bool invisible = sums[i] == -INFINITY;
        const float p = state_exp2(sums[i] - under);
        stream->l += invisible ? 0.0f : p;
        sums[i] = invisible ? -1.0f : p;
    }
    return lanes_any(hidden);
}

/* o += weight * V for the step's tokens; with `hidden` a V of negative weight is passed over, whatever it holds. */
static inline void lanes_accumulate(const lanes_place *at, lanes_stream *stream, const float *weights,
                                    kv_raw8 (*raw_v)[LANE_CHUNKS_V], bool hidden)
{
    lanes_publish(at, weights, SLOTS);
#pragma unroll
    for (int u = 0; u < LANES_UNROLL; u++) {
        float p[LANES_ROWS];
#pragma unroll
        for (int r = 0; r < LANES_ROWS; r++)
            p[r] = lanes_read(at, weights, SUM_SLOT(r * LANES_UNROLL + u), SUM_LANE(r * LANES_UNROLL + u));
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS_V; c++) {
            const float8 value = kv_unpack8(raw_v[u][c]);
#pragma unroll
            for (int r = 0; r < LANES_ROWS; r++)
                stream->o[r][c] = hidden && p[r] < 0.0f ? stream->o[r][c] : fma(p[r], value, stream->o[r][c]);
        }
    }
    lanes_retire();
}

__attribute__((reqd_work_group_size(LANES_WG, 1, 1))) __kernel void decode_lanes(DECODE_ARGUMENTS)
{
    __local float share[SHARE_FLOATS];
    __local float stats[LANES_PARTS * 2 * PADDED_ROWS * GROUPS];
    __local float totals[LANES_PARTS * LANES_ROWS];
#if LANES_Q_LOCAL
    __local float8 shared_q[LANES_PARTS * LANES_ROWS * LANE_CHUNKS * LANES];
#endif
    decode_item item;
    lanes_stream stream;

    if (!decode_find_item(&args, kv_lens, (uint)get_group_id(0), &item))
        return;
    const lanes_place at = lanes_find_place(share);

#if LANES_Q_LOCAL
    for (int x = at.item; x < LANES_PARTS * LANES_ROWS * LANE_CHUNKS * LANES; x += LANES_WG)
        shared_q[x] = lanes_load_q(q, &args, &item, x / (LANE_CHUNKS * LANES), x / LANES % LANE_CHUNKS, x % LANES);
    barrier(CLK_LOCAL_MEM_FENCE);
#define QUERY(r, c) shared_q[(lanes_row(at.part, r) * LANE_CHUNKS + (c)) * LANES + at.lane]
#else
    float8 own_q[LANES_ROWS][LANE_CHUNKS];
#pragma unroll
    for (int r = 0; r < LANES_ROWS; r++)
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS; c++)
            own_q[r][c] = lanes_load_q(q, &args, &item, lanes_row(at.part, r), c, at.lane);
#define QUERY(r, c) own_q[r][c]
#endif
    stream.m = -INFINITY;
    stream.l = 0.0f;
#pragma unroll
    for (int r = 0; r < LANES_ROWS; r++)
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS_V; c++)
            stream.o[r][c] = 0.0f;

    const float factor = score_factor(&args);
    const kv_rows keys = kv_keys(k, &args, item.batch, item.kv_head);
    const kv_rows values = V_FROM_K ? keys : kv_values(v, &args, item.batch, item.kv_head);
    const int own_row = lanes_row(at.part, min(at.lane / ROW_LANES, LANES_ROWS - 1));
    const int limit = min(decode_find_row(&args, &item, own_row).limit, item.end);

    /* Counted down, because a token past the last one may not fit in an int. */
    for (int left = item.end - item.begin; left > 0; left -= TILE) {
        const int base = item.end - left;
        kv_raw8 raw_k[LANES_UNROLL][LANE_CHUNKS], raw_v[LANES_UNROLL][LANE_CHUNKS_V];
        float sums[SUMS];

        /* All loads of the step are issued before the first is used. Past the end the last token is read again. */
#pragma unroll
        for (int u = 0; u < LANES_UNROLL; u++) {
            const int token = base + min(u * GROUPS + at.group, left - 1);
#pragma unroll
            for (int c = 0; c < LANE_CHUNKS; c++)
                raw_k[u][c] = lanes_load(kv_row(&keys, token), c, at.lane, CHUNKS, LANE_CHUNKS);
        }
#pragma unroll
        for (int u = 0; u < LANES_UNROLL; u++) {
            const int token = base + min(u * GROUPS + at.group, left - 1);
#pragma unroll
            for (int c = 0; c < LANE_CHUNKS_V; c++)
                raw_v[u][c] =
                    V_FROM_K ? raw_k[u][c] : lanes_load(kv_row(&values, token), c, at.lane, CHUNKS_V, LANE_CHUNKS_V);
        }
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sums[i] = 0.0f;
#pragma unroll
        for (int u = 0; u < LANES_UNROLL; u++)
#pragma unroll
            for (int c = 0; c < LANE_CHUNKS; c++) {
                const float8 key = kv_unpack8(raw_k[u][c]);
#pragma unroll
                for (int r = 0; r < LANES_ROWS; r++)
                    sums[r * LANES_UNROLL + u] = lanes_dot8(QUERY(r, c), key, sums[r * LANES_UNROLL + u]);
            }
        lanes_reduce(&at, sums);
        if (lanes_weigh(&at, &stream, sums, factor, limit - base))
            lanes_accumulate(&at, &stream, sums, raw_v, true);
        else
            lanes_accumulate(&at, &stream, sums, raw_v, false);
    }
    lanes_finish(&args, &item, &at, &stream, stats, totals, out, lse, workspace);
}

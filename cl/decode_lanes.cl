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
#include "lanes_softmax.cl"

LANES_INLINE float lanes_dot8(float8 a, float8 b, float sum)
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
LANES_INLINE float8 lanes_load_q(const __global q_element *q, const decode_args *args, const decode_item *item, int r,
                                 int c, int lane)
{
    const int chunk = LANE_CHUNK(c, lane);
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

/* The block's query rows, for one lane: in registers while they fit, else in local memory. */
typedef struct lanes_queries {
#if LANES_Q_LOCAL
    const __local float8 *shared;
#else
    float8 own[LANES_ROWS][LANE_CHUNKS];
#endif
} lanes_queries;

/* Chunk c of row r of the lane's part. */
LANES_INLINE float8 lanes_query(const lanes_queries *queries, const lanes_place *at, int r, int c)
{
#if LANES_Q_LOCAL
    return queries->shared[(lanes_row(at->part, r) * LANE_CHUNKS + c) * LANES + at->lane];
#else
    return queries->own[r][c];
#endif
}

/* The lane's sums of a step. */
LANES_INLINE void lanes_sum(const lanes_place *at, const lanes_queries *queries, const lanes_step *step, float *sums)
{
#pragma unroll
    for (int i = 0; i < SUMS; i++)
        sums[i] = 0.0f;
#pragma unroll
    for (int u = 0; u < LANES_UNROLL; u++)
#pragma unroll
        for (int i = 0; i < LANE_RUNS; i++) {
            const lanes_chunks chunks = lanes_key_chunks(&step->tokens[u], i, at->lane);
#pragma unroll
            for (int c = 0; c < LANE_RUN; c++)
#pragma unroll
                for (int r = 0; r < LANES_ROWS; r++) {
                    const float8 query = lanes_query(queries, at, r, i * LANE_RUN + c);
                    const int sum = r * LANES_UNROLL + u;
#if RUN_SCALED
                    sums[sum] = fma(chunks.scales[c], lanes_dot8(query, chunks.values[c], 0.0f), sums[sum]);
#else
                    sums[sum] = lanes_dot8(query, chunks.values[c], sums[sum]);
#endif
                }
        }
}

/* Goes through the item's tokens. Pages are found a step ahead of the loads, so that no load of K and V waits for one of
 * the table; with LANES_AHEAD the loads themselves are a step ahead of their use. */
LANES_INLINE void lanes_walk(const decode_args *args, const decode_inputs *in, const decode_item *item,
                             const lanes_place *at, const lanes_queries *queries, lanes_stream *stream)
{
    const kv_cache cache = kv_open(args, in, item->batch, item->sequence.cache_row, item->kv_head);
    score_row row = decode_score_row(args, in, item, lanes_row(at->part, min(at->lane / ROW_LANES, LANES_ROWS - 1)));
    kv_place places[LANES_UNROLL];
    lanes_step step;
    uint valid = 0;
    int loaded = item->end - item->begin; /* the step that is loaded next: tokens from its first to the end */

    row.limit = min(row.limit, item->end);
    if (loaded <= 0)
        return;
    valid = lanes_find_tokens(args, in, &cache, at, item->end, loaded, places);
#if LANES_AHEAD
    lanes_load_step(args, in, &cache, at, item->end, loaded, places, valid, &step);
    loaded -= TILE;
    if (loaded > 0)
        valid = lanes_find_tokens(args, in, &cache, at, item->end, loaded, places);
#endif
    /* Counted down, because a token past the last one may not fit in an int. */
    for (int left = item->end - item->begin; left > 0; left -= TILE) {
        float sums[SUMS];
#if LANES_AHEAD
        lanes_step next;
        if (loaded > 0)
            lanes_load_step(args, in, &cache, at, item->end, loaded, places, valid, &next);
#else
        lanes_load_step(args, in, &cache, at, item->end, loaded, places, valid, &step);
#endif
        loaded -= TILE;
        if (loaded > 0)
            valid = lanes_find_tokens(args, in, &cache, at, item->end, loaded, places);
        lanes_sum(at, queries, &step, sums);
        lanes_reduce(at, sums);
        if (lanes_weigh(args, in, at, stream, &row, &step.scales, sums, item->k_scale, item->end - left, step.valid))
            lanes_accumulate(at, stream, sums, step.tokens, true);
        else
            lanes_accumulate(at, stream, sums, step.tokens, false);
#if LANES_AHEAD
        step = next;
#endif
    }
}

LANES_KERNEL_SIZE __kernel void decode_lanes(DECODE_ARGUMENTS)
{
    __local float share[SHARE_FLOATS];
    __local float stats[LANES_PARTS * 2 * PADDED_ROWS * GROUPS];
    __local float2 totals[LANES_PARTS * LANES_ROWS];
#if LANES_Q_LOCAL
    __local float8 shared_q[LANES_PARTS * LANES_ROWS * LANE_CHUNKS * LANES];
#endif
    const lanes_place at = lanes_find_place(share);
    __local decode_work work;
    decode_item item;
    DECODE_INPUTS(in);

    decode_start(&args, &in, &work);
    DECODE_EACH_ITEM(&args, &in, &work, &item, workspace)
    {
        lanes_queries queries;
        lanes_stream stream;
#if LANES_Q_LOCAL
        for (int x = at.item; x < LANES_PARTS * LANES_ROWS * LANE_CHUNKS * LANES; x += LANES_WG)
            shared_q[x] = lanes_load_q(q, &args, &item, x / (LANE_CHUNKS * LANES), x / LANES % LANE_CHUNKS, x % LANES);
        barrier(CLK_LOCAL_MEM_FENCE);
        queries.shared = shared_q;
#else
#pragma unroll
        for (int r = 0; r < LANES_ROWS; r++)
#pragma unroll
            for (int c = 0; c < LANE_CHUNKS; c++)
                queries.own[r][c] = lanes_load_q(q, &args, &item, lanes_row(at.part, r), c, at.lane);
#endif
        stream.m = -INFINITY;
        stream.l = 0.0f;
#pragma unroll
        for (int r = 0; r < LANES_ROWS; r++)
#pragma unroll
            for (int c = 0; c < LANE_CHUNKS_V; c++)
                stream.o[r][c] = 0.0f;
        lanes_walk(&args, &in, &item, &at, &queries, &stream);
        lanes_finish(&args, &in, &item, &at, &stream, stats, totals, out, lse, workspace);
    }
}

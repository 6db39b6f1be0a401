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
#include "lanes_dot.cl"
#include "lanes_fold.cl"
#include "lanes_softmax.cl"

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
    lanes_load_keys(args, in, &cache, at, places, &step);
    lanes_load_values(args, in, &cache, at, item->end, loaded, places, valid, &step);
    loaded -= TILE;
    if (loaded > 0)
        valid = lanes_find_tokens(args, in, &cache, at, item->end, loaded, places);
#endif
    /* Counted down, because a token past the last one may not fit in an int. */
    for (int left = item->end - item->begin; left > 0; left -= TILE) {
        float sums[SUMS];
#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sums[i] = 0.0f;
#if DOT_BYTES
        /* First of all, because what is loaded before such a branch may get loaded behind it. */
        if (queries->irregular != 0) {
#if !LANES_AHEAD
            lanes_load_keys(args, in, &cache, at, places, &step);
#endif
            lanes_sum_irregular(at, queries, &step, sums);
        }
#endif
#if LANES_AHEAD == 1
        lanes_step next;
        if (loaded > 0) {
            lanes_load_keys(args, in, &cache, at, places, &next);
            lanes_load_values(args, in, &cache, at, item->end, loaded, places, valid, &next);
        }
#elif !LANES_AHEAD
        lanes_load_keys(args, in, &cache, at, places, &step);
        lanes_load_values(args, in, &cache, at, item->end, loaded, places, valid, &step);
#endif
#if LANES_AHEAD == 2
        lanes_sum(at, queries, &step, sums);
        if (loaded > 0)
            lanes_load_keys(args, in, &cache, at, places, &step);
#else
        loaded -= TILE;
        if (loaded > 0)
            valid = lanes_find_tokens(args, in, &cache, at, item->end, loaded, places);
        lanes_sum(at, queries, &step, sums);
#endif
        lanes_reduce(at, sums);
        if (lanes_weigh(args, in, at, stream, &row, &step.scales, sums, item->k_scale, item->end - left, step.valid))
            lanes_accumulate(at, stream, sums, step.tokens, true);
        else
            lanes_accumulate(at, stream, sums, step.tokens, false);
#if LANES_AHEAD == 1
        step = next;
#elif LANES_AHEAD == 2
        if (loaded > 0)
            lanes_load_values(args, in, &cache, at, item->end, loaded, places, valid, &step);
        loaded -= TILE;
        if (loaded > 0)
            valid = lanes_find_tokens(args, in, &cache, at, item->end, loaded, places);
#endif
    }
}

LANES_KERNEL_SIZE __kernel void decode_lanes(DECODE_ARGUMENTS)
{
    __local float share[SHARE_FLOATS];
    __local float stats[LANES_PARTS * 2 * PADDED_ROWS * GROUPS];
    __local float2 totals[LANES_PARTS * LANES_ROWS];
#if LANES_Q_SHARED
    __local float8 shared_q[LANES_PARTS * LANES_ROWS * LANE_CHUNKS * LANES];
#else
    __local float8 *const shared_q = NULL;
#endif
#if DOT_BYTES
    __local uint4 shared_words[LANES_PARTS * LANES * DOT_PLACES / 2 + 1];
    __local uint2 *const shared_digits = (__local uint2 *)shared_words;
#else
    __local uint2 *const shared_digits = NULL;
#endif
    lanes_place at = lanes_find_place(share);
    __local decode_work work;
    decode_item item;
    DECODE_INPUTS(in);

    decode_start(&args, &in, &work);
    DECODE_EACH_ITEM(&args, &in, &work, &item, workspace)
    {
        lanes_queries queries;
        lanes_stream stream;
        decode_scale_item(&args, &in, &item);
        at.odd = lanes_find_odd(&args, &in, &item);
        lanes_open_queries(q, &args, &item, &at, shared_q, shared_digits, &queries);
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

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

#if LANE_RUN > 1
typedef K_FORMAT(run) lanes_key_run;
#else
typedef K_FORMAT(raw8) lanes_key_run;
#endif
#if LANE_RUN_V > 1
typedef V_FORMAT(run) lanes_value_run;
#else
typedef V_FORMAT(raw8) lanes_value_run;
#endif

/* What a lane reads of a token before it uses any of it: its runs of K and of V, the last one again past it, and their
 * scales and zeros. */
typedef struct lanes_token {
    lanes_key_run k[LANE_RUNS];
    lanes_value_run v[LANE_RUNS_V];
    float k_scale[LANE_SCALES], k_zero[LANE_SCALES]; /* RUN_SCALED, K_ZEROS */
    float v_scale[LANE_SCALES_V], v_zero[LANE_SCALES_V];
} lanes_token;

/* The first dim of run i of a lane, of `dims`. */
LANES_INLINE int lanes_run_dim(int i, int lane, int run, int dims)
{
    const int d = lanes_chunk(i * run, lane, run) * 8;
    return dims / 8 % (LANES * run) == 0 ? d : min(d, dims - 8 * run);
}

LANES_INLINE void lanes_load_key(const decode_args *args, const decode_inputs *in, const kv_cache *cache,
                                 kv_place place, int lane, lanes_token *token)
{
    const __global uchar *const row = kv_key(args, cache, place);
#pragma unroll
    for (int i = 0; i < LANE_RUNS; i++)
#if LANE_RUN > 1
        token->k[i] = K_FORMAT(load_run)(row, lanes_run_dim(i, lane, LANE_RUN, HEAD_DIM));
#else
        token->k[i] = K_FORMAT(load8)(row, lanes_run_dim(i, lane, LANE_RUN, HEAD_DIM));
#endif
#pragma unroll
    for (int i = 0; i < LANE_SCALES; i++) {
        const int d = lanes_run_dim(i, lane, LANE_RUN, HEAD_DIM);
#if RUN_SCALED
        token->k_scale[i] = kv_key_scale(args, in, cache, place, row, d);
#endif
#if K_ZEROS
        token->k_zero[i] = kv_key_zero(args, in, cache, place, d);
#endif
    }
}

LANES_INLINE void lanes_load_value(const decode_args *args, const decode_inputs *in, const kv_cache *cache,
                                   kv_place place, int lane, lanes_token *token)
{
    const __global uchar *const row = kv_value(args, cache, place);
#pragma unroll
    for (int i = 0; i < LANE_RUNS_V; i++)
#if V_FROM_K && LANE_RUN_V == LANE_RUN
        token->v[i] = token->k[i];
#elif LANE_RUN_V > 1
        token->v[i] = V_FORMAT(load_run)(row, lanes_run_dim(i, lane, LANE_RUN_V, HEAD_DIM_V));
#else
        token->v[i] = V_FORMAT(load8)(row, lanes_run_dim(i, lane, LANE_RUN_V, HEAD_DIM_V));
#endif
#pragma unroll
    for (int i = 0; i < LANE_SCALES_V; i++) {
        const int d = lanes_run_dim(i, lane, LANE_RUN_V, HEAD_DIM_V);
#if RUN_SCALED_V
        token->v_scale[i] = kv_value_scale(args, in, cache, place, row, d);
#endif
#if V_ZEROS
        token->v_zero[i] = kv_value_zero(args, in, cache, place, d);
#endif
    }
}

/* Chunk c as floats: codes less their zero where there are scales, which partial products are multiplied by. Past the
 * last chunk of K they are 0. */
LANES_INLINE float8 lanes_key(const lanes_token *token, int c, int lane)
{
#if LANE_RUN > 1
    float8 key = K_FORMAT(unpack_run)(token->k[c / LANE_RUN], c % LANE_RUN);
#else
    float8 key = K_FORMAT(unpack8)(token->k[c]);
#endif
#if K_ZEROS
    key -= token->k_zero[min(c / LANE_RUN, LANE_SCALES - 1)];
#endif
    if (CHUNKS % (LANES * LANE_RUN) != 0)
        key = lanes_chunk(c, lane, LANE_RUN) < CHUNKS ? key : (float8)(0.0f);
    return key;
}

LANES_INLINE float8 lanes_value(const lanes_token *token, int c)
{
#if LANE_RUN_V > 1
    float8 value = V_FORMAT(unpack_run)(token->v[c / LANE_RUN_V], c % LANE_RUN_V);
#else
    float8 value = V_FORMAT(unpack8)(token->v[c]);
#endif
#if V_ZEROS
    value -= token->v_zero[min(c / LANE_RUN_V, LANE_SCALES_V - 1)];
#endif
    return value;
}

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
    const int chunk = lanes_chunk(c, lane, LANE_RUN);
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
LANES_INLINE void lanes_raise(const lanes_place *at, lanes_stream *stream, float top)
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

/* The scales of whole rows that belong to this lane's sums of the step that begins `left` tokens before the item's end. */
typedef struct lanes_scales {
    float k[SLOTS], v[SLOTS]; /* ROW_SCALED, ROW_SCALED_V */
} lanes_scales;

/* The token of this lane's sum `slot`, counted in lane groups of the step. */
LANES_INLINE int lanes_slot_token(const lanes_place *at, int slot)
{
    return (at->lane / COPIES * SLOTS + slot) % LANES_UNROLL;
}

LANES_INLINE void lanes_load_scales(const decode_args *args, const decode_inputs *in, const kv_cache *cache,
                                    const lanes_place *at, int end, int left, lanes_scales *scales)
{
#if ROW_SCALED || ROW_SCALED_V
#pragma unroll
    for (int i = 0; i < SLOTS; i++) {
        const int ahead = lanes_slot_token(at, i) * GROUPS + at->group;
        const kv_place place = kv_find(args, in, cache, end - left + min(ahead, left - 1));
#if ROW_SCALED
        scales->k[i] = kv_key_scale(args, in, cache, place, cache->k, 0);
#endif
#if ROW_SCALED_V
        scales->v[i] = kv_value_scale(args, in, cache, place, cache->v, 0);
#endif
    }
#endif
}

/* What no visible key's weight is: those that are zero are +0. */
#define HIDDEN_WEIGHT (-0.0f)
LANES_INLINE bool lanes_is_hidden(float weight) { return as_uint(weight) == 0x80000000u; }

/* Turns this lane's sums of a step into weights under the stream's maxima, which they may raise. A key that the row may
 * not see gets the weight HIDDEN_WEIGHT. True where some lane that runs together with this one has such a
 * key. `base` is the step's first token; bit u of `valid` says whether token u of the lane group exists. */
LANES_INLINE bool lanes_weigh(const decode_args *args, const decode_inputs *in, const lanes_place *at,
                              lanes_stream *stream, const score_row *row, const lanes_scales *scales, float *sums,
                              float scale, int base, uint valid)
{
    /* Relative to the base, because a token past the last one may not fit in an int. */
    const int first = row->first - base, limit = row->limit - base;
    float top = -INFINITY;
    bool hidden = false;
#pragma unroll
    for (int i = 0; i < SLOTS; i++) {
        const int u = lanes_slot_token(at, i), ahead = u * GROUPS + at->group;
        const float own_scale = ROW_SCALED ? scale * scales->k[i] : scale;
        bool visible = ahead < limit;
#if SCORE_WINDOW || SCORE_START
        visible &= ahead >= first;
#endif
#if KV_PAGED
        visible &= (valid >> u & 1u) != 0;
#endif
#if SCORE_BY_KEY
        sums[i] = visible ? score_key(args, in, row, base + ahead, own_scale, sums[i]) : -INFINITY;
#else
        sums[i] = visible ? score_value(args, in, row, base, own_scale, sums[i]) : -INFINITY;
#endif
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
#if ROW_SCALED_V
        sums[i] = invisible ? HIDDEN_WEIGHT : p * scales->v[i] + 0.0f;
#else
        sums[i] = invisible ? HIDDEN_WEIGHT : p;
#endif
    }
    return lanes_any(hidden);
}

/* o += weight * V for the step's tokens; with `hidden` a V of HIDDEN_WEIGHT is passed over, whatever it
 * holds. */
LANES_INLINE void lanes_accumulate(const lanes_place *at, lanes_stream *stream, const float *weights,
                                   const lanes_token *tokens, bool hidden)
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
            const float8 value = lanes_value(&tokens[u], c);
#pragma unroll
            for (int r = 0; r < LANES_ROWS; r++) {
#if RUN_SCALED_V
                const float weight = p[r] * tokens[u].v_scale[min(c / LANE_RUN_V, LANE_SCALES_V - 1)];
#else
                const float weight = p[r];
#endif
                stream->o[r][c] =
                    hidden && lanes_is_hidden(p[r]) ? stream->o[r][c] : fma(weight, value, stream->o[r][c]);
            }
        }
    }
    lanes_retire();
}

/* The places of this lane group's tokens of the step that begins `left` tokens before the item's end. Past the end the
 * last token is meant again. Returns the bits of those that exist. */
LANES_INLINE uint lanes_find_tokens(const decode_args *args, const decode_inputs *in, const kv_cache *cache,
                                    const lanes_place *at, int end, int left, kv_place *places)
{
    uint valid = 0;
#pragma unroll
    for (int u = 0; u < LANES_UNROLL; u++) {
        places[u] = kv_find(args, in, cache, end - left + min(u * GROUPS + at->group, left - 1));
        valid |= (uint)places[u].valid << u;
    }
    return valid;
}

__attribute__((reqd_work_group_size(LANES_WG, 1, 1))) __kernel void decode_lanes(DECODE_ARGUMENTS)
{
    __local float share[SHARE_FLOATS];
    __local float stats[LANES_PARTS * 2 * PADDED_ROWS * GROUPS];
    __local float2 totals[LANES_PARTS * LANES_ROWS];
#if LANES_Q_LOCAL
    __local float8 shared_q[LANES_PARTS * LANES_ROWS * LANE_CHUNKS * LANES];
#endif
    const lanes_place at = lanes_find_place(share);
    decode_work work;
    decode_item item;
    DECODE_INPUTS(in);

    decode_start(&args, &in, &work);
    DECODE_EACH_ITEM(&args, &in, &work, &item, workspace)
    {
        lanes_stream stream;
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

        const kv_cache cache = kv_open(&args, &in, item.sequence.cache_row, item.kv_head);
        score_row own_row =
            decode_score_row(&args, &in, &item, lanes_row(at.part, min(at.lane / ROW_LANES, LANES_ROWS - 1)));
        own_row.limit = min(own_row.limit, item.end);
        kv_place next[LANES_UNROLL];
        uint next_valid = 0;
        if (KV_PAGED > 0 && item.begin < item.end)
            next_valid = lanes_find_tokens(&args, &in, &cache, &at, item.end, item.end - item.begin, next);

        /* Counted down, because a token past the last one may not fit in an int. */
        for (int left = item.end - item.begin; left > 0; left -= TILE) {
            const int base = item.end - left;
            lanes_token tokens[LANES_UNROLL];
            kv_place places[LANES_UNROLL];
            lanes_scales scales;
            uint valid = next_valid;
            float sums[SUMS];

            /* Pages are found a step ahead, so that no load of K and V waits for a load of the table. */
#if KV_PAGED
#pragma unroll
            for (int u = 0; u < LANES_UNROLL; u++)
                places[u] = next[u];
#else
            valid = lanes_find_tokens(&args, &in, &cache, &at, item.end, left, places);
#endif
                /* All loads of the step are issued before the first is used. */
#pragma unroll
            for (int u = 0; u < LANES_UNROLL; u++)
                lanes_load_key(&args, &in, &cache, places[u], at.lane, &tokens[u]);
#pragma unroll
            for (int u = 0; u < LANES_UNROLL; u++)
                lanes_load_value(&args, &in, &cache, places[u], at.lane, &tokens[u]);
            lanes_load_scales(&args, &in, &cache, &at, item.end, left, &scales);
            if (KV_PAGED > 0 && left > TILE)
                next_valid = lanes_find_tokens(&args, &in, &cache, &at, item.end, left - TILE, next);
#pragma unroll
            for (int i = 0; i < SUMS; i++)
                sums[i] = 0.0f;
#pragma unroll
            for (int u = 0; u < LANES_UNROLL; u++)
#pragma unroll
                for (int c = 0; c < LANE_CHUNKS; c++) {
                    const float8 key = lanes_key(&tokens[u], c, at.lane);
#pragma unroll
                    for (int r = 0; r < LANES_ROWS; r++) {
                        const int sum = r * LANES_UNROLL + u;
#if RUN_SCALED
                        sums[sum] = fma(tokens[u].k_scale[min(c / LANE_RUN, LANE_SCALES - 1)],
                                        lanes_dot8(QUERY(r, c), key, 0.0f), sums[sum]);
#else
                        sums[sum] = lanes_dot8(QUERY(r, c), key, sums[sum]);
#endif
                    }
                }
            lanes_reduce(&at, sums);
            if (lanes_weigh(&args, &in, &at, &stream, &own_row, &scales, sums, item.k_scale, base, valid))
                lanes_accumulate(&at, &stream, sums, tokens, true);
            else
                lanes_accumulate(&at, &stream, sums, tokens, false);
        }
        lanes_finish(&args, &in, &item, &at, &stream, stats, totals, out, lse, workspace);
    }
}

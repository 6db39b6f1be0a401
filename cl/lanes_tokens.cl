/* lanes_tokens.cl - what the lanes of a group read of a step's tokens: rows of K and V as they lie in memory, scales, zeros.
 *
 * Tunables: those of lanes.cl.
 */
#ifndef CLFD_LANES_TOKENS_CL
#define CLFD_LANES_TOKENS_CL

#include "lanes.cl"

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
#if RUN_SCALE_APART || K_ZEROS
#pragma unroll
    for (int i = 0; i < LANE_SCALES; i++) {
        const int d = lanes_run_dim(i, lane, LANE_RUN, HEAD_DIM);
#if RUN_SCALE_APART
        token->k_scale[i] = kv_key_scale(args, in, cache, place, row, d);
#endif
#if K_ZEROS
        token->k_zero[i] = kv_key_zero(args, in, cache, place, d);
#endif
    }
#endif
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
#if RUN_SCALE_APART_V || V_ZEROS
#pragma unroll
    for (int i = 0; i < LANE_SCALES_V; i++) {
        const int d = lanes_run_dim(i, lane, LANE_RUN_V, HEAD_DIM_V);
#if RUN_SCALE_APART_V
        token->v_scale[i] = kv_value_scale(args, in, cache, place, row, d);
#endif
#if V_ZEROS
        token->v_zero[i] = kv_value_zero(args, in, cache, place, d);
#endif
    }
#endif
}

/* Chunk c of K as floats: codes less their zero where there are scales, which the partial product is multiplied by. Past
 * the last chunk they are 0. */
LANES_INLINE float8 lanes_key(const lanes_token *token, int c, const lanes_place *at)
{
#if LANE_RUN > 1
    float8 key =
        K_FORMAT(unpack_run)(token->k[c / LANE_RUN], c % LANE_RUN, lanes_key_phase(c / LANE_RUN, at->lane, at->odd));
#else
    float8 key = K_FORMAT(unpack8)(token->k[c]);
#endif
#if K_ZEROS
    key -= token->k_zero[min(c / LANE_RUN, LANE_SCALES - 1)];
#endif
    if (CHUNKS % (LANES * LANE_RUN) != 0)
        key = LANE_CHUNK(c, at->lane) < CHUNKS ? key : (float8)(0.0f);
    return key;
}

LANES_INLINE float8 lanes_value(const lanes_token *token, int c, const lanes_place *at)
{
#if LANE_RUN_V > 1
    float8 value = V_FORMAT(unpack_run)(token->v[c / LANE_RUN_V], c % LANE_RUN_V,
                                        lanes_value_phase(c / LANE_RUN_V, at->lane, at->odd));
#else
    float8 value = V_FORMAT(unpack8)(token->v[c]);
#endif
#if V_ZEROS
    value -= token->v_zero[min(c / LANE_RUN_V, LANE_SCALES_V - 1)];
#endif
    return value;
}

/* The chunks of run i of K and of V with their scales, 1 where a scale is applied elsewhere. */
typedef struct lanes_chunks {
    float8 values[4];
    float scales[4];
} lanes_chunks;

LANES_INLINE lanes_chunks lanes_key_chunks(const lanes_token *token, int i, const lanes_place *at)
{
    lanes_chunks chunks;
#pragma unroll
    for (int c = 0; c < LANE_RUN; c++) {
        chunks.values[c] = lanes_key(token, i * LANE_RUN + c, at);
#if K_SCALE == SCALE_ROW && LANE_RUN > 1
        chunks.scales[c] = kv_key_factor(K_FORMAT(run_scale)(token->k[i], lanes_key_phase(i, at->lane, at->odd)));
#else
        chunks.scales[c] = RUN_SCALED ? token->k_scale[min(i, LANE_SCALES - 1)] : 1.0f;
#endif
    }
    return chunks;
}

#if K_BYTES_TIMES != 0
/* The same of K as bytes. Past the last run the queries are 0. */
typedef struct lanes_bytes {
    uint2 codes[LANE_RUN];
    float scale;
} lanes_bytes;

LANES_INLINE lanes_bytes lanes_key_bytes(const lanes_token *token, int i, const lanes_place *at)
{
    lanes_bytes bytes;
#if LANE_RUN > 1
#pragma unroll
    for (int c = 0; c < LANE_RUN; c++)
        bytes.codes[c] = K_FORMAT(bytes_run)(token->k[i], c, lanes_key_phase(i, at->lane, at->odd));
#else
    bytes.codes[0] = K_FORMAT(bytes8)(token->k[i]);
#endif
#if K_SCALE == SCALE_ROW && LANE_RUN > 1
    bytes.scale = kv_key_factor(K_FORMAT(run_scale)(token->k[i], lanes_key_phase(i, at->lane, at->odd)));
#else
    bytes.scale = RUN_SCALED ? token->k_scale[min(i, LANE_SCALES - 1)] : 1.0f;
#endif
    return bytes;
}
#endif

LANES_INLINE lanes_chunks lanes_value_chunks(const lanes_token *token, int i, const lanes_place *at)
{
    lanes_chunks chunks;
#pragma unroll
    for (int c = 0; c < LANE_RUN_V; c++) {
        chunks.values[c] = lanes_value(token, i * LANE_RUN_V + c, at);
#if V_SCALE == SCALE_ROW && LANE_RUN_V > 1
        chunks.scales[c] = V_FORMAT(run_scale)(token->v[i], lanes_value_phase(i, at->lane, at->odd));
#else
        chunks.scales[c] = RUN_SCALED_V ? token->v_scale[min(i, LANE_SCALES_V - 1)] : 1.0f;
#endif
    }
    return chunks;
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
        const kv_place place = decode_find_key(args, in, cache, end - left + min(ahead, left - 1));
#if ROW_SCALED
        scales->k[i] = kv_key_scale(args, in, cache, place, cache->k, 0);
#endif
#if ROW_SCALED_V
        scales->v[i] = kv_value_scale(args, in, cache, place, cache->v, 0);
#endif
    }
#endif
}

/* The places of this lane group's tokens of the step that begins `left` tokens before the item's end. Past the end the
 * last token is meant again. Returns the bits of those that exist. */
LANES_INLINE uint lanes_find_tokens(const decode_args *args, const decode_inputs *in, const kv_cache *cache,
                                    const lanes_place *at, int end, int left, kv_place *places)
{
    uint valid = 0;
#pragma unroll
    for (int u = 0; u < LANES_UNROLL; u++) {
        places[u] = decode_find_key(args, in, cache, end - left + min(u * GROUPS + at->group, left - 1));
        valid |= (uint)places[u].valid << u;
    }
    return valid;
}

/* All that a lane reads of a step. */
typedef struct lanes_step {
    lanes_token tokens[LANES_UNROLL];
    lanes_scales scales;
    uint valid; /* bit u: token u of the lane group exists */
} lanes_step;

/* Issue the loads of a step, all before the first is used: of its keys; of its values, and of what lies apart. `places` and
 * `valid`: what lanes_find_tokens gave for it. */
LANES_INLINE void lanes_load_keys(const decode_args *args, const decode_inputs *in, const kv_cache *cache,
                                  const lanes_place *at, const kv_place *places, lanes_step *step)
{
#pragma unroll
    for (int u = 0; u < LANES_UNROLL; u++)
        lanes_load_key(args, in, cache, places[u], at->lane, &step->tokens[u]);
}

LANES_INLINE void lanes_load_values(const decode_args *args, const decode_inputs *in, const kv_cache *cache,
                                    const lanes_place *at, int end, int left, const kv_place *places, uint valid,
                                    lanes_step *step)
{
    step->valid = valid;
#pragma unroll
    for (int u = 0; u < LANES_UNROLL; u++)
        lanes_load_value(args, in, cache, places[u], at->lane, &step->tokens[u]);
    lanes_load_scales(args, in, cache, at, end, left, &step->scales);
}

#endif

/* lanes_softmax.cl - the online softmax of a lane group: from a step's sums to weights, from weights to o.
 *
 * Tunables: those of lanes.cl.
 */
#ifndef CLFD_LANES_SOFTMAX_CL
#define CLFD_LANES_SOFTMAX_CL

#include "lanes_exchange.cl"
#include "lanes_tokens.cl"

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
    const int limit = row->limit - base;
    float top = -INFINITY;
    bool hidden = false;
#pragma unroll
    for (int i = 0; i < SLOTS; i++) {
        const int u = lanes_slot_token(at, i), ahead = u * GROUPS + at->group;
        const float own_scale = ROW_SCALED ? scale * scales->k[i] : scale;
        bool visible = ahead < limit;
#if SCORE_WINDOW || SCORE_START
        visible &= ahead >= row->first - base;
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
        for (int i = 0; i < LANE_RUNS_V; i++) {
            const lanes_chunks chunks = lanes_value_chunks(&tokens[u], i, at);
#pragma unroll
            for (int c = 0; c < LANE_RUN_V; c++)
#pragma unroll
                for (int r = 0; r < LANES_ROWS; r++) {
                    float8 *const o = &stream->o[r][i * LANE_RUN_V + c];
#if RUN_SCALED_V
                    const float weight = p[r] * chunks.scales[c];
#else
                    const float weight = p[r];
#endif
                    *o = hidden && lanes_is_hidden(p[r]) ? *o : fma(weight, chunks.values[c], *o);
                }
        }
    }
    lanes_retire();
}

#endif

/* matrix_softmax.cl - the online softmax of a warp: from operands of K to scores, to weights, to o.
 *
 * A row's maximum, which need not be one exactly, is raised only when a score exceeds it by more than RAISE_ABOVE, and then
 * to RAISE_TO below that score: weights are up to 2^RAISE_ABOVE, which uses the range of f16, and o need not be multiplied
 * at every tile. Whether a row's maximum is raised depends on that row alone.
 * Weights enter their products as two elements, the second what rounding took from the first, so that o is as exact as
 * K, V and q allow.
 *
 * Scores, weights and sums of products come in fours: tokens row (x, y) and row + 8 (z, w) of the tile, for rows 2 pair
 * (x, z) and 2 pair + 1 (y, w) of a block.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_SOFTMAX_CL
#define CLFD_MATRIX_SOFTMAX_CL

#include "matrix_irregular.cl"
#include "matrix_operands.cl"

#if MATRIX_BF16 /* which has the range of a float */
#define RAISE_ABOVE 8.0f
#define RAISE_TO 0.0f
#else
#define RAISE_ABOVE 15.0f
#define RAISE_TO 7.0f
#endif

#if !K_INTEGERS
/* The products of q and K. */
MATRIX_INLINE void matrix_dot(const matrix_place *at, const matrix_queries *queries, const matrix_keys *keys,
                              float4 sums[MATRIX_BLOCKS])
{
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        float4 even = 0.0f, odd = 0.0f; /* two chains, so that a product need not wait for the one before */
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < K_STEPS; c += 2) {
            matrix_multiply(at, &even, keys->operands[c], queries->q[b][c]);
            if (c + 1 < K_STEPS)
                matrix_multiply(at, &odd, keys->operands[c + 1], queries->q[b][c + 1]);
        }
        sums[b] = even + odd;
    }
}
#endif

/* Turns products into scores: -inf where the row may not see the token. `left` is from the tile's first token to the
 * item's end. */
MATRIX_INLINE void matrix_score(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                const matrix_place *at, const matrix_queries *queries, const matrix_scales *scales,
                                const matrix_ring *ring, int left, float4 *sums)
{
    const int base = item->end - max(left, 0); /* relative to it, because a token past the last may not fit in an int */

#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        float scores[4] = {sums[b].x, sums[b].y, sums[b].z, sums[b].w};
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < 4; i++) {
            if (i % 2 >= LANE_ROWS) {
                scores[i] = -INFINITY;
                continue;
            }
            const score_row *const row = &queries->rows[b][i % 2];
            const int ahead = at->row + i / 2 * 8;
#if K_ROW_SCALED
            const float scale = item->k_scale * scales->k[i / 2][0];
#else
            const float scale = item->k_scale;
#endif
            bool visible = ahead < row->limit - base;
#if KV_PAGED
            visible &= (ring->there[0] >> ahead & 1u) != 0;
#endif
#if SCORE_WINDOW || SCORE_START
            visible &= ahead >= row->first - base;
#endif
#if SCORE_BY_KEY
            scores[i] = visible ? score_key(args, in, row, base + ahead, scale, scores[i]) : -INFINITY;
#else
            scores[i] = visible ? score_value(args, in, row, base, scale, scores[i]) : -INFINITY;
#endif
        }
        sums[b] = (float4)(scores[0], scores[1], scores[2], scores[3]);
    }
}

/* The maximum of `value` over the lanes that hold tokens of the same rows. */
MATRIX_INLINE float matrix_max_rows(const matrix_place *at, float value)
{
#pragma unroll MATRIX_UNROLL
    for (int mask = 4; mask < 32; mask *= 2)
        value = state_max(value, matrix_xor(at, value, mask));
    return value;
}

#if V_SCALED
/* Whether some scale of the tile is no number or exceeds the least of the units. */
MATRIX_INLINE bool matrix_scales_exceed(const matrix_scales *scales, const matrix_stream *stream)
{
    bool exceed = false;
#pragma unroll MATRIX_UNROLL
    for (int u = 0; u < V_UNIT_SCALES; u++)
        exceed |= !(fabs(scales->v[0][u]) <= stream->least) || !(fabs(scales->v[1][u]) <= stream->least);
    return exceed;
}

/* What weighs so little beside a row's maximum m does not let its scales be part of the row's unit in full: the weights of
 * others, in that unit, would leave the range of f16. */
MATRIX_INLINE float matrix_scale_weight(float score, float m)
{
    return fmin(state_exp2(score - state_base(m) + 4.0f), 1.0f);
}

/* The greatest scale of V that a row with the maximum m and these scores sees in the tile, so weighed. */
MATRIX_INLINE float matrix_greatest_scale(const matrix_scales *scales, float upper, float lower, float m)
{
    const float upper_weight = matrix_scale_weight(upper, m), lower_weight = matrix_scale_weight(lower, m);
    float greatest = 0.0f;
#pragma unroll MATRIX_UNROLL
    for (int u = 0; u < V_UNIT_SCALES; u++) {
        const float first = fabs(scales->v[0][u]), last = fabs(scales->v[1][u]);
        greatest = state_max(greatest, first < INFINITY ? first * upper_weight : 0.0f);
        greatest = state_max(greatest, last < INFINITY ? last * lower_weight : 0.0f);
    }
    return greatest;
}

/* A power of two not below a scale, and whose inverse is one: within 2^126 both ways. */
MATRIX_INLINE float matrix_unit_of(float scale)
{
    return clamp(as_float((as_uint(scale) + 0x007fffffu) & 0x7f800000u), 0x1p-126f, 0x1p126f);
}

MATRIX_INLINE float matrix_inverse(float unit) { return as_float(0x7f000000u - as_uint(unit)); }
#endif

/* Raises the maxima of the rows that the scores exceed by too much, and the units that scales of V exceed. */
MATRIX_INLINE void matrix_raise(const matrix_place *at, const matrix_scales *scales, const float4 *scores,
                                matrix_stream *stream)
{
    float top[MATRIX_BLOCKS][2]; /* constant where there is one row */
    bool raises = false;

#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        top[b][0] = state_max(scores[b].x, scores[b].z);
        top[b][1] = state_max(scores[b].y, scores[b].w);
        for (int i = 0; i < LANE_ROWS; i++)
            raises |= top[b][i] - stream->m[b][i] > RAISE_ABOVE;
    }
#if V_SCALED
    raises |= matrix_scales_exceed(scales, stream);
#endif
    if (!matrix_any(at, raises))
        return;
    stream->least = INFINITY;
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        float shrink[LANE_ROWS];
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < LANE_ROWS; i++) {
            const float m = stream->m[b][i], row_top = matrix_max_rows(at, top[b][i]);
            const float raised = row_top - m > RAISE_ABOVE ? row_top - RAISE_TO : m;
            shrink[i] = state_weight(m, raised);
            stream->m[b][i] = raised;
            stream->l[b][i] *= shrink[i];
#if V_SCALED
            const float4 s = scores[b];
            const float scale = matrix_greatest_scale(scales, i == 0 ? s.x : s.y, i == 0 ? s.z : s.w, raised);
            const float kept = stream->unit[b][i] * shrink[i]; /* as little as o becomes */
            const float unit = matrix_unit_of(state_max(kept, matrix_max_rows(at, scale)));
            shrink[i] = kept * matrix_inverse(unit);
            stream->unit[b][i] = unit;
            stream->least = fmin(stream->least, unit);
#endif
        }
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < V_STEPS; c++)
            stream->o[b][c] *= matrix_by_row(shrink[0], shrink[LANE_ROWS - 1]);
    }
}

/* Scores to weights under the maxima; of -inf comes 0. */
MATRIX_INLINE void matrix_weigh(const float4 *scores, matrix_stream *stream, float4 *weights)
{
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        const float first = state_base(stream->m[b][0]), last = state_base(stream->m[b][LANE_ROWS - 1]);
        const float4 s = scores[b];
        float4 p = 0.0f;
        p.x = state_exp2(s.x - first);
        p.z = state_exp2(s.z - first);
        stream->l[b][0] += p.x + p.z;
#if !MATRIX_SPREAD
        p.y = state_exp2(s.y - last);
        p.w = state_exp2(s.w - last);
        stream->l[b][1] += p.y + p.w;
#endif
        weights[b] = p;
    }
}

/* A block's weights as operands of products with V: as elements, and what these lack. Those of spread rows have both in one
 * operand, what they lack in the odd columns. */
MATRIX_INLINE void matrix_weight_operands(const matrix_place *at, float4 p, uint2 *first, uint2 *rest)
{
#if MATRIX_SPREAD
    const float2 taken = matrix_unpack(matrix_pack(p.x, p.z));
    first->x = matrix_transpose(at, matrix_pack(p.x, p.x - taken.x));
    first->y = matrix_transpose(at, matrix_pack(p.z, p.z - taken.y));
    *rest = 0;
#else
    const uint upper = matrix_pack(p.x, p.y), lower = matrix_pack(p.z, p.w);
    float4 taken; /* half by half: Oclgrind cannot follow a literal made of vectors */
    taken.lo = matrix_unpack(upper);
    taken.hi = matrix_unpack(lower);
    const float4 lacks = p - taken;
    first->x = matrix_transpose(at, upper);
    first->y = matrix_transpose(at, lower);
    rest->x = matrix_transpose(at, matrix_pack(lacks.x, lacks.y));
    rest->y = matrix_transpose(at, matrix_pack(lacks.z, lacks.w));
#endif
}

#if V_SCALED
/* Weights times the scales of V of unit u, in the stream's unit. With care a scale that is no number makes NaN of what it
 * scales, as one of K does, and the weights of hidden keys, whatever their scales, are 0. */
MATRIX_INLINE float4 matrix_scaled_weights(const matrix_scales *scales, const matrix_stream *stream, int b, int u,
                                           bool careful, float4 score, float4 p)
{
    const float2 inverse = (float2)(matrix_inverse(stream->unit[b][0]), matrix_inverse(stream->unit[b][LANE_ROWS - 1]));
    float4 scaled;
    scaled.lo = p.lo * (scales->v[0][u] * inverse);
    scaled.hi = p.hi * (scales->v[1][u] * inverse);
    if (careful) {
        scaled.lo = p.lo * (kv_key_factor(scales->v[0][u]) * inverse);
        scaled.hi = p.hi * (kv_key_factor(scales->v[1][u]) * inverse);
        scaled.x = score.x == -INFINITY ? 0.0f : scaled.x;
        scaled.y = score.y == -INFINITY ? 0.0f : scaled.y;
        scaled.z = score.z == -INFINITY ? 0.0f : scaled.z;
        scaled.w = score.w == -INFINITY ? 0.0f : scaled.w;
    }
    return scaled;
}
#endif

/* o += weights * V for the tile; with care, whatever V and its scales hold. */
MATRIX_INLINE void matrix_accumulate(const matrix_place *at, matrix_values *values, const matrix_scales *scales,
                                     const float4 *scores, const float4 *weights, bool careful, matrix_stream *stream)
{
#if V_INTEGERS
    uint2 first[MATRIX_BLOCKS][V_UNIT_SCALES], rest[MATRIX_BLOCKS][V_UNIT_SCALES];
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++)
#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < V_UNIT_SCALES; u++)
            matrix_weight_operands(at, matrix_scaled_weights(scales, stream, b, u, careful, scores[b], weights[b]),
                                   &first[b][u], &rest[b][u]);
    matrix_multiply_pieces(at, values, first, rest, stream);
#else
    if (careful)
        matrix_add_irregular(at, scores, weights, values, stream);
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        uint2 first, rest;
        matrix_weight_operands(at, weights[b], &first, &rest);
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < V_STEPS; c++) {
            matrix_add_product(at, &stream->o[b][c], values->operands[c], first, rest);
        }
    }
#endif
}

#endif

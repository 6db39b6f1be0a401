/* matrix_irregular.cl - infinities and NaN of V, and keys that a row may not see.
 *
 * A product with a hidden key's weight of 0 would be NaN, and so would one of an infinity with the two parts of a weight.
 * What comes of either never leaves o again, so that nobody looks for them before the end of an item. Where o is not
 * finite then, the item is done again with care: what is irregular is left out of the products; another product counts,
 * for every row, those that it sees, and what they add up to is added.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_IRREGULAR_CL
#define CLFD_MATRIX_IRREGULAR_CL

#include "matrix_operands.cl"

/* Whether infinities or NaN may have come into o of the warp. */
MATRIX_INLINE bool matrix_is_irregular(const matrix_place *at, const matrix_stream *stream)
{
    float4 sum = 0.0f; /* NaN from the first of them on */
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++)
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < V_STEPS; c++)
            sum = fma(stream->o[b][c], 0.0f, sum);
    return matrix_any(at, sum.x != 0.0f || sum.y != 0.0f || sum.z != 0.0f || sum.w != 0.0f);
}

#if !V_INTEGERS

/* What stands for an element in a product that counts the kinds of a row's 16: +inf, -inf, NaN, and, by the factor of a
 * weight of 0, whose products are NaN, any of these. */
#define KIND_PLUS (MATRIX_BF16 ? 0x3f80u : 0x3c00u)  /* 1 */
#define KIND_MINUS (MATRIX_BF16 ? 0x4200u : 0x5000u) /* 32 */
#define KIND_NAN (MATRIX_BF16 ? 0x4480u : 0x6400u)   /* 1024 */
#define KIND_ZERO_WEIGHT 32768.0f

MATRIX_INLINE uint matrix_kind(uint element)
{
    const uint infinity = MATRIX_BF16 ? 0x7f80u : 0x7c00u, magnitude = element & 0x7fffu;
    return magnitude < infinity       ? 0
           : magnitude > infinity     ? KIND_NAN
           : (element & 0x8000u) != 0 ? KIND_MINUS
                                      : KIND_PLUS;
}

MATRIX_INLINE uint matrix_kinds(uint pair) { return matrix_kind(pair & 0xffffu) | matrix_kind(pair >> 16) << 16; }

/* o plus the sum of what was counted. */
MATRIX_INLINE float matrix_add_kinds(float o, float count)
{
    const float minus = floor(count / 32.0f);
    if (!(count < 1024.0f) || (minus > 0.0f && count > 32.0f * minus))
        return NAN;
    return count == 0.0f ? o : minus > 0.0f ? o - INFINITY : o + INFINITY;
}

/* 1 where the row sees the key, 0 where it does not. */
MATRIX_INLINE float matrix_visible(float score, float weight)
{
    return score == -INFINITY ? 0.0f : weight == 0.0f ? KIND_ZERO_WEIGHT : 1.0f;
}

/* Adds the products of weights with infinities and NaN, and takes these out of the operands. A loop that nobody unrolls:
 * what is not needed must not stand between what is. In place of an index that would put registers into memory, operands
 * and o change places from turn to turn, until all are where they were. */
MATRIX_INLINE void matrix_add_irregular(const matrix_place *at, const float4 *scores, const float4 *weights,
                                        matrix_values *values, matrix_stream *stream)
{
    uint2 sees[MATRIX_BLOCKS];

#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        const float4 s = scores[b], p = weights[b];
        sees[b].x = matrix_transpose(at, matrix_pack(matrix_visible(s.x, p.x), matrix_visible(s.y, p.y)));
        sees[b].y = matrix_transpose(at, matrix_pack(matrix_visible(s.z, p.z), matrix_visible(s.w, p.w)));
    }
#pragma unroll 1
    for (int turn = 0; turn < V_STEPS; turn++) {
        const uint4 v = values->operands[0];
        const uint4 kinds = (uint4)(matrix_kinds(v.x), matrix_kinds(v.y), matrix_kinds(v.z), matrix_kinds(v.w));
#pragma unroll MATRIX_UNROLL
        for (int b = 0; b < MATRIX_BLOCKS; b++) {
            const float4 o = stream->o[b][0];
            float4 counts = 0.0f;
            matrix_multiply(at, &counts, kinds, sees[b]);
#pragma unroll MATRIX_UNROLL
            for (int c = 1; c < V_STEPS; c++)
                stream->o[b][c - 1] = stream->o[b][c];
            stream->o[b][V_STEPS - 1] = (float4)(matrix_add_kinds(o.x, counts.x), matrix_add_kinds(o.y, counts.y),
                                                 matrix_add_kinds(o.z, counts.z), matrix_add_kinds(o.w, counts.w));
        }
#pragma unroll MATRIX_UNROLL
        for (int c = 1; c < V_STEPS; c++)
            values->operands[c - 1] = values->operands[c];
        values->operands[V_STEPS - 1] =
            (uint4)(matrix_finite(v.x), matrix_finite(v.y), matrix_finite(v.z), matrix_finite(v.w));
    }
}

#endif

#endif

/* matrix_irregular.cl - infinities and NaN of V, and keys that a row may not see.
 *
 * A product with a hidden key's weight of 0 would be NaN, and so would one of an infinity with the two parts of a weight.
 * Where a tile has any, they are left out of the products; another product counts, for every row, those that it sees, and
 * what they add up to is added.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_IRREGULAR_CL
#define CLFD_MATRIX_IRREGULAR_CL

#include "matrix_operands.cl"

/* What no visible key's weight is: those that are zero are +0. */
#define HIDDEN_WEIGHT (-0.0f)
MATRIX_INLINE bool matrix_is_hidden(float weight) { return as_uint(weight) == 0x80000000u; }

#if !V_INTEGERS
/* Whether some operand of the warp's tile has any; codes of integers have none. */
MATRIX_INLINE bool matrix_is_irregular(const matrix_place *at, const matrix_values *values)
{
    uint4 spots = 0;
#pragma unroll MATRIX_UNROLL
    for (int c = 0; c < V_STEPS; c++) {
        spots.x = matrix_spot(spots.x, values->operands[c].x);
        spots.y = matrix_spot(spots.y, values->operands[c].y);
        spots.z = matrix_spot(spots.z, values->operands[c].z);
        spots.w = matrix_spot(spots.w, values->operands[c].w);
    }
    return matrix_any(at, matrix_spotted(spots.x) || matrix_spotted(spots.y) || matrix_spotted(spots.z) ||
                              matrix_spotted(spots.w));
}

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
MATRIX_INLINE float matrix_visible(float weight)
{
    return matrix_is_hidden(weight) ? 0.0f : weight == 0.0f ? KIND_ZERO_WEIGHT : 1.0f;
}

/* Adds the products of weights with infinities and NaN, and takes these out of the operands. */
MATRIX_INLINE void matrix_add_irregular(const matrix_place *at, const float4 *weights, matrix_values *values,
                                        matrix_stream *stream)
{
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        const float4 p = weights[b];
        uint2 sees;
        sees.x = matrix_transpose(at, matrix_pack(matrix_visible(p.x), matrix_visible(p.y)));
        sees.y = matrix_transpose(at, matrix_pack(matrix_visible(p.z), matrix_visible(p.w)));
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < V_STEPS; c++) {
            const uint4 v = values->operands[c];
            float4 *const o = &stream->o[b][c];
            float4 counts = 0.0f;
            matrix_multiply(at, &counts,
                            (uint4)(matrix_kinds(v.x), matrix_kinds(v.y), matrix_kinds(v.z), matrix_kinds(v.w)), sees);
            *o = (float4)(matrix_add_kinds(o->x, counts.x), matrix_add_kinds(o->y, counts.y),
                          matrix_add_kinds(o->z, counts.z), matrix_add_kinds(o->w, counts.w));
        }
    }
#pragma unroll MATRIX_UNROLL
    for (int c = 0; c < V_STEPS; c++)
        values->operands[c] = (uint4)(matrix_finite(values->operands[c].x), matrix_finite(values->operands[c].y),
                                      matrix_finite(values->operands[c].z), matrix_finite(values->operands[c].w));
}

#endif

#endif

/* matrix_operands.cl - from a slot of the ring to the operands of matrix products, where these are elements: K as 16 tokens
 * by 16 dims, V as 16 dims by 16 tokens. Plain types are loaded as fragments, fp8 as codes that lie together, which become
 * f16 in registers. Of integers see matrix_digits.cl and matrix_codes.cl.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_OPERANDS_CL
#define CLFD_MATRIX_OPERANDS_CL

#include "matrix.cl"
#include "matrix_codes.cl"
#include "matrix_ring.cl"

/* Two pairs of codes as f16; with `apart` the first ones of both pairs and the second ones. */
#if K_FP8 || V_FP8
#if CLFD_PTX
#define PAIRS_6(codes) packed_e4m3_halves(codes)
#define PAIRS_7(codes) packed_e5m2_halves(codes)
#define MATRIX_APART(codes) ptx_permute(codes, 0, 0x3120)
#else
MATRIX_INLINE uint4 matrix_pairs(float8 v)
{
    return (uint4)(matrix_pack(v.s0, v.s1), matrix_pack(v.s2, v.s3), matrix_pack(v.s4, v.s5), matrix_pack(v.s6, v.s7));
}
#define PAIRS_6(codes) matrix_pairs(packed_e4m3(codes))
#define PAIRS_7(codes) matrix_pairs(packed_e5m2(codes))
#define MATRIX_APART(codes) (((codes)&0xff0000ffu) | ((codes) >> 8 & 0xff00u) | ((codes)&0xff00u) << 8)
#endif
#define K_PAIRS FORMAT_OF(PAIRS_, K_TYPE)
#define V_PAIRS FORMAT_OF(PAIRS_, V_TYPE)
#endif

#if !K_INTEGERS
typedef struct matrix_keys {
    uint4 operands[K_STEPS];
} matrix_keys;

/* All operands of a tile of K. */
MATRIX_INLINE void matrix_load_keys(const matrix_place *at, uint slot, matrix_keys *keys)
{
#if K_FP8
#pragma unroll MATRIX_UNROLL
    for (int c = 0; c < K_STEPS; c += 2) {
        const uint4 codes = matrix_load(at, matrix_codes_pair(at, slot, c / 2, K_STEPS, K_BYTES, K_PITCH));
        const uint4 left = K_PAIRS(codes.lo), right = K_PAIRS(codes.hi);
        keys->operands[c] = (uint4)(left.x, left.z, left.y, left.w);
        keys->operands[c + 1] = (uint4)(right.x, right.z, right.y, right.w);
    }
#else
    const uint first = at->base + slot + matrix_piece(at->lane & 15, at->lane >> 4, K_BYTES, K_PITCH);
#pragma unroll MATRIX_UNROLL
    for (int c = 0; c < K_STEPS; c++)
        keys->operands[c] = matrix_load(at, matrix_pieces_on(first, 2 * c, K_BYTES));
#endif
}
#endif

#if !V_INTEGERS
typedef struct matrix_values {
    uint4 operands[V_STEPS];
} matrix_values;

MATRIX_INLINE void matrix_load_values(const matrix_place *at, uint slot, matrix_values *values)
{
#if V_FP8
#pragma unroll MATRIX_UNROLL
    for (int c = 0; c < V_STEPS; c += 2) {
        const uint4 codes = matrix_load_transposed(at, matrix_codes_pair(at, slot, c / 2, V_STEPS, V_BYTES, V_PITCH));
        values->operands[c] = V_PAIRS((uint2)(MATRIX_APART(codes.x), MATRIX_APART(codes.y)));
        values->operands[c + 1] = V_PAIRS((uint2)(MATRIX_APART(codes.z), MATRIX_APART(codes.w)));
    }
#else
    const int row = (at->lane & 7) + (at->lane >> 4) * 8;
    const uint first = at->base + slot + matrix_piece(row, at->lane >> 3 & 1, V_BYTES, V_PITCH);
#pragma unroll MATRIX_UNROLL
    for (int c = 0; c < V_STEPS; c++)
        values->operands[c] = matrix_load_transposed(at, matrix_pieces_on(first, 2 * c, V_BYTES));
#endif
}
#endif

#endif

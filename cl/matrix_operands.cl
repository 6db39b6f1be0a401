/* matrix_operands.cl - from a slot of the ring to the operands of matrix products: K as 16 tokens by 16 dims, V as 16 dims
 * by 16 tokens. Plain types are loaded as fragments. Codes are loaded as they lie, by units of 32 dims, and become
 * elements in registers; their scales are applied to partial products (K) and to weights (V).
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_OPERANDS_CL
#define CLFD_MATRIX_OPERANDS_CL

#include "matrix.cl"
#include "matrix_scales.cl"

/* ---- Codes ------------------------------------------------------------------------------------------------------- */

/* Bytes [offset, offset + 4) of a row in a slot; `odd`, a constant, says that the offset is 2 past a multiple of 4. */
MATRIX_INLINE uint matrix_bytes4(const __local uchar *row, int offset, bool odd)
{
    if (!odd)
        return *(const __local uint *)(row + offset);
    const uint a = *(const __local uint *)(row + offset - 2), b = *(const __local uint *)(row + offset + 2);
    return a >> 16 | b << 16;
}

/* Row `row` of a slot; of rows whose pieces change places, from the 16 bytes that `offset` lies in. */
MATRIX_INLINE const __local uchar *matrix_row(const matrix_place *at, uint slot, int row, int offset, int bytes,
                                              int pitch)
{
    const int piece = offset / 16;
    return at->ring + (slot + row * pitch) + (SWAPS(bytes) ? ((piece ^ (row & 7)) - piece) * 16 : 0);
}

#if CLFD_PTX
#define MATRIX_INTERLEAVE(a, b, upper) ptx_permute(a, b, upper ? 0x7362 : 0x5140)
#define PAIRS_4(codes) packed_int8_halves(codes)
#define PAIRS_5(codes) packed_nibble_halves(codes, 0x00080008u)
#define PAIRS_6(codes) packed_e4m3_halves(codes)
#define PAIRS_7(codes) packed_e5m2_halves(codes)
#define PAIRS_8(codes) packed_int8_halves(codes)
#define PAIRS_9(codes) packed_nibble_halves(codes, 0)
#else
/* Bytes 0 or 2 of a, 0 or 2 of b, 1 or 3 of a, 1 or 3 of b. */
MATRIX_INLINE uint matrix_interleave(uint a, uint b)
{
    return (a & 0xffu) | (b & 0xffu) << 8 | (a & 0xff00u) << 8 | (b & 0xff00u) << 16;
}
#define MATRIX_INTERLEAVE(a, b, upper) matrix_interleave((a) >> (upper ? 16 : 0), (b) >> (upper ? 16 : 0))

/* Neighbours are pairs; of nibbles n and n + 4 are. */
MATRIX_INLINE uint4 matrix_pairs(float8 v)
{
    return (uint4)(matrix_pack(v.s0, v.s1), matrix_pack(v.s2, v.s3), matrix_pack(v.s4, v.s5), matrix_pack(v.s6, v.s7));
}
#define PAIRS_4(codes) matrix_pairs(packed_int8(codes))
#define PAIRS_5(codes) matrix_pairs(packed_int4(codes).s04152637)
#define PAIRS_6(codes) matrix_pairs(packed_e4m3(codes))
#define PAIRS_7(codes) matrix_pairs(packed_e5m2(codes))
#define PAIRS_8(codes) matrix_pairs(packed_int8(codes))
#define PAIRS_9(codes) matrix_pairs(packed_int4((codes) ^ 0x88888888u).s04152637)
#endif
#define K_PAIRS FORMAT_OF(PAIRS_, K_TYPE)
#define V_PAIRS FORMAT_OF(PAIRS_, V_TYPE)

/* How types lay a unit of 32 dims. */
#define UNIT_WHOLE 0   /* 32 bytes */
#define UNIT_NIBBLES 1 /* 16 bytes, neighbours side by side */
#define UNIT_BLOCK 2   /* a scale and 32 bytes */
#define UNIT_HALVES 3  /* a scale and 16 bytes, each half of the unit in a half of every byte */
#define UNIT_OF(type)                                                                                                  \
    ((type) == TYPE_INT4   ? UNIT_NIBBLES                                                                              \
     : (type) == TYPE_Q8_0 ? UNIT_BLOCK                                                                                \
     : (type) == TYPE_Q4_0 ? UNIT_HALVES                                                                               \
                           : UNIT_WHOLE)

#if K_CODES
/* The codes of unit u that a lane has of a token: as many bytes as one conversion takes. */
#if UNIT_OF(K_TYPE) == UNIT_WHOLE || UNIT_OF(K_TYPE) == UNIT_BLOCK
typedef uint2 matrix_key_codes;
#else
typedef uint matrix_key_codes;
#endif

MATRIX_INLINE matrix_key_codes matrix_load_key_codes(const matrix_place *at, uint slot, int row, int u)
{
#if UNIT_OF(K_TYPE) == UNIT_WHOLE
    const int offset = 32 * u + 8 * at->pair;
    return *(const __local uint2 *)(matrix_row(at, slot, row, offset, K_BYTES, K_PITCH) + offset);
#elif UNIT_OF(K_TYPE) == UNIT_NIBBLES
    const int offset = 16 * u + 4 * at->pair;
    return *(const __local uint *)(matrix_row(at, slot, row, offset, K_BYTES, K_PITCH) + offset);
#elif UNIT_OF(K_TYPE) == UNIT_BLOCK
    const int offset = K_UNIT_BYTES * u + 2 + 8 * at->pair;
    const __local uchar *const from = at->ring + (slot + row * K_PITCH);
    return (uint2)(matrix_bytes4(from, offset, u % 2 == 0), matrix_bytes4(from, offset + 4, u % 2 == 0));
#else
    const int offset = K_UNIT_BYTES * u + 2 + 4 * at->pair;
    return matrix_bytes4(at->ring + (slot + row * K_PITCH), offset, u % 2 == 0);
#endif
}

/* The operands of the two products of unit u. */
MATRIX_INLINE void matrix_key_operands(const matrix_place *at, uint slot, int u, uint4 operands[2])
{
    const uint4 upper = K_PAIRS(matrix_load_key_codes(at, slot, at->row, u));
    const uint4 lower = K_PAIRS(matrix_load_key_codes(at, slot, at->row + 8, u));
#if UNIT_OF(K_TYPE) == UNIT_HALVES
    operands[0] = (uint4)(upper.x, lower.x, upper.z, lower.z);
    operands[1] = (uint4)(upper.y, lower.y, upper.w, lower.w);
#else
    operands[0] = (uint4)(upper.x, lower.x, upper.y, lower.y);
    operands[1] = (uint4)(upper.z, lower.z, upper.w, lower.w);
#endif
}
#endif

#if V_CODES
/* Four dims of unit u of two neighbouring tokens, as what a conversion makes pairs of tokens from. */
#if UNIT_OF(V_TYPE) == UNIT_WHOLE || UNIT_OF(V_TYPE) == UNIT_BLOCK
MATRIX_INLINE uint2 matrix_load_value_codes(const matrix_place *at, uint slot, int row, int u)
{
    uint codes[2];
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < 2; i++) {
#if UNIT_OF(V_TYPE) == UNIT_WHOLE
        const int offset = 32 * u + 4 * at->row;
        codes[i] = *(const __local uint *)(matrix_row(at, slot, row + i, offset, V_BYTES, V_PITCH) + offset);
#else
        const int offset = V_UNIT_BYTES * u + 2 + 4 * at->row;
        codes[i] = matrix_bytes4(at->ring + (slot + (row + i) * V_PITCH), offset, u % 2 == 0);
#endif
    }
    return (uint2)(MATRIX_INTERLEAVE(codes[0], codes[1], false), MATRIX_INTERLEAVE(codes[0], codes[1], true));
}
#else
MATRIX_INLINE uint matrix_load_value_codes(const matrix_place *at, uint slot, int row, int u)
{
    uint codes[2];
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < 2; i++) {
#if UNIT_OF(V_TYPE) == UNIT_NIBBLES
        const int offset = 16 * u + 2 * at->row;
        codes[i] = *(const __local ushort *)(matrix_row(at, slot, row + i, offset, V_BYTES, V_PITCH) + offset);
#else
        const int offset = V_UNIT_BYTES * u + 2 + 2 * at->row;
        codes[i] = *(const __local ushort *)(at->ring + (slot + (row + i) * V_PITCH + offset));
#endif
    }
    return codes[0] | codes[1] << 16;
}
#endif

MATRIX_INLINE void matrix_value_operands(const matrix_place *at, uint slot, int u, uint4 operands[2])
{
    const uint4 first = V_PAIRS(matrix_load_value_codes(at, slot, 2 * at->pair, u));
    const uint4 last = V_PAIRS(matrix_load_value_codes(at, slot, 2 * at->pair + 8, u));
#if UNIT_OF(V_TYPE) == UNIT_HALVES
    operands[0] = (uint4)(first.x, first.z, last.x, last.z);
    operands[1] = (uint4)(first.y, first.w, last.y, last.w);
#else
    operands[0] = (uint4)(first.x, first.y, last.x, last.y);
    operands[1] = (uint4)(first.z, first.w, last.z, last.w);
#endif
}
#endif

/* ---- Whole tiles ------------------------------------------------------------------------------------------------- */

/* All operands of a tile of K, and the scales that lie among them. */
MATRIX_INLINE void matrix_load_keys(const matrix_place *at, uint slot, uint4 operands[K_STEPS], matrix_scales *scales)
{
#if K_CODES
#pragma unroll MATRIX_UNROLL
    for (int u = 0; u < K_UNITS; u++)
        matrix_key_operands(at, slot, u, operands + 2 * u);
#if K_SCALE == SCALE_ROW
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < 2; i++)
#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < K_UNITS; u++)
            scales->k[i][u] = kv_key_factor(vload_half(
                0, (const __local half *)(at->ring + (slot + (at->row + 8 * i) * K_PITCH + K_UNIT_BYTES * u))));
#endif
#else
#pragma unroll MATRIX_UNROLL
    for (int c = 0; c < K_STEPS; c++)
        operands[c] = matrix_load(at, slot + matrix_piece(at->lane & 15, 2 * c + (at->lane >> 4), K_BYTES, K_PITCH));
#endif
}

MATRIX_INLINE void matrix_load_values(const matrix_place *at, uint slot, uint4 operands[V_STEPS], matrix_scales *scales)
{
#if V_CODES
#pragma unroll MATRIX_UNROLL
    for (int u = 0; u < V_UNITS; u++)
        matrix_value_operands(at, slot, u, operands + 2 * u);
#if V_SCALE == SCALE_ROW
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < 2; i++)
#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < V_UNITS; u++)
            scales->v[i][u] = vload_half(
                0, (const __local half *)(at->ring + (slot + (at->row + 8 * i) * V_PITCH + V_UNIT_BYTES * u)));
#endif
#else
    const int row = (at->lane & 7) + (at->lane >> 4) * 8;
#pragma unroll MATRIX_UNROLL
    for (int c = 0; c < V_STEPS; c++)
        operands[c] =
            matrix_load_transposed(at, slot + matrix_piece(row, 2 * c + (at->lane >> 3 & 1), V_BYTES, V_PITCH));
#endif
}

#endif

/* matrix_codes.cl - integer codes in matrix products: where their units lie in pieces of 16 bytes, and codes of V as
 * operands of 16 dims by 16 tokens.
 *
 * V is loaded transposed by pairs of bytes, so that a register has a pair of two tokens each: what turns bytes and nibbles
 * into f16 also takes them apart, token by token. A step of o is what one operand gives: of a piece of bytes one, of a
 * piece of nibbles two. Blocks of GGML's types do not end where pieces do: a piece that holds parts of two blocks is
 * multiplied with the weights of each, into steps of o of their own; rows of those that are another block's or a scale's
 * are never read.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_CODES_CL
#define CLFD_MATRIX_CODES_CL

#include "matrix.cl"
#include "matrix_ring.cl"

/* Where piece `piece` of row `row` lies in a slot. */
MATRIX_INLINE uint matrix_codes_piece(int row, int piece, int bytes, int pitch)
{
    return row * pitch + (SWAPS(bytes) ? piece ^ (row & 7) : piece) * 16;
}

/* The address that a lane gives for pieces 2 n and 2 n + 1 of a tile of codes in a slot; where there is no second one the
 * first is loaded twice. */
MATRIX_INLINE uint matrix_codes_pair(const matrix_place *at, uint slot, int n, int pieces, int bytes, int pitch)
{
    const int row = at->lane & 15, second = at->lane >> 4;
    return 2 * n + 1 == pieces
               ? at->base + slot + matrix_codes_piece(row, 2 * n, bytes, pitch)
               : matrix_pieces_on(at->base + slot + matrix_codes_piece(row, second, bytes, pitch), 2 * n, bytes);
}

/* (a & mask) ^ flips. */
#if CLFD_PTX
#define matrix_mask(a, mask, flips) ptx_and_xor(a, mask, flips)
#else
#define matrix_mask(a, mask, flips) (((a) & (mask)) ^ (flips))
#endif

/* o += V * weights for one operand of V and the step of o that it gives. */
MATRIX_INLINE void matrix_add_product(const matrix_place *at, float4 *o, uint4 operand, uint2 first, uint2 rest)
{
    matrix_multiply(at, o, operand, first);
#if !MATRIX_SPREAD
    matrix_multiply(at, o, operand, rest);
#endif
}

#if V_INTEGERS
typedef struct matrix_values {
    uint4 loads[V_LOADS]; /* .lo: of one piece tokens 0 to 7 and 8 to 15; .hi: of the next */
} matrix_values;

/* The tile of V in a slot, as it lies there. */
MATRIX_INLINE void matrix_load_values(const matrix_place *at, uint slot, matrix_values *values)
{
#pragma unroll MATRIX_UNROLL
    for (int n = 0; n < V_LOADS; n++)
        values->loads[n] = matrix_load_transposed(at, matrix_codes_pair(at, slot, n, V_PIECES, V_BYTES, V_PITCH));
}

/* Four codes, two of either token, as two pairs; eight nibbles as four. */
#if CLFD_PTX
#if V_NIBBLES
MATRIX_INLINE uint4 matrix_pair_codes(uint codes)
{
    return packed_nibble_halves(codes, V_TYPE == TYPE_INT4 ? 0x00080008u : 0);
}
#else
MATRIX_INLINE uint2 matrix_pair_codes(uint codes)
{
    const uint bytes = codes ^ 0x80808080u, less_1152 = 0xe480e480u;
    return (uint2)(ptx_add_halves(ptx_permute(bytes, HALVES_1024, 0x5250), less_1152),
                   ptx_add_halves(ptx_permute(bytes, HALVES_1024, 0x5351), less_1152));
}
#endif
#elif V_NIBBLES
MATRIX_INLINE float matrix_nibble(uint codes, int i)
{
    return (float)((int)((codes >> 4 * i & 15u) ^ (V_TYPE == TYPE_INT4 ? 8u : 0u)) - 8);
}

MATRIX_INLINE uint4 matrix_pair_codes(uint codes)
{
    return (uint4)(matrix_pack(matrix_nibble(codes, 0), matrix_nibble(codes, 4)),
                   matrix_pack(matrix_nibble(codes, 1), matrix_nibble(codes, 5)),
                   matrix_pack(matrix_nibble(codes, 2), matrix_nibble(codes, 6)),
                   matrix_pack(matrix_nibble(codes, 3), matrix_nibble(codes, 7)));
}
#else
MATRIX_INLINE uint2 matrix_pair_codes(uint codes)
{
    const float4 v = convert_float4(as_char4(codes));
    return (uint2)(matrix_pack(v.x, v.z), matrix_pack(v.y, v.w));
}
#endif

/* The operands of a piece. */
MATRIX_INLINE void matrix_piece_operands(uint2 piece, uint4 operands[V_PIECE_STEPS])
{
#if V_NIBBLES
    const uint4 first = matrix_pair_codes(piece.x), last = matrix_pair_codes(piece.y);
    operands[0] = (uint4)(first.x, first.y, last.x, last.y);
    operands[1] = (uint4)(first.z, first.w, last.z, last.w);
#else
    const uint2 first = matrix_pair_codes(piece.x), last = matrix_pair_codes(piece.y);
    operands[0] = (uint4)(first.x, first.y, last.x, last.y);
#endif
}

/* o += weights * V for the tile; `first` and `rest` are the weights, or those of each unit. */
MATRIX_INLINE void matrix_multiply_pieces(const matrix_place *at, const matrix_values *values,
                                          const uint2 first[MATRIX_BLOCKS][V_UNIT_SCALES],
                                          const uint2 rest[MATRIX_BLOCKS][V_UNIT_SCALES], matrix_stream *stream)
{
#pragma unroll MATRIX_UNROLL
    for (int piece = 0; piece < V_PIECES; piece++) {
        uint4 operands[V_PIECE_STEPS];
        matrix_piece_operands(piece % 2 == 0 ? values->loads[piece / 2].lo : values->loads[piece / 2].hi, operands);
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < V_MEETS; i++) {
            const int u = V_FIRST_UNIT(piece) + i, weight = V_UNIT_SCALES > 1 ? u : 0;
            if (u > V_LAST_UNIT(piece) || u >= V_UNITS)
                continue;
#pragma unroll MATRIX_UNROLL
            for (int b = 0; b < MATRIX_BLOCKS; b++)
#pragma unroll MATRIX_UNROLL
                for (int n = 0; n < V_PIECE_STEPS; n++) {
                    float4 *const o = &stream->o[b][V_STEP(piece, u) + n];
                    matrix_add_product(at, o, operands[n], first[b][weight], rest[b][weight]);
                }
        }
    }
}

#endif

#endif

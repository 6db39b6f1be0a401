/* matrix_digits.cl - scores of K in integers: codes of K as they lie in local memory times q as digits.
 *
 * A row of q is written once an item as integers of 23 bits in a unit of its own, a power of two, and these as three signed
 * digits of 8 bits. What a row loses to its unit is below 2^-23 of its greatest element, as in a sum of floats. Products of
 * codes and digits add up exactly; their three sums make a score. Rows of q that are not finite, or so many elements of which
 * lie so far below the greatest that codes of 0 in its place would show what they lost, make NaN of their scores, and with
 * care have their products one by one.
 *
 * A product takes K_STEP_BYTES bytes of each row, a step, which are up to 32 codes; nibbles are signed codes times 16 in
 * the upper half of a byte. Blocks of GGML's types do not end where steps do: what belongs to another block, or is a scale,
 * meets digits of 0, and a step that holds parts of two blocks is multiplied once for each.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_DIGITS_CL
#define CLFD_MATRIX_DIGITS_CL

#include "matrix_codes.cl"
#include "matrix_scales.cl"

#if K_INTEGERS

/* Which dim byte `k` of 32 is that a product of a step takes, nibbles apart; below 0 where it is none of the unit's. */
MATRIX_INLINE int matrix_digit_dim(int step, int unit, int k)
{
    const int byte = step * K_STEP_BYTES + k % K_STEP_BYTES - (unit * K_UNIT_SPAN + K_LEAD);

    if (byte < 0 || byte >= K_STEP_BYTES)
        return -1;
#if K_TYPE == TYPE_INT4
    return unit * 32 + 2 * byte + k / 16;
#elif K_TYPE == TYPE_Q4_0
    return unit * 32 + byte + k / 16 * 16;
#else
    return unit * 32 + byte;
#endif
}

/* The integer for an element of q, its digits in the lower three bytes. */
MATRIX_INLINE uint matrix_digits(float q, float inverse_unit)
{
    return ((uint)convert_int_rte(q * inverse_unit) + 0x00808080u) ^ 0x00808080u;
}

/* Byte i of each of four; 0 where i is below 0. */
MATRIX_INLINE uint matrix_gather(const uint from[4], int i)
{
#if CLFD_PTX
    const uint selector = i < 0 ? 0 : i | (i + 4) << 4;
    const uint bytes =
        ptx_permute(ptx_permute(from[0], from[1], selector), ptx_permute(from[2], from[3], selector), 0x5410);
#else
    const uint bytes = as_uint(convert_uchar4((uint4)(from[0], from[1], from[2], from[3]) >> (uint)(8 * max(i, 0))));
#endif
    return i < 0 ? 0 : bytes;
}

MATRIX_INLINE float matrix_half(ushort bits) { return vload_half(0, (const half *)&bits); }

/* The unit of a row whose greatest magnitude has these bits: its elements are less than 2^22 of it. */
MATRIX_INLINE float matrix_digits_unit(uint greatest)
{
    const uint exponent = as_uint(matrix_half((ushort)min(greatest, 0x7bffu))) & 0x7f800000u;
    return greatest == 0 ? 1.0f : as_float(exponent) * 0x1p-21f;
}

/* Elements of less than 2^-11 of the greatest are as coarse as f16 in its unit. Those of a normal distribution are one of a
 * thousand; a row with more than one of FINE_PART is better off without it. */
#define FINE_BITS 11
#define FINE_PART 9

/* Whether a magnitude lies so far below the row's greatest one, both as bits of f16. */
MATRIX_INLINE bool matrix_is_coarse(uint magnitude, uint greatest)
{
    return magnitude != 0 && (magnitude >> 10) + FINE_BITS < greatest >> 10;
}

/* Of the eight bytes that a lane has of a product, in pairs of neighbouring dims: the first one of pair n. */
MATRIX_INLINE int matrix_pair_first(int n) { return K_TYPE == TYPE_INT4 ? n : 2 * n; }

/* Elements d and d + 1 of a row of q; zeros where it does not exist or d is below 0. */
MATRIX_INLINE uint matrix_load_q(const __global q_element *q, long index, bool exists, int d)
{
    if (!exists || d < 0)
        return 0;
#if Q_ALIGNED
    return *(const __global uint *)(q + (index + d));
#else
    return q[index + d] | (uint)q[index + d + 1] << 16;
#endif
}

/* The digits of the elements that a lane has of its column of q, and the units of its rows. */
MATRIX_INLINE void matrix_load_queries(const __global q_element *q, const decode_args *args, const decode_item *item,
                                       const matrix_place *at, matrix_queries *queries)
{
    queries->irregular = 0;
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        const int r = matrix_column_row(b, at->row);
        const decode_row row = decode_find_row(args, item, min(r, DECODE_ROWS - 1));
        const long index = decode_q_index(args, item, &row);
        uint pairs[K_PRODUCTS][4];
        uint greatest = 0;

#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < K_UNITS; u++)
#pragma unroll MATRIX_UNROLL
            for (int i = 0; i < K_MEETS; i++)
#pragma unroll MATRIX_UNROLL
                for (int n = 0; n < 4; n++) {
                    const int step = K_FIRST_STEP(u) + i, k = matrix_pair_first(n);
                    if (step > K_LAST_STEP(u))
                        continue;
                    const uint pair = matrix_load_q(q, index, r < DECODE_ROWS,
                                                    matrix_digit_dim(step, u, k / 4 * 16 + 4 * at->pair + k % 4));
                    pairs[K_PRODUCT(step, u)][n] = pair;
                    greatest = max(greatest, max(pair & 0x7fffu, pair >> 16 & 0x7fffu));
                }
        greatest = max(greatest, matrix_from(at, greatest, at->lane ^ 1));
        greatest = max(greatest, matrix_from(at, greatest, at->lane ^ 2));
        uint coarse = 0, counted = 0;
        const float inverse = as_float(0x7f000000u - as_uint(matrix_digits_unit(greatest)));
#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < K_UNITS; u++)
#pragma unroll MATRIX_UNROLL
            for (int i = 0; i < K_MEETS; i++) {
                const int step = K_FIRST_STEP(u) + i, product = K_PRODUCT(step, u);
                uint digits[2][4];
                if (step > K_LAST_STEP(u))
                    continue;
#pragma unroll MATRIX_UNROLL
                for (int n = 0; n < 4; n++) {
                    const uint pair = pairs[product][n], first = pair & 0x7fffu, last = pair >> 16 & 0x7fffu;
                    const float2 elements = half2_to_float2(pair);
                    const int k = matrix_pair_first(n), other = k + (K_TYPE == TYPE_INT4 ? 4 : 1);
                    digits[k / 4][k % 4] = greatest < 0x7c00u ? matrix_digits(elements.x, inverse) : 0;
                    digits[other / 4][other % 4] = greatest < 0x7c00u ? matrix_digits(elements.y, inverse) : 0;
                    coarse += matrix_is_coarse(first, greatest) + matrix_is_coarse(last, greatest);
                    counted += (first != 0) + (last != 0);
                }
#pragma unroll MATRIX_UNROLL
                for (int n = 0; n < K_SETS; n++) {
                    const int digit = MATRIX_SPREAD ? 2 - 2 * n - at->row % 2 : 2 - n;
                    queries->digits[b][n][product] =
                        digit < 0 ? (uint2)0
                                  : (uint2)(matrix_gather(digits[0], digit), matrix_gather(digits[1], digit));
                }
            }
        coarse += matrix_from(at, coarse, at->lane ^ 1);
        coarse += matrix_from(at, coarse, at->lane ^ 2);
        counted += matrix_from(at, counted, at->lane ^ 1);
        counted += matrix_from(at, counted, at->lane ^ 2);
        if (coarse * FINE_PART > counted)
            greatest = 0x7c00u; /* as if one were infinite */
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < LANE_ROWS; i++) {
            const uint top = matrix_from(at, greatest, 4 * (2 * at->pair + i));
            const bool finite = top < 0x7c00u;
            queries->unit[b][i] = finite ? matrix_digits_unit(top) * (K_NIBBLES ? 0x1p-4f : 1.0f) : NAN;
            queries->irregular |= finite ? 0 : 1u << (2 * b + i);
        }
    }
}

/* ---- Products ----------------------------------------------------------------------------------------------------- */

/* A step of 16 tokens as an operand. */
MATRIX_INLINE uint4 matrix_step_operand(const uint4 loads[K_LOADS], int step)
{
#if K_NIBBLES
    const uint flips = K_TYPE == TYPE_Q4_0 ? 0x80808080u : 0, mask = 0xf0f0f0f0u; /* n - 8 is n with bit 3 turned */
    const uint2 piece = step % 2 == 0 ? loads[step / 2].lo : loads[step / 2].hi;
    return (uint4)(matrix_mask(piece.x << 4, mask, flips), matrix_mask(piece.y << 4, mask, flips),
                   matrix_mask(piece.x, mask, flips), matrix_mask(piece.y, mask, flips));
#else
    return loads[step];
#endif
}

/* What the sums of digits stand for. */
MATRIX_INLINE float4 matrix_compose(const int4 totals[K_SETS])
{
#if MATRIX_SPREAD
    const int2 low = totals[0].yw * 256 + totals[1].xz;
    const float2 sums = fma(convert_float2(totals[0].xz), 65536.0f, convert_float2(low));
    return (float4)(sums.x, 0.0f, sums.y, 0.0f);
#else
    return fma(convert_float4(totals[0]), 65536.0f, convert_float4(totals[1] * 256 + totals[2]));
#endif
}

/* The code of dim d of a token in a slot. */
MATRIX_INLINE float matrix_key_code(const matrix_place *at, uint slot, int token, int d)
{
    const int byte = d / 32 * K_UNIT_SPAN + K_LEAD + (K_TYPE == TYPE_INT4 ? d % 32 / 2 : d % K_STEP_BYTES);
    const uint code = at->ring[slot + matrix_codes_piece(token, byte / 16, K_BYTES, K_PITCH) + byte % 16];
    const uint nibble = code >> ((K_TYPE == TYPE_INT4 ? d % 2 : d % 32 / 16) * 4) & 15u;

    return !K_NIBBLES ? (float)as_char((uchar)code) : (float)((int)(nibble ^ (K_TYPE == TYPE_INT4 ? 8u : 0u)) - 8);
}

/* Puts in place the products of rows of q that are not finite: what comes of these depends on every code. Rare, and short
 * rather than fast. */
MATRIX_INLINE void matrix_dot_irregular(const __global q_element *q, const decode_args *args, const decode_item *item,
                                        const matrix_place *at, uint slot, uint irregular, const matrix_scales *scales,
                                        float4 sums[MATRIX_BLOCKS])
{
    for (int x = 0; x < MATRIX_BLOCKS * 4; x++) {
        const int b = x / 4, i = x % 2, below = x / 2 % 2; /* sums[b].x, .y, .z, .w in turn */
        const decode_row row = decode_find_row(args, item, matrix_block_row(b, at->pair, i));
        const long index = decode_q_index(args, item, &row);
        float sum = 0.0f;

        if (i >= LANE_ROWS || (irregular >> (2 * b + i) & 1u) == 0)
            continue;
        for (int d = 0; d < HEAD_DIM; d++) {
            float scale = 1.0f;
#if K_UNIT_SCALED
#pragma unroll MATRIX_UNROLL
            for (int u = 0; u < K_UNITS; u++)
                scale = u != d / 32 ? scale : below ? scales->k[1][u] : scales->k[0][u];
#endif
            sum = fma(q_load(q, index + d), matrix_key_code(at, slot, at->row + 8 * below, d) * scale, sum);
        }
#pragma unroll MATRIX_UNROLL
        for (int n = 0; n < MATRIX_BLOCKS; n++) {
            sums[n].x = x == 4 * n ? sum : sums[n].x;
            sums[n].y = x == 4 * n + 1 ? sum : sums[n].y;
            sums[n].z = x == 4 * n + 2 ? sum : sums[n].z;
            sums[n].w = x == 4 * n + 3 ? sum : sums[n].w;
        }
    }
}

/* The products of q and the tile of K in a slot; scales of units are part of them. */
MATRIX_INLINE void matrix_dot_digits(const __global q_element *q, const decode_args *args, const decode_item *item,
                                     const matrix_place *at, uint slot, const matrix_queries *queries,
                                     const matrix_scales *scales, bool careful, float4 sums[MATRIX_BLOCKS])
{
    uint4 loads[K_LOADS];

#pragma unroll MATRIX_UNROLL
    for (int n = 0; n < K_LOADS; n++)
        loads[n] = matrix_load(at, matrix_codes_pair(at, slot, n, K_PIECES, K_BYTES, K_PITCH));
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        int4 totals[K_SETS];
        sums[b] = 0.0f;
#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < K_UNITS; u++) {
            if (K_UNIT_SCALED || u == 0)
#pragma unroll MATRIX_UNROLL
                for (int n = 0; n < K_SETS; n++)
                    totals[n] = 0;
#pragma unroll MATRIX_UNROLL
            for (int i = 0; i < K_MEETS; i++) {
                const int step = K_FIRST_STEP(u) + i, product = K_PRODUCT(step, u);
                if (step > K_LAST_STEP(u))
                    continue;
                const uint4 operand = matrix_step_operand(loads, step);
#pragma unroll MATRIX_UNROLL
                for (int n = 0; n < K_SETS; n++)
                    matrix_multiply_codes(at, &totals[n], operand, queries->digits[b][n][product]);
            }
            if (!K_UNIT_SCALED && u + 1 < K_UNITS)
                continue;
            const float4 part = matrix_compose(totals);
#if K_UNIT_SCALED
            sums[b].lo = fma(scales->k[0][u], part.lo, sums[b].lo);
            sums[b].hi = fma(scales->k[1][u], part.hi, sums[b].hi);
#else
            sums[b] = part;
#endif
        }
        sums[b] *= matrix_by_row(queries->unit[b][0], queries->unit[b][LANE_ROWS - 1]);
    }
    if (careful && queries->irregular != 0)
        matrix_dot_irregular(q, args, item, at, slot, queries->irregular, scales, sums);
}

#endif

#endif

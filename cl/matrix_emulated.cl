/* matrix_emulated.cl - the warp of matrix_warp.cl by local memory and barriers: the same results on any device, at a small
 * part of the speed. Included by matrix_warp.cl, which has the types and the tunables.
 */
#ifndef CLFD_MATRIX_EMULATED_CL
#define CLFD_MATRIX_EMULATED_CL

#include "matrix_warp.cl"

#if !CLFD_PTX

MATRIX_INLINE uint matrix_address(__local uchar *ring) { return 0; }
MATRIX_INLINE int matrix_opaque(int value) { return value; }
MATRIX_INLINE void matrix_sync(void) { barrier(CLK_LOCAL_MEM_FENCE); }
MATRIX_INLINE void matrix_commit(void) {}
#define matrix_wait(count)

#define MATRIX_COPY(bytes)                                                                                             \
    MATRIX_INLINE void matrix_copy_if##bytes(const matrix_place *at, uint to, const __global uchar *from, bool there)  \
    {                                                                                                                  \
        for (int i = 0; i < bytes; i++)                                                                                \
            at->ring[to + i] = there ? from[i] : 0;                                                                    \
    }
MATRIX_COPY(4)
MATRIX_COPY(8)
MATRIX_COPY(16)

/* Word `word` of what a lane of this warp put up for exchange. */
MATRIX_INLINE __local uint *matrix_word(const matrix_place *at, int lane, int word)
{
    return at->exchange + (at->warp * 32 + lane) * 6 + word;
}

MATRIX_INLINE float matrix_element(uint pair, int i)
{
    const ushort bits = (ushort)(pair >> 16 * i);
#if MATRIX_BF16
    return bf16_to_float(bits);
#else
    return vload_half(0, (const half *)&bits);
#endif
}

MATRIX_INLINE void matrix_multiply(const matrix_place *at, float4 *c, uint4 a, uint2 b)
{
    float sums[4] = {c->x, c->y, c->z, c->w};
    vstore4(a, 0, matrix_word(at, at->lane, 0));
    vstore2(b, 0, matrix_word(at, at->lane, 4));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++) {
            const int column = 2 * at->pair + i % 2;
            const uint x = *matrix_word(at, at->row * 4 + k % 8 / 2, i / 2 + k / 8 * 2);
            const uint y = *matrix_word(at, column * 4 + k % 8 / 2, 4 + k / 8);
            sums[i] = fma(matrix_element(x, k % 2), matrix_element(y, k % 2), sums[i]);
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    *c = (float4)(sums[0], sums[1], sums[2], sums[3]);
}

MATRIX_INLINE void matrix_multiply_codes(const matrix_place *at, int4 *c, uint4 a, uint2 b)
{
    int sums[4] = {c->x, c->y, c->z, c->w};
    vstore4(a, 0, matrix_word(at, at->lane, 0));
    vstore2(b, 0, matrix_word(at, at->lane, 4));
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 32; k++) {
            const int column = 2 * at->pair + i % 2;
            const uint x = *matrix_word(at, at->row * 4 + k % 16 / 4, i / 2 + k / 16 * 2);
            const uint y = *matrix_word(at, column * 4 + k % 16 / 4, 4 + k / 16);
            sums[i] += as_char((uchar)(x >> k % 4 * 8)) * as_char((uchar)(y >> k % 4 * 8));
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    *c = (int4)(sums[0], sums[1], sums[2], sums[3]);
}

MATRIX_INLINE uint matrix_halves(const matrix_place *at, uint low, uint high)
{
    return *(const __local ushort *)(at->ring + low) | (uint) * (const __local ushort *)(at->ring + high) << 16;
}

MATRIX_INLINE uint4 matrix_load(const matrix_place *at, uint address)
{
    uint d[4];
    *matrix_word(at, at->lane, 0) = address;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 4; i++) {
        const uint from = *matrix_word(at, 8 * i + at->row, 0) + 4 * at->pair;
        d[i] = matrix_halves(at, from, from + 2);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return (uint4)(d[0], d[1], d[2], d[3]);
}

MATRIX_INLINE uint4 matrix_load_transposed(const matrix_place *at, uint address)
{
    uint d[4];
    *matrix_word(at, at->lane, 0) = address;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 4; i++) {
        const uint column = 2 * at->row;
        d[i] = matrix_halves(at, *matrix_word(at, 8 * i + 2 * at->pair, 0) + column,
                             *matrix_word(at, 8 * i + 2 * at->pair + 1, 0) + column);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return (uint4)(d[0], d[1], d[2], d[3]);
}

MATRIX_INLINE uint matrix_from(const matrix_place *at, uint value, int lane)
{
    *matrix_word(at, at->lane, 0) = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint other = *matrix_word(at, lane, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    return other;
}

MATRIX_INLINE uint matrix_transpose(const matrix_place *at, uint a)
{
    *matrix_word(at, at->lane, 0) = a;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int shift = at->row % 2 * 16;
    const uint low = *matrix_word(at, 2 * at->pair * 4 + at->row / 2, 0) >> shift & 0xffffu;
    const uint high = *matrix_word(at, (2 * at->pair + 1) * 4 + at->row / 2, 0) >> shift & 0xffffu;
    barrier(CLK_LOCAL_MEM_FENCE);
    return low | high << 16;
}

MATRIX_INLINE float matrix_xor(const matrix_place *at, float value, int mask)
{
    return as_float(matrix_from(at, as_uint(value), at->lane ^ mask));
}

MATRIX_INLINE bool matrix_any(const matrix_place *at, bool condition)
{
    bool any = false;
    *matrix_word(at, at->lane, 0) = condition;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < MATRIX_WG; i++)
        any |= at->exchange[i * 6] != 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    return any;
}

MATRIX_INLINE bool matrix_meet(const matrix_place *at, bool condition)
{
    barrier(CLK_LOCAL_MEM_FENCE);
    return matrix_any(at, condition);
}

MATRIX_INLINE void matrix_meet_warps(const matrix_place *at, int warps) { barrier(CLK_LOCAL_MEM_FENCE); }

MATRIX_INLINE uint matrix_ballot(const matrix_place *at, bool condition)
{
    uint lanes = 0;
    *matrix_word(at, at->lane, 0) = condition;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < 32; i++)
        lanes |= *matrix_word(at, i, 0) << i;
    barrier(CLK_LOCAL_MEM_FENCE);
    return lanes;
}

MATRIX_INLINE uint matrix_pack(float low, float high)
{
#if MATRIX_BF16
    return float_to_bf16(low) | (uint)float_to_bf16(high) << 16;
#else
    ushort halves[2];
    vstore_half_rte(low, 0, (half *)&halves[0]);
    vstore_half_rte(high, 0, (half *)&halves[1]);
    return halves[0] | (uint)halves[1] << 16;
#endif
}

#endif

#endif

/* matrix_warp.cl - what 32 work-items do as one warp for decode_matrix.cl: matrix products, fragments from local memory,
 * copies from global memory that run on, shuffles and votes. Two forms behind one set of functions: NVIDIA's PTX, and an
 * emulation by local memory and barriers that runs on any device, so that the family's code is tested without the
 * hardware. Every work-item of the work-group must call them, and together.
 *
 * A fragment is a lane's part of a matrix of 8 by 8 halfwords: elements (row, 2 pair) and (row, 2 pair + 1) of it, where
 * row is lane / 4 and pair lane % 4. PTX ISA, "Matrix fragments for mma.m16n8k16".
 *
 * Tunables, given by the host:
 *   MATRIX_WARPS   warps per work-group
 *   MATRIX_BF16    1: elements are bf16; 0: f16
 *   CLFD_PTX       1: NVIDIA inline PTX may be used
 */
#ifndef CLFD_MATRIX_WARP_CL
#define CLFD_MATRIX_WARP_CL

#include "formats_plain.cl"
#include "types.cl"

#ifndef MATRIX_WARPS
#define MATRIX_WARPS 4
#endif
#ifndef MATRIX_BF16
#define MATRIX_BF16 0
#endif

#define MATRIX_WG (MATRIX_WARPS * 32)
#define MATRIX_INLINE static inline __attribute__((always_inline))

/* Loops over registers must be unrolled, or these go to memory; loops over barriers had better not be. */
#if CLFD_PTX
#define MATRIX_UNROLL 128
#else
#define MATRIX_UNROLL 1
#define MATRIX_EXCHANGE_WORDS (MATRIX_WG * 6)
#endif

/* Where a work-item stands. */
typedef struct matrix_place {
    __local uchar *ring; /* of its warp; addresses below are bytes from here */
#if !CLFD_PTX
    __local uint *exchange; /* MATRIX_EXCHANGE_WORDS of the work-group */
#endif
    uint base; /* the ring's address as PTX has it */
    int warp, lane, row, pair;
    int first_row; /* of the warp's rows, in the block */
    int part;      /* of the dims, which the warps of a set share */
} matrix_place;

#include "matrix_emulated.cl"
#include "matrix_ptx.cl"

/* A pair without its infinities and NaN, which become 0. */
MATRIX_INLINE uint matrix_finite(uint pair)
{
    const uint exponents = MATRIX_BF16 ? 0x7f807f80u : 0x7c007c00u, bits = pair & exponents;
    const uint low = (bits & 0xffffu) == (exponents & 0xffffu) ? 0 : 0xffffu;
    return pair & (low | (bits >> 16 == exponents >> 16 ? 0 : 0xffff0000u));
}

/* A pair of elements as floats. */
MATRIX_INLINE float2 matrix_unpack(uint pair)
{
#if MATRIX_BF16
    return as_float2((uint2)(pair << 16, pair & 0xffff0000u));
#else
    return half2_to_float2(pair);
#endif
}

#endif

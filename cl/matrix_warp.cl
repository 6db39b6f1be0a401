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
} matrix_place;

#if CLFD_PTX

#define MATRIX_TEXT_(x) #x
#define MATRIX_TEXT(x) MATRIX_TEXT_(x)

MATRIX_INLINE uint matrix_address(__local uchar *ring)
{
    uint address;
    asm volatile("{.reg .u64 whole; cvta.to.shared.u64 whole, %1; cvt.u32.u64 %0, whole;}" : "=r"(address) : "l"(ring));
    return address;
}

/* Lets the lanes of a warp see what each of them wrote to local memory. */
MATRIX_INLINE void matrix_sync(void) { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

/* Copies 4, 8 or 16 bytes to local memory, or writes zeros there. */
#define MATRIX_COPY(cache, bytes)                                                                                      \
    MATRIX_INLINE void matrix_copy##bytes(const matrix_place *at, uint to, const __global uchar *from)                 \
    {                                                                                                                  \
        asm volatile("cp.async." cache ".shared.global [%0], [%1], " #bytes ";" ::"r"(at->base + to), "l"(from)        \
                     : "memory");                                                                                      \
    }                                                                                                                  \
    MATRIX_INLINE void matrix_copy_if##bytes(const matrix_place *at, uint to, const __global uchar *from, bool there)  \
    {                                                                                                                  \
        asm volatile("cp.async." cache ".shared.global [%0], [%1], " #bytes ", %2;" ::"r"(at->base + to), "l"(from),   \
                     "r"(there ? bytes : 0)                                                                            \
                     : "memory");                                                                                      \
    }
MATRIX_COPY("ca", 4)
MATRIX_COPY("ca", 8)
MATRIX_COPY("cg", 16)

/* Ends a set of copies; waits until at most `count` sets, a constant, are on their way. */
MATRIX_INLINE void matrix_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define matrix_wait(count) asm volatile("cp.async.wait_group " MATRIX_TEXT(count) ";" ::: "memory")

/* c += a * b for a of 16 by 16, b of 16 by 8 elements. */
MATRIX_INLINE void matrix_multiply(const matrix_place *at, float4 *c, uint4 a, uint2 b)
{
#if MATRIX_BF16
#define MATRIX_MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
#else
#define MATRIX_MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
#endif
    asm volatile(MATRIX_MMA "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c->x), "+f"(c->y), "+f"(c->z), "+f"(c->w)
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

/* Four matrices whose rows lie at the addresses that lanes 0 to 7, 8 to 15, ... give; transposed or not. */
MATRIX_INLINE uint4 matrix_load(const matrix_place *at, uint address)
{
    uint4 d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d.x), "=r"(d.y), "=r"(d.z), "=r"(d.w)
                 : "r"(at->base + address)
                 : "memory");
    return d;
}

MATRIX_INLINE uint4 matrix_load_transposed(const matrix_place *at, uint address)
{
    uint4 d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d.x), "=r"(d.y), "=r"(d.z), "=r"(d.w)
                 : "r"(at->base + address)
                 : "memory");
    return d;
}

MATRIX_INLINE uint matrix_transpose(const matrix_place *at, uint a)
{
    uint d;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a));
    return d;
}

MATRIX_INLINE uint matrix_from(const matrix_place *at, uint value, int lane)
{
    uint other;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(other) : "r"(value), "r"(lane));
    return other;
}

MATRIX_INLINE float matrix_xor(const matrix_place *at, float value, int mask)
{
    float other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(other) : "f"(value), "r"(mask));
    return other;
}

/* Whether a condition holds in some lane of the warp; the emulation's answer is that of the whole work-group. */
MATRIX_INLINE bool matrix_any(const matrix_place *at, bool condition)
{
    uint any;
    asm volatile("{.reg .pred mine, all; setp.ne.u32 mine, %1, 0; vote.sync.any.pred all, mine, 0xffffffff; "
                 "selp.u32 %0, 1, 0, all;}"
                 : "=r"(any)
                 : "r"((uint)condition));
    return any != 0;
}

/* Bit l: whether it holds in lane l. */
MATRIX_INLINE uint matrix_ballot(const matrix_place *at, bool condition)
{
    uint lanes;
    asm volatile("{.reg .pred mine; setp.ne.u32 mine, %1, 0; vote.sync.ballot.b32 %0, mine, 0xffffffff;}"
                 : "=r"(lanes)
                 : "r"((uint)condition));
    return lanes;
}

/* Two floats as a pair of elements, the first in the lower half. */
MATRIX_INLINE uint matrix_pack(float low, float high)
{
    uint pair;
#if MATRIX_BF16
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(low), "f"(high));
#else
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(low), "f"(high));
#endif
    return pair;
}

/* NaN in a half of `sum` from which an infinity or NaN in that half of `pair` comes on. */
MATRIX_INLINE uint matrix_spot(uint sum, uint pair)
{
    uint spotted;
#if MATRIX_BF16
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(spotted) : "r"(pair), "r"(0), "r"(sum));
#else
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(spotted) : "r"(pair), "r"(0), "r"(sum));
#endif
    return spotted;
}

#else

MATRIX_INLINE uint matrix_address(__local uchar *ring) { return 0; }
MATRIX_INLINE void matrix_sync(void) { barrier(CLK_LOCAL_MEM_FENCE); }
MATRIX_INLINE void matrix_commit(void) {}
#define matrix_wait(count)

#define MATRIX_COPY(bytes)                                                                                             \
    MATRIX_INLINE void matrix_copy_if##bytes(const matrix_place *at, uint to, const __global uchar *from, bool there)  \
    {                                                                                                                  \
        for (int i = 0; i < bytes; i++)                                                                                \
            at->ring[to + i] = there ? from[i] : 0;                                                                    \
    }                                                                                                                  \
    MATRIX_INLINE void matrix_copy##bytes(const matrix_place *at, uint to, const __global uchar *from)                 \
    {                                                                                                                  \
        matrix_copy_if##bytes(at, to, from, true);                                                                     \
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

MATRIX_INLINE uint matrix_spot(uint sum, uint pair)
{
    const uint exponents = MATRIX_BF16 ? 0x7f807f80u : 0x7c007c00u, bits = pair & exponents;
    return sum | ((bits & 0xffffu) == (exponents & 0xffffu) ? 0x7fffu : 0) |
           (bits >> 16 == exponents >> 16 ? 0x7fff0000u : 0);
}
#endif

/* Whether a half of what matrix_spot gave is NaN. */
MATRIX_INLINE bool matrix_spotted(uint sum)
{
    const uint exponents = MATRIX_BF16 ? 0x7f807f80u : 0x7c007c00u, bits = sum & exponents;
    return (bits & 0xffffu) == (exponents & 0xffffu) || bits >> 16 == exponents >> 16;
}

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

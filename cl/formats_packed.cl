/* formats_packed.cl - eight packed codes of 8 or 4 bits to floats, exactly: see formats.cl.
 *
 * NVIDIA's conversions of integers run at a quarter of the rate of other instructions, hence the form for PTX: bits of a
 * code put into the mantissa of an f16 of 1024 make it 1024 + code; one addition for two of them takes the excess away
 * again, and f16 to float is an instruction at the full rate. Elsewhere plain conversions are the shortest.
 *
 * Tunable, given by the host:
 *   CLFD_PTX_FP8  1: PTX converts fp8 (sm_89 and later)
 */
#ifndef CLFD_FORMATS_PACKED_CL
#define CLFD_FORMATS_PACKED_CL

#include "formats_plain.cl"

#ifndef CLFD_PTX_FP8
#define CLFD_PTX_FP8 0
#endif

#if CLFD_PTX
/* Four of the eight bytes of a and b, by the nibbles of the selector; with 8 in a nibble its byte's sign eight times. */
static inline uint ptx_permute(uint a, uint b, uint selector)
{
    uint bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(selector));
    return bytes;
}

/* Two f16 at a time: a + b, and a * b + c. */
static inline uint ptx_add_halves(uint a, uint b)
{
    uint sums;
    asm("add.f16x2 %0, %1, %2;" : "=r"(sums) : "r"(a), "r"(b));
    return sums;
}

static inline uint ptx_fma_halves(uint a, uint b, uint c)
{
    uint sums;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sums) : "r"(a), "r"(b), "r"(c));
    return sums;
}

/* (a & mask) ^ flips. The compiler makes two instructions of it where both are constants. */
static inline uint ptx_and_xor(uint a, uint mask, uint flips)
{
    uint bits;
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(bits) : "r"(a), "r"(mask), "r"(flips));
    return bits;
}

#define HALVES_1024 0x64006400u

/* As f16: codes 0 and 1, 2 and 3, 4 and 5, 6 and 7 of eight are pairs. */
static inline uint4 packed_int8_halves(uint2 codes)
{
    const uint2 bytes = codes ^ 0x80808080u; /* codes + 128 */
    const uint less_1152 = 0xe480e480u;
    uint4 halves;
    halves.x = ptx_add_halves(ptx_permute(bytes.x, HALVES_1024, 0x5150), less_1152);
    halves.y = ptx_add_halves(ptx_permute(bytes.x, HALVES_1024, 0x5352), less_1152);
    halves.z = ptx_add_halves(ptx_permute(bytes.y, HALVES_1024, 0x5150), less_1152);
    halves.w = ptx_add_halves(ptx_permute(bytes.y, HALVES_1024, 0x5352), less_1152);
    return halves;
}

static inline float8 packed_int8(uint2 codes) { return f16_unpack8(packed_int8_halves(codes)); }

/* Eight nibbles as f16, less 8 once the bits of `flips` are turned. Nibbles 0 and 4, 1 and 5 and so on are pairs. What
 * lies 4 bits higher makes 1024 + 16 * code. */
static inline uint4 packed_nibble_halves(uint codes, uint flips)
{
    const uint less_1032 = 0xe408e408u, less_72 = 0xd480d480u, sixteenths = 0x2c002c00u;
    const uint low = HALVES_1024 | flips, high = HALVES_1024 | flips << 4, upper = codes >> 8;
    uint4 halves;
    halves.x = ptx_add_halves(ptx_and_xor(codes, 0x000f000fu, low), less_1032);
    halves.y = ptx_fma_halves(ptx_and_xor(codes, 0x00f000f0u, high), sixteenths, less_72);
    halves.z = ptx_add_halves(ptx_and_xor(upper, 0x000f000fu, low), less_1032);
    halves.w = ptx_fma_halves(ptx_and_xor(upper, 0x00f000f0u, high), sixteenths, less_72);
    return halves;
}

/* Turning the upper bit of a signed nibble adds 8 to it. */
static inline uint4 packed_int4_halves(uint codes) { return packed_nibble_halves(codes, 0x00080008u); }

static inline float8 packed_int4(uint codes)
{
    const uint4 halves = packed_int4_halves(codes);
    float8 value;
    value.s04 = half2_to_float2(halves.x);
    value.s15 = half2_to_float2(halves.y);
    value.s26 = half2_to_float2(halves.z);
    value.s37 = half2_to_float2(halves.w);
    return value;
}

/* The low or the high nibbles of eight bytes, less 8. */
static inline float8 packed_q4_0(uint2 bytes, bool high)
{
    const uint mask = high ? 0x00f000f0u : 0x000f000fu;
    const uint factor = high ? 0x2c002c00u : 0x3c003c00u; /* 1/16, 1 */
    const uint less = high ? 0xd480d480u : 0xe408e408u;   /* -72, -1032 */
    const uint2 upper = bytes >> 8;
    float8 value;
    value.s02 = half2_to_float2(ptx_fma_halves(ptx_and_xor(bytes.x, mask, HALVES_1024), factor, less));
    value.s13 = half2_to_float2(ptx_fma_halves(ptx_and_xor(upper.x, mask, HALVES_1024), factor, less));
    value.s46 = half2_to_float2(ptx_fma_halves(ptx_and_xor(bytes.y, mask, HALVES_1024), factor, less));
    value.s57 = half2_to_float2(ptx_fma_halves(ptx_and_xor(upper.y, mask, HALVES_1024), factor, less));
    return value;
}

/* e5m2 is the upper byte of f16. */
static inline uint4 packed_e5m2_halves(uint2 codes)
{
    uint4 halves;
    halves.x = ptx_permute(codes.x, 0, 0x1404);
    halves.y = ptx_permute(codes.x, 0, 0x3424);
    halves.z = ptx_permute(codes.y, 0, 0x1404);
    halves.w = ptx_permute(codes.y, 0, 0x3424);
    return halves;
}

static inline float8 packed_e5m2(uint2 codes) { return f16_unpack8(packed_e5m2_halves(codes)); }

#else

static inline float8 packed_int8(uint2 codes) { return convert_float8(as_char8(codes)); }

static inline float8 packed_int4(uint codes)
{
    const uint8 left = (uint8)codes << (uint8)(28, 24, 20, 16, 12, 8, 4, 0);
    return convert_float8(as_int8(left) >> 28);
}

static inline float8 packed_q4_0(uint2 bytes, bool high)
{
    const uchar8 codes = (as_uchar8(bytes) >> (uchar)(high ? 4 : 0)) & (uchar)15;
    return convert_float8(as_char8(codes) - (char)8);
}

static inline float8 packed_e5m2(uint2 codes) { return half8_to_float8(convert_ushort8(as_uchar8(codes)) << 8); }
#endif

/* ---- Four-bit codes as signed bytes, 16 times the code: nibbles in the upper half of their byte -------------------- */

#if CLFD_PTX
static inline uint packed_and_xor(uint a, uint mask, uint flips) { return ptx_and_xor(a, mask, flips); }
#else
static inline uint packed_and_xor(uint a, uint mask, uint flips) { return (a & mask) ^ flips; }
#endif

/* Of the even elements, then of the odd ones. */
static inline uint2 packed_int4_bytes(uint codes) { return (uint2)(codes << 4, codes) & 0xf0f0f0f0u; }

/* Less 8 is the sign bit turned. */
static inline uint2 packed_q4_0_bytes(uint2 bytes, bool high)
{
    const uint2 upper = high ? bytes : bytes << 4;
    return (uint2)(packed_and_xor(upper.x, 0xf0f0f0f0u, 0x80808080u),
                   packed_and_xor(upper.y, 0xf0f0f0f0u, 0x80808080u));
}

/* A magnitude of e4m3, shifted by 7, is the f16 of its 256th part, subnormals included. The only NaN is the magnitude of
 * all ones, here and there; there it gets the exponent of one. */
#if CLFD_PTX && CLFD_PTX_FP8
static inline uint2 ptx_e4m3_halves(uint codes)
{
    uint2 halves;
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.rn.f16x2.e4m3x2 %0, low; cvt.rn.f16x2.e4m3x2 %1, high;}"
        : "=r"(halves.x), "=r"(halves.y)
        : "r"(codes));
    return halves;
}

static inline uint4 packed_e4m3_halves(uint2 codes)
{
    uint4 halves;
    halves.lo = ptx_e4m3_halves(codes.x);
    halves.hi = ptx_e4m3_halves(codes.y);
    return halves;
}
#elif CLFD_PTX
static inline uint4 packed_e4m3_halves(uint2 codes)
{
    const uint2 magnitudes = codes & 0x7f7f7f7fu, next = magnitudes + 0x01010101u;
    const uint marked_x = ptx_and_xor(next.x, 0x80808080u, magnitudes.x);
    const uint marked_y = ptx_and_xor(next.y, 0x80808080u, magnitudes.y);
    uint4 halves;
    halves.x = ptx_permute(marked_x, codes.x, 0xd1c0);
    halves.y = ptx_permute(marked_x, codes.x, 0xf3e2);
    halves.z = ptx_permute(marked_y, codes.y, 0xd1c0);
    halves.w = ptx_permute(marked_y, codes.y, 0xf3e2);
    return (halves << 7) & 0xff80ff80u;
}
#else
static inline float8 packed_e4m3(uint2 codes)
{
    /* The sign lies in bits 15 and 14. One step of the magnitude carries into bit 14 from the NaN only. */
    const ushort8 bits = as_ushort8(convert_short8(as_char8(codes))) << 7;
    return half8_to_float8(bits ^ ((bits + (ushort)0x80) & (ushort)0x4000));
}
#endif
#if CLFD_PTX
static inline float8 packed_e4m3(uint2 codes) { return f16_unpack8(packed_e4m3_halves(codes)); }
#endif

#endif

/* formats.cl - how K and V lie in memory and become floats: eight consecutive elements of a row at a time, for every
 * clfd_type. Rows are addresses of bytes; an index is a multiple of 8 elements. Each format NAME has
 *
 *   NAME_raw8                eight elements as they lie in memory, so that a load can be issued long before its use
 *   NAME_load8(row, index)   loads them
 *   NAME_unpack8(raw)        their codes as floats, exactly; times the format's unit (below), zero and scale apart, their
 *                            values
 *   NAME_floats8(row, index) both, where they need not lie apart: for CPUs, where it may be one instruction
 *   NAME_scale(row, index)   of GGML formats the scale of the element's block; 1 for others
 *
 * and K_FORMAT(load8), V_FORMAT(load8) and so on name those of K and of V.
 *
 * Tunables, all given by the host:
 *   K_TYPE, V_TYPE  values of clfd_type
 *   KV_ALIGNED      1: every row starts on a boundary of 16 bytes (plain types) or 4 bytes (all others); 2: and rows of
 *                   int8 and of fp8 on one of 8 bytes. 0: storage units alone are aligned
 *   CLFD_PTX        1: NVIDIA inline PTX may be used
 *   CLFD_PTX_FP8    1: that of fp8 too (sm_89 and later)
 *
 * Nothing outside the row's own bytes is read.
 */
#ifndef CLFD_FORMATS_CL
#define CLFD_FORMATS_CL

#include "types.cl"

#ifndef K_TYPE
#define K_TYPE TYPE_F16
#endif
#ifndef V_TYPE
#define V_TYPE K_TYPE
#endif
#ifndef CLFD_PTX_FP8
#define CLFD_PTX_FP8 0
#endif

/* Tables by clfd_type: the names, elements and bytes of a storage unit, and what codes are to be multiplied by. */
#define FORMAT_1(name) f32_##name
#define FORMAT_2(name) f16_##name
#define FORMAT_3(name) bf16_##name
#define FORMAT_4(name) int8_##name
#define FORMAT_5(name) int4_##name
#define FORMAT_6(name) e4m3_##name
#define FORMAT_7(name) e5m2_##name
#define FORMAT_8(name) q8_0_##name
#define FORMAT_9(name) q4_0_##name

#define FORMAT_ELEMENTS_1 1
#define FORMAT_ELEMENTS_2 1
#define FORMAT_ELEMENTS_3 1
#define FORMAT_ELEMENTS_4 1
#define FORMAT_ELEMENTS_5 2
#define FORMAT_ELEMENTS_6 1
#define FORMAT_ELEMENTS_7 1
#define FORMAT_ELEMENTS_8 32
#define FORMAT_ELEMENTS_9 32

#define FORMAT_BYTES_1 4
#define FORMAT_BYTES_2 2
#define FORMAT_BYTES_3 2
#define FORMAT_BYTES_4 1
#define FORMAT_BYTES_5 1
#define FORMAT_BYTES_6 1
#define FORMAT_BYTES_7 1
#define FORMAT_BYTES_8 34
#define FORMAT_BYTES_9 18

#define FORMAT_UNIT_1 1.0f
#define FORMAT_UNIT_2 1.0f
#define FORMAT_UNIT_3 1.0f
#define FORMAT_UNIT_4 1.0f
#define FORMAT_UNIT_5 1.0f
#define FORMAT_UNIT_6 256.0f
#define FORMAT_UNIT_7 1.0f
#define FORMAT_UNIT_8 1.0f
#define FORMAT_UNIT_9 1.0f

#define FORMAT_PASTE(table, type) table##type
#define FORMAT_OF(table, type) FORMAT_PASTE(table, type)

#define K_FORMAT(name) FORMAT_OF(FORMAT_, K_TYPE)(name)
#define V_FORMAT(name) FORMAT_OF(FORMAT_, V_TYPE)(name)
#define K_ELEMENTS FORMAT_OF(FORMAT_ELEMENTS_, K_TYPE) /* of a storage unit */
#define V_ELEMENTS FORMAT_OF(FORMAT_ELEMENTS_, V_TYPE)
#define K_UNIT_BYTES FORMAT_OF(FORMAT_BYTES_, K_TYPE) /* of a storage unit */
#define V_UNIT_BYTES FORMAT_OF(FORMAT_BYTES_, V_TYPE)
#define K_UNIT FORMAT_OF(FORMAT_UNIT_, K_TYPE) /* value of the code 1 */
#define V_UNIT FORMAT_OF(FORMAT_UNIT_, V_TYPE)
#define K_ROW_BYTES(dim) ((dim) / K_ELEMENTS * K_UNIT_BYTES)
#define V_ROW_BYTES(dim) ((dim) / V_ELEMENTS * V_UNIT_BYTES)

/* ---- Plain types ------------------------------------------------------------------------------------------------- */

typedef float8 f32_raw8;
typedef uint4 f16_raw8;
typedef uint4 bf16_raw8;

static inline f32_raw8 f32_load8(const __global uchar *row, int index)
{
    const __global float *const from = (const __global float *)row + index;
#if KV_ALIGNED
    float8 value; /* half by half: Oclgrind cannot follow a literal made of vectors */
    value.lo = ((const __global float4 *)from)[0];
    value.hi = ((const __global float4 *)from)[1];
    return value;
#else
    return vload8(0, from);
#endif
}

static inline float8 f32_unpack8(f32_raw8 raw) { return raw; }
static inline float8 f32_floats8(const __global uchar *row, int index) { return f32_load8(row, index); }
static inline float f32_scale(const __global uchar *row, int index) { return 1.0f; }

static inline uint4 format_load16x8(const __global uchar *row, int index)
{
    const __global ushort *const from = (const __global ushort *)row + index;
#if KV_ALIGNED
    return *(const __global uint4 *)from;
#else
    return as_uint4(vload8(0, from));
#endif
}

static inline f16_raw8 f16_load8(const __global uchar *row, int index) { return format_load16x8(row, index); }

static inline float8 f16_unpack8(f16_raw8 raw)
{
    float8 value;
    value.s01 = half2_to_float2(raw.x);
    value.s23 = half2_to_float2(raw.y);
    value.s45 = half2_to_float2(raw.z);
    value.s67 = half2_to_float2(raw.w);
    return value;
}

static inline float8 f16_floats8(const __global uchar *row, int index)
{
    return vload_half8(0, (const __global half *)row + index);
}

static inline float f16_scale(const __global uchar *row, int index) { return 1.0f; }

static inline bf16_raw8 bf16_load8(const __global uchar *row, int index) { return format_load16x8(row, index); }

static inline float8 bf16_unpack8(bf16_raw8 raw)
{
    const uint4 low = raw << 16, high = raw & 0xffff0000u;
    return as_float8((uint8)(low.x, high.x, low.y, high.y, low.z, high.z, low.w, high.w));
}

static inline float8 bf16_floats8(const __global uchar *row, int index)
{
    return as_float8(convert_uint8(vload8(0, (const __global ushort *)row + index)) << 16);
}

static inline float bf16_scale(const __global uchar *row, int index) { return 1.0f; }

/* ---- Codes of 8 bits --------------------------------------------------------------------------------------------- */

typedef uint2 int8_raw8;
typedef uint2 e4m3_raw8;
typedef uint2 e5m2_raw8;

static inline uint2 format_load8x8(const __global uchar *row, int index)
{
#if KV_ALIGNED >= 2
    return *(const __global uint2 *)(row + index);
#elif KV_ALIGNED
    const __global uint *const from = (const __global uint *)(row + index);
    return (uint2)(from[0], from[1]);
#else
    return as_uint2(vload8(0, row + index));
#endif
}

static inline int8_raw8 int8_load8(const __global uchar *row, int index) { return format_load8x8(row, index); }
static inline float8 int8_unpack8(int8_raw8 raw) { return convert_float8(as_char8(raw)); }

static inline float8 int8_floats8(const __global uchar *row, int index)
{
    return convert_float8(vload8(0, (const __global char *)row + index));
}

static inline float int8_scale(const __global uchar *row, int index) { return 1.0f; }

static inline float8 format_halves(ushort8 bits) { return vload_half8(0, (const half *)&bits); }

/* Sign and magnitude of e4m3, the magnitude shifted by 7, are the f16 of the 256th part, subnormals included; the NaN,
 * alone in its magnitude of all ones, gets the exponent of one. */
static inline float8 format_e4m3(uchar8 codes)
{
    const ushort8 x = convert_ushort8(codes), magnitude = x & (ushort)0x7f;
    const ushort8 nan = (magnitude + (ushort)1) & (ushort)0x80;
    return format_halves((magnitude | nan) << 7 | (x & (ushort)0x80) << 8);
}

static inline e4m3_raw8 e4m3_load8(const __global uchar *row, int index) { return format_load8x8(row, index); }
static inline float8 e4m3_unpack8(e4m3_raw8 raw) { return format_e4m3(as_uchar8(raw)); }
static inline float8 e4m3_floats8(const __global uchar *row, int index) { return format_e4m3(vload8(0, row + index)); }
static inline float e4m3_scale(const __global uchar *row, int index) { return 1.0f; }

/* e5m2 is the upper byte of f16. */
static inline float8 format_e5m2(uchar8 codes) { return format_halves(convert_ushort8(codes) << 8); }

static inline e5m2_raw8 e5m2_load8(const __global uchar *row, int index) { return format_load8x8(row, index); }
static inline float8 e5m2_unpack8(e5m2_raw8 raw) { return format_e5m2(as_uchar8(raw)); }
static inline float8 e5m2_floats8(const __global uchar *row, int index) { return format_e5m2(vload8(0, row + index)); }
static inline float e5m2_scale(const __global uchar *row, int index) { return 1.0f; }

/* ---- Codes of 4 bits --------------------------------------------------------------------------------------------- */

typedef uint int4_raw8;

static inline int4_raw8 int4_load8(const __global uchar *row, int index)
{
#if KV_ALIGNED
    return *(const __global uint *)(row + index / 2);
#else
    return as_uint(vload4(0, row + index / 2));
#endif
}

static inline float8 int4_unpack8(int4_raw8 raw)
{
    const uint8 left = (uint8)raw << (uint8)(28, 24, 20, 16, 12, 8, 4, 0);
    return convert_float8(as_int8(left) >> 28);
}

static inline float8 int4_floats8(const __global uchar *row, int index)
{
    return int4_unpack8(as_uint(vload4(0, row + index / 2)));
}

static inline float int4_scale(const __global uchar *row, int index) { return 1.0f; }

/* ---- GGML's blocks ----------------------------------------------------------------------------------------------- */

#define Q8_0_BYTES FORMAT_BYTES_8
#define Q4_0_BYTES FORMAT_BYTES_9

typedef uint2 q8_0_raw8;

static inline const __global uchar *q8_0_codes(const __global uchar *row, int index)
{
    return row + (index / 32 * Q8_0_BYTES + 2 + index % 32);
}

static inline q8_0_raw8 q8_0_load8(const __global uchar *row, int index)
{
    return as_uint2(vload4(0, (const __global ushort *)q8_0_codes(row, index)));
}

static inline float8 q8_0_unpack8(q8_0_raw8 raw) { return convert_float8(as_char8(raw)); }

static inline float8 q8_0_floats8(const __global uchar *row, int index)
{
    return convert_float8(vload8(0, (const __global char *)q8_0_codes(row, index)));
}

static inline float q8_0_scale(const __global uchar *row, int index)
{
    return vload_half(0, (const __global half *)(row + index / 32 * Q8_0_BYTES));
}

/* The bytes that hold the eight elements, and whether in their low nibbles (0) or in their high ones (4). */
typedef struct q4_0_raw8 {
    uint2 bytes;
    uint shift;
} q4_0_raw8;

static inline const __global uchar *q4_0_codes(const __global uchar *row, int index)
{
    return row + (index / 32 * Q4_0_BYTES + 2 + index % 16);
}

static inline uint q4_0_shift(int index) { return (uint)(index % 32 / 16 * 4); }

static inline float8 format_q4_0(uchar8 bytes, uint shift)
{
    return convert_float8(convert_int8((bytes >> (uchar)shift) & (uchar)15) - 8);
}

static inline q4_0_raw8 q4_0_load8(const __global uchar *row, int index)
{
    q4_0_raw8 raw;
    raw.bytes = as_uint2(vload4(0, (const __global ushort *)q4_0_codes(row, index)));
    raw.shift = q4_0_shift(index);
    return raw;
}

static inline float8 q4_0_unpack8(q4_0_raw8 raw) { return format_q4_0(as_uchar8(raw.bytes), raw.shift); }

static inline float8 q4_0_floats8(const __global uchar *row, int index)
{
    return format_q4_0(vload8(0, q4_0_codes(row, index)), q4_0_shift(index));
}

static inline float q4_0_scale(const __global uchar *row, int index)
{
    return vload_half(0, (const __global half *)(row + index / 32 * Q4_0_BYTES));
}

#endif

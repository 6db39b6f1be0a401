/* formats_plain.cl - f32, f16 and bf16 as formats of K and V: see formats.cl. */
#ifndef CLFD_FORMATS_PLAIN_CL
#define CLFD_FORMATS_PLAIN_CL

#ifndef KV_ALIGNED
#define KV_ALIGNED 1
#endif
#ifndef KV_PAIRS
#define KV_PAIRS 0
#endif
#ifndef CLFD_PTX
#define CLFD_PTX 0
#endif

/* Two packed f16 to float. vload_half needs no cl_khr_fp16; where PTX is there one conversion per element is certain. */
static inline float2 half2_to_float2(uint pair)
{
#if CLFD_PTX
    float2 value;
    asm("{.reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
        : "=f"(value.x), "=f"(value.y)
        : "r"(pair));
    return value;
#else
    return vload_half2(0, (const half *)&pair);
#endif
}

/* The same of eight. Never from memory: PoCL's vload_half8 asks for whole vectors there. */
static inline float8 half8_to_float8(ushort8 halves) { return vload_half8(0, (const half *)&halves); }

typedef float8 f32_raw8;
typedef uint4 f16_raw8;
typedef uint4 bf16_raw8;

/* Two eights as sixteen. Half by half: Oclgrind cannot follow a literal made of vectors. */
static inline float16 formats_join(float8 low, float8 high)
{
    float16 both;
    both.lo = low;
    both.hi = high;
    return both;
}

#define FORMATS_TWO_EIGHTS(name)                                                                                       \
    static inline float16 name##_floats16(const __global uchar *row, int index)                                        \
    {                                                                                                                  \
        return formats_join(name##_floats8(row, index), name##_floats8(row, index + 8));                               \
    }

static inline f32_raw8 f32_load8(const __global uchar *row, int index)
{
    const __global float *const from = (const __global float *)row + index;
#if KV_ALIGNED
    float8 value; /* half by half: see formats_join */
    value.lo = ((const __global float4 *)from)[0];
    value.hi = ((const __global float4 *)from)[1];
    return value;
#else
    return vload8(0, from);
#endif
}

static inline float8 f32_unpack8(f32_raw8 raw) { return raw; }
static inline float8 f32_floats8(const __global uchar *row, int index) { return f32_load8(row, index); }
FORMATS_TWO_EIGHTS(f32)
static inline float f32_scale(const __global uchar *row, int index) { return 1.0f; }

static inline uint4 formats_load_halves8(const __global uchar *row, int index)
{
    const __global ushort *const from = (const __global ushort *)row + index;
#if KV_ALIGNED
    return *(const __global uint4 *)from;
#else
    return as_uint4(vload8(0, from));
#endif
}

static inline f16_raw8 f16_load8(const __global uchar *row, int index) { return formats_load_halves8(row, index); }

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
    return half8_to_float8(as_ushort8(formats_load_halves8(row, index)));
}

/* Sixteen with one instruction, where PoCL's vload_half16 makes two of eight each and puts them together. */
#ifdef __AVX512F__
typedef __fp16 formats_halves16 __attribute__((ext_vector_type(16), aligned(2)));

static inline float16 f16_floats16(const __global uchar *row, int index)
{
    return __builtin_convertvector(*(const __global formats_halves16 *)(row + 2 * index), float16);
}
#else
FORMATS_TWO_EIGHTS(f16)
#endif

static inline float f16_scale(const __global uchar *row, int index) { return 1.0f; }

static inline bf16_raw8 bf16_load8(const __global uchar *row, int index) { return formats_load_halves8(row, index); }

static inline float8 bf16_unpack8(bf16_raw8 raw)
{
    const uint4 low = raw << 16, high = raw & 0xffff0000u;
    return as_float8((uint8)(low.x, high.x, low.y, high.y, low.z, high.z, low.w, high.w));
}

static inline float8 bf16_floats8(const __global uchar *row, int index)
{
    return as_float8(convert_uint8(vload8(0, (const __global ushort *)row + index)) << 16);
}

static inline float16 bf16_floats16(const __global uchar *row, int index)
{
    return as_float16(convert_uint16(vload16(0, (const __global ushort *)row + index)) << 16);
}

static inline float bf16_scale(const __global uchar *row, int index) { return 1.0f; }

#endif

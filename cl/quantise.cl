/* quantise.cl - writing a row of the cache: rows of new elements become what clfd_type says, some dims at a time.
 *
 * Types are constants wherever these functions are called, so that of each only one branch is compiled. A NaN or an
 * infinity among dims that share a scale makes that NaN and their codes 0 (of q4_0 8).
 */
#ifndef CLFD_QUANTISE_CL
#define CLFD_QUANTISE_CL

#include "quotient.cl"
#include "rope.cl"

/* Where the scale and the zero of a group lie. */
typedef struct scale_place {
    __global uchar *scales, *zeros;
    long scale, zero; /* indices, in elements */
    int type;         /* of both: TYPE_F32 or TYPE_F16 */
    bool has_zeros;
} scale_place;

/* Least and greatest of some dims and 0; both NaN where one of them is. */
typedef struct extremes {
    float low, high;
} extremes;

static inline extremes new_extremes(const new_row *row, int first, int dims)
{
    extremes e = {0.0f, 0.0f};

    for (int d = first; d < first + dims; d++) {
        const float x = new_element(row, d);
        e.low = x < e.low || x != x ? x : e.low;
        e.high = x > e.high || x != x ? x : e.high;
    }
    return e;
}

static inline bool extremes_finite(extremes e) { return isfinite(e.low) && isfinite(e.high); }

static inline ushort half_bits(float value)
{
    ushort bits;
    vstore_half_rte(value, 0, (half *)&bits);
    return bits;
}

static inline float half_value(ushort bits) { return vload_half(0, (const half *)&bits); }

/* int8, int4: a group. The scale is rounded to its type first, so that the codes suit what will be read. */
static inline void quantise_group(__global uchar *codes, const new_row *row, int first, int dims, int type,
                                  const scale_place *place)
{
    const float most = type == TYPE_INT8 ? 127.0f : 7.0f, least = place->has_zeros ? -most - 1.0f : -most;
    const extremes e = new_extremes(row, first, dims);
    /* In halves: the difference of two floats may be too great for one. */
    const float range = place->has_zeros ? quotient(0.5f * e.high - 0.5f * e.low, 0.5f * (most - least))
                                         : quotient(fmax(-e.low, e.high), most);
    const float exact = extremes_finite(e) ? range : NAN;
    const float scale = place->type == TYPE_F16 ? half_value(half_bits(exact)) : exact;
    const bool usable = scale > 0.0f && scale < INFINITY;
    const float zero = place->has_zeros && usable ? clamp(least - rint(quotient(e.low, scale)), least, most) : 0.0f;

    element_store(place->scales, place->scale, scale, place->type);
    if (place->has_zeros)
        element_store(place->zeros, place->zero, zero, place->type);
    for (int d = first; d < first + dims; d += 2) {
        int code[2];
        for (int i = 0; i < 2; i++)
            code[i] = usable ? (int)clamp(rint(quotient(new_element(row, d + i), scale)) + zero, least, most) : 0;
        if (type == TYPE_INT8) {
            codes[d] = (uchar)code[0];
            codes[d + 1] = (uchar)code[1];
        } else {
            codes[d / 2] = (uchar)((code[0] & 15) | (code[1] & 15) << 4);
        }
    }
}

/* The f16 scale of a GGML block, byte by byte: rows need no alignment then. Returns whether codes matter: under a scale
 * of 0 or NaN they do not, and the quotients that they come from need not exist. */
static inline bool block_store_scale(__global uchar *block, float scale)
{
    const ushort bits = half_bits(scale);
    block[0] = (uchar)(bits & 0xff);
    block[1] = (uchar)(bits >> 8);
    return scale == scale && (bits & 0x7fff) != 0;
}

static inline void quantise_q8_0(__global uchar *block, const new_row *row, int first)
{
    const extremes e = new_extremes(row, first, 32);
    const float greatest = fmax(-e.low, e.high), inverse = quotient(127.0f, greatest);
    const bool usable = block_store_scale(block, extremes_finite(e) ? quotient(greatest, 127.0f) : NAN);

    for (int d = 0; d < 32; d++)
        block[2 + d] = (uchar)(usable ? (int)rint(new_element(row, first + d) * inverse) : 0);
}

/* The element of greatest magnitude, the first of them, gets the code 0: -8 times the scale. */
static inline void quantise_q4_0(__global uchar *block, const new_row *row, int first)
{
    const extremes e = new_extremes(row, first, 32);
    float peak = 0.0f;
    uint code[32];

    for (int d = 0; d < 32; d++) {
        const float x = new_element(row, first + d);
        peak = fabs(x) > fabs(peak) ? x : peak;
    }
    const float scale = peak * -0.125f, inverse = quotient(1.0f, scale);
    const bool usable = block_store_scale(block, extremes_finite(e) ? scale : NAN);
    for (int d = 0; d < 32; d++)
        code[d] = usable ? (uint)min((int)(new_element(row, first + d) * inverse + 8.5f), 15) : 8u;
    for (int d = 0; d < 16; d++)
        block[2 + d] = (uchar)(code[d] | code[d + 16] << 4);
}

/* To nearest even, saturating; NaN stays NaN. On the bits, so that no device's treatment of subnormals matters. */
static inline uchar fp8_code(float value, int type)
{
    const int mantissa = type == TYPE_E4M3 ? 3 : 2, bias = type == TYPE_E4M3 ? 7 : 15;
    const uint greatest = type == TYPE_E4M3 ? 0x7eu : 0x7bu;
    const uint bits = as_uint(value), magnitude = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
    const int shift = 23 - mantissa;

    if (magnitude > 0x7f800000u)
        return (uchar)(sign | 0x7fu);
    if (magnitude < (uint)(128 - bias) << 23) /* below the least normal code: a multiple of the least code */
        return (uchar)(sign | (uint)rint(as_float(magnitude) * (float)(1 << (bias - 1 + mantissa))));
    const uint rebased = magnitude - ((uint)(127 - bias) << 23);
    return (uchar)(sign | min((rebased + ((1u << (shift - 1)) - 1u) + (rebased >> shift & 1u)) >> shift, greatest));
}

/* Writes dims [first, first + dims) of a row of the cache: `dims` is a group, a block, or any number for other types.
 * Inlined, whatever its size, for else the types would be no constants. */
static inline __attribute__((always_inline)) void quantise_dims(__global uchar *codes, const new_row *row, int first,
                                                                int dims, int type, const scale_place *place)
{
    if (type == TYPE_INT8 || type == TYPE_INT4) {
        quantise_group(codes, row, first, dims, type, place);
    } else if (type == TYPE_Q8_0) {
        quantise_q8_0(codes + first / 32 * 34, row, first);
    } else if (type == TYPE_Q4_0) {
        quantise_q4_0(codes + first / 32 * 18, row, first);
    } else if (type == TYPE_E4M3 || type == TYPE_E5M2) {
        const float scale = element_load(place->scales, place->scale, place->type);
        for (int d = first; d < first + dims; d++)
            codes[d] = fp8_code(quotient(new_element(row, d), scale), type);
    } else {
        for (int d = first; d < first + dims; d++)
            element_store(codes, d, new_element(row, d), type);
    }
}

#endif

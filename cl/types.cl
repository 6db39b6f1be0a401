/* types.cl - the plain element types of q and out: load, convert, store. K and V: formats.cl.
 *
 * Tunables, all given by the host:
 *   Q_TYPE, OUT_TYPE  element types of q and of out (values of clfd_type)
 *
 * 16-bit types are held as ushort. Conversions keep infinities, NaN and subnormals; stores round to nearest even.
 */
#ifndef CLFD_TYPES_CL
#define CLFD_TYPES_CL

#define TYPE_F32 1
#define TYPE_F16 2
#define TYPE_BF16 3
#define TYPE_INT8 4
#define TYPE_INT4 5
#define TYPE_E4M3 6
#define TYPE_E5M2 7
#define TYPE_Q8_0 8
#define TYPE_Q4_0 9

#ifndef Q_TYPE
#define Q_TYPE TYPE_F16
#endif
#ifndef OUT_TYPE
#define OUT_TYPE Q_TYPE
#endif

#if Q_TYPE == TYPE_F32
typedef float q_element;
#else
typedef ushort q_element;
#endif
#if OUT_TYPE == TYPE_F32
typedef float out_element;
#else
typedef ushort out_element;
#endif

static inline float bf16_to_float(ushort bits) { return as_float((uint)bits << 16); }

/* Round to nearest even on the bits; a NaN is made quiet, so that its payload cannot round to infinity. */
static inline ushort float_to_bf16(float value)
{
    const uint bits = as_uint(value);
    const uint rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    return (ushort)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded >> 16);
}

static inline float q_load(const __global q_element *q, long index)
{
#if Q_TYPE == TYPE_F32
    return q[index];
#elif Q_TYPE == TYPE_F16
    return vload_half(0, (const __global half *)(q + index));
#else
    return bf16_to_float(q[index]);
#endif
}

static inline void out_store(__global out_element *out, long index, float value)
{
#if OUT_TYPE == TYPE_F32
    out[index] = value;
#elif OUT_TYPE == TYPE_F16
    vstore_half_rte(value, 0, (__global half *)(out + index));
#else
    out[index] = float_to_bf16(value);
#endif
}

#endif

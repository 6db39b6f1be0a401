/* state.cl - the softmax state: update, partial forms, merge, finish. The only home of exp and log.
 *
 * Inside a kernel a state is (m, l, o): m is the maximum score in units of log2, l = sum 2^(score - m), o the weighted
 * sum of V. In memory it has one of the two partial formats, in natural-log units, with o normalised.
 *
 * Tunables, given by the host:
 *   STATE_MLO    0: partial states are (S, o); 1: (m, l, o). Nothing outside this file knows the difference
 *   CLFD_PTX     1: NVIDIA inline PTX may be used
 *   STATE_POLY   1: exp2 is a polynomial that vectorises (CPUs); 0: the built-in
 *
 * Every difference of exponents is guarded by a comparison: -inf - -inf never reaches exp2. NaN passes through: a NaN
 * score, or one of +inf (inf - inf), makes l and o NaN.
 */
#ifndef CLFD_STATE_CL
#define CLFD_STATE_CL

#include "ptx.cl"

#ifndef STATE_MLO
#define STATE_MLO 0
#endif
#ifndef STATE_POLY
#define STATE_POLY 0
#endif

/* How partial states are read and written: under DECODE_FUSED (decode.cl) other work-groups do so meanwhile. */
#if DECODE_FUSED
#define STATE_READ(from) ptx_read(from)
#define STATE_READ4_IF(from, condition) ptx_read4_if(from, condition, 0.0f)
#define STATE_WRITE(to, value) ptx_write(to, value)
#define STATE_WRITE4(to, value) ptx_write4(to, value)
#else
#define STATE_READ(from) (*(from))
#define STATE_READ4_IF(from, condition) ((condition) ? *(const __global float4 *)(from) : (float4)0.0f)
#define STATE_WRITE(to, value) (void)(*(to) = (value))
#define STATE_WRITE4(to, value) (void)(*(__global float4 *)(to) = (value))
#endif

#define STATE_LOG2E 1.44269504088896341f
#define STATE_LN2 0.69314718055994531f

/* The greater of a and b by comparison: where fmax expands to a NaN-safe sequence this stays one instruction. A NaN in b
 * is returned, a NaN in a is dropped. */
static inline float state_max(float a, float b) { return a > b ? a : b; }

/* 2^x for x <= 0: 1 at 0, exactly 0 below 2^-125 and at -inf, NaN at NaN, relative error below 2e-7. Adding 1.5 * 2^23
 * rounds x to an integer in the low bits; the polynomial is the minimax fit of 2^f on [-0.5, 0.5]. */
#define STATE_EXP2_POLY(name, real, integer, as_real, as_integer)                                                      \
    static inline real name(real x)                                                                                    \
    {                                                                                                                  \
        const real shifted = x + 12582912.0f;                                                                          \
        const real f = x - (shifted - 12582912.0f);                                                                    \
        real p = (real)1.535336188319500e-4f;                                                                          \
        p = fma(p, f, (real)1.339887440266574e-3f);                                                                    \
        p = fma(p, f, (real)9.618437357674640e-3f);                                                                    \
        p = fma(p, f, (real)5.550332471162809e-2f);                                                                    \
        p = fma(p, f, (real)2.402264791363012e-1f);                                                                    \
        p = fma(p, f, (real)6.931472028550421e-1f);                                                                    \
        p = fma(p, f, (real)1.0f);                                                                                     \
        const real scaled = as_real(as_integer(p) + (as_integer(shifted) << 23));                                      \
        return x < (real)-125.0f ? (real)0.0f : (x == x ? scaled : x);                                                 \
    }
STATE_EXP2_POLY(state_exp2_poly, float, int, as_float, as_int)
STATE_EXP2_POLY(state_exp2_poly8, float8, int8, as_float8, as_int8)
STATE_EXP2_POLY(state_exp2_poly16, float16, int16, as_float16, as_int16)

static inline float state_exp2(float x)
{
#if CLFD_PTX
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#elif STATE_POLY
    return state_exp2_poly(x);
#else
    return exp2(x);
#endif
}

/* What to subtract from scores under a running maximum that may still be empty. */
static inline float state_base(float m) { return m == -INFINITY ? 0.0f : m; }

/* The weight 2^((e - max) * unit) of a state or score e under the maximum of its set, e and max in units of log2 / unit: 0
 * for the empty one, 1 at the maximum. exp2 of 0 and of -inf are exact. */
static inline float state_weight_in(float e, float max, float unit)
{
    const float weight = state_exp2((e - state_base(max)) * unit); /* first, so that no compiler makes a branch of it */
    return e < INFINITY ? weight : NAN;
}

static inline float state_weight(float e, float max) { return state_weight_in(e, max, 1.0f); }

/* log2 units to natural ones. Written as fma so that no compiler contracts the product into a later sum: a direct write
 * and a merge of one then round alike. */
static inline float state_natural(float m) { return fma(m, STATE_LN2, 0.0f); }

/* The natural logarithm. PTX's of a number near 1 is good to 2^-22; the exponent is added afterwards. Not where a merge takes
 * the logarithm, whose program has no PTX: a direct write and a merge of one give the same bits. */
static inline float state_log(float x)
{
#if CLFD_PTX && !STATE_MLO
    const int exponent = (as_int(x) - 0x3f400000) >> 23; /* x is 2^exponent times [0.75, 1.5) */
    float y;
    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(as_float(as_int(x) - (exponent << 23))));
    return x < INFINITY ? fma((float)exponent + y, STATE_LN2, 0.0f) : x; /* never part of a later sum: state_natural */
#else
    return log(x);
#endif
}

/* S = m + log l, m natural. */
static inline float state_lse(float m, float l) { return l == 0.0f ? -INFINITY : m + state_log(l); }

/* A state of log-sum-exp s joined by a sink, which has a logit and no value: the new log-sum-exp, and what o is multiplied
 * by. The empty state's o stays 0. The built-in exp2, whatever state_exp2 is in the program, and a product that no compiler
 * contracts: a direct write and a merge of one give the same bits. */
static inline float2 state_sink(float s, float sink)
{
    if (sink == -INFINITY)
        return (float2)(s, 1.0f);
    if (!(s < INFINITY && sink < INFINITY))
        return (float2)(NAN, NAN);
    if (s == -INFINITY)
        return (float2)(sink, 0.0f);
    const float max = state_max(s, sink);
    const float least = exp2(fma(min(s, sink) - max, STATE_LOG2E, 0.0f)), sum = 1.0f + least;
    return (float2)(max + log(sum), (s == max ? 1.0f : least) / sum);
}

/* 1 / l, which o is multiplied by; the empty state's o becomes 0. */
static inline float state_inverse(float l) { return l == 0.0f ? 0.0f : native_recip(l); }

/* o / l, element by element; the empty state's o is 0. A multiplication by 1/l would do, but one rounding is free. */
static inline float state_normalise(float o, float l) { return l == 0.0f ? 0.0f : o / l; }

/* Writes the statistics of a partial state; m in natural units. */
static inline void state_store(__global float *stats, long index, long stride, float m, float l)
{
#if STATE_MLO
    STATE_WRITE(stats + index, l == 0.0f ? -INFINITY : l == l ? m : NAN);
    STATE_WRITE(stats + (index + stride), l);
#else
    STATE_WRITE(stats + index, state_lse(m, l));
#endif
}

/* Fills them with one value. */
static inline void state_fill(__global float *stats, long index, long stride, float value)
{
    STATE_WRITE(stats + index, value);
    if (STATE_MLO)
        STATE_WRITE(stats + (index + stride), value);
}

/* Reads them as they are: (S, S) or (m, l). */
static inline float2 state_read(const __global float *stat0, const __global float *stat1, long index)
{
    const float e = STATE_READ(stat0 + index);
    return (float2)(e, STATE_MLO ? STATE_READ(stat1 + index) : e);
}

#if DECODE_FUSED
/* Reads them if a condition holds, else keeps what was read before. */
static inline float2 state_read_if(const __global float *stats, long index, long stride, bool condition, float2 read)
{
    const float e = ptx_read_if(stats + index, condition, read.x);
    return (float2)(e, STATE_MLO ? ptx_read_if(stats + (index + stride), condition, read.y) : e);
}
#endif

/* Whether one of them has the bits of a value. */
static inline bool state_has(float2 read, float value)
{
    return as_uint(read.x) == as_uint(value) || as_uint(read.y) == as_uint(value);
}

/* What was read as (exponent, weight), natural units: a state counts exp(exponent) * weight. What is not a state, a NaN
 * or +inf in either, becomes a NaN weight. */
static inline float2 state_weighted(float2 read)
{
    const float e = read.x;
#if STATE_MLO
    const float l = read.y;
    if (!(e < INFINITY && l < INFINITY))
        return (float2)(e, NAN);
    return e == -INFINITY || l == 0.0f ? (float2)(-INFINITY, 0.0f) : (float2)(e, l);
#else
    return (float2)(e, e < INFINITY ? (e == -INFINITY ? 0.0f : 1.0f) : NAN);
#endif
}

static inline float2 state_load(const __global float *stat0, const __global float *stat1, long index)
{
    return state_weighted(state_read(stat0, stat1, index));
}

/* The share of a loaded state in a set with maximum exponent max (natural units). */
static inline float state_share(float2 state, float max)
{
    const float weight = state_exp2((state.x - max) * STATE_LOG2E) * state.y;
    return state.y == 0.0f ? 0.0f : state.x == max ? state.y : weight;
}

#endif

/* quantise.c - from floats to storage units: rounding, packing, and the scales that go with them. */
#include "host/dequantise.h"
#include "host/ggml.h"
#include "type.h"
#include <clfd/cache.h>
#include <fp16.h>
#include <math.h>

/* One group of elements and what it is to become. */
typedef struct group {
    const float *from;
    uint32_t first, dim; /* of the row */
    float *scale, *zero; /* zero: NULL for the symmetric form */
} group;

static bool all_finite(const float *from, uint32_t dim)
{
    for (uint32_t d = 0; d < dim; d++)
        if (!isfinite(from[d]))
            return false;
    return true;
}

/* The element of greatest magnitude, the first of equals. */
static float find_peak(const float *from, uint32_t dim)
{
    float peak = 0.0f;

    for (uint32_t d = 0; d < dim; d++)
        if (fabsf(from[d]) > fabsf(peak))
            peak = from[d];
    return peak;
}

/* ---- Integers ---------------------------------------------------------------------------------------------------- */

static void store_integer(clfd_type type, void *codes, uint32_t d, int code)
{
    uint8_t *bytes = codes;

    if (type == CLFD_TYPE_INT8)
        bytes[d] = (uint8_t)code;
    else if (d % 2 == 0)
        bytes[d / 2] = (uint8_t)((bytes[d / 2] & 0xf0) | (code & 15));
    else
        bytes[d / 2] = (uint8_t)((bytes[d / 2] & 15) | (code & 15) << 4);
}

/* Scale, zero and least code of a group: see clfd_quantise_row. A scale of 0 or NaN stands for codes of 0. */
static int choose_scale(const group *g, int greatest)
{
    float min = 0.0f, max = 0.0f;

    if (g->zero != NULL)
        *g->zero = 0.0f;
    *g->scale = NAN;
    if (!all_finite(g->from, g->dim))
        return 0;
    if (g->zero == NULL) {
        *g->scale = fabsf(find_peak(g->from, g->dim)) / (float)greatest;
        return -greatest;
    }
    for (uint32_t d = 0; d < g->dim; d++) {
        min = fminf(min, g->from[d]);
        max = fmaxf(max, g->from[d]);
    }
    /* In halves: the difference of two floats may be too great for one. */
    *g->scale = (0.5f * max - 0.5f * min) / ((float)greatest + 0.5f);
    if (*g->scale > 0.0f)
        *g->zero = (float)(-greatest - 1) - rintf(min / *g->scale);
    return -greatest - 1;
}

static void quantise_integers(clfd_type type, const group *g, void *codes)
{
    const int greatest = type == CLFD_TYPE_INT8 ? 127 : 7;
    const float least = (float)choose_scale(g, greatest);
    const float scale = *g->scale, zero = g->zero != NULL ? *g->zero : 0.0f;

    for (uint32_t d = 0; d < g->dim; d++) {
        const float code = scale > 0.0f ? rintf(g->from[d] / scale) + zero : 0.0f;
        store_integer(type, codes, g->first + d, (int)fminf(fmaxf(code, least), (float)greatest));
    }
}

/* ---- fp8 --------------------------------------------------------------------------------------------------------- */

/* A small float: its mantissa bits, the exponent of its subnormals and least normals, its greatest finite value. */
typedef struct small_float {
    int mantissa_bits, min_exponent;
    float greatest;
} small_float;

/* Counts steps of the exponent's size; a carry out of the mantissa is the next exponent. */
static uint8_t encode_fp8(const small_float *format, float value)
{
    const uint32_t sign = signbit(value) ? 0x80u : 0u;
    const float magnitude = fminf(fabsf(value), format->greatest);
    int exponent;

    if (isnan(value))
        return (uint8_t)(sign | 0x7fu);
    (void)frexpf(magnitude, &exponent); /* magnitude = 0.5 .. 1 * 2^exponent */
    exponent = magnitude > 0.0f && exponent > format->min_exponent ? exponent - 1 : format->min_exponent;
    const uint32_t steps = (uint32_t)rintf(ldexpf(magnitude, format->mantissa_bits - exponent));
    return (uint8_t)(sign | (((uint32_t)(exponent - format->min_exponent) << format->mantissa_bits) + steps));
}

static void quantise_fp8(clfd_type type, const group *g, void *codes)
{
    static const small_float e4m3 = {3, -6, 448.0f}, e5m2 = {2, -14, 57344.0f};
    uint8_t *bytes = codes;

    for (uint32_t d = 0; d < g->dim; d++)
        bytes[g->first + d] = encode_fp8(type == CLFD_TYPE_FP8_E4M3 ? &e4m3 : &e5m2, g->from[d] / *g->scale);
}

/* ---- GGML blocks ------------------------------------------------------------------------------------------------- */

static void quantise_q8_0(const float *from, clfd_block_q8_0 *block)
{
    const float peak = fabsf(find_peak(from, CLFD_GGML_BLOCK));
    const bool finite = all_finite(from, CLFD_GGML_BLOCK);

    block->scale = fp16_ieee_from_fp32_value(finite ? peak / 127.0f : NAN);
    const bool is_zero = (block->scale & 0x7fffu) == 0; /* nothing is lost with the codes; and 127 / peak is finite */
    for (int i = 0; i < CLFD_GGML_BLOCK; i++)
        block->codes[i] = (int8_t)(finite && !is_zero ? rintf(from[i] * (127.0f / peak)) : 0.0f);
}

static void quantise_q4_0(const float *from, clfd_block_q4_0 *block)
{
    const float scale = find_peak(from, CLFD_GGML_BLOCK) / -8.0f;
    const bool finite = all_finite(from, CLFD_GGML_BLOCK);
    uint8_t nibbles[CLFD_GGML_BLOCK];

    block->scale = fp16_ieee_from_fp32_value(finite ? scale : NAN);
    const bool is_zero = (block->scale & 0x7fffu) == 0;
    for (int i = 0; i < CLFD_GGML_BLOCK; i++) {
        const int code = finite && !is_zero ? (int)(from[i] * (1.0f / scale) + 8.5f) : 8;
        nibbles[i] = (uint8_t)(code < 15 ? code : 15);
    }
    for (int i = 0; i < CLFD_GGML_BLOCK / 2; i++)
        block->nibbles[i] = (uint8_t)(nibbles[i] | nibbles[i + CLFD_GGML_BLOCK / 2] << 4);
}

static void quantise_blocks(clfd_type type, uint32_t dim, const float *from, void *codes)
{
    for (uint32_t b = 0; b < dim / CLFD_GGML_BLOCK; b++)
        if (type == CLFD_TYPE_Q8_0)
            quantise_q8_0(from + b * CLFD_GGML_BLOCK, (clfd_block_q8_0 *)codes + b);
        else
            quantise_q4_0(from + b * CLFD_GGML_BLOCK, (clfd_block_q4_0 *)codes + b);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static clfd_status check_row(clfd_type type, uint32_t dim, uint32_t group_dim, const void *from, const void *to,
                             const float *scales)
{
    if (clfd_type_size(type) == 0)
        return CLFD_ERROR_TYPE;
    if (dim == 0 || dim % clfd_type_elements(type) != 0)
        return CLFD_ERROR_HEAD_DIM;
    if (group_dim != 0 && (dim % group_dim != 0 || (group_dim != dim && !clfd_type_is_grouped(type))))
        return CLFD_ERROR_QUANT;
    return from == NULL || to == NULL || (clfd_type_has_scales(type) && scales == NULL) ? CLFD_ERROR_NULL_ARGUMENT
                                                                                        : CLFD_SUCCESS;
}

clfd_status clfd_quantise_row(clfd_type type, uint32_t dim, uint32_t group_dim, const float *from, void *codes,
                              float *scales, float *zeros)
{
    const clfd_status status = check_row(type, dim, group_dim, from, codes, scales);
    const uint32_t step = group_dim != 0 ? group_dim : dim;

    if (status != CLFD_SUCCESS)
        return status;
    if (clfd_type_is_plain(type))
        return clfd_convert_from_float(type, from, codes, dim);
    if (!clfd_type_has_scales(type)) {
        quantise_blocks(type, dim, from, codes);
        return CLFD_SUCCESS;
    }
    for (uint32_t first = 0; first < dim; first += step) {
        const uint32_t i = first / step;
        const group g = {from + first, first, step, scales + i, zeros != NULL ? zeros + i : NULL};
        if (clfd_type_is_grouped(type))
            quantise_integers(type, &g, codes);
        else
            quantise_fp8(type, &g, codes);
    }
    return CLFD_SUCCESS;
}

clfd_status clfd_dequantise_row(clfd_type type, uint32_t dim, uint32_t group_dim, const void *codes,
                                const float *scales, const float *zeros, float *to)
{
    const clfd_status status = check_row(type, dim, group_dim, codes, to, scales);
    const uint32_t step = group_dim != 0 ? group_dim : dim;

    if (status != CLFD_SUCCESS)
        return status;
    clfd_decode_row(type, dim, codes, to);
    for (uint32_t d = 0; d < dim && clfd_type_has_scales(type); d++) {
        const double zero = zeros != NULL && clfd_type_is_grouped(type) ? (double)zeros[d / step] : 0.0;
        to[d] = (float)(((double)to[d] - zero) * (double)scales[d / step]);
    }
    return CLFD_SUCCESS;
}

/* dequantise.c - from storage units to numbers: plain types, integers, fp8, GGML blocks. */
#include "host/dequantise.h"
#include "host/ggml.h"
#include "type.h"
#include <clfd/cache.h>
#include <fp16.h>
#include <math.h>

static void decode_plain(clfd_type type, uint32_t dim, const void *from, float *to)
{
    (void)clfd_convert_to_float(type, from, to, dim); /* cannot fail: the type is one of its own */
}

static void decode_int8(clfd_type type, uint32_t dim, const void *from, float *to)
{
    const int8_t *codes = from;

    (void)type;
    for (uint32_t d = 0; d < dim; d++)
        to[d] = codes[d];
}

/* The low nibble is the even element; flipping the sign bit and taking 8 off extends it. */
static void decode_int4(clfd_type type, uint32_t dim, const void *from, float *to)
{
    const uint8_t *bytes = from;

    (void)type;
    for (uint32_t d = 0; d < dim; d++)
        to[d] = (float)(((bytes[d / 2] >> (d % 2 * 4) & 15) ^ 8) - 8);
}

/* As the bits of an f16 with three more mantissa bits, its exponent is read with a bias of 15 instead of 7. */
static void decode_e4m3(clfd_type type, uint32_t dim, const void *from, float *to)
{
    const uint8_t *codes = from;

    (void)type;
    for (uint32_t d = 0; d < dim; d++) {
        const uint32_t code = codes[d], magnitude = code & 0x7fu;
        const float value = fp16_ieee_to_fp32_value((uint16_t)((code & 0x80u) << 8 | magnitude << 7)) * 256.0f;
        to[d] = magnitude == 0x7fu ? NAN : value;
    }
}

/* The upper byte of an f16. */
static void decode_e5m2(clfd_type type, uint32_t dim, const void *from, float *to)
{
    const uint8_t *codes = from;

    (void)type;
    for (uint32_t d = 0; d < dim; d++)
        to[d] = fp16_ieee_to_fp32_value((uint16_t)(codes[d] << 8));
}

static void decode_q8_0(clfd_type type, uint32_t dim, const void *from, float *to)
{
    const clfd_block_q8_0 *blocks = from;

    (void)type;
    for (uint32_t d = 0; d < dim; d++) {
        const clfd_block_q8_0 *block = &blocks[d / CLFD_GGML_BLOCK];
        to[d] = (float)block->codes[d % CLFD_GGML_BLOCK] * fp16_ieee_to_fp32_value(block->scale);
    }
}

static void decode_q4_0(clfd_type type, uint32_t dim, const void *from, float *to)
{
    const clfd_block_q4_0 *blocks = from;

    (void)type;
    for (uint32_t d = 0; d < dim; d++) {
        const clfd_block_q4_0 *block = &blocks[d / CLFD_GGML_BLOCK];
        const uint32_t i = d % CLFD_GGML_BLOCK, half = CLFD_GGML_BLOCK / 2;
        const int nibble = i < half ? block->nibbles[i] & 15 : block->nibbles[i - half] >> 4;
        to[d] = (float)(nibble - 8) * fp16_ieee_to_fp32_value(block->scale);
    }
}

void clfd_decode_row(clfd_type type, uint32_t dim, const void *from, float *to)
{
    static void (*const decoders[])(clfd_type, uint32_t, const void *, float *) = {
        [CLFD_TYPE_F32] = decode_plain,     [CLFD_TYPE_F16] = decode_plain,     [CLFD_TYPE_BF16] = decode_plain,
        [CLFD_TYPE_INT8] = decode_int8,     [CLFD_TYPE_INT4] = decode_int4,     [CLFD_TYPE_Q8_0] = decode_q8_0,
        [CLFD_TYPE_FP8_E4M3] = decode_e4m3, [CLFD_TYPE_FP8_E5M2] = decode_e5m2, [CLFD_TYPE_Q4_0] = decode_q4_0};

    decoders[type](type, dim, from, to);
}

/* convert.c - element types on the host: exact conversion from and to float. */
#include "type.h"
#include <fp16.h>
#include <string.h>

static void f32_copy_to_float(const void *from, float *to, size_t count) { memcpy(to, from, count * sizeof *to); }

static void f32_copy_from_float(const float *from, void *to, size_t count) { memcpy(to, from, count * sizeof *from); }

static void f16_to_float(const void *from, float *to, size_t count)
{
    const uint16_t *codes = from;

    for (size_t i = 0; i < count; i++)
        to[i] = fp16_ieee_to_fp32_value(codes[i]);
}

static void f16_from_float(const float *from, void *to, size_t count)
{
    uint16_t *codes = to;

    for (size_t i = 0; i < count; i++)
        codes[i] = fp16_ieee_from_fp32_value(from[i]);
}

/* bf16 is the upper half of a float. */
static void bf16_to_float(const void *from, float *to, size_t count)
{
    const uint16_t *codes = from;

    for (size_t i = 0; i < count; i++)
        to[i] = fp32_from_bits((uint32_t)codes[i] << 16);
}

/* Adding half of what is cut off, less one where the kept part is even, rounds to nearest even; a carry out of the
 * mantissa is the next exponent, and past the greatest one it is infinity. A NaN is cut instead, and made quiet so that
 * one whose payload lies in the lower half does not become infinity. */
static void bf16_from_float(const float *from, void *to, size_t count)
{
    uint16_t *codes = to;

    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = fp32_to_bits(from[i]);
        const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
        const int is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
        codes[i] = (uint16_t)((is_nan ? bits | 0x400000u : rounded) >> 16);
    }
}

static const struct type_row {
    void (*to_float)(const void *from, float *to, size_t count);
    void (*from_float)(const float *from, void *to, size_t count);
} type_rows[] = {
    [CLFD_TYPE_F32] = {f32_copy_to_float, f32_copy_from_float},
    [CLFD_TYPE_F16] = {f16_to_float, f16_from_float},
    [CLFD_TYPE_BF16] = {bf16_to_float, bf16_from_float},
};

/* The row of a plain type, or NULL for any other. */
static const struct type_row *find_type(clfd_type type) { return clfd_type_is_plain(type) ? &type_rows[type] : NULL; }

/* What both directions require of their arguments. */
static clfd_status check_conversion(const struct type_row *row, const void *from, const void *to, size_t count)
{
    if (row == NULL)
        return CLFD_ERROR_TYPE;
    return count > 0 && (from == NULL || to == NULL) ? CLFD_ERROR_NULL_ARGUMENT : CLFD_SUCCESS;
}

clfd_status clfd_convert_to_float(clfd_type type, const void *from, float *to, size_t count)
{
    const struct type_row *row = find_type(type);
    const clfd_status status = check_conversion(row, from, to, count);

    if (status == CLFD_SUCCESS && count > 0)
        row->to_float(from, to, count);
    return status;
}

clfd_status clfd_convert_from_float(clfd_type type, const float *from, void *to, size_t count)
{
    const struct type_row *row = find_type(type);
    const clfd_status status = check_conversion(row, from, to, count);

    if (status == CLFD_SUCCESS && count > 0)
        row->from_float(from, to, count);
    return status;
}

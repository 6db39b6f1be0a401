/* Quantising and dequantising a row: every code of fp8, known bytes of every format, and what no scale can hold. */
#include "support/random.h"
#include "support/suite.h"
#include <clfd/clfd.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static void quantise(clfd_type type, uint32_t dim, uint32_t group, const float *from, void *codes, float *scales,
                     float *zeros)
{
    ck_assert_int_eq(clfd_quantise_row(type, dim, group, from, codes, scales, zeros), CLFD_SUCCESS);
}

static void dequantise(clfd_type type, uint32_t dim, uint32_t group, const void *codes, const float *scales,
                       const float *zeros, float *to)
{
    ck_assert_int_eq(clfd_dequantise_row(type, dim, group, codes, scales, zeros, to), CLFD_SUCCESS);
}

static void fill(float *values, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        values[i] = value;
}

/* Equal in value, NaN equal to NaN. */
static bool same(float a, float b) { return isnan(a) ? isnan(b) : a == b; }

static void expect_values(const float *actual, const float *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        EXPECT(same(actual[i], expected[i]), "element %zu is %.9g instead of %.9g", i, (double)actual[i],
               (double)expected[i]);
}

/* ---- fp8 --------------------------------------------------------------------------------------------------------- */

/* The formats as the OCP specification tabulates them. */
static const struct format {
    clfd_type type;
    int mantissa_bits, bias;
    int last_finite; /* code of the greatest finite value */
    int infinity;    /* its code, or -1 */
} formats[] = {{CLFD_TYPE_FP8_E4M3, 3, 7, 0x7e, -1}, {CLFD_TYPE_FP8_E5M2, 2, 15, 0x7b, 0x7c}};

static float value_of(const struct format *f, int code)
{
    const int magnitude = code & 127, exponent = magnitude >> f->mantissa_bits;
    const double fraction = (magnitude & ((1 << f->mantissa_bits) - 1)) / (double)(1 << f->mantissa_bits);
    const double value = magnitude == f->infinity     ? INFINITY
                         : magnitude > f->last_finite ? NAN
                         : exponent == 0              ? pow(2.0, 1 - f->bias) * fraction
                                                      : pow(2.0, exponent - f->bias) * (1.0 + fraction);

    return (float)(code >= 128 ? -value : value);
}

static void all_codes(uint8_t codes[256])
{
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
}

START_TEST(every_fp8_code_has_the_value_of_its_bits)
{
    const float one = 1.0f, half = 0.5f;
    uint8_t codes[256];
    float values[256], halves[256];

    all_codes(codes);
    for (size_t f = 0; f < COUNT(formats); f++) {
        dequantise(formats[f].type, 256, 0, codes, &one, NULL, values);
        dequantise(formats[f].type, 256, 256, codes, &half, NULL, halves);
        for (int code = 0; code < 256; code++) {
            const float expected = value_of(&formats[f], code);
            EXPECT(same(values[code], expected) && (isnan(expected) || signbit(values[code]) == signbit(expected)),
                   "0x%02x is %g, not %g", code, (double)values[code], (double)expected);
            EXPECT(same(halves[code], expected / 2.0f), "half of 0x%02x is %g", code, (double)halves[code]);
        }
    }
    ck_assert(value_of(&formats[0], 0x7e) == 448.0f && value_of(&formats[1], 0x7b) == 57344.0f);
    ck_assert(value_of(&formats[0], 1) == 0x1p-9f && value_of(&formats[1], 1) == 0x1p-16f);
}
END_TEST

START_TEST(every_fp8_code_comes_back_but_infinities_saturate_and_nans_have_one_code)
{
    uint8_t codes[256], again[256];
    float values[256], one = 1.0f;

    all_codes(codes);
    for (size_t f = 0; f < COUNT(formats); f++) {
        dequantise(formats[f].type, 256, 0, codes, &one, NULL, values);
        quantise(formats[f].type, 256, 0, values, again, &one, NULL);
        for (int code = 0; code < 256; code++) {
            const int magnitude = code & 127, sign = code & 128;
            const int expected = magnitude <= formats[f].last_finite ? code
                                 : magnitude == formats[f].infinity  ? sign | formats[f].last_finite
                                                                     : sign | 0x7f;
            EXPECT(isnan(values[code]) ? (again[code] | 0x80) == 0xff : again[code] == expected,
                   "0x%02x comes back as 0x%02x instead of 0x%02x", code, again[code], expected);
        }
    }
    ck_assert(one == 1.0f);
}
END_TEST

/* The finite code without sign whose value is nearest, the even one of two: by trying them all. */
static int nearest_code(const struct format *f, double magnitude)
{
    int best = 0;

    if (magnitude > (double)value_of(f, f->last_finite))
        return f->last_finite;
    for (int code = 1; code <= f->last_finite; code++) {
        const double distance = fabs(magnitude - (double)value_of(f, code));
        const double least = fabs(magnitude - (double)value_of(f, best));
        if (distance < least || (distance == least && code % 2 == 0))
            best = code;
    }
    return best;
}

static void expect_nearest(const struct format *f, const float *values, uint32_t count)
{
    static uint8_t codes[65536];
    float one = 1.0f;

    quantise(f->type, count, 0, values, codes, &one, NULL);
    for (uint32_t i = 0; i < count; i++) {
        const float value = values[i];
        const int sign = signbit(value) ? 128 : 0;
        const int expected = isnan(value) ? sign | 0x7f : sign | nearest_code(f, fabs((double)value));
        EXPECT(codes[i] == expected, "%a becomes 0x%02x instead of 0x%02x", (double)values[i], codes[i], expected);
    }
}

START_TEST(every_f16_rounds_to_the_nearest_fp8_code)
{
    static uint16_t halves[65536];
    static float values[65536];

    for (uint32_t i = 0; i < 65536; i++)
        halves[i] = (uint16_t)i;
    ck_assert_int_eq(clfd_convert_to_float(CLFD_TYPE_F16, halves, values, 65536), CLFD_SUCCESS);
    for (size_t f = 0; f < COUNT(formats); f++)
        expect_nearest(&formats[f], values, 65536);
}
END_TEST

START_TEST(floats_beside_every_midpoint_of_fp8_codes_round_to_their_own_side)
{
    for (size_t f = 0; f < COUNT(formats); f++)
        for (int code = 0; code < formats[f].last_finite; code++) {
            const float middle = (value_of(&formats[f], code) + value_of(&formats[f], code + 1)) / 2.0f;
            const float values[6] = {middle,  nextafterf(middle, 0.0f),   nextafterf(middle, INFINITY),
                                     -middle, nextafterf(-middle, -1e9f), nextafterf(-middle, 0.0f)};
            expect_nearest(&formats[f], values, 6);
        }
    for (size_t f = 0; f < COUNT(formats); f++) {
        const float extremes[6] = {FLT_MAX, -FLT_MAX, INFINITY, -INFINITY, FLT_MIN, -FLT_TRUE_MIN};
        expect_nearest(&formats[f], extremes, 6);
    }
}
END_TEST

START_TEST(fp8_divides_by_the_scale_that_it_is_given)
{
    static const float values[4] = {3.0f, -1.5f, 0.0f, 448.0f * 4.0f};
    static const uint8_t expected[4] = {0x34, 0xac, 0x00, 0x7e}; /* of .75, -.375, 0 and 448 */
    float scale = 4.0f, back[4];
    uint8_t codes[4];

    quantise(CLFD_TYPE_FP8_E4M3, 4, 0, values, codes, &scale, NULL);
    ck_assert_mem_eq(codes, expected, 4);
    ck_assert(scale == 4.0f);
    dequantise(CLFD_TYPE_FP8_E4M3, 4, 0, codes, &scale, NULL, back);
    expect_values(back, values, 4);
}
END_TEST

/* ---- Integers ---------------------------------------------------------------------------------------------------- */

START_TEST(int8_is_scaled_by_its_greatest_magnitude_in_each_group)
{
    /* Scales 0.5 and 2; ties go to even, and -128 is not used. */
    static const float values[16] = {63.5f, -63.5f, 0.25f, 0.75f, -0.25f, 1.0f,  -1.0f, 0.0f,
                                     3.0f,  -254.f, 254.f, 1.0f,  5.0f,   -3.0f, 100.f, 2.0f};
    static const int8_t expected[16] = {127, -127, 0, 2, 0, 2, -2, 0, 2, -127, 127, 0, 2, -2, 50, 1};
    int8_t codes[16];
    float scales[2];

    quantise(CLFD_TYPE_INT8, 16, 8, values, codes, scales, NULL);
    ck_assert(scales[0] == 0.5f && scales[1] == 2.0f);
    ck_assert_mem_eq(codes, expected, 16);
}
END_TEST

START_TEST(int8_with_zeros_spans_the_range_of_its_values)
{
    static const float values[8] = {-27.5f, 100.0f, 0.0f, 0.5f, -0.5f, 50.0f, 99.5f, -27.0f};
    static const int8_t expected[8] = {-128, 127, -73, -72, -74, 27, 126, -127}; /* 2 x - 73 */
    static const float positive[8] = {127.5f, 1.0f, 0.0f, 2.0f, 3.5f, 4.0f, 5.0f, 6.0f};
    static const int8_t from_zero[8] = {127, -126, -128, -124, -121, -120, -118, -116}; /* 2 x - 128: 0 is in range */
    int8_t codes[8];
    float scale, zero, back[8];

    quantise(CLFD_TYPE_INT8, 8, 0, values, codes, &scale, &zero);
    ck_assert(scale == 0.5f && zero == -73.0f);
    ck_assert_mem_eq(codes, expected, 8);
    dequantise(CLFD_TYPE_INT8, 8, 0, codes, &scale, &zero, back);
    expect_values(back, values, 8);
    quantise(CLFD_TYPE_INT8, 8, 0, positive, codes, &scale, &zero);
    ck_assert(scale == 0.5f && zero == -128.0f);
    ck_assert_mem_eq(codes, from_zero, 8);
}
END_TEST

START_TEST(int4_packs_the_even_element_into_the_low_nibble)
{
    static const float values[8] = {7.0f, -7.0f, 1.0f, -2.0f, 0.0f, 3.0f, -1.0f, 6.0f};
    static const uint8_t expected[4] = {0x97, 0xe1, 0x30, 0x6f};
    static const float spread[8] = {-1.0f, 2.75f, 0.0f, 0.25f, 2.5f, -0.75f, 1.0f, -0.25f}; /* 15 steps of 1/4 */
    static const uint8_t with_zero[4] = {0x78, 0xdc, 0x96, 0xb0};                           /* 4 x - 4 */
    uint8_t codes[4];
    float scale, zero, back[8];

    quantise(CLFD_TYPE_INT4, 8, 0, values, codes, &scale, NULL);
    ck_assert(scale == 1.0f);
    ck_assert_mem_eq(codes, expected, 4);
    dequantise(CLFD_TYPE_INT4, 8, 0, codes, &scale, NULL, back);
    expect_values(back, values, 8);
    quantise(CLFD_TYPE_INT4, 8, 0, spread, codes, &scale, &zero);
    ck_assert(scale == 0.25f && zero == -4.0f);
    ck_assert_mem_eq(codes, with_zero, 4);
    dequantise(CLFD_TYPE_INT4, 8, 0, codes, &scale, &zero, back);
    expect_values(back, spread, 8);
}
END_TEST

/* The greatest error of a row against its own scale, in steps. */
START_TEST(random_rows_come_back_within_half_a_step_of_each_group)
{
    static const struct {
        clfd_type type;
        double steps; /* of the scale: half of one, and the zero is rounded too */
        bool zeros;
    } cases[] = {{CLFD_TYPE_INT8, 0.501, false},
                 {CLFD_TYPE_INT8, 1.001, true},
                 {CLFD_TYPE_INT4, 0.501, false},
                 {CLFD_TYPE_INT4, 1.001, true}};
    random_source source = {17};
    float values[96], back[96], scales[4], zeros[4];
    uint8_t codes[96];

    for (int round = 0; round < 400; round++) {
        const bool with_zeros = cases[round % 4].zeros;
        random_fill_normal(&source, values, 96, 0.01f * (float)(round + 1));
        quantise(cases[round % 4].type, 96, 24, values, codes, scales, with_zeros ? zeros : NULL);
        dequantise(cases[round % 4].type, 96, 24, codes, scales, with_zeros ? zeros : NULL, back);
        for (int d = 0; d < 96; d++)
            EXPECT(fabs((double)back[d] - (double)values[d]) <= cases[round % 4].steps * (double)scales[d / 24],
                   "round %d: %g became %g with scale %g", round, (double)values[d], (double)back[d],
                   (double)scales[d / 24]);
    }
}
END_TEST

START_TEST(every_integer_code_less_its_zero_is_multiplied_by_its_scale)
{
    static const float scales[2] = {0.125f, -3.0f}, zeros[2] = {-5.0f, 2.5f};
    uint8_t codes[256];
    float values[512];

    all_codes(codes);
    dequantise(CLFD_TYPE_INT8, 256, 128, codes, scales, zeros, values);
    for (int i = 0; i < 256; i++)
        EXPECT(values[i] == ((float)(i < 128 ? i : i - 256) - zeros[i / 128]) * scales[i / 128], "int8 0x%02x", i);
    dequantise(CLFD_TYPE_INT4, 512, 256, codes, scales, NULL, values);
    for (int i = 0; i < 512; i++) {
        const int nibble = i % 2 == 0 ? i / 2 % 16 : i / 2 / 16;
        EXPECT(values[i] == (float)(nibble < 8 ? nibble : nibble - 16) * scales[i / 256], "int4 0x%02x", i / 2);
    }
}
END_TEST

/* ---- GGML blocks ------------------------------------------------------------------------------------------------- */

/* A block's bytes: the f16 scale, low byte first, and what follows it. */
static uint16_t block_scale(const uint8_t *block)
{
    uint16_t scale;
    memcpy(&scale, block, sizeof scale);
    return scale;
}

START_TEST(q8_0_is_a_scale_and_32_codes)
{
    _Alignas(2) uint8_t block[68];
    float values[64], back[64];

    for (int d = 0; d < 64; d++)
        values[d] = (float)(d % 32 * 8 - 121) * (d < 32 ? 1.0f : 0.25f);
    values[31] = 127.0f; /* the first scale is 1, the second 1/4 */
    values[63] = -31.75f;
    quantise(CLFD_TYPE_Q8_0, 64, 0, values, block, NULL, NULL);
    ck_assert_uint_eq(block_scale(block), 0x3c00);
    ck_assert_uint_eq(block_scale(block + 34), 0x3400);
    for (int d = 0; d < 31; d++) {
        ck_assert_int_eq((int8_t)block[2 + d], d * 8 - 121);
        ck_assert_int_eq((int8_t)block[36 + d], d * 8 - 121);
    }
    ck_assert_int_eq((int8_t)block[33], 127);
    ck_assert_int_eq((int8_t)block[67], -127);
    dequantise(CLFD_TYPE_Q8_0, 64, 0, block, NULL, NULL, back);
    expect_values(back, values, 64);
}
END_TEST

START_TEST(q4_0_is_a_signed_scale_and_nibbles_of_both_halves)
{
    _Alignas(2) uint8_t block[36];
    float values[64], expected[64], back[64];

    for (int d = 0; d < 64; d++)
        values[d] = expected[d] = (float)(d % 16 - 8) * (d < 32 ? 1.0f : -0.5f);
    for (int d = 16; d < 32; d++)
        values[d] = expected[d] = (float)(7 - d % 16); /* 7 .. -8 */
    values[40] = -4.0f; /* 16 steps of -1/2 from the least code, one more than there are */
    expected[40] = -3.5f;
    values[41] = 3.9f;
    expected[41] = 4.0f;
    values[42] = 0.25f; /* half-way: to the greater code */
    expected[42] = 0.0f;
    values[43] = -0.25f;
    expected[43] = -0.5f;
    quantise(CLFD_TYPE_Q4_0, 64, 0, values, block, NULL, NULL);
    ck_assert_uint_eq(block_scale(block), 0x3c00);
    for (int i = 0; i < 16; i++)
        ck_assert_uint_eq(block[2 + i], i | (15 - i) << 4);
    ck_assert_uint_eq(block_scale(block + 18), 0xb800);
    dequantise(CLFD_TYPE_Q4_0, 64, 0, block, NULL, NULL, back);
    expect_values(back, expected, 64);
}
END_TEST

/* ggml-quants.c, quantize_row_q8_0_ref and quantize_row_q4_0_ref, with the rounding of its vector versions. */
static void ggml_block(clfd_type type, const float *x, uint8_t *block)
{
    float amax = 0.0f, max = 0.0f;
    uint16_t half;

    for (int i = 0; i < 32; i++)
        if (amax < fabsf(x[i])) {
            amax = fabsf(x[i]);
            max = x[i];
        }
    const float d = type == CLFD_TYPE_Q8_0 ? amax / 127.0f : max / -8.0f;
    const float id = type == CLFD_TYPE_Q8_0 ? 127.0f / amax : 1.0f / d;
    clfd_convert_from_float(CLFD_TYPE_F16, &d, &half, 1);
    memcpy(block, &half, 2);
    for (int i = 0; i < 32 && type == CLFD_TYPE_Q8_0; i++)
        block[2 + i] = (uint8_t)(int8_t)lrintf(x[i] * id);
    for (int i = 0; i < 16 && type == CLFD_TYPE_Q4_0; i++) {
        const int low = (int8_t)(x[i] * id + 8.5f), high = (int8_t)(x[i + 16] * id + 8.5f);
        block[2 + i] = (uint8_t)((low > 15 ? 15 : low) | (high > 15 ? 15 : high) << 4);
    }
}

START_TEST(blocks_of_random_rows_are_those_of_ggml_bit_for_bit)
{
    random_source source = {5};
    _Alignas(2) uint8_t blocks[3 * 34], expected[34];
    float values[96];

    for (int round = 0; round < 400; round++) {
        const clfd_type type = round % 2 == 0 ? CLFD_TYPE_Q8_0 : CLFD_TYPE_Q4_0;
        const size_t bytes = clfd_type_size(type);
        random_fill_normal(&source, values, 96, ldexpf(1.0f, round % 24 - 12));
        quantise(type, 96, 0, values, blocks, NULL, NULL);
        for (int b = 0; b < 3; b++) {
            ggml_block(type, values + 32 * b, expected);
            EXPECT(memcmp(blocks + (size_t)b * bytes, expected, bytes) == 0, "round %d, block %d", round, b);
        }
    }
}
END_TEST

START_TEST(every_code_of_a_block_is_multiplied_by_its_scale)
{
    static const uint16_t halves[] = {0x3c00, 0xb555, 0x0001, 0x7bff, 0x0000};
    _Alignas(2) uint8_t block[34], small[18];
    float d, values[32];

    for (size_t s = 0; s < COUNT(halves); s++) {
        clfd_convert_to_float(CLFD_TYPE_F16, &halves[s], &d, 1);
        memcpy(block, &halves[s], 2);
        memcpy(small, &halves[s], 2);
        for (int first = -128; first < 128; first += 32) {
            for (int i = 0; i < 32; i++)
                block[2 + i] = (uint8_t)(first + i);
            dequantise(CLFD_TYPE_Q8_0, 32, 0, block, NULL, NULL, values);
            for (int i = 0; i < 32; i++)
                EXPECT((double)values[i] == (double)d * (first + i), "q8_0 %d", first + i);
        }
        for (int i = 0; i < 16; i++)
            small[2 + i] = (uint8_t)(i * 17 ^ 0xf0);
        dequantise(CLFD_TYPE_Q4_0, 32, 0, small, NULL, NULL, values);
        for (int i = 0; i < 16; i++)
            EXPECT((double)values[i] == (double)d * (i - 8) && (double)values[i + 16] == (double)d * (7 - i), "q4_0 %d",
                   i);
    }
}
END_TEST

/* ---- What no scale can hold -------------------------------------------------------------------------------------- */

static const clfd_type grouped[] = {CLFD_TYPE_INT8, CLFD_TYPE_INT4, CLFD_TYPE_Q8_0, CLFD_TYPE_Q4_0};

START_TEST(a_group_of_zeros_comes_back_as_zeros)
{
    _Alignas(2) uint8_t codes[68], zero_codes[68];
    float values[64], back[64], scales[2], zeros[2];

    for (size_t t = 0; t < COUNT(grouped); t++)
        for (int with_zeros = 0; with_zeros < 2; with_zeros++) {
            const bool integer = t < 2;
            fill(values, 64, 0.0f);
            values[0] = 1.0f; /* the second group alone is zero */
            quantise(grouped[t], 64, integer ? 32 : 0, values, codes, scales, with_zeros ? zeros : NULL);
            dequantise(grouped[t], 64, integer ? 32 : 0, codes, scales, with_zeros ? zeros : NULL, back);
            expect_values(back + 1, values + 1, 63);
            ck_assert(fabsf(back[0] - 1.0f) < 0.001f);
            memset(zero_codes, grouped[t] == CLFD_TYPE_Q4_0 ? 0x88 : 0, sizeof zero_codes);
            const size_t unit = clfd_type_size(grouped[t]);
            if (integer) {
                const size_t half = 32 / clfd_type_elements(grouped[t]);
                ck_assert(scales[1] == 0.0f && (!with_zeros || zeros[1] == 0.0f));
                ck_assert_mem_eq(codes + half, zero_codes, half);
            } else {
                ck_assert_uint_eq(block_scale(codes + unit) & 0x7fff, 0);
                ck_assert_mem_eq(codes + unit + 2, zero_codes, unit - 2);
            }
        }
}
END_TEST

START_TEST(a_group_whose_scale_rounds_to_zero_reads_as_zeros)
{
    _Alignas(2) uint8_t codes[34];
    float values[32], zeros[32] = {0}, back[32], scale, zero;

    for (size_t t = 0; t < COUNT(grouped); t++) {
        fill(values, 32, t < 2 ? FLT_TRUE_MIN : 1e-8f);
        values[1] = -values[0];
        quantise(grouped[t], 32, 0, values, codes, &scale, NULL);
        dequantise(grouped[t], 32, 0, codes, &scale, NULL, back);
        expect_values(back, zeros, 32);
    }
    values[0] = values[1] = FLT_TRUE_MIN;
    fill(values + 2, 30, 0.0f);
    quantise(CLFD_TYPE_INT8, 32, 0, values, codes, &scale, &zero);
    dequantise(CLFD_TYPE_INT8, 32, 0, codes, &scale, &zero, back);
    expect_values(back, zeros, 32);
}
END_TEST

START_TEST(a_group_with_a_nan_or_an_infinity_reads_as_nan_and_spoils_no_other)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    _Alignas(2) uint8_t codes[68], clean[68];
    float values[64], back[64], scales[2], zeros[2];

    for (size_t t = 0; t < COUNT(grouped); t++)
        for (size_t i = 0; i < 2 * COUNT(bad); i++) {
            float *const given_zeros = i < COUNT(bad) ? NULL : zeros;
            const uint32_t group = t < 2 ? 32 : 0;
            fill(values, 64, 3.0f);
            values[63] = -2.0f;
            quantise(grouped[t], 64, group, values, clean, scales, given_zeros);
            values[7] = bad[i % COUNT(bad)];
            quantise(grouped[t], 64, group, values, codes, scales, given_zeros);
            dequantise(grouped[t], 64, group, codes, scales, given_zeros, back);
            for (int d = 0; d < 32; d++)
                EXPECT(isnan(back[d]), "%s: element %d is %g", clfd_type_name(grouped[t]), d, (double)back[d]);
            for (int d = 32; d < 64; d++)
                EXPECT(fabsf(back[d] - values[d]) < 0.3f, "%s: element %d is %g", clfd_type_name(grouped[t]), d,
                       (double)back[d]);
            const size_t half = clfd_type_size(grouped[t]) * (32 / clfd_type_elements(grouped[t]));
            ck_assert_mem_eq(codes + half, clean + half, half);
        }
}
END_TEST

START_TEST(a_block_scale_beyond_f16_is_an_infinity)
{
    _Alignas(2) uint8_t codes[34];
    float values[32];

    fill(values, 32, 1e7f);
    quantise(CLFD_TYPE_Q8_0, 32, 0, values, codes, NULL, NULL);
    ck_assert_uint_eq(block_scale(codes), 0x7c00);
    ck_assert_int_eq((int8_t)codes[2], 127);
    quantise(CLFD_TYPE_Q4_0, 32, 0, values, codes, NULL, NULL);
    ck_assert_uint_eq(block_scale(codes), 0xfc00);
    ck_assert_uint_eq(codes[2], 0x00);
}
END_TEST

START_TEST(the_greatest_floats_do_not_overflow_the_scale_of_a_range)
{
    float values[8] = {FLT_MAX, -FLT_MAX, 0.0f}, back[8], scale, zero;
    int8_t codes[8];

    quantise(CLFD_TYPE_INT8, 8, 0, values, codes, &scale, &zero);
    ck_assert_int_eq(codes[0], 127);
    ck_assert_int_eq(codes[1], -128);
    dequantise(CLFD_TYPE_INT8, 8, 0, codes, &scale, &zero, back);
    ck_assert(isfinite(scale) && fabsf(back[2]) <= scale);
}
END_TEST

/* ---- Plain types, and arguments ---------------------------------------------------------------------------------- */

START_TEST(plain_types_are_converted)
{
    static const float values[4] = {1.0f, -0.5f, 65536.0f, 0x1.004p0f};
    static const float as_f16[4] = {1.0f, -0.5f, INFINITY, 0x1.004p0f}, as_bf16[4] = {1.0f, -0.5f, 65536.0f, 1.0f};
    const struct {
        clfd_type type;
        const float *expected;
    } cases[] = {{CLFD_TYPE_F32, values}, {CLFD_TYPE_F16, as_f16}, {CLFD_TYPE_BF16, as_bf16}};
    float codes[4], back[4];

    for (size_t i = 0; i < COUNT(cases); i++) {
        quantise(cases[i].type, 4, 0, values, codes, NULL, NULL);
        dequantise(cases[i].type, 4, 0, codes, NULL, NULL, back);
        expect_values(back, cases[i].expected, 4);
    }
}
END_TEST

START_TEST(each_broken_rule_has_its_status)
{
    static const struct {
        clfd_type type;
        uint32_t dim, group;
        bool from, to, scales;
        clfd_status status;
    } cases[] = {
        {CLFD_TYPE_DEFAULT, 64, 0, true, true, true, CLFD_ERROR_TYPE},
        {(clfd_type)10, 64, 0, true, true, true, CLFD_ERROR_TYPE},
        {CLFD_TYPE_Q8_0, 48, 0, true, true, false, CLFD_ERROR_HEAD_DIM},
        {CLFD_TYPE_Q4_0, 16, 0, true, true, false, CLFD_ERROR_HEAD_DIM},
        {CLFD_TYPE_INT4, 7, 0, true, true, true, CLFD_ERROR_HEAD_DIM},
        {CLFD_TYPE_F32, 0, 0, true, true, true, CLFD_ERROR_HEAD_DIM},
        {CLFD_TYPE_INT8, 64, 24, true, true, true, CLFD_ERROR_QUANT},
        {CLFD_TYPE_INT8, 64, 128, true, true, true, CLFD_ERROR_QUANT},
        {CLFD_TYPE_FP8_E4M3, 64, 32, true, true, true, CLFD_ERROR_QUANT},
        {CLFD_TYPE_Q8_0, 64, 32, true, true, true, CLFD_ERROR_QUANT},
        {CLFD_TYPE_INT8, 64, 0, false, true, true, CLFD_ERROR_NULL_ARGUMENT},
        {CLFD_TYPE_F16, 64, 0, true, false, true, CLFD_ERROR_NULL_ARGUMENT},
        {CLFD_TYPE_INT4, 64, 0, true, true, false, CLFD_ERROR_NULL_ARGUMENT},
        {CLFD_TYPE_FP8_E5M2, 64, 0, true, true, false, CLFD_ERROR_NULL_ARGUMENT},
    };
    float row[128] = {0}, scales[16] = {0};
    float codes[128] = {0};

    for (size_t i = 0; i < COUNT(cases); i++) {
        float *const given = cases[i].scales ? scales : NULL;
        EXPECT(clfd_quantise_row(cases[i].type, cases[i].dim, cases[i].group, cases[i].from ? row : NULL,
                                 cases[i].to ? codes : NULL, given, NULL) == cases[i].status,
               "quantise %zu", i);
        EXPECT(clfd_dequantise_row(cases[i].type, cases[i].dim, cases[i].group, cases[i].from ? codes : NULL, given,
                                   NULL, cases[i].to ? row : NULL) == cases[i].status,
               "dequantise %zu", i);
    }
    ck_assert_int_eq(clfd_quantise_row(CLFD_TYPE_Q8_0, 64, 64, row, codes, NULL, NULL), CLFD_SUCCESS);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_fp8_code_has_the_value_of_its_bits,
        every_fp8_code_comes_back_but_infinities_saturate_and_nans_have_one_code,
        every_f16_rounds_to_the_nearest_fp8_code,
        floats_beside_every_midpoint_of_fp8_codes_round_to_their_own_side,
        fp8_divides_by_the_scale_that_it_is_given,
        int8_is_scaled_by_its_greatest_magnitude_in_each_group,
        int8_with_zeros_spans_the_range_of_its_values,
        int4_packs_the_even_element_into_the_low_nibble,
        random_rows_come_back_within_half_a_step_of_each_group,
        every_integer_code_less_its_zero_is_multiplied_by_its_scale,
        q8_0_is_a_scale_and_32_codes,
        q4_0_is_a_signed_scale_and_nibbles_of_both_halves,
        blocks_of_random_rows_are_those_of_ggml_bit_for_bit,
        every_code_of_a_block_is_multiplied_by_its_scale,
        a_group_of_zeros_comes_back_as_zeros,
        a_group_whose_scale_rounds_to_zero_reads_as_zeros,
        a_group_with_a_nan_or_an_infinity_reads_as_nan_and_spoils_no_other,
        a_block_scale_beyond_f16_is_an_infinity,
        the_greatest_floats_do_not_overflow_the_scale_of_a_range,
        plain_types_are_converted,
        each_broken_rule_has_its_status,
    };
    return run_suite("quantise", tests, COUNT(tests));
}

/* Conversion between float and the 16-bit types: every code, and every boundary between two codes. */
#include "support/suite.h"
#include <clfd/clfd.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define NUM_CODES 65536u

/* A 16-bit floating-point format: sign, exponent, mantissa. */
static const struct format {
    clfd_type type;
    int mantissa_bits;
    int bias;
    uint16_t infinity; /* the code above all finite ones */
} formats[] = {
    {CLFD_TYPE_F16, 10, 15, 0x7c00},
    {CLFD_TYPE_BF16, 7, 127, 0x7f80},
};
#define NUM_FORMATS (sizeof formats / sizeof formats[0])

static float every_value[NUM_CODES];

/* every_value[code] = what the library makes of each code */
static void convert_every_code(clfd_type type)
{
    static uint16_t codes[NUM_CODES];

    for (uint32_t code = 0; code < NUM_CODES; code++)
        codes[code] = (uint16_t)code;
    ck_assert_int_eq(clfd_convert_to_float(type, codes, every_value, NUM_CODES), CLFD_SUCCESS);
}

static uint16_t from_float(clfd_type type, float value)
{
    uint16_t code = 0xdead;
    ck_assert_int_eq(clfd_convert_from_float(type, &value, &code, 1), CLFD_SUCCESS);
    return code;
}

/* What a finite code without its sign is worth, by the definition of the format. */
static double decode(const struct format *format, uint16_t code)
{
    const int exponent = code >> format->mantissa_bits;
    const int mantissa = code & ((1 << format->mantissa_bits) - 1);
    const int leading = exponent > 0 ? 1 << format->mantissa_bits : 0;

    return ldexp(leading + mantissa, (exponent > 0 ? exponent : 1) - format->bias - format->mantissa_bits);
}

static float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

START_TEST(every_code_has_the_value_of_its_bits)
{
    for (size_t f = 0; f < NUM_FORMATS; f++) {
        convert_every_code(formats[f].type);
        for (uint32_t code = 0; code < NUM_CODES; code++) {
            const uint16_t magnitude = code & 0x7fff;
            const double value = (double)every_value[code];
            if (magnitude > formats[f].infinity) {
                EXPECT(isnan(value), "code 0x%04x gives %g", code, value);
                continue;
            }
            const double expected =
                magnitude == formats[f].infinity ? (double)INFINITY : decode(&formats[f], magnitude);
            EXPECT(fabs(value) == expected && !signbit(value) == (code < 0x8000), "code 0x%04x gives %g", code, value);
        }
    }
}
END_TEST

START_TEST(every_code_survives_a_round_trip_through_float)
{
    static uint16_t back[NUM_CODES];

    for (size_t f = 0; f < NUM_FORMATS; f++) {
        convert_every_code(formats[f].type);
        ck_assert_int_eq(clfd_convert_from_float(formats[f].type, every_value, back, NUM_CODES), CLFD_SUCCESS);
        for (uint32_t code = 0; code < NUM_CODES; code++)
            if ((code & 0x7fff) > formats[f].infinity)
                EXPECT((back[code] & 0x7fff) > formats[f].infinity, "NaN 0x%04x became 0x%04x", code, back[code]);
            else
                EXPECT(back[code] == code, "0x%04x became 0x%04x", code, back[code]);
    }
}
END_TEST

/* Between neighbours low and high = low + 1 the middle goes to the even one, a hair less to low, a hair more to high.
 * Infinity is the upper neighbour of the greatest finite code: decode() gives the power of two that would follow. */
START_TEST(floats_round_to_the_nearest_code_and_ties_to_the_even_one)
{
    for (size_t f = 0; f < NUM_FORMATS; f++)
        for (uint16_t low = 0; low < formats[f].infinity; low++) {
            const uint16_t high = (uint16_t)(low + 1), even = low % 2 == 0 ? low : high;
            const float middle = (float)((decode(&formats[f], low) + decode(&formats[f], high)) / 2);
            const float below = nextafterf(middle, 0.0f), above = nextafterf(middle, INFINITY);
            const float values[6] = {below, middle, above, -below, -middle, -above};
            const uint16_t expected[6] = {low, even, high, low | 0x8000, even | 0x8000, high | 0x8000};
            uint16_t codes[6];
            clfd_convert_from_float(formats[f].type, values, codes, 6);
            for (int i = 0; i < 6; i++)
                EXPECT(codes[i] == expected[i], "%.9g became 0x%04x instead of 0x%04x", (double)values[i], codes[i],
                       expected[i]);
        }
}
END_TEST

START_TEST(floats_beyond_the_range_become_infinity)
{
    static const float too_large[] = {65520.0f, 65536.0f, 1e30f, 0x1.fffffep127f, INFINITY};

    for (size_t i = 0; i < sizeof too_large / sizeof too_large[0]; i++) {
        ck_assert_uint_eq(from_float(CLFD_TYPE_F16, too_large[i]), 0x7c00);
        ck_assert_uint_eq(from_float(CLFD_TYPE_F16, -too_large[i]), 0xfc00);
    }
    ck_assert_uint_eq(from_float(CLFD_TYPE_F16, 65519.996f), 0x7bff);
    ck_assert_uint_eq(from_float(CLFD_TYPE_BF16, 0x1.fffffep127f), 0x7f80);
    ck_assert_uint_eq(from_float(CLFD_TYPE_BF16, -INFINITY), 0xff80);
}
END_TEST

START_TEST(every_kind_of_nan_stays_nan)
{
    static const uint32_t nans[] = {0x7f800001, 0x7f80ffff, 0x7fbfffff, 0x7fc00000,
                                    0x7fffffff, 0xff800001, 0xffc00000, 0xffffffff};

    for (size_t i = 0; i < sizeof nans / sizeof nans[0]; i++)
        for (size_t f = 0; f < NUM_FORMATS; f++) {
            const uint16_t code = from_float(formats[f].type, float_from_bits(nans[i]));
            ck_assert_msg((code & 0x7fff) > formats[f].infinity, "0x%08x became 0x%04x", nans[i], code);
            ck_assert_uint_eq(code >> 15, nans[i] >> 31);
        }
}
END_TEST

START_TEST(bf16_rounds_to_nearest_where_others_truncate)
{
    const uint16_t code = from_float(CLFD_TYPE_BF16, 0.2691408770292272f);
    float value;

    ck_assert_int_eq(clfd_convert_to_float(CLFD_TYPE_BF16, &code, &value, 1), CLFD_SUCCESS);
    ck_assert(value == 0.26953125f);
}
END_TEST

START_TEST(f32_is_copied_bit_for_bit)
{
    static const uint32_t bits[7] = {0, 0x80000000, 1, 0x7f800000, 0x7fc12345, 0x7f800001, 0x3f800000};
    uint32_t there[7], back[7];

    ck_assert_int_eq(clfd_convert_to_float(CLFD_TYPE_F32, bits, (float *)there, 7), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_convert_from_float(CLFD_TYPE_F32, (const float *)there, back, 7), CLFD_SUCCESS);
    ck_assert_mem_eq(there, bits, sizeof bits);
    ck_assert_mem_eq(back, bits, sizeof bits);
}
END_TEST

START_TEST(arrays_of_every_length_are_converted_and_nothing_beyond)
{
    for (size_t f = 0; f < NUM_FORMATS; f++)
        for (size_t count = 0; count <= 67; count++) {
            uint16_t codes[68], back[68];
            float values[68];
            for (size_t i = 0; i < 68; i++) {
                codes[i] = (uint16_t)(i * 977 % formats[f].infinity);
                values[i] = -7.0f;
                back[i] = 0xabcd;
            }
            ck_assert_int_eq(clfd_convert_to_float(formats[f].type, codes, values, count), CLFD_SUCCESS);
            ck_assert_int_eq(clfd_convert_from_float(formats[f].type, values, back, count), CLFD_SUCCESS);
            ck_assert_mem_eq(back, codes, count * sizeof codes[0]);
            ck_assert(values[count] == -7.0f);
            ck_assert_uint_eq(back[count], 0xabcd);
        }
}
END_TEST

START_TEST(unknown_types_and_null_pointers_are_refused)
{
    static const int unknown[] = {-1, CLFD_TYPE_DEFAULT, 4, 1000000};
    float value = 3.0f, kept = 3.0f;

    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        const clfd_type type = (clfd_type)unknown[i];
        ck_assert_int_eq(clfd_convert_to_float(type, &value, &kept, 1), CLFD_ERROR_TYPE);
        ck_assert_int_eq(clfd_convert_from_float(type, &value, &kept, 1), CLFD_ERROR_TYPE);
    }
    ck_assert_int_eq(clfd_convert_to_float(CLFD_TYPE_F32, NULL, &kept, 1), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_convert_from_float(CLFD_TYPE_F16, &value, NULL, 1), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_convert_to_float(CLFD_TYPE_F16, NULL, NULL, 0), CLFD_SUCCESS);
    ck_assert(kept == 3.0f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_code_has_the_value_of_its_bits,
        every_code_survives_a_round_trip_through_float,
        floats_round_to_the_nearest_code_and_ties_to_the_even_one,
        floats_beyond_the_range_become_infinity,
        every_kind_of_nan_stays_nan,
        bf16_rounds_to_nearest_where_others_truncate,
        f32_is_copied_bit_for_bit,
        arrays_of_every_length_are_converted_and_nothing_beyond,
        unknown_types_and_null_pointers_are_refused,
    };
    return run_suite("convert", tests, sizeof tests / sizeof tests[0]);
}

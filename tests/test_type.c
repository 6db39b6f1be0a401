/* Names and sizes of the element types on the host. */
#include "support/suite.h"
#include "type.h"
#include <clfd/clfd.h>

START_TEST(types_have_a_name_and_a_size)
{
    static const struct {
        clfd_type type;
        const char *name;
        size_t bytes;
        uint32_t elements;
    } rows[] = {
        {CLFD_TYPE_F32, "f32", 4, 1},     {CLFD_TYPE_F16, "f16", 2, 1},
        {CLFD_TYPE_BF16, "bf16", 2, 1},   {CLFD_TYPE_INT8, "int8", 1, 1},
        {CLFD_TYPE_INT4, "int4", 1, 2},   {CLFD_TYPE_FP8_E4M3, "fp8_e4m3", 1, 1},
        {CLFD_TYPE_Q8_0, "q8_0", 34, 32}, {CLFD_TYPE_FP8_E5M2, "fp8_e5m2", 1, 1},
        {CLFD_TYPE_Q4_0, "q4_0", 18, 32},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_str_eq(clfd_type_name(rows[i].type), rows[i].name);
        ck_assert_uint_eq(clfd_type_size(rows[i].type), rows[i].bytes);
        ck_assert_uint_eq(clfd_type_elements(rows[i].type), rows[i].elements);
    }
}
END_TEST

START_TEST(what_is_no_type_has_neither)
{
    static const int unknown[] = {-1, CLFD_TYPE_DEFAULT, CLFD_TYPE_Q4_0 + 1, 1000000};

    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        ck_assert_ptr_null(clfd_type_name((clfd_type)unknown[i]));
        ck_assert_uint_eq(clfd_type_size((clfd_type)unknown[i]), 0);
        ck_assert_uint_eq(clfd_type_elements((clfd_type)unknown[i]), 0);
    }
}
END_TEST

START_TEST(rows_are_whole_units_at_multiples_of_their_alignment)
{
    static const struct {
        clfd_type type;
        uint32_t units, alignment; /* of a row of 64 */
    } rows[] = {
        {CLFD_TYPE_F32, 64, 4},      {CLFD_TYPE_F16, 64, 2},  {CLFD_TYPE_BF16, 64, 2},
        {CLFD_TYPE_INT8, 64, 1},     {CLFD_TYPE_INT4, 32, 1}, {CLFD_TYPE_FP8_E4M3, 64, 1},
        {CLFD_TYPE_FP8_E5M2, 64, 1}, {CLFD_TYPE_Q8_0, 2, 2},  {CLFD_TYPE_Q4_0, 2, 2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_uint_eq(clfd_row_units(rows[i].type, 64), rows[i].units);
        ck_assert_uint_eq(clfd_type_alignment(rows[i].type), rows[i].alignment);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {types_have_a_name_and_a_size, what_is_no_type_has_neither,
                                  rows_are_whole_units_at_multiples_of_their_alignment};

    return run_suite("type", tests, sizeof tests / sizeof tests[0]);
}

/* Names and sizes of the element types on the host. */
#include "support/suite.h"
#include <clfd/clfd.h>

START_TEST(types_have_a_name_and_a_size)
{
    ck_assert_str_eq(clfd_type_name(CLFD_TYPE_F32), "f32");
    ck_assert_str_eq(clfd_type_name(CLFD_TYPE_F16), "f16");
    ck_assert_str_eq(clfd_type_name(CLFD_TYPE_BF16), "bf16");
    ck_assert_uint_eq(clfd_type_size(CLFD_TYPE_F32), 4);
    ck_assert_uint_eq(clfd_type_size(CLFD_TYPE_F16), 2);
    ck_assert_uint_eq(clfd_type_size(CLFD_TYPE_BF16), 2);
}
END_TEST

START_TEST(what_is_no_type_has_neither)
{
    static const int unknown[] = {-1, CLFD_TYPE_DEFAULT, 4, 1000000};

    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        ck_assert_ptr_null(clfd_type_name((clfd_type)unknown[i]));
        ck_assert_uint_eq(clfd_type_size((clfd_type)unknown[i]), 0);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {types_have_a_name_and_a_size, what_is_no_type_has_neither};

    return run_suite("type", tests, sizeof tests / sizeof tests[0]);
}

#include "support/suite.h"
#include "type_names.h"
#include <string.h>

START_TEST(every_type_is_found_by_its_name)
{
    for (clfd_type type = CLFD_TYPE_F32; type <= CLFD_TYPE_Q4_0; type++) {
        const char *name = clfd_type_name(type);
        ck_assert_int_eq(type_find(name, strlen(name)), type);
        ck_assert_msg(strstr(TYPE_NAMES, name) != NULL, "the sentence lacks %s", name);
    }
}
END_TEST

START_TEST(short_names_of_fp8_are_found)
{
    ck_assert_int_eq(type_find("fp8", 3), CLFD_TYPE_FP8_E4M3);
    ck_assert_int_eq(type_find("e4m3", 4), CLFD_TYPE_FP8_E4M3);
    ck_assert_int_eq(type_find("e5m2", 4), CLFD_TYPE_FP8_E5M2);
}
END_TEST

START_TEST(only_so_many_characters_count)
{
    ck_assert_int_eq(type_find("f16,int8", 3), CLFD_TYPE_F16);
    ck_assert_int_eq(type_find("f16,int8", 8), CLFD_TYPE_DEFAULT);
    ck_assert_int_eq(type_find("f1", 2), CLFD_TYPE_DEFAULT);
    ck_assert_int_eq(type_find("", 0), CLFD_TYPE_DEFAULT);
    ck_assert_int_eq(type_find("F16", 3), CLFD_TYPE_DEFAULT);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_type_is_found_by_its_name,
        short_names_of_fp8_are_found,
        only_so_many_characters_count,
    };
    return run_suite("type_names", tests, sizeof tests / sizeof tests[0]);
}

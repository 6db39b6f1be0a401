#include "device/text.h"
#include "support/suite.h"
#include <string.h>

static clfd_slice slice(const char *text) { return clfd_slice_of(text); }

static bool equals(clfd_slice piece, const char *text)
{
    return piece.length == strlen(text) && memcmp(piece.text, text, piece.length) == 0;
}

START_TEST(slice_loses_the_blanks_at_its_ends_only)
{
    ck_assert(equals(slice("  a b\t\r\n"), "a b"));
    ck_assert(equals(slice("x"), "x"));
    ck_assert(equals(slice(" \t "), ""));
    ck_assert(equals(slice(""), ""));
}
END_TEST

START_TEST(list_is_cut_into_trimmed_items_and_empty_ones_are_kept)
{
    clfd_slice rest = slice("one , two,,"), item;

    ck_assert(clfd_slice_cut(&rest, ',', &item) && equals(item, "one"));
    ck_assert(clfd_slice_cut(&rest, ',', &item) && equals(item, "two"));
    ck_assert(clfd_slice_cut(&rest, ',', &item) && equals(item, ""));
    ck_assert(!clfd_slice_cut(&rest, ',', &item) && equals(item, ""));
}
END_TEST

START_TEST(slice_is_compares_whole_words_in_any_case)
{
    ck_assert(clfd_slice_is(slice("GPU"), "gpu"));
    ck_assert(!clfd_slice_is(slice("gpus"), "gpu"));
    ck_assert(!clfd_slice_is(slice("gp"), "gpu"));
    /* '[' and '{' differ by the bit that letters differ by. */
    ck_assert(!clfd_slice_is(slice("["), "{"));
}
END_TEST

START_TEST(prefix_is_taken_off_with_the_blanks_after_it)
{
    clfd_slice rest;

    ck_assert(clfd_slice_after(slice("name= H200"), "name=", &rest) && equals(rest, "H200"));
    ck_assert(clfd_slice_after(slice("name="), "name=", &rest) && equals(rest, ""));
    ck_assert(!clfd_slice_after(slice("nam"), "name=", &rest));
    ck_assert(!clfd_slice_after(slice("NAME=x"), "name=", &rest));
}
END_TEST

START_TEST(numbers_are_digits_only_and_fit_in_64_bits)
{
    static const char *const refused[] = {
        "", "-1", "+1", "1 2", "0x10", "1.5", "x", "18446744073709551616", "99999999999999999999"};
    uint64_t value = 7;

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        ck_assert_msg(!clfd_slice_number(slice(refused[i]), &value), "'%s' was taken as a number", refused[i]);
    ck_assert_uint_eq(value, 7);
    ck_assert(clfd_slice_number(slice("0"), &value) && value == 0);
    ck_assert(clfd_slice_number(slice("007"), &value) && value == 7);
    ck_assert(clfd_slice_number(slice("18446744073709551615"), &value) && value == UINT64_MAX);
}
END_TEST

START_TEST(fragment_is_found_at_both_ends_in_any_case)
{
    ck_assert(clfd_text_contains("NVIDIA H200", slice("nvidia")));
    ck_assert(clfd_text_contains("NVIDIA H200", slice("h200")));
    ck_assert(clfd_text_contains("NVIDIA H200", slice("")));
    ck_assert(clfd_text_contains("", slice("")));
    ck_assert(!clfd_text_contains("NVIDIA H200", slice("H2000")));
    ck_assert(!clfd_text_contains("", slice("h")));
}
END_TEST

START_TEST(only_whole_words_of_a_list_count)
{
    const char *list = "cl_khr_subgroup_shuffle_relative cl_khr_fp16_x cl_khr_subgroups";

    ck_assert(clfd_text_has_word(list, "cl_khr_subgroups"));
    ck_assert(clfd_text_has_word(list, "cl_khr_subgroup_shuffle_relative"));
    ck_assert(!clfd_text_has_word(list, "cl_khr_subgroup_shuffle"));
    ck_assert(!clfd_text_has_word(list, "cl_khr_fp16"));
    ck_assert(!clfd_text_has_word(list, "khr_subgroups"));
    ck_assert(clfd_text_has_word("cl_khr_fp16_x cl_khr_fp16", "cl_khr_fp16"));
    ck_assert(!clfd_text_has_word("", "cl_khr_fp16"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        slice_loses_the_blanks_at_its_ends_only,    list_is_cut_into_trimmed_items_and_empty_ones_are_kept,
        slice_is_compares_whole_words_in_any_case,  prefix_is_taken_off_with_the_blanks_after_it,
        numbers_are_digits_only_and_fit_in_64_bits, fragment_is_found_at_both_ends_in_any_case,
        only_whole_words_of_a_list_count,
    };
    return run_suite("text", tests, sizeof tests / sizeof tests[0]);
}

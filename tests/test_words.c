/* The words of a tuning row: printing, wishes, replacing. No device. What a whole override does is in test_tuning.c. */
#include "plan/words.h"
#include "support/log.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

static const clfd_tuning lanes_row = {.family = CLFD_FAMILY_LANES,
                                      .work_group = 128,
                                      .rows = 8,
                                      .lanes = 16,
                                      .unroll = 2,
                                      .parts = 1,
                                      .exchange = CLFD_EXCHANGE_PTX,
                                      .groups_per_unit = 4,
                                      .min_split = 256,
                                      .split_tile = 64};

static test_log heard;

START_TEST(printed_words_applied_to_another_row_give_the_row)
{
    clfd_tuning other = lanes_row;
    char text[256];

    other.work_group = 32;
    other.lanes = 8;
    other.unroll = 8;
    other.split_tile = 1;
    ck_assert_int_lt(clfd_tuning_print(&lanes_row, text, sizeof text), (int)sizeof text);
    ck_assert_int_eq(clfd_words_apply(text, &other, NULL), CLFD_SUCCESS);
    ck_assert_mem_eq(&other, &lanes_row, sizeof other);
}
END_TEST

START_TEST(a_wish_is_said_or_implied_by_a_key_of_one_family)
{
    static const struct {
        const char *text;
        int64_t family, exchange;
    } cases[] = {
        {"", -1, -1},
        {"wg=64 rows=4", -1, -1},
        {"family=decode_lanes", CLFD_FAMILY_LANES, -1},
        {"wg=64 exchange=local", -1, CLFD_EXCHANGE_LOCAL},
        {"unroll=4", CLFD_FAMILY_LANES, -1},
        {"tile=1", CLFD_FAMILY_VECTOR, -1},
        {"exchange=ptx lanes=8", CLFD_FAMILY_LANES, CLFD_EXCHANGE_PTX},
        {"parts=2", -1, -1},
        {"exchange=ptx slots=4", CLFD_FAMILY_MATRIX, CLFD_EXCHANGE_PTX},
    };
    clfd_wish wish;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(clfd_words_read_wish(cases[i].text, &wish, NULL), CLFD_SUCCESS);
        EXPECT(wish.family == cases[i].family && wish.exchange == cases[i].exchange, "\"%s\" wishes %d and %d",
               cases[i].text, (int)wish.family, (int)wish.exchange);
    }
}
END_TEST

START_TEST(a_word_that_is_none_is_refused_by_name)
{
    static const struct {
        const char *text, *named;
    } cases[] = {
        {"wg", "\"wg\""},      {"wg=3", "wg=3"},           {"wg=0", "wg=0"}, {"wg=-1", "wg=-1"},     {"wg=64x", "64x"},
        {"tile=8", "no tile"}, {"unroll=16", "unroll=16"}, {"=4", "\"=4\""}, {"speed=9", "speed=9"},
    };
    const clfd_logger logger = test_logger(&heard);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clfd_tuning row = lanes_row;
        ck_assert_int_eq(clfd_words_apply(cases[i].text, &row, &logger), CLFD_ERROR_TUNING);
        EXPECT(strstr(heard.last[CLFD_LOG_ERROR], cases[i].named) != NULL, "\"%s\": %s", cases[i].text,
               heard.last[CLFD_LOG_ERROR]);
    }
}
END_TEST

START_TEST(a_family_or_an_exchange_that_there_is_not_is_refused)
{
    clfd_wish wish;

    ck_assert_int_eq(clfd_words_read_wish("family=decode_magic", &wish, NULL), CLFD_ERROR_TUNING);
    ck_assert_int_eq(clfd_words_read_wish("exchange=pigeon", &wish, NULL), CLFD_ERROR_TUNING);
}
END_TEST

START_TEST(the_fields_of_a_row_are_those_that_it_prints)
{
    char text[256], word[64];
    clfd_field field;
    size_t count = 0, used = 0;

    clfd_tuning_print(&lanes_row, text, sizeof text);
    for (; clfd_words_field(&lanes_row, count, &field); count++) {
        snprintf(word, sizeof word, "%s=%u ", field.name, field.value);
        EXPECT(strncmp(text + used, word, strlen(word)) == 0, "\"%s\" lacks \"%s\" at %zu", text, word, used);
        EXPECT(field.min <= field.value && field.value <= field.max, "%s is no possible value", word);
        used += strlen(word);
    }
    ck_assert_str_eq(text + used, "exchange=ptx");
    ck_assert_uint_gt(count, 5);
    ck_assert(!clfd_words_field(&lanes_row, count + 1, &field));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_fields_of_a_row_are_those_that_it_prints,         printed_words_applied_to_another_row_give_the_row,
        a_wish_is_said_or_implied_by_a_key_of_one_family,     a_word_that_is_none_is_refused_by_name,
        a_family_or_an_exchange_that_there_is_not_is_refused,
    };

    return run_suite("words", tests, sizeof tests / sizeof tests[0]);
}

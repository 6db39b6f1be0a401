#include "problem_list.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

static tool_fault fault;
static problem_list list;

static void tear_down(void)
{
    free(list.problems);
    list = (problem_list){NULL, 0};
}

static bool parse(char **words, size_t count)
{
    const option_words given = {words, count};

    tear_down();
    fault_clear(&fault);
    return problem_list_parse(&given, &list, &fault);
}

START_TEST(words_and_quoted_problems_may_be_mixed)
{
    char *words[] = {"b2", "hq4", "d64", "kv9", "b3 hq2 d8 kv7", "hq1", "d16", "kv5", "b1", "hq1", "d24", "kv6"};
    static const uint32_t expected[][2] = {{2, 64}, {3, 8}, {1, 16}, {1, 24}};
    char text[PROBLEM_BYTES];

    ck_assert_msg(parse(words, sizeof words / sizeof words[0]), "%s", fault.sentence);
    ck_assert_uint_eq(list.count, 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_msg(list.problems[i].batch == expected[i][0] && list.problems[i].head_dim == expected[i][1],
                      "problem %zu is %s", i, problem_print(&list.problems[i], text));
}
END_TEST

START_TEST(no_words_are_no_problem)
{
    ck_assert(parse(NULL, 0));
    ck_assert_uint_eq(list.count, 0);
}
END_TEST

START_TEST(what_is_no_problem_is_refused)
{
    char *lacking[] = {"b2", "hq4", "d64", "b1", "hq1", "d8", "kv9"};
    static char long_word[1100];
    char *too_long[] = {long_word, "hq1"};

    ck_assert(!parse(lacking, 7));
    ck_assert_ptr_nonnull(strstr(fault.sentence, "lacks kv"));
    memset(long_word, 'x', sizeof long_word - 1);
    ck_assert(!parse(too_long, 2));
    ck_assert_int_eq(fault.exit_code, EXIT_CODE_USAGE);
    ck_assert_ptr_nonnull(strstr(fault.sentence, "longer than 1023 characters"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        words_and_quoted_problems_may_be_mixed,
        no_words_are_no_problem,
        what_is_no_problem_is_refused,
    };
    return run_suite_around("problem_list", tests, sizeof tests / sizeof tests[0], NULL, tear_down);
}

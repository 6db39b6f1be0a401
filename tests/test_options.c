#include "options.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

struct values {
    bool flag;
    const char *text;
    uint64_t count, open;
    double number;
    unsigned choice;
};

#define FIELD(name) offsetof(struct values, name)

static const option_row rows[] = {
    {"--flag", OPTION_FLAG, NULL, "a flag", FIELD(flag), 0, 0},
    {"--text", OPTION_TEXT, "FILE", "a text", FIELD(text), 0, 0},
    {"--count", OPTION_COUNT, "N", "2 to 10", FIELD(count), 2, 10},
    {"--open", OPTION_COUNT, "N", "any", FIELD(open), 0, 0},
    {"--number", OPTION_NUMBER, "X", "a number", FIELD(number), 0, 0},
    {"--choice", OPTION_CHOICE, "f32|f16|bf16", "a type", FIELD(choice), 0, 0},
    {0},
};

static const option_set no_words = {"usage", "description", rows, false};
static const option_set with_words = {"usage", "description", rows, true};

#define MAX_ARGUMENTS 16

/* Parses a line of words separated by blanks. */
static bool parse(const option_set *set, const char *line, struct values *values, option_words *words,
                  tool_fault *fault)
{
    static char copy[256];
    char *arguments[MAX_ARGUMENTS];
    int count = 0;
    bool help;

    memset(values, 0, sizeof *values);
    memset(fault, 0, sizeof *fault);
    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        arguments[count++] = word;
    return options_parse(set, count, arguments, values, words, &help, fault);
}

START_TEST(values_follow_as_words_or_after_an_equals_sign)
{
    static const char *const lines[] = {
        "--flag --text a --count 7 --open 18446744073709551615 --number -0.5",
        "--number=-0.5 --open=18446744073709551615 --count=7 --text=a --flag",
    };
    struct values values;
    tool_fault fault;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        ck_assert_msg(parse(&no_words, lines[i], &values, NULL, &fault), "%s", fault.sentence);
        ck_assert(values.flag);
        ck_assert_str_eq(values.text, "a");
        ck_assert_uint_eq(values.count, 7);
        ck_assert_uint_eq(values.open, UINT64_MAX);
        ck_assert_double_eq(values.number, -0.5);
    }
}
END_TEST

START_TEST(text_may_hold_equals_signs_and_be_a_dash)
{
    struct values values;
    tool_fault fault;

    ck_assert(parse(&no_words, "--text=type=gpu,mem>=16G", &values, NULL, &fault));
    ck_assert_str_eq(values.text, "type=gpu,mem>=16G");
    ck_assert(parse(&no_words, "--text -", &values, NULL, &fault));
    ck_assert_str_eq(values.text, "-");
}
END_TEST

START_TEST(choice_counts_its_words_from_one)
{
    struct values values;
    tool_fault fault;

    ck_assert(parse(&no_words, "--choice bf16", &values, NULL, &fault));
    ck_assert_uint_eq(values.choice, 3);
    ck_assert(parse(&no_words, "--choice f32", &values, NULL, &fault));
    ck_assert_uint_eq(values.choice, 1);
    ck_assert(parse(&no_words, "--flag", &values, NULL, &fault));
    ck_assert_uint_eq(values.choice, 0);
}
END_TEST

START_TEST(malformed_arguments_are_refused_by_name)
{
    static const struct {
        const char *line, *fragment;
    } cases[] = {
        {"--nothing", "there is no option --nothing"},
        {"--nothing=1", "there is no option --nothing;"},
        {"--tex a", "there is no option --tex;"},
        {"--textual a", "there is no option --textual;"},
        {"-f", "there is no option -f"},
        {"--text", "--text needs a value: FILE"},
        {"--text --flag", "--text needs a value: FILE"},
        {"--flag=1", "--flag takes no value, but '1' is given"},
        {"--flag --flag", "--flag is given twice"},
        {"--text a --text a", "--text is given twice"},
        {"--count 1", "--count is 1; it must be 2 to 10"},
        {"--count 11", "--count is 11; it must be 2 to 10"},
        {"--count -3", "--count is '-3'; it must be a whole number"},
        {"--count +3", "it must be a whole number"},
        {"--count 3x", "it must be a whole number"},
        {"--count=", "it must be a whole number"},
        {"--open 18446744073709551616", "--open is 18446744073709551616; it must be at most"},
        {"--number 1e", "--number is '1e'; it must be a finite number"},
        {"--number nan", "it must be a finite number"},
        {"--number inf", "it must be a finite number"},
        {"--number 1e999", "it must be a finite number"},
        {"--choice f64", "--choice is 'f64'; it must be one of f32|f16|bf16"},
        {"--choice f", "it must be one of f32|f16|bf16"},
        {"--choice f32|f16", "it must be one of f32|f16|bf16"},
        {"--choice=", "it must be one of f32|f16|bf16"},
        {"word", "'word' is no option"},
        {"-- --flag", "'--flag' is no option"},
    };
    struct values values;
    tool_fault fault;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(!parse(&no_words, cases[i].line, &values, NULL, &fault), "accepted: %s", cases[i].line);
        ck_assert_int_eq(fault.exit_code, EXIT_CODE_USAGE);
        ck_assert_msg(strstr(fault.sentence, cases[i].fragment) != NULL, "%s: '%s' does not hold '%s'", cases[i].line,
                      fault.sentence, cases[i].fragment);
    }
}
END_TEST

START_TEST(words_are_collected_in_order)
{
    struct values values;
    option_words words = {NULL, 0};
    tool_fault fault;

    ck_assert(parse(&with_words, "one --count 3 two -- --flag", &values, &words, &fault));
    ck_assert_uint_eq(words.count, 3);
    ck_assert_str_eq(words.words[0], "one");
    ck_assert_str_eq(words.words[1], "two");
    ck_assert_str_eq(words.words[2], "--flag");
    ck_assert(!values.flag);
    free(words.words);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        values_follow_as_words_or_after_an_equals_sign,
        text_may_hold_equals_signs_and_be_a_dash,
        choice_counts_its_words_from_one,
        malformed_arguments_are_refused_by_name,
        words_are_collected_in_order,
    };
    return run_suite("options", tests, sizeof tests / sizeof tests[0]);
}

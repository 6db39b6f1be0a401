#include "problem.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

static bench_problem parse(const char *text)
{
    bench_problem problem;
    tool_fault fault = {EXIT_CODE_OK, ""};

    ck_assert_msg(problem_parse(text, &problem, &fault), "%s: %s", text, fault.sentence);
    return problem;
}

START_TEST(defaults_fill_what_is_not_given)
{
    const bench_problem problem = parse("hq32 d128 kv8192");

    ck_assert_uint_eq(problem.batch, 1);
    ck_assert_uint_eq(problem.q_len, 1);
    ck_assert_uint_eq(problem.num_kv_heads, 32);
    ck_assert_uint_eq(problem.head_dim_v, 128);
    ck_assert_int_eq(problem.type, CLFD_TYPE_F32);
    ck_assert_int_eq(problem.kv_type, CLFD_TYPE_F32);
    ck_assert_int_eq(problem.out_type, CLFD_TYPE_F32);
    ck_assert_int_eq(problem.partial, CLFD_PARTIAL_LSE);
    ck_assert_uint_eq(problem.ragged, 0);
}
END_TEST

START_TEST(every_word_reaches_its_field)
{
    const bench_problem problem =
        parse("ragged=3..77 tokens=64 partial=mlo v_from_k causal out=f32 kvtype=bf16 f16 kv78 "
              "dv72 d80 hkv2 hq6 q5 b16");
    const clfd_attention attention = problem_attention(&problem);

    ck_assert_uint_eq(attention.max_batch, 16);
    ck_assert_uint_eq(attention.q_len, 5);
    ck_assert_uint_eq(attention.num_q_heads, 6);
    ck_assert_uint_eq(attention.num_kv_heads, 2);
    ck_assert_uint_eq(attention.head_dim, 80);
    ck_assert_uint_eq(attention.head_dim_v, 72);
    ck_assert_uint_eq(attention.max_kv_len, 78);
    ck_assert_int_eq(attention.q_type, CLFD_TYPE_F16);
    ck_assert_int_eq(attention.k_type, CLFD_TYPE_BF16);
    ck_assert_int_eq(attention.v_type, CLFD_TYPE_BF16);
    ck_assert_int_eq(attention.out_type, CLFD_TYPE_F32);
    ck_assert_uint_eq(attention.causal, 1);
    ck_assert_uint_eq(attention.v_from_k, 1);
    ck_assert_int_eq(attention.partial, CLFD_PARTIAL_MLO);
    ck_assert_int_eq(attention.split_policy, CLFD_SPLIT_TOKENS);
    ck_assert_uint_eq(attention.split_size, 64);
    ck_assert_uint_eq(problem.ragged_low, 3);
    ck_assert_uint_eq(problem.ragged_high, 77);
}
END_TEST

START_TEST(split_policy_follows_the_word)
{
    const bench_problem count = parse("hq1 d8 kv9 splits=4"), automatic = parse("hq1 d8 kv9 splits=0");

    ck_assert_int_eq(problem_attention(&count).split_policy, CLFD_SPLIT_COUNT);
    ck_assert_uint_eq(problem_attention(&count).split_size, 4);
    ck_assert_int_eq(problem_attention(&automatic).split_policy, CLFD_SPLIT_AUTO);
}
END_TEST

START_TEST(printed_problem_is_canonical_and_parses_to_the_same)
{
    static const struct {
        const char *given, *printed;
    } cases[] = {
        {"kv8192 f16 d128 hq32", "b1 q1 hq32 hkv32 d128 kv8192 f16"},
        {"b16 q1 hq32 hkv8 d128 dv128 kv8192 f16 kvtype=f16 out=f16 partial=lse", "b16 q1 hq32 hkv8 d128 kv8192 f16"},
        {"b2 q3 hq8 hkv1 d576 dv512 kv99 bf16 kvtype=f32 out=f16 causal v_from_k partial=mlo splits=7 ragged=0..99",
         "b2 q3 hq8 hkv1 d576 dv512 kv99 bf16 kvtype=f32 out=f16 causal v_from_k partial=mlo splits=7 ragged=0..99"},
        {"\thq2  d64\nkv5 tokens=2 ", "b1 q1 hq2 hkv2 d64 kv5 f32 tokens=2"},
    };
    char text[PROBLEM_BYTES];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bench_problem problem = parse(cases[i].given);
        ck_assert_str_eq(problem_print(&problem, text), cases[i].printed);
        const bench_problem again = parse(text);
        ck_assert_mem_eq(&problem, &again, sizeof problem);
    }
}
END_TEST

START_TEST(malformed_problems_are_refused_by_name)
{
    static const struct {
        const char *text, *fragment;
    } cases[] = {
        {"", "the problem lacks hq"},
        {"hq1 kv8", "the problem lacks d;"},
        {"hq1 d8", "the problem lacks kv"},
        {"hq1 d8 kv9 x5", "'x5' is no word of a problem"},
        {"hq1 d8 kv9 hq", "'hq' is no word of a problem"},
        {"hq1 d8 kv9 causal1", "'causal1' is no word of a problem"},
        {"hq1 d8 kv9 f64", "'f64' is no word of a problem"},
        {"hq1 d8 kv9 d16", "'d16' gives a second time"},
        {"hq1 d8 kv9 f16 bf16", "'bf16' gives a second time"},
        {"hq1 d8 kv9 causal causal", "'causal' gives a second time"},
        {"hq0 d8 kv9", "hq0 is 0; it must be 1 to 2147483647"},
        {"hq1 d8 kv2147483648", "it must be 1 to 2147483647"},
        {"hq1 d8x kv9", "d8x is '8x'; it must be a whole number"},
        {"hq1 d8 kv9 splits=", "must be a whole number"},
        {"hq1 d8 kv9 tokens=0", "tokens=0 is 0; it must be 1 to"},
        {"hq1 d8 kv9 splits=2 tokens=2", "splits=2 and tokens=2 exclude each other"},
        {"hq1 d8 kv9 kvtype=f64", "kvtype=f64 is malformed"},
        {"hq1 d8 kv9 partial=lsm", "partial=lsm is malformed"},
        {"hq1 d8 kv9 ragged=5", "it must be ragged=LO..HI"},
        {"hq1 d8 kv9 ragged=5..4", "LO <= HI <= kv, which is 9"},
        {"hq1 d8 kv9 ragged=5..10", "LO <= HI <= kv, which is 9"},
        {"hq1 d8 kv9 ragged=..4", "must be a whole number"},
        {"hq1 d8 kv9 ragged=00000000000000000000001..4", "it must be ragged=LO..HI"},
    };
    bench_problem problem, untouched;
    tool_fault fault;

    memset(&untouched, 0x5a, sizeof untouched);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(&fault, 0, sizeof fault);
        problem = untouched;
        ck_assert_msg(!problem_parse(cases[i].text, &problem, &fault), "accepted: %s", cases[i].text);
        ck_assert_int_eq(fault.exit_code, EXIT_CODE_USAGE);
        ck_assert_msg(strstr(fault.sentence, cases[i].fragment) != NULL, "%s: '%s' does not hold '%s'", cases[i].text,
                      fault.sentence, cases[i].fragment);
        ck_assert_mem_eq(&problem, &untouched, sizeof problem);
    }
}
END_TEST

START_TEST(words_of_later_features_are_refused_as_such)
{
    static const char *const later[] = {"page=16", "window=128", "softcap=50", "sinks",       "alibi",
                                        "bias",    "mask",       "page=",      "kvtype=q8_0", "kvtype=int4"};
    char text[64];
    bench_problem problem;
    tool_fault fault;

    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        memset(&fault, 0, sizeof fault);
        snprintf(text, sizeof text, "hq1 d8 kv9 %s", later[i]);
        ck_assert_msg(!problem_parse(text, &problem, &fault), "accepted: %s", text);
        ck_assert_int_eq(fault.exit_code, EXIT_CODE_USAGE);
        ck_assert_ptr_nonnull(strstr(fault.sentence, later[i]));
        ck_assert_ptr_nonnull(strstr(fault.sentence, "not implemented yet"));
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        defaults_fill_what_is_not_given,        every_word_reaches_its_field,
        split_policy_follows_the_word,          printed_problem_is_canonical_and_parses_to_the_same,
        malformed_problems_are_refused_by_name, words_of_later_features_are_refused_as_such,
    };
    return run_suite("problem", tests, sizeof tests / sizeof tests[0]);
}

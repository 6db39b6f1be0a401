#include "problem.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

static bench_problem parse(const char *text)
{
    bench_problem problem;
    tool_fault fault = {.exit_code = EXIT_CODE_OK};

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
         "b2 q3 hq8 hkv1 d576 dv512 kv99 bf16 kvtype=f32 out=f16 v_from_k causal partial=mlo splits=7 ragged=0..99"},
        {"hq2 d64 kv5 ktype=q8_0 vtype=q8_0 bias=f32 softcap=30.0",
         "b1 q1 hq2 hkv2 d64 kv5 f32 kvtype=q8_0 softcap=30 bias"},
        {"hq2 d64 kv5 ktype=e5m2 vtype=fp8 bias=f16 softcap=0.1",
         "b1 q1 hq2 hkv2 d64 kv5 f32 ktype=fp8_e5m2 vtype=fp8_e4m3 softcap=0.1 bias=f16"},
        {"b3 q2 hq2 d64 kv50 f16 kvtype=int4 kvgroup=8 kvzeros page=7 csr cache_rows=9 window=3 alibi mask sinks "
         "positions kv_start causal",
         "b3 q2 hq2 hkv2 d64 kv50 f16 kvtype=int4 kvgroup=8 kvzeros page=7 csr cache_rows=9 causal window=3 alibi mask "
         "sinks positions kv_start"},
        {"hq2 d64 kv5 shared_kv", "b1 q1 hq2 hkv2 d64 kv5 f32 shared_kv"},
        {"hq2 d64 kv5 prefix=1000 tree ragged=1..4", "b1 q1 hq2 hkv2 d64 kv5 f32 tree ragged=1..4 prefix=1000"},
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
        {"hq1 d8 kv9 kvtype=f16 ktype=f16", "kvtype=f16 and ktype= or vtype= exclude each other"},
        {"hq1 d8 kv9 out=q8_0", "out=q8_0 must be f32, f16 or bf16"},
        {"hq1 d8 kv9 bias=bf16", "bias=bf16 must be f32 or f16"},
        {"hq1 d8 kv9 bias bias=f16", "'bias=f16' gives a second time"},
        {"hq1 d8 kv9 mask tree", "'tree' gives a second time"},
        {"hq1 d8 kv9 q8_0", "q8_0 is '8_0'; it must be a whole number"},
        {"hq1 d8 kv9 kvgroup=8", "kvgroup= and kvzeros are of the types int8 and int4"},
        {"hq1 d8 kv9 kvtype=q8_0 kvzeros", "kvgroup= and kvzeros are of the types int8 and int4"},
        {"hq1 d8 kv9 page=0", "page=0 is 0; it must be 1 to"},
        {"hq1 d8 kv9 csr", "csr is given without page="},
        {"hq1 d8 kv9 window=0", "window=0 is 0; it must be 1 to"},
        {"hq1 d8 kv9 softcap=0", "softcap=0 is malformed; the number must be positive"},
        {"hq1 d8 kv9 softcap=inf", "softcap=inf is malformed"},
        {"hq1 d8 kv9 softcap=", "softcap= is malformed"},
        {"b4 hq1 d8 kv9 cache_rows=3", "cache_rows=3 must be at least b, which is 4"},
        {"hq1 d8 kv9 prefix=9 window=4", "prefix=9 and window exclude each other"},
        {"hq1 d8 kv9 prefix=9 shared_kv", "prefix=9 and shared_kv exclude each other"},
        {"hq1 d8 kv9 prefix=9 out=f16", "out=f16 and prefix=9 exclude each other"},
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

/* A word of a newer problem reaches exactly its field of the descriptor. */
START_TEST(words_of_options_reach_the_descriptor)
{
    const bench_problem scores =
        parse("b2 q4 hq4 hkv2 d64 kv128 f16 causal window=17 softcap=50 alibi bias=f16 mask sinks "
              "positions kv_start cache_rows=5");
    const bench_problem cache =
        parse("b2 hq4 hkv2 d64 kv128 f16 ktype=int8 vtype=q4_0 kvgroup=32 kvzeros page=48 csr tree");
    const bench_problem shared = parse("b3 hq4 d64 kv128 shared_kv bias kvtype=fp8");
    const clfd_attention a = problem_attention(&scores), c = problem_attention(&cache), s = problem_attention(&shared);

    ck_assert(a.causal == 1 && a.alibi == 1 && a.sinks == 1 && a.query_positions == 1 && a.kv_start == 1);
    ck_assert_uint_eq(a.window, 17);
    ck_assert_float_eq(a.softcap, 50.0f);
    ck_assert_int_eq(a.bias_type, CLFD_TYPE_F16);
    ck_assert_int_eq(a.mask, CLFD_MASK_BOOL);
    ck_assert(a.cache_batch_idx == 1 && a.num_cache_rows == 5);
    ck_assert_int_eq(a.paging, CLFD_PAGING_NONE);
    ck_assert_int_eq(c.k_type, CLFD_TYPE_INT8);
    ck_assert_int_eq(c.v_type, CLFD_TYPE_Q4_0);
    ck_assert(c.k_quant.group == 32 && c.k_quant.zeros == 1);
    ck_assert(c.v_quant.group == 0 && c.v_quant.zeros == 0);
    ck_assert_int_eq(c.paging, CLFD_PAGING_CSR);
    ck_assert_uint_eq(c.page_size, 48);
    ck_assert_int_eq(c.mask, CLFD_MASK_TREE);
    ck_assert_uint_eq(s.shared_kv, 1);
    ck_assert_int_eq(s.bias_type, CLFD_TYPE_F32);
    ck_assert_int_eq(s.k_type, CLFD_TYPE_FP8_E4M3);
    ck_assert_int_eq(s.v_type, CLFD_TYPE_FP8_E4M3);
}
END_TEST

/* The prefix is a call of its own, whose keys every query sees; sinks and the order of the new keys belong to the rest. */
START_TEST(prefix_is_a_second_descriptor_without_sinks_or_causality)
{
    const bench_problem problem =
        parse("b4 q2 hq8 hkv2 d64 kv256 f16 kvtype=q8_0 page=16 causal sinks tree prefix=4096");
    const clfd_attention rest = problem_attention(&problem), prefix = problem_prefix_attention(&problem);

    ck_assert(rest.max_kv_len == 256 && rest.causal == 1 && rest.sinks == 1 && rest.shared_kv == 0);
    ck_assert_int_eq(rest.mask, CLFD_MASK_TREE);
    ck_assert_int_eq(rest.out_type, CLFD_TYPE_F32);
    ck_assert(prefix.max_kv_len == 4096 && prefix.causal == 0 && prefix.sinks == 0 && prefix.shared_kv == 1);
    ck_assert_int_eq(prefix.mask, CLFD_MASK_NONE);
    ck_assert_int_eq(prefix.out_type, CLFD_TYPE_F32);
    ck_assert(prefix.max_batch == 4 && prefix.q_len == 2 && prefix.page_size == 16);
    ck_assert_int_eq(prefix.k_type, CLFD_TYPE_Q8_0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        defaults_fill_what_is_not_given,
        every_word_reaches_its_field,
        split_policy_follows_the_word,
        printed_problem_is_canonical_and_parses_to_the_same,
        malformed_problems_are_refused_by_name,
        words_of_options_reach_the_descriptor,
        prefix_is_a_second_descriptor_without_sinks_or_causality,
    };
    return run_suite("problem", tests, sizeof tests / sizeof tests[0]);
}

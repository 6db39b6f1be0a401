/* Sinks (state_sink of cl/state.cl): one more logit per query head, without a value, merged once at the very end, in the
 * kernel that writes out. */
#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { DIM = 64, HEADS = 4 };

static const float nothing[DIM];

static void put_sinks(attention_call *call, const float sinks[HEADS])
{
    for (uint32_t h = 0; h < HEADS; h++)
        image_put(&call->images[ATTENTION_SINKS], 0, 0, 0, h, sinks[h]);
}

/* A sink that each split would add anew, or that only some rows got, would show in the sum. */
START_TEST(sinks_count_once_whatever_the_splits)
{
    static const struct {
        clfd_split_policy policy;
        uint32_t size;
    } policies[] = {{CLFD_SPLIT_AUTO, 0},   {CLFD_SPLIT_COUNT, 1},   {CLFD_SPLIT_COUNT, 2},   {CLFD_SPLIT_COUNT, 64},
                    {CLFD_SPLIT_TOKENS, 1}, {CLFD_SPLIT_TOKENS, 16}, {CLFD_SPLIT_TOKENS, 200}};

    for (size_t i = 0; i < COUNT(policies); i++) {
        attention_problem p = option_case((clfd_attention){.sinks = 1});
        p.attention.split_policy = policies[i].policy;
        p.attention.split_size = policies[i].size;
        p.seed = i;
        verify_forms(&p);
        p.no_lse = true;
        verify_forms(&p);
    }
}
END_TEST

START_TEST(sinks_match_the_reference_in_either_partial_format_and_every_type_of_out)
{
    static const clfd_type types[] = {CLFD_TYPE_F32, CLFD_TYPE_F16, CLFD_TYPE_BF16};

    for (uint32_t i = 0; i < COUNT(types); i++) {
        attention_problem p = option_case((clfd_attention){.sinks = 1, .out_type = types[i]});
        p.attention.partial = i % 2 == 0 ? CLFD_PARTIAL_MLO : CLFD_PARTIAL_LSE;
        attention_verify(&p);
        p.attention.split_size = 200;
        attention_verify(&p);
    }
}
END_TEST

START_TEST(sinks_beside_other_options_match_the_reference)
{
    const attention_problem p = option_case(
        (clfd_attention){.sinks = 1, .softcap = 4.0f, .causal = 1, .window = 30, .bias_type = CLFD_TYPE_F32});

    verify_forms_and_splits(&p);
}
END_TEST

START_TEST(a_direct_write_with_sinks_equals_a_merge_of_one)
{
    enum { TOKENS = 50 };
    static const int32_t lens[] = {TOKENS, 0, 1, 17, TOKENS - 1, 2, 3, 5, 40, 31, 32, 33};
    static const float sinks[HEADS] = {0.5f, -INFINITY, 4.25f, -3.0f};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (int partial = CLFD_PARTIAL_LSE; partial <= CLFD_PARTIAL_MLO; partial++) {
            const attention_problem all = option_case((clfd_attention){.sinks = 1, .split_size = TOKENS});
            attention_problem p = in_form(&all, f);
            p.attention.partial = (clfd_partial)partial;
            p.attention.max_batch = COUNT(lens);
            p.kv_lens = lens;
            p.attention.max_kv_len = TOKENS;
            attention_call *const direct = attention_open(&p);
            p.attention.max_kv_len = 7 * TOKENS;
            attention_call *const merged = attention_open(&p);
            put_sinks(direct, sinks);
            put_sinks(merged, sinks);
            attention_run(direct);
            attention_run(merged);
            ck_assert_ptr_nonnull(strstr(clfd_plan_describe(direct->plan), " splits1 "));
            ck_assert_ptr_nonnull(strstr(clfd_plan_describe(merged->plan), " splits7 "));
            attention_expect_reference(direct);
            EXPECT(attention_same_bits(direct, merged), "a merge of one changes a bit in %s",
                   clfd_plan_describe(merged->plan));
            attention_close(direct);
            attention_close(merged);
        }
}
END_TEST

/* Both where one split writes out and where several are merged. */
START_TEST(a_row_without_keys_has_the_lse_of_its_sink)
{
    static const float sinks[HEADS] = {-1.25f, -INFINITY, 0.0f, 1e30f};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (uint32_t split_size = 32; split_size <= 200; split_size += 168) {
            const attention_problem all = option_case((clfd_attention){.sinks = 1, .split_size = split_size});
            const attention_problem p = in_form(&all, f);
            attention_call *const call = attention_open(&p);
            put_sinks(call, sinks);
            attention_run(call);
            attention_expect_reference(call);
            for (uint32_t h = 0; h < HEADS; h++)
                for (uint32_t i = 0; i < 3; i++) {
                    ck_assert_int_eq(memcmp(attention_out(call, 0, i, h), nothing, sizeof nothing), 0);
                    ck_assert(call->lse[attention_row(call, 0, i, h)] == sinks[h]);
                }
            attention_close(call);
        }
}
END_TEST

/* -inf, or so small that it weighs nothing, leaves the bits of a plan without sinks. */
START_TEST(a_sink_of_minus_infinity_is_no_sink)
{
    static const float sinks[HEADS] = {-INFINITY, -1e30f, -INFINITY, -200.0f};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (uint32_t split_size = 32; split_size <= 200; split_size += 168) {
            const attention_problem all = option_case((clfd_attention){.split_size = split_size});
            attention_problem p = in_form(&all, f);
            p.attention.max_kv_len = 199; /* the sequence without keys would have the LSE of its sink */
            p.batch = 5;
            attention_call *const without = attention_open(&p);
            p.attention.sinks = 1;
            attention_call *const with = attention_open(&p);
            put_sinks(with, sinks);
            attention_run(without);
            attention_run(with);
            attention_expect_reference(with);
            for (uint32_t b = 1; b < 5; b++)
                EXPECT(attention_same_sequence(with, b, without, b), "sinks of no weight change a bit in %s",
                       clfd_plan_describe(with->plan));
            attention_close(without);
            attention_close(with);
        }
}
END_TEST

START_TEST(a_sink_far_above_all_scores_takes_everything)
{
    static const float sinks[HEADS] = {1e4f, 1e30f, 300.0f, 3e38f};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem all = option_case((clfd_attention){.sinks = 1}), p = in_form(&all, f);
        attention_call *const call = attention_open(&p);
        put_sinks(call, sinks);
        attention_run(call);
        attention_expect_reference(call);
        for (uint32_t h = 0; h < HEADS; h++) {
            for (uint32_t d = 0; d < DIM; d++)
                EXPECT(attention_out(call, 4, 0, h)[d] == 0.0f, "out[%u] is %g", d,
                       (double)attention_out(call, 4, 0, h)[d]);
            ck_assert(call->lse[attention_row(call, 4, 0, h)] == sinks[h]);
        }
        attention_close(call);
    }
}
END_TEST

START_TEST(a_sink_of_nan_or_infinity_spoils_its_head_and_no_other)
{
    static const float spoilers[] = {NAN, INFINITY};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t s = 0; s < COUNT(spoilers); s++)
            for (uint32_t split_size = 32; split_size <= 200; split_size += 168) {
                const attention_problem all = option_case((clfd_attention){.sinks = 1, .split_size = split_size});
                const attention_problem p = in_form(&all, f);
                attention_call *const call = attention_open(&p);
                put_sinks(call, (const float[HEADS]){0.0f, spoilers[s], 1.0f, -1.0f});
                attention_run(call);
                attention_expect_reference(call);
                for (uint32_t h = 0; h < HEADS; h++) {
                    ck_assert_int_eq(isnan(call->lse[attention_row(call, 4, 2, h)]) != 0, h == 1);
                    ck_assert_int_eq(isnan(attention_out(call, 4, 2, h)[DIM - 1]) != 0, h == 1);
                }
                attention_close(call);
            }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        sinks_count_once_whatever_the_splits,
        sinks_match_the_reference_in_either_partial_format_and_every_type_of_out,
        sinks_beside_other_options_match_the_reference,
        a_direct_write_with_sinks_equals_a_merge_of_one,
        a_row_without_keys_has_the_lse_of_its_sink,
        a_sink_of_minus_infinity_is_no_sink,
        a_sink_far_above_all_scores_takes_everything,
        a_sink_of_nan_or_infinity_spoils_its_head_and_no_other,
    };
    const int result = run_suite("state_sinks", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

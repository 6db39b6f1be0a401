/* The score pipeline of cl/score.cl: softcap, ALiBi, bias, their order, and what a score of -inf hides. Which keys a query
 * may see at all is the matter of test_score_keys. */
#include "support/compare.h"
#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { DIM = 64 };

/* ---- Against the reference --------------------------------------------------------------------------------------- */

START_TEST(each_option_of_a_score_matches_the_reference)
{
    static const clfd_attention options[] = {
        {.softcap = 2.0f},
        {.alibi = 1},
        {.bias_type = CLFD_TYPE_F32},
    };

    for (size_t i = 0; i < COUNT(options); i++) {
        const attention_problem p = option_case(options[i]);
        verify_forms_and_splits(&p);
    }
}
END_TEST

START_TEST(all_options_of_a_score_together_match_the_reference)
{
    const attention_problem p = option_case((clfd_attention){
        .softcap = 3.0f, .alibi = 1, .bias_type = CLFD_TYPE_F16, .causal = 1, .window = 50, .mask = CLFD_MASK_BOOL});

    verify_forms_and_splits(&p);
}
END_TEST

/* Caps that leave most scores alone, that flatten all of them, and scores far beyond the cap. */
START_TEST(softcaps_of_every_size_match_the_reference)
{
    static const struct {
        float softcap, scale;
    } cases[] = {{1e-3f, 0.0f}, {50.0f, 0.0f}, {30.0f, 10.0f}, {1e4f, 1.0f}, {5.0f, -0.5f}, {1e30f, 0.25f}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        attention_problem p = option_case((clfd_attention){.softcap = cases[i].softcap, .scale = cases[i].scale});
        p.hot = cases[i].scale != 0.0f;
        p.seed = i;
        verify_forms(&p);
    }
}
END_TEST

/* Strides are numbers of the call, so that the kernels of one bias serve all of them. */
START_TEST(a_bias_is_found_by_all_four_strides)
{
    enum { HEADS = 4, QUERIES = 3, KEYS = 200 };
    static const clfd_score_strides layouts[] = {
        {0},                                                     /* dense: each axis has its own values */
        {.head = QUERIES * KEYS, .query = KEYS, .key = 1},       /* one for all sequences */
        {.batch = QUERIES * KEYS, .query = KEYS, .key = 1},      /* one for all heads */
        {.batch = HEADS * KEYS, .head = KEYS, .key = 1},         /* one for all queries */
        {.batch = HEADS * QUERIES, .head = QUERIES, .query = 1}, /* one for all keys */
        {.key = 1},                                              /* of keys alone */
        {.head = 1},                                             /* of heads alone */
        {.batch = 1, .head = 5, .query = 20, .key = 60},         /* keys outermost */
        {.batch = 4000, .head = 901, .query = 303, .key = 1},    /* with room between rows */
        {.batch = 9600, .head = 2400, .query = 800, .key = 4},   /* and between keys */
    };

    for (size_t i = 0; i < COUNT(layouts); i++)
        for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
            const attention_problem all =
                option_case((clfd_attention){.bias_type = CLFD_TYPE_F32, .bias_strides = layouts[i]});
            const attention_problem p = in_form(&all, f);
            attention_verify(&p);
        }
}
END_TEST

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* Sequences of one key, whose score before all options is 2 for every query, and slopes of 1/8, 2/8, ...: lse is the
 * score. */
static attention_call *open_single_keys(const attention_problem *problem)
{
    attention_call *const call = attention_open(problem);
    tensor_image *const images = call->images;

    for (uint32_t b = 0; b < call->batch; b++)
        for (uint32_t h = 0; h < call->complete.num_q_heads; h++)
            for (uint32_t i = 0; i < call->complete.q_len; i++) {
                image_put_row(&images[ATTENTION_Q], b, i, h, 0.0f);
                image_put(&images[ATTENTION_Q], b, i, h, 5, 8.0f);
                image_put_row(&images[ATTENTION_K], b, 0, h / 2, 1.0f);
            }
    for (uint32_t h = 0; h < call->complete.num_q_heads && call->complete.alibi; h++)
        image_put(&images[ATTENTION_ALIBI], 0, 0, 0, h, (float)(h + 1) / 8.0f);
    return call;
}

static void expect_lse(const attention_call *call, uint32_t query, uint32_t head, double expected)
{
    const float lse = call->lse[attention_row(call, 0, query, head)];

    EXPECT(compare_value(lse, expected, TOLERANCE_STATE), "query %u, head %u of %s: a score of %.9g instead of %.9g",
           query, head, clfd_plan_describe(call->plan), (double)lse, expected);
}

/* The scale of 1/4 comes first, the cap of 3/2 bends the scaled score only, the rest is added to what it leaves. */
START_TEST(scale_softcap_alibi_and_bias_act_in_this_order)
{
    static const int32_t lens[] = {1}, positions[] = {1, 4, -3};
    attention_problem all = option_case((clfd_attention){
        .max_batch = 1, .scale = 0.25f, .softcap = 1.5f, .alibi = 1, .bias_type = CLFD_TYPE_F32, .query_positions = 1});

    all.kv_lens = lens;
    all.query_positions = positions;
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem p = in_form(&all, f);
        attention_call *const call = open_single_keys(&p);
        for (uint32_t h = 0; h < 4; h++)
            for (uint32_t i = 0; i < 3; i++)
                image_put(&call->images[ATTENTION_BIAS], 0, i, h, 0, 0.5f);
        attention_run(call);
        for (uint32_t h = 0; h < 4; h++)
            for (uint32_t i = 0; i < 3; i++)
                expect_lse(call, i, h, 1.5 * tanh(2.0 / 1.5) - (h + 1) / 8.0 * abs(positions[i]) + 0.5);
        attention_close(call);
    }
}
END_TEST

/* Distances of up to 2^32 - 1 do not wrap. */
START_TEST(alibi_takes_the_distance_to_any_position)
{
    static const int32_t lens[] = {1}, positions[] = {INT32_MAX, INT32_MIN, -1};
    static const double distances[] = {2147483647.0, 2147483648.0, 1.0};
    attention_problem all = option_case((clfd_attention){
        .max_batch = 1, .scale = 0.25f, .softcap = 1.5f, .alibi = 1, .bias_type = CLFD_TYPE_F32, .query_positions = 1});

    all.kv_lens = lens;
    all.query_positions = positions;
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem p = in_form(&all, f);
        attention_call *const call = open_single_keys(&p);
        for (uint32_t h = 0; h < 4; h++)
            for (uint32_t i = 0; i < 3; i++)
                image_put(&call->images[ATTENTION_BIAS], 0, i, h, 0, 0.0f);
        attention_run(call);
        for (uint32_t h = 0; h < 4; h++)
            for (uint32_t i = 0; i < 3; i++)
                expect_lse(call, i, h, 1.5 * tanh(2.0 / 1.5) - (h + 1) / 8.0 * distances[i]);
        attention_close(call);
    }
}
END_TEST

/* ---- Keys of -inf ------------------------------------------------------------------------------------------------ */

START_TEST(a_bias_of_minus_infinity_hides_a_key_and_its_value)
{
    const attention_problem all = option_case((clfd_attention){.bias_type = CLFD_TYPE_F32});

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem p = in_form(&all, f);
        attention_call *const call = attention_open(&p);
        for (uint32_t j = 0; j < 130; j += 3) {
            for (uint32_t h = 0; h < 4; h++)
                for (uint32_t i = 0; i < 3; i++)
                    image_put(&call->images[ATTENTION_BIAS], 4, i, h, j, -INFINITY);
            image_put_row(&call->images[ATTENTION_V], 4, j, 0, NAN);
            image_put_row(&call->images[ATTENTION_V], 4, j, 1, INFINITY);
        }
        attention_run(call);
        attention_expect_reference(call);
        for (size_t i = 0; i < call->num_rows * DIM; i++)
            EXPECT(isfinite(call->out[i]), "out[%zu] of %s is %g", i, clfd_plan_describe(call->plan),
                   (double)call->out[i]);
        attention_close(call);
    }
}
END_TEST

START_TEST(a_row_whose_bias_hides_all_keys_is_empty)
{
    static const float nothing[DIM];
    const attention_problem all = option_case((clfd_attention){.bias_type = CLFD_TYPE_F32});

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem p = in_form(&all, f);
        attention_call *const call = attention_open(&p);
        for (uint32_t j = 0; j < 97; j++)
            image_put(&call->images[ATTENTION_BIAS], 3, 1, 2, j, -INFINITY);
        attention_run(call);
        attention_expect_reference(call);
        ck_assert_int_eq(memcmp(attention_out(call, 3, 1, 2), nothing, sizeof nothing), 0);
        ck_assert(call->lse[attention_row(call, 3, 1, 2)] == -INFINITY);
        attention_close(call);
    }
}
END_TEST

/* NaN and +inf that are seen spoil their row, and no other one of the block. */
START_TEST(a_bias_of_nan_or_infinity_spoils_its_row_and_no_other)
{
    static const float spoilers[] = {NAN, INFINITY};
    const attention_problem all = option_case((clfd_attention){.bias_type = CLFD_TYPE_F32});

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t s = 0; s < COUNT(spoilers); s++) {
            const attention_problem p = in_form(&all, f);
            attention_call *const call = attention_open(&p);
            image_put(&call->images[ATTENTION_BIAS], 4, 2, 1, 77, spoilers[s]);
            attention_run(call);
            attention_expect_reference(call);
            ck_assert(isnan(call->lse[attention_row(call, 4, 2, 1)]));
            ck_assert(isfinite(call->lse[attention_row(call, 4, 2, 0)]));
            attention_close(call);
        }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_option_of_a_score_matches_the_reference,
        all_options_of_a_score_together_match_the_reference,
        softcaps_of_every_size_match_the_reference,
        a_bias_is_found_by_all_four_strides,
        scale_softcap_alibi_and_bias_act_in_this_order,
        alibi_takes_the_distance_to_any_position,
        a_bias_of_minus_infinity_hides_a_key_and_its_value,
        a_row_whose_bias_hides_all_keys_is_empty,
        a_bias_of_nan_or_infinity_spoils_its_row_and_no_other,
    };
    const int result = run_suite("score", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

/* The softmax state in kernels (cl/state.cl), as decode shows it: values from books, scores of every magnitude, and what
 * infinities and NaN in q, K and V do to the rows that see them, and to no others. */
#include "support/compare.h"
#include "support/decode_cases.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

enum { HEADS = 4, DIM = 64, SPLIT = 32 };

/* Two sequences, K and V in f32 where a value must be exact. */
static attention_problem make_problem(size_t form, clfd_type type, const int32_t *kv_lens)
{
    attention_problem p = decode_case(&decode_forms[form]);

    p.attention.max_batch = 2;
    p.attention.q_type = type;
    p.attention.scale = 1.0f;
    p.kv_lens = kv_lens;
    return p;
}

/* q is one-hot at dim 0, so that a key's score is scale * K[0], exactly; V counts from 0. */
static attention_call *open_scored(const attention_problem *problem, float (*score)(uint32_t key))
{
    attention_call *const call = attention_open(problem);
    tensor_image *const images = call->images;

    for (uint32_t b = 0; b < call->batch; b++) {
        for (uint32_t i = 0; i < call->complete.q_len; i++)
            for (uint32_t h = 0; h < call->complete.num_q_heads; h++)
                for (uint32_t d = 0; d < DIM; d++)
                    image_put(&images[ATTENTION_Q], b, i, h, d, d == 0 ? 1.0f : 0.0f);
        for (uint32_t j = 0; j < attention_kv_len(call, b); j++)
            for (uint32_t h = 0; h < call->complete.num_kv_heads; h++) {
                image_put_row(&images[ATTENTION_K], b, j, h, 0.0f);
                image_put(&images[ATTENTION_K], b, j, h, 0, score(j));
                image_put_row(&images[ATTENTION_V], b, j, h, (float)j);
            }
    }
    return call;
}

/* Runs the call and requires this one value in every out and every lse. */
static void expect_all(attention_call *call, double out, double lse)
{
    attention_run(call);
    for (size_t i = 0; i < call->num_rows * call->complete.head_dim_v; i++)
        EXPECT(compare_value(call->out[i], out, TOLERANCE_OUT_F32), "out[%zu] of %s is %.9g instead of %.9g", i,
               clfd_plan_describe(call->plan), call->out[i], out);
    for (size_t i = 0; i < call->num_rows; i++)
        EXPECT(compare_value(call->lse[i], lse, TOLERANCE_LSE), "lse[%zu] of %s is %.9g instead of %.9g", i,
               clfd_plan_describe(call->plan), call->lse[i], lse);
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static float zero(uint32_t key)
{
    (void)key;
    return 0.0f;
}

START_TEST(lse_of_equal_scores_is_the_natural_logarithm_of_their_number)
{
    static const int32_t lens[][2] = {{1, 1}, {2, 2}, {31, 31}, {32, 32}, {33, 33}, {64, 64}, {100, 100}, {200, 200}};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
            const attention_problem p = make_problem(f, CLFD_TYPE_F16, lens[i]);
            attention_call *const call = open_scored(&p, zero);
            expect_all(call, (lens[i][0] - 1) / 2.0, log(lens[i][0]));
            attention_close(call);
        }
}
END_TEST

static float logarithms_of_2_and_8(uint32_t key) { return key == 0 ? 0.693147181f : 2.07944154f; }

START_TEST(weights_are_exponentials_to_the_base_e)
{
    static const int32_t lens[] = {2, 2};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (uint32_t split = 1; split <= 2; split++) { /* two partial states, then one */
            attention_problem p = make_problem(f, CLFD_TYPE_F32, lens);
            p.attention.split_size = split;
            attention_call *const call = open_scored(&p, logarithms_of_2_and_8);
            expect_all(call, 0.8, log(10.0));
            attention_close(call);
        }
}
END_TEST

/* q = [.1 .2 .3 .4], three keys: scores 0.12, 0.165, 0.16. */
START_TEST(three_keys_of_four_dims_give_the_textbook_values)
{
    static const float q[4] = {0.1f, 0.2f, 0.3f, 0.4f};
    static const float k[3][4] = {{0.5f, 0.1f, 0.3f, 0.2f}, {0.2f, 0.6f, 0.1f, 0.4f}, {0.3f, 0.2f, 0.7f, 0.1f}};
    static const float v[3][4] = {{0.1f, 0.2f, 0.3f, 0.4f}, {0.5f, 0.4f, 0.3f, 0.2f}, {0.2f, 0.6f, 0.1f, 0.5f}};
    static const double outs[3][4] = {{0.1, 0.2, 0.3, 0.4}, {0.304, 0.302, 0.300, 0.298}, {0.269, 0.403, 0.233, 0.366}};
    static const double ms[3] = {0.12, 0.165, 0.165}, ls[3] = {1.0, 1.9560, 2.9510};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (int32_t n = 1; n <= 3; n++) {
            const int32_t lens[] = {n, n};
            attention_problem p = make_problem(f, CLFD_TYPE_F32, lens);
            p.attention.scale = 0.5f;
            attention_call *const call = open_scored(&p, zero);
            tensor_image *const images = call->images;
            for (uint32_t h = 0; h < HEADS; h++)
                for (uint32_t d = 0; d < 4; d++) {
                    image_put(&images[ATTENTION_Q], 0, 0, h, d, q[d]);
                    for (uint32_t j = 0; j < (uint32_t)n; j++) {
                        image_put(&images[ATTENTION_K], 0, j, h / 2, d, k[j][d]);
                        image_put(&images[ATTENTION_V], 0, j, h / 2, d, v[j][d]);
                    }
                }
            attention_run(call);
            for (uint32_t h = 0; h < HEADS; h++) {
                ASSERT_FLOATS(attention_out(call, 0, 0, h), outs[n - 1], 4, TOLERANCE_PRINTED3);
                ASSERT_VALUE(call->lse[h], ms[n - 1] + log(ls[n - 1]), TOLERANCE_PRINTED4);
            }
            attention_close(call);
        }
}
END_TEST

/* ---- Magnitudes -------------------------------------------------------------------------------------------------- */

static float level;

static float at_level(uint32_t key)
{
    (void)key;
    return level;
}

/* Under LSE the splits are equally long: S = m + log l keeps no difference of log l under a large m. */
START_TEST(no_finite_score_stands_for_an_invisible_key)
{
    static const float levels[] = {-2e38f,    -1e30f,    -1e6f, -65536.0f, -65504.0f, -60000.0f,
                                   -50000.0f, -10000.0f, 1e4f,  60000.0f,  1e30f,     2e38f};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < 2 * sizeof levels / sizeof levels[0]; i++) {
            const bool mlo = i % 2 == 1;
            const int32_t lens[] = {0, mlo ? 100 : 4 * SPLIT};
            attention_problem p = make_problem(f, CLFD_TYPE_F32, lens);
            p.attention.partial = mlo ? CLFD_PARTIAL_MLO : CLFD_PARTIAL_LSE;
            level = levels[i / 2];
            attention_call *const call = open_scored(&p, at_level);
            attention_run(call);
            for (uint32_t h = 0; h < HEADS; h++) {
                const float out = attention_out(call, 1, 0, h)[0], lse = call->lse[HEADS + h];
                EXPECT(compare_value(out, (lens[1] - 1) / 2.0, TOLERANCE_OUT_F32), "scores of %g: out is %.9g in %s",
                       level, out, clfd_plan_describe(call->plan));
                EXPECT(compare_value(lse, level + log(lens[1]), TOLERANCE_LSE), "scores of %g: lse is %.9g", level,
                       lse);
            }
            attention_close(call);
        }
}
END_TEST

static float step;

static float in_steps(uint32_t key) { return step * (float)key; }

/* Rising scores raise the maximum at every key, falling ones never; steps of 100 leave one key alone. */
START_TEST(rising_and_falling_scores_match_the_reference)
{
    static const float steps[] = {1e-3f, -1e-3f, 1.0f, -1.0f, 100.0f, -100.0f, 1000.0f, -1000.0f};
    static const int32_t lens[] = {200, 65};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            attention_problem p = make_problem(f, CLFD_TYPE_F32, lens);
            p.hot = true;
            p.attention.partial = i % 2 == 0 ? CLFD_PARTIAL_LSE : CLFD_PARTIAL_MLO;
            step = steps[i];
            attention_call *const call = open_scored(&p, in_steps);
            attention_run(call);
            attention_expect_reference(call);
            attention_close(call);
        }
}
END_TEST

START_TEST(negative_and_tiny_scales_match_the_reference)
{
    static const float scales[] = {-1.0f, -0.125f, 1e-30f, 8.0f, 1e-45f};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
            attention_problem p = make_problem(f, CLFD_TYPE_F16, NULL);
            p.attention.scale = scales[i];
            p.hot = true;
            attention_verify(&p);
        }
}
END_TEST

/* ---- Rows without keys ------------------------------------------------------------------------------------------- */

/* Exactly +0 and -inf; everything else finite. Under a direct write and a merge, in both formats. */
START_TEST(rows_without_keys_are_zero_and_minus_infinity)
{
    static const int32_t lens[] = {5, 0, 5, -3};
    static const float nothing[DIM] = {0.0f};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (int variant = 0; variant < 4; variant++) {
            attention_problem p = make_problem(f, CLFD_TYPE_F16, lens);
            p.attention.max_batch = 4;
            p.attention.partial = variant % 2 == 0 ? CLFD_PARTIAL_LSE : CLFD_PARTIAL_MLO;
            p.attention.split_size = variant / 2 == 0 ? 2 : 200;
            attention_call *const call = attention_open(&p);
            attention_run(call);
            for (uint32_t b = 0; b < 4; b++)
                for (uint32_t h = 0; h < HEADS; h++) {
                    const float lse = call->lse[attention_row(call, b, 0, h)];
                    const bool empty = memcmp(attention_out(call, b, 0, h), nothing, sizeof nothing) == 0;
                    ck_assert_int_eq(empty, b % 2 == 1);
                    ck_assert(b % 2 == 1 ? lse == -INFINITY : isfinite(lse));
                }
            attention_expect_reference(call);
            attention_close(call);
        }
}
END_TEST

/* ---- Infinities and NaN ------------------------------------------------------------------------------------------ */

/* Runs `changed`, a call to which the test has done something, and the same problem untouched. Rows for which `touched`
 * holds must match the reference, all others must be the same to the bit. */
static void expect_only(attention_call *changed, bool (*touched)(uint32_t batch, uint32_t query, uint32_t head))
{
    attention_call *const plain = attention_open(&changed->problem);
    const size_t row_bytes = changed->complete.head_dim_v * sizeof(float);

    attention_run(plain);
    attention_run(changed);
    attention_expect_reference(changed);
    for (uint32_t b = 0; b < changed->batch; b++)
        for (uint32_t i = 0; i < changed->complete.q_len; i++)
            for (uint32_t h = 0; h < changed->complete.num_q_heads; h++) {
                const size_t row = attention_row(changed, b, i, h);
                const bool same =
                    changed->lse[row] == plain->lse[row] &&
                    memcmp(attention_out(changed, b, i, h), attention_out(plain, b, i, h), row_bytes) == 0;
                EXPECT(same != touched(b, i, h), "row (%u, %u, %u) of %s %s", b, i, h,
                       clfd_plan_describe(changed->plan), same ? "did not change" : "changed");
            }
    attention_close(plain);
}

static bool of_sequence_1_and_kv_head_0(uint32_t batch, uint32_t query, uint32_t head)
{
    (void)query;
    return batch == 1 && head < 2;
}

static bool of_the_last_query(uint32_t batch, uint32_t query, uint32_t head)
{
    return query == 3 && of_sequence_1_and_kv_head_0(batch, query, head);
}

static bool of_head_2(uint32_t batch, uint32_t query, uint32_t head)
{
    (void)query;
    return batch == 1 && head == 2;
}

static const int32_t two_lengths[] = {70, 70};

START_TEST(visible_nan_in_a_key_spoils_the_rows_that_see_it_and_no_others)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (uint32_t token = 0; token < 70; token += 23) {
            const attention_problem p = make_problem(f, CLFD_TYPE_F16, two_lengths);
            attention_call *const call = attention_open(&p);
            image_put(&call->images[ATTENTION_K], 1, token, 0, 5, NAN);
            expect_only(call, of_sequence_1_and_kv_head_0);
            ck_assert(isnan(attention_out(call, 1, 0, 0)[0]) && isnan(call->lse[attention_row(call, 1, 0, 1)]));
            attention_close(call);
        }
}
END_TEST

/* In V the values of one dim; the scores, and so lse, are not touched. */
START_TEST(visible_nan_and_infinity_in_a_value_spoil_its_dim)
{
    static const float values[] = {NAN, INFINITY, -INFINITY};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < 3; i++) {
            attention_problem p = make_problem(f, CLFD_TYPE_F16, two_lengths);
            p.attention.scale = 0.125f; /* no weight underflows */
            attention_call *const call = attention_open(&p);
            image_put(&call->images[ATTENTION_V], 1, 40, 0, 5, values[i]);
            expect_only(call, of_sequence_1_and_kv_head_0);
            attention_close(call);
        }
}
END_TEST

/* The last key is visible to the last query alone, which shares its block with others. */
START_TEST(key_of_the_future_is_not_used_by_rows_of_the_same_block)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (int tensor = ATTENTION_K; tensor <= ATTENTION_V; tensor++) {
            attention_problem p = make_problem(f, CLFD_TYPE_F16, two_lengths);
            p.attention.q_len = 4;
            p.attention.causal = 1;
            attention_call *const call = attention_open(&p);
            image_put_row(&call->images[tensor], 1, 69, 0, NAN);
            expect_only(call, of_the_last_query);
            attention_close(call);
        }
}
END_TEST

START_TEST(nan_in_q_spoils_its_row_and_no_other)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem p = make_problem(f, CLFD_TYPE_F16, two_lengths);
        attention_call *const call = attention_open(&p);
        image_put(&call->images[ATTENTION_Q], 1, 0, 2, 63, NAN);
        expect_only(call, of_head_2);
        ck_assert(isnan(attention_out(call, 1, 0, 2)[9]) && isnan(call->lse[attention_row(call, 1, 0, 2)]));
        attention_close(call);
    }
}
END_TEST

static float special;

static float special_at_key_50(uint32_t key) { return key == 50 ? special : 0.0f; }

START_TEST(score_of_plus_infinity_gives_nan)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (int format = 0; format < 2; format++) {
            attention_problem p = make_problem(f, CLFD_TYPE_F32, two_lengths);
            p.attention.partial = format == 0 ? CLFD_PARTIAL_LSE : CLFD_PARTIAL_MLO;
            special = INFINITY;
            attention_call *const call = open_scored(&p, special_at_key_50);
            expect_all(call, NAN, NAN);
            attention_close(call);
        }
}
END_TEST

/* Whatever its value holds. */
START_TEST(score_of_minus_infinity_makes_its_key_invisible)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem p = make_problem(f, CLFD_TYPE_F32, two_lengths);
        special = -INFINITY;
        attention_call *const call = open_scored(&p, special_at_key_50);
        for (uint32_t b = 0; b < 2; b++)
            for (uint32_t h = 0; h < 2; h++)
                image_put_row(&call->images[ATTENTION_V], b, 50, h, NAN);
        expect_all(call, (69.0 * 70.0 / 2.0 - 50.0) / 69.0, log(69.0));
        attention_close(call);
    }
}
END_TEST

static float minus_infinity(uint32_t key)
{
    (void)key;
    return -INFINITY;
}

START_TEST(row_whose_scores_are_all_minus_infinity_is_empty)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (int variant = 0; variant < 4; variant++) {
            attention_problem p = make_problem(f, CLFD_TYPE_F32, two_lengths);
            p.attention.partial = variant % 2 == 0 ? CLFD_PARTIAL_LSE : CLFD_PARTIAL_MLO;
            p.attention.split_size = variant / 2 == 0 ? SPLIT : 200;
            attention_call *const call = open_scored(&p, minus_infinity);
            expect_all(call, 0.0, -INFINITY);
            attention_close(call);
        }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        lse_of_equal_scores_is_the_natural_logarithm_of_their_number,
        weights_are_exponentials_to_the_base_e,
        three_keys_of_four_dims_give_the_textbook_values,
        no_finite_score_stands_for_an_invisible_key,
        rising_and_falling_scores_match_the_reference,
        negative_and_tiny_scales_match_the_reference,
        rows_without_keys_are_zero_and_minus_infinity,
        visible_nan_in_a_key_spoils_the_rows_that_see_it_and_no_others,
        visible_nan_and_infinity_in_a_value_spoil_its_dim,
        key_of_the_future_is_not_used_by_rows_of_the_same_block,
        nan_in_q_spoils_its_row_and_no_other,
        score_of_plus_infinity_gives_nan,
        score_of_minus_infinity_makes_its_key_invisible,
        row_whose_scores_are_all_minus_infinity_is_empty,
    };
    const int result = run_suite("state", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

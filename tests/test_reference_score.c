/* The score pipeline of the reference: known scores, counted keys, and all options at once against a plain loop. */
#include "support/compare.h"
#include "support/host_call.h"
#include "support/random.h"
#include "support/suite.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* One query and one KV head whose keys score what `scores` says: lse of a single visible key is its score. */
static void set_scores(const float *scores, uint32_t count)
{
    set_problem(1, 1, 1, 1, 8, 8, count);
    attention.scale = 1.0f;
    fill(q, 8, 0.0f);
    q[0] = 1.0f;
    for (uint32_t j = 0; j < count; j++)
        k[j * 8] = scores[j];
}

/* ---- One score --------------------------------------------------------------------------------------------------- */

START_TEST(softcap_bends_a_score_towards_its_bound)
{
    static const struct {
        float score, softcap;
        double expected;
    } cases[] = {
        {2.0f, 1.0f, 0.96402758007581688},   /* tanh 2 */
        {-30.0f, 50.0f, -26.85247834990179}, /* 50 tanh -0.6 */
        {1e30f, 5.0f, 5.0},
        {INFINITY, 5.0f, 5.0}, /* capped, and so a score like any other */
        {-INFINITY, 5.0f, -5.0},
        {3.0f, 0.0f, 3.0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        set_scores(&cases[i].score, 1);
        attention.softcap = cases[i].softcap;
        run();
        ASSERT_VALUE(lse[0], cases[i].expected, TOLERANCE_DOUBLE);
    }
}
END_TEST

START_TEST(alibi_takes_the_slope_of_the_head_times_the_distance)
{
    static const float slopes[2] = {0.5f, -2.0f};
    static const int32_t positions[4] = {3, 0, INT32_MIN, INT32_MAX};
    static const uint8_t only_key_2[5] = {0, 0, 1, 0, 0};

    set_problem(1, 4, 2, 1, 8, 8, 5);
    fill(q, num_rows() * 8, 0.0f);
    attention.alibi = 1;
    attention.mask = CLFD_MASK_BOOL;
    attention.mask_strides.key = 1;
    tensors.alibi = slopes;
    tensors.mask = only_key_2;
    run(); /* positions 1 .. 4, and key 2 */
    for (size_t query = 0; query < 4; query++) {
        const double distance = query == 0 ? 1.0 : (double)query - 1.0;
        ASSERT_VALUE(lse[2 * query], -0.5 * distance, TOLERANCE_EXACT);
        ASSERT_VALUE(lse[2 * query + 1], 2.0 * distance, TOLERANCE_EXACT);
    }
    attention.query_positions = 1;
    tensors.query_positions = positions;
    run();
    ASSERT_VALUE(lse[0], -0.5, TOLERANCE_EXACT);
    ASSERT_VALUE(lse[2], -1.0, TOLERANCE_EXACT);
    ASSERT_VALUE(lse[4], -0.5 * 2147483650.0, TOLERANCE_EXACT);
    ASSERT_VALUE(lse[6], -0.5 * 2147483645.0, TOLERANCE_EXACT);
}
END_TEST

/* 3 -> scale 1/2 -> 1.5 -> softcap 2 -> 2 tanh 0.75 -> ALiBi 0.5 * 2 -> bias 0.25 */
START_TEST(scale_softcap_alibi_and_bias_act_in_this_order)
{
    static const float score = 3.0f, slope = 0.5f, bias = 0.25f;
    static const int32_t position = 2;

    set_scores(&score, 1);
    attention.scale = 0.5f;
    attention.softcap = 2.0f;
    attention.alibi = attention.query_positions = 1;
    attention.bias_type = CLFD_TYPE_F32;
    tensors.alibi = &slope;
    tensors.bias = &bias;
    tensors.query_positions = &position;
    run();
    ASSERT_VALUE(lse[0], 2.0 * 0.63514895238728741 - 1.0 + 0.25, TOLERANCE_DOUBLE);
}
END_TEST

START_TEST(a_bias_is_found_by_all_four_strides_in_both_types)
{
    static const clfd_score_strides strides = {1000, 100, 30, 7};
    static float bias[1400];
    static uint16_t halves[1400];

    set_counting_problem(2, 2, 3, 4);
    fill(bias, 1400, NAN);
    for (size_t i = 0; i < 48; i++) { /* [2][3][2][4] */
        const size_t key = i % 4, query = i / 4 % 2, head = i / 8 % 3, b = i / 24;
        bias[b * 1000 + head * 100 + query * 30 + key * 7] = key == (head + query + b) % 4 ? (float)i : -INFINITY;
    }
    attention.bias_strides = strides;
    for (int type = CLFD_TYPE_F32; type <= CLFD_TYPE_F16; type++) {
        attention.bias_type = (clfd_type)type;
        tensors.bias = type == CLFD_TYPE_F32 ? (void *)bias : (void *)halves;
        ck_assert_int_eq(clfd_convert_from_float(CLFD_TYPE_F16, bias, halves, 1400), CLFD_SUCCESS);
        run();
        for (size_t row = 0; row < 12; row++) { /* [2][2][3] */
            const size_t head = row % 3, query = row / 3 % 2, b = row / 6;
            ASSERT_VALUE(lse[row], (double)(((b * 3 + head) * 2 + query) * 4 + (head + query + b) % 4),
                         TOLERANCE_EXACT);
        }
    }
}
END_TEST

START_TEST(a_dense_bias_is_the_default_and_a_stride_of_0_broadcasts)
{
    static float bias[2 * 3 * 2 * 4];

    set_counting_problem(2, 2, 3, 4);
    attention.bias_type = CLFD_TYPE_F32;
    tensors.bias = bias;
    fill(bias, COUNT(bias), -INFINITY);
    bias[((1 * 3 + 2) * 2 + 1) * 4 + 3] = 5.0f;
    run();
    for (size_t row = 0; row < 12; row++)
        ASSERT_VALUE(lse[row], row == 6 + 3 + 2 ? 5.0 : -INFINITY, TOLERANCE_EXACT);
    attention.bias_strides.head = 1; /* for all sequences, queries and keys */
    bias[0] = 0.0f;
    bias[1] = 1.0f;
    bias[2] = -INFINITY;
    run();
    for (size_t row = 0; row < 12; row++)
        ASSERT_VALUE(lse[row], row % 3 == 2 ? -INFINITY : log(4.0) + (double)(row % 3), TOLERANCE_DOUBLE);
}
END_TEST

/* ---- Which keys are visible -------------------------------------------------------------------------------------- */

START_TEST(causal_window_start_and_positions_leave_these_keys)
{
    static const struct {
        uint32_t causal, window;
        int32_t kv_len, kv_start;
        unsigned counts[3];
        uint32_t query_positions;
        int32_t positions[3];
    } cases[] = {
        {0, 0, 10, 0, {10, 10, 10}, 0, {0}},
        {0, 0, 10, 4, {6, 6, 6}, 0, {0}},
        {0, 0, 10, -4, {10, 10, 10}, 0, {0}},
        {0, 0, 10, INT32_MIN, {10, 10, 10}, 0, {0}},
        {0, 0, 10, 10, {0, 0, 0}, 0, {0}},
        {0, 0, 10, INT32_MAX, {0, 0, 0}, 0, {0}},
        {1, 0, 10, 0, {8, 9, 10}, 0, {0}}, /* positions 7, 8, 9 */
        {1, 0, 10, 8, {0, 1, 2}, 0, {0}},
        {1, 0, 2, 0, {0, 1, 2}, 0, {0}},  /* positions -1, 0, 1 */
        {0, 4, 10, 0, {6, 5, 4}, 0, {0}}, /* keys from 4, 5, 6 */
        {1, 4, 10, 0, {4, 4, 4}, 0, {0}},
        {1, 1, 10, 0, {1, 1, 1}, 0, {0}},
        {1, 4, 10, 6, {2, 3, 4}, 0, {0}},
        {1, 4, 3, 0, {1, 2, 3}, 0, {0}},
        {1, 0x7fffffff, 10, 0, {8, 9, 10}, 0, {0}},
        {1, 4, 10, 0, {3, 0, 4}, 1, {2, 100, 9}},
        {1, 0, 10, 0, {3, 10, 0}, 1, {2, 100, -1}},
        {0, 3, 10, 0, {10, 0, 1}, 1, {2, 12, 11}},
        {1, 0x7fffffff, 10, 0, {0, 9, 1}, 1, {INT32_MIN, INT32_MAX, 0}}, /* of INT32_MAX: keys above 0 */
        {0, 0x7fffffff, 10, 0, {10, 10, 10}, 1, {INT32_MIN, -1, INT32_MAX - 1}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        set_counting_problem(1, 3, 2, 10);
        attention.causal = cases[i].causal;
        attention.window = cases[i].window;
        attention.kv_start = 1;
        tensors.kv_start = &cases[i].kv_start;
        tensors.kv_lens = &cases[i].kv_len;
        attention.query_positions = cases[i].query_positions;
        tensors.query_positions = cases[i].query_positions ? cases[i].positions : NULL;
        run();
        for (size_t row = 0; row < 6; row++)
            EXPECT(compare_value(lse[row], log(cases[i].counts[row / 2]), TOLERANCE_DOUBLE),
                   "case %zu, row %zu: %.3f keys", i, row, exp(lse[row]));
    }
}
END_TEST

START_TEST(each_sequence_has_its_own_start_and_positions)
{
    static const int32_t starts[3] = {1, 4, 0}, positions[6] = {0, 5, 4, 5, 2, 1};
    static const unsigned counts[6] = {0, 5, 1, 2, 3, 2};

    set_counting_problem(3, 2, 1, 6);
    attention.kv_start = attention.query_positions = attention.causal = 1;
    tensors.kv_start = starts;
    tensors.query_positions = positions;
    run();
    for (size_t row = 0; row < 6; row++)
        assert_count(row, counts[row]);
}
END_TEST

START_TEST(a_bool_mask_shows_what_is_not_zero)
{
    static const uint8_t mask[2 * 2 * 5] = {1, 0, 0, 2, 255, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 128, 0, 0};
    static const unsigned counts[4] = {3, 0, 5, 1};
    static const uint8_t sparse[2 * 40 + 3 * 5] = {[0] = 1, [3] = 1, [40] = 1, [43] = 1, [46] = 1};

    set_counting_problem(2, 2, 3, 5);
    attention.mask = CLFD_MASK_BOOL;
    tensors.mask = mask;
    run();
    for (size_t row = 0; row < 12; row++)
        assert_count(row, counts[row / 3]);
    attention.mask_strides = (clfd_score_strides){40, 0, 0, 3}; /* one for all queries */
    tensors.mask = sparse;
    run();
    for (size_t row = 0; row < 12; row++)
        assert_count(row, row < 6 ? 2 : 3);
}
END_TEST

/* The last three keys are the tree 0 -> 1, 0 -> 2; what comes before is everyone's. */
START_TEST(a_tree_mask_shows_the_branch_of_each_query_and_all_earlier_keys)
{
    static const uint32_t trees[6] = {0x1, 0x3, 0xfffffff5, 0x1, 0x0, 0x7};
    static const int32_t lengths[2] = {10, 2};
    static const uint32_t gapped[2 * 8] = {0x1, 0, 0x3, 0, 0x0, 0, 9, 9, 0x7};

    set_counting_problem(2, 3, 1, 10);
    attention.mask = CLFD_MASK_TREE;
    tensors.kv_lens = lengths;
    tensors.mask = trees;
    run();
    for (size_t row = 0; row < 3; row++)
        assert_count(row, 7 + (row == 0 ? 1 : 2));
    /* Of two keys the bits are 1 and 2: bit 0 stands for key -1. */
    assert_count(3, 0);
    assert_count(4, 0);
    assert_count(5, 2);
    attention.mask_strides = (clfd_score_strides){.batch = 8, .query = 2};
    tensors.mask = gapped;
    run();
    assert_count(0, 8);
    assert_count(1, 9);
    assert_count(2, 7);
    assert_count(3, 2);
    assert_count(4, 0);
}
END_TEST

/* ---- Sinks ------------------------------------------------------------------------------------------------------- */

START_TEST(a_sink_takes_weight_and_gives_no_value)
{
    static const float scores[2] = {1.0f, 2.0f}, sink = 3.0f;
    const double l = exp(1.0) + exp(2.0) + exp(3.0);

    set_scores(scores, 2);
    attention.sinks = 1;
    tensors.sinks = &sink;
    run();
    ASSERT_VALUE(lse[0], log(l), TOLERANCE_DOUBLE);
    for (size_t d = 0; d < 8; d++)
        ASSERT_VALUE(out[d], (exp(1.0) * (double)v[d] + exp(2.0) * (double)v[8 + d]) / l, TOLERANCE_DOUBLE);
}
END_TEST

START_TEST(a_row_without_keys_has_the_lse_of_its_sink)
{
    static const float sinks[4] = {-7.5f, -INFINITY, INFINITY, NAN};
    static const int32_t none = 0;

    set_problem(1, 1, 4, 1, 8, 8, 3);
    attention.sinks = 1;
    tensors.sinks = sinks;
    tensors.kv_lens = &none;
    run();
    assert_row(0, 0.0, -7.5);
    assert_row(1, 0.0, -INFINITY);
    assert_row(2, NAN, NAN);
    assert_row(3, NAN, NAN);
}
END_TEST

START_TEST(a_sink_of_minus_infinity_is_none_and_a_far_greater_one_takes_all)
{
    static const float none[2] = {-INFINITY, -INFINITY}, huge[2] = {1e30f, 2000.0f};

    set_problem(2, 1, 2, 1, 8, 8, 5);
    keep();
    attention.sinks = 1;
    tensors.sinks = none;
    assert_kept();
    tensors.sinks = huge;
    run();
    for (size_t row = 0; row < 4; row++)
        assert_row(row, 0.0, row % 2 == 0 ? (double)1e30f : 2000.0);
}
END_TEST

/* ---- What is hidden is not used ---------------------------------------------------------------------------------- */

START_TEST(bias_and_mask_of_hidden_keys_and_hidden_keys_themselves_may_hold_anything)
{
    static const float poisons[] = {NAN, INFINITY};
    static float bias[2 * 12];
    static uint8_t mask[2 * 12];
    static const int32_t length = 10, start = 2;

    set_problem(1, 2, 1, 1, 8, 8, 12);
    attention.causal = attention.kv_start = 1;
    attention.window = 6;
    attention.mask = CLFD_MASK_BOOL;
    attention.bias_type = CLFD_TYPE_F32;
    tensors.kv_lens = &length;
    tensors.kv_start = &start;
    tensors.bias = bias;
    tensors.mask = mask;
    for (int j = 0; j < 24; j++) {
        bias[j] = 0.01f * (float)j;
        mask[j] = j % 12 != 6; /* key 6 is hidden from both queries */
    }
    keep(); /* query 0 sees keys 3 .. 8, query 1 sees 4 .. 9, both without 6 */
    for (size_t i = 0; i < COUNT(poisons); i++) {
        for (int j = 0; j < 24; j++) {
            const int key = j % 12, first = j < 12 ? 3 : 4;
            if (key < first || key > first + 5 || key == 6)
                bias[j] = poisons[i];
            if (key < first || key > first + 5)
                mask[j] = 7;
        }
        for (int j = 0; j < 12; j++)
            if (j < 3 || j > 9 || j == 6) {
                fill(k + j * 8, 8, poisons[i]);
                fill(v + j * 8, 8, poisons[i]);
            }
        assert_kept();
    }
}
END_TEST

START_TEST(a_bias_of_minus_infinity_hides_a_key_and_its_value)
{
    static float bias[3] = {0.0f, -INFINITY, 0.0f};

    set_counting_problem(1, 1, 1, 3);
    attention.bias_type = CLFD_TYPE_F32;
    tensors.bias = bias;
    fill(v + 8, 8, NAN);
    fill(v, 8, 1.0f);
    fill(v + 16, 8, 3.0f);
    run();
    assert_row(0, 2.0, log(2.0));
}
END_TEST

/* ---- Everything at once ------------------------------------------------------------------------------------------ */

/* The options of one drawn problem as plain arrays, and what they make of one score: -inf where the key is hidden. */
static struct drawn {
    int n[2], start[2], position[2][3];
    float slopes[4], bias[2][4][3][20], sinks[4];
    uint8_t shown[2][3][20];
    uint32_t tree[2][3];
    int32_t lens[2], starts[2], positions[6];
} drawn;

static long double expected_score(int b, int h, int i, int j)
{
    const int p = drawn.position[b][i], old = drawn.n[b] - 3;
    long double s = 0.0L;

    for (int d = 0; d < 8; d++)
        s += (long double)q[((b * 3 + i) * 4 + h) * 8 + d] * (long double)k[((b * 20 + j) * 2 + h / 2) * 8 + d];
    s *= (long double)attention.scale;
    if (attention.softcap > 0.0f)
        s = (long double)attention.softcap * tanhl(s / (long double)attention.softcap);
    if (attention.alibi)
        s += (long double)drawn.slopes[h] * (long double)(j < p ? j - p : p - j);
    if (attention.bias_type != CLFD_TYPE_DEFAULT)
        s += (long double)drawn.bias[b][h][i][j];
    const bool hidden = (attention.causal && p < j) || (attention.window > 0 && p - j >= (int)attention.window) ||
                        (attention.kv_start && j < drawn.start[b]) ||
                        (attention.mask == CLFD_MASK_BOOL && !drawn.shown[b][i][j]) ||
                        (attention.mask == CLFD_MASK_TREE && j >= old && !(drawn.tree[b][i] & 1u << (j - old)));
    return hidden ? -INFINITY : s;
}

static void draw(random_source *source)
{
    set_problem(2, 3, 4, 2, 8, 16, 20);
    attention.causal = random_below(source, 2);
    attention.window = random_below(source, 2) * (1 + random_below(source, 15));
    attention.softcap = (float)random_below(source, 2) * 1.5f;
    attention.alibi = random_below(source, 2);
    attention.sinks = random_below(source, 2);
    attention.kv_start = random_below(source, 2);
    attention.query_positions = random_below(source, 2);
    attention.bias_type = random_below(source, 2) ? CLFD_TYPE_F32 : CLFD_TYPE_DEFAULT;
    attention.mask = (clfd_mask)random_below(source, 3);
    for (int b = 0; b < 2; b++) {
        drawn.n[b] = drawn.lens[b] = (int32_t)random_below(source, 21);
        drawn.start[b] = drawn.starts[b] = (int32_t)random_below(source, 12) - 3;
        for (int i = 0; i < 3; i++) {
            drawn.positions[b * 3 + i] = (int32_t)random_below(source, 30) - 4;
            drawn.position[b][i] = attention.query_positions ? drawn.positions[b * 3 + i] : drawn.n[b] - 3 + i;
            drawn.tree[b][i] = (uint32_t)random_bits(source);
            for (int j = 0; j < 20; j++)
                drawn.shown[b][i][j] = (uint8_t)(random_below(source, 4) > 0);
        }
    }
    random_fill_normal(source, drawn.slopes, 4, 0.2f);
    random_fill_normal(source, drawn.sinks, 4, 1.0f);
    random_fill_normal(source, &drawn.bias[0][0][0][0], 2 * 4 * 3 * 20, 1.0f);
    tensors.kv_lens = drawn.lens;
    tensors.kv_start = attention.kv_start ? drawn.starts : NULL;
    tensors.query_positions = attention.query_positions ? drawn.positions : NULL;
    tensors.alibi = attention.alibi ? drawn.slopes : NULL;
    tensors.sinks = attention.sinks ? drawn.sinks : NULL;
    tensors.bias = attention.bias_type != CLFD_TYPE_DEFAULT ? &drawn.bias : NULL;
    tensors.mask = attention.mask == CLFD_MASK_BOOL   ? (void *)drawn.shown
                   : attention.mask == CLFD_MASK_TREE ? (void *)drawn.tree
                                                      : NULL;
}

START_TEST(all_options_together_equal_a_plain_loop)
{
    random_source source = {20261201};
    int rows_with_keys = 0;

    for (int round = 0; round < 2000; round++) {
        draw(&source);
        run();
        for (int row = 0; row < 24; row++) {
            const int h = row % 4, i = row / 4 % 3, b = row / 12;
            long double sums[16] = {0}, l = attention.sinks ? expl((long double)drawn.sinks[h]) : 0.0L;
            double expected[16];
            for (int j = 0; j < drawn.n[b]; j++) {
                const long double weight = expl(expected_score(b, h, i, j));
                rows_with_keys += weight > 0.0L;
                l += weight;
                for (int d = 0; d < 16; d++)
                    sums[d] += weight * (long double)v[((b * 20 + j) * 2 + h / 2) * 16 + d];
            }
            for (int d = 0; d < 16; d++)
                expected[d] = l > 0.0L ? (double)(sums[d] / l) : 0.0;
            ASSERT_DOUBLES(out + row * 16, expected, 16, TOLERANCE_DOUBLE);
            ASSERT_VALUE(lse[row], l > 0.0L ? (double)logl(l) : -INFINITY, TOLERANCE_DOUBLE);
        }
    }
    ck_assert_int_gt(rows_with_keys, 2000);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        softcap_bends_a_score_towards_its_bound,
        alibi_takes_the_slope_of_the_head_times_the_distance,
        scale_softcap_alibi_and_bias_act_in_this_order,
        a_bias_is_found_by_all_four_strides_in_both_types,
        a_dense_bias_is_the_default_and_a_stride_of_0_broadcasts,
        causal_window_start_and_positions_leave_these_keys,
        each_sequence_has_its_own_start_and_positions,
        a_bool_mask_shows_what_is_not_zero,
        a_tree_mask_shows_the_branch_of_each_query_and_all_earlier_keys,
        a_sink_takes_weight_and_gives_no_value,
        a_row_without_keys_has_the_lse_of_its_sink,
        a_sink_of_minus_infinity_is_none_and_a_far_greater_one_takes_all,
        bias_and_mask_of_hidden_keys_and_hidden_keys_themselves_may_hold_anything,
        a_bias_of_minus_infinity_hides_a_key_and_its_value,
        all_options_together_equal_a_plain_loop,
    };
    return run_suite("reference_score", tests, COUNT(tests));
}

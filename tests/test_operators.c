/* The operators on softmax states on the host: textbook values, the algebra of the merge, empty and invalid states. */
#include "support/compare.h"
#include "support/random.h"
#include "support/suite.h"
#include <clfd/clfd.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MAX_KEYS 200
#define MAX_DIM 300
#define MAX_STATES 16

/* Keys with their values, and the state of all of them by the definition, in double precision. */
static struct problem {
    size_t num_keys, dim;
    float scores[MAX_KEYS];
    float v[MAX_KEYS * MAX_DIM];
    double lse, o[MAX_DIM];
} problem;

static void define_result(void)
{
    double max = -INFINITY, sum = 0.0;

    for (size_t j = 0; j < problem.num_keys; j++)
        max = fmax(max, (double)problem.scores[j]);
    for (size_t d = 0; d < problem.dim; d++)
        problem.o[d] = 0.0;
    for (size_t j = 0; j < problem.num_keys; j++) {
        const double weight = exp((double)problem.scores[j] - max);
        sum += weight;
        for (size_t d = 0; d < problem.dim; d++)
            problem.o[d] += weight * (double)problem.v[j * problem.dim + d];
    }
    for (size_t d = 0; d < problem.dim; d++)
        problem.o[d] /= sum;
    problem.lse = max + log(sum);
}

static void draw_problem(uint64_t seed, size_t num_keys, size_t dim)
{
    random_source source = {seed};

    problem.num_keys = num_keys;
    problem.dim = dim;
    random_fill_normal(&source, problem.scores, num_keys, 3.0f);
    random_fill_normal(&source, problem.v, num_keys * dim, 1.0f);
    define_result();
}

/* States to be merged, with a NaN in whatever must not be used: the o of empty states, the gaps between rows. */
static struct states {
    size_t num_states, dim, stride;
    float m[MAX_STATES], l[MAX_STATES], lse[MAX_STATES], o[MAX_STATES * MAX_DIM];
} states;

static void draw_empty_states(size_t num_states, size_t dim, size_t stride)
{
    states.num_states = num_states;
    states.dim = dim;
    states.stride = stride;
    for (size_t i = 0; i < num_states; i++) {
        states.m[i] = states.lse[i] = -INFINITY;
        states.l[i] = 0.0f;
    }
    for (size_t i = 0; i < num_states * stride; i++)
        states.o[i] = NAN;
}

/* The problem's keys dealt out in consecutive shares; with more states than keys some stay empty. */
static void draw_states(size_t num_states, size_t stride)
{
    draw_empty_states(num_states, problem.dim, stride);
    for (size_t i = 0; i < num_states; i++) {
        const size_t begin = problem.num_keys * i / num_states, end = problem.num_keys * (i + 1) / num_states;
        for (size_t j = begin; j < end; j++)
            clfd_state_update(&states.m[i], &states.l[i], states.o + i * stride, problem.dim, problem.scores[j],
                              problem.v + j * problem.dim);
        states.lse[i] = clfd_state_lse(states.m[i], states.l[i]);
    }
}

/* What a merged state must be: one of the three functions below. */
typedef void check_state(const float *o, size_t dim, float m, float l, float lse);

static void check_result(const float *o, size_t dim, float m, float l, float lse)
{
    (void)m, (void)l;
    ASSERT_FLOATS(o, problem.o, dim, TOLERANCE_STATE);
    ASSERT_VALUE((double)lse, problem.lse, TOLERANCE_STATE);
}

static void check_empty(const float *o, size_t dim, float m, float l, float lse)
{
    const float zeros[MAX_DIM] = {0};

    ck_assert_mem_eq(o, zeros, dim * sizeof *o);
    ck_assert(m == -INFINITY && l == 0.0f && lse == -INFINITY);
}

static void check_nan(const float *o, size_t dim, float m, float l, float lse)
{
    for (size_t d = 0; d < dim; d++)
        EXPECT(isnan(o[d]), "o[%zu] is %g", d, (double)o[d]);
    ck_assert(isnan(m) && isnan(l) && isnan(lse));
}

static void check_lse_form(check_state *check, const float *o, size_t dim, float lse)
{
    const float l = isnan(lse) ? NAN : lse == -INFINITY ? 0.0f : 1.0f; /* S is m of a state with l = 1 */
    check(o, dim, lse, l, lse);
}

static void check_mlo_form(check_state *check, const float *o, size_t dim, float m, float l)
{
    check(o, dim, m, l, clfd_state_lse(m, l));
}

/* Merges all states in each of the ways that there are; the tree comes last as it overwrites them. */
static void merge_in_every_way(check_state *check)
{
    const size_t n = states.num_states, dim = states.dim, stride = states.stride;
    float out[MAX_DIM], lse, m, l;

    memset(out, 0xff, sizeof out);
    clfd_merge_lse(n, states.o, stride, states.lse, dim, out, &lse);
    check_lse_form(check, out, dim, lse);
    for (size_t rank = 0; rank < n; rank++) {
        memset(out, 0xff, sizeof out);
        clfd_merge_ring_lse(n, rank, states.o, stride, states.lse, dim, out, &lse);
        check_lse_form(check, out, dim, lse);
    }
    memset(out, 0xff, sizeof out);
    clfd_merge_mlo_sequential(n, states.o, stride, states.m, states.l, dim, out, &m, &l);
    check_mlo_form(check, out, dim, m, l);
    clfd_merge_mlo_tree(n, states.o, stride, states.m, states.l, dim);
    if (n > 0)
        check_mlo_form(check, states.o, dim, states.m[0], states.l[0]);
    for (size_t i = 0; i < n * stride; i++)
        EXPECT(i % stride < dim || isnan(states.o[i]), "the tree wrote [%zu], which lies between two rows", i);
}

/* NaN of both signs, and an infinity: no score and no statistic of a state. */
static const float invalid_numbers[] = {NAN, -NAN, INFINITY};
#define NUM_INVALID 3

/* ---- Growing by keys --------------------------------------------------------------------------------------------- */

START_TEST(softmax_of_1_2_and_a_half_runs_through_the_textbook_values)
{
    static const float scores[3] = {1.0f, 2.0f, 0.5f};
    static const double ms[3] = {1.0, 2.0, 2.0}, ls[3] = {1.0, 1.3679, 1.5910}, weights[3] = {0.231, 0.629, 0.140};
    float m = -INFINITY, l = 0.0f;

    for (int j = 0; j < 3; j++) {
        clfd_state_update(&m, &l, NULL, 0, scores[j], NULL);
        ASSERT_VALUE((double)m, ms[j], TOLERANCE_EXACT);
        ASSERT_VALUE((double)l, ls[j], TOLERANCE_PRINTED4);
    }
    for (int j = 0; j < 3; j++)
        ASSERT_VALUE(exp((double)scores[j] - (double)m) / (double)l, weights[j], TOLERANCE_PRINTED3);
}
END_TEST

START_TEST(three_keys_run_through_the_textbook_values)
{
    static const float q[4] = {.1f, .2f, .3f, .4f};
    static const float k[3][4] = {{.5f, .1f, .3f, .2f}, {.2f, .6f, .1f, .4f}, {.3f, .2f, .7f, .1f}};
    static const float v[3][4] = {{.1f, .2f, .3f, .4f}, {.5f, .4f, .3f, .2f}, {.2f, .6f, .1f, .5f}};
    /* The third score is 0.5 * (0.03 + 0.04 + 0.21 + 0.04) = 0.16. */
    static const double scores[3] = {0.12, 0.165, 0.16}, ms[3] = {0.12, 0.165, 0.165}, ls[3] = {1.0, 1.9560, 2.9510};
    static const double os[3][4] = {{.1, .2, .3, .4}, {.304, .302, .300, .298}, {.269, .403, .233, .366}};
    float m = -INFINITY, l = 0.0f, o[4];

    for (int j = 0; j < 3; j++) {
        float score = 0.0f;
        for (int d = 0; d < 4; d++)
            score += 0.5f * q[d] * k[j][d];
        ASSERT_VALUE((double)score, scores[j], TOLERANCE_STATE);
        clfd_state_update(&m, &l, o, 4, score, v[j]);
        ASSERT_VALUE((double)m, ms[j], TOLERANCE_STATE);
        ASSERT_VALUE((double)l, ls[j], TOLERANCE_PRINTED4);
        ASSERT_FLOATS(o, os[j], 4, TOLERANCE_PRINTED3);
    }
}
END_TEST

START_TEST(lse_of_1_2_3_is_3_4076_and_large_scores_do_not_overflow)
{
    static const struct {
        float scores[3];
        double lse;
        compare_tolerance tolerance;
    } rows[] = {
        {{1.0f, 2.0f, 3.0f}, 3.4076, TOLERANCE_PRINTED4},
        {{100.0f, 100.0f, 100.0f}, 100.0 + 1.0986122886681098, TOLERANCE_STATE},
        {{1e30f, 1e30f, 0.0f}, 1e30, TOLERANCE_STATE},
        {{-1e30f, -1e30f, -3e38f}, -1e30, TOLERANCE_STATE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        float m = -INFINITY, l = 0.0f, lse;
        clfd_state_update_tile(&m, &l, NULL, 0, 3, rows[i].scores, NULL, 0);
        ASSERT_VALUE((double)clfd_state_lse(m, l), rows[i].lse, rows[i].tolerance);
        clfd_merge_lse(3, NULL, 0, rows[i].scores, 0, NULL, &lse);
        ASSERT_VALUE((double)lse, rows[i].lse, rows[i].tolerance);
    }
}
END_TEST

/* A maximum below any finite "minus infinity" that a sentinel could be, and a key 5000 above all others. */
START_TEST(no_finite_score_is_taken_for_minus_infinity)
{
    static const float bases[] = {0.0f, -45000.0f, -50000.0f, -55000.0f, -60000.0f, -65000.0f, -65504.0f, -1e5f, -1e6f};

    for (size_t b = 0; b < sizeof bases / sizeof bases[0]; b++) {
        float m = -INFINITY, l = 0.0f, o[2], first_lse, lse;
        const float first[2] = {3.0f, -4.0f}, other[2] = {1.0f, 1.0f};
        clfd_state_update(&m, &l, o, 2, bases[b] + 5000.0f, first);
        first_lse = clfd_state_lse(m, l);
        for (int j = 1; j < 64; j++)
            clfd_state_update(&m, &l, o, 2, bases[b], other);
        ck_assert_mem_eq(o, first, sizeof first);
        ck_assert(clfd_state_lse(m, l) == bases[b] + 5000.0f);
        clfd_merge_pair_lse(other, bases[b], first, first_lse, 2, o, &lse);
        ck_assert_mem_eq(o, first, sizeof first);
        ck_assert(lse == bases[b] + 5000.0f);
    }
}
END_TEST

START_TEST(a_tile_equals_its_keys_one_by_one)
{
    static const size_t tiles[] = {1, 2, 7, 64, 97};

    draw_problem(1, 97, 130);
    for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++) {
        float m = -INFINITY, l = 0.0f, o[130];
        for (size_t begin = 0; begin < 97; begin += tiles[t])
            clfd_state_update_tile(&m, &l, o, 130, begin + tiles[t] < 97 ? tiles[t] : 97 - begin,
                                   problem.scores + begin, problem.v + begin * 130, 130);
        check_mlo_form(check_result, o, problem.dim, m, l);
    }
}
END_TEST

START_TEST(keys_of_score_minus_infinity_change_no_bit_and_their_values_are_not_used)
{
    const float scores[3] = {-INFINITY, -INFINITY, -INFINITY}, v[3] = {NAN, INFINITY, -INFINITY};
    float m = 0.7f, l = 1.9f, o = -0.3f;

    clfd_state_update(&m, &l, &o, 1, -INFINITY, v);
    clfd_state_update_tile(&m, &l, &o, 1, 3, scores, v, 1);
    ck_assert(m == 0.7f && l == 1.9f && o == -0.3f);
    m = -INFINITY;
    l = 0.0f;
    o = NAN;
    clfd_state_update_tile(&m, &l, &o, 1, 3, scores, v, 1);
    ck_assert(m == -INFINITY && l == 0.0f && o == 0.0f);
}
END_TEST

START_TEST(any_number_of_streams_equals_one_pass)
{
    static const size_t counts[] = {1, 2, 3, 8, 16}, tiles[] = {1, 5, 16, 103, 1000}, lengths[] = {1, 2, 103};
    float m[MAX_STATES], l[MAX_STATES], o[MAX_STATES * 40], lse, out[40];

    for (size_t n = 0; n < sizeof lengths / sizeof lengths[0]; n++) {
        draw_problem(2 + n, lengths[n], 40);
        for (size_t s = 0; s < sizeof counts / sizeof counts[0]; s++)
            for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++) {
                memset(o, 0xff, sizeof o);
                clfd_state_streams(counts[s], tiles[t], 40, problem.num_keys, problem.scores, problem.v, 40, m, l, o,
                                   &lse, out);
                check_lse_form(check_result, out, problem.dim, lse);
            }
    }
    clfd_state_streams(4, 8, 40, 0, NULL, NULL, 40, m, l, o, &lse, out);
    check_lse_form(check_empty, out, 40, lse);
}
END_TEST

START_TEST(tile_t_belongs_to_stream_t_mod_n)
{
    static const float scores[5] = {1, 2, 3, 4, 5};
    float m[2], l[2], lse;

    clfd_state_streams(2, 1, 0, 5, scores, NULL, 0, m, l, NULL, &lse, NULL);
    ASSERT_VALUE((double)clfd_state_lse(m[0], l[0]), log(exp(1) + exp(3) + exp(5)), TOLERANCE_STATE);
    ASSERT_VALUE((double)clfd_state_lse(m[1], l[1]), log(exp(2) + exp(4)), TOLERANCE_STATE);
}
END_TEST

/* ---- Merging ----------------------------------------------------------------------------------------------------- */

START_TEST(outputs_0_and_1_of_weights_2_and_8_merge_to_four_fifths)
{
    const float o[2] = {0.0f, 1.0f}, lses[2] = {logf(2.0f), logf(8.0f)}, ls[2] = {2.0f, 8.0f};
    float out, lse, m, l;

    clfd_merge_pair_lse(&o[0], lses[0], &o[1], lses[1], 1, &out, &lse);
    ASSERT_VALUE((double)out, 0.8, TOLERANCE_STATE);
    ASSERT_VALUE((double)lse, log(10.0), TOLERANCE_STATE);
    clfd_merge_lse(2, o, 1, lses, 1, &out, &lse);
    ASSERT_VALUE((double)out, 0.8, TOLERANCE_STATE);
    ASSERT_VALUE((double)lse, log(10.0), TOLERANCE_STATE);
    clfd_merge_pair_mlo(&o[0], 0.0f, ls[0], &o[1], 0.0f, ls[1], 1, &out, &m, &l);
    ASSERT_VALUE((double)out, 0.8, TOLERANCE_STATE);
    ck_assert(m == 0.0f && l == 10.0f);
}
END_TEST

/* Dims below, at and above the chunk that the operators work in; states with empty ones among them. */
START_TEST(two_step_ring_sequence_and_tree_equal_one_pass)
{
    static const size_t dims[] = {1, 8, 127, 128, 129, 300}, lengths[] = {1, 7, 50}, counts[] = {1, 2, 3, 4, 7, 13, 16};

    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (size_t i = 0; i < 18; i++) {
            draw_problem(10 + i, lengths[i / 6], dims[i % 6]);
            draw_states(counts[c], problem.dim);
            merge_in_every_way(check_result);
        }
}
END_TEST

START_TEST(splits_without_a_key_stay_out_of_the_result)
{
    for (size_t kv_len = 1; kv_len <= 8; kv_len++) {
        draw_problem(40 + kv_len, kv_len, 16);
        draw_states(4, 16);
        merge_in_every_way(check_result);
    }
}
END_TEST

START_TEST(what_lies_between_the_rows_is_neither_read_nor_written)
{
    enum { DIM = 5, STRIDE = 9, KEYS = 6 };
    float v[KEYS * STRIDE], o[DIM], m = -INFINITY, l = 0.0f;

    draw_problem(7, KEYS, DIM);
    for (size_t i = 0; i < KEYS * STRIDE; i++)
        v[i] = i % STRIDE < DIM ? problem.v[i / STRIDE * DIM + i % STRIDE] : NAN;
    clfd_state_update_tile(&m, &l, o, DIM, KEYS, problem.scores, v, STRIDE);
    check_mlo_form(check_result, o, DIM, m, l);
    draw_states(4, STRIDE);
    merge_in_every_way(check_result);
}
END_TEST

/* The rounding of lse between two steps shows the order in the last bit, for some of the draws. */
START_TEST(the_ring_takes_its_own_shard_first_and_then_those_before_it)
{
    enum { RANKS = 5 };
    random_source source = {11};
    int telling = 0;

    for (int draw = 0; draw < 100; draw++)
        for (size_t rank = 0; rank < RANKS; rank++) {
            float lses[RANKS], lse, upwards;
            random_fill_normal(&source, lses, RANKS, 2.0f);
            float downwards = upwards = lses[rank];
            for (size_t s = 1; s < RANKS; s++) {
                clfd_merge_pair_lse(NULL, downwards, NULL, lses[(rank + RANKS - s) % RANKS], 0, NULL, &downwards);
                clfd_merge_pair_lse(NULL, upwards, NULL, lses[(rank + s) % RANKS], 0, NULL, &upwards);
            }
            clfd_merge_ring_lse(RANKS, rank, NULL, 0, lses, 0, NULL, &lse);
            EXPECT(lse == downwards, "rank %zu: %.9g instead of %.9g", rank, (double)lse, (double)downwards);
            telling += upwards != downwards;
        }
    ck_assert_int_gt(telling, 0);
}
END_TEST

START_TEST(the_pairwise_merge_is_commutative_and_associative)
{
    enum { DIM = 20 };
    float ab[DIM], ba[DIM], bc[DIM], S, S2, m, l, m2, l2;

    for (uint64_t seed = 0; seed < 50; seed++) {
        draw_problem(100 + seed, 12, DIM);
        draw_states(3, DIM);
        const float *a = states.o, *b = a + DIM, *c = b + DIM, *lse = states.lse, *ms = states.m, *ls = states.l;

        clfd_merge_pair_lse(a, lse[0], b, lse[1], DIM, ab, &S);
        clfd_merge_pair_lse(b, lse[1], a, lse[0], DIM, ba, &S2);
        ck_assert_mem_eq(ab, ba, sizeof ab);
        ck_assert(S == S2);
        clfd_merge_pair_lse(ab, S, c, lse[2], DIM, ab, &S);
        check_lse_form(check_result, ab, DIM, S);
        clfd_merge_pair_lse(b, lse[1], c, lse[2], DIM, bc, &S);
        clfd_merge_pair_lse(a, lse[0], bc, S, DIM, bc, &S);
        check_lse_form(check_result, bc, DIM, S);

        clfd_merge_pair_mlo(a, ms[0], ls[0], b, ms[1], ls[1], DIM, ab, &m, &l);
        clfd_merge_pair_mlo(b, ms[1], ls[1], a, ms[0], ls[0], DIM, ba, &m2, &l2);
        ck_assert_mem_eq(ab, ba, sizeof ab);
        ck_assert(m == m2 && l == l2);
        clfd_merge_pair_mlo(ab, m, l, c, ms[2], ls[2], DIM, ab, &m, &l);
        check_mlo_form(check_result, ab, DIM, m, l);
        clfd_merge_pair_mlo(b, ms[1], ls[1], c, ms[2], ls[2], DIM, bc, &m, &l);
        clfd_merge_pair_mlo(a, ms[0], ls[0], bc, m, l, DIM, bc, &m, &l);
        check_mlo_form(check_result, bc, DIM, m, l);
    }
}
END_TEST

START_TEST(the_result_may_replace_either_side_of_a_pair)
{
    enum { DIM = 260 };
    float merged[DIM], sides[2][DIM], S, m, l;

    draw_problem(5, 30, DIM);
    for (int replaced = 0; replaced < 2; replaced++) {
        draw_states(2, DIM);
        const float *lse = states.lse, *ms = states.m, *ls = states.l;
        memcpy(sides, states.o, sizeof sides);
        clfd_merge_pair_lse(sides[0], lse[0], sides[1], lse[1], DIM, merged, &S);
        clfd_merge_pair_lse(sides[0], lse[0], sides[1], lse[1], DIM, sides[replaced], &states.lse[replaced]);
        ck_assert_mem_eq(sides[replaced], merged, sizeof merged);
        ck_assert(S == states.lse[replaced]);
        memcpy(sides, states.o, sizeof sides);
        clfd_merge_pair_mlo(sides[0], ms[0], ls[0], sides[1], ms[1], ls[1], DIM, merged, &m, &l);
        clfd_merge_pair_mlo(sides[0], ms[0], ls[0], sides[1], ms[1], ls[1], DIM, sides[replaced], &states.m[replaced],
                            &states.l[replaced]);
        ck_assert_mem_eq(sides[replaced], merged, sizeof merged);
        ck_assert(m == states.m[replaced] && l == states.l[replaced]);
    }
}
END_TEST

/* ---- Empty and invalid states ------------------------------------------------------------------------------------ */

/* -0, a subnormal, the extremes: every bit counts. */
START_TEST(merging_with_an_empty_state_gives_the_other_one_bit_for_bit)
{
    enum { DIM = 6 };
    static const float kept[DIM] = {-0.0f, 0x1p-149f, -0x1.fffffep127f, 1.0f, 0.1f, INFINITY};
    static const float stats[] = {0.0f, 0x1p-149f, 1.0f, -1e6f, 3e38f, 0.1f};
    const float garbage[DIM] = {NAN, NAN, INFINITY, -INFINITY, NAN, 1.0f};
    float o[DIM], lse, m, l;

    for (size_t i = 0; i < sizeof stats / sizeof stats[0]; i++)
        for (int order = 0; order < 2; order++) {
            const float s = stats[i], weight = 0.1f + fabsf(s);
            const float *o1 = order ? kept : garbage, *o2 = order ? garbage : kept;
            const float s1 = order ? s : -INFINITY, s2 = order ? -INFINITY : s;
            clfd_merge_pair_lse(o1, s1, o2, s2, DIM, o, &lse);
            ck_assert_mem_eq(o, kept, sizeof kept);
            ck_assert(lse == s);
            clfd_merge_pair_mlo(o1, s1, order ? weight : 0.0f, o2, s2, order ? 0.0f : weight, DIM, o, &m, &l);
            ck_assert_mem_eq(o, kept, sizeof kept);
            ck_assert(m == s && l == weight);
        }
}
END_TEST

START_TEST(merging_empty_states_only_gives_the_empty_state)
{
    float o[64], lse, m, l;

    for (size_t n = 0; n <= 5; n++) {
        draw_empty_states(n, 64, 64);
        merge_in_every_way(check_empty);
    }
    draw_empty_states(2, 64, 64);
    clfd_merge_pair_lse(states.o, -INFINITY, states.o + 64, -INFINITY, 64, o, &lse);
    check_lse_form(check_empty, o, 64, lse);
    clfd_merge_pair_mlo(states.o, -INFINITY, 0.0f, states.o + 64, -INFINITY, 0.0f, 64, o, &m, &l);
    check_mlo_form(check_empty, o, 64, m, l);
}
END_TEST

START_TEST(an_invalid_score_or_state_makes_everything_nan)
{
    const float valid[2] = {1.0f, 2.0f}, others[2] = {0.5f, -INFINITY}; /* an ordinary state and the empty one */
    float o[2], lse, m, l;

    for (int i = 0; i < NUM_INVALID * 4; i++) {
        const float bad = invalid_numbers[i / 4], other = others[i / 2 % 2];
        const float first = i % 2 ? bad : other, second = i % 2 ? other : bad;
        memcpy(o, valid, sizeof o);
        m = other;
        l = 1.0f;
        clfd_state_update(&m, &l, o, 2, bad, valid);
        check_mlo_form(check_nan, o, 2, m, l);
        clfd_merge_pair_lse(valid, first, valid, second, 2, o, &lse);
        check_lse_form(check_nan, o, 2, lse);
        clfd_merge_pair_mlo(valid, first, 1.0f, valid, second, 1.0f, 2, o, &m, &l);
        check_mlo_form(check_nan, o, 2, m, l);
        clfd_merge_pair_mlo(valid, 0.0f, i % 2 ? bad : 1.0f, valid, other, i % 2 ? 1.0f : bad, 2, o, &m, &l);
        check_mlo_form(check_nan, o, 2, m, l);
    }
}
END_TEST

START_TEST(an_invalid_state_anywhere_among_many_makes_everything_nan)
{
    for (size_t bad = 0; bad < 5; bad++) {
        draw_problem(3, 20, 3);
        draw_states(5, 3);
        states.m[bad] = states.lse[bad] = invalid_numbers[bad % NUM_INVALID];
        merge_in_every_way(check_nan);
    }
}
END_TEST

START_TEST(the_lse_of_a_pair_is_natural_and_guards_the_empty_state)
{
    ASSERT_VALUE((double)clfd_state_lse(2.0f, 10.0f), 2.0 + log(10.0), TOLERANCE_STATE);
    ck_assert(clfd_state_lse(-INFINITY, 0.0f) == -INFINITY);
    for (int i = 0; i < NUM_INVALID; i++) {
        ck_assert(isnan(clfd_state_lse(invalid_numbers[i], 1.0f)));
        ck_assert(isnan(clfd_state_lse(0.0f, invalid_numbers[i])));
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        softmax_of_1_2_and_a_half_runs_through_the_textbook_values,
        three_keys_run_through_the_textbook_values,
        lse_of_1_2_3_is_3_4076_and_large_scores_do_not_overflow,
        no_finite_score_is_taken_for_minus_infinity,
        a_tile_equals_its_keys_one_by_one,
        keys_of_score_minus_infinity_change_no_bit_and_their_values_are_not_used,
        any_number_of_streams_equals_one_pass,
        tile_t_belongs_to_stream_t_mod_n,
        outputs_0_and_1_of_weights_2_and_8_merge_to_four_fifths,
        two_step_ring_sequence_and_tree_equal_one_pass,
        splits_without_a_key_stay_out_of_the_result,
        what_lies_between_the_rows_is_neither_read_nor_written,
        the_ring_takes_its_own_shard_first_and_then_those_before_it,
        the_pairwise_merge_is_commutative_and_associative,
        the_result_may_replace_either_side_of_a_pair,
        merging_with_an_empty_state_gives_the_other_one_bit_for_bit,
        merging_empty_states_only_gives_the_empty_state,
        an_invalid_score_or_state_makes_everything_nan,
        an_invalid_state_anywhere_among_many_makes_everything_nan,
        the_lse_of_a_pair_is_natural_and_guards_the_empty_state,
    };
    return run_suite("operators", tests, sizeof tests / sizeof tests[0]);
}

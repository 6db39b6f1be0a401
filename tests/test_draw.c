#include "plan/check.h"
#include "support/log.h"
#include "support/suite.h"
#include "verify_draw.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUM_DRAWN 1500
#define NUM_PROGRAMS 150

static draw_space space, other;
static verify_trial trial;

static void tear_down(void)
{
    draw_space_close(&space);
    draw_space_close(&other);
}

static bool strides_equal(const clfd_strides *a, const clfd_strides *b)
{
    return a->batch == b->batch && a->token == b->token && a->head == b->head;
}

static bool score_strides_equal(const clfd_score_strides *a, const clfd_score_strides *b)
{
    return a->batch == b->batch && a->head == b->head && a->query == b->query && a->key == b->key;
}

/* The tool's own idea of the defaults is the library's. */
static void expect_layout(const clfd_attention *complete)
{
    const unsigned number = (unsigned)trial.number;

    EXPECT(strides_equal(&trial.q, &complete->q_strides), "problem %u: strides of q", number);
    EXPECT(strides_equal(&trial.k, &complete->k_strides), "problem %u: strides of k", number);
    EXPECT(complete->v_from_k || strides_equal(&trial.v, &complete->v_strides), "problem %u: strides of v", number);
    EXPECT(strides_equal(&trial.out, &complete->out_strides), "problem %u: strides of out", number);
    EXPECT(strides_equal(&trial.k_scale, &complete->k_quant.strides), "problem %u: strides of k's scales", number);
    EXPECT(complete->v_from_k || strides_equal(&trial.v_scale, &complete->v_quant.strides),
           "problem %u: strides of v's scales", number);
    EXPECT(score_strides_equal(&trial.bias, &complete->bias_strides), "problem %u: strides of the bias", number);
    EXPECT(score_strides_equal(&trial.mask, &complete->mask_strides), "problem %u: strides of the mask", number);
    EXPECT(trial.num_cache_rows == complete->num_cache_rows, "problem %u: cache rows", number);
    EXPECT(trial.block_table_stride == complete->block_table_stride, "problem %u: stride of the table", number);
}

/* Every operand has room for what the library may touch. */
static void expect_room(const clfd_attention *a)
{
    const uint32_t tokens = trial.kv_len_bound > 0 ? trial.kv_len_bound : a->max_kv_len;
    uint64_t bytes[NUM_OPERANDS] = {0};

    clfd_kv_extent(a, &a->k_strides, a->head_dim, a->k_type, trial.batch, tokens, &bytes[OPERAND_K]);
    if (!a->v_from_k)
        clfd_kv_extent(a, &a->v_strides, a->head_dim_v, a->v_type, trial.batch, tokens, &bytes[OPERAND_V]);
    clfd_scale_extent(a, &a->k_quant, a->head_dim, trial.batch, tokens, &bytes[OPERAND_K_SCALE]);
    if (!a->v_from_k)
        clfd_scale_extent(a, &a->v_quant, a->head_dim_v, trial.batch, tokens, &bytes[OPERAND_V_SCALE]);
    clfd_bias_extent(a, trial.batch, tokens, &bytes[OPERAND_BIAS]);
    clfd_mask_extent(a, trial.batch, tokens, &bytes[OPERAND_MASK]);
    clfd_block_table_extent(a, trial.batch, tokens, &bytes[OPERAND_BLOCK_TABLE]);
    for (int i = 0; i < NUM_OPERANDS; i++)
        EXPECT(trial.placements[i].bytes >= bytes[i], "problem %u: operand %d has %zu bytes and needs %llu",
               (unsigned)trial.number, i, trial.placements[i].bytes, (unsigned long long)bytes[i]);
}

START_TEST(every_drawn_descriptor_is_valid)
{
    clfd_attention complete;
    test_log heard;
    const clfd_logger logger = test_logger(&heard);

    ck_assert(draw_space_open(&space, 7, NUM_PROGRAMS, NULL));
    for (uint64_t k = 0; k < NUM_DRAWN; k++) {
        memset(&heard, 0, sizeof heard);
        draw_trial(&space, k, &trial);
        EXPECT(clfd_complete_attention(&trial.attention, &complete, &logger) == CLFD_SUCCESS, "problem %u: %s",
               (unsigned)k, heard.last[CLFD_LOG_ERROR]);
        expect_layout(&complete);
        expect_room(&complete);
    }
}
END_TEST

START_TEST(problem_depends_on_seed_and_number_alone)
{
    char first[TRIAL_BYTES], again[TRIAL_BYTES];
    verify_trial b;
    int differ = 0;

    ck_assert(draw_space_open(&space, 7, NUM_PROGRAMS, NULL));
    ck_assert(draw_space_open(&other, 8, NUM_PROGRAMS, NULL));
    for (uint64_t k = 0; k < 100; k++) {
        draw_trial(&space, k, &trial);
        draw_trial(&other, k, &b);
        differ += strcmp(trial_print(&trial, first), trial_print(&b, again)) != 0;
        draw_trial(&space, k, &b);
        ck_assert_str_eq(trial_print(&trial, first), trial_print(&b, again));
        ck_assert_mem_eq(trial.lengths, b.lengths, sizeof trial.lengths);
        ck_assert_mem_eq(trial.query_positions, b.query_positions, sizeof trial.query_positions);
        ck_assert(strides_equal(&trial.k, &b.k));
        ck_assert_mem_eq(&trial.features, &b.features, sizeof trial.features);
        ck_assert_uint_eq(trial.data.state, b.data.state);
    }
    ck_assert_int_gt(differ, 90);
    draw_space_close(&other);
    ck_assert(draw_space_open(&other, 7, NUM_PROGRAMS, NULL));
    draw_trial(&space, 99, &trial);
    draw_trial(&other, 99, &b);
    ck_assert_str_eq(trial_print(&trial, first), trial_print(&b, again));
}
END_TEST

/* What the issue asks of `clfd verify --problems 5000`, at its default of programs. */
START_TEST(every_pair_of_options_is_drawn)
{
    feature_pairs pairs = {0};
    verify_feature a = (verify_feature)0, b = (verify_feature)0;
    uint32_t possible, met;

    ck_assert(draw_space_open(&space, 1, DRAW_DEFAULT_PROGRAMS, NULL));
    for (uint64_t k = 0; k < 5000; k++) {
        draw_trial(&space, k, &trial);
        feature_pairs_add(&pairs, &trial.features);
    }
    feature_pairs_count(&pairs, &possible, &met);
    if (feature_pairs_next_missing(&pairs, &a, &b))
        ck_abort_msg("%u of %u pairs were drawn; not %s with %s", met, possible, feature_name(a), feature_name(b));
    ck_assert_uint_eq(met, possible);
}
END_TEST

/* A pair that is called impossible and yet drawn would hide that another one is missing. */
START_TEST(no_pair_that_counts_as_impossible_is_drawn)
{
    ck_assert(draw_space_open(&space, 2, 1000, NULL));
    for (uint64_t k = 0; k < 3000; k++) {
        draw_trial(&space, k, &trial);
        for (int a = 0; a < NUM_FEATURES; a++)
            for (int b = 0; b < a && feature_has(&trial.features, (verify_feature)a); b++)
                EXPECT(!feature_has(&trial.features, (verify_feature)b) ||
                           feature_pair_possible((verify_feature)a, (verify_feature)b),
                       "problem %u has %s with %s", (unsigned)k, feature_name((verify_feature)b),
                       feature_name((verify_feature)a));
    }
}
END_TEST

/* What is compiled into a kernel, as bytes: what a problem draws on top of its specialisation is taken out. */
static clfd_attention key_of(void)
{
    clfd_attention a = trial.attention;

    a.num_q_heads /= a.num_kv_heads;
    a.num_kv_heads = 1;
    a.max_batch = a.max_kv_len = a.expected_kv_len = a.num_cache_rows = a.num_pages = a.split_size = 0;
    a.scale = 0;
    a.window = a.window > 0;
    a.softcap = a.softcap > 0;
    a.block_table_stride = 0;
    a.split_policy = trial.attention.split_size == 0 ? CLFD_SPLIT_AUTO : CLFD_SPLIT_COUNT;
    a.kv_layout = CLFD_LAYOUT_BSHD;
    a.bias_strides = a.mask_strides = (clfd_score_strides){0};
    a.q_strides = a.k_strides = a.v_strides = a.out_strides = (clfd_strides){0};
    a.k_quant.strides = a.v_quant.strides = (clfd_strides){0};
    a.k_quant.group_stride = a.v_quant.group_stride = 0;
    return a;
}

START_TEST(specialisations_stay_within_the_limit_and_cover_types_and_formats)
{
    enum { LIMIT = 20 };
    clfd_attention keys[LIMIT], key;
    feature_set seen = {{0}};
    int count = 0;

    ck_assert(draw_space_open(&space, 3, LIMIT, NULL));
    for (uint64_t k = 0; k < NUM_DRAWN; k++) {
        int i = 0;
        draw_trial(&space, k, &trial);
        for (int word = 0; word < FEATURE_WORDS; word++)
            seen.words[word] |= trial.features.words[word];
        key = key_of();
        while (i < count && memcmp(&keys[i], &key, sizeof key) != 0)
            i++;
        if (i < count)
            continue;
        EXPECT(count < LIMIT, "problem %u is specialisation %d", (unsigned)k, count + 1);
        keys[count++] = key;
    }
    for (int i = 0; i < NUM_FEATURES; i++)
        EXPECT(feature_has(&seen, (verify_feature)i), "%s was not drawn", feature_name((verify_feature)i));
}
END_TEST

START_TEST(problems_stay_small)
{
    ck_assert(draw_space_open(&space, 5, NUM_PROGRAMS, NULL));
    for (uint64_t k = 0; k < NUM_DRAWN; k++) {
        size_t bytes = 0;
        draw_trial(&space, k, &trial);
        for (int i = 0; i < NUM_OPERANDS; i++)
            bytes += placement_bytes(&trial.placements[i]);
        EXPECT(bytes < (size_t)512 << 20, "problem %u takes %zu bytes", (unsigned)k, bytes);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_drawn_descriptor_is_valid,
        problem_depends_on_seed_and_number_alone,
        every_pair_of_options_is_drawn,
        no_pair_that_counts_as_impossible_is_drawn,
        specialisations_stay_within_the_limit_and_cover_types_and_formats,
        problems_stay_small,
    };
    return run_suite_around("draw", tests, sizeof tests / sizeof tests[0], NULL, tear_down);
}

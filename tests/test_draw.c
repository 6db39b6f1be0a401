#include "plan/check.h"
#include "support/log.h"
#include "support/suite.h"
#include "verify.h"
#include <stdio.h>
#include <string.h>

#define NUM_DRAWN 1500

START_TEST(every_drawn_descriptor_is_valid)
{
    const draw_space space = {7, 150, NULL};
    verify_trial trial;
    clfd_attention complete;
    test_log heard;
    const clfd_logger logger = test_logger(&heard);

    for (uint64_t k = 0; k < NUM_DRAWN; k++) {
        memset(&heard, 0, sizeof heard);
        draw_trial(&space, k, &trial);
        EXPECT(clfd_complete_attention(&trial.attention, &complete, &logger) == CLFD_SUCCESS, "problem %u: %s",
               (unsigned)k, heard.last[CLFD_LOG_ERROR]);
        /* The tool's own idea of the default strides is the library's. */
        EXPECT(memcmp(&trial.q, &complete.q_strides, sizeof trial.q) == 0, "problem %u: strides of q", (unsigned)k);
        EXPECT(memcmp(&trial.k, &complete.k_strides, sizeof trial.k) == 0, "problem %u: strides of k", (unsigned)k);
        EXPECT(trial.attention.v_from_k || memcmp(&trial.v, &complete.v_strides, sizeof trial.v) == 0,
               "problem %u: strides of v", (unsigned)k);
        EXPECT(memcmp(&trial.out, &complete.out_strides, sizeof trial.out) == 0, "problem %u: strides of out",
               (unsigned)k);
    }
}
END_TEST

START_TEST(problem_depends_on_seed_and_number_alone)
{
    const draw_space space = {7, 150, NULL}, other = {8, 150, NULL};
    char first[TRIAL_BYTES], again[TRIAL_BYTES];
    verify_trial a, b;
    int differ = 0;

    for (uint64_t k = 0; k < 100; k++) {
        draw_trial(&space, k, &a);
        draw_trial(&other, k, &b);
        differ += strcmp(trial_print(&a, first), trial_print(&b, again)) != 0;
        draw_trial(&space, k, &b);
        ck_assert_str_eq(trial_print(&a, first), trial_print(&b, again));
        ck_assert_mem_eq(a.lengths, b.lengths, a.batch * sizeof a.lengths[0]);
        ck_assert_mem_eq(&a.k, &b.k, sizeof a.k);
        ck_assert_uint_eq(a.features, b.features);
        ck_assert_uint_eq(a.data.state, b.data.state);
    }
    ck_assert_int_gt(differ, 90);
}
END_TEST

START_TEST(every_feature_is_drawn)
{
    const draw_space space = {1, 150, NULL};
    uint64_t seen = 0;
    verify_trial trial;

    for (uint64_t k = 0; k < 300; k++) {
        draw_trial(&space, k, &trial);
        seen |= trial.features;
    }
    ck_assert_uint_eq(seen, ((uint64_t)1 << NUM_FEATURES) - 1);
}
END_TEST

/* What is compiled into a kernel, as text. */
static void key_of(const verify_trial *trial, char key[128])
{
    const clfd_attention *a = &trial->attention;

    snprintf(key, 128, "%d %d %d %u %u %u %u %d %u %u %u", a->q_type, a->k_type, a->out_type, a->head_dim,
             a->head_dim_v, a->num_q_heads / a->num_kv_heads, a->q_len, a->partial, a->causal, a->v_from_k,
             a->k_alignment);
}

START_TEST(specialisations_stay_within_the_limit_and_cover_types_and_formats)
{
    enum { LIMIT = 20 };
    const draw_space space = {3, LIMIT, NULL};
    const uint64_t all = FEATURE_BIT(KV_F32) | FEATURE_BIT(KV_F16) | FEATURE_BIT(KV_BF16) | FEATURE_BIT(PARTIAL_LSE) |
                         FEATURE_BIT(PARTIAL_MLO);
    char keys[LIMIT][128], key[128];
    int count = 0;
    uint64_t seen = 0;
    verify_trial trial;

    for (uint64_t k = 0; k < NUM_DRAWN; k++) {
        int i = 0;
        draw_trial(&space, k, &trial);
        seen |= trial.features;
        key_of(&trial, key);
        while (i < count && strcmp(keys[i], key) != 0)
            i++;
        if (i < count)
            continue;
        EXPECT(count < LIMIT, "problem %u is specialisation %d", (unsigned)k, count + 1);
        strcpy(keys[count++], key);
    }
    ck_assert_uint_eq(seen & all, all);
}
END_TEST

START_TEST(problems_stay_small)
{
    const draw_space space = {5, 150, NULL};
    verify_trial trial;

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
        every_feature_is_drawn,
        specialisations_stay_within_the_limit_and_cover_types_and_formats,
        problems_stay_small,
    };
    return run_suite("draw", tests, sizeof tests / sizeof tests[0]);
}

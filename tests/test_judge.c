#include "support/suite.h"
#include "verify_judge.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUM_TRIALS 60

static verify_trial trial;
static verify_images images;
static tool_fault fault;
static double *out, *lse;

static draw_space space;

static void free_result(void)
{
    images_free(&images);
    free(out);
    free(lse);
    out = lse = NULL;
}

static int forced_poison; /* below 0: the drawn one */

static void set_up(void)
{
    forced_poison = -1;
    ck_assert(draw_space_open(&space, 11, 60, NULL));
}

static void tear_down(void)
{
    free_result();
    draw_space_close(&space);
}

static unsigned char *out_row(uint32_t b, uint32_t i, uint32_t h)
{
    return (unsigned char *)image_base(&trial, &images, OPERAND_OUT) +
           (b * trial.out.batch + i * trial.out.token + h * trial.out.head) *
               (int64_t)clfd_type_size(trial.attention.out_type);
}

/* Draws problem `number`, and puts the reference's own result into the images of out, lse and the status word. */
static void make_right_result(uint64_t number)
{
    const clfd_attention *a = &trial.attention;
    size_t num_rows, row = 0;
    uint32_t word = 0;

    free_result();
    draw_trial(&space, number, &trial);
    if (forced_poison >= 0)
        trial.poison = (verify_poison)forced_poison;
    num_rows = (size_t)trial.batch * a->q_len * a->num_q_heads;
    ck_assert(fill_images(&trial, &images, &fault));
    out = malloc(num_rows * a->head_dim_v * sizeof out[0]);
    lse = malloc(num_rows * sizeof lse[0]);
    EXPECT(judge_compute_reference(&trial, &images, out, lse, &word, &fault), "problem %u: %s", (unsigned)number,
           fault.sentence);
    for (uint32_t b = 0; b < trial.batch; b++)
        for (uint32_t i = 0; i < a->q_len; i++)
            for (uint32_t h = 0; h < a->num_q_heads; h++, row++) {
                float values[TRIAL_MAX_DIM];
                for (uint32_t d = 0; d < a->head_dim_v; d++)
                    values[d] = (float)out[row * a->head_dim_v + d];
                clfd_convert_from_float(a->out_type, values, out_row(b, i, h), a->head_dim_v);
                if (trial.placements[OPERAND_LSE].present)
                    ((float *)image_base(&trial, &images, OPERAND_LSE))[row] = (float)lse[row];
            }
    if (trial.placements[OPERAND_STATUS].present)
        *(uint32_t *)image_base(&trial, &images, OPERAND_STATUS) |= word;
}

static bool judge(void)
{
    trial_errors errors = {0, 0, 0};
    return judge_trial(&trial, &images, &errors, &fault);
}

START_TEST(rounded_reference_passes)
{
    for (uint64_t k = 0; k < NUM_TRIALS; k++) {
        trial_errors errors = {0, 0, 0};
        make_right_result(k);
        ck_assert_msg(judge_trial(&trial, &images, &errors, &fault), "problem %u: %s", (unsigned)k, fault.sentence);
        ck_assert_double_le(errors.of_tolerance, 1.0);
    }
}
END_TEST

/* The last query of the last sequence: the row of most keys. */
static float *last_out_value(float *value)
{
    const clfd_attention *a = &trial.attention;

    clfd_convert_to_float(a->out_type,
                          out_row(trial.batch - 1, a->q_len - 1, a->num_q_heads - 1) +
                              (a->head_dim_v - 1) * clfd_type_size(a->out_type),
                          value, 1);
    return value;
}

static void set_last_out_value(float value)
{
    const clfd_attention *a = &trial.attention;

    clfd_convert_from_float(a->out_type, &value,
                            out_row(trial.batch - 1, a->q_len - 1, a->num_q_heads - 1) +
                                (a->head_dim_v - 1) * clfd_type_size(a->out_type),
                            1);
}

/* The tolerance of that row, relative to the largest |V|. */
static double last_tolerance(void)
{
    const clfd_attention *a = &trial.attention;
    const uint32_t b = trial.batch - 1, i = a->q_len - 1, h = a->num_q_heads - 1;
    const judge_bounds bounds = judge_find_bounds(&trial, &images, view_sequence(&trial, b), a->num_kv_heads - 1);
    const size_t row = ((size_t)b * a->q_len + i) * a->num_q_heads + h;

    return judge_find_tolerance(&trial, &images, &bounds, b, i, h, lse[row]).out /
           (bounds.value_max > 0 ? bounds.value_max : 1);
}

/* Hot scores and far positions under ALiBi cost digits; nothing else does. */
START_TEST(tolerance_of_a_usual_problem_is_below_1e_3)
{
    int usual = 0;

    for (uint64_t k = 0; k < 2 * NUM_TRIALS; k++) {
        make_right_result(k);
        if (trial.contents == CONTENTS_HOT || trial.attention.softcap >= 100)
            continue;
        if (trial.masking_bias || (trial.attention.alibi && feature_has(&trial.features, FEATURE_POSITION_RANGE)))
            continue;
        EXPECT(last_tolerance() < 1e-3, "problem %u has the tolerance %g", (unsigned)k, last_tolerance());
        usual++;
    }
    ck_assert_int_gt(usual, NUM_TRIALS);
}
END_TEST

START_TEST(one_wrong_element_of_out_fails_by_its_index)
{
    const clfd_attention *a = &trial.attention;
    char place[64];
    float right;
    int judged = 0;

    for (uint64_t k = 0; k < NUM_TRIALS; k++) {
        make_right_result(k);
        last_out_value(&right);
        if (last_tolerance() > 0.01)
            continue;
        set_last_out_value(isfinite(right) ? right + 0.25f : 0.0f);
        EXPECT(!judge(), "problem %u passed", (unsigned)k);
        snprintf(place, sizeof place, "out[%u, %u, %u, %u] is", trial.batch - 1, a->q_len - 1, a->num_q_heads - 1,
                 a->head_dim_v - 1);
        EXPECT(strstr(fault.sentence, place) != NULL, "'%s' does not hold '%s'", fault.sentence, place);
        judged++;
    }
    ck_assert_int_gt(judged, NUM_TRIALS * 3 / 4);
}
END_TEST

START_TEST(nan_where_a_number_belongs_fails)
{
    float right;

    for (uint64_t k = 0; k < NUM_TRIALS; k++) {
        make_right_result(k);
        if (isnan(*last_out_value(&right)))
            continue;
        set_last_out_value(NAN);
        EXPECT(!judge(), "problem %u passed", (unsigned)k);
    }
}
END_TEST

START_TEST(one_wrong_lse_fails)
{
    int judged = 0;

    for (uint64_t k = 0; k < NUM_TRIALS; k++) {
        make_right_result(k);
        float *values = image_base(&trial, &images, OPERAND_LSE);
        const size_t last = (size_t)trial.batch * trial.attention.q_len * trial.attention.num_q_heads - 1;
        if (values == NULL || last_tolerance() > 1e-3)
            continue;
        values[last] = isfinite(values[last]) ? values[last] + 0.01f : 0.0f;
        EXPECT(!judge(), "problem %u passed", (unsigned)k);
        EXPECT(strstr(fault.sentence, "lse[") == fault.sentence, "'%s' is not about lse", fault.sentence);
        judged++;
    }
    ck_assert_int_gt(judged, NUM_TRIALS / 2);
}
END_TEST

/* A flag too few or too many; and the caller's own bits stay. */
START_TEST(wrong_status_word_fails)
{
    static const uint32_t wrong[] = {CLFD_FLAG_PAGE, CLFD_FLAG_CACHE_ROW, 0x40000000};
    uint32_t flags = 0;

    for (uint64_t k = 0; k < NUM_TRIALS; k++) {
        make_right_result(k);
        uint32_t *word = image_base(&trial, &images, OPERAND_STATUS);
        if (word == NULL)
            continue;
        flags |= trial.flags;
        ck_assert(judge());
        *word ^= wrong[k % 3];
        EXPECT(!judge(), "problem %u passed", (unsigned)k);
        ck_assert_ptr_nonnull(strstr(fault.sentence, "the status word is"));
    }
    ck_assert_uint_eq(flags, CLFD_FLAG_PAGE | CLFD_FLAG_CACHE_ROW);
}
END_TEST

/* The tiniest number in a row without keys: such rows have no tolerance. */
START_TEST(row_without_keys_must_be_exactly_zero)
{
    int found = 0;

    for (uint64_t k = 0; k < 200 && found < 6; k++) {
        draw_trial(&space, k, &trial);
        if (trial.lengths[view_sequence(&trial, trial.batch - 1)] != 0)
            continue;
        make_right_result(k);
        ck_assert(judge());
        set_last_out_value(0x1p-14f);
        EXPECT(!judge(), "problem %u passed", (unsigned)k);
        found++;
    }
    ck_assert_int_eq(found, 6);
}
END_TEST

/* What fill_images calls poison is nothing that the definition looks at. */
START_TEST(result_does_not_depend_on_the_poison)
{
    for (uint64_t k = 0; k < NUM_TRIALS; k++) {
        double *first_out = NULL, *first_lse = NULL;
        size_t rows = 0;
        forced_poison = POISON_NAN;
        make_right_result(k);
        rows = (size_t)trial.batch * trial.attention.q_len * trial.attention.num_q_heads;
        first_out = out;
        first_lse = lse;
        out = lse = NULL;
        for (int poison = POISON_NAN + 1; poison < NUM_POISONS; poison++) {
            forced_poison = poison;
            make_right_result(k);
            EXPECT(memcmp(out, first_out, rows * trial.attention.head_dim_v * sizeof out[0]) == 0,
                   "problem %u: out differs", (unsigned)k);
            EXPECT(memcmp(lse, first_lse, rows * sizeof lse[0]) == 0, "problem %u: lse differs", (unsigned)k);
        }
        free(first_out);
        free(first_lse);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rounded_reference_passes,
        tolerance_of_a_usual_problem_is_below_1e_3,
        one_wrong_element_of_out_fails_by_its_index,
        nan_where_a_number_belongs_fails,
        one_wrong_lse_fails,
        wrong_status_word_fails,
        row_without_keys_must_be_exactly_zero,
        result_does_not_depend_on_the_poison,
    };
    return run_suite_around("judge", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
}

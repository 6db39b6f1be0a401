#include "support/suite.h"
#include "verify.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUM_TRIALS 12

static verify_trial trial;
static verify_images images;
static tool_fault fault;
static double *out, *lse;

static void tear_down(void)
{
    images_free(&images);
    free(out);
    free(lse);
    out = lse = NULL;
}

static unsigned char *out_row(uint32_t b, uint32_t i, uint32_t h)
{
    return (unsigned char *)image_base(&trial, &images, OPERAND_OUT) +
           (b * trial.out.batch + i * trial.out.token + h * trial.out.head) *
               (int64_t)clfd_type_size(trial.attention.out_type);
}

/* Draws problem `number`, and puts the reference's own result into the images of out and lse. */
static void make_right_result(uint64_t number)
{
    const draw_space space = {11, 150, NULL};
    const clfd_attention *a = &trial.attention;
    clfd_host_tensors tensors = {.struct_size = sizeof tensors};
    size_t num_rows, row = 0;

    tear_down();
    draw_trial(&space, number, &trial);
    num_rows = (size_t)trial.batch * a->q_len * a->num_q_heads;
    ck_assert(fill_images(&trial, &images, &fault));
    out = malloc(num_rows * a->head_dim_v * sizeof out[0]);
    lse = malloc(num_rows * sizeof lse[0]);
    tensors.batch = trial.batch;
    tensors.kv_len_bound = trial.kv_len_bound;
    tensors.q = image_base(&trial, &images, OPERAND_Q);
    tensors.k = image_base(&trial, &images, OPERAND_K);
    tensors.v = image_base(&trial, &images, OPERAND_V);
    tensors.kv_lens = trial.placements[OPERAND_KV_LENS].present ? trial.kv_lens : NULL;
    tensors.out = out;
    tensors.lse = lse;
    ck_assert_int_eq(clfd_reference_attention(a, &tensors, NULL), CLFD_SUCCESS);
    for (uint32_t b = 0; b < trial.batch; b++)
        for (uint32_t i = 0; i < a->q_len; i++)
            for (uint32_t h = 0; h < a->num_q_heads; h++, row++) {
                float values[576];
                for (uint32_t d = 0; d < a->head_dim_v; d++)
                    values[d] = (float)out[row * a->head_dim_v + d];
                clfd_convert_from_float(a->out_type, values, out_row(b, i, h), a->head_dim_v);
                if (trial.placements[OPERAND_LSE].present)
                    ((float *)image_base(&trial, &images, OPERAND_LSE))[row] = (float)lse[row];
            }
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

START_TEST(one_wrong_element_of_out_fails_by_its_index)
{
    const clfd_attention *a = &trial.attention;
    char place[64];
    float right;

    for (uint64_t k = 0; k < NUM_TRIALS; k++) {
        make_right_result(k);
        last_out_value(&right);
        set_last_out_value(isfinite(right) ? right + 0.25f : 0.0f);
        if (trial.contents == CONTENTS_HOT)
            continue;
        ck_assert_msg(!judge(), "problem %u passed", (unsigned)k);
        snprintf(place, sizeof place, "out[%u, %u, %u, %u] is", trial.batch - 1, a->q_len - 1, a->num_q_heads - 1,
                 a->head_dim_v - 1);
        ck_assert_msg(strstr(fault.sentence, place) != NULL, "'%s' does not hold '%s'", fault.sentence, place);
    }
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
        ck_assert_msg(!judge(), "problem %u passed", (unsigned)k);
    }
}
END_TEST

START_TEST(one_wrong_lse_fails)
{
    for (uint64_t k = 0; k < NUM_TRIALS; k++) {
        make_right_result(k);
        float *values = image_base(&trial, &images, OPERAND_LSE);
        if (values == NULL || trial.contents == CONTENTS_HOT)
            continue;
        values[0] = isfinite(values[0]) ? values[0] + 0.01f : 0.0f;
        ck_assert_msg(!judge(), "problem %u passed", (unsigned)k);
        ck_assert_ptr_nonnull(strstr(fault.sentence, "lse[0, 0, 0] is"));
    }
}
END_TEST

/* The tiniest number in a row without keys: such rows have no tolerance. */
START_TEST(row_without_keys_must_be_exactly_zero)
{
    int found = 0;

    for (uint64_t k = 0; k < 100 && found < 3; k++) {
        const draw_space space = {11, 150, NULL};
        draw_trial(&space, k, &trial);
        if (trial.lengths[trial.batch - 1] != 0)
            continue;
        make_right_result(k);
        ck_assert(judge());
        set_last_out_value(0x1p-14f);
        ck_assert_msg(!judge(), "problem %u passed", (unsigned)k);
        found++;
    }
    ck_assert_int_eq(found, 3);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        rounded_reference_passes, one_wrong_element_of_out_fails_by_its_index, nan_where_a_number_belongs_fails,
        one_wrong_lse_fails,      row_without_keys_must_be_exactly_zero,
    };
    return run_suite_around("judge", tests, sizeof tests / sizeof tests[0], NULL, tear_down);
}

/* Converting K and V on the host, and the error that is reported of it. */
#include "run.h"
#include "support/random.h"
#include "support/suite.h"
#include <clfd/cache.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, HEADS = 2, DIM = 64, DIM_V = 32, TOKENS = 11 };

static npy_array random_array(uint64_t tokens, uint64_t dim, random_source *source)
{
    npy_array array = {.kind = 'f', .item_bytes = 4, .num_dims = 4, .shape = {BATCH, tokens, HEADS, dim}};

    array.count = (size_t)(BATCH * tokens * HEADS * dim);
    array.data = malloc(array.count * sizeof(float));
    ck_assert_ptr_nonnull(array.data);
    random_fill_normal(source, array.data, array.count, 1.0f);
    return array;
}

static run_input make_input(bool v_from_k)
{
    random_source source = {.state = 3};
    run_input input = {.arrays = {{0}}};

    input.attention = (clfd_attention){.struct_size = sizeof(clfd_attention),
                                       .max_batch = BATCH,
                                       .q_len = 1,
                                       .num_q_heads = HEADS,
                                       .num_kv_heads = HEADS,
                                       .head_dim = DIM,
                                       .head_dim_v = DIM_V,
                                       .q_type = CLFD_TYPE_F32,
                                       .k_type = CLFD_TYPE_F32,
                                       .v_type = CLFD_TYPE_F32,
                                       .out_type = CLFD_TYPE_F32,
                                       .max_kv_len = TOKENS,
                                       .v_from_k = v_from_k};
    input.arrays[RUN_Q] = random_array(1, DIM, &source);
    input.arrays[RUN_K] = random_array(TOKENS, DIM, &source);
    if (!v_from_k)
        input.arrays[RUN_V] = random_array(TOKENS, DIM_V, &source);
    return input;
}

static void quantise(run_input *input, const char *names, uint32_t group, bool zeros)
{
    tool_fault fault = {.exit_code = EXIT_CODE_OK};

    ck_assert_msg(run_quantise(input, names, group, zeros, &fault), "%s: %s", names, fault.sentence);
}

/* Every element of K, dequantised, is as near to the one given as the type allows: `step` is the distance of two codes, in
 * the greatest magnitude of the row; GGML scales are rounded to f16 besides. */
START_TEST(codes_and_scales_stand_for_the_values_given)
{
    static const struct {
        const char *name;
        uint32_t group;
        bool zeros;
        float step;
    } cases[] = {
        {"f32", 0, false, 0.0f},          {"f16", 0, false, 0x1p-10f},        {"bf16", 0, false, 0x1p-7f},
        {"int8", 0, false, 1 / 127.0f},   {"int8", 16, false, 1 / 127.0f},    {"int8", 16, true, 2 / 255.0f},
        {"int4", 32, false, 1 / 7.0f},    {"int4", 8, true, 2 / 15.0f},       {"fp8", 0, false, 1 / 8.0f},
        {"fp8_e5m2", 0, false, 1 / 4.0f}, {"q8_0", 0, false, 1.13f / 127.0f}, {"q4_0", 0, false, 1 / 4.0f},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_input input = make_input(false);
        quantise(&input, cases[i].name, cases[i].group, cases[i].zeros);
        const clfd_attention *const a = &input.attention;
        const npy_array *const k = &input.arrays[RUN_K], *const scales = &input.arrays[RUN_K_SCALE];
        const size_t row_bytes = DIM / clfd_type_elements(a->k_type) * clfd_type_size(a->k_type);
        const size_t num_groups = scales->num_dims == 4 ? scales->shape[3] : 0;
        for (size_t row = 0; row < BATCH * TOKENS * HEADS; row++) {
            const float *const given = (const float *)input.plain_k.data + row * DIM;
            const void *const codes = (const char *)k->data + row * row_bytes;
            const float *const zeros = input.arrays[RUN_K_ZERO].data;
            float back[DIM], most = 0.0f;
            if (a->k_type <= CLFD_TYPE_BF16)
                clfd_convert_to_float(a->k_type, codes, back, DIM);
            else
                ck_assert_int_eq(
                    clfd_dequantise_row(a->k_type, DIM, a->k_quant.group, codes,
                                        scales->data == NULL ? NULL : (const float *)scales->data + row * num_groups,
                                        zeros == NULL ? NULL : zeros + row * num_groups, back),
                    CLFD_SUCCESS);
            for (int d = 0; d < DIM; d++)
                most = fmaxf(most, fabsf(given[d]));
            for (int d = 0; d < DIM; d++)
                EXPECT(fabsf(back[d] - given[d]) <= 0.5001f * cases[i].step * most, "%s: %g became %g", cases[i].name,
                       given[d], back[d]);
        }
        ck_assert_uint_eq(num_groups, cases[i].group > 0                   ? DIM / cases[i].group
                                      : strcmp(cases[i].name, "int8") == 0 ? 1
                                                                           : 0);
        run_input_free(&input);
    }
}
END_TEST

START_TEST(k_and_v_may_differ)
{
    run_input input = make_input(false);

    quantise(&input, "int4,q4_0", 16, true);
    ck_assert_int_eq(input.attention.k_type, CLFD_TYPE_INT4);
    ck_assert_int_eq(input.attention.v_type, CLFD_TYPE_Q4_0);
    ck_assert(input.attention.k_quant.group == 16 && input.attention.k_quant.zeros == 1);
    ck_assert(input.attention.v_quant.group == 0 && input.attention.v_quant.zeros == 0);
    ck_assert_uint_eq(input.arrays[RUN_K].count * input.arrays[RUN_K].item_bytes, BATCH * TOKENS * HEADS * DIM / 2);
    ck_assert_uint_eq(input.arrays[RUN_V].count * input.arrays[RUN_V].item_bytes,
                      BATCH * TOKENS * HEADS * DIM_V / 32 * 18);
    ck_assert_ptr_null(input.arrays[RUN_V_SCALE].data);
    run_input_free(&input);
}
END_TEST

START_TEST(v_from_k_takes_the_type_and_scales_of_k)
{
    run_input input = make_input(true);
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    double *out = NULL;

    quantise(&input, "int8", 32, false);
    ck_assert_int_eq(input.attention.v_type, CLFD_TYPE_INT8);
    ck_assert_ptr_null(input.arrays[RUN_V].data);
    ck_assert_msg(run_reference(&input.attention, input.arrays, &out, &fault), "%s", fault.sentence);
    free(out);
    run_input_free(&input);
}
END_TEST

/* The reference of the unquantised arrays as a result has no error but its rounding to f32; one shifted element shows. */
START_TEST(error_is_that_of_the_result_against_unquantised_arrays)
{
    const size_t count = BATCH * HEADS * DIM_V;
    run_input input = make_input(false);
    run_result result = {.out = {.kind = 'f', .item_bytes = 4, .num_dims = 4, .shape = {BATCH, 1, HEADS, DIM_V}}};
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    run_error error;
    double *plain = NULL;

    ck_assert(run_reference(&input.attention, input.arrays, &plain, &fault));
    quantise(&input, "int4", 0, false);
    float *const out = malloc(count * sizeof out[0]);
    ck_assert_ptr_nonnull(out);
    for (size_t i = 0; i < count; i++)
        out[i] = (float)plain[i];
    result.out.count = count;
    result.out.data = out;
    ck_assert(run_quantisation_error(&input, &result, &error, &fault));
    ck_assert_double_lt(error.max, 1e-6);
    out[5] += 0.5f;
    ck_assert(run_quantisation_error(&input, &result, &error, &fault));
    ck_assert_double_eq_tol(error.max, 0.5, 1e-6);
    ck_assert_double_eq_tol(error.rms, 0.5 / sqrt((double)count), 1e-6);
    out[6] = NAN;
    ck_assert(run_quantisation_error(&input, &result, &error, &fault));
    ck_assert(isinf(error.max));
    free(plain);
    run_result_free(&result);
    run_input_free(&input);
}
END_TEST

START_TEST(types_and_groups_that_do_not_fit_are_refused)
{
    static const struct {
        const char *names;
        uint32_t group;
        bool zeros;
        exit_code code;
        const char *fragment;
    } cases[] = {
        {"q5_0", 0, false, EXIT_CODE_USAGE, "--kvtype is 'q5_0'"},
        {"q8_0,", 0, false, EXIT_CODE_USAGE, "--kvtype is 'q8_0,'"},
        {",q8_0", 0, false, EXIT_CODE_USAGE, "--kvtype is ',q8_0'"},
        {"q8_0,q8_0,q8_0", 0, false, EXIT_CODE_USAGE, "one or two (K,V)"},
        {"q8_0", 32, false, EXIT_CODE_USAGE, "--kv-group is given"},
        {"fp8,f16", 0, true, EXIT_CODE_USAGE, "--kv-zeros is given"},
        {"int8", 24, false, EXIT_CODE_FAILED, "--kv-group is 24"},
        {"int8", 12, false, EXIT_CODE_FAILED, "--kv-group is 12"},
        {"int8", 64, false, EXIT_CODE_FAILED, "that divides the head dim, 32"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_input input = make_input(false);
        tool_fault fault = {.exit_code = EXIT_CODE_OK};
        ck_assert(!run_quantise(&input, cases[i].names, cases[i].group, cases[i].zeros, &fault));
        ck_assert_int_eq(fault.exit_code, cases[i].code);
        ck_assert_msg(strstr(fault.sentence, cases[i].fragment) != NULL, "'%s' does not hold '%s'", fault.sentence,
                      cases[i].fragment);
        run_input_free(&input);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        codes_and_scales_stand_for_the_values_given,  k_and_v_may_differ,
        v_from_k_takes_the_type_and_scales_of_k,      error_is_that_of_the_result_against_unquantised_arrays,
        types_and_groups_that_do_not_fit_are_refused,
    };
    return run_suite("run_quantise", tests, sizeof tests / sizeof tests[0]);
}

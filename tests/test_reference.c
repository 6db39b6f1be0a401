/* The reference attention: known answers, a naive loop over many shapes, addressing, and what must not be seen. */
#include "support/compare.h"
#include "support/host_call.h"
#include "support/random.h"
#include "support/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Known answers ----------------------------------------------------------------------------------------------- */

START_TEST(three_keys_give_the_textbook_values)
{
    static const float q_row[4] = {.1f, .2f, .3f, .4f};
    static const float k_rows[3][4] = {{.5f, .1f, .3f, .2f}, {.2f, .6f, .1f, .4f}, {.3f, .2f, .7f, .1f}};
    static const float v_rows[3][4] = {{.1f, .2f, .3f, .4f}, {.5f, .4f, .3f, .2f}, {.2f, .6f, .1f, .5f}};
    static const double expected[3][4] = {{.1, .2, .3, .4}, {.304, .302, .300, .298}, {.269, .403, .233, .366}};
    static const double expected_lse[3] = {0.12, 0.8359, 1.2471}; /* m + log l: .165 + log 1.9560, + log 2.9510 */

    set_problem(1, 1, 1, 1, 8, 8, 3);
    attention.scale = 0.5f;
    fill(q, 8, 0.0f);
    fill(k, 24, 0.0f);
    fill(v, 24, 0.0f);
    memcpy(q, q_row, sizeof q_row);
    for (int j = 0; j < 3; j++) {
        memcpy(k + 8 * j, k_rows[j], sizeof k_rows[j]);
        memcpy(v + 8 * j, v_rows[j], sizeof v_rows[j]);
    }
    for (int32_t n = 1; n <= 3; n++) {
        tensors.kv_lens = &n;
        run();
        ASSERT_DOUBLES(out, expected[n - 1], 4, TOLERANCE_PRINTED3);
        ASSERT_VALUE(lse[0], expected_lse[n - 1], TOLERANCE_PRINTED4);
    }
}
END_TEST

/* The loop of attention.h, written down once more over dense tensors, in the widest type that there is. */
static void naive(size_t row, double *naive_out, double *naive_lse)
{
    const clfd_attention *a = &attention;
    const uint32_t head = (uint32_t)(row % a->num_q_heads), query = (uint32_t)(row / a->num_q_heads % a->q_len);
    const uint32_t b = (uint32_t)(row / a->num_q_heads / a->q_len), g = head / (a->num_q_heads / a->num_kv_heads);
    const int n = (int)a->max_kv_len;
    long double sums[576] = {0}, sum = 0.0L;

    for (int j = 0; j < n; j++) {
        const size_t kv_row = ((size_t)b * a->max_kv_len + (size_t)j) * a->num_kv_heads + g;
        long double score = 0.0L;
        if (a->causal && j > n - (int)a->q_len + (int)query)
            continue;
        for (uint32_t d = 0; d < a->head_dim; d++)
            score += (long double)q[row * a->head_dim + d] * (long double)k[kv_row * a->head_dim + d];
        const long double weight = expl((long double)a->scale * score);
        sum += weight;
        for (uint32_t d = 0; d < a->head_dim_v; d++)
            sums[d] += weight * (long double)v[kv_row * a->head_dim_v + d];
    }
    for (uint32_t d = 0; d < a->head_dim_v; d++)
        naive_out[d] = sum > 0.0L ? (double)(sums[d] / sum) : 0.0;
    *naive_lse = sum > 0.0L ? (double)logl(sum) : -INFINITY;
}

/* Odd ratios, more rows than the reference takes at a time, dims with and without a value dim of their own. */
START_TEST(every_shape_equals_the_naive_loop)
{
    static const uint32_t shapes[][7] = {
        /* batch, q_len, query heads, KV heads, dim, value dim, keys */
        {1, 1, 1, 1, 8, 8, 1},    {2, 1, 2, 2, 64, 64, 37},  {1, 1, 71, 1, 64, 64, 31},
        {2, 1, 14, 2, 40, 24, 9}, {1, 1, 6, 2, 576, 512, 5}, {2, 5, 8, 2, 16, 16, 50},
        {1, 16, 3, 1, 8, 16, 23}, {3, 7, 5, 1, 24, 8, 4},    {1, 16, 12, 4, 8, 8, 200},
    };
    double expected[576], expected_lse;

    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (uint32_t causal = 0; causal < 2; causal++) {
            const uint32_t *p = shapes[s];
            set_problem(p[0], p[1], p[2], p[3], p[4], p[5], p[6]);
            attention.causal = causal;
            run();
            for (size_t row = 0; row < num_rows(); row++) {
                naive(row, expected, &expected_lse);
                ASSERT_DOUBLES(out + row * attention.head_dim_v, expected, attention.head_dim_v, TOLERANCE_DOUBLE);
                ASSERT_VALUE(lse[row], expected_lse, TOLERANCE_DOUBLE);
            }
        }
}
END_TEST

START_TEST(a_zero_query_gives_the_mean_of_v_and_the_log_of_the_length)
{
    static const int32_t lengths[] = {1, 15, 16, 17, 255, 256, 257};

    set_problem(1, 1, 4, 2, 16, 16, 300);
    fill(q, num_rows() * 16, 0.0f);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        tensors.kv_lens = &lengths[i];
        run();
        for (size_t head = 0; head < 4; head++) {
            double means[16] = {0};
            for (int32_t j = 0; j < lengths[i]; j++)
                for (size_t d = 0; d < 16; d++)
                    means[d] += (double)v[((size_t)j * 2 + head / 2) * 16 + d] / lengths[i];
            ASSERT_DOUBLES(out + head * 16, means, 16, TOLERANCE_DOUBLE);
            ASSERT_VALUE(lse[head], log(lengths[i]), TOLERANCE_DOUBLE);
        }
    }
}
END_TEST

START_TEST(values_that_name_their_dim_come_back_as_they_are)
{
    static const uint32_t ratios[] = {8, 4};

    for (int i = 0; i < 2; i++) {
        set_problem(1, 1, ratios[i], 1, 256, 256, 33);
        for (size_t n = 0; n < num_v(); n++)
            v[n] = (float)(n % 256);
        run();
        for (size_t n = 0; n < num_out(); n++)
            EXPECT(compare_value(out[n], (double)(n % 256), TOLERANCE_DOUBLE), "out[%zu] is %.17g", n, out[n]);
    }
}
END_TEST

/* 64 keys of one score, key 0 alone 5000 above, wherever the scores lie: no finite number is minus infinity. */
START_TEST(one_key_far_above_the_others_wins_at_every_level)
{
    static const float levels[] = {0.0f, -45000.0f, -55000.0f, -60000.0f, -65504.0f, -1e5f, -1e6f, 1e6f};

    set_problem(1, 1, 16, 1, 128, 128, 64);
    attention.scale = 1.0f;
    fill(q, num_rows() * 128, 0.0f);
    for (size_t head = 0; head < 16; head++)
        q[head * 128] = 1.0f;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        for (size_t j = 0; j < 64; j++)
            k[j * 128] = levels[i] + (j == 0 ? 5000.0f : 0.0f);
        run();
        for (size_t n = 0; n < num_out(); n++)
            EXPECT(out[n] == (double)v[n % 128], "level %g: out[%zu] is %g", (double)levels[i], n, out[n]);
        for (size_t head = 0; head < 16; head++)
            ck_assert(lse[head] == (double)levels[i] + 5000.0);
    }
}
END_TEST

START_TEST(the_default_scale_is_one_over_the_root_of_the_dim)
{
    set_problem(1, 1, 2, 2, 40, 40, 19);
    attention.scale = (float)(1.0 / sqrt(40.0));
    keep();
    attention.scale = 0.0f;
    assert_kept();
}
END_TEST

/* ---- Lengths and masks ------------------------------------------------------------------------------------------- */

START_TEST(rows_without_a_key_are_overwritten_with_zero_and_minus_infinity)
{
    static const int32_t lengths[3] = {5, 0, 5};

    set_problem(3, 1, 4, 2, 16, 16, 5);
    tensors.kv_lens = lengths;
    run();
    for (size_t row = 4; row < 8; row++)
        assert_row(row, 0.0, -INFINITY);
    for (size_t row = 0; row < 12; row++)
        ck_assert(isfinite(lse[row]) == (row < 4 || row >= 8));
}
END_TEST

START_TEST(lengths_are_clamped_to_the_range_and_to_the_bound)
{
    static const int32_t wild[4] = {-1, INT32_MIN, 8, INT32_MAX}, tame[4] = {0, 0, 7, 7}, bounded[4] = {0, 0, 3, 3};

    set_problem(4, 1, 2, 1, 8, 8, 7);
    tensors.kv_lens = tame;
    keep();
    tensors.kv_lens = wild;
    assert_kept();
    tensors.kv_len_bound = 7000;
    assert_kept();
    tensors.kv_len_bound = 0;
    tensors.kv_lens = bounded;
    keep();
    tensors.kv_lens = wild;
    tensors.kv_len_bound = 3;
    assert_kept();
}
END_TEST

START_TEST(without_lengths_every_sequence_is_full_or_as_long_as_the_bound)
{
    static const int32_t full[2] = {9, 9}, short_ones[2] = {4, 4};

    set_problem(2, 1, 2, 1, 8, 8, 9);
    tensors.kv_lens = full;
    keep();
    tensors.kv_lens = NULL;
    assert_kept();
    tensors.kv_lens = short_ones;
    keep();
    tensors.kv_lens = NULL;
    tensors.kv_len_bound = 4;
    assert_kept();
}
END_TEST

START_TEST(causal_queries_are_aligned_to_the_last_key)
{
    set_problem(1, 4, 1, 1, 8, 8, 2);
    attention.causal = 1;
    run();
    assert_row(0, 0.0, -INFINITY);
    assert_row(1, 0.0, -INFINITY);
    for (size_t d = 0; d < 8; d++) /* query 2 sees key 0 alone */
        ck_assert(out[2 * 8 + d] == (double)v[d]);
    ck_assert(isfinite(lse[3]) && lse[3] != lse[2]);
}
END_TEST

START_TEST(causal_is_what_was_asked_for_and_never_inferred)
{
    double causal_lse[4];

    set_problem(1, 4, 1, 1, 8, 8, 4);
    attention.causal = 1;
    run();
    memcpy(causal_lse, lse, sizeof causal_lse);
    attention.causal = 0;
    run();
    for (int query = 0; query < 3; query++)
        ck_assert(causal_lse[query] < lse[query]);
    ck_assert(causal_lse[3] == lse[3]);
}
END_TEST

/* ---- Infinities, NaN, poison ------------------------------------------------------------------------------------- */

START_TEST(a_score_of_minus_infinity_hides_its_key_and_its_value)
{
    set_problem(1, 1, 2, 1, 8, 8, 3);
    q[0] = 1.0f;
    q[8] = 2.0f;
    tensors.kv_len_bound = 2;
    keep();
    tensors.kv_len_bound = 0;
    k[2 * 8] = -INFINITY;
    fill(v + 2 * 8, 8, NAN);
    assert_kept();
    k[0] = k[8] = -INFINITY;
    run();
    assert_row(0, 0.0, -INFINITY);
    assert_row(1, 0.0, -INFINITY);
}
END_TEST

START_TEST(a_nan_or_an_infinite_score_spoils_its_own_row_only)
{
    static const float bad[2] = {NAN, INFINITY};

    for (int i = 0; i < 2; i++) {
        set_problem(2, 2, 4, 2, 8, 8, 6);
        attention.causal = 1;
        for (size_t row = 0; row < num_rows(); row++)
            q[row * 8] = 1.0f;
        keep();
        k[(5 * 2 + 1) * 8] = bad[i]; /* sequence 0, the last key of KV head 1: seen by query 1 of heads 2 and 3 */
        run();
        for (size_t row = 0; row < num_rows(); row++) {
            if (row == 6 || row == 7)
                assert_row(row, NAN, NAN);
            else
                ck_assert(memcmp(out + row * 8, kept_out + row * 8, 8 * sizeof *out) == 0 && lse[row] == kept_lse[row]);
        }
        q[0] = bad[i]; /* and row 0 through its query */
        run();
        assert_row(0, NAN, NAN);
        ck_assert(lse[1] == kept_lse[1]);
    }
}
END_TEST

START_TEST(what_no_row_may_see_changes_no_bit)
{
    static const int32_t lengths[4] = {32, 64, 96, 48};
    static const float poisons[] = {NAN, INFINITY, -INFINITY};
    const size_t row = (size_t)8 * 64;

    set_problem(4, 2, 8, 8, 64, 64, 128);
    attention.causal = 1;
    tensors.kv_lens = lengths;
    keep();
    for (size_t i = 0; i < sizeof poisons / sizeof poisons[0]; i++) {
        for (size_t b = 0; b < 4; b++) {
            const size_t first = (b * 128 + (size_t)lengths[b]) * row, end = (b + 1) * 128 * row;
            fill(k + first, end - first, poisons[i]);
            fill(v + first, end - first, poisons[i]);
        }
        assert_kept();
    }
}
END_TEST

/* ---- Addressing and types ---------------------------------------------------------------------------------------- */

/* Tokens first, heads outermost, gaps everywhere; then the halves of one interleaved buffer; then dense again. */
START_TEST(strides_of_every_order_are_honoured)
{
    static const clfd_strides q_strides = {13, 700, 100}, k_strides = {20, 41, 1000}, v_strides = {9, 3000, 100};
    static const clfd_strides interleaved = {11 * 3 * 24, 3 * 24, 24};
    float *far_q, *far_k, *far_v;

    set_problem(2, 3, 6, 3, 8, 8, 11);
    keep();
    attention.q_strides = q_strides;
    attention.k_strides = k_strides;
    attention.v_strides = v_strides;
    tensors.q = far_q = scatter(q, &q_strides, 2, 3, 6, 8, 3000);
    tensors.k = far_k = scatter(k, &k_strides, 2, 11, 3, 8, 4000);
    tensors.v = far_v = scatter(v, &v_strides, 2, 11, 3, 8, 40000);
    assert_kept();
    free(far_k);
    attention.k_strides = attention.v_strides = interleaved;
    tensors.k = far_k = scatter(k, &interleaved, 2, 11, 3, 8, 3000);
    for (size_t i = 0; i < 2 * 11 * 3; i++)
        memcpy(far_k + i * 24 + 8, v + i * 8, 8 * sizeof *v);
    tensors.v = far_k + 8;
    assert_kept();
    attention.q_strides = attention.k_strides = attention.v_strides = (clfd_strides){0};
    tensors.q = q;
    tensors.k = k;
    tensors.v = v;
    assert_kept();
    free(far_q);
    free(far_k);
    free(far_v);
}
END_TEST

START_TEST(the_head_major_layout_is_the_token_major_one_transposed)
{
    static const clfd_strides bhsd = {3 * 11 * 8, 8, 11 * 8};
    float *far_k, *far_v;

    set_problem(2, 1, 6, 3, 8, 8, 11);
    keep();
    attention.kv_layout = CLFD_LAYOUT_BHSD;
    tensors.k = far_k = scatter(k, &bhsd, 2, 11, 3, 8, 2 * 3 * 11 * 8);
    tensors.v = far_v = scatter(v, &bhsd, 2, 11, 3, 8, 2 * 3 * 11 * 8);
    assert_kept();
    free(far_k);
    free(far_v);
}
END_TEST

START_TEST(a_broadcast_stride_shares_one_sequence_among_all)
{
    set_problem(3, 1, 2, 1, 8, 8, 5);
    for (size_t b = 1; b < 3; b++) {
        memcpy(k + b * 40, k, 40 * sizeof *k);
        memcpy(v + b * 40, v, 40 * sizeof *v);
    }
    keep();
    fill(k + 40, 80, NAN);
    fill(v + 40, 80, NAN);
    attention.k_strides.batch = attention.v_strides.batch = CLFD_STRIDE_BROADCAST;
    assert_kept();
}
END_TEST

/* Keys 2^30 elements apart: the offset of the third crosses 2^31 elements and 4 GiB. The memory is never touched but
 * for three rows. */
START_TEST(offsets_beyond_31_bits_find_their_row)
{
    const size_t apart = (size_t)1 << 30;
    uint16_t *codes = calloc(2 * apart + 8, sizeof *codes);

    ck_assert_ptr_nonnull(codes);
    set_problem(1, 1, 1, 1, 8, 8, 3);
    for (size_t j = 0; j < 3; j++) {
        clfd_convert_from_float(CLFD_TYPE_BF16, k + j * 8, codes + j * apart, 8);
        clfd_convert_to_float(CLFD_TYPE_BF16, codes + j * apart, k + j * 8, 8);
    }
    attention.v_from_k = 1;
    tensors.v = NULL;
    keep();
    attention.k_type = CLFD_TYPE_BF16;
    attention.k_strides.token = (int64_t)apart;
    tensors.k = codes;
    assert_kept();
    free(codes);
}
END_TEST

START_TEST(v_from_k_reads_the_first_elements_of_k)
{
    set_problem(2, 1, 4, 1, 24, 16, 9);
    for (size_t row = 0; row < 18; row++)
        memcpy(v + row * 16, k + row * 24, 16 * sizeof *v);
    keep();
    attention.v_from_k = 1;
    tensors.v = NULL;
    assert_kept();
}
END_TEST

START_TEST(sixteen_bit_types_equal_the_same_values_as_floats)
{
    static const clfd_type types[] = {CLFD_TYPE_F16, CLFD_TYPE_BF16};
    static uint16_t codes[3][MAX_VALUES];
    float *const values[3] = {q, k, v};

    for (int i = 0; i < 4; i++) {
        const clfd_type q_type = types[i % 2], kv_type = types[i / 2];
        set_problem(2, 2, 6, 2, 40, 24, 13);
        const size_t counts[3] = {num_rows() * 40, num_k(), num_v()};
        for (int t = 0; t < 3; t++) {
            clfd_convert_from_float(t == 0 ? q_type : kv_type, values[t], codes[t], counts[t]);
            clfd_convert_to_float(t == 0 ? q_type : kv_type, codes[t], values[t], counts[t]);
        }
        keep();
        attention.q_type = q_type;
        attention.k_type = kv_type;
        tensors.q = codes[0];
        tensors.k = codes[1];
        tensors.v = codes[2];
        assert_kept();
    }
}
END_TEST

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

START_TEST(a_row_does_not_depend_on_the_rows_beside_it)
{
    set_problem(1, 16, 71, 1, 8, 8, 40);
    keep();
    attention.num_q_heads = 1; /* now the last head of every query alone */
    attention.num_kv_heads = 1;
    attention.q_strides.token = 71 * 8;
    tensors.q = q + 70 * 8;
    run();
    for (size_t query = 0; query < 16; query++) {
        ck_assert_mem_eq(out + query * 8, kept_out + (query * 71 + 70) * 8, 8 * sizeof *out);
        ck_assert(lse[query] == kept_lse[query * 71 + 70]);
    }
}
END_TEST

START_TEST(lse_is_optional_and_a_batch_of_none_writes_nothing)
{
    set_problem(2, 1, 2, 1, 8, 8, 5);
    keep();
    tensors.lse = NULL;
    run();
    ck_assert_mem_eq(out, kept_out, num_out() * sizeof *out);
    tensors.batch = 1;
    run();
    ck_assert_mem_eq(out, kept_out, num_out() * sizeof *out);
    ck_assert(isnan(out[num_out()]));
    tensors = (clfd_host_tensors){.struct_size = sizeof tensors};
    ck_assert_int_eq(clfd_reference_attention(&attention, &tensors, NULL), CLFD_SUCCESS);
}
END_TEST

static char sentence[256];

static void keep_sentence(void *user, clfd_log_level level, const char *message)
{
    (void)user, (void)level;
    strncpy(sentence, message, sizeof sentence - 1);
}

static void assert_refused(clfd_status status, const char *words)
{
    const clfd_logger logger = {keep_sentence, NULL};

    sentence[0] = '\0';
    memset(out, 0xff, sizeof out);
    ck_assert_int_eq(clfd_reference_attention(&attention, &tensors, &logger), status);
    ck_assert_msg(strstr(sentence, words) != NULL, "\"%s\" does not say \"%s\"", sentence, words);
    ck_assert(isnan(out[0]));
    set_problem(2, 1, 6, 2, 8, 8, 5);
}

START_TEST(each_broken_rule_has_its_status_and_a_sentence)
{
    set_problem(2, 1, 6, 2, 8, 8, 5);
    attention.num_q_heads = 33;
    assert_refused(CLFD_ERROR_HEAD_RATIO, "num_q_heads is 33");
    attention.struct_size = 0;
    assert_refused(CLFD_ERROR_STRUCT_SIZE, "clfd_attention");
    tensors.struct_size = 0;
    assert_refused(CLFD_ERROR_STRUCT_SIZE, "clfd_host_tensors");
    tensors.batch = 3;
    assert_refused(CLFD_ERROR_BATCH_RANGE, "batch is 3");
    tensors.q = NULL;
    assert_refused(CLFD_ERROR_NULL_ARGUMENT, "tensors.q ");
    tensors.k = NULL;
    assert_refused(CLFD_ERROR_NULL_ARGUMENT, "tensors.k ");
    tensors.v = NULL;
    assert_refused(CLFD_ERROR_NULL_ARGUMENT, "tensors.v ");
    tensors.out = NULL;
    assert_refused(CLFD_ERROR_NULL_ARGUMENT, "tensors.out ");
    attention.v_from_k = 1;
    assert_refused(CLFD_ERROR_BUFFER_UNEXPECTED, "tensors.v ");
    ck_assert_int_eq(clfd_reference_attention(NULL, &tensors, NULL), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_reference_attention(&attention, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        three_keys_give_the_textbook_values,
        every_shape_equals_the_naive_loop,
        a_zero_query_gives_the_mean_of_v_and_the_log_of_the_length,
        values_that_name_their_dim_come_back_as_they_are,
        one_key_far_above_the_others_wins_at_every_level,
        the_default_scale_is_one_over_the_root_of_the_dim,
        rows_without_a_key_are_overwritten_with_zero_and_minus_infinity,
        lengths_are_clamped_to_the_range_and_to_the_bound,
        without_lengths_every_sequence_is_full_or_as_long_as_the_bound,
        causal_queries_are_aligned_to_the_last_key,
        causal_is_what_was_asked_for_and_never_inferred,
        a_score_of_minus_infinity_hides_its_key_and_its_value,
        a_nan_or_an_infinite_score_spoils_its_own_row_only,
        what_no_row_may_see_changes_no_bit,
        strides_of_every_order_are_honoured,
        the_head_major_layout_is_the_token_major_one_transposed,
        a_broadcast_stride_shares_one_sequence_among_all,
        offsets_beyond_31_bits_find_their_row,
        v_from_k_reads_the_first_elements_of_k,
        sixteen_bit_types_equal_the_same_values_as_floats,
        a_row_does_not_depend_on_the_rows_beside_it,
        lse_is_optional_and_a_batch_of_none_writes_nothing,
        each_broken_rule_has_its_status_and_a_sentence,
    };
    return run_suite("reference", tests, sizeof tests / sizeof tests[0]);
}

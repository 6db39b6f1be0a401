/* Appending to the cache: every type, rope, layout and length against the loop of clfd/cache.h. Pages have a test of
 * their own. */
#include "support/append_case.h"
#include "support/suite.h"
#include "type.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

#define F32 CLFD_TYPE_F32
#define F16 CLFD_TYPE_F16
#define BF16 CLFD_TYPE_BF16
#define INT8 CLFD_TYPE_INT8
#define INT4 CLFD_TYPE_INT4
#define E4M3 CLFD_TYPE_FP8_E4M3
#define E5M2 CLFD_TYPE_FP8_E5M2
#define Q8_0 CLFD_TYPE_Q8_0
#define Q4_0 CLFD_TYPE_Q4_0

/* Three sequences that grow from different lengths by two tokens each. */
static const int32_t lens[] = {5, 0, 13};

static append_problem small_problem(clfd_type q_type, clfd_type k_type, clfd_type v_type)
{
    return (append_problem){.attention = {.max_batch = 3,
                                          .q_len = 2,
                                          .num_q_heads = 4,
                                          .num_kv_heads = 2,
                                          .head_dim = 64,
                                          .q_type = q_type,
                                          .k_type = k_type,
                                          .v_type = v_type,
                                          .max_kv_len = 16},
                            .kv_lens = lens};
}

START_TEST(every_type_of_the_cache_gets_what_the_host_gets)
{
    static const struct {
        clfd_type new, k, v;
        clfd_quant k_quant, v_quant;
        uint32_t head_dim_v;
    } cases[] = {
        {F32, F32, F32, {0}, {0}, 0},
        {F32, F16, F16, {0}, {0}, 40},
        {F16, BF16, BF16, {0}, {0}, 0},
        {BF16, F16, F16, {0}, {0}, 0},
        {F16, INT8, INT4, {0}, {0}, 96},
        {F32, INT8, INT8, {.group = 16, .zeros = 1}, {.group = 32, .scale_type = F16, .zeros = 1}, 0},
        {F32, INT4, INT4, {.group = 8, .scale_type = F16}, {.group = 16, .zeros = 1}, 0},
        {F16, E4M3, E5M2, {0}, {.scale_type = F16, .strides = {.head = 1}}, 40},
        {BF16, E5M2, E4M3, {.strides = {.head = 1}}, {0}, 0},
        {F32, Q8_0, Q4_0, {0}, {0}, 96},
        {F16, Q4_0, Q8_0, {0}, {0}, 0},
        {F16, INT8, Q4_0, {.group = 64}, {0}, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        append_problem p = small_problem(cases[i].new, cases[i].k, cases[i].v);
        p.attention.k_quant = cases[i].k_quant;
        p.attention.v_quant = cases[i].v_quant;
        p.attention.head_dim_v = cases[i].head_dim_v;
        p.seed = i;
        append_verify(&p);
    }
}
END_TEST

/* The values of each row of new_k, 8 of them, 8 times; what reads back is compared with the loop, and is no garbage. */
START_TEST(special_values_reach_every_type)
{
    static const float rows[][8] = {
        {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f},
        {-0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f, -0.0f, 0.0f},
        {1.0f, NAN, 2.0f, 3.0f, -1.0f, 0.0f, 0.0f, 0.0f},
        {1.0f, INFINITY, 2.0f, 3.0f, -1.0f, 0.0f, 0.0f, 0.0f},
        {-INFINITY, INFINITY, 2.0f, 3.0f, -1.0f, 0.0f, 0.0f, 0.0f},
        {1e-30f, -2e-30f, 1e-31f, 0.0f, 1e-30f, 2e-30f, 0.0f, 0.0f},
        {3e38f, -3e38f, 1.0f, 1e30f, -1e30f, 0.0f, 0.0f, 0.0f},
        {-5.0f, -5.0f, -5.0f, -5.0f, -5.0f, -5.0f, -5.0f, -5.0f},
        {5.0f, -5.0f, 2.5f, 1.25f, 0.5f, -0.5f, 1.5f, -1.5f},
        {500.0f, -500.0f, 60000.0f, -60000.0f, 448.0f, 464.0f, 57344.0f, 61440.0f},
    };
    static const clfd_type types[] = {F16, BF16, INT8, INT4, E4M3, E5M2, Q8_0, Q4_0};

    for (size_t i = 0; i < COUNT(types); i++)
        for (uint32_t zeros = 0; zeros <= clfd_type_is_grouped(types[i]); zeros++)
            for (int gpu = 0; gpu <= 1; gpu++) {
                append_problem p = small_problem(F32, types[i], types[i]);
                p.gpu = gpu;
                p.attention.max_batch = p.attention.num_q_heads = p.attention.num_kv_heads = 1;
                p.append.num_tokens = COUNT(rows);
                p.attention.k_quant.zeros = zeros;
                append_call *const call = append_open(&p);
                for (size_t d = 0; d < COUNT(rows) * 64; d++)
                    append_put(call, APPEND_NEW_K, d, rows[d / 64][d % 8]);
                append_run(call);
                append_expect_loop(call);
                append_close(call);
            }
}
END_TEST

/* All finite f16, infinities and NaN, as they are and eight times as great, which reaches the ends of e5m2. */
START_TEST(every_f16_becomes_the_fp8_that_the_host_rounds_it_to)
{
    static const clfd_type types[] = {E4M3, E5M2};
    enum { DIM = 512, TOKENS = 65536 / DIM };

    for (size_t i = 0; i < COUNT(types); i++) {
        append_problem p = small_problem(F16, types[i], types[i]);
        p.kv_lens = NULL;
        p.attention.max_batch = p.attention.num_q_heads = p.attention.num_kv_heads = 1;
        p.attention.head_dim = DIM;
        p.attention.head_dim_v = 8;
        p.attention.max_kv_len = p.append.num_tokens = TOKENS;
        append_call *const call = append_open(&p);
        const float scale = i == 0 ? 1.0f : 0.125f;
        memcpy(call->images[APPEND_K_SCALE].data + call->images[APPEND_K_SCALE].offset, &scale, sizeof scale);
        for (uint32_t code = 0; code < 65536; code++) {
            const uint16_t bits = (uint16_t)code;
            memcpy(call->images[APPEND_NEW_K].data + call->images[APPEND_NEW_K].offset + code * sizeof bits, &bits,
                   sizeof bits);
        }
        append_run(call);
        append_expect_loop(call);
        append_close(call);
    }
}
END_TEST

START_TEST(rope_rotates_k_and_q_in_both_styles_and_in_part)
{
    static const struct {
        clfd_rope rope;
        uint32_t start, dim, q;
        clfd_type q_type, cache;
    } cases[] = {
        {CLFD_ROPE_NEOX, 0, 0, 1, F32, F32},   {CLFD_ROPE_GPTJ, 0, 0, 1, F16, F16},
        {CLFD_ROPE_NEOX, 0, 20, 1, BF16, F16}, {CLFD_ROPE_GPTJ, 6, 2, 1, F32, F16},
        {CLFD_ROPE_NEOX, 40, 0, 1, F16, INT8}, {CLFD_ROPE_GPTJ, 0, 34, 0, F16, Q8_0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        append_problem p = small_problem(cases[i].q_type, cases[i].cache, cases[i].cache);
        p.append.rope = cases[i].rope;
        p.append.rotary_start = cases[i].start;
        p.append.rotary_dim = cases[i].dim;
        p.append.rope_q = cases[i].q;
        p.seed = i;
        append_verify(&p);
    }
}
END_TEST

START_TEST(positions_are_given_or_follow_the_length_and_stay_within_the_tables)
{
    static const int32_t positions[] = {0, 7, -5, 3, INT32_MAX, 9}, long_lens[] = {15, 9, 2};

    for (uint32_t given = 0; given <= 1; given++) {
        append_problem p = small_problem(F32, F32, F32);
        p.kv_lens = long_lens;
        p.append.rope = CLFD_ROPE_NEOX;
        p.append.rope_q = 1;
        p.append.max_positions = 10;
        p.append.positions = given;
        p.positions = given ? positions : NULL;
        append_verify(&p);
    }
}
END_TEST

/* Lengths and counts that are negative, too great, and past the end together; q is rotated for dropped tokens too. */
START_TEST(counts_are_clamped_and_tokens_past_the_capacity_are_dropped_and_reported)
{
    static const int32_t kv_lens[] = {-3, 15, 16, 99, 14, INT32_MAX, INT32_MIN}, counts[] = {2, 3, 1, 3, 99, 0, -1};
    static const int32_t expected[] = {2, 16, 16, 16, 16, 16, 0};

    for (int gpu = 0; gpu <= 1; gpu++) {
        append_problem p = small_problem(F16, F16, F16);
        p.gpu = gpu;
        p.attention.max_batch = COUNT(kv_lens);
        p.attention.q_len = 3;
        p.append.ragged = 1;
        p.append.rope = CLFD_ROPE_GPTJ;
        p.append.rope_q = 1;
        p.kv_lens = kv_lens;
        p.new_lens = counts;
        p.status = 0x100;
        append_call *const call = append_open(&p);
        append_run(call);
        append_expect_loop(call);
        ck_assert_uint_eq(append_status(call), 0x100 | CLFD_FLAG_CAPACITY);
        for (uint32_t b = 0; b < COUNT(kv_lens); b++)
            ck_assert_int_eq(append_length(call, b), expected[b]);
        append_close(call);
    }
}
END_TEST

START_TEST(without_lengths_every_sequence_begins)
{
    append_problem p = small_problem(F16, F16, F16);

    p.kv_lens = NULL;
    p.append.num_tokens = 16;
    append_verify(&p);
    p.batch = 2;
    append_verify(&p);
}
END_TEST

START_TEST(cache_rows_are_chosen_and_those_that_there_are_not_are_reported)
{
    static const int32_t rows[] = {4, 0, 2}, wrong[] = {1, 5, -1};

    append_problem p = small_problem(F16, INT8, INT8);
    p.attention.cache_batch_idx = 1;
    p.attention.num_cache_rows = 5;
    p.cache_batch_idx = rows;
    append_verify(&p);
    p.cache_batch_idx = wrong;
    append_call *const call = append_open(&p);
    append_run(call);
    append_expect_loop(call);
    ck_assert_uint_eq(append_status(call), CLFD_FLAG_CACHE_ROW);
    append_close(call);
}
END_TEST

/* Paddings between tokens, heads and sequences, in every tensor. */
START_TEST(strides_are_honoured_and_paddings_stay_untouched)
{
    append_problem p = small_problem(F16, F16, F16);

    p.attention.k_strides = (clfd_strides){.batch = 4000, .token = 200, .head = 72};
    p.attention.v_strides = (clfd_strides){.batch = 72, .token = 500, .head = 250};
    p.attention.q_strides = (clfd_strides){.batch = 1000, .token = 70, .head = 150};
    p.append.new_k_strides = (clfd_strides){.batch = 130, .token = 400, .head = 65};
    p.append.new_v_strides = (clfd_strides){.batch = 200, .token = 67, .head = 600};
    p.append.rope = CLFD_ROPE_NEOX;
    p.append.rope_q = 1;
    append_verify(&p);
    p = small_problem(F16, INT4, Q8_0);
    p.attention.kv_layout = CLFD_LAYOUT_BHSD;
    p.attention.k_strides = (clfd_strides){.token = 37, .head = 600, .batch = 1300};
    p.attention.v_strides = (clfd_strides){.token = 3, .head = 50, .batch = 103};
    p.attention.k_quant =
        (clfd_quant){.group = 16, .zeros = 1, .group_stride = 3, .strides = {.token = 13, .head = 220, .batch = 500}};
    append_verify(&p);
}
END_TEST

/* MLA: one row of 576, the first 512 of which are V, and the last 64 rotated. */
START_TEST(v_from_k_is_written_once)
{
    static const clfd_type types[] = {F16, Q8_0, INT8};

    for (size_t i = 0; i < COUNT(types); i++) {
        append_problem p = small_problem(F16, types[i], types[i]);
        p.attention.num_kv_heads = 1;
        p.attention.head_dim = 576;
        p.attention.head_dim_v = 512;
        p.attention.v_from_k = 1;
        p.attention.k_quant.group = types[i] == INT8 ? 64 : 0;
        p.append.rope = CLFD_ROPE_GPTJ;
        p.append.rope_q = 1;
        p.append.rotary_start = 512;
        append_verify(&p);
    }
}
END_TEST

START_TEST(a_shared_sequence_grows_once)
{
    static const int32_t length[] = {3}, row[] = {1};

    append_problem p = small_problem(F16, F16, F16);
    p.batch = 1;
    p.attention.shared_kv = 1;
    p.kv_lens = length;
    append_verify(&p);
    p.attention.cache_batch_idx = 1;
    p.attention.num_cache_rows = 2;
    p.cache_batch_idx = row;
    append_verify(&p);
    append_call *const call = append_open(&p);
    append_run(call);
    call->buffers.batch = 2;
    ck_assert_int_eq(clfd_enqueue_append(call->plan, test_session_get()->queue, &call->buffers, 0, NULL, NULL),
                     CLFD_ERROR_BATCH_RANGE);
    append_close(call);
}
END_TEST

START_TEST(an_empty_batch_completes_its_event)
{
    append_problem p = small_problem(F16, F16, F16);
    append_call *const call = append_open(&p);
    const clfd_append_buffers none = {.struct_size = sizeof none};
    cl_event event = NULL;

    ck_assert_int_eq(clfd_enqueue_append(call->plan, test_session_get()->queue, &none, 0, NULL, &event), CLFD_SUCCESS);
    ck_assert_int_eq(clWaitForEvents(1, &event), CL_SUCCESS);
    clReleaseEvent(event);
    append_close(call);
}
END_TEST

START_TEST(a_plan_says_what_it_is)
{
    append_problem p = small_problem(F16, INT8, Q4_0);
    p.append.rope = CLFD_ROPE_NEOX;
    p.append.rotary_dim = 32;
    append_call *const call = append_open(&p);
    const char *const text = clfd_append_plan_describe(call->plan);

    ck_assert_msg(strncmp(text, "append f16 kint8 vq4_0 d64 hkv2 tokens2 neox rotary0+32 ", 56) == 0, "%s", text);
    clfd_append_plan_retain(call->plan);
    clfd_append_plan_release(call->plan);
    ck_assert_ptr_eq(clfd_append_plan_describe(call->plan), text);
    ck_assert_ptr_null(clfd_append_plan_describe(NULL));
    append_close(call);
    clfd_append_plan_release(NULL);
    clfd_append_plan_retain(NULL);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_type_of_the_cache_gets_what_the_host_gets,
        special_values_reach_every_type,
        every_f16_becomes_the_fp8_that_the_host_rounds_it_to,
        rope_rotates_k_and_q_in_both_styles_and_in_part,
        positions_are_given_or_follow_the_length_and_stay_within_the_tables,
        counts_are_clamped_and_tokens_past_the_capacity_are_dropped_and_reported,
        without_lengths_every_sequence_begins,
        cache_rows_are_chosen_and_those_that_there_are_not_are_reported,
        strides_are_honoured_and_paddings_stay_untouched,
        v_from_k_is_written_once,
        a_shared_sequence_grows_once,
        an_empty_batch_completes_its_event,
        a_plan_says_what_it_is,
    };
    const int result = run_suite("append", tests, COUNT(tests));

    test_session_close();
    return result;
}

/* The lanes family with quantised K and V, in the shapes that GPUs run: lanes that take several chunks of a row as one
 * load, scales of rows, of runs and of blocks, steps loaded ahead. Rows of 128 dims, for a run needs as many lanes as it
 * leaves chunks. */
#include "support/option_cases.h"
#include "support/suite.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const struct {
    clfd_type k, v;
    clfd_quant k_quant, v_quant;
} types[] = {
    {CLFD_TYPE_INT8, CLFD_TYPE_INT4, {.zeros = 1}, {0}},
    {CLFD_TYPE_INT4, CLFD_TYPE_INT8, {.group = 32}, {.group = 32, .zeros = 1}},
    {CLFD_TYPE_INT4, CLFD_TYPE_INT4, {.group = 8, .zeros = 1}, {.zeros = 1, .scale_type = CLFD_TYPE_F16}},
    {CLFD_TYPE_INT8, CLFD_TYPE_INT8, {.group = 64, .scale_type = CLFD_TYPE_F16}, {.group = 16}},
    {CLFD_TYPE_FP8_E4M3, CLFD_TYPE_FP8_E5M2, {.strides.head = 1}, {0}},
    {CLFD_TYPE_FP8_E5M2, CLFD_TYPE_Q8_0, {0}, {0}},
    {CLFD_TYPE_Q8_0, CLFD_TYPE_Q4_0, {0}, {0}},
    {CLFD_TYPE_Q4_0, CLFD_TYPE_FP8_E4M3, {0}, {0}},
};

static attention_problem lanes_case(size_t t, const char *tuning, uint32_t ratio)
{
    attention_problem p = option_case((clfd_attention){.head_dim = 128, .k_type = types[t].k, .v_type = types[t].v});

    p.attention.num_q_heads = 2 * ratio;
    p.attention.q_len = 1;
    p.attention.k_quant = types[t].k_quant;
    p.attention.v_quant = types[t].v_quant;
    p.attention.tuning = tuning;
    p.seed = t;
    return p;
}

static void verify_types_in(const char *tuning, uint32_t ratio)
{
    for (size_t t = 0; t < COUNT(types); t++) {
        attention_problem p = lanes_case(t, tuning, ratio);
        attention_verify(&p);
        p.attention.split_size = 200; /* a direct write */
        attention_verify(&p);
    }
}

START_TEST(four_lanes_of_one_row_match_the_reference)
{
    verify_types_in("family=decode_lanes exchange=local wg=32 lanes=4 unroll=4 parts=1", 1);
}
END_TEST

START_TEST(steps_loaded_ahead_match_the_reference)
{
    verify_types_in("family=decode_lanes exchange=local wg=32 lanes=8 unroll=2 ahead=1 parts=1", 2);
}
END_TEST

/* Pages are found a step ahead of loads that are a step ahead; wrong ones are hidden in every type. */
START_TEST(pages_of_steps_loaded_ahead_match_the_reference)
{
    static const struct {
        size_t type;
        const char *tuning;
    } chosen[] = {
        {0, "family=decode_lanes exchange=local wg=32 lanes=8 unroll=2 ahead=1 parts=1"},
        {6, "family=decode_lanes exchange=local wg=32 lanes=8 unroll=2 ahead=1 parts=1"},
        {6, "family=decode_lanes exchange=local wg=32 lanes=4 unroll=2 ahead=2 parts=1"},
    };

    for (size_t i = 0; i < COUNT(chosen); i++) {
        attention_problem p = lanes_case(chosen[i].type, chosen[i].tuning, 2);
        p.attention.paging = CLFD_PAGING_TABLE;
        p.attention.page_size = 16;
        attention_verify(&p);
        attention_call *const call = attention_open(&p);
        *attention_page_of(call, 4, 48) = -1;
        *attention_page_of(call, 4, 128) = INT32_MAX;
        attention_run(call);
        attention_expect_reference(call);
        ck_assert_uint_eq(call->status, CLFD_FLAG_PAGE);
        attention_close(call);
    }
}
END_TEST

/* Four lanes a row of 128 dims: each takes 32 of them by long loads, GGML's blocks whole. With three KV heads rows of blocks
 * begin on odd multiples of 8 bytes, too. Groups of 8 and odd layouts keep the lanes from it. */
START_TEST(lanes_that_load_several_chunks_at_once_match_the_reference)
{
    static const clfd_attention options[] = {
        {.k_type = CLFD_TYPE_Q8_0, .v_type = CLFD_TYPE_Q4_0},
        {.k_type = CLFD_TYPE_Q4_0, .v_type = CLFD_TYPE_Q8_0, .head_dim_v = 256},
        {.k_type = CLFD_TYPE_INT4, .v_type = CLFD_TYPE_INT8, .v_quant = {.group = 32, .zeros = 1}},
        {.k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_INT4, .k_quant = {.group = 16}, .v_quant = {.group = 8}},
        {.k_type = CLFD_TYPE_FP8_E4M3, .v_type = CLFD_TYPE_FP8_E5M2},
    };

    for (size_t i = 0; i < COUNT(options); i++) {
        attention_problem p = option_case(options[i]);
        p.attention.head_dim = 128;
        p.attention.head_dim_v = options[i].head_dim_v != 0 ? options[i].head_dim_v : 128;
        p.attention.num_kv_heads = 3;
        p.attention.num_q_heads = 6;
        p.attention.q_len = 1;
        p.attention.tuning = "family=decode_lanes lanes=4 parts=1 unroll=2";
        p.seed = i;
        attention_verify(&p);
        if (i == 0) {
            p.attention.tuning = "family=decode_lanes lanes=4 parts=1 unroll=2 ahead=1";
            attention_verify(&p);
        }
        p.attention.tuning = "family=decode_lanes lanes=4 parts=1 unroll=2 ahead=2";
        attention_verify(&p);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        four_lanes_of_one_row_match_the_reference,
        steps_loaded_ahead_match_the_reference,
        pages_of_steps_loaded_ahead_match_the_reference,
        lanes_that_load_several_chunks_at_once_match_the_reference,
    };
    const int result = run_suite("decode_lanes_quantised", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

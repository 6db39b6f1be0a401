/* Faults that were reported against other decode-attention and OpenCL projects, each as the small case that shows it. The
 * report stands beside the test. Cases of pages, windows, biases and other options that are not there yet are missing. */
#include "plan/describe.h"
#include "run/context.h"
#include "run/plan.h"
#include "support/attention.h"
#include "support/compare.h"
#include "support/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define F32 CLFD_TYPE_F32
#define F16 CLFD_TYPE_F16
#define BF16 CLFD_TYPE_BF16

/* One sequence of one query unless said otherwise. */
static attention_problem describe(uint32_t num_q_heads, uint32_t num_kv_heads, uint32_t head_dim, clfd_type type,
                                  uint32_t capacity)
{
    return (attention_problem){.attention = {.num_q_heads = num_q_heads,
                                             .num_kv_heads = num_kv_heads,
                                             .head_dim = head_dim,
                                             .q_type = type,
                                             .out_type = F32,
                                             .max_kv_len = capacity}};
}

static void split(attention_problem *problem, clfd_split_policy policy, uint32_t size)
{
    problem->attention.split_policy = policy;
    problem->attention.split_size = size;
}

static const float nothing[576];

static void expect_empty(const attention_call *call, uint32_t batch, uint32_t query, uint32_t head)
{
    const size_t bytes = call->complete.head_dim_v * sizeof(float);

    ck_assert_int_eq(memcmp(attention_out(call, batch, query, head), nothing, bytes), 0);
    ck_assert(call->lse[attention_row(call, batch, query, head)] == -INFINITY);
}

/* ---- Empty sets, LSE, merge -------------------------------------------------------------------------------------- */

enum { STATE_DIM = 64 };

/* (o1, s1) (+) (o2, s2) on the device; the o of a state holds one value throughout. Returns S of the result. */
static float merge_pair(float o1, float s1, float o2, float s2, float out[STATE_DIM])
{
    test_session *const session = test_session_get();
    const clfd_merge merge = {.struct_size = sizeof merge, .max_rows = 1, .head_dim_v = STATE_DIM};
    const float stats[3] = {s1, s2, 0.0f};
    float o[3 * STATE_DIM] = {0.0f}, lse;
    clfd_state_buffers states[3];
    clfd_merge_plan *plan;
    cl_mem mem[2];

    for (int d = 0; d < STATE_DIM; d++) {
        o[d] = o1;
        o[STATE_DIM + d] = o2;
    }
    mem[0] = test_buffer_create_from(CL_MEM_READ_WRITE, o, sizeof o);
    mem[1] = test_buffer_create_from(CL_MEM_READ_WRITE, stats, sizeof stats);
    for (size_t i = 0; i < 3; i++)
        states[i] = (clfd_state_buffers){.o = test_buffer(mem[0], i * STATE_DIM * sizeof(float)),
                                         .lse = test_buffer(mem[1], i * sizeof(float))};
    ck_assert_int_eq(clfd_merge_plan_create(session->context, &merge, &plan), CLFD_SUCCESS);
    ck_assert_int_eq(
        clfd_enqueue_merge_pair(plan, session->queue, 1, &states[0], &states[1], &states[2], 0, NULL, NULL),
        CLFD_SUCCESS);
    test_buffer_read(mem[0], states[2].o.offset, out, STATE_DIM * sizeof(float));
    test_buffer_read(mem[1], states[2].lse.offset, &lse, sizeof lse);
    clfd_merge_plan_release(plan);
    clReleaseMemObject(mem[0]);
    clReleaseMemObject(mem[1]);
    return lse;
}

/* 1 [flashinfer#4051] */
START_TEST(merge_of_two_empty_states_was_nan)
{
    float out[STATE_DIM];

    ck_assert(merge_pair(0.0f, -INFINITY, 0.0f, -INFINITY, out) == -INFINITY);
    ck_assert_int_eq(memcmp(out, nothing, sizeof out), 0);
    ck_assert(merge_pair(NAN, -INFINITY, 3.0f, 5.0f, out) == 5.0f && out[63] == 3.0f);
    ck_assert(merge_pair(3.0f, 5.0f, NAN, -INFINITY, out) == 5.0f && out[63] == 3.0f);
}
END_TEST

/* 2 [flash-attention#978]: and what a merge makes of an LSE that is none. */
START_TEST(lse_of_no_keys_was_plus_infinity)
{
    static const int32_t lens[] = {0};
    attention_problem p = describe(2, 2, 64, F16, 16);
    float out[STATE_DIM];

    p.kv_lens = lens;
    attention_call *const call = attention_open(&p);
    attention_run(call);
    expect_empty(call, 0, 0, 0);
    expect_empty(call, 0, 0, 1);
    attention_close(call);
    ck_assert(isnan(merge_pair(1.0f, INFINITY, 2.0f, 0.0f, out)) && isnan(out[0]));
    ck_assert(isnan(merge_pair(1.0f, 0.0f, 2.0f, NAN, out)) && isnan(out[0]));
}
END_TEST

/* 3 [flashinfer#363]: out is filled with 0xFF before the call. */
START_TEST(row_without_keys_was_not_written)
{
    static const int32_t lens[] = {5, 0, 5};
    attention_problem p = describe(2, 2, 64, F16, 16);

    p.attention.max_batch = 3;
    p.kv_lens = lens;
    attention_call *const call = attention_open(&p);
    attention_run(call);
    expect_empty(call, 1, 0, 0);
    attention_expect_reference(call);
    attention_close(call);
}
END_TEST

/* 4 [flashinfer#4267, #4450] */
START_TEST(finite_sentinel_outranked_real_scores)
{
    static const float levels[] = {-1e4f, -45000.0f, -54000.0f, -55000.0f, -56000.0f, -65504.0f, -1e5f, -1e6f};

    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        attention_problem p = describe(16, 1, 128, F32, 64);
        p.attention.scale = 1.0f;
        split(&p, CLFD_SPLIT_TOKENS, 16);
        attention_call *const call = attention_open(&p);
        for (uint32_t h = 0; h < 16; h++) {
            image_put_row(&call->images[ATTENTION_Q], 0, 0, h, 0.0f);
            image_put(&call->images[ATTENTION_Q], 0, 0, h, 0, 1.0f);
        }
        for (uint32_t j = 0; j < 64; j++)
            image_put(&call->images[ATTENTION_K], 0, j, 0, 0, j == 0 ? levels[i] + 5000.0f : levels[i]);
        attention_run(call);
        for (uint32_t h = 0; h < 16; h++)
            for (uint32_t d = 0; d < 128; d++) {
                const float v = image_get(&call->images[ATTENTION_V], 0, 0, 0, d),
                            out = attention_out(call, 0, 0, h)[d];
                EXPECT(compare_value(out, v, TOLERANCE_STATE), "scores of %g: %.9g instead of %.9g", levels[i], out, v);
            }
        attention_close(call);
    }
}
END_TEST

/* 5 [flashinfer#4452] */
START_TEST(queries_before_the_first_key_were_nan)
{
    static const int32_t lens[] = {2};
    attention_problem p = describe(2, 1, 64, F16, 16);

    p.attention.q_len = 4;
    p.attention.causal = 1;
    p.kv_lens = lens;
    attention_call *const call = attention_open(&p);
    attention_run(call);
    for (uint32_t h = 0; h < 2; h++) {
        expect_empty(call, 0, 0, h);
        expect_empty(call, 0, 1, h);
    }
    attention_expect_reference(call);
    attention_close(call);
}
END_TEST

/* 6 [sglang#33064]: a mistake of base 2 gives 0.723. */
START_TEST(lse_was_in_units_of_log2)
{
    attention_problem p = describe(2, 2, 64, F16, 33);
    float out[STATE_DIM];

    ASSERT_VALUE(merge_pair(0.0f, 0.693147181f, 1.0f, 2.07944154f, out), log(10.0), TOLERANCE_STATE);
    ASSERT_VALUE(out[0], 0.8, TOLERANCE_STATE);
    attention_verify(&p); /* which compares lse with the reference's logsumexp */
}
END_TEST

/* 7 [pegainfer#21] */
START_TEST(splits_without_keys_entered_the_result)
{
    for (int32_t n = 1; n <= 8; n++) {
        attention_problem p = describe(2, 2, 64, F16, 8);
        p.kv_lens = &n;
        p.attention.tuning = "split_tile=1";
        split(&p, CLFD_SPLIT_COUNT, 4);
        attention_verify(&p);
        split(&p, CLFD_SPLIT_TOKENS, 2);
        attention_verify(&p);
    }
}
END_TEST

/* ---- Splits, precision, determinism ------------------------------------------------------------------------------ */

/* 8 [flash-attention#777]: ceil gives 6 blocks each, and the last split starts past the end. */
START_TEST(last_split_began_past_the_end)
{
    enum { TILES = 64, TILE = 64 };
    static const uint32_t splits[] = {12, 0, 1, TILES + 1, 10000};

    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        attention_problem p = describe(1, 1, 8, F16, TILES * TILE);
        split(&p, CLFD_SPLIT_COUNT, splits[i]);
        attention_verify(&p);
    }
}
END_TEST

/* 9 [flash-attention#1417] */
START_TEST(capacity_of_the_cache_changed_bits)
{
    static const uint32_t capacities[] = {40960, 65536, 131072, 262144};
    static const int32_t length = 40960;

    for (clfd_split_policy policy = CLFD_SPLIT_COUNT; policy <= CLFD_SPLIT_TOKENS; policy++) {
        attention_call *calls[4];
        for (size_t i = 0; i < 4; i++) {
            attention_problem p = describe(1, 1, 8, F16, capacities[i]);
            p.kv_lens = &length; /* the same keys are drawn each time, behind them lies NaN */
            split(&p, policy, policy == CLFD_SPLIT_COUNT ? 33 : 1000);
            calls[i] = attention_open(&p);
            attention_run(calls[i]);
            ck_assert(attention_same_bits(calls[i], calls[0]));
        }
        attention_expect_reference(calls[3]);
        for (size_t i = 0; i < 4; i++)
            attention_close(calls[i]);
    }
}
END_TEST

/* 10 [FlashMLA#212, flash-attention#1897] */
START_TEST(batch_changed_a_rows_bits)
{
    static const uint32_t batches[] = {1, 2, 7, 64};
    int32_t lens[64];
    attention_call *alone = NULL;

    for (int32_t b = 0; b < 64; b++)
        lens[b] = b == 0 ? 77 : b * 29 % 100;
    for (size_t i = 0; i < 4; i++) {
        attention_problem p = describe(4, 2, 64, F16, 100);
        p.attention.max_batch = batches[i];
        p.kv_lens = lens;
        split(&p, CLFD_SPLIT_TOKENS, 16);
        attention_call *const call = attention_open(&p);
        if (i == 0)
            alone = call;
        for (int tensor = ATTENTION_Q; tensor <= ATTENTION_V; tensor++)
            memcpy(call->images[tensor].data, alone->images[tensor].data, alone->images[tensor].bytes);
        attention_run(call);
        ck_assert_int_eq(memcmp(call->out, alone->out, 4 * 64 * sizeof(float)), 0);
        ck_assert_int_eq(memcmp(call->lse, alone->lse, 4 * sizeof(float)), 0);
        attention_expect_reference(call);
        if (i != 0)
            attention_close(call);
    }
    attention_close(alone);
}
END_TEST

static double greatest_error(const attention_call *call)
{
    double greatest = 0.0;

    for (size_t i = 0; i < call->num_rows * call->complete.head_dim_v; i++)
        greatest = fmax(greatest, fabs((double)call->out[i] - call->expected_out[i]));
    return greatest;
}

/* 11 [flashinfer#5107]: partial states were rounded to bf16. */
START_TEST(splits_lost_precision_in_bf16)
{
    double errors[2];

    for (int i = 0; i < 2; i++) {
        attention_problem p = describe(2, 2, 64, BF16, 8192);
        p.attention.out_type = BF16;
        split(&p, CLFD_SPLIT_COUNT, i == 0 ? 1 : 16);
        attention_call *const call = attention_open(&p);
        attention_run(call);
        attention_expect_reference(call);
        errors[i] = greatest_error(call);
        attention_close(call);
    }
    ck_assert_msg(errors[1] <= errors[0] + 1e-6, "an error of %g with 16 splits and of %g with one", errors[1],
                  errors[0]);
}
END_TEST

/* 12 [vllm#50781]: the fixture gives the workspace its exact size, with guards on both sides. */
START_TEST(workspace_was_written_past_its_size)
{
    for (int variant = 0; variant < 4; variant++) {
        attention_problem p = describe(32, 2, 64, F16, 300);
        p.attention.partial = variant / 2 == 0 ? CLFD_PARTIAL_LSE : CLFD_PARTIAL_MLO;
        p.no_lse = variant % 2 == 1;
        split(&p, CLFD_SPLIT_TOKENS, 32);
        attention_verify(&p);
    }
}
END_TEST

/* ---- Addressing -------------------------------------------------------------------------------------------------- */

/* 14 [aiter#3498]: here sequences twice as far apart as they are long; the other half is NaN. */
START_TEST(stride_was_computed_instead_of_read)
{
    attention_problem p = describe(4, 2, 64, F16, 50);

    p.attention.max_batch = 3;
    p.attention.k_strides.batch = p.attention.v_strides.batch = 2 * 50 * 2 * 64;
    attention_verify(&p);
}
END_TEST

/* 15 [flash-attention#2886] */
START_TEST(layout_of_the_first_call_was_kept)
{
    for (int turn = 0; turn < 3; turn++) {
        attention_problem p = describe(4, 2, 64, F16, 50);
        p.attention.kv_layout = turn == 1 ? CLFD_LAYOUT_BHSD : CLFD_LAYOUT_BSHD;
        p.attention.max_batch = 2;
        if (turn == 1)
            p.attention.q_strides = (clfd_strides){.batch = 64, .head = 128};
        attention_verify(&p);
    }
}
END_TEST

/* 16 [llama.cpp#25671] */
START_TEST(rows_off_their_alignment_were_misread)
{
    attention_problem p = describe(2, 1, 128, F16, 40);

    p.attention.k_strides.token = p.attention.v_strides.token = 129;
    p.kv_offset = 2;
    p.attention.k_alignment = p.attention.v_alignment = 2;
    attention_verify(&p);
    p.attention.k_alignment = p.attention.v_alignment = 0; /* 16 */
    attention_call *const call = attention_open(&p);
    attention_upload(call);
    ck_assert_int_eq(clfd_enqueue_decode(call->plan, test_session_get()->queue, &call->buffers, 0, NULL, NULL),
                     CLFD_ERROR_BUFFER_ALIGNMENT);
    attention_close(call);
}
END_TEST

/* 17 [fla#1029] */
START_TEST(head_ratio_that_is_no_integer_was_accepted)
{
    static const uint32_t heads[][2] = {{3, 2}, {33, 2}};
    test_session *const session = test_session_get();

    for (size_t i = 0; i < 2; i++) {
        clfd_attention attention = describe(heads[i][0], heads[i][1], 64, F16, 16).attention;
        clfd_plan *plan = NULL;
        attention.struct_size = sizeof attention;
        ck_assert_int_eq(clfd_plan_create(session->context, &attention, &plan), CLFD_ERROR_HEAD_RATIO);
        ck_assert_ptr_null(plan);
        ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_ERROR], "must be a multiple of"));
    }
}
END_TEST

/* ---- Tiles, dims, ratios ----------------------------------------------------------------------------------------- */

/* 18 [flashinfer#3716]: q = 0 makes out the mean and lse the logarithm of the length. */
START_TEST(partial_tile_was_miscounted)
{
    static const int32_t lens[] = {1, 15, 16, 17, 255, 256, 257};
    enum { BATCH = sizeof lens / sizeof lens[0] };
    attention_problem p = describe(2, 2, 64, F16, 257);

    p.attention.max_batch = BATCH;
    p.kv_lens = lens;
    split(&p, CLFD_SPLIT_TOKENS, 64);
    attention_call *const call = attention_open(&p);
    for (uint32_t b = 0; b < BATCH; b++)
        for (uint32_t h = 0; h < 2; h++)
            image_put_row(&call->images[ATTENTION_Q], b, 0, h, 0.0f);
    attention_run(call);
    for (uint32_t b = 0; b < BATCH; b++)
        for (uint32_t h = 0; h < 2; h++) {
            double mean = 0.0;
            for (uint32_t j = 0; j < (uint32_t)lens[b]; j++)
                mean += (double)image_get(&call->images[ATTENTION_V], b, j, h, 9) / lens[b];
            ASSERT_VALUE(attention_out(call, b, 0, h)[9], mean, TOLERANCE_OUT_F32);
            ASSERT_VALUE(call->lse[attention_row(call, b, 0, h)], log(lens[b]), TOLERANCE_LSE);
        }
    attention_close(call);
}
END_TEST

/* 19 [pytorch#159247] */
START_TEST(tail_of_the_capacity_was_read)
{
    static const int32_t length = 64;
    attention_problem p = describe(4, 2, 64, F16, 128);

    p.kv_lens = &length;
    attention_verify(&p);
}
END_TEST

/* 20 [sparkinfer#425] */
START_TEST(dims_beyond_128_were_mixed_up)
{
    for (uint32_t ratio = 4; ratio <= 8; ratio += 4) {
        const attention_problem p = describe(ratio, 1, 256, F16, 40);
        attention_call *const call = attention_open(&p);
        for (uint32_t j = 0; j < 40; j++)
            for (uint32_t d = 0; d < 256; d++)
                image_put(&call->images[ATTENTION_V], 0, j, 0, d, (float)d);
        attention_run(call);
        for (uint32_t h = 0; h < ratio; h++)
            for (uint32_t d = 0; d < 256; d++)
                EXPECT(fabsf(attention_out(call, 0, 0, h)[d] - (float)d) <= 1e-6f * 256.0f, "out[%u] is %.9g", d,
                       attention_out(call, 0, 0, h)[d]);
        attention_close(call);
    }
}
END_TEST

/* 21 [flashinfer#996, pytorch#151359] */
START_TEST(ratios_that_are_no_power_of_two_were_wrong)
{
    static const uint32_t ratios[] = {5, 6, 7, 16, 71};

    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        attention_problem p = describe(2 * ratios[i], 2, 64, F16, 70);
        attention_verify(&p);
    }
    const attention_problem long_one = describe(12, 2, 16, F16, 4096);
    attention_verify(&long_one);
}
END_TEST

/* 22 [flash-attention#2374] */
START_TEST(nan_in_the_tails_reached_the_result)
{
    static const int32_t lens[] = {32, 64, 96, 48};
    static const float poisons[] = {NAN, INFINITY, -INFINITY};

    for (size_t i = 0; i < 3; i++) {
        attention_problem p = describe(8, 8, 64, F16, 128);
        p.attention.max_batch = 4;
        p.kv_lens = lens;
        p.poison = poisons[i];
        attention_verify(&p);
    }
}
END_TEST

/* ---- Options ----------------------------------------------------------------------------------------------------- */

/* 27 [llama.cpp#23800] */
START_TEST(causal_was_inferred)
{
    attention_call *calls[2];

    for (uint32_t causal = 0; causal < 2; causal++) {
        attention_problem p = describe(2, 2, 64, F16, 4);
        p.attention.q_len = 4;
        p.attention.causal = causal;
        calls[causal] = attention_open(&p);
        attention_run(calls[causal]);
        attention_expect_reference(calls[causal]);
    }
    /* The last query sees all keys either way, the first one does not. */
    ck_assert(fabsf(attention_out(calls[0], 0, 0, 0)[0] - attention_out(calls[1], 0, 0, 0)[0]) > 1e-3f);
    ck_assert(fabsf(attention_out(calls[0], 0, 3, 0)[0] - attention_out(calls[1], 0, 3, 0)[0]) < 1e-6f);
    attention_close(calls[0]);
    attention_close(calls[1]);
}
END_TEST

/* 29 [universal#1134]: one key, so that out is V. */
START_TEST(float_to_bf16_was_truncated)
{
    static const uint32_t nan_bits = 0x7f800001;
    attention_problem p = describe(1, 1, 8, F32, 1);

    p.attention.out_type = BF16;
    attention_call *const call = attention_open(&p);
    image_put_row(&call->images[ATTENTION_V], 0, 0, 0, 0.2691408770292272f);
    *(uint32_t *)image_at(&call->images[ATTENTION_V], 0, 0, 0, 1) = nan_bits;
    attention_run(call);
    ck_assert(call->out[0] == 0.26953125f);
    ck_assert(isnan(call->out[1]));
    attention_close(call);
}
END_TEST

/* ---- OpenCL run time --------------------------------------------------------------------------------------------- */

static cl_uint num_arguments(const clfd_kernel *kernel)
{
    cl_uint count = 0;

    ck_assert_int_eq(clGetKernelInfo(kernel->handle, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL), CL_SUCCESS);
    return count;
}

/* 30 [MNN#4653]: every variant runs, all with the one argument list; a failure of OpenCL comes back as it is. */
START_TEST(arguments_of_a_variant_were_missing)
{
    const cl_event no_event = NULL;

    for (int variant = 0; variant < 16; variant++) {
        attention_problem p = describe(2, 1, 64, F16, 40);
        static const int32_t length = 33;
        p.no_lse = (variant & 1) != 0;
        p.kv_lens = (variant & 2) != 0 ? &length : NULL;
        p.attention.v_from_k = (variant & 4) != 0;
        split(&p, CLFD_SPLIT_TOKENS, (variant & 8) != 0 ? 10 : 40);
        attention_call *const call = attention_open(&p);
        ck_assert_uint_eq(num_arguments(&call->plan->decode), 22);
        if (call->plan->merge.handle != NULL)
            ck_assert_uint_eq(num_arguments(&call->plan->merge), 10);
        attention_run(call);
        attention_expect_reference(call);
        ck_assert_int_lt(clfd_enqueue_decode(call->plan, test_session_get()->queue, &call->buffers, 1, &no_event, NULL),
                         0);
        attention_close(call);
    }
}
END_TEST

/* Runs a problem in a context of its own whose device claims to be a GPU with these limits. */
static void verify_under_limits(const attention_problem *problem, uint32_t work_group, uint64_t local_bytes)
{
    test_session *const session = test_session_get();
    clfd_context *const unlimited = session->context;

    ck_assert_int_eq(clfd_context_create(session->cl, session->device, NULL, &session->context), CLFD_SUCCESS);
    session->context->caps.type = CL_DEVICE_TYPE_GPU;
    session->context->caps.max_work_group = work_group;
    session->context->caps.local_mem_bytes = local_bytes;
    attention_verify(problem);
    clfd_context_release(session->context);
    session->context = unlimited;
}

/* 31 [llama.cpp#25870] */
START_TEST(accepted_plan_could_not_be_enqueued)
{
    static const uint32_t limits[] = {1, 32, 64};
    static const int32_t length = 99;
    attention_problem p = describe(1, 1, 64, F16, 100);

    p.kv_lens = &length;
    split(&p, CLFD_SPLIT_TOKENS, 30);
    for (size_t i = 0; i < 3; i++)
        verify_under_limits(&p, limits[i], 64 << 10);
    verify_under_limits(&p, 256, 16 << 10);
    verify_under_limits(&p, 32, 1 << 10);
}
END_TEST

/* 33 [gpuowl#81] */
START_TEST(barrier_was_assumed_away)
{
    static const char *const tunings[] = {"family=decode_lanes exchange=local wg=32 lanes=8 parts=1",
                                          "family=decode_lanes exchange=local wg=64 lanes=8 parts=1"};

    for (size_t i = 0; i < 2; i++) {
        attention_problem p = describe(2, 2, 64, F16, 150);
        p.attention.tuning = tunings[i];
        split(&p, CLFD_SPLIT_TOKENS, 50);
        attention_call *const call = attention_open(&p);
        float out[2 * 64];
        attention_run(call);
        attention_expect_reference(call);
        for (int turn = 0; turn < 1000; turn++) {
            ck_assert_int_eq(clfd_enqueue_decode(call->plan, test_session_get()->queue, &call->buffers, 0, NULL, NULL),
                             CLFD_SUCCESS);
            test_buffer_read(call->buffers.out.mem, call->buffers.out.offset, out, sizeof out);
            EXPECT(memcmp(out, call->out, sizeof out) == 0, "turn %d gave other bits", turn);
        }
        attention_close(call);
    }
}
END_TEST

/* 34 [OpenCL.jl#460] */
START_TEST(work_items_without_a_key_missed_a_barrier)
{
    for (int32_t n = 0; n <= 9; n++) {
        attention_problem p = describe(2, 2, 64, F16, 10);
        p.kv_lens = &n;
        p.attention.tuning = "family=decode_lanes exchange=local wg=64 lanes=8 parts=1";
        attention_verify(&p);
    }
}
END_TEST

/* 35 [darktable#2122]: the programs above are the shipped ones; no option among theirs takes infinities away. */
START_TEST(build_options_took_infinities_away)
{
    static const char *const forbidden[] = {"fast", "finite", "unsafe", "-cl-no-signed-zeros", "denorms"};
    const attention_problem p = describe(2, 2, 64, F16, 16);
    attention_call *const call = attention_open(&p);
    char options[1024] = "";

    clfd_decode_options(&test_session_get()->context->caps, &call->plan->attention, &call->plan->tuning,
                        &call->plan->schedule, false, options, sizeof options);
    ck_assert_ptr_nonnull(strstr(options, "-DHEAD_DIM=64"));
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
        ck_assert_ptr_null(strstr(options, forbidden[i]));
    attention_close(call);
}
END_TEST

/* 37 [CLBlast#47, nntrainer#4227]: what becomes of references is the matter of test_leaks. */
START_TEST(programs_of_one_context_served_another)
{
    test_session *const session = test_session_get();
    clfd_context *const first = session->context;
    clfd_context *contexts[2];

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(clfd_context_create(session->cl, session->device, NULL, &contexts[i]), CLFD_SUCCESS);
    for (int turn = 0; turn < 8; turn++) {
        const attention_problem p = describe(2, 2, turn / 2 % 2 == 0 ? 64 : 128, F16, 50);
        session->context = contexts[turn % 2];
        attention_verify(&p);
    }
    clfd_context_release(contexts[0]);
    clfd_context_release(contexts[1]);
    session->context = first;
}
END_TEST

/* 39 [aparapi#135]: without a platform: test_no_platform. */
START_TEST(empty_batch_never_completed)
{
    test_session *const session = test_session_get();
    const attention_problem p = describe(2, 2, 64, F16, 16);
    attention_call *const call = attention_open(&p);
    cl_event event = NULL;

    attention_upload(call);
    call->buffers.batch = 0;
    ck_assert_int_eq(clfd_enqueue_decode(call->plan, session->queue, &call->buffers, 0, NULL, &event), CLFD_SUCCESS);
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(clWaitForEvents(1, &event), CL_SUCCESS);
    clReleaseEvent(event);
    attention_read(call); /* out still holds what it held */
    for (size_t i = 0; i < call->num_rows; i++)
        ck_assert(isnan(call->out[i * 64]) && isnan(call->lse[i]));
    attention_close(call);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        merge_of_two_empty_states_was_nan,
        lse_of_no_keys_was_plus_infinity,
        row_without_keys_was_not_written,
        finite_sentinel_outranked_real_scores,
        queries_before_the_first_key_were_nan,
        lse_was_in_units_of_log2,
        splits_without_keys_entered_the_result,
        last_split_began_past_the_end,
        capacity_of_the_cache_changed_bits,
        batch_changed_a_rows_bits,
        splits_lost_precision_in_bf16,
        workspace_was_written_past_its_size,
        stride_was_computed_instead_of_read,
        layout_of_the_first_call_was_kept,
        rows_off_their_alignment_were_misread,
        head_ratio_that_is_no_integer_was_accepted,
        partial_tile_was_miscounted,
        tail_of_the_capacity_was_read,
        dims_beyond_128_were_mixed_up,
        ratios_that_are_no_power_of_two_were_wrong,
        nan_in_the_tails_reached_the_result,
        causal_was_inferred,
        float_to_bf16_was_truncated,
        arguments_of_a_variant_were_missing,
        accepted_plan_could_not_be_enqueued,
        barrier_was_assumed_away,
        work_items_without_a_key_missed_a_barrier,
        build_options_took_infinities_away,
        programs_of_one_context_served_another,
        empty_batch_never_completed,
    };
    const int result = run_suite("field_reports", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

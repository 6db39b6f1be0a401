/* One K and V sequence that the whole batch attends to: its query rows fold into blocks that read each key once. How such a
 * prefix is merged with each sequence's own keys is shown by test_shared_prefix. */
#include "support/option_cases.h"
#include "support/suite.h"
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const int32_t lengths[] = {0, 1, 33, 97, 200};

static attention_problem shared_case(clfd_attention set)
{
    attention_problem p = option_case((clfd_attention){.shared_kv = 1});

    p.kv_lens = &lengths[3];
    set_options(&p.attention, &set);
    return p;
}

START_TEST(shared_keys_of_every_length_match_the_reference)
{
    for (size_t i = 0; i < COUNT(lengths); i++) {
        attention_problem p = shared_case((clfd_attention){0});
        p.kv_lens = &lengths[i];
        p.seed = i;
        verify_forms_and_splits(&p);
        p.attention.split_policy = CLFD_SPLIT_AUTO;
        p.attention.split_size = 0;
        verify_forms(&p);
    }
}
END_TEST

/* The rows of a batch end within a block, or begin one. */
START_TEST(batches_of_any_size_match_the_reference)
{
    static const uint32_t batches[] = {1, 2, 3, 4, 7, 8, 31, 64};

    for (size_t i = 0; i < COUNT(batches); i++) {
        attention_problem p = shared_case((clfd_attention){.max_batch = 64});
        p.batch = batches[i];
        p.seed = i;
        verify_forms(&p);
    }
}
END_TEST

/* The same without shared_kv: every sequence has the same cache, by a batch stride of zero. */
START_TEST(shared_keys_equal_a_cache_that_is_broadcast)
{
    static const int32_t lens[] = {97, 97, 97, 97, 97};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem all = shared_case((clfd_attention){0});
        attention_problem p = in_form(&all, f);
        attention_call *const shared = attention_open(&p);
        p.attention.shared_kv = 0;
        p.attention.k_strides.batch = p.attention.v_strides.batch = CLFD_STRIDE_BROADCAST;
        p.kv_lens = lens;
        attention_call *const broadcast = attention_open(&p);
        for (int tensor = ATTENTION_Q; tensor <= ATTENTION_V; tensor++) {
            ck_assert_uint_eq(shared->images[tensor].bytes, broadcast->images[tensor].bytes);
            memcpy(broadcast->images[tensor].data, shared->images[tensor].data, shared->images[tensor].bytes);
        }
        attention_run(broadcast);
        attention_expect_reference(broadcast);
        attention_run(shared);
        attention_expect(shared, broadcast->expected_out, broadcast->expected_lse);
        attention_close(shared);
        attention_close(broadcast);
    }
}
END_TEST

START_TEST(options_of_a_shared_cache_match_the_reference)
{
    static const clfd_attention options[] = {
        {.causal = 1, .window = 60, .query_positions = 1, .alibi = 1},
        {.sinks = 1, .mask = CLFD_MASK_BOOL, .kv_start = 1},
        {.paging = CLFD_PAGING_TABLE, .page_size = 16, .cache_batch_idx = 1, .num_cache_rows = 3},
        {.k_type = CLFD_TYPE_INT4, .v_type = CLFD_TYPE_INT8, .bias_type = CLFD_TYPE_F32, .partial = CLFD_PARTIAL_MLO},
    };

    for (size_t i = 0; i < COUNT(options); i++) {
        attention_problem p = shared_case(options[i]);
        p.seed = i;
        verify_forms_and_splits(&p);
        p.batch = 2;
        verify_forms(&p);
    }
}
END_TEST

/* Positions of the rows of one block lie anywhere. */
START_TEST(positions_of_any_value_match_the_reference)
{
    static const int32_t positions[5][3] = {
        {0, 50, 96}, {INT32_MAX, INT32_MIN, 3}, {-1, 97, 98}, {20, 19, 18}, {INT32_MIN, INT32_MIN, INT32_MAX}};

    attention_problem p = shared_case((clfd_attention){.causal = 1, .window = 60, .query_positions = 1, .alibi = 1});
    p.query_positions = positions[0];
    p.attention.scale = 1e-3f;
    p.hot = true; /* distances of 2^31 */
    attention_call *call;
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem own = in_form(&p, f);
        call = attention_open(&own);
        image_put_row(&call->images[ATTENTION_ALIBI], 0, 0, 0, 0x1p-20f);
        attention_run(call);
        attention_expect_reference(call);
        attention_close(call);
    }
}
END_TEST

/* A cache row that there is not, of the one sequence, empties every row. */
START_TEST(a_shared_cache_row_that_there_is_not_is_reported)
{
    static const int32_t row = 3;

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem all = shared_case(
            (clfd_attention){.paging = CLFD_PAGING_TABLE, .page_size = 16, .cache_batch_idx = 1, .num_cache_rows = 3});
        attention_problem p = in_form(&all, f);
        p.cache_batch_idx = &row;
        attention_call *const call = attention_open(&p);
        attention_run(call);
        attention_expect_reference(call);
        ck_assert_uint_eq(call->status, CLFD_FLAG_CACHE_ROW);
        attention_close(call);
    }
}
END_TEST

/* Neither the batch nor the place in it changes a row. */
START_TEST(under_tokens_a_shared_row_does_not_depend_on_its_batch)
{
    static const uint32_t batches[] = {2, 5, 64};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem all = shared_case((clfd_attention){.max_batch = 1});
        const uint32_t alone_identity = 9;
        attention_problem p = in_form(&all, f);
        p.identities = &alone_identity;
        attention_call *const alone = attention_open(&p);
        attention_run(alone);
        for (size_t i = 0; i < COUNT(batches); i++) {
            uint32_t identities[64];
            for (uint32_t b = 0; b < batches[i]; b++)
                identities[b] = b + 1 == batches[i] ? alone_identity : 100 + b;
            p.attention.max_batch = batches[i];
            p.identities = identities;
            attention_call *const together = attention_open(&p);
            for (int tensor = ATTENTION_K; tensor <= ATTENTION_V; tensor++)
                memcpy(together->images[tensor].data, alone->images[tensor].data, alone->images[tensor].bytes);
            attention_run(together);
            attention_expect_reference(together);
            EXPECT(attention_same_sequence(together, batches[i] - 1, alone, 0), "a batch of %u changes a row in %s",
                   batches[i], clfd_plan_describe(together->plan));
            attention_close(together);
        }
        attention_close(alone);
    }
}
END_TEST

/* Where the keys of other members begin must not decide how this one's are summed. */
START_TEST(windows_of_other_members_change_no_bit)
{
    static const int32_t near[5][3] = {{94, 95, 96}, {94, 95, 96}, {94, 95, 96}, {94, 95, 96}, {94, 95, 96}};
    static const int32_t far[5][3] = {{94, 95, 96}, {3, 4, 5}, {17, 40, 2}, {60, 61, 62}, {0, 96, 1}};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem all = shared_case((clfd_attention){.window = 60, .query_positions = 1});
        attention_problem p = in_form(&all, f);
        p.query_positions = near[0];
        attention_call *const alike = attention_open(&p);
        p.query_positions = far[0];
        attention_call *const apart = attention_open(&p);
        const size_t rows = (size_t)alike->complete.q_len * alike->complete.num_q_heads;

        attention_run(alike);
        attention_run(apart);
        attention_expect_reference(apart);
        EXPECT(memcmp(alike->out, apart->out, rows * alike->complete.head_dim_v * sizeof(float)) == 0 &&
                   memcmp(alike->lse, apart->lse, rows * sizeof(float)) == 0,
               "positions of other sequences change a bit in %s", clfd_plan_describe(alike->plan));
        attention_close(alike);
        attention_close(apart);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        shared_keys_of_every_length_match_the_reference,  batches_of_any_size_match_the_reference,
        shared_keys_equal_a_cache_that_is_broadcast,      options_of_a_shared_cache_match_the_reference,
        windows_of_other_members_change_no_bit,           positions_of_any_value_match_the_reference,
        a_shared_cache_row_that_there_is_not_is_reported, under_tokens_a_shared_row_does_not_depend_on_its_batch,
    };
    const int result = run_suite("shared_kv", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

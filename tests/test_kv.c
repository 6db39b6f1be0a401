/* Where keys and values lie (cl/kv.cl): memory that no row may see changes no bit, whatever it holds; one buffer may hold
 * K and V; one context serves different layouts in turn. The layouts themselves are cases of every family's test. */
#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

START_TEST(tails_of_keys_and_values_are_not_used)
{
    static const int32_t lens[] = {32, 64, 96, 48, 0, 1, 127, 128};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (uint32_t split_size = 20; split_size <= 200; split_size += 180) {
            attention_problem p = decode_case(&decode_forms[f]);
            p.attention.max_batch = sizeof lens / sizeof lens[0];
            p.attention.split_size = split_size;
            p.kv_lens = lens;
            expect_poison_unused(&p);
        }
}
END_TEST

START_TEST(paddings_between_rows_and_before_tensors_are_not_used)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        attention_problem p = decode_case(&decode_forms[f]);
        p.attention.k_strides = (clfd_strides){.token = 2 * 80, .head = 80};
        p.attention.v_strides = (clfd_strides){.token = 72, .head = 200 * 72 + 8, .batch = 3 * (200 * 72 + 8)};
        p.q_offset = 64;
        p.kv_offset = 1024;
        expect_poison_unused(&p);
    }
}
END_TEST

/* Keys that a sequence has, but none of whose queries sees. */
START_TEST(sequences_beyond_the_bound_and_the_batch_are_not_used)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        attention_problem p = decode_case(&decode_forms[f]);
        p.kv_len_bound = 70;
        p.batch = 4;
        expect_poison_unused(&p);
        p.attention.q_len = 3;
        p.attention.causal = 1;
        expect_poison_unused(&p);
    }
}
END_TEST

/* [token][K, V][head][dim] in one buffer: K and V may overlap each other as they please, for they are only read. */
START_TEST(keys_and_values_may_share_a_buffer)
{
    enum { DIM = 64, HEADS = 2, HALF = HEADS * DIM * 2 /* bytes */ };

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        attention_problem p = decode_case(&decode_forms[f]);
        p.attention.k_strides.token = p.attention.v_strides.token = 2 * HEADS * DIM;
        attention_call *const call = attention_open(&p);
        const tensor_image *const k = &call->images[ATTENTION_K], *const v = &call->images[ATTENTION_V];
        unsigned char *const both = malloc(k->bytes + HALF);
        ck_assert_ptr_nonnull(both);
        memcpy(both, k->data, k->bytes);
        for (size_t at = 0; at < v->bytes - v->offset; at += 2 * HALF)
            memcpy(both + HALF + at, v->data + v->offset + at, HALF);
        attention_upload(call);
        clReleaseMemObject(call->buffers.k.mem);
        clReleaseMemObject(call->buffers.v.mem);
        call->buffers.k = test_buffer(test_buffer_create_from(CL_MEM_READ_ONLY, both, k->bytes + HALF), 0);
        call->buffers.v = test_buffer(call->buffers.k.mem, HALF);
        clRetainMemObject(call->buffers.k.mem);
        ck_assert_int_eq(clfd_enqueue_decode(call->plan, test_session_get()->queue, &call->buffers, 0, NULL, NULL),
                         CLFD_SUCCESS);
        attention_read(call);
        attention_expect_reference(call);
        attention_close(call);
        free(both);
    }
}
END_TEST

/* ---- Cache rows -------------------------------------------------------------------------------------------------- */

START_TEST(sequences_use_the_cache_rows_that_they_name)
{
    static const int32_t rows[][5] = {{4, 3, 2, 1, 0}, {0, 1, 2, 3, 4}, {8, 0, 5, 3, 1}, {2, 2, 2, 2, 2}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        attention_problem p = option_case((clfd_attention){.cache_batch_idx = 1, .num_cache_rows = i == 2 ? 9 : 5});
        p.cache_batch_idx = rows[i];
        p.seed = i;
        verify_forms_and_splits(&p);
        p.attention.kv_layout = CLFD_LAYOUT_BHSD;
        p.batch = 3;
        verify_forms(&p);
    }
}
END_TEST

/* Fewer rows than sequences; more, of which a call uses any. */
START_TEST(num_cache_rows_is_not_the_batch)
{
    static const int32_t few[] = {1, 0, 1, 1, 0}, many[] = {69, 0, 35, 68, 1};

    attention_problem p = option_case((clfd_attention){.cache_batch_idx = 1, .num_cache_rows = 2});
    p.cache_batch_idx = few;
    verify_forms(&p);
    p.attention.num_cache_rows = 70;
    p.cache_batch_idx = many;
    verify_forms(&p);
}
END_TEST

START_TEST(a_cache_row_that_there_is_not_hides_all_keys_and_is_reported)
{
    static const float nothing[64];
    static const int32_t wrong[] = {-1, 5, INT32_MAX, INT32_MIN};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            const int32_t rows[] = {0, 1, 2, wrong[i], 4};
            const attention_problem all = option_case((clfd_attention){.cache_batch_idx = 1});
            attention_problem p = in_form(&all, f);
            p.cache_batch_idx = rows;
            attention_call *const call = attention_open(&p);
            attention_run(call);
            attention_expect_reference(call);
            ck_assert_uint_eq(call->status, CLFD_FLAG_CACHE_ROW);
            for (uint32_t h = 0; h < 4; h++) {
                ck_assert_int_eq(memcmp(attention_out(call, 3, 2, h), nothing, sizeof nothing), 0);
                ck_assert(call->lse[attention_row(call, 3, 2, h)] == -INFINITY);
            }
            attention_close(call);
        }
}
END_TEST

/* In pages a cache row is a row of the table. */
START_TEST(cache_rows_of_pages_are_rows_of_the_table)
{
    static const int32_t rows[] = {5, 0, 3, 1, 6};

    for (int paging = CLFD_PAGING_TABLE; paging <= CLFD_PAGING_CSR; paging++) {
        attention_problem p = option_case((clfd_attention){
            .cache_batch_idx = 1, .num_cache_rows = 7, .paging = (clfd_paging)paging, .page_size = 16});
        p.cache_batch_idx = rows;
        verify_forms(&p);
    }
}
END_TEST

START_TEST(layouts_alternate_on_one_context)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (int turn = 0; turn < 6; turn++) {
            attention_problem p = decode_case(&decode_forms[f]);
            if (turn % 2 == 1)
                p.attention.k_strides = p.attention.v_strides = (clfd_strides){.batch = 64, .token = 1280, .head = 640};
            else if (turn == 2)
                p.attention.kv_layout = CLFD_LAYOUT_BHSD;
            attention_verify(&p);
        }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        tails_of_keys_and_values_are_not_used,
        paddings_between_rows_and_before_tensors_are_not_used,
        sequences_beyond_the_bound_and_the_batch_are_not_used,
        keys_and_values_may_share_a_buffer,
        sequences_use_the_cache_rows_that_they_name,
        num_cache_rows_is_not_the_batch,
        a_cache_row_that_there_is_not_hides_all_keys_and_is_reported,
        cache_rows_of_pages_are_rows_of_the_table,
        layouts_alternate_on_one_context,
    };
    const int result = run_suite("kv", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

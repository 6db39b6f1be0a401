/* Tensors of one buffer that interleave: K and V of a page, codes and their scales, q, new_k and new_v of one projection.
 * The values are such that no quotient is rounded: every byte must be the loop's. */
#include "support/append_case.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

enum { HEADS = 2, DIM = 64, PAGE = 4, PAGES = 6, GUARD = 192, MAX_PARTS = 4 };

static const int32_t lens[] = {3, 6}, table[] = {4, 1, 5, 0, 3, 2};

/* A tensor within a buffer: `at` bytes behind the buffer's first element. */
typedef struct part {
    append_tensor tensor;
    clfd_buffer *buffer;
    size_t at;
} part;

/* What a buffer that holds all parts contains: their bytes, before or as the loop leaves them; garbage elsewhere. */
static unsigned char *weave(const append_call *call, const part *parts, size_t count, bool expected, size_t *bytes)
{
    unsigned char *woven;

    *bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t end = parts[i].at + call->images[parts[i].tensor].bytes;
        *bytes = end > *bytes ? end : *bytes;
    }
    woven = malloc(*bytes);
    ck_assert_ptr_nonnull(woven);
    memset(woven, APPEND_GARBAGE, *bytes);
    for (size_t i = 0; i < count; i++) {
        const append_image *const image = &call->images[parts[i].tensor];
        const unsigned char *const from = expected ? image->expected : image->data;
        for (size_t b = 0; b < image->bytes; b++)
            if (from[b] != APPEND_GARBAGE)
                woven[parts[i].at + b] = from[b];
    }
    return woven;
}

/* Gives all parts one buffer, appends, and compares that buffer. */
static void expect_woven(append_call *call, const part *parts, size_t count)
{
    test_session *const session = test_session_get();
    size_t bytes;

    append_upload(call);
    unsigned char *const before = weave(call, parts, count, false, &bytes), *const actual = malloc(bytes);
    unsigned char *const after = weave(call, parts, count, true, &bytes);
    const cl_mem mem = test_buffer_create_from(CL_MEM_READ_WRITE, before, bytes);
    ck_assert_ptr_nonnull(actual);
    for (size_t i = 0; i < count; i++) {
        clReleaseMemObject(parts[i].buffer->mem);
        clRetainMemObject(mem);
        *parts[i].buffer = test_buffer(mem, GUARD + parts[i].at);
    }
    const clfd_status status = clfd_enqueue_append(call->plan, session->queue, &call->buffers, 0, NULL, NULL);
    ck_assert_msg(status == CLFD_SUCCESS, "%s: %s", clfd_status_string(status), session->heard.last[CLFD_LOG_ERROR]);
    test_buffer_read(mem, 0, actual, bytes);
    for (size_t b = 0; b < bytes; b++)
        EXPECT(actual[b] == after[b], "byte %zu of %zu is %02x instead of %02x", b, bytes, actual[b], after[b]);
    ck_assert(memcmp(before, after, bytes) != 0);
    clReleaseMemObject(mem);
    free(before);
    free(after);
    free(actual);
}

static append_problem paged_problem(clfd_type q_type, clfd_type kv_type)
{
    return (append_problem){.attention = {.max_batch = 2,
                                          .q_len = 3,
                                          .num_q_heads = HEADS,
                                          .head_dim = DIM,
                                          .q_type = q_type,
                                          .k_type = kv_type,
                                          .max_kv_len = 12,
                                          .paging = CLFD_PAGING_TABLE,
                                          .page_size = PAGE,
                                          .num_pages = PAGES},
                            .kv_lens = lens,
                            .block_table = table};
}

/* [page][K, V][token][head][dim], then [page][token][K, V][head][dim]. */
START_TEST(keys_and_values_share_pages_or_tokens)
{
    enum { ROW = HEADS * DIM };

    for (int by_token = 0; by_token <= 1; by_token++) {
        append_problem p = paged_problem(CLFD_TYPE_F16, CLFD_TYPE_F16);
        p.attention.k_strides.batch = p.attention.v_strides.batch = 2 * PAGE * ROW;
        p.attention.k_strides.token = p.attention.v_strides.token = by_token ? 2 * ROW : ROW;
        append_call *const call = append_open(&p);
        const part parts[] = {{APPEND_K, &call->buffers.k, 0},
                              {APPEND_V, &call->buffers.v, 2 * (by_token ? ROW : PAGE * ROW)}};
        expect_woven(call, parts, 2);
        append_close(call);
    }
}
END_TEST

/* A page holds the codes of K, those of V, the scales of K and those of V. */
START_TEST(scales_lie_behind_the_codes_of_their_page)
{
    enum { CODES = PAGE * HEADS * DIM, SCALES = PAGE * HEADS * 4, ALL = 2 * (CODES + SCALES) };
    append_problem p = paged_problem(CLFD_TYPE_F16, CLFD_TYPE_INT8);

    p.attention.k_strides.batch = p.attention.v_strides.batch = ALL;
    p.attention.k_quant.strides.batch = p.attention.v_quant.strides.batch = ALL / 4;
    append_call *const call = append_open(&p);
    const part parts[] = {{APPEND_K, &call->buffers.k, 0},
                          {APPEND_V, &call->buffers.v, CODES},
                          {APPEND_K_SCALE, &call->buffers.k_scale, 2 * CODES},
                          {APPEND_V_SCALE, &call->buffers.v_scale, 2 * CODES + SCALES}};
    /* Each row has its 127, so that its scale is 1, or in V 2. */
    for (size_t i = 0; i < 2 * 3 * HEADS * DIM; i++) {
        const int value = i % DIM == 5 ? 127 : (int)(i * 37 % 255) - 127;
        append_put(call, APPEND_NEW_K, i, (float)value);
        append_put(call, APPEND_NEW_V, i, (float)(2 * value));
    }
    expect_woven(call, parts, 4);
    append_close(call);
}
END_TEST

/* [batch][token][q heads, K heads, V heads][dim], rotated by quarters of a turn, which is exact. */
START_TEST(queries_keys_and_values_come_from_one_projection)
{
    enum { TOKEN = 3 * HEADS * DIM };
    append_problem p = paged_problem(CLFD_TYPE_F32, CLFD_TYPE_F32);

    p.append.rope = CLFD_ROPE_GPTJ;
    p.append.rope_q = 1;
    p.attention.q_strides = p.append.new_k_strides = p.append.new_v_strides =
        (clfd_strides){.batch = 3 * TOKEN, .token = TOKEN, .head = DIM};
    append_call *const call = append_open(&p);
    const part parts[] = {{APPEND_Q, &call->buffers.q, 0},
                          {APPEND_NEW_K, &call->buffers.new_k, HEADS * DIM * sizeof(float)},
                          {APPEND_NEW_V, &call->buffers.new_v, 2 * HEADS * DIM * sizeof(float)}};
    for (size_t i = 0; i < 12 * DIM / 2; i++) {
        call->cos[i] = i % 2 == 0 ? 0.0f : -1.0f;
        call->sin[i] = i % 2 == 0 ? 1.0f : 0.0f;
    }
    expect_woven(call, parts, 3);
    test_buffer_read(call->buffers.k.mem, 0, call->images[APPEND_K].data, call->images[APPEND_K].bytes);
    ck_assert_mem_eq(call->images[APPEND_K].data, call->images[APPEND_K].expected, call->images[APPEND_K].bytes);
    append_close(call);
}
END_TEST

START_TEST(tensors_that_do_not_fit_between_each_other_are_refused)
{
    enum { ROW = HEADS * DIM };
    append_problem p = paged_problem(CLFD_TYPE_F16, CLFD_TYPE_F16);

    p.attention.k_strides.batch = p.attention.v_strides.batch = 2 * PAGE * ROW;
    append_call *const call = append_open(&p);
    append_upload(call);
    clReleaseMemObject(call->buffers.v.mem);
    clReleaseMemObject(call->buffers.k.mem);
    const cl_mem mem = test_buffer_create(CL_MEM_READ_WRITE, 4 * PAGES * PAGE * ROW * 2, APPEND_GARBAGE);
    clRetainMemObject(mem);
    for (int early = 0; early <= 1; early++) {
        const size_t half = 2 * PAGE * ROW;
        call->buffers.k = test_buffer(mem, 0);
        call->buffers.v = test_buffer(mem, early ? half - 16 : half + 16);
        ck_assert_int_eq(clfd_enqueue_append(call->plan, test_session_get()->queue, &call->buffers, 0, NULL, NULL),
                         CLFD_ERROR_BUFFER_OVERLAP);
    }
    append_close(call);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        keys_and_values_share_pages_or_tokens,
        scales_lie_behind_the_codes_of_their_page,
        queries_keys_and_values_come_from_one_projection,
        tensors_that_do_not_fit_between_each_other_are_refused,
    };
    const int result = run_suite("append_interleaved", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

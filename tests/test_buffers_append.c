/* The rules of the buffers of an append. After every refusal nothing that it would have written has changed. */
#include "support/session.h"
#include "support/suite.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { BATCH = 2, TOKENS = 2, HEADS = 2, DIM = 16, PAGES = 5, PAGE = 4, ROWS = 3, INDICES = 6, MAX_KV_LEN = 8 };
enum { POISON = 0xA5, ROOM = 1024 };

/* Every tensor of a call that has all options: its bytes, and the alignment of its base. */
static const struct tensor {
    const char *name;
    size_t place, bytes, alignment;
    bool optional, read, written;
} tensors[] = {
#define TENSOR(name, ...)                                                                                              \
    {                                                                                                                  \
#name, offsetof(clfd_append_buffers, name), __VA_ARGS__                                                        \
    }
    TENSOR(new_k, BATCH *TOKENS *DIM * 2, 2, false, true, false),
    TENSOR(new_v, BATCH *TOKENS *DIM * 2, 2, false, true, false),
    TENSOR(k, PAGES *PAGE *DIM, 16, false, false, true),
    TENSOR(v, PAGES *PAGE *DIM / 2, 16, false, false, true),
    TENSOR(k_scale, PAGES *PAGE * 4, 4, false, false, true),
    TENSOR(v_scale, PAGES *PAGE * 2, 2, false, false, true),
    TENSOR(k_zero, PAGES *PAGE * 4, 4, false, false, true),
    TENSOR(v_zero, PAGES *PAGE * 2, 2, false, false, true),
    TENSOR(block_table, INDICES * 4, 4, false, true, false),
    TENSOR(page_indptr, (ROWS + 1) * 4, 4, false, true, false),
    TENSOR(cache_batch_idx, BATCH * 4, 4, false, true, false),
    TENSOR(kv_lens, BATCH * 4, 4, true, true, false),
    TENSOR(kv_lens_out, BATCH * 4, 4, true, false, true),
    TENSOR(new_lens, BATCH * 4, 4, false, true, false),
    TENSOR(cos, MAX_KV_LEN *DIM / 2 * 4, 4, false, true, false),
    TENSOR(sin, MAX_KV_LEN *DIM / 2 * 4, 4, false, true, false),
    TENSOR(positions, BATCH *TOKENS * 4, 4, false, true, false),
    TENSOR(q, BATCH *TOKENS *HEADS *DIM * 2, 16, false, true, true),
    TENSOR(status, 4, 4, true, true, true),
};
#define NUM_TENSORS COUNT(tensors)

static const clfd_attention cache = {
    .struct_size = sizeof cache,
    .max_batch = BATCH,
    .q_len = TOKENS,
    .num_q_heads = HEADS,
    .num_kv_heads = 1,
    .head_dim = DIM,
    .q_type = CLFD_TYPE_F16,
    .k_type = CLFD_TYPE_INT8,
    .v_type = CLFD_TYPE_INT4,
    .k_quant = {.zeros = 1},
    .v_quant = {.zeros = 1, .scale_type = CLFD_TYPE_F16},
    .max_kv_len = MAX_KV_LEN,
    .cache_batch_idx = 1,
    .num_cache_rows = ROWS,
    .paging = CLFD_PAGING_CSR,
    .page_size = PAGE,
    .num_pages = PAGES,
};

static test_session *session;
static clfd_append_plan *plan;
static clfd_append_buffers buffers; /* those of a whole call; a test spoils one */
static cl_mem whole[NUM_TENSORS];   /* exactly as large as must be */
static cl_mem other;                /* what a test puts in the place of one; zeros */

static clfd_buffer *place_of(clfd_append_buffers *of, size_t t)
{
    return (clfd_buffer *)((char *)of + tensors[t].place);
}

static void restore(void)
{
    buffers = (clfd_append_buffers){.struct_size = sizeof buffers, .batch = BATCH, .num_page_indices = INDICES};
    for (size_t t = 0; t < NUM_TENSORS; t++)
        *place_of(&buffers, t) = test_buffer(whole[t], 0);
    session->heard.count[CLFD_LOG_ERROR] = 0;
}

static void set_up(void)
{
    const clfd_append append = {.struct_size = sizeof append,
                                .attention = &cache,
                                .ragged = 1,
                                .rope = CLFD_ROPE_NEOX,
                                .rope_q = 1,
                                .positions = 1};

    session = test_session_get();
    ck_assert_msg(clfd_append_plan_create(session->context, &append, &plan) == CLFD_SUCCESS, "%s",
                  session->heard.last[CLFD_LOG_ERROR]);
    for (size_t t = 0; t < NUM_TENSORS; t++)
        whole[t] = test_buffer_create(CL_MEM_READ_WRITE, tensors[t].bytes, tensors[t].written ? POISON : 0);
    other = test_buffer_create(CL_MEM_READ_WRITE, ROOM, 0);
    restore();
}

static void tear_down(void)
{
    for (size_t t = 0; t < NUM_TENSORS; t++)
        ck_assert_int_eq(clReleaseMemObject(whole[t]), CL_SUCCESS);
    ck_assert_int_eq(clReleaseMemObject(other), CL_SUCCESS);
    clfd_append_plan_release(plan);
}

static clfd_status enqueue(void) { return clfd_enqueue_append(plan, session->queue, &buffers, 0, NULL, NULL); }

/* The call is refused with this status and one sentence that says both, and has written nothing. */
static void expect_refused(clfd_status status, const char *value, const char *rule)
{
    const clfd_status actual = enqueue();
    const char *const said = session->heard.last[CLFD_LOG_ERROR];
    unsigned char content[ROOM];

    ck_assert_msg(actual == status, "%s ... %s: %s instead of %s", value, rule, clfd_status_string(actual),
                  clfd_status_string(status));
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_msg(strstr(said, value) != NULL && strstr(said, rule) != NULL, "\"%s\" lacks \"%s\" or \"%s\"", said,
                  value, rule);
    for (size_t t = 0; t < NUM_TENSORS; t++) {
        test_buffer_read(whole[t], 0, content, tensors[t].bytes);
        for (size_t i = 0; tensors[t].written && i < tensors[t].bytes; i++)
            EXPECT(content[i] == POISON, "%s ... %s: %s was written", value, rule, tensors[t].name);
    }
    restore();
}

START_TEST(whole_calls_are_accepted_and_optional_buffers_may_be_absent)
{
    ck_assert_msg(enqueue() == CLFD_SUCCESS, "%s", session->heard.last[CLFD_LOG_ERROR]);
    for (size_t t = 0; t < NUM_TENSORS; t++)
        if (tensors[t].optional) {
            *place_of(&buffers, t) = (clfd_buffer){.kind = CLFD_BUFFER_NONE};
            ck_assert_msg(enqueue() == CLFD_SUCCESS, "%s", session->heard.last[CLFD_LOG_ERROR]);
        }
}
END_TEST

START_TEST(an_absent_or_foreign_or_unknown_buffer_is_refused)
{
    const cl_context foreign = clCreateContext(NULL, 1, &session->device, NULL, NULL, NULL);
    const cl_mem mem = clCreateBuffer(foreign, CL_MEM_READ_WRITE, ROOM, NULL, NULL);

    for (size_t t = 0; t < NUM_TENSORS; t++) {
        if (!tensors[t].optional) {
            place_of(&buffers, t)->kind = CLFD_BUFFER_NONE;
            expect_refused(CLFD_ERROR_BUFFER_MISSING, tensors[t].name, "required");
        }
        place_of(&buffers, t)->mem = NULL;
        expect_refused(CLFD_ERROR_BUFFER_MISSING, tensors[t].name, "mem NULL");
        place_of(&buffers, t)->kind = CLFD_BUFFER_SVM;
        expect_refused(CLFD_ERROR_BUFFER_KIND, tensors[t].name, "only CLFD_BUFFER_MEM");
        place_of(&buffers, t)->mem = mem;
        expect_refused(CLFD_ERROR_BUFFER_CONTEXT, tensors[t].name, "another cl_context");
    }
    clReleaseMemObject(mem);
    clReleaseContext(foreign);
}
END_TEST

START_TEST(a_buffer_that_ends_too_early_or_is_unaligned_is_refused)
{
    for (size_t t = 0; t < NUM_TENSORS; t++) {
        const cl_mem small = test_buffer_create(CL_MEM_READ_WRITE, tensors[t].bytes + tensors[t].alignment - 1, 0);
        char needed[64];
        snprintf(needed, sizeof needed, "needs %zu bytes from offset %zu", tensors[t].bytes, tensors[t].alignment);
        *place_of(&buffers, t) = test_buffer(small, tensors[t].alignment);
        expect_refused(CLFD_ERROR_BUFFER_SIZE, tensors[t].name, needed);
        snprintf(needed, sizeof needed, "must be a multiple of %zu", tensors[t].alignment);
        *place_of(&buffers, t) = test_buffer(other, tensors[t].alignment / 2);
        expect_refused(CLFD_ERROR_BUFFER_ALIGNMENT, tensors[t].name, needed);
        clReleaseMemObject(small);
    }
}
END_TEST

START_TEST(a_buffer_that_kernels_may_not_use_so_is_refused)
{
    const cl_mem read_only = test_buffer_create(CL_MEM_READ_ONLY, ROOM, 0),
                 write_only = test_buffer_create(CL_MEM_WRITE_ONLY, ROOM, 0);

    for (size_t t = 0; t < NUM_TENSORS; t++) {
        *place_of(&buffers, t) = test_buffer(read_only, 0);
        if (tensors[t].written)
            expect_refused(CLFD_ERROR_BUFFER_ACCESS, tensors[t].name, "CL_MEM_READ_ONLY");
        *place_of(&buffers, t) = test_buffer(write_only, 0);
        if (tensors[t].read)
            expect_refused(CLFD_ERROR_BUFFER_ACCESS, tensors[t].name, "CL_MEM_WRITE_ONLY");
        restore();
    }
    clReleaseMemObject(read_only);
    clReleaseMemObject(write_only);
}
END_TEST

/* By the first byte, and by the last. */
START_TEST(what_is_written_overlaps_nothing)
{
    for (size_t t = 0; t < NUM_TENSORS; t++)
        for (size_t u = 0; u < NUM_TENSORS; u++)
            for (size_t last = 0; tensors[t].written && u != t && last <= 1; last++) {
                const size_t step = tensors[u].alignment, end = (tensors[t].bytes - 1) / step * step;
                *place_of(&buffers, t) = test_buffer(other, 0);
                *place_of(&buffers, u) = test_buffer(other, last * end);
                expect_refused(CLFD_ERROR_BUFFER_OVERLAP, tensors[t].name, tensors[u].name);
            }
}
END_TEST

START_TEST(what_the_plan_has_no_use_for_is_refused)
{
    const clfd_attention bare = {.struct_size = sizeof bare, .num_q_heads = 1, .head_dim = DIM, .max_kv_len = 2};
    const clfd_append append = {.struct_size = sizeof append, .attention = &bare};
    const clfd_append_buffers all = buffers;
    clfd_append_plan *const full = plan;

    ck_assert_int_eq(clfd_append_plan_create(session->context, &append, &plan), CLFD_SUCCESS);
    for (size_t t = 0; t < NUM_TENSORS; t++) {
        if (tensors[t].optional || t < 4) /* new_k, new_v, k, v */
            continue;
        buffers = (clfd_append_buffers){
            .struct_size = sizeof buffers, .batch = 1, .new_k = all.new_k, .new_v = all.new_v, .k = all.k, .v = all.v};
        *place_of(&buffers, t) = *place_of((clfd_append_buffers *)&all, t);
        expect_refused(CLFD_ERROR_BUFFER_UNEXPECTED, tensors[t].name, "no use");
    }
    buffers.batch = 1;
    expect_refused(CLFD_ERROR_BUFFER_UNEXPECTED, "num_page_indices is 6", "without CLFD_PAGING_CSR it must be 0");
    clfd_append_plan_release(plan);
    plan = full;
}
END_TEST

START_TEST(arguments_of_the_call_are_checked)
{
    clfd_append_plan *none = NULL;

    buffers.batch = BATCH + 1;
    expect_refused(CLFD_ERROR_BATCH_RANGE, "batch is 3", "max_batch is 2");
    buffers.struct_size = 4;
    expect_refused(CLFD_ERROR_STRUCT_SIZE, "struct_size is 4", "clfd_append_buffers");
    ck_assert_int_eq(clfd_enqueue_append(NULL, session->queue, &buffers, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_enqueue_append(plan, NULL, &buffers, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_enqueue_append(plan, session->queue, NULL, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_enqueue_append(plan, session->queue, &buffers, 1, NULL, NULL), CLFD_ERROR_WAIT_LIST);
    ck_assert_int_eq(clfd_append_plan_create(NULL, NULL, &none), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_append_plan_create(session->context, NULL, &none), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_ptr_null(none);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        whole_calls_are_accepted_and_optional_buffers_may_be_absent,
        an_absent_or_foreign_or_unknown_buffer_is_refused,
        a_buffer_that_ends_too_early_or_is_unaligned_is_refused,
        a_buffer_that_kernels_may_not_use_so_is_refused,
        what_is_written_overlaps_nothing,
        what_the_plan_has_no_use_for_is_refused,
        arguments_of_the_call_are_checked,
    };
    const int failed = run_suite_around("buffers_append", tests, COUNT(tests), set_up, tear_down);

    test_session_close();
    return failed;
}

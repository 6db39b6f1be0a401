/* The rules of the buffers that options ask for: each is required where its option is set and refused where it is not, has
 * exactly the size that the call may touch, and is aligned to its elements. The rules of the others, and of a merge and an
 * append: test_buffers.c, test_buffers_merge.c, test_buffers_append.c. */
#include "support/option_cases.h"
#include "support/suite.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const struct operand {
    const char *name;
    size_t place, element;
} operands[] = {
    {"alibi", offsetof(clfd_buffers, alibi), 4},
    {"bias", offsetof(clfd_buffers, bias), 2},
    {"mask", offsetof(clfd_buffers, mask), 1},
    {"sinks", offsetof(clfd_buffers, sinks), 4},
    {"query_positions", offsetof(clfd_buffers, query_positions), 4},
    {"kv_start", offsetof(clfd_buffers, kv_start), 4},
    {"cache_batch_idx", offsetof(clfd_buffers, cache_batch_idx), 4},
    {"block_table", offsetof(clfd_buffers, block_table), 4},
    {"page_indptr", offsetof(clfd_buffers, page_indptr), 4},
    {"k_scale", offsetof(clfd_buffers, k_scale), 4},
    {"v_scale", offsetof(clfd_buffers, v_scale), 2},
    {"k_zero", offsetof(clfd_buffers, k_zero), 4},
    {"v_zero", offsetof(clfd_buffers, v_zero), 2},
};

static test_session *session;
static attention_call *call; /* every option, uploaded; a test spoils one of its buffers */
static clfd_buffers buffers; /* a copy */

static clfd_buffer *place_of(clfd_buffers *all, size_t i) { return (clfd_buffer *)((char *)all + operands[i].place); }

static void set_up(void)
{
    const attention_problem p = option_case((clfd_attention){
        .alibi = 1,
        .bias_type = CLFD_TYPE_F16,
        .mask = CLFD_MASK_BOOL,
        .sinks = 1,
        .query_positions = 1,
        .kv_start = 1,
        .cache_batch_idx = 1,
        .num_cache_rows = 7,
        .paging = CLFD_PAGING_CSR,
        .page_size = 16,
        .k_type = CLFD_TYPE_INT8,
        .v_type = CLFD_TYPE_INT4,
        .k_quant = {.zeros = 1},
        .v_quant = {.zeros = 1, .scale_type = CLFD_TYPE_F16},
    });

    session = test_session_get();
    call = attention_open(&p);
    attention_upload(call);
    buffers = call->buffers;
    memset(&session->heard, 0, sizeof session->heard);
}

static void tear_down(void) { attention_close(call); }

static void expect_status(clfd_status expected, const char *value, const char *rule)
{
    const clfd_status status = clfd_enqueue_decode(call->plan, session->queue, &buffers, 0, NULL, NULL);
    const char *const said = session->heard.last[CLFD_LOG_ERROR];

    ck_assert_msg(status == expected, "%s: %s", value, clfd_status_string(status));
    if (expected == CLFD_SUCCESS)
        return;
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_msg(strstr(said, value) != NULL, "\"%s\" lacks \"%s\"", said, value);
    ck_assert_msg(strstr(said, rule) != NULL, "\"%s\" lacks \"%s\"", said, rule);
    session->heard.count[CLFD_LOG_ERROR] = 0;
}

/* The buffers of the whole call have no byte to spare. */
START_TEST(a_call_with_every_option_is_accepted)
{
    expect_status(CLFD_SUCCESS, "", "");
    attention_read(call);
    attention_expect_reference(call);
}
END_TEST

START_TEST(the_buffer_of_an_option_is_required)
{
    for (size_t i = 0; i < COUNT(operands); i++) {
        *place_of(&buffers, i) = (clfd_buffer){.kind = CLFD_BUFFER_NONE};
        expect_status(CLFD_ERROR_BUFFER_MISSING, operands[i].name, "it is required");
        *place_of(&buffers, i) = (clfd_buffer){.kind = CLFD_BUFFER_MEM};
        expect_status(CLFD_ERROR_BUFFER_MISSING, operands[i].name, "mem NULL");
        *place_of(&buffers, i) = *place_of(&call->buffers, i);
    }
}
END_TEST

START_TEST(a_buffer_that_no_option_asks_for_is_refused)
{
    const attention_problem p = option_case((clfd_attention){0});
    attention_call *const every = call;

    call = attention_open(&p);
    attention_upload(call);
    for (size_t i = 0; i < COUNT(operands); i++) {
        char said[64];
        buffers = call->buffers;
        *place_of(&buffers, i) = *place_of(&every->buffers, i);
        snprintf(said, sizeof said, "%s has kind 1", operands[i].name);
        expect_status(CLFD_ERROR_BUFFER_UNEXPECTED, said, "it must be CLFD_BUFFER_NONE");
    }
    buffers = call->buffers;
    buffers.num_page_indices = 3;
    expect_status(CLFD_ERROR_PAGING, "num_page_indices is 3", "without CLFD_PAGING_CSR it must be 0");
    attention_close(call);
    call = every;
}
END_TEST

/* Moved on by one element, and so short of one at the end. */
START_TEST(a_buffer_one_element_short_is_refused)
{
    for (size_t i = 0; i < COUNT(operands); i++) {
        char rule[64];
        place_of(&buffers, i)->offset += operands[i].element;
        snprintf(rule, sizeof rule, "from offset %zu; the buffer has", place_of(&buffers, i)->offset);
        expect_status(CLFD_ERROR_BUFFER_SIZE, operands[i].name, rule);
        *place_of(&buffers, i) = *place_of(&call->buffers, i);
    }
}
END_TEST

START_TEST(an_offset_of_part_of_an_element_is_refused)
{
    for (size_t i = 0; i < COUNT(operands); i++) {
        if (operands[i].element == 1)
            continue;
        place_of(&buffers, i)->offset -= operands[i].element / 2;
        expect_status(CLFD_ERROR_BUFFER_ALIGNMENT, operands[i].name, "it must be a multiple of");
        *place_of(&buffers, i) = *place_of(&call->buffers, i);
    }
}
END_TEST

/* What grows with the batch and with the bound needs not be there for a smaller call. */
START_TEST(batch_and_bound_shrink_what_options_need)
{
    static const int32_t small[] = {1, 2, 3, 4};
    static const size_t by_batch[] = {4, 5, 6}; /* query_positions: 3 a sequence */
    cl_mem mem = test_buffer_create_from(CL_MEM_READ_ONLY, small, 3 * sizeof small[0]);

    buffers.batch = 1;
    for (size_t i = 0; i < COUNT(by_batch); i++)
        *place_of(&buffers, by_batch[i]) = test_buffer(mem, 0);
    expect_status(CLFD_SUCCESS, "", "");
    ck_assert_int_eq(clFinish(session->queue), CL_SUCCESS);
    buffers.batch = 2;
    expect_status(CLFD_ERROR_BUFFER_SIZE, "query_positions", "needs 24 bytes");
    clReleaseMemObject(mem);

    buffers = call->buffers;
    buffers.batch = 1;
    buffers.kv_len_bound = 10;
    mem = test_buffer_create(CL_MEM_READ_ONLY, 3 + 2 * 200 + 10, 1); /* the third query of the first sequence */
    buffers.mask = test_buffer(mem, 3);
    expect_status(CLFD_SUCCESS, "", "");
    ck_assert_int_eq(clFinish(session->queue), CL_SUCCESS);
    buffers.kv_len_bound = 11;
    expect_status(CLFD_ERROR_BUFFER_SIZE, "mask", "needs 411 bytes");
    clReleaseMemObject(mem);
}
END_TEST

START_TEST(num_page_indices_is_what_the_table_must_hold)
{
    buffers.num_page_indices++;
    expect_status(CLFD_ERROR_BUFFER_SIZE, "block_table", "needs");
    buffers.num_page_indices = 0x80000000u;
    expect_status(CLFD_ERROR_PAGING, "num_page_indices is 2147483648", "it must be 0 to 2147483647");
    buffers.num_page_indices = 0;
    expect_status(CLFD_SUCCESS, "", "");
    ck_assert_int_eq(clFinish(session->queue), CL_SUCCESS);
}
END_TEST

/* ---- The status word --------------------------------------------------------------------------------------------- */

START_TEST(the_status_word_may_be_absent)
{
    buffers.status = (clfd_buffer){.kind = CLFD_BUFFER_NONE};
    *attention_page_of(call, 4, 0) = -1;
    expect_status(CLFD_SUCCESS, "", "");
    attention_read(call);
    ck_assert_uint_eq(call->status, 0);
}
END_TEST

START_TEST(the_status_word_is_checked_like_any_output)
{
    const cl_mem read_only = test_buffer_create(CL_MEM_READ_ONLY, 4, 0);

    buffers.status = test_buffer(read_only, 0);
    expect_status(CLFD_ERROR_BUFFER_ACCESS, "status", "CL_MEM_READ_ONLY");
    buffers.status = test_buffer(call->buffers.status.mem, 12);
    expect_status(CLFD_ERROR_BUFFER_SIZE, "status", "needs 4 bytes");
    buffers.status = test_buffer(call->buffers.status.mem, 2);
    expect_status(CLFD_ERROR_BUFFER_ALIGNMENT, "status", "it must be a multiple of 4");
    buffers.status = test_buffer(call->buffers.lse.mem, call->buffers.lse.offset);
    expect_status(CLFD_ERROR_BUFFER_OVERLAP, "overlaps", "is written and");
    clReleaseMemObject(read_only);
}
END_TEST

/* Inputs of options may share memory with each other, but not with what is written. */
START_TEST(an_options_input_overlaps_no_output)
{
    for (size_t i = 0; i < COUNT(operands); i++) {
        if (operands[i].place == offsetof(clfd_buffers, bias) || operands[i].place == offsetof(clfd_buffers, mask) ||
            operands[i].place >= offsetof(clfd_buffers, k_scale))
            continue; /* longer than out */
        *place_of(&buffers, i) = test_buffer(call->buffers.out.mem, call->buffers.out.offset);
        expect_status(CLFD_ERROR_BUFFER_OVERLAP, operands[i].name, "overlaps");
        *place_of(&buffers, i) = *place_of(&call->buffers, i);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_call_with_every_option_is_accepted,         the_buffer_of_an_option_is_required,
        a_buffer_that_no_option_asks_for_is_refused,  a_buffer_one_element_short_is_refused,
        an_offset_of_part_of_an_element_is_refused,   batch_and_bound_shrink_what_options_need,
        num_page_indices_is_what_the_table_must_hold, the_status_word_may_be_absent,
        the_status_word_is_checked_like_any_output,   an_options_input_overlaps_no_output,
    };
    const int result = run_suite_around("buffers_options", tests, sizeof tests / sizeof tests[0], set_up, tear_down);

    test_session_close();
    return result;
}

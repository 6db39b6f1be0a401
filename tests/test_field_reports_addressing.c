/* FIELD_REPORTS.md, "Addressing": the report stands beside the test. */
#include "support/field_report.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

/* 14 [aiter#3498]: here sequences twice as far apart as they are long; the other half is NaN. */
START_TEST(stride_was_computed_instead_of_read)
{
    attention_problem p = report_problem(4, 2, 64, F16, 50);

    p.attention.max_batch = 3;
    p.attention.k_strides.batch = p.attention.v_strides.batch = 2 * 50 * 2 * 64;
    attention_verify(&p);
}
END_TEST

/* The same of pages: K and V are the halves of each page of one buffer. */
START_TEST(page_stride_was_computed_instead_of_read)
{
    enum { PAGE = 16, HALF = PAGE * 2 * 64 };
    static const int32_t lens[] = {50, 33, 16};

    for (int paging = CLFD_PAGING_TABLE; paging <= CLFD_PAGING_CSR; paging++) {
        attention_problem p = report_problem(4, 2, 64, F16, 50);
        p.attention.max_batch = 3;
        p.kv_lens = lens;
        report_pages(&p, (clfd_paging)paging, PAGE);
        p.attention.k_strides.batch = p.attention.v_strides.batch = (int64_t)2 * HALF;
        attention_call *const call = attention_open(&p);
        const tensor_image *const k = &call->images[ATTENTION_K], *const v = &call->images[ATTENTION_V];
        const size_t half = HALF * sizeof(uint16_t), bytes = k->bytes + half;
        unsigned char *const both = malloc(bytes);
        ck_assert_ptr_nonnull(both);
        for (size_t at = 0; at < bytes; at += half) /* of either image the other half is NaN */
            memcpy(both + at, at / half % 2 == 0 ? k->data + at : v->data + v->offset + at - half, half);
        attention_upload(call);
        clReleaseMemObject(call->buffers.k.mem);
        clReleaseMemObject(call->buffers.v.mem);
        call->buffers.k = test_buffer(test_buffer_create_from(CL_MEM_READ_ONLY, both, bytes), 0);
        call->buffers.v = test_buffer(call->buffers.k.mem, half);
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

/* 15 [flash-attention#2886] */
START_TEST(layout_of_the_first_call_was_kept)
{
    for (int turn = 0; turn < 3; turn++) {
        attention_problem p = report_problem(4, 2, 64, F16, 50);
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
    attention_problem p = report_problem(2, 1, 128, F16, 40);

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
        clfd_attention attention = report_problem(heads[i][0], heads[i][1], 64, F16, 16).attention;
        clfd_plan *plan = NULL;
        attention.struct_size = sizeof attention;
        ck_assert_int_eq(clfd_plan_create(session->context, &attention, &plan), CLFD_ERROR_HEAD_RATIO);
        ck_assert_ptr_null(plan);
        ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_ERROR], "must be a multiple of"));
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        stride_was_computed_instead_of_read,        page_stride_was_computed_instead_of_read,
        layout_of_the_first_call_was_kept,          rows_off_their_alignment_were_misread,
        head_ratio_that_is_no_integer_was_accepted,
    };
    const int result = run_suite("field_reports_addressing", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

/* FIELD_REPORTS.md, rows 13 and 38: offsets beyond 2^31 elements and 4 GiB. Where the device has no such buffers the test
 * says that it skips them; the same pages nearer to the start, and the refusals, are tested everywhere. */
#include "support/field_report.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

enum { PAGE = 16, HEADS = 8, DIM = 128, PAGES = 3, LENGTH = 2 * PAGE + 9 };

#define HALF ((int64_t)PAGE * HEADS * DIM) /* elements of a page's keys; its values follow */
#define PAGE_BYTES (2 * (size_t)HALF * sizeof(uint16_t))

static cl_ulong device_limit(void)
{
    cl_ulong limit = 0;

    ck_assert_int_eq(
        clGetDeviceInfo(test_session_get()->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof limit, &limit, NULL),
        CL_SUCCESS);
    return limit;
}

/* A buffer full of threes, which no one should see; NULL where the device does not give it. */
static cl_mem create_large(size_t bytes)
{
    static const uint32_t threes = 0x42004200;
    test_session *const session = test_session_get();
    cl_int status = CL_INVALID_BUFFER_SIZE;
    cl_mem mem = NULL;

    if (bytes <= device_limit())
        mem = clCreateBuffer(session->cl, CL_MEM_READ_WRITE, bytes, NULL, &status);
    if (mem != NULL)
        status = clEnqueueFillBuffer(session->queue, mem, &threes, sizeof threes, 0, bytes, 0, NULL, NULL);
    if (mem != NULL && status == CL_SUCCESS)
        status = clFinish(session->queue);
    if (status == CL_SUCCESS)
        return mem;
    printf("skipped: a buffer of %zu MiB: %s (the device's limit is %llu MiB)\n", bytes >> 20,
           clfd_status_string(status), (unsigned long long)device_limit() >> 20);
    if (mem != NULL)
        clReleaseMemObject(mem);
    return NULL;
}

static attention_problem paged_problem(void)
{
    static const int32_t length = LENGTH;
    attention_problem p = report_problem(2 * HEADS, HEADS, DIM, F16, LENGTH);

    p.kv_lens = &length;
    p.attention.num_pages = PAGES;
    p.attention.k_strides.batch = p.attention.v_strides.batch = 2 * HALF;
    report_pages(&p, CLFD_PAGING_TABLE, PAGE);
    report_split(&p, CLFD_SPLIT_TOKENS, 32);
    return p;
}

/* Copies the pages of a call into a large buffer, page i to place ids[i], and points the call's table at them. */
static void move_pages(attention_call *call, cl_mem large, const int32_t ids[PAGES])
{
    cl_command_queue queue = test_session_get()->queue;
    const size_t half = (size_t)HALF * sizeof(uint16_t);

    for (size_t i = 0; i < PAGES; i++)
        for (size_t v = 0; v < 2; v++) {
            const tensor_image *const image = &call->images[v == 0 ? ATTENTION_K : ATTENTION_V];
            const unsigned char *const from = image->data + image->offset + i * PAGE_BYTES;
            ck_assert_int_eq(clEnqueueWriteBuffer(queue, large, CL_TRUE, (size_t)ids[i] * PAGE_BYTES + v * half, half,
                                                  from, 0, NULL, NULL),
                             CL_SUCCESS);
        }
    for (size_t i = 0; i < call->indices[ATTENTION_BLOCK_TABLE].count; i++)
        call->indices[ATTENTION_BLOCK_TABLE].values[i] = ids[call->indices[ATTENTION_BLOCK_TABLE].values[i]];
    attention_upload(call);
    clReleaseMemObject(call->buffers.k.mem);
    clReleaseMemObject(call->buffers.v.mem);
    call->buffers.k = test_buffer(large, 0);
    call->buffers.v = test_buffer(large, half);
    clRetainMemObject(large);
    clRetainMemObject(large);
}

/* Pages at these places of a buffer of num_pages give the bits, and the reference, of the same pages in a small one. */
static void verify_pages_at(const int32_t ids[PAGES], uint32_t num_pages)
{
    const attention_problem p = paged_problem();
    const cl_mem large = create_large((size_t)num_pages * PAGE_BYTES);

    if (large == NULL)
        return;
    attention_call *const small = attention_open(&p), *const far = attention_draw(&p);
    attention_run(small);
    attention_expect_reference(small);
    far->problem.attention.num_pages = num_pages;
    attention_create_plan(far);
    move_pages(far, large, ids);
    clReleaseMemObject(large);
    ck_assert_int_eq(clfd_enqueue_decode(far->plan, test_session_get()->queue, &far->buffers, 0, NULL, NULL),
                     CLFD_SUCCESS);
    attention_read(far);
    attention_expect(far, small->expected_out, small->expected_lse);
    ck_assert(attention_same_bits(far, small));
    ck_assert_uint_eq(far->status, 0);
    attention_close(small);
    attention_close(far);
}

/* 13 [vllm#50427]: page 65536 begins at element 2^31. */
START_TEST(element_offsets_beyond_2_to_the_31_wrapped)
{
    ck_assert_int_eq(65536 * 2 * HALF, (int64_t)1 << 31);
    verify_pages_at((const int32_t[PAGES]){65, 66, 67}, 68);
    verify_pages_at((const int32_t[PAGES]){65535, 65536, 65537}, 65538);
}
END_TEST

/* 38 [compute-runtime#627] */
START_TEST(pages_beyond_4_gib_of_a_buffer_were_misread)
{
    verify_pages_at((const int32_t[PAGES]){69999, 3, 66000}, 70000);
}
END_TEST

/* The other half of 38: what is larger than the device allocates is refused by a status, and nothing is enqueued. */
START_TEST(buffer_over_the_devices_limit_had_no_clean_status)
{
    test_session *const session = test_session_get();
    const attention_problem p = paged_problem();
    attention_call *const call = attention_draw(&p);
    clfd_plan *plan = NULL;

    call->problem.attention.num_pages = (uint32_t)(device_limit() / PAGE_BYTES + 1);
    attention_create_plan(call);
    attention_upload(call);
    ck_assert_int_eq(clfd_enqueue_decode(call->plan, session->queue, &call->buffers, 0, NULL, NULL),
                     CLFD_ERROR_BUFFER_SIZE);
    ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_ERROR], "k needs "));
    attention_read(call); /* out still holds what it held */
    attention_close(call);

    clfd_attention workspace = {.struct_size = sizeof workspace,
                                .num_q_heads = 64,
                                .head_dim = 512,
                                .max_kv_len = INT32_MAX,
                                .split_policy = CLFD_SPLIT_TOKENS,
                                .split_size = 1024};
    ck_assert_int_eq(clfd_plan_create(session->context, &workspace, &plan), CLFD_ERROR_OVERFLOW);
    ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_ERROR], "the workspace needs"));
    ck_assert_ptr_null(plan);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        element_offsets_beyond_2_to_the_31_wrapped,
        pages_beyond_4_gib_of_a_buffer_were_misread,
        buffer_over_the_devices_limit_had_no_clean_status,
    };
    const int result = run_suite("field_reports_large", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

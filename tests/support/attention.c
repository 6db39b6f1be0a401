#include "support/attention.h"
#include "plan/check.h"
#include "support/suite.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count + 1, bytes);

    ck_assert_ptr_nonnull(memory);
    return memory;
}

/* ---- A call in host memory --------------------------------------------------------------------------------------- */

/* Room for every cache row at its full length, and a few pages that nobody uses. */
static void give_pages(clfd_attention *a)
{
    const uint32_t batch = a->max_batch > 0 ? a->max_batch : 1;
    const uint32_t rows = a->num_cache_rows > 0 ? a->num_cache_rows : batch;

    if (a->paging != CLFD_PAGING_NONE && a->num_pages == 0)
        a->num_pages = rows * ((a->max_kv_len + a->page_size - 1) / a->page_size) + 3;
}

attention_call *attention_draw(const attention_problem *problem)
{
    attention_call *const call = allocate(1, sizeof *call);

    call->problem = *problem;
    call->problem.attention.struct_size = sizeof call->problem.attention;
    give_pages(&call->problem.attention);
    const clfd_status status = clfd_complete_attention(&call->problem.attention, &call->complete, NULL);
    ck_assert_msg(status == CLFD_SUCCESS, "the problem is none: %s", clfd_status_string(status));
    call->batch = problem->batch != 0 ? problem->batch : call->complete.max_batch;
    call->sequences = call->complete.shared_kv ? 1 : call->batch;
    call->num_rows = (size_t)call->batch * call->complete.q_len * call->complete.num_q_heads;
    attention_make_tensors(call);
    attention_draw_values(call);
    call->out = allocate(call->num_rows * call->complete.head_dim_v, sizeof *call->out);
    call->lse = allocate(call->num_rows, sizeof *call->lse);
    call->expected_out = allocate(call->num_rows * call->complete.head_dim_v, sizeof *call->expected_out);
    call->expected_lse = allocate(call->num_rows, sizeof *call->expected_lse);
    return call;
}

void attention_create_plan(attention_call *call)
{
    test_session *const session = test_session_get();
    const clfd_status status = clfd_plan_create(session->context, &call->problem.attention, &call->plan);

    ck_assert_msg(status == CLFD_SUCCESS, "%s: %s", clfd_status_string(status), session->heard.last[CLFD_LOG_ERROR]);
}

attention_call *attention_open(const attention_problem *problem)
{
    attention_call *const call = attention_draw(problem);

    attention_create_plan(call);
    return call;
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

#define MEMBER(name) offsetof(clfd_buffers, name)

static const size_t tensor_members[ATTENTION_TENSORS] = {
    [ATTENTION_Q] = MEMBER(q),
    [ATTENTION_K] = MEMBER(k),
    [ATTENTION_V] = MEMBER(v),
    [ATTENTION_OUT] = MEMBER(out),
    [ATTENTION_K_SCALE] = MEMBER(k_scale),
    [ATTENTION_V_SCALE] = MEMBER(v_scale),
    [ATTENTION_K_ZERO] = MEMBER(k_zero),
    [ATTENTION_V_ZERO] = MEMBER(v_zero),
    [ATTENTION_ALIBI] = MEMBER(alibi),
    [ATTENTION_SINKS] = MEMBER(sinks),
    [ATTENTION_BIAS] = MEMBER(bias),
    [ATTENTION_MASK] = MEMBER(mask),
};

static const size_t index_members[ATTENTION_INDICES] = {
    [ATTENTION_KV_LENS] = MEMBER(kv_lens),         [ATTENTION_POSITIONS] = MEMBER(query_positions),
    [ATTENTION_START] = MEMBER(kv_start),          [ATTENTION_CACHE_ROWS] = MEMBER(cache_batch_idx),
    [ATTENTION_BLOCK_TABLE] = MEMBER(block_table), [ATTENTION_PAGE_INDPTR] = MEMBER(page_indptr),
};

static clfd_buffer *member(attention_call *call, size_t offset)
{
    return (clfd_buffer *)((char *)&call->buffers + offset);
}

static void release(clfd_buffer *buffer)
{
    if (buffer->mem != NULL)
        clReleaseMemObject(buffer->mem);
}

static void release_buffers(attention_call *call)
{
    for (int i = 0; i < ATTENTION_TENSORS; i++)
        release(member(call, tensor_members[i]));
    for (int i = 0; i < ATTENTION_INDICES; i++)
        release(member(call, index_members[i]));
    release(&call->buffers.lse);
    release(&call->buffers.status);
    release(&call->buffers.workspace);
}

void attention_close(attention_call *call)
{
    release_buffers(call);
    clfd_plan_release(call->plan);
    for (int i = 0; i < ATTENTION_TENSORS; i++)
        image_destroy(&call->images[i]);
    for (int i = 0; i < ATTENTION_INDICES; i++)
        free(call->indices[i].values);
    free(call->out);
    free(call->lse);
    free(call->expected_out);
    free(call->expected_lse);
    free(call);
}

static cl_mem create_input(const attention_call *call, const void *data, size_t bytes)
{
    return call->create_input != NULL ? call->create_input(data, bytes)
                                      : test_buffer_create_from(CL_MEM_READ_ONLY, data, bytes);
}

/* Behind integers that would be very long sequences, or pages far outside: as many as no other array has. */
static clfd_buffer upload_index(const attention_call *call, int index)
{
    const index_array *const array = &call->indices[index];
    const size_t before = (size_t)index + 1;
    int32_t *const values = allocate(array->count + before, sizeof *values);
    cl_mem mem;

    for (size_t i = 0; i < before; i++)
        values[i] = INT32_MAX;
    memcpy(values + before, array->values, array->count * sizeof *values);
    mem = create_input(call, values, (array->count + before) * sizeof *values);
    free(values);
    return test_buffer(mem, before * sizeof *values);
}

static clfd_buffer create_output(size_t bytes)
{
    return test_buffer(test_buffer_create(CL_MEM_READ_WRITE, bytes + 2 * ATTENTION_GUARD, 0xff), ATTENTION_GUARD);
}

static clfd_buffer create_status(void)
{
    const uint32_t words[3] = {0, ATTENTION_STATUS_BEFORE, 0};

    return test_buffer(test_buffer_create_from(CL_MEM_READ_WRITE, words, sizeof words), sizeof words[0]);
}

void attention_upload(attention_call *call)
{
    test_session *const session = test_session_get();
    clfd_buffers *const b = &call->buffers;

    release_buffers(call);
    memset(b, 0, sizeof *b);
    b->struct_size = sizeof *b;
    b->batch = call->batch;
    b->kv_len_bound = call->problem.kv_len_bound;
    if (call->complete.paging == CLFD_PAGING_CSR)
        b->num_page_indices = (uint32_t)call->indices[ATTENTION_BLOCK_TABLE].count;
    for (int i = 0; i < ATTENTION_TENSORS; i++) {
        const tensor_image *const image = &call->images[i];
        if (i != ATTENTION_OUT && image->data != NULL)
            *member(call, tensor_members[i]) =
                test_buffer(create_input(call, image->data, image->bytes), image->offset);
    }
    for (int i = 0; i < ATTENTION_INDICES; i++)
        if (call->indices[i].values != NULL)
            *member(call, index_members[i]) = upload_index(call, i);
    b->out = create_output(call->images[ATTENTION_OUT].bytes - 2 * ATTENTION_GUARD);
    b->out.offset = call->images[ATTENTION_OUT].offset;
    if (!call->problem.no_lse)
        b->lse = create_output(call->num_rows * sizeof(float));
    b->status = create_status();
    b->workspace = create_output(clfd_plan_workspace_bytes(call->plan));
    ck_assert_int_eq(clfd_enqueue_workspace_init(call->plan, session->queue, &b->workspace, 0, NULL, NULL),
                     CLFD_SUCCESS);
}

/* ---- Whole calls ------------------------------------------------------------------------------------------------- */

void attention_run(attention_call *call)
{
    test_session *const session = test_session_get();
    clfd_status status;

    attention_upload(call);
    status = clfd_enqueue_decode(call->plan, session->queue, &call->buffers, 0, NULL, NULL);
    ck_assert_msg(status == CLFD_SUCCESS, "%s: %s", clfd_status_string(status), session->heard.last[CLFD_LOG_ERROR]);
    attention_read(call);
}

void attention_verify(const attention_problem *problem)
{
    attention_call *const call = attention_open(problem);

    attention_run(call);
    attention_expect_reference(call);
    attention_close(call);
}

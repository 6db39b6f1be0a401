#include "support/attention.h"
#include "plan/check.h"
#include "support/random.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count + 1, bytes);

    ck_assert_ptr_nonnull(memory);
    return memory;
}

/* ---- Images ------------------------------------------------------------------------------------------------------ */

static void make_image(attention_call *call, attention_tensor tensor, clfd_type type, const clfd_strides *strides,
                       uint32_t tokens, uint32_t heads, uint32_t dim, size_t offset)
{
    const float poison = call->problem.poison == 0.0f ? NAN : call->problem.poison;
    tensor_image *const image = &call->images[tensor];

    *image = (tensor_image){.type = type,
                            .strides = *strides,
                            .batch = call->complete.max_batch,
                            .tokens = tokens,
                            .heads = heads,
                            .dim = dim,
                            .offset = offset};
    image_create(image, tensor == ATTENTION_OUT ? ATTENTION_GUARD : 0, poison);
}

/* Random values for what the call may use: of K and V the keys below each sequence's length. */
static void draw_image(attention_call *call, attention_tensor tensor, random_source *source)
{
    tensor_image *const image = &call->images[tensor];

    for (uint32_t b = 0; b < call->batch; b++) {
        const uint32_t tokens = tensor == ATTENTION_Q ? image->tokens : attention_kv_len(call, b);
        for (uint32_t t = 0; t < tokens; t++)
            for (uint32_t h = 0; h < image->heads; h++)
                for (uint32_t d = 0; d < image->dim; d++)
                    image_put(image, b, t, h, d, random_normal(source));
    }
}

static void make_images(attention_call *call)
{
    const attention_problem *const p = &call->problem;
    const clfd_attention *const a = &call->complete;
    random_source source = {p->seed + 1};

    make_image(call, ATTENTION_Q, a->q_type, &a->q_strides, a->q_len, a->num_q_heads, a->head_dim, p->q_offset);
    make_image(call, ATTENTION_K, a->k_type, &a->k_strides, a->max_kv_len, a->num_kv_heads, a->head_dim, p->kv_offset);
    draw_image(call, ATTENTION_Q, &source);
    draw_image(call, ATTENTION_K, &source);
    if (!a->v_from_k) {
        make_image(call, ATTENTION_V, a->v_type, &a->v_strides, a->max_kv_len, a->num_kv_heads, a->head_dim_v,
                   p->kv_offset);
        draw_image(call, ATTENTION_V, &source);
    }
    make_image(call, ATTENTION_OUT, a->out_type, &a->out_strides, a->q_len, a->num_q_heads, a->head_dim_v,
               ATTENTION_GUARD + p->out_offset);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

uint32_t attention_kv_len(const attention_call *call, uint32_t batch)
{
    const int64_t max = call->complete.max_kv_len, given = call->problem.kv_len_bound;
    const int64_t bound = given > 0 && given < max ? given : max;
    const int64_t length = call->problem.kv_lens != NULL ? call->problem.kv_lens[batch] : bound;

    return (uint32_t)(length < 0 ? 0 : length > bound ? bound : length);
}

attention_call *attention_open(const attention_problem *problem)
{
    test_session *const session = test_session_get();
    attention_call *const call = allocate(1, sizeof *call);
    clfd_status status;

    call->problem = *problem;
    call->problem.attention.struct_size = sizeof call->problem.attention;
    status = clfd_complete_attention(&call->problem.attention, &call->complete, NULL);
    ck_assert_msg(status == CLFD_SUCCESS, "the problem is none: %s", clfd_status_string(status));
    call->batch = problem->batch != 0 ? problem->batch : call->complete.max_batch;
    call->num_rows = (size_t)call->batch * call->complete.q_len * call->complete.num_q_heads;
    make_images(call);
    call->out = allocate(call->num_rows * call->complete.head_dim_v, sizeof *call->out);
    call->lse = allocate(call->num_rows, sizeof *call->lse);
    call->expected_out = allocate(call->num_rows * call->complete.head_dim_v, sizeof *call->expected_out);
    call->expected_lse = allocate(call->num_rows, sizeof *call->expected_lse);
    status = clfd_plan_create(session->context, &call->problem.attention, &call->plan);
    ck_assert_msg(status == CLFD_SUCCESS, "%s: %s", clfd_status_string(status), session->heard.last[CLFD_LOG_ERROR]);
    return call;
}

static void release_buffers(attention_call *call)
{
    clfd_buffers *const b = &call->buffers;
    clfd_buffer *const all[] = {&b->q, &b->k, &b->v, &b->kv_lens, &b->out, &b->lse, &b->workspace};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->mem != NULL)
            clReleaseMemObject(all[i]->mem);
}

void attention_close(attention_call *call)
{
    release_buffers(call);
    clfd_plan_release(call->plan);
    for (int i = 0; i < ATTENTION_TENSORS; i++)
        image_destroy(&call->images[i]);
    free(call->out);
    free(call->lse);
    free(call->expected_out);
    free(call->expected_lse);
    free(call);
}

static clfd_buffer upload_image(const tensor_image *image)
{
    return test_buffer(test_buffer_create_from(CL_MEM_READ_ONLY, image->data, image->bytes), image->offset);
}

/* kv_lens behind one integer that would be a very long sequence. */
static clfd_buffer upload_kv_lens(const attention_call *call)
{
    int32_t *lens = allocate(call->batch + 1, sizeof *lens);
    cl_mem mem;

    lens[0] = INT32_MAX;
    memcpy(lens + 1, call->problem.kv_lens, call->batch * sizeof *lens);
    mem = test_buffer_create_from(CL_MEM_READ_ONLY, lens, (call->batch + 1) * sizeof *lens);
    free(lens);
    return test_buffer(mem, sizeof *lens);
}

static clfd_buffer create_output(size_t bytes)
{
    return test_buffer(test_buffer_create(CL_MEM_READ_WRITE, bytes + 2 * ATTENTION_GUARD, 0xff), ATTENTION_GUARD);
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
    b->q = upload_image(&call->images[ATTENTION_Q]);
    b->k = upload_image(&call->images[ATTENTION_K]);
    if (!call->complete.v_from_k)
        b->v = upload_image(&call->images[ATTENTION_V]);
    if (call->problem.kv_lens != NULL)
        b->kv_lens = upload_kv_lens(call);
    b->out = create_output(call->images[ATTENTION_OUT].bytes - 2 * ATTENTION_GUARD);
    b->out.offset = call->images[ATTENTION_OUT].offset;
    if (!call->problem.no_lse)
        b->lse = create_output(call->num_rows * sizeof(float));
    b->workspace = create_output(clfd_plan_workspace_bytes(call->plan));
    ck_assert_int_eq(clfd_enqueue_workspace_init(call->plan, session->queue, &b->workspace, 0, NULL, NULL),
                     CLFD_SUCCESS);
}

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

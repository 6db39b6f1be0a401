#include "run.h"
#include "session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The device side of one run. */
struct buffers {
    cl_mem q, k, v, kv_lens, out, lse, workspace;
};

static void release(cl_mem buffer)
{
    if (buffer != NULL)
        clReleaseMemObject(buffer);
}

static size_t bytes_of(const npy_array *array) { return array->count * array->item_bytes; }

/* Host arrays for the results, in the shapes of the input. */
static bool allocate_result(const run_input *input, run_result *result, tool_fault *fault)
{
    const clfd_attention *attention = &input->attention;
    const uint64_t rows = input->q.shape[0] * input->q.shape[1], row_bytes = sizeof(float) * attention->head_dim_v;
    const size_t type_bytes = clfd_type_size(attention->out_type);

    /* The products fit: q, whose rows are at least as many bytes / head_dim, is in memory, and head_dim_v is checked. */
    if (attention->head_dim_v > INT32_MAX || rows > SIZE_MAX / row_bytes / attention->num_q_heads)
        return fault_failed(fault, "head_dim_v is %u; the output does not fit in memory", attention->head_dim_v);
    result->lse = (npy_array){.kind = 'f', .item_bytes = sizeof(float), .num_dims = 3};
    memcpy(result->lse.shape, input->q.shape, 3 * sizeof(uint64_t));
    result->lse.count = (size_t)(rows * attention->num_q_heads);
    result->out = (npy_array){
        .kind = attention->out_type == CLFD_TYPE_BF16 ? 'u' : 'f', .item_bytes = (uint32_t)type_bytes, .num_dims = 4};
    memcpy(result->out.shape, input->q.shape, 3 * sizeof(uint64_t));
    result->out.shape[3] = attention->head_dim_v;
    result->out.count = result->lse.count * attention->head_dim_v;
    result->lse.data = malloc(bytes_of(&result->lse));
    result->out.data = malloc(bytes_of(&result->out));
    if (result->lse.data == NULL || result->out.data == NULL)
        return fault_failed(fault, "no memory for an output of %zu bytes", bytes_of(&result->out));
    return true;
}

static bool create_buffers(tool_session *session, const run_input *input, const run_result *result, struct buffers *b,
                           tool_fault *fault)
{
    return session_buffer(session, "q", bytes_of(&input->q), input->q.data, &b->q, fault) &&
           session_buffer(session, "k", bytes_of(&input->k), input->k.data, &b->k, fault) &&
           (input->v.data == NULL || session_buffer(session, "v", bytes_of(&input->v), input->v.data, &b->v, fault)) &&
           (input->kv_lens.data == NULL ||
            session_buffer(session, "kv_lens", bytes_of(&input->kv_lens), input->kv_lens.data, &b->kv_lens, fault)) &&
           session_buffer(session, "out", bytes_of(&result->out), NULL, &b->out, fault) &&
           session_buffer(session, "lse", bytes_of(&result->lse), NULL, &b->lse, fault) &&
           session_buffer(session, "the workspace", result->workspace_bytes, NULL, &b->workspace, fault);
}

static bool decode(tool_session *session, clfd_plan *plan, const run_input *input, const struct buffers *b,
                   tool_fault *fault)
{
    const clfd_buffers buffers = {
        .struct_size = sizeof buffers,
        .batch = input->attention.max_batch,
        .q = session_operand(b->q, 0),
        .k = session_operand(b->k, 0),
        .v = session_operand(b->v, 0),
        .kv_lens = session_operand(b->kv_lens, 0),
        .out = session_operand(b->out, 0),
        .lse = session_operand(b->lse, 0),
        .workspace = session_operand(b->workspace, 0),
    };
    clfd_status status = clfd_enqueue_workspace_init(plan, session->queue, &buffers.workspace, 0, NULL, NULL);

    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_enqueue_workspace_init");
    status = clfd_enqueue_decode(plan, session->queue, &buffers, 0, NULL, NULL);
    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_enqueue_decode");
    return true;
}

bool run_execute(const char *spec, const run_input *input, run_result *result, tool_fault *fault)
{
    tool_session session = {0};
    struct buffers b = {0};
    clfd_plan *plan = NULL;
    clfd_status status;
    bool good = false;

    *result = (run_result){0};
    if (!allocate_result(input, result, fault) || !session_open(&session, spec, fault))
        goto done;
    snprintf(result->device, sizeof result->device, "%s %s", session.device.spec, session.device.name);
    status = clfd_plan_create(session.clfd, &input->attention, &plan);
    if (status != CLFD_SUCCESS) {
        fault_status(fault, status, "clfd_plan_create");
        goto done;
    }
    snprintf(result->plan, sizeof result->plan, "%s", clfd_plan_describe(plan));
    result->workspace_bytes = clfd_plan_workspace_bytes(plan);
    good = create_buffers(&session, input, result, &b, fault) && decode(&session, plan, input, &b, fault) &&
           session_read(&session, b.out, bytes_of(&result->out), result->out.data, fault) &&
           session_read(&session, b.lse, bytes_of(&result->lse), result->lse.data, fault);

done:
    if (session.queue != NULL)
        clFinish(session.queue);
    clfd_plan_release(plan);
    release(b.q);
    release(b.k);
    release(b.v);
    release(b.kv_lens);
    release(b.out);
    release(b.lse);
    release(b.workspace);
    session_close(&session);
    return good;
}

void run_result_free(run_result *result)
{
    npy_free(&result->out);
    npy_free(&result->lse);
}

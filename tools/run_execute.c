#include "run.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER(name) offsetof(clfd_buffers, name)

/* Where each array goes in the call. */
static const struct {
    const char *name;
    size_t field; /* a clfd_buffer of clfd_buffers */
} operands[RUN_OPERANDS] = {
    [RUN_Q] = {"q", BUFFER(q)},
    [RUN_K] = {"k", BUFFER(k)},
    [RUN_V] = {"v", BUFFER(v)},
    [RUN_KV_LENS] = {"kv_lens", BUFFER(kv_lens)},
    [RUN_ALIBI] = {"the ALiBi slopes", BUFFER(alibi)},
    [RUN_SINKS] = {"the sinks", BUFFER(sinks)},
    [RUN_MASK] = {"the mask", BUFFER(mask)},
    [RUN_TREE_MASK] = {"the tree mask", BUFFER(mask)},
    [RUN_BIAS] = {"the bias", BUFFER(bias)},
    [RUN_QUERY_POSITIONS] = {"query_positions", BUFFER(query_positions)},
    [RUN_KV_START] = {"kv_start", BUFFER(kv_start)},
    [RUN_CACHE_BATCH_IDX] = {"cache_batch_idx", BUFFER(cache_batch_idx)},
    [RUN_BLOCK_TABLE] = {"the block table", BUFFER(block_table)},
    [RUN_PAGE_INDICES] = {"the page indices", BUFFER(block_table)},
    [RUN_PAGE_INDPTR] = {"page_indptr", BUFFER(page_indptr)},
    [RUN_K_SCALE] = {"the scales of K", BUFFER(k_scale)},
    [RUN_V_SCALE] = {"the scales of V", BUFFER(v_scale)},
    [RUN_K_ZERO] = {"the zeros of K", BUFFER(k_zero)},
    [RUN_V_ZERO] = {"the zeros of V", BUFFER(v_zero)},
};

/* The device side of one run. */
struct buffers {
    cl_mem operands[RUN_OPERANDS], out, lse, status, workspace;
};

static void release(cl_mem buffer)
{
    if (buffer != NULL)
        clReleaseMemObject(buffer);
}

static void release_all(struct buffers *b)
{
    for (int i = 0; i < RUN_OPERANDS; i++)
        release(b->operands[i]);
    release(b->out);
    release(b->lse);
    release(b->status);
    release(b->workspace);
}

static size_t bytes_of(const npy_array *array) { return array->count * array->item_bytes; }

/* Host arrays for the results, in the shapes of the input. */
static bool allocate_result(const run_input *input, run_result *result, tool_fault *fault)
{
    const clfd_attention *attention = &input->attention;
    const uint64_t *shape = input->arrays[RUN_Q].shape;
    const uint64_t rows = shape[0] * shape[1], row_bytes = sizeof(float) * attention->head_dim_v;
    const size_t type_bytes = clfd_type_size(attention->out_type);

    /* The products fit: q, whose rows are at least as many bytes / head_dim, is in memory, and head_dim_v is checked. */
    if (attention->head_dim_v > INT32_MAX || rows > SIZE_MAX / row_bytes / attention->num_q_heads)
        return fault_failed(fault, "head_dim_v is %u; the output does not fit in memory", attention->head_dim_v);
    result->lse = (npy_array){.kind = 'f', .item_bytes = sizeof(float), .num_dims = 3};
    memcpy(result->lse.shape, shape, 3 * sizeof shape[0]);
    result->lse.count = (size_t)(rows * attention->num_q_heads);
    result->out = (npy_array){
        .kind = attention->out_type == CLFD_TYPE_BF16 ? 'u' : 'f', .item_bytes = (uint32_t)type_bytes, .num_dims = 4};
    memcpy(result->out.shape, shape, 3 * sizeof shape[0]);
    result->out.shape[3] = attention->head_dim_v;
    result->out.count = result->lse.count * attention->head_dim_v;
    result->lse.data = malloc(bytes_of(&result->lse));
    result->out.data = malloc(bytes_of(&result->out));
    if (result->lse.data == NULL || result->out.data == NULL)
        return fault_failed(fault, "no memory for an output of %zu bytes", bytes_of(&result->out));
    return true;
}

/* Creates the buffers and names them in the call. */
static bool create_buffers(tool_session *session, const run_input *input, const run_result *result, struct buffers *b,
                           clfd_buffers *call, tool_fault *fault)
{
    for (int i = 0; i < RUN_OPERANDS; i++) {
        const npy_array *array = &input->arrays[i];
        if (array->data == NULL)
            continue;
        if (!session_buffer(session, operands[i].name, bytes_of(array), array->data, &b->operands[i], fault))
            return false;
        *(clfd_buffer *)((char *)call + operands[i].field) = session_operand(b->operands[i], 0);
    }
    if (!session_buffer(session, "out", bytes_of(&result->out), NULL, &b->out, fault) ||
        !session_buffer(session, "lse", bytes_of(&result->lse), NULL, &b->lse, fault) ||
        !session_buffer(session, "the status word", sizeof result->status, &result->status, &b->status, fault) ||
        !session_buffer(session, "the workspace", result->workspace_bytes, NULL, &b->workspace, fault))
        return false;
    call->struct_size = sizeof *call;
    call->batch = input->attention.max_batch;
    call->num_page_indices = (uint32_t)input->arrays[RUN_PAGE_INDICES].count;
    call->out = session_operand(b->out, 0);
    call->lse = session_operand(b->lse, 0);
    call->status = session_operand(b->status, 0);
    call->workspace = session_operand(b->workspace, 0);
    return true;
}

static bool decode(tool_session *session, clfd_plan *plan, const clfd_buffers *call, tool_fault *fault)
{
    clfd_status status = clfd_enqueue_workspace_init(plan, session->queue, &call->workspace, 0, NULL, NULL);

    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_enqueue_workspace_init");
    status = clfd_enqueue_decode(plan, session->queue, call, 0, NULL, NULL);
    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_enqueue_decode");
    return true;
}

bool run_execute(tool_session *session, const run_input *input, run_result *result, tool_fault *fault)
{
    struct buffers b = {0};
    clfd_buffers call = {0};
    clfd_plan *plan = NULL;
    clfd_status status;
    bool good = false;

    *result = (run_result){0};
    if (!allocate_result(input, result, fault))
        goto done;
    status = clfd_plan_create(session->clfd, &input->attention, &plan);
    if (status != CLFD_SUCCESS) {
        fault_status(fault, status, "clfd_plan_create");
        goto done;
    }
    snprintf(result->plan, sizeof result->plan, "%s", clfd_plan_describe(plan));
    result->workspace_bytes = clfd_plan_workspace_bytes(plan);
    good = create_buffers(session, input, result, &b, &call, fault) && decode(session, plan, &call, fault) &&
           session_read(session, b.out, bytes_of(&result->out), result->out.data, fault) &&
           session_read(session, b.lse, bytes_of(&result->lse), result->lse.data, fault) &&
           session_read(session, b.status, sizeof result->status, &result->status, fault);

done:
    clFinish(session->queue);
    clfd_plan_release(plan);
    release_all(&b);
    return good;
}

void run_result_free(run_result *result)
{
    npy_free(&result->out);
    npy_free(&result->lse);
}

#include "run/buffers.h"
#include "run/decode.h"

/* Bytes that a kernel may look at of any operand when its one sequence has no keys. */
static uint64_t scratch_bytes(const clfd_plan *plan)
{
    const clfd_attention *const a = &plan->attention;
    uint64_t bytes[] = {
        clfd_row_bytes(a, &a->q_strides, 1, a->head_dim, a->q_type),
        clfd_row_bytes(a, &a->out_strides, 1, a->head_dim_v, a->out_type),
        a->num_q_heads * sizeof(float),
        a->q_len * sizeof(int32_t),
        (uint64_t)a->num_kv_heads * plan->schedule.passes * 2 * sizeof(int32_t), /* the merge's list */
        0,
        0,
        0,
    };
    enum { COUNT = sizeof bytes / sizeof bytes[0] };
    uint64_t most = 0;

    clfd_mask_extent(a, 1, 1, &bytes[COUNT - 3]);
    clfd_scale_extent(a, &a->k_quant, a->head_dim, 1, 1, &bytes[COUNT - 2]);
    clfd_scale_extent(a, &a->v_quant, a->head_dim_v, 1, 1, &bytes[COUNT - 1]);
    for (int i = 0; i < COUNT; i++)
        most = bytes[i] > most ? bytes[i] : most;
    return most;
}

/* Launches a decode kernel, and the merge where the plan has one, and waits. */
static clfd_status run(clfd_plan *plan, cl_command_queue queue, const clfd_decode_call *call)
{
    const clfd_logger *const logger = &plan->context->logger;
    cl_event events[CLFD_MAX_LAUNCHES] = {NULL, NULL};
    clfd_status status = clfd_launch_decode(plan, queue, call, 0, NULL, &events[0]);

    if (status == CLFD_SUCCESS && plan->merge.handle != NULL)
        status = clfd_launch_merge(plan, queue, call, 1, &events[0], &events[1]);
    if (status == CLFD_SUCCESS)
        CLFD_TRY_CL(logger, clWaitForEvents(events[1] != NULL ? 2 : 1, events), "clWaitForEvents");
done:
    for (int i = 0; i < CLFD_MAX_LAUNCHES; i++)
        if (events[i] != NULL)
            clReleaseEvent(events[i]);
    return status;
}

/* The smallest call that runs every kernel: one sequence without keys, whose empty state is written. Nothing of K or V is
 * read, so one scratch buffer is every operand that is read, and one every operand that is written. */
clfd_status clfd_plan_warmup(clfd_plan *plan, cl_command_queue queue)
{
    clfd_decode_call call = {.buffers = {.batch = 1}, .kv_len = 0, .grid_splits = 1, .warmup = true};
    clfd_buffers *const b = &call.buffers;
    clfd_buffer *const read[] = {&b->q,           &b->k,           &b->v,
                                 &b->alibi,       &b->bias,        &b->mask,
                                 &b->sinks,       &b->kv_start,    &b->query_positions,
                                 &b->block_table, &b->page_indptr, &b->cache_batch_idx,
                                 &b->k_scale,     &b->v_scale,     &b->k_zero,
                                 &b->v_zero};
    cl_mem scratch[2] = {NULL, NULL};
    clfd_status status;

    if (plan == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    const clfd_logger *const logger = &plan->context->logger;
    if ((status = clfd_check_queue(plan->context, queue, 0, NULL, &call.out_of_order)) != CLFD_SUCCESS)
        return status;
    for (int i = 0; i < 2; i++) {
        scratch[i] = clCreateBuffer(plan->context->cl, CL_MEM_READ_WRITE, (size_t)scratch_bytes(plan), NULL, &status);
        if (status != CL_SUCCESS) {
            clfd_fail_cl(logger, status, "clCreateBuffer");
            goto done;
        }
    }
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        *read[i] = (clfd_buffer){.kind = CLFD_BUFFER_MEM, .mem = scratch[0]};
    b->out = b->workspace = (clfd_buffer){.kind = CLFD_BUFFER_MEM, .mem = scratch[1]};
    status = run(plan, queue, &call);
    call.balanced = true;
    if (status == CLFD_SUCCESS && plan->balanced.handle != NULL)
        status = run(plan, queue, &call);
done:
    for (int i = 0; i < 2; i++)
        if (scratch[i] != NULL)
            clReleaseMemObject(scratch[i]);
    return status;
}

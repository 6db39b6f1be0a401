#include "run/decode.h"
#include "run/buffers.h"
#include "struct_size.h"
#include <string.h>

static clfd_status check_call(const clfd_plan *plan, cl_command_queue queue, const clfd_buffers *buffers,
                              cl_uint num_wait, const cl_event *wait, clfd_decode_call *call)
{
    const clfd_logger *const logger = &plan->context->logger;
    const clfd_attention *const a = &plan->attention;
    clfd_status status = clfd_read_struct(buffers, &call->buffers, sizeof call->buffers, "clfd_buffers", logger);

    if (status != CLFD_SUCCESS ||
        (status = clfd_check_queue(plan->context, queue, num_wait, wait, &call->out_of_order)) != CLFD_SUCCESS)
        return status;
    if (call->buffers.batch > a->max_batch)
        return clfd_fail(logger, CLFD_ERROR_BATCH_RANGE, "batch is %u; the plan's max_batch is %u", call->buffers.batch,
                         a->max_batch);
    const uint32_t bound = call->buffers.kv_len_bound;
    call->kv_len = bound != 0 && bound < a->max_kv_len ? bound : a->max_kv_len;
    call->grid_splits = clfd_schedule_splits(&plan->schedule, a, &plan->tuning, call->kv_len);
    call->balanced = plan->balanced.handle != NULL && call->buffers.kv_lens.kind != CLFD_BUFFER_NONE;
    return call->buffers.batch == 0 ? CLFD_SUCCESS : clfd_check_decode_buffers(plan, call);
}

/* The launches of one call. `events` has CLFD_MAX_LAUNCHES places, or is NULL where only `last` is wanted. */
static clfd_status enqueue(clfd_plan *plan, cl_command_queue queue, const clfd_buffers *buffers, cl_uint num_wait,
                           const cl_event *wait, cl_event *last, cl_event *events, cl_uint *num_events)
{
    clfd_decode_call call = {.warmup = false};
    cl_event split = NULL;
    clfd_status status = check_call(plan, queue, buffers, num_wait, wait, &call);

    if (status != CLFD_SUCCESS)
        return status;
    const bool merged =
        call.balanced ? plan->schedule.balanced_fused != 0 : call.grid_splits == 1 || plan->schedule.fused != 0;
    if (call.buffers.batch == 0 || merged) {
        cl_event *const event = events != NULL ? &events[0] : last;
        if (call.buffers.batch == 0)
            status = clfd_enqueue_marker(plan->context, queue, num_wait, wait, event);
        else
            status = clfd_launch_decode(plan, queue, &call, num_wait, wait, event);
        if (status == CLFD_SUCCESS && num_events != NULL)
            *num_events = 1;
        return status;
    }
    status =
        clfd_launch_decode(plan, queue, &call, num_wait, wait, events != NULL || call.out_of_order ? &split : NULL);
    if (status != CLFD_SUCCESS)
        return status;
    status = clfd_launch_merge(plan, queue, &call, split != NULL, split != NULL ? &split : NULL,
                               events != NULL ? &events[1] : last);
    if (status == CLFD_SUCCESS && events != NULL) {
        events[0] = split;
        *num_events = 2;
    } else if (split != NULL) {
        clReleaseEvent(split);
    }
    return status;
}

clfd_status clfd_enqueue_decode(clfd_plan *plan, cl_command_queue queue, const clfd_buffers *buffers, cl_uint num_wait,
                                const cl_event *wait, cl_event *event)
{
    if (plan == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    return enqueue(plan, queue, buffers, num_wait, wait, event, NULL, NULL);
}

clfd_status clfd_enqueue_decode_profiled(clfd_plan *plan, cl_command_queue queue, const clfd_buffers *buffers,
                                         cl_uint num_wait, const cl_event *wait, cl_event events[CLFD_MAX_LAUNCHES],
                                         cl_uint *num_events)
{
    if (plan == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    if (events == NULL || num_events == NULL)
        return clfd_fail(&plan->context->logger, CLFD_ERROR_NULL_ARGUMENT, "clfd_enqueue_decode_profiled: %s is NULL",
                         events == NULL ? "events" : "num_events");
    return enqueue(plan, queue, buffers, num_wait, wait, NULL, events, num_events);
}

static const uint32_t zero_pattern = 0;

clfd_status clfd_enqueue_workspace_init(clfd_plan *plan, cl_command_queue queue, const clfd_buffer *workspace,
                                        cl_uint num_wait, const cl_event *wait, cl_event *event)
{
    clfd_range range;
    bool out_of_order;
    clfd_status status;

    if (plan == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    const clfd_logger *const logger = &plan->context->logger;
    if (workspace == NULL)
        return clfd_fail(logger, CLFD_ERROR_NULL_ARGUMENT, "clfd_enqueue_workspace_init: workspace is NULL");
    clfd_workspace_range(plan, workspace, &range);
    if ((status = clfd_check_queue(plan->context, queue, num_wait, wait, &out_of_order)) != CLFD_SUCCESS ||
        (status = clfd_check_ranges(plan->context, &range, 1)) != CLFD_SUCCESS)
        return status;
    status = clEnqueueFillBuffer(queue, workspace->mem, &zero_pattern, sizeof zero_pattern, workspace->offset,
                                 CLFD_CONTROL_BYTES, num_wait, wait, event);
    return status == CL_SUCCESS ? status : clfd_fail_cl(logger, status, "clEnqueueFillBuffer");
}

#include "args.h"
#include "plan/check.h"
#include "run/buffers.h"
#include "run/plan.h"
#include "struct_size.h"
#include <string.h>

static const uint32_t zero_pattern = 0;

/* One call, validated: everything that the launches need. */
typedef struct decode_call {
    clfd_buffers buffers;
    uint32_t kv_len;      /* the longest length that this call may see */
    uint32_t grid_splits; /* splits of that length */
    bool out_of_order;
} decode_call;

static uint64_t tensor_bytes(const clfd_strides *strides, uint32_t batch, uint32_t tokens, uint32_t heads, uint32_t dim,
                             clfd_type type)
{
    uint64_t elements;

    /* The plan checked the same product at max_batch and max_kv_len. */
    clfd_tensor_extent(strides, batch, tokens, heads, dim, &elements);
    return elements * clfd_type_size(type);
}

static clfd_range workspace_range(const clfd_plan *plan, const clfd_buffer *workspace)
{
    return (clfd_range){.name = "workspace",
                        .buffer = workspace,
                        .bytes = plan->schedule.workspace_bytes,
                        .element = sizeof(float),
                        .alignment = CLFD_WORKSPACE_ALIGNMENT,
                        .required = true,
                        .written = true,
                        .scratch = true,
                        .too_small = CLFD_ERROR_WORKSPACE_SIZE};
}

static clfd_status check_buffers(const clfd_plan *plan, const decode_call *call)
{
    const clfd_attention *const a = &plan->attention;
    const clfd_buffers *const b = &call->buffers;
    const uint32_t batch = b->batch;
    const clfd_status small = CLFD_ERROR_BUFFER_SIZE;
    const uint64_t row_bytes = (uint64_t)a->q_len * a->num_q_heads * sizeof(float);
    const clfd_range ranges[] = {
        {"q", &b->q, tensor_bytes(&a->q_strides, batch, a->q_len, a->num_q_heads, a->head_dim, a->q_type),
         clfd_type_size(a->q_type), a->q_alignment, true, false, false, 0, small},
        {"k", &b->k, tensor_bytes(&a->k_strides, batch, call->kv_len, a->num_kv_heads, a->head_dim, a->k_type),
         clfd_type_size(a->k_type), a->k_alignment, true, false, false, 0, small},
        {"v", &b->v, tensor_bytes(&a->v_strides, batch, call->kv_len, a->num_kv_heads, a->head_dim_v, a->v_type),
         clfd_type_size(a->v_type), a->v_alignment, !a->v_from_k, false, false, 0, small},
        {"kv_lens", &b->kv_lens, batch * sizeof(int32_t), sizeof(int32_t), sizeof(int32_t), false, false, false, 0,
         small},
        {"out", &b->out, tensor_bytes(&a->out_strides, batch, a->q_len, a->num_q_heads, a->head_dim_v, a->out_type),
         clfd_type_size(a->out_type), a->out_alignment, true, true, false, 0, small},
        {"lse", &b->lse, batch * row_bytes, sizeof(float), sizeof(float), false, true, false, 0, small},
        workspace_range(plan, &b->workspace),
    };

    if (a->v_from_k && b->v.kind != CLFD_BUFFER_NONE)
        return clfd_fail(&plan->context->logger, CLFD_ERROR_BUFFER_UNEXPECTED,
                         "v has kind %d; with v_from_k it must be CLFD_BUFFER_NONE", (int)b->v.kind);
    return clfd_check_ranges(plan->context, ranges, sizeof ranges / sizeof ranges[0]);
}

static clfd_status check_call(const clfd_plan *plan, cl_command_queue queue, const clfd_buffers *buffers,
                              cl_uint num_wait, const cl_event *wait, decode_call *call)
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
    call->grid_splits = clfd_schedule_splits(&plan->schedule, &plan->tuning, call->kv_len);
    return call->buffers.batch == 0 ? CLFD_SUCCESS : check_buffers(plan, call);
}

static split_args make_split_args(const clfd_plan *plan, const decode_call *call)
{
    return (split_args){
        .max_kv_len = (cl_int)call->kv_len,
        .num_splits = (cl_int)plan->schedule.num_splits,
        .split_tokens = (cl_int)plan->schedule.split_tokens,
        .split_tile = (cl_int)plan->tuning.split_tile,
        .grid_splits = (cl_int)call->grid_splits,
        .has_kv_lens = call->buffers.kv_lens.kind != CLFD_BUFFER_NONE,
    };
}

/* A byte offset in elements of a type; exact, since the alignment promise is at least an element. */
static cl_long elements(const clfd_buffer *buffer, size_t element_bytes)
{
    return (cl_long)(buffer->offset / element_bytes);
}

static clfd_status launch_decode(clfd_plan *plan, cl_command_queue queue, const decode_call *call, cl_uint num_wait,
                                 const cl_event *wait, cl_event *event)
{
    const clfd_attention *const a = &plan->attention;
    const clfd_buffers *const b = &call->buffers;
    const clfd_schedule *const s = &plan->schedule;
    const clfd_buffer *const v = a->v_from_k ? &b->k : &b->v;
    const cl_mem mems[] = {
        b->q.mem,        b->k.mem, v->mem, clfd_buffer_mem(&b->kv_lens), b->out.mem, clfd_buffer_mem(&b->lse),
        b->workspace.mem};
    enum { NUM_MEMS = sizeof mems / sizeof mems[0] };
    clfd_argument arguments[NUM_MEMS + 1];
    decode_args args;

    memset(&args, 0, sizeof args);
    args.q_offset = elements(&b->q, clfd_type_size(a->q_type));
    args.q_batch = a->q_strides.batch, args.q_token = a->q_strides.token, args.q_head = a->q_strides.head;
    args.k_offset = elements(&b->k, clfd_type_size(a->k_type));
    args.k_batch = a->k_strides.batch, args.k_token = a->k_strides.token, args.k_head = a->k_strides.head;
    args.v_offset = elements(v, clfd_type_size(a->v_type));
    args.v_batch = a->v_strides.batch, args.v_token = a->v_strides.token, args.v_head = a->v_strides.head;
    args.out_offset = elements(&b->out, clfd_type_size(a->out_type));
    args.out_batch = a->out_strides.batch, args.out_token = a->out_strides.token, args.out_head = a->out_strides.head;
    args.kv_lens_offset = elements(&b->kv_lens, sizeof(int32_t));
    args.lse_offset = elements(&b->lse, sizeof(float));
    args.partial_o_offset = (cl_long)((b->workspace.offset + s->partial_o_offset) / sizeof(float));
    args.stats_offset = (cl_long)((b->workspace.offset + s->stats_offset) / sizeof(float));
    args.stats_stride = (cl_long)(s->stats_bytes / sizeof(float));
    args.split = make_split_args(plan, call);
    args.partial_slots = (cl_int)s->grid_splits;
    args.num_kv_heads = (cl_int)a->num_kv_heads;
    args.heads = (cl_int)s->heads;
    args.ratio = (cl_int)s->ratio;
    args.q_len = (cl_int)a->q_len;
    args.passes = (cl_int)s->passes;
    args.direct = call->grid_splits == 1;
    args.has_lse = b->lse.kind != CLFD_BUFFER_NONE;
    args.scale = a->scale;
    for (int i = 0; i < NUM_MEMS; i++)
        arguments[i] = (clfd_argument){sizeof(cl_mem), &mems[i]};
    arguments[NUM_MEMS] = (clfd_argument){sizeof args, &args};
    return clfd_kernel_launch(&plan->decode, queue, arguments, NUM_MEMS + 1,
                              (uint64_t)b->batch * (a->num_kv_heads / s->heads) * s->passes * call->grid_splits,
                              num_wait, wait, event, &plan->context->logger);
}

static clfd_status launch_merge(clfd_plan *plan, cl_command_queue queue, const decode_call *call, cl_uint num_wait,
                                const cl_event *wait, cl_event *event)
{
    const clfd_attention *const a = &plan->attention;
    const clfd_buffers *const b = &call->buffers;
    const clfd_schedule *const s = &plan->schedule;
    const cl_mem workspace = b->workspace.mem, kv_lens = clfd_buffer_mem(&b->kv_lens), out = b->out.mem,
                 lse = clfd_buffer_mem(&b->lse), none = NULL;
    const uint64_t rows = (uint64_t)b->batch * a->q_len * a->num_q_heads;
    merge_args args;
    const clfd_argument arguments[] = {
        {sizeof(cl_mem), &workspace}, {sizeof(cl_mem), &workspace}, {sizeof(cl_mem), &workspace},
        {sizeof(cl_mem), &kv_lens},   {sizeof(cl_mem), &out},       {sizeof(cl_mem), &lse},
        {sizeof(cl_mem), &none},      {sizeof(cl_mem), &none},      {sizeof args, &args},
    };

    memset(&args, 0, sizeof args);
    args.o_offset = (cl_long)((b->workspace.offset + s->partial_o_offset) / sizeof(float));
    args.stat0_offset = (cl_long)((b->workspace.offset + s->stats_offset) / sizeof(float));
    args.stat1_offset = args.stat0_offset + (cl_long)(s->stats_bytes / sizeof(float));
    args.out_offset = elements(&b->out, clfd_type_size(a->out_type));
    args.out_batch = a->out_strides.batch, args.out_token = a->out_strides.token, args.out_head = a->out_strides.head;
    args.kv_lens_offset = elements(&b->kv_lens, sizeof(int32_t));
    args.stats.lse_offset = elements(&b->lse, sizeof(float));
    args.stats.has_lse = b->lse.kind != CLFD_BUFFER_NONE;
    args.split = make_split_args(plan, call);
    args.num_rows = (cl_int)rows;
    args.q_len = (cl_int)a->q_len;
    args.num_q_heads = (cl_int)a->num_q_heads;
    args.partial_slots = (cl_int)s->grid_splits;
    return clfd_kernel_launch(&plan->merge, queue, arguments, sizeof arguments / sizeof arguments[0], rows, num_wait,
                              wait, event, &plan->context->logger);
}

/* The launches of one call. `events` has CLFD_MAX_LAUNCHES places, or is NULL where only `last` is wanted. */
static clfd_status enqueue(clfd_plan *plan, cl_command_queue queue, const clfd_buffers *buffers, cl_uint num_wait,
                           const cl_event *wait, cl_event *last, cl_event *events, cl_uint *num_events)
{
    decode_call call;
    cl_event split = NULL;
    clfd_status status = check_call(plan, queue, buffers, num_wait, wait, &call);

    if (status != CLFD_SUCCESS)
        return status;
    if (call.buffers.batch == 0 || call.grid_splits == 1) {
        cl_event *const event = events != NULL ? &events[0] : last;
        if (call.buffers.batch == 0)
            status = clfd_enqueue_marker(plan->context, queue, num_wait, wait, event);
        else
            status = launch_decode(plan, queue, &call, num_wait, wait, event);
        if (status == CLFD_SUCCESS && num_events != NULL)
            *num_events = 1;
        return status;
    }
    status = launch_decode(plan, queue, &call, num_wait, wait, events != NULL || call.out_of_order ? &split : NULL);
    if (status != CLFD_SUCCESS)
        return status;
    status = launch_merge(plan, queue, &call, split != NULL, split != NULL ? &split : NULL,
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
    range = workspace_range(plan, workspace);
    if ((status = clfd_check_queue(plan->context, queue, num_wait, wait, &out_of_order)) != CLFD_SUCCESS ||
        (status = clfd_check_ranges(plan->context, &range, 1)) != CLFD_SUCCESS)
        return status;
    status = clEnqueueFillBuffer(queue, workspace->mem, &zero_pattern, sizeof zero_pattern, workspace->offset,
                                 CLFD_CONTROL_BYTES, num_wait, wait, event);
    return status == CL_SUCCESS ? status : clfd_fail_cl(logger, status, "clEnqueueFillBuffer");
}

/* The smallest call that runs every kernel: one sequence without keys, whose empty state is written and merged. Nothing
 * of K, V or a workspace is read, so q and out are all it needs. */
clfd_status clfd_plan_warmup(clfd_plan *plan, cl_command_queue queue)
{
    decode_call call = {.buffers = {.batch = 1}, .kv_len = 0, .grid_splits = 1};
    clfd_buffers *const b = &call.buffers;
    clfd_status status;

    if (plan == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    const clfd_logger *const logger = &plan->context->logger;
    const clfd_attention *const a = &plan->attention;
    cl_event events[CLFD_MAX_LAUNCHES] = {NULL, NULL};
    cl_mem q = NULL, out = NULL;
    if ((status = clfd_check_queue(plan->context, queue, 0, NULL, &call.out_of_order)) != CLFD_SUCCESS)
        return status;
    q = clCreateBuffer(plan->context->cl, CL_MEM_READ_WRITE,
                       tensor_bytes(&a->q_strides, 1, a->q_len, a->num_q_heads, a->head_dim, a->q_type), NULL, &status);
    if (status != CL_SUCCESS) {
        clfd_fail_cl(logger, status, "clCreateBuffer");
        goto done;
    }
    out = clCreateBuffer(plan->context->cl, CL_MEM_READ_WRITE,
                         tensor_bytes(&a->out_strides, 1, a->q_len, a->num_q_heads, a->head_dim_v, a->out_type), NULL,
                         &status);
    if (status != CL_SUCCESS) {
        clfd_fail_cl(logger, status, "clCreateBuffer");
        goto done;
    }
    b->q = b->k = b->v = (clfd_buffer){.kind = CLFD_BUFFER_MEM, .mem = q};
    b->out = (clfd_buffer){.kind = CLFD_BUFFER_MEM, .mem = out};
    if ((status = launch_decode(plan, queue, &call, 0, NULL, &events[0])) != CLFD_SUCCESS)
        goto done;
    if (plan->merge.handle != NULL &&
        (status = launch_merge(plan, queue, &call, 1, &events[0], &events[1])) != CLFD_SUCCESS)
        goto done;
    CLFD_TRY_CL(logger, clWaitForEvents(plan->merge.handle != NULL ? 2 : 1, events), "clWaitForEvents");
done:
    for (int i = 0; i < CLFD_MAX_LAUNCHES; i++)
        if (events[i] != NULL)
            clReleaseEvent(events[i]);
    if (q != NULL)
        clReleaseMemObject(q);
    if (out != NULL)
        clReleaseMemObject(out);
    return status;
}

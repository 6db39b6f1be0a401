#include "bench.h"
#include <stdio.h>

#define BUFFER(name) offsetof(clfd_buffers, name)

/* Where the tensors and tables of a part go in its call. */
static const size_t tensor_fields[BENCH_TENSORS] = {
    [BENCH_K] = BUFFER(k),
    [BENCH_V] = BUFFER(v),
    [BENCH_K_SCALE] = BUFFER(k_scale),
    [BENCH_V_SCALE] = BUFFER(v_scale),
    [BENCH_K_ZERO] = BUFFER(k_zero),
    [BENCH_V_ZERO] = BUFFER(v_zero),
    [BENCH_BIAS] = BUFFER(bias),
    [BENCH_MASK] = BUFFER(mask),
};
static const size_t table_fields[BENCH_TABLES] = {
    [BENCH_KV_LENS] = BUFFER(kv_lens),
    [BENCH_KV_START] = BUFFER(kv_start),
    [BENCH_CACHE_BATCH_IDX] = BUFFER(cache_batch_idx),
    [BENCH_QUERY_POSITIONS] = BUFFER(query_positions),
    [BENCH_BLOCK_TABLE] = BUFFER(block_table),
    [BENCH_PAGE_INDPTR] = BUFFER(page_indptr),
    [BENCH_ALIBI] = BUFFER(alibi),
    [BENCH_SINKS] = BUFFER(sinks),
};

static clfd_buffer *field_of(clfd_buffers *buffers, size_t offset) { return (clfd_buffer *)((char *)buffers + offset); }

static bool create_merge(bench_device *device, const bench_memory *memory, bench_decoder *decoder, tool_fault *fault)
{
    const clfd_merge merge = {.struct_size = sizeof merge,
                              .max_rows = decoder->rows,
                              .num_states = 2,
                              .head_dim_v = memory->parts[0].attention.head_dim_v,
                              .out_type = CLFD_TYPE_F32};
    const clfd_status status = clfd_merge_plan_create(device->session.clfd, &merge, &decoder->merge);

    return status == CLFD_SUCCESS ? true : fault_status(fault, status, "clfd_merge_plan_create");
}

bool bench_decoder_plan(bench_device *device, const bench_memory *memory, const char *tuning, bench_decoder *decoder,
                        tool_fault *fault)
{
    size_t used = 0;

    *decoder = (bench_decoder){.num_stages = memory->num_parts};
    fault_clear(fault);
    for (uint32_t s = 0; s < decoder->num_stages; s++) {
        clfd_attention attention = memory->parts[s].attention;
        attention.tuning = tuning;
        const clfd_status status = clfd_plan_create(device->session.clfd, &attention, &decoder->stages[s].plan);
        if (status != CLFD_SUCCESS)
            return fault_status(fault, status, "clfd_plan_create");
        decoder->rows = attention.max_batch * attention.q_len * attention.num_q_heads;
        if (used < sizeof decoder->plan)
            used += (size_t)snprintf(decoder->plan + used, sizeof decoder->plan - used, "%s%s", s > 0 ? " + " : "",
                                     clfd_plan_describe(decoder->stages[s].plan));
        if (decoder->workspace_bytes < clfd_plan_workspace_bytes(decoder->stages[s].plan))
            decoder->workspace_bytes = clfd_plan_workspace_bytes(decoder->stages[s].plan);
    }
    return decoder->num_stages == 1 || create_merge(device, memory, decoder, fault);
}

/* Outputs of a stage and the buffers that stay the same for every copy. */
static bool open_stage(bench_device *device, const bench_memory *memory, bench_decoder *decoder, uint32_t s,
                       tool_fault *fault)
{
    const bench_part *part = &memory->parts[s];
    clfd_buffers *buffers = &decoder->stages[s].buffers;
    tool_session *session = &device->session;

    if (!session_buffer(session, "out", memory->out_bytes, NULL, &decoder->stages[s].out, fault) ||
        (decoder->num_stages > 1 &&
         !session_buffer(session, "lse", decoder->rows * sizeof(float), NULL, &decoder->stages[s].lse, fault)))
        return false;
    *buffers = (clfd_buffers){
        .struct_size = sizeof *buffers,
        .batch = part->attention.max_batch,
        .q = session_operand(memory->q, 0),
        .out = session_operand(decoder->stages[s].out, 0),
        .lse = session_operand(decoder->stages[s].lse, 0),
        .workspace = session_operand(decoder->workspace, 0),
    };
    for (int t = 0; t < BENCH_TABLES; t++)
        *field_of(buffers, table_fields[t]) = session_operand(part->tables[t].mem, 0);
    if (part->attention.paging == CLFD_PAGING_CSR)
        buffers->num_page_indices = (uint32_t)part->tables[BENCH_BLOCK_TABLE].count;
    return true;
}

bool bench_decoder_open(bench_device *device, const bench_memory *memory, bench_decoder *decoder, tool_fault *fault)
{
    tool_session *session = &device->session;
    clfd_status status;

    if (!session_buffer(session, "the workspace", decoder->workspace_bytes, NULL, &decoder->workspace, fault))
        return false;
    for (uint32_t s = 0; s < decoder->num_stages; s++) {
        if (!open_stage(device, memory, decoder, s, fault))
            return false;
        status = clfd_plan_warmup(decoder->stages[s].plan, session->queue);
        if (status != CLFD_SUCCESS)
            return fault_status(fault, status, "clfd_plan_warmup");
    }
    /* The control region is equal for all plans of the context. */
    status = clfd_enqueue_workspace_init(decoder->stages[0].plan, session->queue, &decoder->stages[0].buffers.workspace,
                                         0, NULL, NULL);
    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_enqueue_workspace_init");
    return true;
}

void bench_decoder_close(bench_decoder *decoder)
{
    for (uint32_t s = 0; s < decoder->num_stages; s++) {
        if (decoder->stages[s].out != NULL)
            clReleaseMemObject(decoder->stages[s].out);
        if (decoder->stages[s].lse != NULL)
            clReleaseMemObject(decoder->stages[s].lse);
        clfd_plan_release(decoder->stages[s].plan);
    }
    if (decoder->workspace != NULL)
        clReleaseMemObject(decoder->workspace);
    clfd_merge_plan_release(decoder->merge);
    *decoder = (bench_decoder){0};
}

void bench_decoder_rotate(bench_memory *memory, bench_decoder *decoder)
{
    const size_t copy = bench_next_copy(memory);

    for (uint32_t s = 0; s < decoder->num_stages; s++)
        for (int t = 0; t < BENCH_TENSORS; t++)
            if (memory->parts[s].tensors[t].bytes > 0)
                *field_of(&decoder->stages[s].buffers, tensor_fields[t]) =
                    session_operand(memory->copies, copy + memory->parts[s].tensors[t].offset);
}

/* The state of the prefix takes in that of the rest. */
static clfd_status enqueue_merge(bench_decoder *decoder, cl_command_queue queue, cl_event *event)
{
    clfd_state_buffers states[2] = {{.o = {0}}};

    for (int s = 0; s < 2; s++) {
        states[s].o = session_operand(decoder->stages[s].out, 0);
        states[s].lse = session_operand(decoder->stages[s].lse, 0);
    }
    return clfd_enqueue_merge_pair(decoder->merge, queue, decoder->rows, &states[0], &states[1], &states[0], 0, NULL,
                                   event);
}

bool bench_decoder_enqueue(bench_decoder *decoder, cl_command_queue queue, tool_fault *fault)
{
    clfd_status status = CLFD_SUCCESS;

    for (uint32_t s = 0; s < decoder->num_stages; s++) {
        status = clfd_enqueue_decode(decoder->stages[s].plan, queue, &decoder->stages[s].buffers, 0, NULL, NULL);
        if (status != CLFD_SUCCESS)
            return fault_status(fault, status, "clfd_enqueue_decode");
    }
    if (decoder->num_stages > 1)
        status = enqueue_merge(decoder, queue, NULL);
    return status == CLFD_SUCCESS ? true : fault_status(fault, status, "clfd_enqueue_merge_pair");
}

/* A launch's event, and which of the times it counts for. */
struct launch {
    cl_event event;
    double *by_kind, *by_part;
};

static bool read_launches(const struct launch *launches, uint32_t count, bench_times *times, tool_fault *fault)
{
    cl_ulong first = 0, start = 0, end = 0;
    cl_int code = CL_SUCCESS;

    for (uint32_t i = 0; i < count && code == CL_SUCCESS; i++) {
        const cl_event event = launches[i].event;
        code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
        if (code == CL_SUCCESS)
            code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
        first = i == 0 ? start : first;
        *launches[i].by_kind += 1e-9 * (double)(end - start);
        *launches[i].by_part += 1e-9 * (double)(end - start);
    }
    times->single = 1e-9 * (double)(end - first);
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "clGetEventProfilingInfo");
}

bool bench_decoder_time(bench_device *device, bench_memory *memory, bench_decoder *decoder, bench_times *times,
                        tool_fault *fault)
{
    const cl_command_queue queue = device->session.queue;
    struct launch launches[BENCH_MAX_LAUNCHES];
    cl_event events[CLFD_MAX_LAUNCHES];
    uint32_t count = 0;
    cl_uint num_events;
    cl_int code;
    clfd_status status = CLFD_SUCCESS;
    bool good;

    *times = (bench_times){0};
    if (!roofline_occupy(device, memory, fault))
        return false;
    bench_decoder_rotate(memory, decoder);
    for (uint32_t s = 0; s < decoder->num_stages && status == CLFD_SUCCESS; s++) {
        num_events = 0;
        status = clfd_enqueue_decode_profiled(decoder->stages[s].plan, queue, &decoder->stages[s].buffers, 0, NULL,
                                              events, &num_events);
        for (cl_uint i = 0; i < num_events && status == CLFD_SUCCESS; i++)
            launches[count++] = (struct launch){events[i], i == 0 ? &times->split : &times->merge, &times->parts[s]};
    }
    if (status == CLFD_SUCCESS && decoder->num_stages > 1) {
        status = enqueue_merge(decoder, queue, &events[0]);
        if (status == CLFD_SUCCESS)
            launches[count++] = (struct launch){events[0], &times->merge, &times->combine};
    }
    code = clFinish(queue);
    good = status != CLFD_SUCCESS ? fault_status(fault, status, "enqueueing a measured decode")
           : code != CL_SUCCESS   ? fault_cl(fault, code, "clFinish")
                                  : read_launches(launches, count, times, fault);
    for (uint32_t i = 0; i < count; i++)
        clReleaseEvent(launches[i].event);
    return good;
}

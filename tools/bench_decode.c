#include "bench.h"
#include "system.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STEADY_CALLS 200
#define STEADY_ROUNDS 3
/* Where one call takes longer than 20 ms, a row of calls is cut to about this long, but not below so many calls. */
#define SLOW_CALL_SECONDS 0.02
#define SLOW_ROW_SECONDS 4.0
#define MIN_STEADY_CALLS 10u

/* What one decode needs beside the memory of its inputs. */
struct decoder {
    clfd_plan *plan;
    cl_mem out, workspace;
    clfd_buffers buffers;
};

static bool open_decoder(bench_device *device, const bench_problem *problem, const char *tuning, bench_memory *memory,
                         struct decoder *decoder, bench_result *result, tool_fault *fault)
{
    clfd_attention attention = problem_attention(problem);
    clfd_status status;

    attention.tuning = tuning;
    fault_clear(fault);
    status = clfd_plan_create(device->session.clfd, &attention, &decoder->plan);
    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_plan_create");
    snprintf(result->plan, sizeof result->plan, "%s", clfd_plan_describe(decoder->plan));
    result->workspace_bytes = clfd_plan_workspace_bytes(decoder->plan);
    if (!session_buffer(&device->session, "out", memory->out_bytes, NULL, &decoder->out, fault) ||
        !session_buffer(&device->session, "the workspace", result->workspace_bytes, NULL, &decoder->workspace, fault))
        return false;
    decoder->buffers = (clfd_buffers){
        .struct_size = sizeof decoder->buffers,
        .batch = problem->batch,
        .q = session_operand(memory->q, 0),
        .kv_lens = session_operand(memory->kv_lens, 0),
        .out = session_operand(decoder->out, 0),
        .workspace = session_operand(decoder->workspace, 0),
    };
    status = clfd_plan_warmup(decoder->plan, device->session.queue);
    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_plan_warmup");
    status =
        clfd_enqueue_workspace_init(decoder->plan, device->session.queue, &decoder->buffers.workspace, 0, NULL, NULL);
    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_enqueue_workspace_init");
    return true;
}

static void close_decoder(struct decoder *decoder)
{
    if (decoder->out != NULL)
        clReleaseMemObject(decoder->out);
    if (decoder->workspace != NULL)
        clReleaseMemObject(decoder->workspace);
    clfd_plan_release(decoder->plan);
    *decoder = (struct decoder){0};
}

/* Points the call at the next copy of K and V. */
static void rotate(const bench_problem *problem, bench_memory *memory, struct decoder *decoder)
{
    const size_t offset = bench_next_copy(memory);

    decoder->buffers.k = session_operand(memory->kv, offset);
    decoder->buffers.v = session_operand(problem->v_from_k ? NULL : memory->kv, offset + memory->v_offset);
}

/* Start of the first launch, end of the last, and how long each took; in seconds. */
static bool read_events(const cl_event *events, cl_uint count, double *single, double parts[CLFD_MAX_LAUNCHES],
                        tool_fault *fault)
{
    cl_ulong first = 0, start = 0, end = 0;
    cl_int code = CL_SUCCESS;

    for (cl_uint i = 0; i < count && code == CL_SUCCESS; i++) {
        code = clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
        if (code == CL_SUCCESS)
            code = clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
        first = i == 0 ? start : first;
        parts[i] = 1e-9 * (double)(end - start);
    }
    *single = 1e-9 * (double)(end - first);
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "clGetEventProfilingInfo");
}

static bool decode_single(bench_device *device, struct decoder *decoder, double *single,
                          double parts[CLFD_MAX_LAUNCHES], tool_fault *fault)
{
    cl_event events[CLFD_MAX_LAUNCHES];
    cl_uint count = 0;
    cl_int code;
    bool good;
    const clfd_status status =
        clfd_enqueue_decode_profiled(decoder->plan, device->session.queue, &decoder->buffers, 0, NULL, events, &count);

    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_enqueue_decode_profiled");
    code = clFinish(device->session.queue);
    parts[1] = 0;
    good = code == CL_SUCCESS ? read_events(events, count, single, parts, fault) : fault_cl(fault, code, "clFinish");
    for (cl_uint i = 0; i < count; i++)
        clReleaseEvent(events[i]);
    return good;
}

/* A row of calls; host[i] receives the time inside call i. */
static bool decode_steady(bench_device *device, const bench_problem *problem, bench_memory *memory,
                          struct decoder *decoder, uint32_t calls, double *seconds, double *host, tool_fault *fault)
{
    const double start = system_seconds();
    cl_int code;

    for (uint32_t i = 0; i < calls; i++) {
        rotate(problem, memory, decoder);
        const double before = system_seconds();
        const clfd_status status =
            clfd_enqueue_decode(decoder->plan, device->steady_queue, &decoder->buffers, 0, NULL, NULL);
        host[i] = system_seconds() - before;
        if (status != CLFD_SUCCESS)
            return fault_status(fault, status, "clfd_enqueue_decode");
    }
    code = clFinish(device->steady_queue);
    *seconds = (system_seconds() - start) / calls;
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "clFinish");
}

/* The single clock: plain read and decode take turns, so that both see the same machine. decoder NULL: the read alone. */
static bool measure_single(bench_device *device, const bench_problem *problem, bench_memory *memory,
                           struct decoder *decoder, uint32_t repeats, bench_result *result, tool_fault *fault)
{
    const size_t count = repeats;
    double *values = calloc(4 * count, sizeof values[0]), parts[CLFD_MAX_LAUNCHES];
    double *read = values, *single = values + count, *split = values + 2 * count, *merge = values + 3 * count;
    bool good = false;

    if (values == NULL)
        return fault_failed(fault, "no memory for %u measurements", repeats);
    for (size_t i = 0; i < count; i++) {
        if (!roofline_single(device, memory, &result->roofline.single, &read[i], fault))
            goto done;
        if (decoder == NULL)
            continue;
        rotate(problem, memory, decoder);
        if (!decode_single(device, decoder, &single[i], parts, fault))
            goto done;
        split[i] = parts[0];
        merge[i] = parts[1];
    }
    result->read_single = bench_median(read, count);
    result->single = bench_median(single, count);
    result->split = bench_median(split, count);
    result->merge = bench_median(merge, count);
    good = true;

done:
    free(values);
    return good;
}

/* The steady clock, likewise in turns. */
static bool measure_steady(bench_device *device, const bench_problem *problem, bench_memory *memory,
                           struct decoder *decoder, bench_result *result, tool_fault *fault)
{
    const double slowest = fmax(result->single, result->read_single);
    const uint32_t few = (uint32_t)(SLOW_ROW_SECONDS / fmax(slowest, 1e-3));
    const uint32_t calls = slowest <= SLOW_CALL_SECONDS ? STEADY_CALLS
                           : few < MIN_STEADY_CALLS     ? MIN_STEADY_CALLS
                                                        : few;
    double read[STEADY_ROUNDS], steady[STEADY_ROUNDS], host[STEADY_ROUNDS * STEADY_CALLS];

    for (uint32_t i = 0; i < STEADY_ROUNDS; i++) {
        if (!roofline_steady(device, memory, &result->roofline.steady, calls, &read[i], fault))
            return false;
        if (decoder != NULL &&
            !decode_steady(device, problem, memory, decoder, calls, &steady[i], host + i * calls, fault))
            return false;
    }
    result->read_steady = bench_median(read, STEADY_ROUNDS);
    if (decoder != NULL) {
        result->steady = bench_median(steady, STEADY_ROUNDS);
        result->host = bench_median(host, STEADY_ROUNDS * (size_t)calls);
    }
    return true;
}

bool bench_measure(bench_device *device, const bench_problem *problem, const char *tuning, uint32_t repeats,
                   bool roofline_only, bench_result *result, tool_fault *fault)
{
    struct decoder decoder = {0}, *measured = roofline_only ? NULL : &decoder;
    bench_memory memory = {0};
    bool good;

    *result = (bench_result){0};
    problem_print(problem, result->problem);
    good = bench_allocate(device, problem, &memory, fault) &&
           (roofline_only || open_decoder(device, problem, tuning, &memory, &decoder, result, fault)) &&
           roofline_sweep(device, &memory, &result->roofline, fault) &&
           measure_single(device, problem, &memory, measured, repeats, result, fault) &&
           measure_steady(device, problem, &memory, measured, result, fault);
    result->read_bytes = memory.read_bytes;
    result->num_copies = memory.num_copies;
    clFinish(device->session.queue);
    clFinish(device->steady_queue);
    close_decoder(&decoder);
    bench_free(&memory);
    return good;
}

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

/* A row of calls; host[i] receives the time inside call i. */
static bool decode_steady(bench_device *device, bench_memory *memory, bench_decoder *decoder, uint32_t calls,
                          double *seconds, double *host, tool_fault *fault)
{
    const double start = system_seconds();
    cl_int code;

    for (uint32_t i = 0; i < calls; i++) {
        bench_decoder_rotate(memory, decoder);
        const double before = system_seconds();
        if (!bench_decoder_enqueue(decoder, device->steady_queue, fault))
            return false;
        host[i] = system_seconds() - before;
    }
    code = clFinish(device->steady_queue);
    *seconds = (system_seconds() - start) / calls;
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "clFinish");
}

/* The median of each of the times, which are all doubles. */
static void take_medians(const bench_times *measured, size_t count, double *values, bench_times *median)
{
    for (size_t field = 0; field < sizeof *median / sizeof(double); field++) {
        for (size_t i = 0; i < count; i++)
            values[i] = ((const double *)&measured[i])[field];
        ((double *)median)[field] = bench_median(values, count);
    }
}

/* The single clock: plain read and decode take turns, so that both see the same machine. decoder NULL: the read alone. */
static bool measure_single(bench_device *device, bench_memory *memory, bench_decoder *decoder, uint32_t repeats,
                           bench_result *result, tool_fault *fault)
{
    const size_t count = repeats;
    double *read = calloc(count, sizeof read[0]);
    bench_times *times = calloc(count, sizeof times[0]);
    bool good = false;

    if (read == NULL || times == NULL) {
        fault_failed(fault, "no memory for %u measurements", repeats);
        goto done;
    }
    for (size_t i = 0; i < count; i++) {
        if (!roofline_single(device, memory, &result->roofline.single, &read[i], fault))
            goto done;
        if (decoder == NULL)
            continue;
        if (!bench_decoder_time(device, memory, decoder, &times[i], fault))
            goto done;
    }
    result->read_single = bench_median(read, count);
    take_medians(times, count, read, &result->times);
    good = true;

done:
    free(read);
    free(times);
    return good;
}

/* The steady clock, likewise in turns. */
static bool measure_steady(bench_device *device, bench_memory *memory, bench_decoder *decoder, bench_result *result,
                           tool_fault *fault)
{
    const double slowest = fmax(result->times.single, result->read_single);
    const uint32_t few = (uint32_t)(SLOW_ROW_SECONDS / fmax(slowest, 1e-3));
    const uint32_t calls = slowest <= SLOW_CALL_SECONDS ? STEADY_CALLS
                           : few < MIN_STEADY_CALLS     ? MIN_STEADY_CALLS
                                                        : few;
    double read[STEADY_ROUNDS], steady[STEADY_ROUNDS], host[STEADY_ROUNDS * STEADY_CALLS];

    for (uint32_t i = 0; i < STEADY_ROUNDS; i++) {
        if (!roofline_steady(device, memory, &result->roofline.steady, calls, &read[i], fault))
            return false;
        if (decoder != NULL && !decode_steady(device, memory, decoder, calls, &steady[i], host + i * calls, fault))
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
    bench_decoder decoder = {.num_stages = 0}, *measured = roofline_only ? NULL : &decoder;
    bench_memory memory = {.num_parts = 0};
    bool good;

    *result = (bench_result){.num_parts = 0};
    problem_print(problem, result->problem);
    good = bench_lay_out(problem, &device->session.device, &memory, fault) &&
           (roofline_only || bench_decoder_plan(device, &memory, tuning, &decoder, fault)) &&
           bench_allocate(device, problem, &memory, fault) &&
           (roofline_only || bench_decoder_open(device, &memory, &decoder, fault)) &&
           roofline_sweep(device, &memory, &result->roofline, fault) &&
           measure_single(device, &memory, measured, repeats, result, fault) &&
           measure_steady(device, &memory, measured, result, fault);
    snprintf(result->plan, sizeof result->plan, "%s", decoder.plan);
    result->workspace_bytes = decoder.workspace_bytes;
    result->read_bytes = memory.read_bytes;
    result->num_copies = memory.num_copies;
    result->num_parts = memory.num_parts;
    result->cached = memory.cached;
    clFinish(device->session.queue);
    clFinish(device->steady_queue);
    bench_decoder_close(&decoder);
    bench_free(&memory);
    return good;
}

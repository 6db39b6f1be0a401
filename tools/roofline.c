#include "bench.h"
#include "system.h"
#include <math.h>
#include <stdlib.h>

#define READ_BYTES sizeof(cl_uint4)
#define SWEEP_SINGLES 5
#define SWEEP_CALLS 20
#define SWEEP_SECONDS 0.3
/* What keeps a device busy: a launch reads up to so much of the copies before the next one, and another of those behind. */
#define OCCUPY_BYTES (256u << 20)
#define OCCUPY_WORK_ITEMS 65536u
#define OCCUPY_LOCAL 64u

/* The launches to try: kernel, work-group size, work-groups per compute unit (0: so many that each work-item loads
 * READ_UNROLL times). */
struct sweep_row {
    bool parts;
    size_t local, groups_per_unit;
    cl_ulong ahead; /* 16-byte elements that read_ahead prefetches; 0: read_parts */
};

static const struct sweep_row gpu_rows[] = {
    {false, 256, 2, 0},  {false, 256, 4, 0},  {false, 256, 8, 0},  {false, 256, 16, 0}, {false, 256, 32, 0},
    {false, 256, 0, 0},  {false, 512, 2, 0},  {false, 512, 4, 0},  {false, 512, 8, 0},  {false, 512, 16, 0},
    {false, 512, 0, 0},  {false, 1024, 1, 0}, {false, 1024, 2, 0}, {false, 1024, 4, 0}, {false, 1024, 8, 0},
    {false, 1024, 0, 0}, {false, 128, 16, 0}, {false, 128, 0, 0},
};
static const struct sweep_row cpu_rows[] = {
    {true, 1, 1, 0},  {true, 1, 2, 0},  {true, 1, 4, 0},   {true, 1, 16, 0},
    {true, 1, 1, 32}, {true, 1, 4, 64}, {true, 1, 4, 128}, {true, 1, 16, 128},
};

static cl_kernel kernel_of(const bench_device *device, const read_shape *shape)
{
    return !shape->parts ? device->read_strided : shape->ahead > 0 ? device->read_ahead : device->read_parts;
}

/* Reads so many bytes of the copies from `offset` on. */
static bool enqueue_read(bench_device *device, const bench_memory *memory, const read_shape *shape, size_t offset,
                         size_t bytes, cl_command_queue queue, cl_event *event, tool_fault *fault)
{
    const cl_kernel kernel = kernel_of(device, shape);
    const cl_ulong first = offset / READ_BYTES, count = bytes / READ_BYTES;
    const size_t global = shape->local * shape->groups;
    cl_int code = clSetKernelArg(kernel, 0, sizeof memory->copies, &memory->copies);

    if (code == CL_SUCCESS)
        code = clSetKernelArg(kernel, 1, sizeof first, &first);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(kernel, 2, sizeof count, &count);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(kernel, 3, sizeof device->sink, &device->sink);
    if (code == CL_SUCCESS && shape->ahead > 0)
        code = clSetKernelArg(kernel, 4, sizeof shape->ahead, &shape->ahead);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &shape->local, 0, NULL, event);
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "launching the plain read");
}

static bool enqueue(bench_device *device, bench_memory *memory, const read_shape *shape, cl_command_queue queue,
                    cl_event *event, tool_fault *fault)
{
    const size_t copy = bench_next_copy(memory);

    return enqueue_read(device, memory, shape, copy, memory->read_bytes, queue, event, fault);
}

bool roofline_occupy(bench_device *device, const bench_memory *memory, tool_fault *fault)
{
    const read_shape shape = {.local = OCCUPY_LOCAL, .groups = OCCUPY_WORK_ITEMS / OCCUPY_LOCAL};
    const size_t sides[2][2] = {{0, memory->next}, {memory->next + 1, memory->num_copies}};

    if ((device->session.device.type & CL_DEVICE_TYPE_CPU) != 0)
        return true;
    for (int side = 0; side < 2; side++) {
        const size_t all = (sides[side][1] - sides[side][0]) * memory->copy_bytes;
        const size_t bytes = all < OCCUPY_BYTES ? all : OCCUPY_BYTES;
        if (bytes > 0 && !enqueue_read(device, memory, &shape, sides[side][0] * memory->copy_bytes, bytes,
                                       device->session.queue, NULL, fault))
            return false;
    }
    return true;
}

bool roofline_single(bench_device *device, bench_memory *memory, const read_shape *shape, double *seconds,
                     tool_fault *fault)
{
    cl_ulong start = 0, end = 0;
    cl_event event;
    cl_int code;

    if (!roofline_occupy(device, memory, fault) ||
        !enqueue(device, memory, shape, device->session.queue, &event, fault))
        return false;
    code = clWaitForEvents(1, &event);
    if (code == CL_SUCCESS)
        code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
    if (code == CL_SUCCESS)
        code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
    clReleaseEvent(event);
    *seconds = 1e-9 * (double)(end - start);
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "timing the plain read");
}

bool roofline_steady(bench_device *device, bench_memory *memory, const read_shape *shape, uint32_t calls,
                     double *seconds, tool_fault *fault)
{
    const double start = system_seconds();
    cl_int code;

    for (uint32_t i = 0; i < calls; i++)
        if (!enqueue(device, memory, shape, device->steady_queue, NULL, fault))
            return false;
    code = clFinish(device->steady_queue);
    *seconds = (system_seconds() - start) / calls;
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "clFinish");
}

/* One row of the sweep by both clocks, after one launch for what the driver does once. */
static bool try_shape(bench_device *device, bench_memory *memory, const read_shape *shape, double *single,
                      double *steady, tool_fault *fault)
{
    double values[SWEEP_SINGLES], calls;

    for (int i = -1; i < SWEEP_SINGLES; i++)
        if (!roofline_single(device, memory, shape, &values[i < 0 ? 0 : i], fault))
            return false;
    *single = bench_median(values, SWEEP_SINGLES);
    calls = SWEEP_SECONDS / (*single + 1e-6);
    calls = calls < 2 ? 2 : calls > SWEEP_CALLS ? SWEEP_CALLS : calls;
    return roofline_steady(device, memory, shape, 2, steady, fault) &&
           roofline_steady(device, memory, shape, (uint32_t)calls, steady, fault);
}

/* Largest work-group that the device takes for the kernel of a shape. */
static bool find_limit(const bench_device *device, const read_shape *shape, size_t *limit, tool_fault *fault)
{
    const cl_kernel kernel = kernel_of(device, shape);
    const cl_int code = clGetKernelWorkGroupInfo(kernel, device->session.device.device, CL_KERNEL_WORK_GROUP_SIZE,
                                                 sizeof *limit, limit, NULL);

    return code == CL_SUCCESS ? true : fault_cl(fault, code, "clGetKernelWorkGroupInfo");
}

bool roofline_sweep(bench_device *device, bench_memory *memory, roofline *result, tool_fault *fault)
{
    const clfd_device_info *info = &device->session.device;
    const bool cpu = (info->type & CL_DEVICE_TYPE_CPU) != 0;
    const struct sweep_row *rows = cpu ? cpu_rows : gpu_rows;
    const size_t count = cpu ? sizeof cpu_rows / sizeof cpu_rows[0] : sizeof gpu_rows / sizeof gpu_rows[0];
    double best_single = INFINITY, best_steady = INFINITY, single, steady;

    for (size_t i = 0; i < count; i++) {
        const size_t one_pass = memory->read_bytes / READ_BYTES / (rows[i].local * READ_UNROLL) + 1;
        const read_shape shape = {
            rows[i].parts, rows[i].local,
            rows[i].groups_per_unit > 0 ? rows[i].groups_per_unit * info->compute_units : one_pass, rows[i].ahead};
        size_t limit;
        if (kernel_of(device, &shape) == NULL)
            continue;
        if (!find_limit(device, &shape, &limit, fault))
            return false;
        if (shape.local > limit || shape.local > info->max_work_group)
            continue;
        if (!try_shape(device, memory, &shape, &single, &steady, fault))
            return false;
        if (single < best_single) {
            best_single = single;
            result->single = shape;
        }
        if (steady < best_steady) {
            best_steady = steady;
            result->steady = shape;
        }
    }
    return best_single < INFINITY ? true : fault_failed(fault, "%s takes no work-group of the plain read", info->name);
}

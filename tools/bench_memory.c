#include "bench.h"
#include "program/embedded.h"
#include "rng.h"
#include <stdlib.h>

extern const struct clfd_embedded bench_kernels[];

/* What all copies together exceed: four times the last-level cache, or four times 64 MiB where the driver tells less
 * than that (NVIDIA's tells the first level; the L2 of an H200 is 60 MB). */
#define MIN_ROTATION_BYTES ((uint64_t)256 << 20)
#define ROTATION_CACHES 4
#define COPY_ALIGNMENT 4096u
#define FILL_WORK_ITEMS 65536u
#define FILL_LOCAL 64u
#define LENGTH_SEED 1u

static bool create_kernel(bench_device *device, const char *name, cl_kernel *kernel, tool_fault *fault)
{
    cl_int code;

    *kernel = clCreateKernel(device->program, name, &code);
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "clCreateKernel");
}

bool bench_open(bench_device *device, const char *spec, tool_fault *fault)
{
    const char *source = bench_kernels[0].text;
    tool_session *session = &device->session;
    char options[64];
    cl_int code;

    *device = (bench_device){0};
    if (!session_open(session, spec, fault))
        return false;
    device->steady_queue = clCreateCommandQueue(session->context, session->device.device, 0, &code);
    if (code != CL_SUCCESS)
        return fault_cl(fault, code, "clCreateCommandQueue");
    device->program = clCreateProgramWithSource(session->context, 1, &source, &bench_kernels[0].bytes, &code);
    snprintf(options, sizeof options, "-cl-std=CL1.2 -DREAD_UNROLL=%d", READ_UNROLL);
    if (code == CL_SUCCESS)
        code = clBuildProgram(device->program, 1, &session->device.device, options, NULL, NULL);
    if (code != CL_SUCCESS)
        return fault_cl(fault, code, "clBuildProgram(bench.cl)");
    return create_kernel(device, "read_strided", &device->read_strided, fault) &&
           create_kernel(device, "read_parts", &device->read_parts, fault) &&
           create_kernel(device, "fill_random", &device->fill_random, fault) &&
           session_buffer(session, "the sink", sizeof(cl_uint), NULL, &device->sink, fault);
}

void bench_close(bench_device *device)
{
    cl_kernel kernels[] = {device->read_strided, device->read_parts, device->fill_random};

    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (kernels[i] != NULL)
            clReleaseKernel(kernels[i]);
    if (device->sink != NULL)
        clReleaseMemObject(device->sink);
    if (device->program != NULL)
        clReleaseProgram(device->program);
    if (device->steady_queue != NULL)
        clReleaseCommandQueue(device->steady_queue);
    session_close(&device->session);
    *device = (bench_device){0};
}

/* Fills a buffer with random elements of a type, on the device. */
static bool fill(bench_device *device, cl_mem buffer, size_t bytes, clfd_type type, cl_uint seed, tool_fault *fault)
{
    static const struct {
        cl_uint mask, base;
    } elements[] = {
        [CLFD_TYPE_F32] = {0x807fffffu, 0x3f000000u},
        [CLFD_TYPE_F16] = {0x83ff83ffu, 0x38003800u},
        [CLFD_TYPE_BF16] = {0x807f807fu, 0x3f003f00u},
    };
    const cl_ulong words = bytes / sizeof(cl_uint);
    const size_t global = FILL_WORK_ITEMS, local = FILL_LOCAL;
    cl_int code = clSetKernelArg(device->fill_random, 0, sizeof buffer, &buffer);

    if (code == CL_SUCCESS)
        code = clSetKernelArg(device->fill_random, 1, sizeof words, &words);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(device->fill_random, 2, sizeof(cl_uint), &elements[type].mask);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(device->fill_random, 3, sizeof(cl_uint), &elements[type].base);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(device->fill_random, 4, sizeof seed, &seed);
    if (code == CL_SUCCESS)
        code =
            clEnqueueNDRangeKernel(device->session.queue, device->fill_random, 1, NULL, &global, &local, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code = clFinish(device->session.queue);
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "filling memory");
}

static size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

/* Draws the lengths of a ragged problem and uploads them. Returns their sum through *tokens. */
static bool make_lengths(bench_device *device, const bench_problem *problem, bench_memory *memory, uint64_t *tokens,
                         tool_fault *fault)
{
    rng_state rng = rng_start(LENGTH_SEED, 0, 0);
    cl_int *lengths;
    bool good;

    *tokens = (uint64_t)problem->batch * problem->kv_len;
    if (!problem->ragged)
        return true;
    lengths = malloc(problem->batch * sizeof lengths[0]);
    if (lengths == NULL)
        return fault_failed(fault, "no memory for %u lengths", problem->batch);
    *tokens = 0;
    for (uint32_t b = 0; b < problem->batch; b++) {
        lengths[b] = (cl_int)rng_between(&rng, problem->ragged_low, problem->ragged_high);
        *tokens += (uint64_t)lengths[b];
    }
    good = session_buffer(&device->session, "kv_lens", problem->batch * sizeof lengths[0], lengths, &memory->kv_lens,
                          fault);
    free(lengths);
    return good;
}

/* Sizes of everything; false where a product does not fit or no copy fits on the device. */
static bool plan_memory(const bench_device *device, const bench_problem *problem, uint64_t tokens, bench_memory *memory,
                        tool_fault *fault)
{
    const clfd_device_info *info = &device->session.device;
    const double elements = (double)problem->batch * problem->kv_len * problem->num_kv_heads *
                            ((double)problem->head_dim + problem->head_dim_v);
    const size_t element = clfd_type_size(problem->kv_type);
    const uint64_t most =
        info->max_alloc_bytes < info->memory_bytes / 2 ? info->max_alloc_bytes : info->memory_bytes / 2;
    const size_t token_bytes = (size_t)problem->num_kv_heads * element;
    const size_t rows = (size_t)problem->batch * problem->q_len * problem->num_q_heads;
    size_t k_bytes, v_bytes, wanted = MIN_ROTATION_BYTES;

    if (elements * (double)element > (double)most)
        return fault_failed(fault, "K and V take %.4g bytes; %s allocates at most %.4g at once",
                            elements * (double)element, info->name, (double)most);
    k_bytes = (size_t)problem->batch * problem->kv_len * token_bytes * problem->head_dim;
    v_bytes = problem->v_from_k ? 0 : k_bytes / problem->head_dim * problem->head_dim_v;
    memory->v_offset = round_up(k_bytes, COPY_ALIGNMENT);
    memory->copy_bytes = memory->v_offset + round_up(v_bytes, COPY_ALIGNMENT);
    memory->read_bytes =
        (size_t)tokens * token_bytes * (problem->head_dim + (problem->v_from_k ? 0 : problem->head_dim_v));
    memory->q_bytes = rows * problem->head_dim * clfd_type_size(problem->type);
    memory->out_bytes = rows * problem->head_dim_v * clfd_type_size(problem->out_type);
    if (wanted < info->cache_bytes * ROTATION_CACHES)
        wanted = (size_t)info->cache_bytes * ROTATION_CACHES;
    memory->num_copies = (uint32_t)(wanted / memory->copy_bytes + 1);
    /* Never one copy alone, unless the device cannot hold two: a read would find the end of the last one cached. */
    if (memory->num_copies < 2)
        memory->num_copies = 2;
    if (memory->num_copies > most / memory->copy_bytes)
        memory->num_copies = (uint32_t)(most / memory->copy_bytes);
    if (memory->num_copies == 0)
        memory->num_copies = 1;
    return true;
}

bool bench_allocate(bench_device *device, const bench_problem *problem, bench_memory *memory, tool_fault *fault)
{
    uint64_t tokens;
    size_t bytes;

    *memory = (bench_memory){0};
    if (!make_lengths(device, problem, memory, &tokens, fault) || !plan_memory(device, problem, tokens, memory, fault))
        return false;
    bytes = memory->num_copies * memory->copy_bytes;
    return session_raw_buffer(&device->session, "K and V", bytes, &memory->kv, fault) &&
           session_raw_buffer(&device->session, "q", memory->q_bytes, &memory->q, fault) &&
           fill(device, memory->kv, bytes, problem->kv_type, 1, fault) &&
           fill(device, memory->q, memory->q_bytes, problem->type, 2, fault);
}

void bench_free(bench_memory *memory)
{
    cl_mem buffers[] = {memory->kv, memory->q, memory->kv_lens};

    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (buffers[i] != NULL)
            clReleaseMemObject(buffers[i]);
    *memory = (bench_memory){0};
}

size_t bench_next_copy(bench_memory *memory)
{
    const size_t offset = memory->next * memory->copy_bytes;

    memory->next = (memory->next + 1) % memory->num_copies;
    return offset;
}

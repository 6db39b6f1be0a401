#include "bench.h"
#include "device/caps.h"
#include "os.h"
#include "program/embedded.h"
#include <stdlib.h>

extern const struct clfd_embedded bench_kernels[];

#define FILL_WORK_ITEMS 65536u
#define FILL_LOCAL 64u

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
    clfd_caps caps;
    cl_int code;

    *device = (bench_device){0};
    if (!session_open(session, spec, fault))
        return false;
    /* Which compilers take a prefetch, the library knows. */
    if (clfd_caps_read(session->device.device, clfd_environment("CLFD_DISABLE"), &caps, NULL) != CLFD_SUCCESS)
        return fault_failed(fault, "cannot read the capabilities of %s", session->device.name);
    device->steady_queue = clCreateCommandQueue(session->context, session->device.device, 0, &code);
    if (code != CL_SUCCESS)
        return fault_cl(fault, code, "clCreateCommandQueue");
    device->program = clCreateProgramWithSource(session->context, 1, &source, &bench_kernels[0].bytes, &code);
    snprintf(options, sizeof options, "-cl-std=CL1.2 -DREAD_UNROLL=%d%s", READ_UNROLL,
             caps.prefetch ? " -DREAD_PREFETCH" : "");
    if (code == CL_SUCCESS)
        code = clBuildProgram(device->program, 1, &session->device.device, options, NULL, NULL);
    if (code != CL_SUCCESS)
        return fault_cl(fault, code, "clBuildProgram(bench.cl)");
    return create_kernel(device, "read_strided", &device->read_strided, fault) &&
           create_kernel(device, "read_parts", &device->read_parts, fault) &&
           (!caps.prefetch || create_kernel(device, "read_ahead", &device->read_ahead, fault)) &&
           create_kernel(device, "fill_random", &device->fill_random, fault) &&
           create_kernel(device, "fill_blocks", &device->fill_blocks, fault) &&
           session_buffer(session, "the sink", sizeof(cl_uint), NULL, &device->sink, fault);
}

void bench_close(bench_device *device)
{
    cl_kernel kernels[] = {device->read_strided, device->read_parts, device->read_ahead, device->fill_random,
                           device->fill_blocks};

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

/* What random elements look like, and the scales beside them, if any, which make values of up to +-1 or 2: see
 * bench.cl. */
typedef struct pattern {
    cl_uint mask, base;   /* of 32 bits; of blocks base is the f16 scale */
    cl_uint block_halves; /* 0, or the 16-bit halves of a block that begins with a scale */
} pattern;

static const struct {
    pattern codes, scales;
} looks[] = {
    [CLFD_TYPE_F32] = {.codes = {0x807fffffu, 0x3f000000u, 0}},
    [CLFD_TYPE_F16] = {.codes = {0x83ff83ffu, 0x38003800u, 0}},
    [CLFD_TYPE_BF16] = {.codes = {0x807f807fu, 0x3f003f00u, 0}},
    [CLFD_TYPE_INT8] = {{0xffffffffu, 0, 0}, {0x007fffffu, 0x3c000000u, 0}},
    [CLFD_TYPE_INT4] = {{0xffffffffu, 0, 0}, {0x007fffffu, 0x3e000000u, 0}},
    [CLFD_TYPE_FP8_E4M3] = {{0x87878787u, 0x30303030u, 0}, {0x007fffffu, 0x3f000000u, 0}},
    [CLFD_TYPE_FP8_E5M2] = {{0x83838383u, 0x38383838u, 0}, {0x007fffffu, 0x3f000000u, 0}},
    [CLFD_TYPE_Q8_0] = {.codes = {0, 0x2000, 17}},
    [CLFD_TYPE_Q4_0] = {.codes = {0, 0x3000, 9}},
};

/* Any byte of a mask is legal; 1 in 256 hides its key. */
static const pattern any_bits = {0xffffffffu, 0, 0};

/* Fills bytes of a buffer from an offset on, both multiples of 4 (blocks: of 2), on the device. */
static bool fill(bench_device *device, cl_mem buffer, size_t offset, size_t bytes, const pattern *look, cl_uint seed,
                 tool_fault *fault)
{
    const bool blocks = look->block_halves > 0;
    const size_t unit = blocks ? sizeof(cl_ushort) : sizeof(cl_uint), global = FILL_WORK_ITEMS, local = FILL_LOCAL;
    const cl_kernel kernel = blocks ? device->fill_blocks : device->fill_random;
    const cl_ulong first = offset / unit, count = (bytes + unit - 1) / unit;
    const struct {
        size_t bytes;
        const void *value;
    } arguments[] = {
        {sizeof buffer, &buffer},
        {sizeof first, &first},
        {sizeof count, &count},
        {sizeof(cl_uint), &seed},
        {sizeof(cl_uint), blocks ? &look->block_halves : &look->mask},
        {sizeof(cl_uint), &look->base},
    };
    cl_int code = CL_SUCCESS;

    for (cl_uint i = 0; i < sizeof arguments / sizeof arguments[0] && code == CL_SUCCESS; i++)
        code = clSetKernelArg(kernel, i, arguments[i].bytes, arguments[i].value);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(device->session.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "filling memory");
}

static bool fill_part(bench_device *device, const bench_part *part, cl_mem copies, size_t copy, cl_uint seed,
                      tool_fault *fault)
{
    const clfd_attention *a = &part->attention;
    const pattern *const patterns[BENCH_TENSORS] = {
        [BENCH_K] = &looks[a->k_type].codes,
        [BENCH_V] = &looks[a->v_type].codes,
        [BENCH_K_SCALE] = &looks[a->k_type].scales,
        [BENCH_V_SCALE] = &looks[a->v_type].scales,
        [BENCH_K_ZERO] = &looks[CLFD_TYPE_F32].codes,
        [BENCH_V_ZERO] = &looks[CLFD_TYPE_F32].codes,
        [BENCH_BIAS] = &looks[a->bias_type == CLFD_TYPE_F16 ? CLFD_TYPE_F16 : CLFD_TYPE_F32].codes,
        [BENCH_MASK] = &any_bits,
    };

    for (int t = 0; t < BENCH_TENSORS; t++)
        if (part->tensors[t].bytes > 0 && !fill(device, copies, copy + part->tensors[t].offset, part->tensors[t].bytes,
                                                patterns[t], seed * BENCH_TENSORS + (cl_uint)t, fault))
            return false;
    return true;
}

/* Uploads the tables of a part. */
static bool upload(bench_device *device, bench_part *part, tool_fault *fault)
{
    for (int t = 0; t < BENCH_TABLES; t++)
        if (part->tables[t].data != NULL &&
            !session_buffer(&device->session, "a table", part->tables[t].count * sizeof(cl_int), part->tables[t].data,
                            &part->tables[t].mem, fault))
            return false;
    return true;
}

bool bench_allocate(bench_device *device, const bench_problem *problem, bench_memory *memory, tool_fault *fault)
{
    const size_t bytes = memory->num_copies * memory->copy_bytes;
    cl_int code;

    if (!session_raw_buffer(&device->session, "K and V", bytes, &memory->copies, fault) ||
        !session_raw_buffer(&device->session, "q", memory->q_bytes, &memory->q, fault) ||
        !fill(device, memory->q, 0, memory->q_bytes, &looks[problem->type].codes, 0, fault))
        return false;
    for (uint32_t p = 0; p < memory->num_parts; p++) {
        if (!upload(device, &memory->parts[p], fault))
            return false;
        for (uint32_t c = 0; c < memory->num_copies; c++)
            if (!fill_part(device, &memory->parts[p], memory->copies, c * memory->copy_bytes, 1 + 2 * c + p, fault))
                return false;
    }
    code = clFinish(device->session.queue);
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "filling memory");
}

void bench_free(bench_memory *memory)
{
    for (uint32_t p = 0; p < memory->num_parts; p++)
        for (int t = 0; t < BENCH_TABLES; t++) {
            free(memory->parts[p].tables[t].data);
            if (memory->parts[p].tables[t].mem != NULL)
                clReleaseMemObject(memory->parts[p].tables[t].mem);
        }
    if (memory->copies != NULL)
        clReleaseMemObject(memory->copies);
    if (memory->q != NULL)
        clReleaseMemObject(memory->q);
    *memory = (bench_memory){0};
}

size_t bench_next_copy(bench_memory *memory)
{
    const size_t offset = memory->next * memory->copy_bytes;

    memory->next = (memory->next + 1) % memory->num_copies;
    return offset;
}

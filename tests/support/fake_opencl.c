#include "support/fake_opencl.h"
#include <stdbool.h>
#include <string.h>

struct fake_opencl fake_opencl;

fake_device fake_plain_device(void)
{
    return (fake_device){
        .vendor = "Acme",
        .name = "Acme One",
        .driver = "1.0",
        .version = "OpenCL 1.2 Acme",
        .c_version = "OpenCL C 1.2 Acme",
        .profile = "FULL_PROFILE",
        .extensions = "cl_khr_byte_addressable_store cl_khr_int64_base_atomics",
        .type = CL_DEVICE_TYPE_CPU,
        .compute_units = 4,
        .float_width = 8,
        .address_bits = 64,
        .base_align_bits = 1024,
        .local_mem_type = CL_GLOBAL,
        .compiler = CL_TRUE,
        .little_endian = CL_TRUE,
        .work_group = 4096,
        .work_items = {4096, 4096, 4096},
        .memory = (cl_ulong)8 << 30,
        .max_alloc = (cl_ulong)2 << 30,
        .local_mem = 512 << 10,
        .cache = 32 << 20,
        .fp_config = CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST,
    };
}

cl_platform_id fake_platform_id(const fake_platform *platform) { return (cl_platform_id)(size_t)platform; }
cl_device_id fake_device_id(const fake_device *device) { return (cl_device_id)(size_t)device; }

#define TEXT(what, member)                                                                                             \
    {                                                                                                                  \
        what, offsetof(fake_device, member), 0                                                                         \
    }
#define VALUE(what, member)                                                                                            \
    {                                                                                                                  \
        what, offsetof(fake_device, member), sizeof((fake_device *)0)->member                                          \
    }

/* Queries answered from one member; 0 bytes stand for a text. */
static const struct {
    cl_device_info what;
    size_t member, bytes;
} answers[] = {
    TEXT(CL_DEVICE_VENDOR, vendor),
    TEXT(CL_DEVICE_NAME, name),
    TEXT(CL_DRIVER_VERSION, driver),
    TEXT(CL_DEVICE_VERSION, version),
    TEXT(CL_DEVICE_OPENCL_C_VERSION, c_version),
    TEXT(CL_DEVICE_PROFILE, profile),
    TEXT(CL_DEVICE_EXTENSIONS, extensions),
    VALUE(CL_DEVICE_TYPE, type),
    VALUE(CL_DEVICE_MAX_COMPUTE_UNITS, compute_units),
    VALUE(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, float_width),
    VALUE(CL_DEVICE_ADDRESS_BITS, address_bits),
    VALUE(CL_DEVICE_MEM_BASE_ADDR_ALIGN, base_align_bits),
    VALUE(CL_DEVICE_LOCAL_MEM_TYPE, local_mem_type),
    VALUE(CL_DEVICE_COMPILER_AVAILABLE, compiler),
    VALUE(CL_DEVICE_ENDIAN_LITTLE, little_endian),
    VALUE(CL_DEVICE_MAX_WORK_GROUP_SIZE, work_group),
    VALUE(CL_DEVICE_MAX_WORK_ITEM_SIZES, work_items),
    VALUE(CL_DEVICE_GLOBAL_MEM_SIZE, memory),
    VALUE(CL_DEVICE_MAX_MEM_ALLOC_SIZE, max_alloc),
    VALUE(CL_DEVICE_LOCAL_MEM_SIZE, local_mem),
    VALUE(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, cache),
    VALUE(CL_DEVICE_SINGLE_FP_CONFIG, fp_config),
};

/* What every clGet*Info does with an answer. */
static cl_int reply(const void *answer, size_t answer_bytes, size_t bytes, void *value, size_t *bytes_needed)
{
    if (value != NULL && bytes < answer_bytes)
        return CL_INVALID_VALUE;
    if (value != NULL)
        memcpy(value, answer, answer_bytes);
    if (bytes_needed != NULL)
        *bytes_needed = answer_bytes;
    return CL_SUCCESS;
}

static bool holds(const fake_platform *platform, const fake_device *device)
{
    for (cl_uint i = 0; i < platform->num_devices; i++)
        if (&platform->devices[i] == device)
            return true;
    return false;
}

static cl_int reply_platform(const fake_device *device, size_t bytes, void *value, size_t *bytes_needed)
{
    for (cl_uint i = 0; i < fake_opencl.num_platforms; i++) {
        const cl_platform_id id = fake_platform_id(&fake_opencl.platforms[i]);
        if (holds(&fake_opencl.platforms[i], device))
            return reply(&id, sizeof id, bytes, value, bytes_needed);
    }
    return CL_INVALID_DEVICE;
}

/* CL_DEVICE_OPENCL_C_FEATURES: an array of one. */
static cl_int reply_feature(const fake_device *device, size_t bytes, void *value, size_t *bytes_needed)
{
    struct {
        cl_uint version;
        char name[64];
    } feature = {3u << 22, ""};

    if (device->c_feature == NULL)
        return CL_INVALID_VALUE;
    strncpy(feature.name, device->c_feature, sizeof feature.name - 1);
    return reply(&feature, sizeof feature, bytes, value, bytes_needed);
}

CL_API_ENTRY cl_int CL_API_CALL clGetPlatformIDs(cl_uint capacity, cl_platform_id *platforms, cl_uint *count)
{
    if (fake_opencl.status != CL_SUCCESS)
        return fake_opencl.status;
    for (cl_uint i = 0; platforms != NULL && i < capacity && i < fake_opencl.num_platforms; i++)
        platforms[i] = fake_platform_id(&fake_opencl.platforms[i]);
    if (count != NULL)
        *count = fake_opencl.num_platforms;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id id, cl_platform_info what, size_t bytes, void *value,
                                                  size_t *bytes_needed)
{
    const fake_platform *platform = (const fake_platform *)id;

    if (what != CL_PLATFORM_NAME)
        return CL_INVALID_VALUE;
    return reply(platform->name, strlen(platform->name) + 1, bytes, value, bytes_needed);
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceIDs(cl_platform_id id, cl_device_type type, cl_uint capacity,
                                               cl_device_id *devices, cl_uint *count)
{
    const fake_platform *platform = (const fake_platform *)id;

    if (type != CL_DEVICE_TYPE_ALL)
        return CL_INVALID_DEVICE_TYPE;
    if (platform->status != CL_SUCCESS)
        return platform->status;
    for (cl_uint i = 0; devices != NULL && i < capacity && i < platform->num_devices; i++)
        devices[i] = fake_device_id(&platform->devices[i]);
    if (count != NULL)
        *count = platform->num_devices;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t bytes, void *value,
                                                size_t *bytes_needed)
{
    const fake_device *device = (const fake_device *)id;

    if (device->broken == what)
        return CL_OUT_OF_RESOURCES;
    if (what == CL_DEVICE_PLATFORM)
        return reply_platform(device, bytes, value, bytes_needed);
    if (what == 0x106F)
        return reply_feature(device, bytes, value, bytes_needed);
    if (what == 0x4000 && device->compute_capability > 0)
        return reply(&device->compute_capability, sizeof device->compute_capability, bytes, value, bytes_needed);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        const char *member = (const char *)device + answers[i].member;
        if (answers[i].what != what)
            continue;
        if (answers[i].bytes > 0)
            return reply(member, answers[i].bytes, bytes, value, bytes_needed);
        const char *text = *(const char *const *)member;
        return reply(text, strlen(text) + 1, bytes, value, bytes_needed);
    }
    return CL_INVALID_VALUE;
}

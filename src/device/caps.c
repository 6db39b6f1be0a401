#include "device/caps.h"
#include "device/architecture.h"
#include "device/query.h"
#include "device/quirks.h"
#include "device/text.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of OpenCL 3.0 and of NVIDIA's extension; the headers show the first only to those who target 3.0. */
#define DEVICE_OPENCL_C_FEATURES 0x106F
#define DEVICE_COMPUTE_CAPABILITY_MAJOR 0x4000
#define DEVICE_COMPUTE_CAPABILITY_MINOR 0x4001
typedef struct c_feature {
    cl_uint version;
    char name[64];
} c_feature;

static const clfd_query numbers[] = {
    CLFD_QUERY(clfd_caps, type, CL_DEVICE_TYPE),
    CLFD_QUERY(clfd_caps, compute_units, CL_DEVICE_MAX_COMPUTE_UNITS),
    CLFD_QUERY(clfd_caps, max_work_group, CL_DEVICE_MAX_WORK_GROUP_SIZE),
    CLFD_QUERY(clfd_caps, float_width, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT),
    CLFD_QUERY(clfd_caps, address_bits, CL_DEVICE_ADDRESS_BITS),
    CLFD_QUERY(clfd_caps, base_align_bytes, CL_DEVICE_MEM_BASE_ADDR_ALIGN),
    CLFD_QUERY(clfd_caps, memory_bytes, CL_DEVICE_GLOBAL_MEM_SIZE),
    CLFD_QUERY(clfd_caps, max_alloc_bytes, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
    CLFD_QUERY(clfd_caps, local_mem_bytes, CL_DEVICE_LOCAL_MEM_SIZE),
    CLFD_QUERY(clfd_caps, cache_bytes, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE),
    CLFD_QUERY(clfd_caps, compiler, CL_DEVICE_COMPILER_AVAILABLE),
    CLFD_QUERY(clfd_caps, little_endian, CL_DEVICE_ENDIAN_LITTLE),
};

static const clfd_query names[] = {
    CLFD_QUERY(clfd_caps, driver, CL_DRIVER_VERSION),
    CLFD_QUERY(clfd_caps, name, CL_DEVICE_NAME),
};

/* What the device says of itself and nothing after this file needs to know. */
typedef struct self_portrait {
    char version[64], c_version[64], profile[64], vendor[128], platform[128];
    char *extensions; /* malloc'ed */
} self_portrait;

static const clfd_query portrait_texts[] = {
    CLFD_QUERY(self_portrait, version, CL_DEVICE_VERSION),
    CLFD_QUERY(self_portrait, c_version, CL_DEVICE_OPENCL_C_VERSION),
    CLFD_QUERY(self_portrait, profile, CL_DEVICE_PROFILE),
    CLFD_QUERY(self_portrait, vendor, CL_DEVICE_VENDOR),
};

static const struct {
    size_t member;
    const char *reason;
} needs[] = {
    {offsetof(clfd_caps, opencl_12), "it offers less than OpenCL 1.2 with OpenCL C 1.2"},
    {offsetof(clfd_caps, compiler), "it has no online compiler"},
    {offsetof(clfd_caps, inf_nan), "its single precision has no infinity and NaN (CL_FP_INF_NAN)"},
    {offsetof(clfd_caps, int64), "it has no 64-bit integers"},
    {offsetof(clfd_caps, little_endian), "it is big-endian"},
};

static uint32_t at_least_one(uint32_t value) { return value > 0 ? value : 1; }

/* Into a member of 8 bytes, of 4, which takes at most its greatest number, or into a bool. */
static void store_number(clfd_caps *caps, const clfd_query *number, uint64_t value)
{
    const uint32_t narrow = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
    const bool flag = value != 0;
    const void *from = number->bytes == sizeof flag ? (const void *)&flag : &narrow;

    memcpy((char *)caps + number->member, number->bytes == sizeof value ? &value : from, number->bytes);
}

/* The group limit is no use beyond what the first dimension takes. */
static clfd_status limit_work_group(cl_device_id device, clfd_caps *caps, const clfd_logger *logger)
{
    void *sizes = NULL;
    size_t bytes = 0, first;
    const clfd_status status =
        clfd_query_copy(device, CLFD_DEVICE_QUERY(CL_DEVICE_MAX_WORK_ITEM_SIZES), &sizes, &bytes, logger);

    if (status == CLFD_SUCCESS && bytes >= sizeof first) {
        memcpy(&first, sizes, sizeof first);
        if (first < caps->max_work_group)
            caps->max_work_group = (uint32_t)first;
    }
    free(sizes);
    return status;
}

static clfd_status read_numbers(cl_device_id device, clfd_caps *caps, const clfd_logger *logger)
{
    uint64_t value = 0, fp_config = 0, local_type = 0;
    clfd_status status = CLFD_SUCCESS;

    for (size_t i = 0; i < CLFD_COUNT(numbers) && status == CLFD_SUCCESS; i++) {
        status = clfd_query_number(device, numbers[i].what, numbers[i].call, &value, logger);
        store_number(caps, &numbers[i], value);
    }
    if (status == CLFD_SUCCESS)
        status = clfd_query_number(device, CLFD_DEVICE_QUERY(CL_DEVICE_SINGLE_FP_CONFIG), &fp_config, logger);
    if (status == CLFD_SUCCESS)
        status = clfd_query_number(device, CLFD_DEVICE_QUERY(CL_DEVICE_LOCAL_MEM_TYPE), &local_type, logger);
    if (status == CLFD_SUCCESS)
        status = limit_work_group(device, caps, logger);
    caps->max_work_group = at_least_one(caps->max_work_group);
    caps->float_width = at_least_one(caps->float_width);
    caps->base_align_bytes /= 8;
    caps->inf_nan = (fp_config & CL_FP_INF_NAN) != 0;
    caps->local_mem_dedicated = local_type == CL_LOCAL;
    return status;
}

/* Versions, extensions, quirks. */

/* Whether "OpenCL 1.2 ..." or "OpenCL C 1.2 ..." names at least this version; false where it names none. */
static bool is_version(const char *text, unsigned least_major, unsigned least_minor)
{
    unsigned major, minor;

    return sscanf(text + strcspn(text, "0123456789"), "%u.%u", &major, &minor) == 2 &&
           (major > least_major || (major == least_major && minor >= least_minor));
}

static clfd_status read_portrait(cl_device_id device, self_portrait *portrait, const clfd_logger *logger)
{
    cl_platform_id platform = NULL;
    void *extensions = NULL;
    clfd_status status = clfd_query_texts(device, portrait_texts, CLFD_COUNT(portrait_texts), portrait, logger);

    if (status != CLFD_SUCCESS)
        return status;
    CLFD_TRY_CL(logger, clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL),
                "clGetDeviceInfo(CL_DEVICE_PLATFORM)");
    status = clfd_query_platform_text(platform, CLFD_PLATFORM_QUERY(CL_PLATFORM_NAME), portrait->platform,
                                      sizeof portrait->platform, logger);
    if (status == CLFD_SUCCESS)
        status = clfd_query_copy(device, CLFD_DEVICE_QUERY(CL_DEVICE_EXTENSIONS), &extensions, NULL, logger);
    portrait->extensions = extensions;
done:
    return status;
}

/* Whether the device's OpenCL C 3.0 has a feature. A device that cannot answer has none. */
static bool has_c_feature(cl_device_id device, const char *name)
{
    c_feature feature;
    void *features = NULL;
    size_t bytes = 0;
    bool found = false;

    if (clfd_query_copy(device, CLFD_DEVICE_QUERY(DEVICE_OPENCL_C_FEATURES), &features, &bytes, NULL) != CLFD_SUCCESS)
        return false;
    for (size_t at = 0; at + sizeof feature <= bytes && !found; at += sizeof feature) {
        memcpy(&feature, (const char *)features + at, sizeof feature);
        found = strncmp(feature.name, name, sizeof feature.name) == 0;
    }
    free(features);
    return found;
}

/* A number of NVIDIA's extension; 0 where there is none. */
static uint32_t read_attribute(cl_device_id device, const char *extensions, cl_device_info what, const char *call)
{
    uint64_t value = 0;

    if (clfd_text_has_word(extensions, CLFD_NVIDIA_ATTRIBUTES))
        clfd_query_number(device, what, call, &value, NULL);
    return (uint32_t)value;
}

static void read_upgrades(cl_device_id device, const self_portrait *portrait, clfd_caps *caps,
                          const clfd_logger *logger)
{
    const char *const extensions = portrait->extensions;
    const clfd_identity identity = {
        .type = caps->type,
        .platform = portrait->platform,
        .vendor = portrait->vendor,
        .extensions = extensions,
        .compute_capability = read_attribute(device, extensions, CLFD_DEVICE_QUERY(DEVICE_COMPUTE_CAPABILITY_MAJOR)),
        .compute_minor = read_attribute(device, extensions, CLFD_DEVICE_QUERY(DEVICE_COMPUTE_CAPABILITY_MINOR)),
    };

    caps->opencl_12 = is_version(portrait->version, 1, 2) && is_version(portrait->c_version, 1, 2);
    caps->int64 =
        strcmp(portrait->profile, "FULL_PROFILE") == 0 || clfd_text_has_word(portrait->extensions, "cles_khr_int64");
    caps->fp16 = clfd_text_has_word(portrait->extensions, "cl_khr_fp16");
    caps->sub_groups = clfd_text_has_word(portrait->extensions, "cl_khr_subgroups") ||
                       (is_version(portrait->version, 3, 0) && has_c_feature(device, "__opencl_c_subgroups"));
    /* Without sub-groups it falls in clfd_caps_disable, like all that stands on something else. */
    caps->shuffle = clfd_text_has_word(portrait->extensions, "cl_khr_subgroup_shuffle");
    clfd_quirks_apply(&identity, caps, logger);
    snprintf(caps->vendor, sizeof caps->vendor, "%s", portrait->vendor);
    clfd_architecture_name(&identity, caps->float_width, caps->architecture);
}

clfd_status clfd_caps_read(cl_device_id device, const char *disable, clfd_caps *caps, const clfd_logger *logger)
{
    self_portrait portrait = {.extensions = NULL};
    clfd_caps read = {0};
    clfd_status status = read_numbers(device, &read, logger);

    if (status == CLFD_SUCCESS)
        status = clfd_query_texts(device, names, CLFD_COUNT(names), &read, logger);
    if (status == CLFD_SUCCESS)
        status = read_portrait(device, &portrait, logger);
    if (status == CLFD_SUCCESS) {
        read_upgrades(device, &portrait, &read, logger);
        status = clfd_caps_disable(&read, disable, logger);
    }
    if (status == CLFD_SUCCESS)
        *caps = read;
    free(portrait.extensions);
    return status;
}

const char *clfd_caps_unsupported(const clfd_caps *caps)
{
    for (size_t i = 0; i < CLFD_COUNT(needs); i++)
        if (!*(const bool *)((const char *)caps + needs[i].member))
            return needs[i].reason;
    return NULL;
}

/* caps.h - what a device can do, read once. Everything after this layer sees numbers and flags, never a
 * vendor; the names are for tuning rows alone. */
#ifndef CLFD_CAPS_H
#define CLFD_CAPS_H

#include "report.h"
#include <clfd/device.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct clfd_caps {
    cl_device_type type;
    uint32_t compute_units;
    uint32_t max_work_group; /* the smaller of the group limit and of the first dimension's item limit */
    uint32_t float_width;    /* CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, at least 1 */
    uint32_t address_bits;
    uint32_t base_align_bytes; /* CL_DEVICE_MEM_BASE_ADDR_ALIGN / 8 */
    uint64_t memory_bytes, max_alloc_bytes, local_mem_bytes, cache_bytes;
    bool local_mem_dedicated; /* CL_DEVICE_LOCAL_MEM_TYPE is CL_LOCAL */
    /* Refusals: without these no clfd kernel runs. */
    bool inf_nan, int64, compiler, opencl_12, little_endian;
    /* Upgrades, each already without what CLFD_DISABLE names and what a quirk forbids. */
    bool fp16, sub_groups, shuffle, ptx, ptx_fp8, matrix, fused_merge, cache_hints, prefetch;
    bool local_mem_padded;   /* CL_KERNEL_LOCAL_MEM_SIZE is more than a kernel uses, by an alignment */
    bool blocking;           /* kernels blocked for registers compile in seconds */
    bool buffers_over_4g;    /* buffers above 4 GiB need build_options' help */
    char build_options[128]; /* added to every build, from the quirks table; "" mostly */
    char driver[128];
    char name[256], vendor[128], architecture[32]; /* what tuning rows are found by, and nothing else */
} clfd_caps;

/* Reads the capabilities of a device and applies quirks and `disable` (the text of CLFD_DISABLE, or NULL).
 * CLFD_ERROR_DISABLE_LIST; an OpenCL code where a query fails. */
clfd_status clfd_caps_read(cl_device_id device, const char *disable, clfd_caps *caps, const clfd_logger *logger);

/* Turns off what `list` names (the text of CLFD_DISABLE, or NULL), and what stands on it: shuffle on subgroups, matrix,
 * fused_merge and cache_hints on ptx. Pure. CLFD_ERROR_DISABLE_LIST, with *caps untouched. */
clfd_status clfd_caps_disable(clfd_caps *caps, const char *list, const clfd_logger *logger);

/* Why clfd refuses the device, or NULL where it does not. Pure. */
const char *clfd_caps_unsupported(const clfd_caps *caps);

/* Reads the descriptive side of the same device. `spec` and `family` stay empty: the caller knows them. */
clfd_status clfd_device_describe(cl_platform_id platform, cl_device_id device, const clfd_caps *caps,
                                 clfd_device_info *info, const clfd_logger *logger);

#endif

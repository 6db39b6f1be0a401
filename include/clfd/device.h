/* clfd/device.h - finding a device, and the context that clfd works in.
 *
 * An application that has a cl_context already needs only clfd_context_create. The rest is for those that do not.
 */
#ifndef CLFD_DEVICE_H
#define CLFD_DEVICE_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#include <clfd/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One OpenCL device as `clfd devices` prints it. Strings are cut to fit and always terminated. */
typedef struct clfd_device_info {
    cl_platform_id platform;
    cl_device_id device;
    char spec[32];              /* "0:1", the index pair that selects this device while the platforms stay the same */
    char platform_name[128];    /* CL_PLATFORM_NAME */
    char vendor[128];           /* CL_DEVICE_VENDOR */
    char name[256];             /* CL_DEVICE_NAME */
    char driver[128];           /* CL_DRIVER_VERSION */
    char opencl_c[128];         /* CL_DEVICE_OPENCL_C_VERSION */
    char family[32];            /* kernel family that a plan would try first, or "none" */
    char unsupported[256];      /* why clfd refuses the device; empty when it does not */
    cl_device_type type;        /* CL_DEVICE_TYPE */
    uint32_t compute_units;     /* CL_DEVICE_MAX_COMPUTE_UNITS */
    uint32_t max_work_group;    /* CL_DEVICE_MAX_WORK_GROUP_SIZE */
    uint64_t memory_bytes;      /* CL_DEVICE_GLOBAL_MEM_SIZE */
    uint64_t max_alloc_bytes;   /* CL_DEVICE_MAX_MEM_ALLOC_SIZE */
    uint64_t local_mem_bytes;   /* CL_DEVICE_LOCAL_MEM_SIZE */
    uint64_t cache_bytes;       /* CL_DEVICE_GLOBAL_MEM_CACHE_SIZE: the last-level cache where the driver tells it */
    uint32_t fp16;              /* 1: cl_khr_fp16 */
    uint32_t sub_groups;        /* 1: sub-groups */
    uint32_t sub_group_shuffle; /* 1: shuffles within a sub-group */
} clfd_device_info;

/* Lists every device of every platform, in platform order; platforms without a device are skipped.
 *
 *     for (p in platforms) for (d in devices of p) if (n < capacity) infos[n++] = info(p, d);
 *     *count = number of devices, which may exceed capacity;
 *
 * infos may be NULL when capacity is 0. No device at all is CLFD_ERROR_NO_PLATFORM with *count = 0.
 * Thread-safe. logger may be NULL. */
CLFD_API clfd_status clfd_list_devices(clfd_device_info *infos, size_t capacity, size_t *count,
                                       const clfd_logger *logger);

/* Selects one device. spec is one of
 *     "0:1"                     platform index : device index, as in clfd_device_info.spec
 *     "gpu" "cpu" "accelerator" a type
 *     "nvidia"                  a case-insensitive fragment of vendor, name or platform name
 *     "type=gpu,vendor=nvidia,name=H200,platform=cuda,mem>=16G,index=1"
 *                               all of the pairs must hold, each at most once; vendor, name and platform are
 *                               fragments; mem takes K, M, G or T (powers of 1024); index picks from what the other
 *                               pairs leave, counted from 0; a type word may stand for its pair: "cpu,index=1"
 * With spec NULL the environment variable CLFD_DEVICE is used; if that is unset or empty too, the best device wins: one
 * that clfd supports before one that it does not, then GPU over other types, then more memory (of its own: CPUs share
 * the host's and count as equal), then PoCL over other CPU implementations, then the first.
 *
 * CLFD_ERROR_DEVICE_SPEC malformed; CLFD_ERROR_NO_DEVICE_MATCH and CLFD_ERROR_AMBIGUOUS_DEVICE list the candidates in
 * their sentence; CLFD_ERROR_NO_PLATFORM. *info is written only on success. Thread-safe. logger may be NULL. */
CLFD_API clfd_status clfd_select_device(const char *spec, clfd_device_info *info, const clfd_logger *logger);

/* A cl_context with one device of it: capabilities, and the programs built so far. Opaque, reference-counted, and safe
 * to use from several threads. Any number may live in one process. */
typedef struct clfd_context clfd_context;

typedef struct clfd_context_options {
    size_t struct_size; /* sizeof(clfd_context_options) */
    clfd_logger logger; /* copied; used by every later call on the context and on its plans */
} clfd_context_options;

/* Creates a context with one reference. Retains `context`; reads the device's capabilities once.
 *
 * options may be NULL. Environment, read here and nowhere later: CLFD_DISABLE, a comma-separated list of upgrades that
 * must not be used (subgroups, shuffle, ptx, matrix, fused_merge, cache_hints, prefetch, fp16); CLFD_KERNEL_DIR, a
 * folder that kernel sources are read from instead of the embedded ones; CLFD_TUNING, a file of tuning rows that
 * `clfd tune` wrote, tried before the shipped ones. Without CLFD_TUNING the user's own file is read where there is one:
 * $XDG_CONFIG_HOME/clfd/tuning.json, else ~/.config/clfd/tuning.json; empty or "none" means no file. A row that breaks a
 * rule is skipped with a warning, and so is a user's own file that cannot be read.
 *
 * CLFD_ERROR_DEVICE_CONTEXT: the device is not in the context. CLFD_ERROR_DEVICE_UNSUPPORTED: no infinity and NaN in
 * fp32, no 64-bit integers, no online compiler, or OpenCL below 1.2. CLFD_ERROR_DISABLE_LIST. CLFD_ERROR_TUNING_FILE:
 * CLFD_TUNING names a file that is missing, or none that clfd can read. Thread-safe. */
CLFD_API clfd_status clfd_context_create(cl_context context, cl_device_id device, const clfd_context_options *options,
                                         clfd_context **created);

/* One more reference. NULL is allowed and does nothing. Thread-safe. */
CLFD_API void clfd_context_retain(clfd_context *context);

/* One reference less; the last one frees the programs. Plans hold a reference of their own. NULL is allowed. */
CLFD_API void clfd_context_release(clfd_context *context);

/* What clfd_list_devices says of the context's device, after CLFD_DISABLE. Thread-safe. */
CLFD_API clfd_status clfd_context_info(const clfd_context *context, clfd_device_info *info);

#ifdef __cplusplus
}
#endif
#endif

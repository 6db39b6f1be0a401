#include "run/kernel.h"
#include "plan/describe.h"
#include <string.h>

#define MAX_OPTIONS 512
#define MAX_PADDING 128u                   /* the greatest alignment of a variable in cl/ */
#define SUB_GROUP_SIZE_FOR_ND_RANGE 0x2033 /* CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE_KHR */

typedef cl_int (*sub_group_query)(cl_kernel, cl_device_id, cl_uint, size_t, const void *, size_t, void *, size_t *);

/* The sub-group size with which the device would run the kernel; 0 where it has none or it cannot be found out. */
static size_t sub_group_size(const clfd_context *context, cl_kernel kernel, size_t work_group)
{
    const cl_device_id device = context->device;
    cl_platform_id platform;
    sub_group_query query;
    size_t size = 0;

    /* The loader hands out its own function even where the platform has none, and a call of it then crashes. */
    if (!context->caps.sub_groups)
        return 0;
    if (clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) != CL_SUCCESS)
        return 0;
    /* ISO C has no conversion from an object pointer to a function pointer; POSIX guarantees that the bits agree. */
    void *const address = clGetExtensionFunctionAddressForPlatform(platform, "clGetKernelSubGroupInfoKHR");
    if (address == NULL)
        return 0;
    memcpy(&query, &address, sizeof query);
    if (query(kernel, device, SUB_GROUP_SIZE_FOR_ND_RANGE, sizeof work_group, &work_group, sizeof size, &size, NULL) !=
        CL_SUCCESS)
        return 0;
    return size;
}

static clfd_status refuse(const clfd_context *context, clfd_log_level level, const char *name, const char *what,
                          uint64_t has, uint64_t needs)
{
    clfd_note(&context->logger, level, "kernel %s: %s is %llu, %llu needed", name, what, (unsigned long long)has,
              (unsigned long long)needs);
    return CLFD_ERROR_NO_KERNEL;
}

static clfd_status check_limits(const clfd_context *context, cl_kernel kernel, const char *name, size_t work_group,
                                uint32_t sub_group, clfd_log_level level)
{
    size_t limit = 0, compiled[3] = {0, 0, 0}; /* 0: compiled for any work-group */
    cl_ulong local_bytes = 0;
    clfd_status status;

    CLFD_TRY_CL(
        &context->logger,
        clGetKernelWorkGroupInfo(kernel, context->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof limit, &limit, NULL),
        "clGetKernelWorkGroupInfo(CL_KERNEL_WORK_GROUP_SIZE)");
    CLFD_TRY_CL(&context->logger,
                clGetKernelWorkGroupInfo(kernel, context->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local_bytes,
                                         &local_bytes, NULL),
                "clGetKernelWorkGroupInfo(CL_KERNEL_LOCAL_MEM_SIZE)");
    CLFD_TRY_CL(&context->logger,
                clGetKernelWorkGroupInfo(kernel, context->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof compiled,
                                         compiled, NULL),
                "clGetKernelWorkGroupInfo(CL_KERNEL_COMPILE_WORK_GROUP_SIZE)");
    if (compiled[0] != 0 && compiled[0] != work_group)
        return refuse(context, level, name, "the work-group that it is compiled for", compiled[0], work_group);
    if (limit < work_group)
        return refuse(context, level, name, "the work-group limit", limit, work_group);
    if (local_bytes > context->caps.local_mem_bytes + (context->caps.local_mem_padded ? MAX_PADDING : 0))
        return refuse(context, level, name, "local memory", context->caps.local_mem_bytes, local_bytes);
    if (sub_group > 0) {
        const size_t size = sub_group_size(context, kernel, work_group);
        if (size < sub_group || size % sub_group != 0)
            return refuse(context, level, name, "the sub-group size", size, sub_group);
    }
done:
    return status;
}

clfd_status clfd_kernel_create(clfd_context *context, const char *file, const char *name, const char *options,
                               size_t work_group, uint32_t sub_group, clfd_log_level level, clfd_kernel *kernel)
{
    cl_program program = NULL;
    clfd_kernel created = {.work_group = work_group};
    clfd_status status = clfd_cache_get(&context->programs, context->cl, context->device, file, options,
                                        context->kernel_folder, level, &program, &context->logger);

    if (status != CLFD_SUCCESS)
        return status;
    created.handle = clCreateKernel(program, name, &status);
    if (status != CL_SUCCESS) {
        clfd_fail_cl(&context->logger, status, "clCreateKernel");
        goto done;
    }
    if ((status = check_limits(context, created.handle, name, work_group, sub_group, level)) != CLFD_SUCCESS)
        goto done;
    if (clfd_mutex_init(&created.mutex) != 0) {
        status = clfd_fail(&context->logger, CLFD_ERROR_HOST_MEMORY, "no memory for the lock of kernel %s", name);
        goto done;
    }
    *kernel = created;
    created.handle = NULL;
done:
    if (created.handle != NULL)
        clReleaseKernel(created.handle);
    clReleaseProgram(program);
    return status;
}

void clfd_kernel_destroy(clfd_kernel *kernel)
{
    if (kernel->handle == NULL)
        return;
    clReleaseKernel(kernel->handle);
    clfd_mutex_destroy(&kernel->mutex);
    kernel->handle = NULL;
}

/* A handle alone does not say whether a buffer is the one that was set before; NULL does. */
static bool is_no_buffer(const clfd_argument *argument)
{
    const cl_mem none = NULL;

    return argument->bytes == sizeof none && memcmp(argument->value, &none, sizeof none) == 0;
}

clfd_status clfd_kernel_launch(clfd_kernel *kernel, cl_command_queue queue, const clfd_argument *arguments,
                               size_t num_arguments, uint64_t groups, cl_uint num_wait, const cl_event *wait,
                               cl_event *event, const clfd_logger *logger)
{
    const size_t local = kernel->work_group, global = (size_t)groups * kernel->work_group;
    clfd_status status = CLFD_SUCCESS;

    clfd_mutex_lock(&kernel->mutex);
    for (size_t i = 0; i < num_arguments; i++) {
        const uint32_t bit = is_no_buffer(&arguments[i]) ? 1u << i : 0;
        if ((kernel->unused & bit) != 0)
            continue;
        kernel->unused &= ~(1u << i);
        CLFD_TRY_CL(logger, clSetKernelArg(kernel->handle, (cl_uint)i, arguments[i].bytes, arguments[i].value),
                    "clSetKernelArg");
        kernel->unused |= bit;
    }
    CLFD_TRY_CL(logger, clEnqueueNDRangeKernel(queue, kernel->handle, 1, NULL, &global, &local, num_wait, wait, event),
                "clEnqueueNDRangeKernel");
done:
    clfd_mutex_unlock(&kernel->mutex);
    return status;
}

clfd_status clfd_kernel_create_merge(clfd_context *context, const char *name, clfd_partial partial, uint32_t head_dim_v,
                                     clfd_type out_type, uint32_t work_group, clfd_kernel *kernel)
{
    char options[MAX_OPTIONS];
    clfd_status status;

    for (uint32_t size = work_group;; size /= 2) {
        clfd_merge_options(&context->caps, partial, head_dim_v, out_type, size, options, sizeof options);
        status = clfd_kernel_create(context, "merge", name, options, size, 0,
                                    size > 1 ? CLFD_LOG_WARNING : CLFD_LOG_ERROR, kernel);
        if (status == CLFD_SUCCESS || status == CLFD_ERROR_KERNEL_SOURCE || size == 1)
            return status;
    }
}

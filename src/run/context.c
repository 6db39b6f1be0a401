#include "run/context.h"
#include "device/select.h"
#include "run/devices.h"
#include "run/tuning_files.h"
#include "struct_size.h"
#include <stdlib.h>
#include <string.h>

/* CLFD_SUCCESS where `device` is one of the context's. */
static clfd_status check_membership(cl_context context, cl_device_id device, const clfd_logger *logger)
{
    cl_device_id *devices = NULL;
    clfd_status status;
    size_t bytes = 0;

    CLFD_TRY_CL(logger, clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &bytes),
                "clGetContextInfo(CL_CONTEXT_DEVICES)");
    if ((devices = malloc(bytes + 1)) == NULL)
        return clfd_fail(logger, CLFD_ERROR_HOST_MEMORY, "no memory for %zu bytes of device list", bytes);
    CLFD_TRY_CL(logger, clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices, NULL),
                "clGetContextInfo(CL_CONTEXT_DEVICES)");
    status = CLFD_ERROR_DEVICE_CONTEXT;
    for (size_t i = 0; i < bytes / sizeof devices[0]; i++)
        if (devices[i] == device)
            status = CLFD_SUCCESS;
    if (status != CLFD_SUCCESS)
        clfd_fail(logger, status, "the device is none of the %zu of the cl_context", bytes / sizeof devices[0]);
done:
    free(devices);
    return status;
}

static char *copy_text(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    return copy != NULL ? strcpy(copy, text) : NULL;
}

/* Fills a zeroed context but for the reference to the cl_context. */
static clfd_status fill(clfd_context *made, cl_context context, cl_device_id device, const clfd_logger *logger)
{
    const char *const folder = clfd_environment("CLFD_KERNEL_DIR");
    const char *unsupported;
    clfd_status status = check_membership(context, device, logger);

    if (status != CLFD_SUCCESS ||
        (status = clfd_caps_read(device, clfd_environment("CLFD_DISABLE"), &made->caps, logger)) != CLFD_SUCCESS)
        return status;
    if ((unsupported = clfd_caps_unsupported(&made->caps)) != NULL)
        return clfd_fail(logger, CLFD_ERROR_DEVICE_UNSUPPORTED, "clfd cannot use the device: %s", unsupported);
    if (folder != NULL && (made->kernel_folder = copy_text(folder)) == NULL)
        return clfd_fail(logger, CLFD_ERROR_HOST_MEMORY, "no memory for CLFD_KERNEL_DIR, \"%s\"", folder);
    if ((status = clfd_tuning_files_read(&made->tuning, logger)) != CLFD_SUCCESS)
        return status;
    made->cl = context;
    made->device = device;
    made->logger = *logger;
    atomic_init(&made->references, 1);
    return CLFD_SUCCESS;
}

clfd_status clfd_context_create(cl_context context, cl_device_id device, const clfd_context_options *options,
                                clfd_context **created)
{
    clfd_context_options known = {.struct_size = sizeof known};
    clfd_context *made = NULL;
    clfd_status status = CLFD_SUCCESS;

    /* Who sets a smaller struct_size has no logger there to be told through. */
    if (options != NULL)
        status = clfd_read_struct(options, &known, sizeof known, "clfd_context_options",
                                  options->struct_size >= sizeof known ? &options->logger : NULL);
    if (status != CLFD_SUCCESS)
        return status;
    if (context == NULL || device == NULL || created == NULL)
        return clfd_fail(&known.logger, CLFD_ERROR_NULL_ARGUMENT, "clfd_context_create: %s is NULL",
                         context == NULL  ? "context"
                         : device == NULL ? "device"
                                          : "created");
    if ((made = calloc(1, sizeof *made)) == NULL)
        return clfd_fail(&known.logger, CLFD_ERROR_HOST_MEMORY, "no memory for a clfd_context");
    if ((status = fill(made, context, device, &known.logger)) != CLFD_SUCCESS ||
        (status = clfd_cache_init(&made->programs)) != CLFD_SUCCESS)
        goto failed;
    if ((status = clRetainContext(context)) != CL_SUCCESS) {
        clfd_fail_cl(&known.logger, status, "clRetainContext");
        clfd_cache_clear(&made->programs);
        goto failed;
    }
    *created = made;
    return CLFD_SUCCESS;
failed:
    clfd_tuning_files_free(&made->tuning);
    free(made->kernel_folder);
    free(made);
    return status;
}

void clfd_context_retain(clfd_context *context)
{
    if (context != NULL)
        atomic_fetch_add_explicit(&context->references, 1, memory_order_relaxed);
}

void clfd_context_release(clfd_context *context)
{
    if (context == NULL || atomic_fetch_sub_explicit(&context->references, 1, memory_order_acq_rel) != 1)
        return;
    clfd_cache_clear(&context->programs);
    clReleaseContext(context->cl);
    clfd_tuning_files_free(&context->tuning);
    free(context->kernel_folder);
    free(context);
}

/* The index pair of the device, which only the list of all devices knows; empty for a sub-device. */
static void name_spec(const clfd_context *context, clfd_device_info *info)
{
    clfd_device_list list;

    if (clfd_find_devices(&list, NULL) != CLFD_SUCCESS)
        return;
    for (size_t i = 0; i < list.count; i++)
        if (list.devices[i].info.device == context->device)
            memcpy(info->spec, list.devices[i].info.spec, sizeof info->spec);
    free(list.devices);
}

clfd_status clfd_context_info(const clfd_context *context, clfd_device_info *info)
{
    clfd_device_info found;
    cl_platform_id platform;
    clfd_status status;

    if (context == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    const clfd_logger *const logger = &context->logger;
    if (info == NULL)
        return clfd_fail(logger, CLFD_ERROR_NULL_ARGUMENT, "clfd_context_info: info is NULL");
    CLFD_TRY_CL(logger, clGetDeviceInfo(context->device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL),
                "clGetDeviceInfo(CL_DEVICE_PLATFORM)");
    if ((status = clfd_device_describe(platform, context->device, &context->caps, &found, logger)) != CLFD_SUCCESS)
        return status;
    clfd_devices_name_family(&context->caps, &found);
    name_spec(context, &found);
    *info = found;
done:
    return status;
}

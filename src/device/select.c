#include "device/select.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for the candidates in a sentence of CLFD_MESSAGE_BYTES. */
#define CANDIDATES_BYTES 640

/* Finding. */

static clfd_status list_platforms(cl_platform_id **platforms, cl_uint *count, const clfd_logger *logger)
{
    cl_int status = clGetPlatformIDs(0, NULL, count);

    /* The loader's answer where it knows no platform is -1001; a success with none means the same. */
    if (status == -1001 || (status == CL_SUCCESS && *count == 0))
        return clfd_fail(logger, CLFD_ERROR_NO_PLATFORM,
                         "no OpenCL platform is installed; at least one must be, for instance PoCL");
    if (status != CL_SUCCESS)
        return clfd_fail_cl(logger, status, "clGetPlatformIDs");
    *platforms = calloc(*count, sizeof **platforms);
    if (*platforms == NULL)
        return clfd_fail(logger, CLFD_ERROR_HOST_MEMORY, "no host memory for %u platforms", *count);
    status = clGetPlatformIDs(*count, *platforms, NULL);
    return status == CL_SUCCESS ? CLFD_SUCCESS : clfd_fail_cl(logger, status, "clGetPlatformIDs");
}

/* Adds one device. One that cannot be read is left out, so that a broken driver does not hide the good ones. */
static clfd_status add_device(clfd_device_list *list, cl_platform_id platform, cl_device_id device, const char *pair,
                              const clfd_logger *logger)
{
    clfd_found_device *found, *larger;
    clfd_status status;

    larger = realloc(list->devices, (list->count + 1) * sizeof *list->devices);
    if (larger == NULL)
        return clfd_fail(logger, CLFD_ERROR_HOST_MEMORY, "no host memory for %zu devices", list->count + 1);
    list->devices = larger;
    found = &list->devices[list->count];
    status = clfd_caps_read(device, NULL, &found->caps, NULL);
    if (status == CLFD_SUCCESS)
        status = clfd_device_describe(platform, device, &found->caps, &found->info, NULL);
    if (status != CLFD_SUCCESS) {
        clfd_note(logger, CLFD_LOG_WARNING, "device %s is skipped: what it can do cannot be read: %s (%d)", pair,
                  clfd_status_string(status), (int)status);
        return CLFD_SUCCESS;
    }
    snprintf(found->info.spec, sizeof found->info.spec, "%s", pair);
    list->count++;
    return CLFD_SUCCESS;
}

static clfd_status add_platform(clfd_device_list *list, cl_platform_id platform, cl_uint platform_index,
                                const clfd_logger *logger)
{
    char pair[sizeof list->devices->info.spec];
    cl_device_id *ids = NULL;
    cl_uint count = 0;
    clfd_status status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);

    if (status == CL_DEVICE_NOT_FOUND || (status == CL_SUCCESS && count == 0))
        return CLFD_SUCCESS;
    if (status == CL_SUCCESS) {
        ids = calloc(count, sizeof *ids);
        if (ids == NULL)
            return clfd_fail(logger, CLFD_ERROR_HOST_MEMORY, "no host memory for %u device handles", count);
        status = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids, NULL);
    }
    if (status != CL_SUCCESS) {
        clfd_note(logger, CLFD_LOG_WARNING, "platform %u is skipped: clGetDeviceIDs failed: %s (%d)", platform_index,
                  clfd_status_string(status), (int)status);
        status = CLFD_SUCCESS;
        count = 0;
    }
    for (cl_uint i = 0; i < count && status == CLFD_SUCCESS; i++) {
        snprintf(pair, sizeof pair, "%u:%u", platform_index, i);
        status = add_device(list, platform, ids[i], pair, logger);
    }
    free(ids);
    return status;
}

clfd_status clfd_find_devices(clfd_device_list *list, const clfd_logger *logger)
{
    cl_platform_id *platforms = NULL;
    cl_uint num_platforms = 0;
    clfd_status status;

    *list = (clfd_device_list){0};
    status = list_platforms(&platforms, &num_platforms, logger);
    for (cl_uint i = 0; i < num_platforms && status == CLFD_SUCCESS; i++)
        status = add_platform(list, platforms[i], i, logger);
    if (status == CLFD_SUCCESS && list->count == 0)
        status = clfd_fail(logger, CLFD_ERROR_NO_PLATFORM, "none of the %u OpenCL platforms has a device that answers",
                           num_platforms);
    if (status != CLFD_SUCCESS) {
        free(list->devices);
        *list = (clfd_device_list){0};
    }
    free(platforms);
    return status;
}

/* Choosing. */

static bool is_pocl(const clfd_device_info *info) { return strstr(info->platform_name, "Portable Computing") != NULL; }

/* b is better than a, and not merely as good. */
static bool is_better(const clfd_device_info *b, const clfd_device_info *a)
{
    const bool usable_a = a->unsupported[0] == '\0', usable_b = b->unsupported[0] == '\0';
    const bool gpu_a = (a->type & CL_DEVICE_TYPE_GPU) != 0, gpu_b = (b->type & CL_DEVICE_TYPE_GPU) != 0;
    /* CPU implementations share the host's memory; what each says of it is a matter of its own reserves. */
    const uint64_t memory_a = (a->type & CL_DEVICE_TYPE_CPU) != 0 ? 0 : a->memory_bytes;
    const uint64_t memory_b = (b->type & CL_DEVICE_TYPE_CPU) != 0 ? 0 : b->memory_bytes;

    if (usable_a != usable_b)
        return usable_b;
    if (gpu_a != gpu_b)
        return gpu_b;
    if (memory_a != memory_b)
        return memory_b > memory_a;
    return is_pocl(b) && !is_pocl(a);
}

static size_t best_device(const clfd_device_list *list)
{
    size_t best = 0;

    for (size_t i = 1; i < list->count; i++)
        if (is_better(&list->devices[i].info, &list->devices[best].info))
            best = i;
    return best;
}

/* "0:0 H200 (NVIDIA CUDA); 1:0 ... ; and 3 more", of the devices that match; spec NULL lists all. */
static void list_candidates(const clfd_device_list *list, const clfd_spec *spec, char *text, size_t bytes)
{
    /* What "; and 18446744073709551615 more" takes. */
    const size_t reserve = 40;
    size_t used = 0, left_out = 0;

    text[0] = '\0';
    for (size_t i = 0; i < list->count; i++) {
        const clfd_device_info *info = &list->devices[i].info;
        char one[128];

        if (spec != NULL && !clfd_spec_matches(spec, info))
            continue;
        snprintf(one, sizeof one, "%s%s %.48s (%.40s)", used > 0 ? "; " : "", info->spec, info->name,
                 info->platform_name);
        if (used + strlen(one) + reserve >= bytes) {
            left_out++;
            continue;
        }
        used += (size_t)snprintf(text + used, bytes - used, "%s", one);
    }
    if (left_out > 0)
        snprintf(text + used, bytes - used, "; and %zu more", left_out);
}

clfd_status clfd_choose_device(const clfd_device_list *list, const clfd_spec *spec, size_t *chosen,
                               const clfd_logger *logger)
{
    char candidates[CANDIDATES_BYTES];
    size_t matches = 0, picked = 0, wanted;

    if (spec == NULL) {
        *chosen = best_device(list);
        return CLFD_SUCCESS;
    }
    wanted = spec->index < 0 ? 0 : (size_t)spec->index;
    for (size_t i = 0; i < list->count; i++) {
        if (!clfd_spec_matches(spec, &list->devices[i].info))
            continue;
        if (matches == wanted)
            picked = i;
        matches++;
    }
    list_candidates(list, matches > 0 ? spec : NULL, candidates, sizeof candidates);
    if (matches == 0)
        return clfd_fail(logger, CLFD_ERROR_NO_DEVICE_MATCH, "no device matches the SPEC '%.*s'; there are: %s",
                         CLFD_SLICE_ARGUMENTS(spec->whole), candidates);
    if (wanted >= matches)
        return clfd_fail(logger, CLFD_ERROR_NO_DEVICE_MATCH,
                         "the SPEC '%.*s' asks for index %zu of %zu devices, counted from 0: %s",
                         CLFD_SLICE_ARGUMENTS(spec->whole), wanted, matches, candidates);
    if (matches > 1 && spec->index < 0)
        return clfd_fail(logger, CLFD_ERROR_AMBIGUOUS_DEVICE,
                         "the SPEC '%.*s' matches %zu devices; it must match one, or say which by index=: %s",
                         CLFD_SLICE_ARGUMENTS(spec->whole), matches, candidates);
    *chosen = picked;
    return CLFD_SUCCESS;
}

#include "device/query.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

clfd_status clfd_query_number(cl_device_id device, cl_device_info what, const char *call, uint64_t *value,
                              const clfd_logger *logger)
{
    unsigned char raw[sizeof(cl_ulong)] = {0};
    cl_uint narrow;
    cl_ulong wide;
    size_t bytes = 0;
    const cl_int status = clGetDeviceInfo(device, what, sizeof raw, raw, &bytes);

    if (status != CL_SUCCESS)
        return clfd_fail_cl(logger, status, call);
    if (bytes == sizeof narrow) {
        memcpy(&narrow, raw, sizeof narrow);
        *value = narrow;
    } else if (bytes == sizeof wide) {
        memcpy(&wide, raw, sizeof wide);
        *value = wide;
    } else {
        return clfd_fail(logger, CL_INVALID_VALUE, "%s gave %zu bytes; a number has 4 or 8", call, bytes);
    }
    return CLFD_SUCCESS;
}

/* Memory for an answer and for the zero after it. */
static clfd_status allocate_answer(size_t bytes, const char *call, char **answer, const clfd_logger *logger)
{
    *answer = bytes < SIZE_MAX ? calloc(1, bytes + 1) : NULL;
    if (*answer == NULL)
        return clfd_fail(logger, CLFD_ERROR_HOST_MEMORY, "no host memory for the %zu bytes of %s", bytes, call);
    return CLFD_SUCCESS;
}

clfd_status clfd_query_copy(cl_device_id device, cl_device_info what, const char *call, void **copy, size_t *bytes,
                            const clfd_logger *logger)
{
    clfd_status status;
    char *answer = NULL;
    size_t length = 0;

    CLFD_TRY_CL(logger, clGetDeviceInfo(device, what, 0, NULL, &length), call);
    status = allocate_answer(length, call, &answer, logger);
    if (status != CLFD_SUCCESS)
        goto done;
    CLFD_TRY_CL(logger, clGetDeviceInfo(device, what, length, answer, NULL), call);
    *copy = answer;
    answer = NULL;
    if (bytes != NULL)
        *bytes = length;
done:
    free(answer);
    return status;
}

clfd_status clfd_query_text(cl_device_id device, cl_device_info what, const char *call, char *text, size_t bytes,
                            const clfd_logger *logger)
{
    void *whole = NULL;
    const clfd_status status = clfd_query_copy(device, what, call, &whole, NULL, logger);

    if (status == CLFD_SUCCESS)
        snprintf(text, bytes, "%s", (const char *)whole);
    free(whole);
    return status;
}

clfd_status clfd_query_texts(cl_device_id device, const clfd_query *rows, size_t count, void *into,
                             const clfd_logger *logger)
{
    clfd_status status = CLFD_SUCCESS;

    for (size_t i = 0; i < count && status == CLFD_SUCCESS; i++)
        status =
            clfd_query_text(device, rows[i].what, rows[i].call, (char *)into + rows[i].member, rows[i].bytes, logger);
    return status;
}

clfd_status clfd_query_platform_text(cl_platform_id platform, cl_platform_info what, const char *call, char *text,
                                     size_t bytes, const clfd_logger *logger)
{
    clfd_status status;
    char *answer = NULL;
    size_t length = 0;

    CLFD_TRY_CL(logger, clGetPlatformInfo(platform, what, 0, NULL, &length), call);
    status = allocate_answer(length, call, &answer, logger);
    if (status != CLFD_SUCCESS)
        goto done;
    CLFD_TRY_CL(logger, clGetPlatformInfo(platform, what, length, answer, NULL), call);
    snprintf(text, bytes, "%s", answer);
done:
    free(answer);
    return status;
}

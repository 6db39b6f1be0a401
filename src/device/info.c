#include "device/caps.h"
#include "device/query.h"
#include <stdio.h>

static const clfd_query texts[] = {
    CLFD_QUERY(clfd_device_info, vendor, CL_DEVICE_VENDOR),
    CLFD_QUERY(clfd_device_info, name, CL_DEVICE_NAME),
    CLFD_QUERY(clfd_device_info, opencl_c, CL_DEVICE_OPENCL_C_VERSION),
};

clfd_status clfd_device_describe(cl_platform_id platform, cl_device_id device, const clfd_caps *caps,
                                 clfd_device_info *info, const clfd_logger *logger)
{
    const char *unsupported = clfd_caps_unsupported(caps);
    clfd_status status;

    *info = (clfd_device_info){
        .platform = platform,
        .device = device,
        .type = caps->type,
        .compute_units = caps->compute_units,
        .max_work_group = caps->max_work_group,
        .memory_bytes = caps->memory_bytes,
        .max_alloc_bytes = caps->max_alloc_bytes,
        .local_mem_bytes = caps->local_mem_bytes,
        .cache_bytes = caps->cache_bytes,
        .fp16 = caps->fp16,
        .sub_groups = caps->sub_groups,
        .sub_group_shuffle = caps->shuffle,
    };
    snprintf(info->driver, sizeof info->driver, "%s", caps->driver);
    snprintf(info->unsupported, sizeof info->unsupported, "%s", unsupported != NULL ? unsupported : "");
    status = clfd_query_texts(device, texts, CLFD_COUNT(texts), info, logger);
    if (status != CLFD_SUCCESS)
        return status;
    return clfd_query_platform_text(platform, CLFD_PLATFORM_QUERY(CL_PLATFORM_NAME), info->platform_name,
                                    sizeof info->platform_name, logger);
}

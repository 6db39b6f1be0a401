#include "run/devices.h"
#include "device/select.h"
#include "os.h"
#include "plan/check.h"
#include "plan/tuning.h"
#include <stdio.h>
#include <stdlib.h>

void clfd_devices_name_family(const clfd_caps *caps, clfd_device_info *info)
{
    static const clfd_attention common = {
        .struct_size = sizeof common,
        .num_q_heads = 32,
        .num_kv_heads = 8,
        .head_dim = 128,
        .q_type = CLFD_TYPE_F16,
        .max_kv_len = 4096,
    };
    clfd_attention complete;
    clfd_tuning rows[CLFD_MAX_CANDIDATES];
    size_t count = 0;
    const char *family = "none";

    if (clfd_caps_unsupported(caps) == NULL && clfd_complete_attention(&common, &complete, NULL) == CLFD_SUCCESS &&
        clfd_tuning_candidates(caps, &complete, rows, &count, NULL) == CLFD_SUCCESS && count > 0)
        family = clfd_family_name(rows[0].family);
    snprintf(info->family, sizeof info->family, "%s", family);
}

clfd_status clfd_list_devices(clfd_device_info *infos, size_t capacity, size_t *count, const clfd_logger *logger)
{
    clfd_device_list list;
    clfd_status status;

    if (count == NULL)
        return clfd_fail(logger, CLFD_ERROR_NULL_ARGUMENT, "count is NULL; clfd_list_devices writes it");
    *count = 0;
    if (infos == NULL && capacity > 0)
        return clfd_fail(logger, CLFD_ERROR_NULL_ARGUMENT, "infos is NULL with a capacity of %zu", capacity);
    status = clfd_find_devices(&list, logger);
    if (status != CLFD_SUCCESS)
        return status;
    for (size_t i = 0; i < list.count && i < capacity; i++) {
        infos[i] = list.devices[i].info;
        clfd_devices_name_family(&list.devices[i].caps, &infos[i]);
    }
    *count = list.count;
    free(list.devices);
    return CLFD_SUCCESS;
}

clfd_status clfd_select_device(const char *spec, clfd_device_info *info, const clfd_logger *logger)
{
    clfd_device_list list;
    clfd_spec parsed;
    size_t chosen;
    clfd_status status = CLFD_SUCCESS;

    if (info == NULL)
        return clfd_fail(logger, CLFD_ERROR_NULL_ARGUMENT, "info is NULL; clfd_select_device writes it");
    if (spec == NULL)
        spec = clfd_environment("CLFD_DEVICE");
    /* Before any device is asked: a malformed SPEC is malformed on every machine. */
    if (spec != NULL)
        status = clfd_spec_parse(spec, &parsed, logger);
    if (status == CLFD_SUCCESS)
        status = clfd_find_devices(&list, logger);
    if (status != CLFD_SUCCESS)
        return status;
    status = clfd_choose_device(&list, spec != NULL ? &parsed : NULL, &chosen, logger);
    if (status == CLFD_SUCCESS) {
        *info = list.devices[chosen].info;
        clfd_devices_name_family(&list.devices[chosen].caps, info);
    }
    free(list.devices);
    return status;
}

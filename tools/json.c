#include "json.h"
#include <math.h>

const char *device_type_name(const clfd_device_info *device)
{
    static const struct {
        cl_device_type type;
        const char *name;
    } names[] = {{CL_DEVICE_TYPE_GPU, "gpu"}, {CL_DEVICE_TYPE_CPU, "cpu"}, {CL_DEVICE_TYPE_ACCELERATOR, "accelerator"}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((device->type & names[i].type) != 0)
            return names[i].name;
    return "other";
}

cJSON *json_device(const clfd_device_info *device)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "spec", device->spec);
    cJSON_AddStringToObject(object, "platform", device->platform_name);
    cJSON_AddStringToObject(object, "vendor", device->vendor);
    cJSON_AddStringToObject(object, "name", device->name);
    cJSON_AddStringToObject(object, "type", device_type_name(device));
    cJSON_AddStringToObject(object, "driver", device->driver);
    cJSON_AddStringToObject(object, "opencl_c", device->opencl_c);
    cJSON_AddNumberToObject(object, "compute_units", device->compute_units);
    cJSON_AddNumberToObject(object, "max_work_group", device->max_work_group);
    cJSON_AddNumberToObject(object, "memory_bytes", (double)device->memory_bytes);
    cJSON_AddNumberToObject(object, "max_alloc_bytes", (double)device->max_alloc_bytes);
    cJSON_AddNumberToObject(object, "local_mem_bytes", (double)device->local_mem_bytes);
    cJSON_AddNumberToObject(object, "cache_bytes", (double)device->cache_bytes);
    cJSON_AddBoolToObject(object, "fp16", device->fp16 != 0);
    cJSON_AddBoolToObject(object, "sub_groups", device->sub_groups != 0);
    cJSON_AddBoolToObject(object, "sub_group_shuffle", device->sub_group_shuffle != 0);
    cJSON_AddStringToObject(object, "family", device->family);
    if (device->unsupported[0] != '\0')
        cJSON_AddStringToObject(object, "unsupported", device->unsupported);
    return object;
}

void json_add_number(cJSON *object, const char *name, double value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

bool json_print(const cJSON *value, FILE *stream, tool_fault *fault)
{
    char *text = value != NULL ? cJSON_Print(value) : NULL;

    if (text == NULL)
        return fault_failed(fault, "no memory for the JSON text");
    fprintf(stream, "%s\n", text);
    cJSON_free(text);
    return true;
}

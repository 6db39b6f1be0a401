/* clfd devices - lists the OpenCL devices. */
#include "command.h"
#include "json.h"
#include "options.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct values {
    bool json;
    const char *device;
};

static const option_row options[] = {
    {"--json", OPTION_FLAG, NULL, "print a JSON array, one object per device", offsetof(struct values, json), 0, 0},
    {"--device", OPTION_TEXT, "SPEC", "list only the device that SPEC selects", offsetof(struct values, device), 0, 0},
    {0},
};

static const option_set set = {
    .usage = "clfd devices [--json] [--device SPEC]",
    .description =
        "Lists every device of every OpenCL platform. The one marked * is what the other verbs use by default.",
    .options = options,
};

static void print_line(const char *name, const char *value) { printf("      %-16s%s\n", name, value); }

static void print_device(const clfd_device_info *device, bool selected)
{
    char text[64];

    printf("%c %-3s %s\n", selected ? '*' : ' ', device->spec, device->name);
    print_line("platform", device->platform_name);
    print_line("vendor", device->vendor);
    print_line("type", device_type_name(device));
    print_line("driver", device->driver);
    print_line("OpenCL C", device->opencl_c);
    snprintf(text, sizeof text, "%" PRIu32, device->compute_units);
    print_line("compute units", text);
    snprintf(text, sizeof text, "%.1f GiB", (double)device->memory_bytes / (1 << 30));
    print_line("memory", text);
    snprintf(text, sizeof text, "%.1f GiB", (double)device->max_alloc_bytes / (1 << 30));
    print_line("max allocation", text);
    print_line("fp16", device->fp16 ? "yes" : "no");
    print_line("sub-groups", device->sub_groups ? (device->sub_group_shuffle ? "yes, with shuffle" : "yes") : "no");
    print_line("kernel family", device->family);
    if (device->unsupported[0] != '\0')
        print_line("unsupported", device->unsupported);
}

/* All devices as a malloc'ed array. */
static bool list_all(clfd_device_info **devices, size_t *count, const clfd_logger *logger, tool_fault *fault)
{
    size_t capacity = 0;
    clfd_status status = clfd_list_devices(NULL, 0, &capacity, logger);

    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_list_devices");
    *devices = calloc(capacity, sizeof **devices);
    if (*devices == NULL)
        return fault_failed(fault, "no memory for %zu devices", capacity);
    status = clfd_list_devices(*devices, capacity, count, logger);
    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_list_devices");
    if (*count > capacity)
        *count = capacity;
    return true;
}

static bool print_json(const clfd_device_info *devices, size_t count, const clfd_device_info *selected,
                       tool_fault *fault)
{
    cJSON *array = cJSON_CreateArray();
    bool good;

    for (size_t i = 0; i < count; i++) {
        cJSON *object = json_device(&devices[i]);
        cJSON_AddBoolToObject(object, "selected", devices[i].device == selected->device);
        cJSON_AddItemToArray(array, object);
    }
    good = json_print(array, stdout, fault);
    cJSON_Delete(array);
    return good;
}

bool command_devices(int argc, char **argv, tool_fault *fault)
{
    const clfd_logger logger = fault_logger(fault);
    struct values values = {0};
    clfd_device_info selected, *devices = NULL;
    const clfd_device_info *listed = &selected;
    clfd_status status;
    size_t count = 1;
    bool help, good = false;

    if (!options_parse(&set, argc, argv, &values, NULL, &help, fault))
        return false;
    if (help)
        return true;
    status = clfd_select_device(values.device, &selected, &logger);
    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_select_device");
    if (values.device == NULL) {
        if (!list_all(&devices, &count, &logger, fault))
            goto done;
        listed = devices;
    }
    if (values.json) {
        good = print_json(listed, count, &selected, fault);
    } else {
        for (size_t i = 0; i < count; i++)
            print_device(&listed[i], listed[i].device == selected.device);
        good = true;
    }

done:
    free(devices);
    return good;
}

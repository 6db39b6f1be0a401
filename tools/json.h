/* json.h - what a tool prints for machines. */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include "fault.h"
#include <cjson/cJSON.h>
#include <stdio.h>

/* "gpu", "cpu", "accelerator" or "other". */
const char *device_type_name(const clfd_device_info *device);

/* Everything `clfd devices` knows of a device, as an object; NULL without memory. */
cJSON *json_device(const clfd_device_info *device);

/* Adds a number to an object; null where it is not finite, which JSON cannot say. */
void json_add_number(cJSON *object, const char *name, double value);

/* Prints the value and a line break. A NULL value is a fault: memory ran out on the way. */
bool json_print(const cJSON *value, FILE *stream, tool_fault *fault);

#endif

/* type_names.h - element types as users write them. */
#ifndef TOOLS_TYPE_NAMES_H
#define TOOLS_TYPE_NAMES_H

#include <clfd/attention.h>
#include <stdbool.h>
#include <stddef.h>

/* The type that `length` characters name: a name of clfd_type_name, or fp8, e4m3 (fp8_e4m3), e5m2 (fp8_e5m2). DEFAULT
 * where they name none. */
clfd_type type_find(const char *name, size_t length);

/* "f32, f16, ... or q4_0": every name, for a sentence. */
#define TYPE_NAMES "f32, f16, bf16, int8, int4, fp8_e4m3, fp8_e5m2, q8_0 or q4_0"

#endif

/* struct_size.h - reading a caller's struct that may be older or newer than this library. */
#ifndef CLFD_STRUCT_SIZE_H
#define CLFD_STRUCT_SIZE_H

#include "report.h"
#include <stddef.h>

/* Copies a caller's struct into `known` (known_bytes, this library's size). A shorter one is zero-extended; a longer one
 * must have a zero tail. The first member of both is size_t struct_size; the copy's is set to known_bytes. `name` is for
 * the sentence. CLFD_ERROR_STRUCT_SIZE, CLFD_ERROR_NULL_ARGUMENT. */
clfd_status clfd_read_struct(const void *given, void *known, size_t known_bytes, const char *name,
                             const clfd_logger *logger);

#endif

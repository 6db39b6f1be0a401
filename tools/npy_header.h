/* npy_header.h - the header of an .npy file: a Python dictionary with three keys. */
#ifndef TOOLS_NPY_HEADER_H
#define TOOLS_NPY_HEADER_H

#include "npy.h"

/* Parses "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" and blanks; fills in kind, item_bytes and shape.
 * Each key must be there once, in any order, and nothing else. path is for the sentence. */
bool npy_parse_header(const char *text, const char *path, npy_array *array, tool_fault *fault);

#endif

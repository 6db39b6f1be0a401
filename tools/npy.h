/* npy.h - NumPy's .npy array files: format versions 1.0, 2.0 and 3.0, C order, little-endian, plain numbers. */
#ifndef TOOLS_NPY_H
#define TOOLS_NPY_H

#include "fault.h"
#include "output.h"
#include <stddef.h>
#include <stdint.h>

#define NPY_MAX_DIMS 8

typedef struct npy_array {
    char kind;           /* 'f' floating point, 'i' signed, 'u' unsigned, 'b' boolean */
    uint32_t item_bytes; /* 1, 2, 4 or 8: "f2" is kind 'f' and 2 bytes */
    uint32_t num_dims;
    uint64_t shape[NPY_MAX_DIMS];
    size_t count; /* product of shape */
    void *data;   /* count * item_bytes bytes, malloc'ed; not NULL even where count is 0 */
} npy_array;

/* Reads a whole file. Refused, each with its sentence: what is no .npy file or another version, a malformed header,
 * Fortran order, big-endian or structured elements, more dimensions than NPY_MAX_DIMS, a shape whose bytes overflow,
 * fewer bytes of data than the shape says, and more. *array is written only on success; npy_free it. */
bool npy_read(const char *path, npy_array *array, tool_fault *fault);

/* Frees the data; a zeroed array is allowed. */
void npy_free(npy_array *array);

/* Writes header (version 1.0) and data of the array to the output's open stream. */
bool npy_write(output_file *output, const npy_array *array, tool_fault *fault);

/* The element type as NumPy writes it without the byte order, "f4". */
typedef struct npy_type_name {
    char text[8];
} npy_type_name;
npy_type_name npy_type(const npy_array *array);

/* The shape as Python prints it, "(1, 2, 3)". Returns text. */
#define NPY_SHAPE_BYTES (NPY_MAX_DIMS * 22 + 3)
const char *npy_shape(const npy_array *array, char text[NPY_SHAPE_BYTES]);

#endif

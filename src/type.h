/* type.h - what the library knows of element types beside their public properties. Pure functions. */
#ifndef CLFD_TYPE_H
#define CLFD_TYPE_H

#include <clfd/attention.h>
#include <stdbool.h>

/* f32, f16, bf16. */
static inline bool clfd_type_is_plain(clfd_type type) { return type >= CLFD_TYPE_F32 && type <= CLFD_TYPE_BF16; }

/* Types whose scales lie in a tensor of their own: int8, int4, fp8. */
static inline bool clfd_type_has_scales(clfd_type type) { return type >= CLFD_TYPE_INT8 && type <= CLFD_TYPE_FP8_E5M2; }

/* Of those, the ones with a scale for each token and group: int8, int4. */
static inline bool clfd_type_is_grouped(clfd_type type) { return type == CLFD_TYPE_INT8 || type == CLFD_TYPE_INT4; }

/* Bytes to whose multiple the base of a tensor must be aligned at least: an element, or the f16 scale of a GGML block. */
static inline uint32_t clfd_type_alignment(clfd_type type)
{
    return clfd_type_is_plain(type) ? (uint32_t)clfd_type_size(type) : clfd_type_has_scales(type) ? 1 : 2;
}

/* Storage units of a row of dim elements, a whole number of them. */
static inline uint32_t clfd_row_units(clfd_type type, uint32_t dim) { return dim / clfd_type_elements(type); }

#endif

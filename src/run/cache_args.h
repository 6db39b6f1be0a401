/* cache_args.h - the arguments by value that say where the cache is: the same for reading and for writing it. */
#ifndef CLFD_CACHE_ARGS_H
#define CLFD_CACHE_ARGS_H

#include "args.h"
#include <clfd/attention.h>

/* A buffer's offset in elements; exact, since offsets were checked to be whole elements. 0 for elements of no bytes. */
cl_long clfd_offset(const clfd_buffer *buffer, size_t element_bytes);

/* K or V; its scales and zeros; how pages are found. Descriptors are complete. */
kv_args clfd_make_kv_args(const clfd_buffer *buffer, const clfd_strides *strides, clfd_type type);
scale_args clfd_make_scale_args(const clfd_buffer *scale, const clfd_buffer *zero, const clfd_quant *quant);
page_args clfd_make_page_args(const clfd_attention *attention, uint32_t num_page_indices);

#endif

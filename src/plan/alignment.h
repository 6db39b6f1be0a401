/* alignment.h - on what boundaries the rows of K and V start. Pure functions. */
#ifndef CLFD_ALIGNMENT_H
#define CLFD_ALIGNMENT_H

#include <clfd/attention.h>
#include <stdbool.h>

/* The greatest power of two up to 16 that every row of a tensor starts on a multiple of: the base by promise, the strides
 * by arithmetic. */
uint32_t clfd_row_alignment(const clfd_strides *strides, clfd_type type, uint32_t promise);

/* KV_ALIGNED of cl/formats.cl: of one tensor, by the promise for its base in bytes, and of both together. */
uint32_t clfd_aligned_class(const clfd_strides *strides, clfd_type type, uint32_t promise);
uint32_t clfd_kv_aligned(const clfd_attention *attention);

/* KV_PAIRS of cl/formats.cl: whether K and V of q8_0 allow it. */
bool clfd_kv_pairs(const clfd_attention *attention);

/* Whether every row of q starts on a boundary of 4 bytes. */
bool clfd_q_aligned(const clfd_attention *attention);

#endif

/* extent.h - how far into memory a tensor reaches. Pure functions.
 *
 * Descriptors are complete (clfd_complete_attention). Each function returns false where the result does not fit in 63
 * bits; what it gives is 0 where a count is 0. */
#ifndef CLFD_EXTENT_H
#define CLFD_EXTENT_H

#include <clfd/attention.h>
#include <stdbool.h>

/* One past the furthest storage unit that a tensor of this shape and these strides touches; `units` is the length of a
 * row of the innermost axis. */
bool clfd_tensor_extent(const clfd_strides *strides, uint64_t batch, uint64_t tokens, uint64_t heads, uint64_t units,
                        uint64_t *extent);

/* Rows of the cache, or of the block table, that a call of `batch` sequences may touch: all of them with
 * cache_batch_idx, 1 with shared_kv, else one for each sequence. */
uint64_t clfd_cache_rows(const clfd_attention *attention, uint64_t batch);

/* Bytes that such a call touches of K or V when no sequence is longer than `tokens`; strides, dim and type are K's or
 * V's. Of a page only its first `tokens` tokens can be touched. */
bool clfd_kv_extent(const clfd_attention *attention, const clfd_strides *strides, uint32_t dim, clfd_type type,
                    uint64_t batch, uint64_t tokens, uint64_t *bytes);

/* Bytes of the scales of K or V, and of the zeros where there are some; 0 for a type without scales. */
bool clfd_scale_extent(const clfd_attention *attention, const clfd_quant *quant, uint32_t dim, uint64_t batch,
                       uint64_t tokens, uint64_t *bytes);

/* Bytes of the bias, of the mask, and of the block table under CLFD_PAGING_TABLE; 0 where there is none. */
bool clfd_bias_extent(const clfd_attention *attention, uint64_t batch, uint64_t tokens, uint64_t *bytes);
bool clfd_mask_extent(const clfd_attention *attention, uint64_t batch, uint64_t tokens, uint64_t *bytes);
bool clfd_block_table_extent(const clfd_attention *attention, uint64_t batch, uint64_t tokens, uint64_t *bytes);

#endif

/* check_parts.h - the parts of clfd_complete_attention: each fills in the defaults of some fields, then checks them.
 *
 * Their order is that of check.c: a part may rely on what the parts before it have completed. */
#ifndef CLFD_CHECK_PARTS_H
#define CLFD_CHECK_PARTS_H

#include "report.h"
#include <clfd/attention.h>
#include <stdbool.h>

#define CLFD_MAX_INT32 0x7fffffffu /* lengths, page ids and cache rows are int32 on the device */
#define CLFD_MAX_STRIDE ((int64_t)1 << 48)

static inline uint32_t clfd_default_u32(uint32_t value, uint32_t otherwise) { return value != 0 ? value : otherwise; }

/* check_score.c: what happens to a score, and the positions and sequences that it depends on. */
clfd_status clfd_complete_score(clfd_attention *attention, const clfd_logger *logger);

/* check_cache.c: element types; rows and pages of the cache. */
clfd_status clfd_complete_types(clfd_attention *attention, const clfd_logger *logger);
clfd_status clfd_complete_cache(clfd_attention *attention, const clfd_logger *logger);

/* check_quant.c: scales of quantised K and V. */
clfd_status clfd_complete_quants(clfd_attention *attention, const clfd_logger *logger);

/* check_layout.c: where the rows of each tensor lie. */
clfd_status clfd_complete_layout(clfd_attention *attention, const clfd_logger *logger);

/* Replaces the 0s of strides by the defaults, and a broadcast by a true zero where that is allowed. The name is that of
 * the field, for the sentence. */
clfd_status clfd_complete_strides(clfd_strides *strides, const clfd_strides *defaults, bool may_broadcast,
                                  const char *name, const clfd_logger *logger);

/* The strides of a dense cache tensor with rows of `units`, in the order of kv_layout: a cache row holds max_kv_len
 * tokens, a page page_size. */
clfd_strides clfd_dense_cache(const clfd_attention *attention, uint32_t units);

/* CLFD_ERROR_OVERFLOW, and its sentence. */
clfd_status clfd_fail_overflow(const clfd_attention *attention, const char *tensor, const clfd_logger *logger);

#endif

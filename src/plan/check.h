/* check.h - every rule of a descriptor, in one place. Pure functions. */
#ifndef CLFD_CHECK_H
#define CLFD_CHECK_H

#include "report.h"
#include <clfd/attention.h>
#include <clfd/state.h>
#include <stdbool.h>

/* Validates a caller's descriptor and fills in every default, so that nothing after this asks what 0 means: scale is
 * resolved, strides are numbers (CLFD_STRIDE_BROADCAST has become 0), COUNT with size 0 has become AUTO. Statuses: see
 * clfd_plan_create. *complete is written only on success. */
clfd_status clfd_complete_attention(const clfd_attention *given, clfd_attention *complete, const clfd_logger *logger);

clfd_status clfd_complete_merge(const clfd_merge *given, clfd_merge *complete, const clfd_logger *logger);

/* One past the furthest element that a tensor of this shape and these strides touches; 0 where a count is 0. Returns
 * false where it does not fit in 63 bits. Strides are complete. */
bool clfd_tensor_extent(const clfd_strides *strides, uint64_t batch, uint64_t tokens, uint64_t heads, uint64_t dim,
                        uint64_t *elements);

#endif

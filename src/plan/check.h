/* check.h - every rule of a descriptor, in one place. Pure functions. */
#ifndef CLFD_CHECK_H
#define CLFD_CHECK_H

#include "plan/extent.h"
#include "report.h"
#include <clfd/attention.h>
#include <clfd/state.h>

#define CLFD_MAX_HEAD_DIM 576u

/* Validates a caller's descriptor and fills in every default, so that nothing after this asks what 0 means: scale is
 * resolved, strides are numbers (CLFD_STRIDE_BROADCAST has become 0), COUNT with size 0 has become AUTO; an absent bias,
 * mask, paging or scale tensor leaves its fields 0. The scales of fp8 have one group, the head dim; those of v_from_k are
 * K's, in groups of head_dim_v at most. Statuses: see clfd_plan_create. *complete is written only on success. */
clfd_status clfd_complete_attention(const clfd_attention *given, clfd_attention *complete, const clfd_logger *logger);

clfd_status clfd_complete_merge(const clfd_merge *given, clfd_merge *complete, const clfd_logger *logger);

#endif

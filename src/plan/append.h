/* append.h - an append as numbers: its rules, the bytes of its tensors, and how its kernel is specialised. Pure
 * functions. */
#ifndef CLFD_PLAN_APPEND_H
#define CLFD_PLAN_APPEND_H

#include "device/caps.h"
#include "plan/footprint.h"
#include <clfd/cache.h>

/* Validates a caller's descriptor and fills in every default, as clfd_complete_attention does, which completes the
 * descriptor of the cache too: complete->attention is `attention` then. Both are written only on success. Statuses: see
 * clfd_append_plan_create (check_append.c). */
clfd_status clfd_complete_append(const clfd_append *given, clfd_append *complete, clfd_attention *attention,
                                 const clfd_logger *logger);

/* ---- Of complete descriptors (append.c) -------------------------------------------------------------------------- */

/* What a work-item does of a row, and how many make a work-group. */
typedef struct clfd_append_pieces {
    uint32_t k_dims, v_dims; /* v_dims 0: there are no rows of V */
    uint32_t q_pairs;        /* 0: q is not rotated */
    uint32_t work_group;
} clfd_append_pieces;

clfd_append_pieces clfd_append_cut(const clfd_caps *caps, const clfd_append *append);

/* Work-items of a call on `batch` sequences. */
uint64_t clfd_append_items(const clfd_append *append, const clfd_append_pieces *pieces, uint64_t batch);

/* The -D options that specialise cl/append.cl, and the line that says what the plan is. Return what snprintf would. */
int clfd_append_options(const clfd_caps *caps, const clfd_append *append, const clfd_append_pieces *pieces, char *text,
                        size_t bytes);
int clfd_append_describe(const clfd_append *append, const clfd_append_pieces *pieces, char *text, size_t bytes);

/* The bytes that a call on `batch` sequences, at least one, may touch. K and V, of the cache and new, and q. */
clfd_footprint clfd_append_k_footprint(const clfd_append *append, uint64_t batch);
clfd_footprint clfd_append_v_footprint(const clfd_append *append, uint64_t batch);
clfd_footprint clfd_append_new_k_footprint(const clfd_append *append, uint64_t batch);
clfd_footprint clfd_append_new_v_footprint(const clfd_append *append, uint64_t batch);
clfd_footprint clfd_append_q_footprint(const clfd_append *append, uint64_t batch);

/* Scales or zeros of K or V; nothing where the type has none. */
clfd_footprint clfd_append_scale_footprint(const clfd_append *append, const clfd_quant *quant, uint32_t dim,
                                           uint64_t batch);

#endif

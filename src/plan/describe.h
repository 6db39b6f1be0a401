/* describe.h - the one line that says what a plan is. Pure functions. */
#ifndef CLFD_DESCRIBE_H
#define CLFD_DESCRIBE_H

#include "plan/schedule.h"

/* "decode_lanes f16 d128 g4 r4 passes1 splits33 lse wg128 ..." See clfd_plan_describe. Returns what snprintf would. */
int clfd_describe(const clfd_attention *attention, const clfd_tuning *tuning, const clfd_schedule *schedule, char *text,
                  size_t bytes);

/* The -D options that specialise a decode kernel (cl/decode.cl lists them), and those of the merge kernel. They hold
 * every constant and nothing else, so that plans with equal options share a program. `balanced`: the kernel of the
 * balanced schedule. Return what snprintf would. */
int clfd_decode_options(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                        const clfd_schedule *schedule, bool balanced, char *text, size_t bytes);
int clfd_merge_options(const clfd_caps *caps, clfd_partial partial, uint32_t head_dim_v, clfd_type out_type,
                       uint32_t merge_work_group, char *text, size_t bytes);

/* KV_PAGED of cl/pages.cl. 1: pages of a power of two of tokens; 2: of any number; 0: none. */
uint32_t clfd_page_class(const clfd_attention *attention);

#endif

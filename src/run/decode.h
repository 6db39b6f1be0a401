/* decode.h - the parts of a decode call: its buffers are checked, its arguments made, its kernels launched. */
#ifndef CLFD_DECODE_H
#define CLFD_DECODE_H

#include "args.h"
#include "plan/extent.h"
#include "run/buffers.h"
#include "run/plan.h"

/* One call, validated: everything that the launches need. */
typedef struct clfd_decode_call {
    clfd_buffers buffers;
    uint32_t kv_len;      /* the longest length that this call may see */
    uint32_t grid_splits; /* splits of that length */
    bool balanced;        /* by the balanced schedule */
    bool out_of_order;
    bool warmup; /* batch 1, kv_len 0; the workspace begins with the merge's list and holds nothing else */
} clfd_decode_call;

/* The inputs that only an option asks for, a bit each, in the order in which a kernel has them. */
enum {
    CLFD_WANTS_ALIBI = 1u << 0,
    CLFD_WANTS_BIAS = 1u << 1,
    CLFD_WANTS_MASK = 1u << 2,
    CLFD_WANTS_SINKS = 1u << 3,
    CLFD_WANTS_POSITIONS = 1u << 4,
    CLFD_WANTS_KV_START = 1u << 5,
    CLFD_WANTS_CACHE_ROWS = 1u << 6,
    CLFD_WANTS_BLOCK_TABLE = 1u << 7,
    CLFD_WANTS_PAGE_INDPTR = 1u << 8,
    CLFD_WANTS_K_SCALE = 1u << 9,
    CLFD_WANTS_V_SCALE = 1u << 10,
    CLFD_WANTS_K_ZERO = 1u << 11,
    CLFD_WANTS_V_ZERO = 1u << 12,
};

/* Those of a plan. */
uint32_t clfd_decode_wants(const clfd_attention *attention);

/* Bytes of q or out that a call of `batch` sequences touches. The plan has checked that the product fits. */
uint64_t clfd_row_bytes(const clfd_attention *attention, const clfd_strides *strides, uint32_t batch, uint32_t dim,
                        clfd_type type);

/* What a workspace must be for a plan. */
void clfd_workspace_range(const clfd_plan *plan, const clfd_buffer *workspace, clfd_range *range);

/* Every rule of the buffers of a call: presence, context, access, sizes, alignment, overlap. */
clfd_status clfd_check_decode_buffers(const clfd_plan *plan, const clfd_decode_call *call);

decode_args clfd_make_decode_args(const clfd_plan *plan, const clfd_decode_call *call);
merge_args clfd_make_merge_args(const clfd_plan *plan, const clfd_decode_call *call);

clfd_status clfd_launch_decode(clfd_plan *plan, cl_command_queue queue, const clfd_decode_call *call, cl_uint num_wait,
                               const cl_event *wait, cl_event *event);
clfd_status clfd_launch_merge(clfd_plan *plan, cl_command_queue queue, const clfd_decode_call *call, cl_uint num_wait,
                              const cl_event *wait, cl_event *event);

#endif

/* inputs.cl - what a decode kernel reads: its one argument list, and the inputs as one value that functions take.
 *
 * Every decode kernel has all arguments. What an option that is not compiled in would read is NULL. First, and together,
 * what every kernel needs before it can read K: args.h.
 */
#ifndef CLFD_INPUTS_CL
#define CLFD_INPUTS_CL

#include "args.h"
#include "types.cl"

#define DECODE_ARGUMENTS                                                                                               \
    const __global q_element *restrict q, const __global uchar *restrict k, const __global uchar *restrict v,          \
        const __global int *restrict kv_lens, const decode_args args, const __global float *restrict alibi,            \
        const __global uchar *restrict bias, const __global uchar *restrict mask,                                      \
        const __global float *restrict sinks, const __global int *restrict query_positions,                            \
        const __global int *restrict kv_start, const __global int *restrict cache_rows,                                \
        const __global int *restrict block_table, const __global int *restrict page_indptr,                            \
        const __global uchar *restrict k_scale, const __global uchar *restrict v_scale,                                \
        const __global uchar *restrict k_zero, const __global uchar *restrict v_zero, __global out_element *out,       \
        __global float *lse, __global uint *status, __global float *workspace

typedef struct decode_inputs {
    const __global uchar *k, *v;
    const __global int *kv_lens;
    const __global float *alibi;
    const __global uchar *bias, *mask;
    const __global float *sinks;
    const __global int *query_positions, *kv_start, *cache_rows, *block_table, *page_indptr;
    const __global uchar *k_scale, *v_scale, *k_zero, *v_zero;
    __global uint *status;
} decode_inputs;

/* Declares `in`, the inputs of the kernel that it stands in. */
#define DECODE_INPUTS(in)                                                                                              \
    decode_inputs in;                                                                                                  \
    in.k = k, in.v = v, in.kv_lens = kv_lens, in.alibi = alibi, in.bias = bias, in.mask = mask, in.sinks = sinks;      \
    in.query_positions = query_positions, in.kv_start = kv_start, in.cache_rows = cache_rows;                          \
    in.block_table = block_table, in.page_indptr = page_indptr;                                                        \
    in.k_scale = k_scale, in.v_scale = v_scale, in.k_zero = k_zero, in.v_zero = v_zero, in.status = status

static inline void status_set(const decode_args *args, const decode_inputs *in, uint flag)
{
    if (args->has_status)
        atomic_or(in->status + args->status_offset, flag);
}

#endif

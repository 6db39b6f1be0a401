/* inputs.cl - what a decode kernel reads: its one argument list, and the inputs as one value that functions take.
 *
 * First, and together, stands what every kernel needs before it can read K: args.h. What only an option reads is an
 * argument where the option is compiled in: a driver looks at each argument at every launch (NVIDIA's: 21 of them cost
 * 0.8 us more than 5). clfd_launch_decode has the same list.
 */
#ifndef CLFD_INPUTS_CL
#define CLFD_INPUTS_CL

#include "args.h"
#include "types.cl"

/* Flags that are more than 0 or 1, as such. */
#if SCORE_BIAS
#define HAS_BIAS 1
#else
#define HAS_BIAS 0
#endif
#if SCORE_MASK
#define HAS_MASK 1
#else
#define HAS_MASK 0
#endif
#if KV_PAGED
#define HAS_PAGES 1
#else
#define HAS_PAGES 0
#endif
#define TYPE_HAS_SCALES(type) ((type) >= TYPE_INT8 && (type) <= TYPE_E5M2)
#if TYPE_HAS_SCALES(K_TYPE)
#define HAS_K_SCALE 1
#else
#define HAS_K_SCALE 0
#endif
#if TYPE_HAS_SCALES(V_TYPE) && !V_FROM_K
#define HAS_V_SCALE 1
#else
#define HAS_V_SCALE 0
#endif
#if V_ZEROS && !V_FROM_K
#define HAS_V_ZERO 1
#else
#define HAS_V_ZERO 0
#endif

/* An argument and its comma where a flag is 1, else nothing; its name, else NULL. */
#define INPUT_0(type, name)
#define INPUT_1(type, name) const __global type *restrict name,
#define INPUT_(flag, type, name) INPUT_##flag(type, name)
#define INPUT(flag, type, name) INPUT_(flag, type, name)
#define GIVEN_0(name) 0
#define GIVEN_1(name) name
#define GIVEN_(flag, name) GIVEN_##flag(name)
#define GIVEN(flag, name) GIVEN_(flag, name)

/* clang-format off */
#define DECODE_ARGUMENTS                                                                                               \
    const __global q_element *restrict q, const __global uchar *restrict k, const __global uchar *restrict v,          \
    const __global int *restrict kv_lens, const decode_args args,                                                      \
    INPUT(SCORE_ALIBI, float, alibi)                                                                                   \
    INPUT(HAS_BIAS, uchar, bias)                                                                                       \
    INPUT(HAS_MASK, uchar, mask)                                                                                       \
    INPUT(DECODE_SINKS, float, sinks)                                                                                  \
    INPUT(SCORE_POSITIONS, int, query_positions)                                                                       \
    INPUT(SCORE_START, int, kv_start)                                                                                  \
    INPUT(CACHE_ROWS, int, cache_rows)                                                                                 \
    INPUT(HAS_PAGES, int, block_table)                                                                                 \
    INPUT(KV_CSR, int, page_indptr)                                                                                    \
    INPUT(HAS_K_SCALE, uchar, k_scale)                                                                                 \
    INPUT(HAS_V_SCALE, uchar, v_scale)                                                                                 \
    INPUT(K_ZEROS, uchar, k_zero)                                                                                      \
    INPUT(HAS_V_ZERO, uchar, v_zero)                                                                                   \
    __global out_element *out, __global float *lse, __global uint *status, __global float *workspace
/* clang-format on */

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
    in.k = k, in.v = v, in.kv_lens = kv_lens, in.status = status;                                                      \
    in.alibi = GIVEN(SCORE_ALIBI, alibi), in.bias = GIVEN(HAS_BIAS, bias), in.mask = GIVEN(HAS_MASK, mask);            \
    in.sinks = GIVEN(DECODE_SINKS, sinks), in.query_positions = GIVEN(SCORE_POSITIONS, query_positions);               \
    in.kv_start = GIVEN(SCORE_START, kv_start), in.cache_rows = GIVEN(CACHE_ROWS, cache_rows);                         \
    in.block_table = GIVEN(HAS_PAGES, block_table), in.page_indptr = GIVEN(KV_CSR, page_indptr);                       \
    in.k_scale = GIVEN(HAS_K_SCALE, k_scale), in.k_zero = GIVEN(K_ZEROS, k_zero);                                      \
    in.v_scale = V_FROM_K ? in.k_scale : GIVEN(HAS_V_SCALE, v_scale);                                                  \
    in.v_zero = V_FROM_K ? in.k_zero : GIVEN(HAS_V_ZERO, v_zero)

static inline void status_set(const decode_args *args, const decode_inputs *in, uint flag)
{
    if (args->has_status)
        atomic_or(in->status + args->status_offset, flag);
}

#endif

/* kv.cl - where token t of sequence b lives.
 *
 * Strided only: row = offset + b * batch + t * token + h * head, in elements, 64-bit.
 */
#ifndef CLFD_KV_CL
#define CLFD_KV_CL

#include "args.h"
#include "types.cl"

/* Tunable: V_FROM_K 1: V is the first HEAD_DIM_V elements of K, and v is never read. */
#ifndef V_FROM_K
#define V_FROM_K 0
#endif

/* A sequence's keys for one KV head: token 0 and the distance to the next token. */
typedef struct kv_rows {
    const __global kv_element *first;
    long stride;
} kv_rows;

static inline kv_rows kv_keys(const __global kv_element *k, const decode_args *args, int b, int h)
{
    kv_rows rows;
    rows.first = k + (args->k_offset + b * args->k_batch + h * args->k_head);
    rows.stride = args->k_token;
    return rows;
}

static inline kv_rows kv_values(const __global kv_element *v, const decode_args *args, int b, int h)
{
    kv_rows rows;
    rows.first = v + (args->v_offset + b * args->v_batch + h * args->v_head);
    rows.stride = args->v_token;
    return rows;
}

static inline const __global kv_element *kv_row(const kv_rows *rows, int token)
{
    return rows->first + token * rows->stride;
}

#endif

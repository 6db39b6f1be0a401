/* decode.cl - what every decode family shares: which item a work-group computes, which query rows belong to it, and how
 * it writes a row's state. Included by the families; holds no kernel.
 *
 * An item is (sequence, KV heads, split, pass): one pass reads the split's keys once for DECODE_ROWS query rows of each
 * of DECODE_HEADS heads. The rows of a KV head are its q_len * ratio query rows, query by query.
 *
 * Tunables, given by the host:
 *   HEAD_DIM, HEAD_DIM_V  elements of a row of K and of V, multiples of 8
 *   DECODE_ROWS           query rows per block
 *   DECODE_HEADS          KV heads per item at most; args.heads says how many, a divisor of their number
 */
#ifndef CLFD_DECODE_CL
#define CLFD_DECODE_CL

#include "args.h"
#include "kv.cl"
#include "score.cl"
#include "split.cl"
#include "state.cl"
#include "types.cl"

#ifndef HEAD_DIM
#define HEAD_DIM 128
#endif
#ifndef HEAD_DIM_V
#define HEAD_DIM_V HEAD_DIM
#endif
#ifndef DECODE_ROWS
#define DECODE_ROWS 1
#endif
#ifndef DECODE_HEADS
#define DECODE_HEADS 1
#endif

/* The one argument list of the decode kernels. */
#define DECODE_ARGUMENTS                                                                                               \
    const __global q_element *restrict q, const __global kv_element *restrict k,                                       \
        const __global kv_element *restrict v, const __global int *restrict kv_lens, __global out_element *out,        \
        __global float *lse, __global float *workspace, const decode_args args

typedef struct decode_item {
    int batch, kv_head, split, first_row; /* kv_head: the first one */
    int kv_len;
    int begin, end; /* the split's tokens that some row of the block may see */
} decode_item;

typedef struct decode_row {
    int query, head;
    int limit; /* keys that this row may see: those below */
} decode_row;

/* A row of the block. Rows past the last one repeat it and are not stored. */
static inline decode_row decode_find_row(const decode_args *args, const decode_item *item, int r)
{
    const int x = min(item->first_row + r, args->q_len * args->ratio - 1);
    decode_row row;
    row.query = x / args->ratio;
    row.head = item->kv_head * args->ratio + x % args->ratio;
    row.limit = score_limit(args, item->kv_len, row.query);
    return row;
}

static inline bool decode_row_exists(const decode_args *args, const decode_item *item, int r)
{
    return item->first_row + r < args->q_len * args->ratio;
}

/* Item `index` of the grid: passes vary fastest, so that those that share a split run together and share the cache.
 * False where the split owns no tokens and has nothing to write. */
static inline bool decode_find_item(const decode_args *args, const __global int *kv_lens, uint index, decode_item *item)
{
    const int pass = index % (uint)args->passes;
    index /= (uint)args->passes;
    item->split = index % (uint)args->split.grid_splits;
    index /= (uint)args->split.grid_splits;
    const uint head_groups = (uint)(args->num_kv_heads / args->heads);
    item->kv_head = index % head_groups * args->heads;
    item->batch = index / head_groups;
    item->first_row = pass * DECODE_ROWS;
    item->kv_len = split_kv_len(&args->split, kv_lens, args->kv_lens_offset + item->batch);
    /* A sequence without keys still has split 0: somebody must write its empty state. */
    if (item->split >= max(split_count(&args->split, item->kv_len), 1))
        return false;
    const decode_row last = decode_find_row(args, item, DECODE_ROWS - 1);
    item->begin = split_begin(&args->split, item->kv_len, item->split);
    item->end = min(split_begin(&args->split, item->kv_len, item->split + 1), last.limit);
    return true;
}

static inline long decode_q_index(const decode_args *args, const decode_item *item, const decode_row *row)
{
    return args->q_offset + item->batch * args->q_batch + row->query * args->q_token + row->head * args->q_head;
}

/* Index of (row, split) among the partial states. */
static inline long decode_slot(const decode_args *args, const decode_item *item, const decode_row *row)
{
    const long query_row =
        ((long)item->batch * args->q_len + row->query) * (args->num_kv_heads * args->ratio) + row->head;
    return query_row * args->partial_slots + item->split;
}

/* Writes element d of a row's normalised o: to out under a direct write, else to the workspace. */
static inline void decode_store_o(const decode_args *args, const decode_item *item, const decode_row *row,
                                  __global out_element *out, __global float *workspace, int d, float value)
{
    if (args->direct)
        out_store(out,
                  args->out_offset + item->batch * args->out_batch + row->query * args->out_token +
                      row->head * args->out_head + d,
                  value);
    else
        workspace[args->partial_o_offset + decode_slot(args, item, row) * HEAD_DIM_V + d] = value;
}

/* Writes a row's statistics (m in log2 units): to lse under a direct write, else to the workspace. */
static inline void decode_store_stats(const decode_args *args, const decode_item *item, const decode_row *row,
                                      __global float *lse, __global float *workspace, float m, float l)
{
    if (!args->direct)
        state_store(workspace, args->stats_offset + decode_slot(args, item, row), args->stats_stride, m, l);
    else if (args->has_lse)
        lse[args->lse_offset + ((long)item->batch * args->q_len + row->query) * (args->num_kv_heads * args->ratio) +
            row->head] = state_lse(state_natural(m), l);
}

#endif

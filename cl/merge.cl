/* merge.cl - merging partial states: the reduce kernel, which folds the splits of each row and writes out and lse, and
 * the pairwise operator (o1, S1) (+) (o2, S2). One work-item owns 4 dims of a row and walks the row's states in order:
 * no barrier, no local memory. Two steps: first the maximum and the sum of the weights, then the weighted sum of o.
 *
 * Tunables, given by the host:
 *   HEAD_DIM_V  dims of a row, a multiple of 8
 *   MERGE_WG    work-items per work-group
 */
#ifndef Q_TYPE
#define Q_TYPE 1
#endif
#ifndef OUT_TYPE
#define OUT_TYPE 1
#endif
#include "args.h"
#include "split.cl"
#include "state.cl"
#include "types.cl"

#ifndef HEAD_DIM_V
#define HEAD_DIM_V 128
#endif
#ifndef MERGE_WG
#define MERGE_WG 64
#endif

#define QUADS (HEAD_DIM_V / 4)

/* What the weights of a row's states add up to. */
typedef struct merge_total {
    float max, sum; /* natural units; sum is relative to exp(max) */
} merge_total;

/* The weight of a state in its row's mean: 1 where it is the only one, so that a merge of one changes no bit. */
static inline float merge_weight(float2 state, merge_total total)
{
    const float share = state_share(state, total.max);
    return share == total.sum ? 1.0f : share / total.sum;
}

/* sum + weight * o, but untouched where the weight is 0: the o of an empty state is not used, whatever it holds. */
static inline float4 merge_add(float4 sum, float weight, float4 o) { return weight == 0.0f ? sum : fma(weight, o, sum); }

static inline void merge_write(__global out_element *out, long index, float4 value, bool empty)
{
    out_store(out, index, empty ? 0.0f : value.s0);
    out_store(out, index + 1, empty ? 0.0f : value.s1);
    out_store(out, index + 2, empty ? 0.0f : value.s2);
    out_store(out, index + 3, empty ? 0.0f : value.s3);
}

static inline void merge_write_stats(const merge_stats_args *args, __global float *lse, __global float *m,
                                     __global float *l, long row, merge_total total)
{
    if (args->has_lse)
        lse[args->lse_offset + row] = state_lse(total.max, total.sum);
    if (args->has_m)
        m[args->m_offset + row] = total.sum == total.sum ? total.max : NAN;
    if (args->has_l)
        l[args->l_offset + row] = total.sum;
}

/* States are [row][slot]; row = (sequence * q_len + query) * num_q_heads + head. */
__attribute__((reqd_work_group_size(MERGE_WG, 1, 1))) __kernel void
merge(const __global float *o, const __global float *stat0, const __global float *stat1, const __global int *kv_lens,
      __global out_element *out, __global float *lse, __global float *m, __global float *l, const merge_args args)
{
    const uint item = (uint)get_global_id(0);
    const int row = (int)(item / QUADS), d = (int)(item % QUADS) * 4;
    if (row >= args.num_rows)
        return;
    const int head = row % args.num_q_heads, query = row / args.num_q_heads % args.q_len;
    const int sequence = row / args.num_q_heads / args.q_len;
    const int count = args.all_slots
                          ? args.partial_slots
                          : split_count(&args.split, split_kv_len(&args.split, kv_lens, args.kv_lens_offset + sequence));
    const long first = (long)row * args.partial_slots;
    const __global float *const row_stat0 = stat0 + args.stat0_offset + first;
    const __global float *const row_stat1 = stat1 + args.stat1_offset + first;
    const __global float *const row_o = o + args.o_offset + first * HEAD_DIM_V + d;

    merge_total total = {-INFINITY, 0.0f};
    for (int i = 0; i < count; i++)
        total.max = state_max(total.max, state_load(row_stat0, row_stat1, i).x);
    for (int i = 0; i < count; i++)
        total.sum += state_share(state_load(row_stat0, row_stat1, i), total.max);

    /* -0 is what adds to nothing: 0 would turn the -0 of a merge of one into +0. */
    float4 sum = -0.0f;
    for (int i = 0; i < count; i++)
        sum = merge_add(sum, merge_weight(state_load(row_stat0, row_stat1, i), total),
                        *(const __global float4 *)(row_o + (long)i * HEAD_DIM_V));
    merge_write(out,
                args.out_offset + sequence * args.out_batch + query * args.out_token + head * args.out_head + d, sum,
                total.sum == 0.0f);
    if (d == 0)
        merge_write_stats(&args.stats, lse, m, l, row, total);
}

/* merged = a (+) b for each row; one work-group per row. merged may be a or b: a work-item reads its dims before it
 * writes them, and the barrier keeps the statistics until every work-item of the row has read them. */
__attribute__((reqd_work_group_size(MERGE_WG, 1, 1))) __kernel void
merge_pair(const __global float *o1, const __global float *stat0_1, const __global float *stat1_1,
           const __global float *o2, const __global float *stat0_2, const __global float *stat1_2, __global float *o,
           __global float *lse, __global float *m, __global float *l, const merge_pair_args args)
{
    const long row = (long)get_group_id(0);
    const float2 a = state_load(stat0_1 + args.stat0_1_offset, stat1_1 + args.stat1_1_offset, row);
    const float2 b = state_load(stat0_2 + args.stat0_2_offset, stat1_2 + args.stat1_2_offset, row);
    merge_total total;
    total.max = state_max(a.x, b.x);
    total.sum = state_share(a, total.max) + state_share(b, total.max);
    const float weight1 = merge_weight(a, total), weight2 = merge_weight(b, total);

    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int quad = (int)get_local_id(0); quad < QUADS; quad += MERGE_WG) {
        const long index = row * HEAD_DIM_V + quad * 4;
        float4 sum = merge_add(-0.0f, weight1, *(const __global float4 *)(o1 + args.o1_offset + index));
        sum = merge_add(sum, weight2, *(const __global float4 *)(o2 + args.o2_offset + index));
        *(__global float4 *)(o + args.out_offset + index) = total.sum == 0.0f ? (float4)(0.0f) : sum;
    }
    if (get_local_id(0) == 0)
        merge_write_stats(&args.stats, lse, m, l, row, total);
}

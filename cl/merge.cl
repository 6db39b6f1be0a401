/* merge.cl - merging partial states: the reduce kernel, which folds the splits of each row and writes out and lse, and
 * the pairwise operator (o1, S1) (+) (o2, S2).
 *
 * One work-group per row. Two steps: first the greatest exponent and the greatest share, then the sums of the weights
 * and of weight * o. The sums run in MERGE_STREAMS streams, state i in stream i mod MERGE_STREAMS, that meet in a tree,
 * so that the order of summation depends on the number of states alone: not on the work-group or on the capacity.
 *
 * Where the states of a row lie, args.list says. Sinks are merged here, once, at the end: partial states have none.
 *
 * Tunables, given by the host:
 *   HEAD_DIM_V  dims of a row, a multiple of 8
 *   MERGE_WG    work-items per work-group, a power of two
 */
#ifndef Q_TYPE
#define Q_TYPE 1
#endif
#ifndef OUT_TYPE
#define OUT_TYPE 1
#endif
#include "args.h"
#include "state.cl"
#include "types.cl"

#ifndef HEAD_DIM_V
#define HEAD_DIM_V 128
#endif
#ifndef MERGE_WG
#define MERGE_WG 64
#endif

#define MERGE_STREAMS 8
#define QUADS (HEAD_DIM_V / 4)
/* Quads of a work-item: all of them where it is alone, which then weighs every state once. */
#define MERGE_QUADS (MERGE_WG == 1 ? QUADS : 1)
/* Work-items that share a quad of dims, each with its part of the streams: as many as local memory holds easily. */
#define MERGE_GROUPS (MERGE_WG < 32 ? 1 : QUADS > 64 ? 4 : 8)
#define GROUP_STREAMS (MERGE_STREAMS / MERGE_GROUPS)
#define MERGE_BATCH (GROUP_STREAMS > 4 ? GROUP_STREAMS : 4) /* states whose loads are in flight together */

/* What all states of a row are measured against: the greatest exponent, and the greatest share under it. */
typedef struct merge_scale {
    float max, share;
} merge_scale;

/* The weight of a state relative to the heaviest one: 1 for that, 0 for an empty one. A merge of one state, or of one
 * among empty ones, thus divides and multiplies by 1 only and changes no bit. */
static inline float merge_weight(float2 state, merge_scale scale)
{
    const float share = state_share(state, scale.max);
    return share == 0.0f ? 0.0f : share == scale.share ? 1.0f : share / scale.share;
}

/* sum + weight * o, but untouched where the state is empty: its o is not used, whatever it holds. A state whose weight is
 * only too small for a float counts: a NaN in its o is a NaN in the mean. The sum starts at -0, which adds to nothing: +0
 * would turn the -0 of a merge of one into +0. */
static inline float4 merge_add(float4 sum, float weight, float2 state, float4 o)
{
    return state.y == 0.0f ? sum : fma(weight, o, sum);
}

/* An element of the merged o. */
static inline float merge_mean(float sum, float weights)
{
    return weights == 0.0f ? 0.0f : weights == 1.0f ? sum : sum / weights;
}

/* Writes the statistics of a merged row, whose log-sum-exp is `s`. */
static inline void merge_write_stats(const merge_stats_args *args, __global float *lse, __global float *m,
                                     __global float *l, long row, merge_scale scale, float weights, float s)
{
    const float sum = weights * scale.share;
    if (args->has_lse)
        lse[args->lse_offset + row] = s;
    if (args->has_m)
        m[args->m_offset + row] = sum == sum ? scale.max : NAN;
    if (args->has_l)
        l[args->l_offset + row] = sum;
}

/* The greatest of `value` over the work-group; `scratch` has MERGE_WG places. */
static inline float merge_max(__local float *scratch, float value)
{
    const int item = (int)get_local_id(0);
    scratch[item] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int width = MERGE_WG / 2; width > 0; width /= 2) {
        if (item < width)
            scratch[item] = state_max(scratch[item], scratch[item + width]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float max = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return max;
}

/* Sums of one work-item: its streams' weighted o, and their weights. */
typedef struct merge_sums {
    float4 o[MERGE_QUADS];
    float weights;
} merge_sums;

/* The states of a row: `count` of them, state i at slot first_slot, or else at `slot` + i * stride. */
typedef struct merge_row {
    int count;
    long first_slot, slot, stride;
} merge_row;

static inline long merge_slot(const merge_row *states, int i)
{
    return i == 0 ? states->first_slot : states->slot + i * states->stride;
}

/* The states of row (sequence, query, head), which is number `row`. None where it needs no merge. */
static inline merge_row merge_find_row(const merge_args *args, const __global int *list, int row, int sequence,
                                       int query, int head)
{
    merge_row states;
    if (args->list == MERGE_SHARES) {
        const int groups = args->num_q_heads / args->ratio / args->heads, kv_head = head / args->ratio;
        const int x = query * args->ratio + head % args->ratio;
        const long block = kv_head / args->heads * args->passes + x / args->block_rows;
        const long block_states = args->heads * args->block_rows; /* of a work-group, in one of its two slots */
        const int first = list[2 * sequence], last = list[2 * sequence + 1];
        states.stride = 2 * block_states * (groups * args->passes);
        states.slot = first * states.stride + 2 * block_states * block + kv_head % args->heads * args->block_rows +
                      x % args->block_rows;
        states.first_slot = states.slot + block_states;
        states.count = first == last ? 0 : last - first + 1;
        return states;
    }
    states.count = args->list == MERGE_ALL      ? args->partial_slots
                   : args->list == MERGE_SHARED ? list[0]
                                                : list[sequence];
    states.stride = 1;
    states.first_slot = states.slot = (long)row * args->partial_slots;
    return states;
}

/* The sums of streams group, group + MERGE_GROUPS, ... over states i = group, group + MERGE_GROUPS, ... < count. o: of the
 * first quad. */
static inline merge_sums merge_streams(const __global float *stat0, const __global float *stat1,
                                       const __global float *o, const merge_row *states, int group, merge_scale scale)
{
    const int count = states->count;
    merge_sums sum[GROUP_STREAMS];

    for (int s = 0; s < GROUP_STREAMS; s++) {
        for (int quad = 0; quad < MERGE_QUADS; quad++)
            sum[s].o[quad] = -0.0f;
        sum[s].weights = 0.0f;
    }
    for (int base = group; base < count; base += MERGE_GROUPS * MERGE_BATCH) {
        float2 state[MERGE_BATCH];
        float weight[MERGE_BATCH];
        for (int quad = 0; quad < MERGE_QUADS; quad++) {
            float4 batch[MERGE_BATCH];
#pragma unroll
            for (int u = 0; u < MERGE_BATCH; u++) {
                const long slot = merge_slot(states, min(base + u * MERGE_GROUPS, count - 1));
                batch[u] = ((const __global float4 *)(o + slot * HEAD_DIM_V))[quad];
                if (quad == 0)
                    state[u] = state_load(stat0, stat1, slot);
            }
#pragma unroll
            for (int u = 0; u < MERGE_BATCH; u++) {
                merge_sums *const own = &sum[u % GROUP_STREAMS];
                if (quad == 0) { /* the first loads are on their way */
                    state[u] = base + u * MERGE_GROUPS < count ? state[u] : (float2)(-INFINITY, 0.0f);
                    weight[u] = merge_weight(state[u], scale);
                    own->weights += weight[u];
                }
                own->o[quad] = merge_add(own->o[quad], weight[u], state[u], batch[u]);
            }
        }
    }
    for (int step = GROUP_STREAMS / 2; step > 0; step /= 2)
        for (int s = 0; s < step; s++) {
            for (int quad = 0; quad < MERGE_QUADS; quad++)
                sum[s].o[quad] += sum[s + step].o[quad];
            sum[s].weights += sum[s + step].weights;
        }
    return sum[0];
}

/* Row = (sequence * q_len + query) * num_q_heads + head. */
__attribute__((reqd_work_group_size(MERGE_WG, 1, 1))) __kernel void
merge(const __global float *o, const __global float *stat0, const __global float *stat1, const __global int *list,
      const __global float *sinks, __global out_element *out, __global float *lse, __global float *m, __global float *l,
      const merge_args args)
{
    __local float4 sums[MERGE_GROUPS * QUADS];
    __local float weights[MERGE_GROUPS];
    __local float scratch[MERGE_WG];
    const int row = (int)get_group_id(0), item = (int)get_local_id(0);
    const int head = row % args.num_q_heads, query = row / args.num_q_heads % args.q_len;
    const int sequence = row / args.num_q_heads / args.q_len;
    const merge_row states = merge_find_row(&args, list + args.list_offset, row, sequence, query, head);
    const __global float *const row_stat0 = stat0 + args.stat0_offset;
    const __global float *const row_stat1 = stat1 + args.stat1_offset;
    const __global float *const row_o = o + args.o_offset;
    merge_scale scale;

    if (states.count == 0)
        return;
    float greatest = -INFINITY;
    for (int i = item; i < states.count; i += MERGE_WG)
        greatest = state_max(greatest, state_load(row_stat0, row_stat1, merge_slot(&states, i)).x);
    scale.max = merge_max(scratch, greatest);
    greatest = 0.0f;
    for (int i = item; i < states.count; i += MERGE_WG)
        greatest =
            state_max(greatest, state_share(state_load(row_stat0, row_stat1, merge_slot(&states, i)), scale.max));
    scale.share = merge_max(scratch, greatest);

    for (int x = item * MERGE_QUADS; x < MERGE_GROUPS * QUADS; x += MERGE_WG * MERGE_QUADS) {
        const merge_sums own = merge_streams(row_stat0, row_stat1, row_o + x % QUADS * 4, &states, x / QUADS, scale);
        for (int quad = 0; quad < MERGE_QUADS; quad++)
            sums[x + quad] = own.o[quad];
        if (x % QUADS == 0)
            weights[x / QUADS] = own.weights;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = MERGE_GROUPS / 2; step > 0; step /= 2) {
        for (int x = item; x < step * QUADS; x += MERGE_WG) {
            sums[x] += sums[x + step * QUADS];
            if (x % QUADS == 0)
                weights[x / QUADS] += weights[x / QUADS + step];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const long index = args.out_offset + sequence * args.out_batch + query * args.out_token + head * args.out_head;
    const __local float *const flat = (const __local float *)sums;
    float2 sunk = (float2)(state_lse(scale.max, weights[0] * scale.share), 1.0f);
    if (args.has_sinks)
        sunk = state_sink(sunk.x, sinks[args.sinks_offset + head]);
    for (int d = item; d < HEAD_DIM_V; d += MERGE_WG)
        out_store(out, index + d, merge_mean(flat[d], weights[0]) * sunk.y);
    if (item == 0)
        merge_write_stats(&args.stats, lse, m, l, row, scale, weights[0], sunk.x);
}

/* merged = a (+) b for each row. merged may be a or b: a work-item reads its dims before it writes them, and the barrier
 * keeps the statistics until every work-item of the row has read them. */
__attribute__((reqd_work_group_size(MERGE_WG, 1, 1))) __kernel void
merge_pair(const __global float *o1, const __global float *stat0_1, const __global float *stat1_1,
           const __global float *o2, const __global float *stat0_2, const __global float *stat1_2, __global float *o,
           __global float *lse, __global float *m, __global float *l, const merge_pair_args args)
{
    const long row = (long)get_group_id(0);
    const float2 a = state_load(stat0_1 + args.stat0_1_offset, stat1_1 + args.stat1_1_offset, row);
    const float2 b = state_load(stat0_2 + args.stat0_2_offset, stat1_2 + args.stat1_2_offset, row);
    merge_scale scale;
    scale.max = state_max(a.x, b.x);
    scale.share = state_max(state_share(a, scale.max), state_share(b, scale.max));
    const float weight1 = merge_weight(a, scale), weight2 = merge_weight(b, scale), weights = weight1 + weight2;

    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int quad = (int)get_local_id(0); quad < QUADS; quad += MERGE_WG) {
        const long index = row * HEAD_DIM_V + quad * 4;
        float4 sum = merge_add(-0.0f, weight1, a, *(const __global float4 *)(o1 + args.o1_offset + index));
        sum = merge_add(sum, weight2, b, *(const __global float4 *)(o2 + args.o2_offset + index));
        *(__global float4 *)(o + args.out_offset + index) =
            (float4)(merge_mean(sum.x, weights), merge_mean(sum.y, weights), merge_mean(sum.z, weights),
                     merge_mean(sum.w, weights));
    }
    if (get_local_id(0) == 0)
        merge_write_stats(&args.stats, lse, m, l, row, scale, weights, state_lse(scale.max, weights * scale.share));
}

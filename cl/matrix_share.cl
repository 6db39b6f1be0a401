/* matrix_share.cl - many splits merged by several work-groups. The rows of a warp are cut into slices of a few dims; the
 * warps that are done shortly before the last one see to some each, and look at the states of all splits until none is
 * missing. Nothing depends on them: whoever has looked for long leaves its slices to the last one, which waits for
 * nobody. A slice's states are added in the same order whoever does it.
 *
 * (An H200, 64 splits of 1024 tokens: 21.3 us; 21.8 where the last one merges what others made of 8 splits each.)
 *
 * Tunables: those of matrix.cl, and for tests:
 *   SHARE_PATIENCE  how often one looks before it leaves its slices to the last one
 */
#ifndef CLFD_MATRIX_SHARE_CL
#define CLFD_MATRIX_SHARE_CL

#include "matrix_states.cl"

#if MATRIX_SHARES
#define SHARERS 16 /* work-groups that wait, at most */
#ifndef SHARE_PATIENCE
#define SHARE_PATIENCE 100 /* each a way to the second-level cache and back */
#endif
#define SHARE_BATCH 8 /* states of a slice that a lane has in registers at once */

/* The float4 of a row that a slice has: a power of two, so that a warp has a slice for each sharer, or more of 32. */
#define SLICES_FIT(quads) (FOLD_TURNS(DECODE_ROWS) * ((HEAD_DIM_V / 4 + (quads)-1) / (quads)) <= SHARERS)
#define SLICE_QUADS                                                                                                    \
    (SLICES_FIT(1) ? 1 : SLICES_FIT(2) ? 2 : SLICES_FIT(4) ? 4 : SLICES_FIT(8) ? 8 : SLICES_FIT(16) ? 16 : 32)
#define SLICE_STREAMS (32 / SLICE_QUADS) /* lanes that add states of the same dims */
#define ROW_SLICES ((HEAD_DIM_V / 4 + SLICE_QUADS - 1) / SLICE_QUADS)

/* The merge of a warp's rows. */
typedef struct matrix_sharing {
    __global ulong *counter;
    int slices, sharers;
    int sharer; /* this warp's number among them */
    bool sure;  /* what is missing is on its way */
} matrix_sharing;

/* Who completes the counter leaves it at zero. */
MATRIX_INLINE void matrix_end_sharing(const matrix_sharing *sharing, const decode_item *item, ulong word)
{
    if (MERGE_ARRIVED(word) == item->splits && (MERGE_SEEN(word) | MERGE_LEFT(word)) == (1u << sharing->sharers) - 1)
        *sharing->counter = 0;
}

/* Whether all states are marked or written, so that to look at them tells which are there. */
MATRIX_INLINE bool matrix_may_look(const decode_item *item, ulong word)
{
    return (MERGE_MARKS ? MERGE_BEGUN(word) : MERGE_ARRIVED(word)) == item->splits;
}

/* Merges a slice of the warp's rows; false if something was missing for too long. */
MATRIX_INLINE bool matrix_merge_slice(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                      const matrix_place *at, matrix_sharing *sharing, int slice,
                                      __global out_element *out, __global float *lse, __global float *workspace)
{
    const int count = matrix_opaque(item->splits), part = slice % ROW_SLICES;
    const int own = at->lane / SLICE_QUADS; /* the lane's first state */
    const int d = (part * SLICE_QUADS + at->lane % SLICE_QUADS) * 4;
    const decode_row row = decode_find_row(args, item, slice / ROW_SLICES * MATRIX_WARPS + at->warp);
    const long place = row.state + own;
    const bool says = !sharing->sure;
    float top = -INFINITY, total = 0.0f;
    float4 sum = 0.0f;
    ulong word = 0;

#pragma unroll 1
    for (int first = own; first - own < count; first += SHARE_BATCH * SLICE_STREAMS) {
        const long here = place + matrix_opaque(first - own); /* and from there on by constants */
        const __global float *const stats = workspace + (args->stats_offset + here);
        const __global float *const from =
            workspace + (args->partial_o_offset + here * HEAD_DIM_V) + min(d, HEAD_DIM_V - 4);
        float2 read[SHARE_BATCH];
        float4 o[SHARE_BATCH], batch_sum;
        bool missing[SHARE_BATCH];
        float batch_top, batch_total;

#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < SHARE_BATCH; i++) { /* the empty state, where there is none */
            missing[i] = first + i * SLICE_STREAMS < count;
            read[i] = -INFINITY;
            o[i] = 0.0f;
        }
#pragma unroll 1
        for (int look = 0;; look++) {
            bool any = false;
#pragma unroll MATRIX_UNROLL
            for (int i = 0; i < SHARE_BATCH; i++) {
                read[i] = state_read_if(stats, i * SLICE_STREAMS, args->stats_stride, missing[i], read[i]);
                o[i] = ptx_read4_if(from + i * SLICE_STREAMS * HEAD_DIM_V, missing[i], o[i]);
            }
#pragma unroll MATRIX_UNROLL
            for (int i = 0; i < SHARE_BATCH; i++) {
                missing[i] = state_has(read[i], MISSING) || matrix_misses(o[i]);
                any |= missing[i];
            }
            any = matrix_any(at, any);
            if (!any || look == 0) { /* the first time in any case: it brings the instructions near */
                float2 states[SHARE_BATCH];
                batch_top = top;
#pragma unroll MATRIX_UNROLL
                for (int i = 0; i < SHARE_BATCH; i++) {
                    states[i] = state_weighted(read[i]);
                    batch_top = state_max(batch_top, states[i].x);
                }
#pragma unroll MATRIX_UNROLL
                for (int mask = SLICE_QUADS; mask < 32; mask *= 2)
                    batch_top = state_max(batch_top, matrix_xor(at, batch_top, mask));
                const float before = state_weight_in(top, batch_top, STATE_LOG2E);
                batch_total = total * before;
                batch_sum = sum * before;
#pragma unroll MATRIX_UNROLL
                for (int i = 0; i < SHARE_BATCH; i++) {
                    const float weight = state_weight_in(states[i].x, batch_top, STATE_LOG2E) * states[i].y;
                    batch_total += weight;
                    batch_sum = fma(weight, o[i], batch_sum);
                }
            }
            if (!any)
                break;
            if (!sharing->sure && look == SHARE_PATIENCE)
                return false;
        }
        top = batch_top;
        total = batch_total;
        sum = batch_sum;
    }
    if (says && at->lane == 0) /* the answer is waited for when all else is done */
        word = ptx_or(sharing->counter, MERGE_ONE_SEES << sharing->sharer);
#pragma unroll MATRIX_UNROLL
    for (int mask = SLICE_QUADS; mask < 32; mask *= 2) {
        total += matrix_xor(at, total, mask);
        sum.x += matrix_xor(at, sum.x, mask);
        sum.y += matrix_xor(at, sum.y, mask);
        sum.z += matrix_xor(at, sum.z, mask);
        sum.w += matrix_xor(at, sum.w, mask);
    }
    const float sink_share = decode_sink_share_natural(args, in, item, &row, top, total);
    sum *= state_inverse(total);
    if (own == 0)
        decode_store_quads(args, item, &row, out, workspace, d, 0, &sum, 1, sink_share);
    if (part == 0 && at->lane == 0)
        decode_store_natural_stats(args, in, item, &row, lse, workspace, top, total);
    sharing->sure = true;
    if (says && at->lane == 0)
        matrix_end_sharing(sharing, item, word | MERGE_ONE_SEES << sharing->sharer);
    return true;
}

/* Does this warp's part of the merge of the item's splits. `item`: where the result goes. `before`: the counter before
 * this warp counted itself in. */
MATRIX_INLINE void matrix_share(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                const matrix_place *at, __global ulong *counter, ulong before,
                                __global out_element *out, __global float *lse, __global float *workspace)
{
    const int rows = (min(DECODE_ROWS, args->rows - item->first_row) + MATRIX_WARPS - 1 - at->warp) / MATRIX_WARPS;
    const int last = item->splits - 1;
    matrix_sharing sharing = {counter, rows * ROW_SLICES, min(rows * ROW_SLICES, SHARERS)};
    uint parts; /* bit i: slice i, and those whole numbers of sharers on */
    bool may_look = true;

    sharing.sharer = MERGE_ARRIVED(before) - (last - sharing.sharers);
    sharing.sure = MERGE_ARRIVED(before) == last;
    if (sharing.sharer < 0)
        return;
    if (sharing.sure) {
        parts = MERGE_LEFT(before);
        if (at->lane == 0)
            matrix_end_sharing(&sharing, item, before + 1);
    } else {
        parts = 1u << sharing.sharer;
        may_look = matrix_may_look(item, before);
        for (int look = 0; !may_look && look < SHARE_PATIENCE; look++)
            may_look = !matrix_any(at, !matrix_may_look(item, ptx_acquire(counter)));
    }
#pragma unroll 1
    for (;;) {
        bool merges = may_look;
        ulong word = 0;
#pragma unroll 1
        for (; merges && parts != 0; parts &= parts - 1)
#pragma unroll 1
            for (int slice = 31 - clz(parts & -parts); merges && slice < sharing.slices; slice += sharing.sharers)
                merges = matrix_merge_slice(args, in, item, at, &sharing, slice, out, lse, workspace);
        if (merges)
            return;
        if (at->lane == 0) {
            word = ptx_or(counter, MERGE_ONE_LEAVES << sharing.sharer);
            matrix_end_sharing(&sharing, item, word | MERGE_ONE_LEAVES << sharing.sharer);
        }
        if (matrix_from(at, (uint)MERGE_ARRIVED(word), 0) != (uint)item->splits)
            return; /* the last one will find it */
        ptx_acquire(counter);
        sharing.sure = may_look = true;
        parts = 1u << sharing.sharer;
    }
}
#endif

#endif

/* decode_matrix.cl - matrix units: eight or sixteen query rows cost what one does, so that K and V decide the time.
 *
 * A warp of 32 work-items takes TILE tokens at a time and holds the states of all rows of the block: S^T = K Q^T with K as
 * the left operand, then O^T += V^T P^T with V as the left one. Its tiles come through a ring of its own in local memory,
 * by copies that run ahead (matrix_ring.cl), so that no barrier stands in the loop. The warps of a work-group, and of all
 * splits of a sequence, take tiles in turn: together they walk one window over the cache. At the end the warps of a
 * work-group meet in local memory. Of many rows each warp holds its own, and shares the tiles: matrix_block.cl.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef DECODE_BALANCED
#define DECODE_BALANCED 0
#endif
#if DECODE_BALANCED
#define DECODE_WORK_SPACE __local
#define DECODE_WORK_SHARED MATRIX_WG
#define DECODE_WORK_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define DECODE_WORK_OWNER (get_local_id(0) == 0)
#if MATRIX_PARTS > 1 /* whose stages leave less room */
#define SCHEDULE_BATCH 512
#endif
#endif
#include "matrix_block.cl"
#include "matrix_digits.cl"
#include "matrix_merge.cl"
#include "matrix_softmax.cl"

#if MATRIX_PARTS
#define LOCAL_BYTES BLOCK_BYTES
#else
#define LOCAL_BYTES (MATRIX_WARPS * WARP_BYTES)
#endif

MATRIX_INLINE void matrix_clear(matrix_stream *stream)
{
    stream->least = 0x1p-126f;
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < LANE_ROWS; i++) {
            stream->m[b][i] = -INFINITY;
            stream->l[b][i] = 0.0f;
            stream->unit[b][i] = 0x1p-126f;
        }
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < V_STEPS; c++)
            stream->o[b][c] = 0.0f;
    }
}

/* Goes through the warp's tiles of an item, whose scales it fills in when copies are on their way. */
MATRIX_INLINE void matrix_walk(const decode_args *args, const decode_inputs *in, decode_item *item,
                               const matrix_place *start, const __global q_element *q, bool careful,
                               __global float *workspace, matrix_stream *stream)
{
    /* Tokens from the warp's tile to the end. A window of far positions may begin anywhere behind it. */
    int left = max(item->end - item->begin, 0) - start->warp * TILE;
    matrix_ring ring;
    matrix_queries queries;
    matrix_scales scales;

    matrix_open_ring(args, in, item, start, left, &ring);
    decode_scale_item(args, in, item);
    const matrix_place own = matrix_place_again(start), *const at = &own;
    matrix_find_rows(args, in, item, at, &queries);
    matrix_load_queries(q, args, item, at, &queries);
    /* Counted by the work-group's first warp, and down, because a token past the last one may not fit in an int. */
    matrix_steps steps = matrix_begin_steps(item);
    int rest = item->end - item->begin;
    bool ordered = careful || !matrix_mark_states(args, item, at, workspace);
    /* In two parts with the fence behind the marks between them, because a branch for it within costs codes 3 %. */
    for (int pause = ordered ? 0 : matrix_fence_place(item, at, left);; pause = 0, ordered = true) {
        for (int step; rest > 0; rest -= step, left -= step) {
            float4 scores[MATRIX_BLOCKS], weights[MATRIX_BLOCKS];
            matrix_values values;
            uint slot;

            if (MATRIX_SKIPS(left - pause))
                break;
            step = matrix_next_tile(&steps);
            slot = matrix_take_slot(&ring);
            matrix_read_key_scales(at, slot, &scales);
#if K_INTEGERS
            matrix_dot_digits(q, args, item, at, slot, &queries, &scales, careful, scores);
            matrix_refill(args, in, at, &ring, MATRIX_SLOTS % 2 == 0);
#else
            matrix_keys keys;
            matrix_load_keys(at, slot, &keys);
            matrix_refill(args, in, at, &ring, MATRIX_SLOTS % 2 == 0);
            matrix_dot(at, &queries, &keys, scores);
#endif
            matrix_score(args, in, item, at, &queries, &scales, &ring, left, scores);
            slot = matrix_take_slot(&ring);
            matrix_read_value_scales(at, slot, &scales);
            matrix_load_values(at, slot, &values);
            matrix_refill(args, in, at, &ring, MATRIX_SLOTS % 2 != 0);
            matrix_raise(at, &scales, scores, stream);
            matrix_weigh(scores, stream, weights);
            matrix_accumulate(at, &values, &scales, scores, weights, careful, stream);
        }
        if (ordered)
            break;
        matrix_fence(args, item, at, workspace);
    }
    matrix_wait(0);
    matrix_sync();
}

/* No reqd_work_group_size: with it NVIDIA's compiler takes no limit of registers, which several work-groups need to live on
 * a unit together. */
__kernel void decode_matrix(DECODE_ARGUMENTS)
{
    __local uchar rings[LOCAL_BYTES] __attribute__((aligned(128))); /* as rows of banks are */
#if !CLFD_PTX
    __local uint exchange[MATRIX_EXCHANGE_WORDS];
#endif
    DECODE_WORK_SPACE decode_work work;
    decode_item item;
    matrix_place at;
    DECODE_INPUTS(in);

    at.warp = (int)((uint)get_local_id(0) / 32);
    matrix_set_lane(&at, (int)((uint)get_local_id(0) % 32));
#if MATRIX_PARTS
    at.first_row = at.warp / MATRIX_PARTS * WARP_ROWS;
    at.part = at.warp % MATRIX_PARTS;
    at.ring = rings;
#else
    at.first_row = at.part = 0;
    at.ring = rings + at.warp * WARP_BYTES;
#endif
    at.base = matrix_address(at.ring);
#if !CLFD_PTX
    at.exchange = exchange;
#endif
#if !CLFD_PTX && !MATRIX_PARTS
    /* Loads of whole pieces reach behind rows of GGML's blocks. What lies there goes nowhere, but is not left undefined. */
    for (int i = at.lane; i < (int)WARP_BYTES; i += 32)
        at.ring[i] = 0;
    matrix_sync();
#endif
    decode_start(&args, &in, &work);
    DECODE_EACH_ITEM(&args, &in, &work, &item, workspace)
    {
#if MATRIX_PARTS
        rows_stream stream;
#else
        matrix_stream stream;
#endif
        /* With care once more where that is needed. */
#pragma unroll 1
        for (int careful = 0; careful < 2; careful++) {
            decode_item again = item; /* of which nothing is prepared before the loop: the first copies must not wait */
            again.begin = matrix_opaque(item.begin);
            again.first_row = matrix_opaque(item.first_row);
#if MATRIX_PARTS
            rows_clear(&stream);
            decode_scale_item(&args, &in, &again);
            block_walk(&args, &in, &again, &at, q, careful, &stream);
            item.v_scale = again.v_scale;
            if (!matrix_meet(&at, rows_are_irregular(&stream)))
                break;
#else
            matrix_clear(&stream);
            matrix_walk(&args, &in, &again, &at, q, careful, workspace, &stream);
            item.v_scale = again.v_scale;
            if (!matrix_is_irregular(&at, &stream))
                break;
#endif
        }
#if MATRIX_PARTS
        block_finish(&args, &in, &item, &at, rings, &stream, out, lse, workspace);
#else
        matrix_finish(&args, &in, &item, &at, rings, &stream, out, lse, workspace);
#endif
    }
}

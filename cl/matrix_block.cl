/* matrix_block.cl - many query rows: the warps of a work-group share each tile of K and V, which so is read once for all
 * rows of the block.
 *
 * A set of warps has rows of its own, 16 or a multiple, and goes through all tiles of the item, so that no states meet at
 * the end. Where the dims of a row are more than a warp has registers for, the MATRIX_PARTS warps of a set divide them: of
 * K, and then they add up their scores in local memory, and of o. Every step belongs to one of them in turn.
 *
 * Tiles come in stages of STAGE_TILES, through a ring that the whole work-group fills and waits for: matrix_stages.cl.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_BLOCK_CL
#define CLFD_MATRIX_BLOCK_CL

#include "matrix_rows.cl"

#if MATRIX_PARTS

/* Behind the slots: what each warp has of its scores, where several make one. */
#define PARTS_BEGIN (MATRIX_SLOTS * STAGE_BYTES)
#define PARTS_BYTES (MATRIX_PARTS > 1 ? MATRIX_WARPS * 2 * ROW_BLOCKS * 32 * 16 : 0)
#define STAGES_BYTES (PARTS_BEGIN + PARTS_BYTES)

/* At the end a warp puts four rows of what it has of o where stages were. */
#define WRITE_STRIDE (V_STEPS * 16 + 4)
#define WRITE_BYTES (MATRIX_WARPS * 4 * WRITE_STRIDE * 4)
#define BLOCK_BYTES (STAGES_BYTES > WRITE_BYTES ? STAGES_BYTES : WRITE_BYTES)

/* Adds up what the warps of a set have of their scores. They write again only after the next stage's meeting. */
MATRIX_INLINE void block_add_parts(const matrix_place *at, rows_scores *sums)
{
#if MATRIX_PARTS > 1
    enum { WORDS = 2 * ROW_BLOCKS };
    __local float4 *const parts = (__local float4 *)(at->ring + PARTS_BEGIN) + at->lane;
    const int first = (at->warp - at->part) * WORDS;

#pragma unroll MATRIX_UNROLL
    for (int x = 0; x < WORDS; x++)
        parts[(first + at->part * WORDS + x) * 32] = sums->s[x / 2][x % 2];
    matrix_meet_warps(at, MATRIX_PARTS);
#pragma unroll MATRIX_UNROLL
    for (int x = 0; x < WORDS; x++) {
        float4 sum = parts[(first + x) * 32];
#pragma unroll MATRIX_UNROLL
        for (int p = 1; p < MATRIX_PARTS; p++)
            sum += parts[(first + p * WORDS + x) * 32];
        sums->s[x / 2][x % 2] = sum;
    }
#endif
}

#if KV_PAGED
/* The tokens of a tile that have a page, a bit each. */
MATRIX_INLINE uint block_find_pages(const decode_args *args, const decode_inputs *in, const matrix_place *at,
                                    const matrix_stages *ring, int end, int left)
{
    return matrix_ballot(at, kv_find(args, in, &ring->cache, end - left + min(at->lane & 15, left - 1)).valid);
}
#endif

/* o += weights * V for a stage; `careful` is a constant. */
MATRIX_INLINE void block_accumulate(const matrix_place *at, uint stage, bool careful, const rows_scores *scores,
                                    rows_stream *stream)
{
#pragma unroll MATRIX_UNROLL
    for (int t = 0; t < STAGE_TILES; t++) {
        const uint tile = stage + V_STAGE_BEGIN + t * TILE * V_STAGE_PITCH;
        uint4 first[ROW_BLOCKS], rest[ROW_BLOCKS];
        rows_weigh(&scores[t], stream, first, rest);
        if (careful)
            rows_accumulate_carefully(at, tile, &scores[t], first, rest, stream);
        else
            rows_accumulate(at, tile, first, rest, stream);
    }
}

/* Goes through the item's tiles. */
MATRIX_INLINE void block_walk(const decode_args *args, const decode_inputs *in, const decode_item *item,
                              const matrix_place *at, const __global q_element *q, bool careful, rows_stream *stream)
{
    const bool rests = CLFD_PTX && (at->first_row >= DECODE_ROWS || !decode_row_exists(args, item, at->first_row));
    matrix_stages stages;
    rows_queries queries;

    matrix_open_stages(args, in, item, at, &stages);
    rows_load(q, args, in, item, at, &queries);
    for (int left = item->end - item->begin; left > 0; left -= item->stride) {
        bool holes;
        const uint stage = matrix_take_stage(args, in, item, at, &stages, left, &holes);
        rows_scores scores[STAGE_TILES];

        if (rests)
            continue;
            /* The tiles of a stage together, so that what is done with one need not wait for the other. */
#pragma unroll MATRIX_UNROLL
        for (int t = 0; t < STAGE_TILES; t++)
            rows_dot(at, &queries, stage + t * TILE * K_PITCH, &scores[t]);
        block_add_parts(at, &scores[0]);
#pragma unroll MATRIX_UNROLL
        for (int t = 0; t < STAGE_TILES; t++) {
            uint there = 0xffffu;
#if KV_PAGED
            if (holes)
                there = block_find_pages(args, in, at, &stages, item->end, left - t * TILE);
#endif
            rows_score(args, in, item, at, &queries, there, left - t * TILE, &scores[t]);
        }
        rows_raise(at, scores, STAGE_TILES, stream);
        if (careful)
            block_accumulate(at, stage, true, scores, stream);
        else
            block_accumulate(at, stage, false, scores, stream);
    }
    matrix_wait(0);
}

/* Writes this warp's part of row r, which lies at `o`. */
MATRIX_INLINE void block_write_row(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                   const matrix_place *at, const __local float *o, int r, float m, float l,
                                   __global out_element *out, __global float *lse, __global float *workspace)
{
    const decode_row row = decode_find_row(args, item, r);
    const float sink_share = decode_sink_share(args, in, item, &row, m, l);

    for (int x = at->lane * 4; x < V_STEPS * 16; x += 128) {
        const float4 sum = *(const __local float4 *)(o + x);
        const float4 value = (float4)(state_normalise(sum.x, l), state_normalise(sum.y, l), state_normalise(sum.z, l),
                                      state_normalise(sum.w, l));
        decode_store_quads(args, item, &row, out, workspace, matrix_step(at, x / 16) * 16 + x % 16, 0, &value, 1,
                           sink_share);
    }
    if (at->lane == 0 && at->part == 0)
        decode_store_stats(args, in, item, &row, lse, workspace, m, l);
}

/* Writes this warp's rows, four at a time. */
MATRIX_INLINE void block_finish(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                const matrix_place *at, __local uchar *rings, const rows_stream *stream,
                                __global out_element *out, __global float *lse, __global float *workspace)
{
    __local float *const rows = (__local float *)rings + at->warp * 4 * WRITE_STRIDE;
    __local float *const own = rows + at->row % 4 * WRITE_STRIDE + 2 * at->pair;

#pragma unroll MATRIX_UNROLL
    for (int x = 0; x < 4 * ROW_BLOCKS; x++) {
        const int b = x / 4, i = x / 2 % 2, half_block = x % 2;
        const float m = stream->m[b][i];
        float l = stream->l[b][i];
#pragma unroll MATRIX_UNROLL
        for (int mask = 1; mask < 4; mask *= 2)
            l += matrix_xor(at, l, mask);
        if (at->row / 4 == half_block)
#pragma unroll MATRIX_UNROLL
            for (int c = 0; c < 2 * V_STEPS; c++)
                *(__local float2 *)(own + c * 8) = i == 0 ? stream->o[b][c].xy : stream->o[b][c].zw;
        matrix_sync();
#pragma unroll 1
        for (int p = 0; p < 4; p++) {
            const int row = half_block * 4 + p, r = at->first_row + b * 16 + i * 8 + row;
            const float row_m = as_float(matrix_from(at, as_uint(m), row * 4));
            const float row_l = as_float(matrix_from(at, as_uint(l), row * 4));
            if (r < DECODE_ROWS && decode_row_exists(args, item, r))
                block_write_row(args, in, item, at, rows + p * WRITE_STRIDE, r, row_m, row_l, out, lse, workspace);
        }
        matrix_sync();
    }
    if (DECODE_BALANCED)
        barrier(CLK_LOCAL_MEM_FENCE);
}

#endif

#endif

/* decode_vector.cl - the reference family: one work-item computes one item with explicit vectors; no barrier, no local
 * memory. It runs on any device at a work-group limit of 1.
 *
 * Two forms: the plain one, below, for every compiler; and vector_blocked.cl, the fast one on CPUs.
 *
 * Tunables, given by the host:
 *   VECTOR_TILE  1: the plain form; more: the blocked form's tokens per tile. See vector_tile.cl and vector_wide.cl
 */
#define STATE_POLY 1
#include "decode_store.cl"

#ifndef VECTOR_TILE
#define VECTOR_TILE 1
#endif

#include "vector_tile.cl"

#if VECTOR_TILE > 1
#include "vector_blocked.cl"
#else

#define CHUNKS (HEAD_DIM / 8)
#define CHUNKS_V (HEAD_DIM_V / 8)

/* What the work-item holds of its rows. */
typedef struct vector_rows {
    score_row score[DECODE_ROWS];
    float8 q[DECODE_ROWS][CHUNKS], o[DECODE_ROWS][CHUNKS_V];
    float m[DECODE_ROWS], l[DECODE_ROWS];
} vector_rows;

static inline void vector_begin(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                const __global q_element *q, vector_rows *rows)
{
    for (int r = 0; r < DECODE_ROWS; r++) {
        const decode_row row = decode_find_row(args, item, r);
        const long index = decode_q_index(args, item, &row);
        for (int c = 0; c < CHUNKS; c++) {
            float values[8];
            for (int e = 0; e < 8; e++)
                values[e] = q_load(q, index + c * 8 + e);
            rows->q[r][c] = vload8(0, values);
        }
        for (int c = 0; c < CHUNKS_V; c++)
            rows->o[r][c] = 0.0f;
        rows->m[r] = -INFINITY;
        rows->l[r] = 0.0f;
        rows->score[r] = decode_score_row(args, in, item, r);
    }
}

/* Takes token 0 of the tile into row r. */
static inline void vector_update(const decode_item *item, const vector_tile *tile, vector_rows *rows, int r)
{
    float8 sum = 0.0f;
    for (int c = 0; c < CHUNKS; c++)
        sum = fma(rows->q[r][c], vector_key8(tile, 0, c * 8), sum);
    const float4 half_sum = sum.lo + sum.hi;
    const float dot = half_sum.x + half_sum.z + (half_sum.y + half_sum.w);
    const float score = score_key(tile->args, tile->in, &rows->score[r], tile->first, item->k_scale, dot);
    if (score == -INFINITY)
        return;
    if (!(score <= rows->m[r])) {
        const float shrink = state_weight(rows->m[r], score);
        for (int c = 0; c < CHUNKS_V; c++)
            rows->o[r][c] *= shrink;
        rows->l[r] *= shrink;
        rows->m[r] = score;
    }
    const float p = state_weight(score, rows->m[r]);
    rows->l[r] += p;
    for (int c = 0; c < CHUNKS_V; c++)
        rows->o[r][c] = fma(p, vector_value8(tile, 0, c * 8), rows->o[r][c]);
}

static inline void vector_finish(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                 const vector_rows *rows, int r, __global out_element *out, __global float *lse,
                                 __global float *workspace)
{
    const decode_row row = decode_find_row(args, item, r);
    const float share = decode_sink_share(args, in, item, &row, rows->m[r], rows->l[r]);
    for (int c = 0; c < CHUNKS_V; c++) {
        float value[8];
        vstore8(rows->o[r][c], 0, value);
        for (int e = 0; e < 8; e++)
            decode_store_o(args, item, &row, out, workspace, c * 8 + e, state_normalise(value[e], rows->l[r]), share);
    }
    decode_store_stats(args, in, item, &row, lse, workspace, rows->m[r], rows->l[r]);
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void decode_vector(DECODE_ARGUMENTS)
{
    vector_rows rows;
    vector_tile tile;
    decode_work work;
    decode_item item;
    DECODE_INPUTS(in);

    tile.args = &args;
    tile.in = &in;
    decode_start(&args, &in, &work);
    DECODE_EACH_ITEM(&args, &in, &work, &item, workspace)
    {
        const kv_cache cache = kv_open(&args, &in, item.batch, item.sequence.cache_row, item.kv_head);
        decode_scale_item(&args, &in, &item);
        vector_begin(&args, &in, &item, q, &rows);
        for (int t = item.begin; t < item.end; t++) {
            vector_find(&tile, &cache, t, item.end);
            if (!tile.places[0].valid)
                continue;
            vector_point(&tile, &cache, 0, 1);
            for (int r = 0; r < DECODE_ROWS; r++)
                vector_update(&item, &tile, &rows, r);
        }
        for (int r = 0; r < DECODE_ROWS; r++)
            if (decode_row_exists(&args, &item, r))
                vector_finish(&args, &in, &item, &rows, r, out, lse, workspace);
    }
}
#endif

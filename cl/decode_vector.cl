/* decode_vector.cl - the reference family: one work-item computes one item with explicit vectors; no barrier, no local
 * memory. It runs on any device at a work-group limit of 1.
 *
 * Two forms: the plain one, below, for every compiler; and vector_blocked.cl, the fast one on CPUs.
 *
 * Tunables, given by the host:
 *   VECTOR_TILE  1: the plain form; more: the blocked form's tokens per tile. See vector_tile.cl and vector_wide.cl
 */
#define STATE_POLY 1
#include "decode.cl"

#ifndef VECTOR_TILE
#define VECTOR_TILE 1
#endif

#if VECTOR_TILE > 1
#include "vector_blocked.cl"
#else

#define CHUNKS (HEAD_DIM / 8)
#define CHUNKS_V (HEAD_DIM_V / 8)

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void decode_vector(DECODE_ARGUMENTS)
{
    decode_item item;
    decode_row row[DECODE_ROWS];
    float8 qr[DECODE_ROWS][CHUNKS], o[DECODE_ROWS][CHUNKS_V];
    float m[DECODE_ROWS], l[DECODE_ROWS];

    if (!decode_find_item(&args, kv_lens, (uint)get_group_id(0), &item))
        return;
    for (int r = 0; r < DECODE_ROWS; r++) {
        row[r] = decode_find_row(&args, &item, r);
        const long index = decode_q_index(&args, &item, &row[r]);
        for (int c = 0; c < CHUNKS; c++) {
            float values[8];
            for (int e = 0; e < 8; e++)
                values[e] = q_load(q, index + c * 8 + e);
            qr[r][c] = vload8(0, values);
        }
        for (int c = 0; c < CHUNKS_V; c++)
            o[r][c] = 0.0f;
        m[r] = -INFINITY;
        l[r] = 0.0f;
    }
    const float factor = score_factor(&args);
    const kv_rows keys = kv_keys(k, &args, item.batch, item.kv_head);
    const kv_rows values = V_FROM_K ? keys : kv_values(v, &args, item.batch, item.kv_head);
    for (int t = item.begin; t < item.end; t++) {
        const __global kv_element *kt = kv_row(&keys, t), *vt = kv_row(&values, t);
        for (int r = 0; r < DECODE_ROWS; r++) {
            float8 sum = 0.0f;
            for (int c = 0; c < CHUNKS; c++)
                sum = fma(qr[r][c], kv_unpack8(kv_load8(kt, c * 8)), sum);
            const float4 half_sum = sum.lo + sum.hi;
            const float score = (half_sum.x + half_sum.z + (half_sum.y + half_sum.w)) * factor;
            if (t >= row[r].limit || score == -INFINITY)
                continue;
            if (!(score <= m[r])) {
                const float shrink = state_weight(m[r], score);
                for (int c = 0; c < CHUNKS_V; c++)
                    o[r][c] *= shrink;
                l[r] *= shrink;
                m[r] = score;
            }
            const float p = state_weight(score, m[r]);
            l[r] += p;
            for (int c = 0; c < CHUNKS_V; c++)
                o[r][c] = fma(p, kv_unpack8(kv_load8(vt, c * 8)), o[r][c]);
        }
    }
    for (int r = 0; r < DECODE_ROWS; r++) {
        if (!decode_row_exists(&args, &item, r))
            continue;
        for (int c = 0; c < CHUNKS_V; c++) {
            float value[8];
            vstore8(o[r][c], 0, value);
            for (int e = 0; e < 8; e++)
                decode_store_o(&args, &item, &row[r], out, workspace, c * 8 + e, state_normalise(value[e], l[r]));
        }
        decode_store_stats(&args, &item, &row[r], lse, workspace, m[r], l[r]);
    }
}
#endif

/* matrix_rows.cl - the online softmax of a warp that has 16 rows, or several times as many, of its own: S = Q K^T with Q as
 * the left operand, O += P V with P as the left one. A product of scores then lies as the operand that its weights are in
 * the next one, which spares their transposition, and K and V are right operands.
 *
 * Sums and scores of 16 rows by 8 tokens come in fours: row at->row (x, y) and at->row + 8 (z, w), tokens 2 pair (x, z) and
 * 2 pair + 1 (y, w). Those of o likewise, by 8 dims. When maxima are raised, and why weights are two elements, is said in
 * matrix_softmax.cl.
 *
 * Tunables: those of matrix.cl, and
 *   WEIGHT_REST  1: weights are two elements; 0: one, so that o errs by 2^-12 (f16) of the greatest |V|
 */
#ifndef CLFD_MATRIX_ROWS_CL
#define CLFD_MATRIX_ROWS_CL

#include "matrix_softmax.cl"
#include "matrix_stages.cl"

#if MATRIX_PARTS

#ifndef WEIGHT_REST
#define WEIGHT_REST 1
#endif

#define ROW_BLOCKS (WARP_ROWS / 16)

/* What a lane holds of its warp's query rows: operands of q, and what their scores need. */
typedef struct rows_queries {
    uint4 q[ROW_BLOCKS][K_STEPS];
    score_row rows[ROW_BLOCKS][2];
} rows_queries;

/* And of their states: the maxima, its own part of the sums, its dims of o. */
typedef struct rows_stream {
    float m[ROW_BLOCKS][2], l[ROW_BLOCKS][2];
    float4 o[ROW_BLOCKS][2 * V_STEPS];
} rows_stream;

/* Scores of a tile of 16 tokens. */
typedef struct rows_scores {
    float4 s[ROW_BLOCKS][2];
} rows_scores;

MATRIX_INLINE void rows_clear(rows_stream *stream)
{
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < ROW_BLOCKS; b++) {
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < 2; i++) {
            stream->m[b][i] = -INFINITY;
            stream->l[b][i] = 0.0f;
        }
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < 2 * V_STEPS; c++)
            stream->o[b][c] = 0.0f;
    }
}

/* Whether infinities or NaN have come into o. */
MATRIX_INLINE bool rows_are_irregular(const rows_stream *stream)
{
    float4 sum = 0.0f; /* NaN from the first of them on */

#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < ROW_BLOCKS; b++)
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < 2 * V_STEPS; c++)
            sum = fma(stream->o[b][c], 0.0f, sum);
    return sum.x != 0.0f || sum.y != 0.0f || sum.z != 0.0f || sum.w != 0.0f;
}

MATRIX_INLINE void rows_load(const __global q_element *q, const decode_args *args, const decode_inputs *in,
                             const decode_item *item, const matrix_place *at, rows_queries *queries)
{
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < ROW_BLOCKS; b++)
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < 2; i++) {
            const int r = at->first_row + b * 16 + i * 8 + at->row, block_row = min(r, DECODE_ROWS - 1);
            const decode_row row = decode_find_row(args, item, block_row);
            const __global q_element *const own =
                q + (decode_q_index(args, item, &row) + matrix_key_dim(0, at->pair, 0));
#pragma unroll MATRIX_UNROLL
            for (int c = 0; c < K_STEPS; c++) {
                const int step = matrix_step(at, c);
                const uint low = matrix_load_q(own, r < DECODE_ROWS, step, 0);
                const uint high = matrix_load_q(own, r < DECODE_ROWS, step, 2);
                if (i == 0) {
                    queries->q[b][c].x = low;
                    queries->q[b][c].z = high;
                } else {
                    queries->q[b][c].y = low;
                    queries->q[b][c].w = high;
                }
            }
            queries->rows[b][i] = decode_score_row(args, in, item, block_row);
            queries->rows[b][i].limit = min(queries->rows[b][i].limit, item->end);
        }
}

/* The products of q and K of the tile whose keys begin at `tile`. */
MATRIX_INLINE void rows_dot(const matrix_place *at, const rows_queries *queries, uint tile, rows_scores *sums)
{
    const int row = (at->lane & 7) + (at->lane >> 4) * 8;

#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < ROW_BLOCKS; b++)
        sums->s[b][0] = sums->s[b][1] = 0.0f;
#pragma unroll MATRIX_UNROLL
    for (int c = 0; c < K_STEPS; c++) {
        const uint4 keys =
            matrix_load(at, at->base + tile + matrix_step_piece(at, row, c, at->lane >> 3 & 1, K_BYTES, K_PITCH));
#pragma unroll MATRIX_UNROLL
        for (int b = 0; b < ROW_BLOCKS; b++) {
            matrix_multiply(at, &sums->s[b][0], queries->q[b][c], keys.xy);
            matrix_multiply(at, &sums->s[b][1], queries->q[b][c], keys.zw);
        }
    }
}

/* Turns products into scores: -inf where the row may not see the token. `left` is from the tile's first token to the
 * item's end; `there` has a bit for each token that has a page. */
MATRIX_INLINE void rows_score(const decode_args *args, const decode_inputs *in, const decode_item *item,
                              const matrix_place *at, const rows_queries *queries, uint there, int left,
                              rows_scores *sums)
{
    const int base = item->end - max(left, 0); /* relative to it, because a token past the last may not fit in an int */

#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < ROW_BLOCKS; b++)
#pragma unroll MATRIX_UNROLL
        for (int n = 0; n < 2; n++) {
            float scores[4] = {sums->s[b][n].x, sums->s[b][n].y, sums->s[b][n].z, sums->s[b][n].w};
#pragma unroll MATRIX_UNROLL
            for (int i = 0; i < 4; i++) {
                const score_row *const row = &queries->rows[b][i / 2];
                const int ahead = n * 8 + 2 * at->pair + i % 2;
                bool visible = ahead < row->limit - base;
#if KV_PAGED
                visible &= (there >> ahead & 1u) != 0;
#endif
#if SCORE_WINDOW || SCORE_START
                visible &= ahead >= row->first - base;
#endif
#if SCORE_BY_KEY
                scores[i] = visible ? score_key(args, in, row, base + ahead, item->k_scale, scores[i]) : -INFINITY;
#else
                scores[i] = visible ? score_value(args, in, row, base, item->k_scale, scores[i]) : -INFINITY;
#endif
            }
            sums->s[b][n] = (float4)(scores[0], scores[1], scores[2], scores[3]);
        }
}

/* Raises the maxima of the rows that scores of some tiles exceed by too much. */
MATRIX_INLINE void rows_raise(const matrix_place *at, const rows_scores *scores, int tiles, rows_stream *stream)
{
    float top[ROW_BLOCKS][2];
    bool raises = false;

#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < ROW_BLOCKS; b++) {
        top[b][0] = top[b][1] = -INFINITY;
#pragma unroll MATRIX_UNROLL
        for (int t = 0; t < tiles; t++)
#pragma unroll MATRIX_UNROLL
            for (int n = 0; n < 2; n++) {
                const float4 s = scores[t].s[b][n];
                top[b][0] = state_max(top[b][0], state_max(s.x, s.y));
                top[b][1] = state_max(top[b][1], state_max(s.z, s.w));
            }
        raises |= top[b][0] - stream->m[b][0] > RAISE_ABOVE || top[b][1] - stream->m[b][1] > RAISE_ABOVE;
    }
    if (!matrix_any(at, raises))
        return;
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < ROW_BLOCKS; b++) {
        float shrink[2];
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < 2; i++) {
            const float m = stream->m[b][i];
            float row_top = top[b][i];
#pragma unroll MATRIX_UNROLL
            for (int mask = 1; mask < 4; mask *= 2)
                row_top = state_max(row_top, matrix_xor(at, row_top, mask));
            const float raised = row_top - m > RAISE_ABOVE ? row_top - RAISE_TO : m;
            shrink[i] = state_weight(m, raised);
            stream->m[b][i] = raised;
            stream->l[b][i] *= shrink[i];
        }
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < 2 * V_STEPS; c++)
            stream->o[b][c] *= (float4)(shrink[0], shrink[0], shrink[1], shrink[1]);
    }
}

/* The weights of a tile's scores under the maxima, as operands: as elements, and, with WEIGHT_REST, what these lack. */
MATRIX_INLINE void rows_weigh(const rows_scores *scores, rows_stream *stream, uint4 *first, uint4 *rest)
{
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < ROW_BLOCKS; b++) {
        const float upper = state_base(stream->m[b][0]), lower = state_base(stream->m[b][1]);
        uint words[4], lacks[4];
#pragma unroll MATRIX_UNROLL
        for (int n = 0; n < 2; n++) {
            const float4 s = scores->s[b][n];
            const float4 p = (float4)(state_exp2(s.x - upper), state_exp2(s.y - upper), state_exp2(s.z - lower),
                                      state_exp2(s.w - lower));
            stream->l[b][0] += p.x + p.y;
            stream->l[b][1] += p.z + p.w;
            words[2 * n] = matrix_pack(p.x, p.y);
            words[2 * n + 1] = matrix_pack(p.z, p.w);
            const float2 taken = matrix_unpack(words[2 * n]), taken_lower = matrix_unpack(words[2 * n + 1]);
            lacks[2 * n] = matrix_pack(p.x - taken.x, p.y - taken.y);
            lacks[2 * n + 1] = matrix_pack(p.z - taken_lower.x, p.w - taken_lower.y);
        }
        first[b] = (uint4)(words[0], words[1], words[2], words[3]);
        rest[b] = (uint4)(lacks[0], lacks[1], lacks[2], lacks[3]);
    }
}

/* A lane's part of step c of the tile whose values begin at `tile`: of 8 dims (x, y), and of the next 8 (z, w). */
MATRIX_INLINE uint4 rows_load_values(const matrix_place *at, uint tile, int c)
{
    return matrix_load_transposed(
        at, at->base + tile + matrix_step_piece(at, at->lane & 15, c, at->lane >> 4, V_STAGE_BYTES, V_STAGE_PITCH));
}

/* o += weights * V for that tile. */
MATRIX_INLINE void rows_accumulate(const matrix_place *at, uint tile, const uint4 *first, const uint4 *rest,
                                   rows_stream *stream)
{
#pragma unroll MATRIX_UNROLL
    for (int c = 0; c < V_STEPS; c++) {
        const uint4 v = rows_load_values(at, tile, c);
#pragma unroll MATRIX_UNROLL
        for (int b = 0; b < ROW_BLOCKS; b++) {
            matrix_multiply(at, &stream->o[b][2 * c], first[b], v.xy);
            matrix_multiply(at, &stream->o[b][2 * c + 1], first[b], v.zw);
        }
        if (WEIGHT_REST)
#pragma unroll MATRIX_UNROLL
            for (int b = 0; b < ROW_BLOCKS; b++) {
                matrix_multiply(at, &stream->o[b][2 * c], rest[b], v.xy);
                matrix_multiply(at, &stream->o[b][2 * c + 1], rest[b], v.zw);
            }
    }
}

/* The same whatever V holds: matrix_irregular.cl. Nobody unrolls the loop, and o changes places from turn to turn, so that
 * it takes no registers and little room. */
MATRIX_INLINE void rows_accumulate_carefully(const matrix_place *at, uint tile, const rows_scores *scores,
                                             const uint4 *first, const uint4 *rest, rows_stream *stream)
{
    uint4 sees[ROW_BLOCKS];

#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < ROW_BLOCKS; b++) {
        uint words[4];
#pragma unroll MATRIX_UNROLL
        for (int n = 0; n < 2; n++) {
            const float4 s = scores->s[b][n];
            const float upper = state_base(stream->m[b][0]), lower = state_base(stream->m[b][1]);
            words[2 * n] =
                matrix_pack(matrix_visible(s.x, state_exp2(s.x - upper)), matrix_visible(s.y, state_exp2(s.y - upper)));
            words[2 * n + 1] =
                matrix_pack(matrix_visible(s.z, state_exp2(s.z - lower)), matrix_visible(s.w, state_exp2(s.w - lower)));
        }
        sees[b] = (uint4)(words[0], words[1], words[2], words[3]);
    }
#pragma unroll 1
    for (int turn = 0; turn < V_STEPS; turn++) {
        const uint4 v = rows_load_values(at, tile, turn);
        const uint4 kinds = (uint4)(matrix_kinds(v.x), matrix_kinds(v.y), matrix_kinds(v.z), matrix_kinds(v.w));
        const uint4 finite = (uint4)(matrix_finite(v.x), matrix_finite(v.y), matrix_finite(v.z), matrix_finite(v.w));
#pragma unroll MATRIX_UNROLL
        for (int b = 0; b < ROW_BLOCKS; b++) {
            float4 o[2] = {stream->o[b][0], stream->o[b][1]};
#pragma unroll MATRIX_UNROLL
            for (int n = 0; n < 2; n++) {
                float4 counts = 0.0f;
                matrix_multiply(at, &counts, sees[b], n == 0 ? kinds.xy : kinds.zw);
                o[n] = (float4)(matrix_add_kinds(o[n].x, counts.x), matrix_add_kinds(o[n].y, counts.y),
                                matrix_add_kinds(o[n].z, counts.z), matrix_add_kinds(o[n].w, counts.w));
                matrix_multiply(at, &o[n], first[b], n == 0 ? finite.xy : finite.zw);
                if (WEIGHT_REST)
                    matrix_multiply(at, &o[n], rest[b], n == 0 ? finite.xy : finite.zw);
            }
#pragma unroll MATRIX_UNROLL
            for (int c = 2; c < 2 * V_STEPS; c++)
                stream->o[b][c - 2] = stream->o[b][c];
            stream->o[b][2 * V_STEPS - 2] = o[0];
            stream->o[b][2 * V_STEPS - 1] = o[1];
        }
    }
}

#endif

#endif

/* vector_blocked.cl - the blocked form of decode_vector.cl, for CPUs.
 *
 * Tokens are walked in tiles of VECTOR_TILE. The query rows go over a tile in register blocks of 4, 2 or 1 rows. Scores:
 * VECTOR_WIDTH sums, of rows times keys, run over the dims side by side, two keys at a time, which keeps the loads in the
 * order of the addresses; one reduction tree makes them a vector of scores, laid out [row][key]. Maximum, exp and sum
 * work on such vectors. Values: the rows times as many vectors of dims as fill the registers run over the keys.
 *
 * K and V are read straight from memory, once per register block, and converted on the way. What decides the speed is
 * that the rows of a later tile are prefetched meanwhile, a few lines at each step, in the order of their addresses.
 *
 * The KV heads of the item take their turns within a tile, so that a cache with the heads of a token side by side is read
 * page after page; one head alone would touch a new page every few hundred bytes.
 */
#include "decode.cl"
#include "vector_tile.cl"
#include "vector_wide.cl"

#define WIDES (HEAD_DIM / VECTOR_WIDTH)
#define WIDES_V (HEAD_DIM_V / VECTOR_WIDTH)

/* DECODE_ROWS rows are blocks of four, then one of two, then one of one: VISIT(block, first row, rows) for each. */
#define ROW_BLOCKS (DECODE_ROWS / 4 + DECODE_ROWS % 4 / 2 + DECODE_ROWS % 2)
#define EACH_ROW_BLOCK(VISIT) ROWS_IN_FOURS(VISIT) ROWS_IN_TWO(VISIT) ROWS_IN_ONE(VISIT)
#define ROWS_IN_FOURS(VISIT)
#define ROWS_IN_TWO(VISIT)
#define ROWS_IN_ONE(VISIT)
#if DECODE_ROWS / 4 > 0
#undef ROWS_IN_FOURS
#define ROWS_IN_FOURS(VISIT)                                                                                           \
    for (int four = 0; four < DECODE_ROWS / 4; four++)                                                                 \
        VISIT(four, four * 4, 4);
#endif
#if DECODE_ROWS % 4 > 1
#undef ROWS_IN_TWO
#define ROWS_IN_TWO(VISIT) VISIT(DECODE_ROWS / 4, DECODE_ROWS / 4 * 4, 2);
#endif
#if DECODE_ROWS % 2 > 0
#undef ROWS_IN_ONE
#define ROWS_IN_ONE(VISIT) VISIT(ROW_BLOCKS - 1, DECODE_ROWS - 1, 1);
#endif

/* What the item keeps of a KV head. m and l are laid out [row][key]: m is equal over the keys, l to be summed over them. */
typedef struct vector_head {
    wide q[DECODE_ROWS * WIDES], o[DECODE_ROWS * WIDES_V];
    wide m[ROW_BLOCKS], l[ROW_BLOCKS];
} vector_head;

/* ---- One block of rows over a tile; `rows` is a constant wherever these are called ------------------------------- */

/* The dot products of `rows` rows of q with VECTOR_WIDTH / rows keys from key `first` on, as [row][key]. */
VECTOR_INLINE wide vector_dots(const wide *q, const vector_tile *tile, int first, int rows, bool prefetch)
{
    const int keys = VECTOR_WIDTH / rows;
    wide sums[VECTOR_WIDTH];
#pragma unroll
    for (int i = 0; i < VECTOR_WIDTH; i++)
        sums[i] = 0.0f;
#pragma unroll
    for (int pair = 0; pair < keys; pair += 2) {
        if (prefetch)
            vector_prefetch(tile->next_k + first + pair, 2, ROW_LINES(HEAD_DIM), 0, 2 * ROW_LINES(HEAD_DIM));
        for (int c = 0; c < WIDES; c++)
#pragma unroll
            for (int i = 0; i < 2 * rows; i++) {
                const int r = i / 2, key = pair + i % 2;
                sums[r * keys + key] = fma(q[r * WIDES + c], wide_load(tile->k[first + key], c), sums[r * keys + key]);
            }
    }
    return wide_sums(sums);
}

/* o += weights * V for `rows` rows and `count` vectors of dims from `first` on. */
VECTOR_INLINE void vector_values(const float *weights, const vector_tile *tile, wide *o, int rows, int first, int count,
                                 bool prefetch)
{
    const int keys = VECTOR_WIDTH / rows;
    wide sums[VECTOR_WIDTH];
#pragma unroll
    for (int i = 0; i < rows * count; i++)
        sums[i] = o[i / count * WIDES_V + first + i % count];
    if (prefetch) {
        const int lines = (VECTOR_TILE * ROW_LINES(HEAD_DIM_V) * count + WIDES_V - 1) / WIDES_V;
        vector_prefetch(tile->next_v, VECTOR_TILE, ROW_LINES(HEAD_DIM_V), first / count * lines, lines);
    }
    for (int t = 0; t < VECTOR_TILE; t += keys)
#pragma unroll
        for (int key = 0; key < keys; key++)
#pragma unroll
            for (int i = 0; i < rows * count; i++)
                sums[i] = fma((wide)weights[t * rows + i / count * keys + key],
                              wide_load(tile->v[t + key], first + i % count), sums[i]);
#pragma unroll
    for (int i = 0; i < rows * count; i++)
        o[i / count * WIDES_V + first + i % count] = sums[i];
}

/* The same for all dims where some keys are hidden from some rows: their scores are -inf and their V is not used. */
VECTOR_INLINE void vector_visible_values(const float *scores, const float *weights, const vector_tile *tile, wide *o,
                                         int rows)
{
    const int keys = VECTOR_WIDTH / rows;
    for (int r = 0; r < rows; r++)
        for (int t = 0; t < VECTOR_TILE; t++) {
            const int i = t / keys * VECTOR_WIDTH + r * keys + t % keys;
            if (scores[i] == -INFINITY)
                continue;
            for (int c = 0; c < WIDES_V; c++)
                o[r * WIDES_V + c] = fma((wide)weights[i], wide_load(tile->v[t], c), o[r * WIDES_V + c]);
        }
}

/* Takes a tile into the states of rows [first, first + rows) of a head. */
VECTOR_INLINE void vector_update(vector_head *head, const vector_tile *tile, const int *limits, float factor, int block,
                                 int first, int rows)
{
    const int keys = VECTOR_WIDTH / rows, vectors = VECTOR_TILE / keys;
    const int count = VECTOR_WIDTH / rows; /* vectors of dims */
    wide *const o = head->o + first * WIDES_V;
    wide scores[VECTOR_TILE * 4 / VECTOR_WIDTH], weights[VECTOR_TILE * 4 / VECTOR_WIDTH];
    wide top = -INFINITY, lowest = INFINITY, l = head->l[block];

    for (int i = 0; i < vectors; i++) {
        scores[i] = factor * vector_dots(head->q + first * WIDES, tile, i * keys, rows, first == 0);
        if (tile->partial) {
            int limit[VECTOR_WIDTH];
            for (int lane = 0; lane < VECTOR_WIDTH; lane++)
                limit[lane] = limits[first + lane / keys] - tile->first - i * keys;
            scores[i] = WIDE_LANES % keys < *(const wide_int *)limit ? scores[i] : -INFINITY;
        }
        top = wide_max(top, scores[i]);
        lowest = lowest < scores[i] ? lowest : scores[i];
    }
    top = wide_max_over(top, keys);
    if (wide_any(top > head->m[block])) {
        const wide raised = wide_max(top, head->m[block]);
        const wide shrink = wide_exp2(head->m[block] - wide_base(raised));
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < WIDES_V; c++)
                o[r * WIDES_V + c] *= ((const float *)&shrink)[r * keys];
        l *= shrink;
        head->m[block] = raised;
    }
    const wide base = wide_base(head->m[block]);
    for (int i = 0; i < vectors; i++) {
        weights[i] = wide_exp2(scores[i] - base);
        l += weights[i];
    }
    head->l[block] = l;
    if (wide_any(lowest == -INFINITY)) {
        vector_visible_values((const float *)scores, (const float *)weights, tile, o, rows);
        return;
    }
    for (int c = 0; c + count <= WIDES_V; c += count)
        vector_values((const float *)weights, tile, o, rows, c, count, !V_FROM_K && first == 0);
    if (WIDES_V % count != 0)
        vector_values((const float *)weights, tile, o, rows, WIDES_V / count * count, WIDES_V % count,
                      !V_FROM_K && first == 0);
}

/* ---- The item ---------------------------------------------------------------------------------------------------- */

VECTOR_INLINE void vector_begin(const decode_args *args, const decode_item *item, const __global q_element *q,
                                vector_head *head)
{
    for (int r = 0; r < DECODE_ROWS; r++) {
        const decode_row row = decode_find_row(args, item, r);
        const long index = decode_q_index(args, item, &row);
        for (int d = 0; d < HEAD_DIM; d++)
            ((float *)(head->q + r * WIDES))[d] = q_load(q, index + d);
    }
    for (int i = 0; i < DECODE_ROWS * WIDES_V; i++)
        head->o[i] = 0.0f;
    for (int block = 0; block < ROW_BLOCKS; block++) {
        head->m[block] = -INFINITY;
        head->l[block] = 0.0f;
    }
}

VECTOR_INLINE void vector_finish(const decode_args *args, const decode_item *item, const vector_head *head, int block,
                                 int first, int rows, __global out_element *out, __global float *lse,
                                 __global float *workspace)
{
    const int keys = VECTOR_WIDTH / rows;
    const wide sum = wide_sum_over(head->l[block], keys);
    for (int r = 0; r < rows; r++) {
        const float m = ((const float *)&head->m[block])[r * keys], l = ((const float *)&sum)[r * keys];
        if (!decode_row_exists(args, item, first + r))
            return;
        const decode_row row = decode_find_row(args, item, first + r);
        for (int d = 0; d < HEAD_DIM_V; d++)
            decode_store_o(args, item, &row, out, workspace, d,
                           state_normalise(((const float *)(head->o + (first + r) * WIDES_V))[d], l));
        decode_store_stats(args, item, &row, lse, workspace, m, l);
    }
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void decode_vector(DECODE_ARGUMENTS)
{
    vector_head heads[DECODE_HEADS];
    vector_tile tile;
    decode_item item;
    int limits[DECODE_ROWS];

    if (!decode_find_item(&args, kv_lens, (uint)get_group_id(0), &item))
        return;
    for (int h = 0; h < args.heads; h++) {
        decode_item own = item;
        own.kv_head += h;
        vector_begin(&args, &own, q, &heads[h]);
    }
    for (int r = 0; r < DECODE_ROWS; r++)
        limits[r] = min(decode_find_row(&args, &item, r).limit, item.end);

    const float factor = score_factor(&args);
    const kv_rows keys = kv_keys(k, &args, item.batch, item.kv_head);
    const kv_rows values = V_FROM_K ? keys : kv_values(v, &args, item.batch, item.kv_head);
    /* Counted down, because a token past the last one may not fit in an int. */
    for (int left = item.end - item.begin; left > 0; left -= VECTOR_TILE) {
        tile.first = item.end - left;
        tile.partial = VECTOR_TILE > limits[0] - tile.first; /* the first row sees least */
        for (int h = 0; h < args.heads; h++) {
            vector_point(&keys, args.k_head, h, args.heads, tile.first, item.end, tile.k, tile.next_k);
            vector_point(&values, V_FROM_K ? args.k_head : args.v_head, h, args.heads, tile.first, item.end, tile.v,
                         tile.next_v);
#define UPDATE(block, first, rows) vector_update(&heads[h], &tile, limits, factor, block, first, rows)
            EACH_ROW_BLOCK(UPDATE)
        }
    }

    for (int h = 0; h < args.heads; h++) {
        decode_item own = item;
        own.kv_head += h;
#define FINISH(block, first, rows) vector_finish(&args, &own, &heads[h], block, first, rows, out, lse, workspace)
        EACH_ROW_BLOCK(FINISH)
    }
}

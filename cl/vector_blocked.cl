/* vector_blocked.cl - the blocked form of decode_vector.cl, for CPUs.
 *
 * Tokens are walked in tiles of VECTOR_TILE. The query rows go over a tile in register blocks of 8, 4, 2 or 1 rows. Scores:
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
#include "decode_store.cl"
#include "vector_tile.cl"
#include "vector_wide.cl"

#define WIDES (HEAD_DIM / VECTOR_WIDTH)
#define WIDES_V (HEAD_DIM_V / VECTOR_WIDTH)

/* DECODE_ROWS rows are blocks of MOST_ROWS, then one each of four, two and one as there are rows left: VISIT(block, first
 * row, rows) for each. */
#define MOST_ROWS (VECTOR_WIDTH / 2)
#define ROWS_LEFT (DECODE_ROWS % MOST_ROWS)
#define ROW_BLOCKS (DECODE_ROWS / MOST_ROWS + ROWS_LEFT / 4 + ROWS_LEFT % 4 / 2 + ROWS_LEFT % 2)
#define EACH_ROW_BLOCK(VISIT) MOST_ROWS_EACH(VISIT) FOUR_ROWS(VISIT) TWO_ROWS(VISIT) ONE_ROW(VISIT)
#define MOST_ROWS_EACH(VISIT)
#define FOUR_ROWS(VISIT)
#define TWO_ROWS(VISIT)
#define ONE_ROW(VISIT)
#if DECODE_ROWS / MOST_ROWS > 0
#undef MOST_ROWS_EACH
#define MOST_ROWS_EACH(VISIT)                                                                                          \
    for (int first_row = 0; first_row + MOST_ROWS <= DECODE_ROWS; first_row += MOST_ROWS)                              \
        VISIT(first_row / MOST_ROWS, first_row, MOST_ROWS);
#endif
#if ROWS_LEFT / 4 > 0
#undef FOUR_ROWS
#define FOUR_ROWS(VISIT) VISIT(DECODE_ROWS / MOST_ROWS, DECODE_ROWS - ROWS_LEFT, 4);
#endif
#if ROWS_LEFT % 4 > 1
#undef TWO_ROWS
#define TWO_ROWS(VISIT) VISIT(DECODE_ROWS / MOST_ROWS + ROWS_LEFT / 4, DECODE_ROWS - DECODE_ROWS % 4, 2);
#endif
#if ROWS_LEFT % 2 > 0
#undef ONE_ROW
#define ONE_ROW(VISIT) VISIT(ROW_BLOCKS - 1, DECODE_ROWS - 1, 1);
#endif

/* What the item keeps of a KV head. m and l are laid out [row][key]: m is equal over the keys, l to be summed over them. */
typedef struct vector_head {
    wide q[DECODE_ROWS * WIDES], o[DECODE_ROWS * WIDES_V];
    wide m[ROW_BLOCKS], l[ROW_BLOCKS];
    float scale; /* of its scores */
} vector_head;

/* Vector c of a key or a value of the tile. */
#define VECTOR_OF_WIDTH(name, width) FORMAT_PASTE(name, width)
#define VECTOR_KEY(tile, t, c) VECTOR_OF_WIDTH(vector_key, VECTOR_WIDTH)(tile, t, (c)*VECTOR_WIDTH)
#define VECTOR_VALUE(tile, t, c) VECTOR_OF_WIDTH(vector_value, VECTOR_WIDTH)(tile, t, (c)*VECTOR_WIDTH)

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
            vector_prefetch(tile->next_k + first + pair, 2, K_LINES, 0, 2 * K_LINES);
        for (int c = 0; c < WIDES; c++)
#pragma unroll
            for (int i = 0; i < 2 * rows; i++) {
                const int r = i / 2, key = pair + i % 2;
                sums[r * keys + key] = fma(q[r * WIDES + c], VECTOR_KEY(tile, first + key, c), sums[r * keys + key]);
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
        const int lines = (VECTOR_TILE * V_LINES * count + WIDES_V - 1) / WIDES_V;
        vector_prefetch(tile->next_v, VECTOR_TILE, V_LINES, first / count * lines, lines);
    }
    for (int t = 0; t < VECTOR_TILE; t += keys)
#pragma unroll
        for (int key = 0; key < keys; key++)
#pragma unroll
            for (int i = 0; i < rows * count; i++)
                sums[i] = fma((wide)weights[t * rows + i / count * keys + key],
                              VECTOR_VALUE(tile, t + key, first + i % count), sums[i]);
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
                o[r * WIDES_V + c] = fma((wide)weights[i], VECTOR_VALUE(tile, t, c), o[r * WIDES_V + c]);
        }
}

/* The scores of products [row][key] of rows from `first_row` on with keys from `first` on; -inf where a row may not see
 * the key. */
VECTOR_INLINE wide vector_scores(const vector_tile *tile, const score_row *rows, float scale, wide dots, int first_row,
                                 int first, int num_rows)
{
    const int keys = VECTOR_WIDTH / num_rows;
#if SCORE_BY_KEY
    wide scores;
    for (int lane = 0; lane < VECTOR_WIDTH; lane++) {
        const int key = first + lane % keys;
        const bool exists = key < tile->count && tile->places[key].valid;
        ((float *)&scores)[lane] = exists ? score_key(tile->args, tile->in, &rows[first_row + lane / keys],
                                                      tile->first + key, scale, ((const float *)&dots)[lane])
                                          : -INFINITY;
    }
    return scores;
#else
    wide scores = scale * STATE_LOG2E * dots;
    if (tile->partial) {
        int low[VECTOR_WIDTH], high[VECTOR_WIDTH];
        for (int lane = 0; lane < VECTOR_WIDTH; lane++) {
            const score_row *const row = &rows[first_row + lane / keys];
            low[lane] = row->first - tile->first - first;
            high[lane] = row->limit - tile->first - first;
            if (KV_PAGED > 0 && !tile->places[first + lane % keys].valid)
                high[lane] = 0;
        }
        scores = WIDE_LANES % keys < *(const wide_int *)high ? scores : -INFINITY;
        if (SCORE_WINDOW || SCORE_START)
            scores = WIDE_LANES % keys >= *(const wide_int *)low ? scores : -INFINITY;
    }
    return scores;
#endif
}

/* Takes a tile into the states of rows [first, first + rows) of a head. */
VECTOR_INLINE void vector_update(vector_head *head, const vector_tile *tile, const score_row *score_rows, int block,
                                 int first, int rows)
{
    const int keys = VECTOR_WIDTH / rows, vectors = VECTOR_TILE / keys;
    const int count = VECTOR_WIDTH / rows; /* vectors of dims */
    wide *const o = head->o + first * WIDES_V;
    wide scores[VECTOR_TILE * MOST_ROWS / VECTOR_WIDTH], weights[VECTOR_TILE * MOST_ROWS / VECTOR_WIDTH];
    wide top = -INFINITY, lowest = INFINITY, l = head->l[block];

    for (int i = 0; i < vectors; i++) {
        scores[i] = vector_scores(tile, score_rows, head->scale,
                                  vector_dots(head->q + first * WIDES, tile, i * keys, rows, first == 0), first,
                                  i * keys, rows);
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
    head->scale = item->k_scale;
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

VECTOR_INLINE void vector_finish(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                 const vector_head *head, int block, int first, int rows, __global out_element *out,
                                 __global float *lse, __global float *workspace)
{
    const int keys = VECTOR_WIDTH / rows;
    const wide sum = wide_sum_over(head->l[block], keys);
    for (int r = 0; r < rows; r++) {
        const float m = ((const float *)&head->m[block])[r * keys], l = ((const float *)&sum)[r * keys];
        if (!decode_row_exists(args, item, first + r))
            return;
        const decode_row row = decode_find_row(args, item, first + r);
        const float share = decode_sink_share(args, in, item, &row, m, l);
        for (int d = 0; d < HEAD_DIM_V; d++)
            decode_store_o(args, item, &row, out, workspace, d,
                           state_normalise(((const float *)(head->o + (first + r) * WIDES_V))[d], l), share);
        decode_store_stats(args, in, item, &row, lse, workspace, m, l);
    }
}

/* All tokens of the item, for all of its heads. */
VECTOR_INLINE void vector_walk(const decode_args *args, const decode_inputs *in, const decode_item *item,
                               vector_head *heads, const score_row *rows)
{
    const kv_cache cache = kv_open(args, in, item->batch, item->sequence.cache_row, item->kv_head);
    vector_tile tile;
    int highest_first = 0, lowest_limit = INT_MAX;

    tile.args = args;
    tile.in = in;
    for (int r = 0; r < DECODE_ROWS; r++) {
        highest_first = max(highest_first, rows[r].first);
        lowest_limit = min(lowest_limit, rows[r].limit);
    }
    /* Counted down, because a token past the last one may not fit in an int. */
    for (int left = item->end - item->begin; left > 0; left -= VECTOR_TILE) {
        vector_find(&tile, &cache, item->end - left, item->end);
        tile.partial = VECTOR_TILE > lowest_limit - tile.first || tile.first < highest_first;
        for (int t = 0; KV_PAGED > 0 && t < VECTOR_TILE; t++)
            tile.partial |= !tile.places[t].valid;
        for (int h = 0; h < args->heads; h++) {
            vector_point(&tile, &cache, h, args->heads);
#define UPDATE(block, first, count) vector_update(&heads[h], &tile, rows + h * DECODE_ROWS, block, first, count)
            EACH_ROW_BLOCK(UPDATE)
        }
    }
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void decode_vector(DECODE_ARGUMENTS)
{
    vector_head heads[DECODE_HEADS];
    score_row rows[DECODE_HEADS * DECODE_ROWS];
    decode_work work;
    decode_item item;
    DECODE_INPUTS(in);

    decode_start(&args, &in, &work);
    DECODE_EACH_ITEM(&args, &in, &work, &item, workspace)
    {
        decode_scale_item(&args, &in, &item);
        for (int h = 0; h < args.heads; h++) {
            const decode_item own = decode_head_item(&args, &in, &item, h);
            vector_begin(&args, &own, q, &heads[h]);
            for (int r = 0; r < DECODE_ROWS; r++) {
                rows[h * DECODE_ROWS + r] = decode_score_row(&args, &in, &own, r);
                rows[h * DECODE_ROWS + r].limit = min(rows[h * DECODE_ROWS + r].limit, item.end);
            }
        }
        vector_walk(&args, &in, &item, heads, rows);
        for (int h = 0; h < args.heads; h++) {
            const decode_item own = decode_head_item(&args, &in, &item, h);
#define FINISH(block, first, count) vector_finish(&args, &in, &own, &heads[h], block, first, count, out, lse, workspace)
            EACH_ROW_BLOCK(FINISH)
        }
    }
}

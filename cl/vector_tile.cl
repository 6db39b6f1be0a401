/* vector_tile.cl - the tile of tokens that the blocked decode works on, and the prefetch of a later one.
 *
 * Tunables, given by the host:
 *   VECTOR_TILE      tokens per tile, a multiple of VECTOR_WIDTH
 *   VECTOR_PREFETCH  tokens ahead; 0: no prefetch
 */
#ifndef CLFD_VECTOR_TILE_CL
#define CLFD_VECTOR_TILE_CL

#include "decode.cl"

#ifndef VECTOR_TILE
#define VECTOR_TILE 16
#endif
#ifndef VECTOR_PREFETCH
#define VECTOR_PREFETCH 0
#endif

/* Called for several block shapes, which must each be a copy with constants: a function shared by two would index the
 * registers' arrays in memory. */
#define VECTOR_INLINE static inline __attribute__((always_inline))

/* A tile of one head: its tokens, those past the last one repeating it, their rows, and the rows to prefetch meanwhile. */
typedef struct vector_tile {
    const decode_args *args;
    const decode_inputs *in;
    kv_cache cache;
    kv_place places[VECTOR_TILE];
    const __global uchar *k[VECTOR_TILE], *v[VECTOR_TILE], *next_k[VECTOR_TILE], *next_v[VECTOR_TILE];
    int first, count; /* token; tokens that there are */
    bool partial;     /* some row of the block may not see all of its tokens */
} vector_tile;

#define LINE_BYTES 64
#define ROW_LINES(bytes) (((bytes) + LINE_BYTES - 1) / LINE_BYTES)
#define K_LINES ROW_LINES(K_ROW_BYTES(HEAD_DIM))
#define V_LINES ROW_LINES(V_ROW_BYTES(HEAD_DIM_V))

/* Prefetches `count` cache lines of num_rows rows of row_lines lines each, from line `first` on. A hint: it does nothing
 * past the end of a buffer. */
VECTOR_INLINE void vector_prefetch(const __global uchar *const *rows, int num_rows, int row_lines, int first, int count)
{
#if VECTOR_PREFETCH > 0
    for (int line = first; line < first + count && line < num_rows * row_lines; line++)
        __builtin_prefetch((const void *)((ulong)rows[line / row_lines] + line % row_lines * LINE_BYTES));
#endif
}

/* Finds the tokens of the tile that begins at `begin`. */
VECTOR_INLINE void vector_find(vector_tile *tile, int begin, int end)
{
    tile->first = begin;
    tile->count = min(VECTOR_TILE, end - begin);
    for (int t = 0; t < VECTOR_TILE; t++)
        tile->places[t] = decode_find_key(tile->args, tile->in, &tile->cache, begin + min(t, tile->count - 1));
}

/* Points at head h's (of `heads`) rows of the tile, and at its share of the tile VECTOR_PREFETCH tokens on: as many rows,
 * counted through the heads of a token before those of the next. `end`: where the item's tokens end. */
VECTOR_INLINE void vector_point(vector_tile *tile, const kv_cache *cache, int h, int heads, int end)
{
    const decode_args *const args = tile->args;
    tile->cache = kv_next_head(args, *cache, h);
    for (int t = 0; t < VECTOR_TILE; t++) {
        tile->k[t] = kv_key(args, &tile->cache, tile->places[t]);
        tile->v[t] = kv_value(args, &tile->cache, tile->places[t]);
    }
#if VECTOR_PREFETCH > 0
    /* Counted from the tile's first token, because a token past the last one may not fit in an int; and only tokens that
     * there are may be looked up in a table. */
    const int last = (KV_PAGED ? end - 1 : INT_MAX) - tile->first;
    int ahead = VECTOR_PREFETCH + h * VECTOR_TILE / heads, head = h * VECTOR_TILE % heads;
    kv_place place;
    for (int t = 0; t < VECTOR_TILE; t++) {
        const kv_cache next = kv_next_head(args, *cache, head);
        if (t == 0 || head == 0)
            place = decode_find_key(args, tile->in, cache, tile->first + min(ahead, last));
        tile->next_k[t] = kv_key(args, &next, place);
        tile->next_v[t] = kv_value(args, &next, place);
        if (++head == heads) {
            head = 0;
            ahead++;
        }
    }
#endif
}

/* Eight elements of token t from dim d on. */
VECTOR_INLINE float8 vector_key8(const vector_tile *tile, int t, int d)
{
    float8 key = K_FORMAT(floats8)(tile->k[t], d);
#if K_SCALED && K_ZEROS
    key -= kv_key_zero(tile->args, tile->in, &tile->cache, tile->places[t], d);
#endif
#if K_SCALED
    key *= kv_key_scale(tile->args, tile->in, &tile->cache, tile->places[t], tile->k[t], d);
#endif
    return key;
}

VECTOR_INLINE float8 vector_value8(const vector_tile *tile, int t, int d)
{
    float8 value = V_FORMAT(floats8)(tile->v[t], d);
#if V_SCALED && V_ZEROS
    value -= kv_value_zero(tile->args, tile->in, &tile->cache, tile->places[t], d);
#endif
#if V_SCALED
    value *= kv_value_scale(tile->args, tile->in, &tile->cache, tile->places[t], tile->v[t], d);
#endif
    return value;
}

#endif

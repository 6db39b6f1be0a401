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

/* A tile: its tokens, those past the last one repeating it, and where their rows lie in the cache of a head; and the rows
 * to prefetch meanwhile, with where the tokens VECTOR_PREFETCH on lie and the first one and its head still to be taken. */
typedef struct vector_tile {
    const decode_args *args;
    const decode_inputs *in;
    kv_cache cache; /* of the head */
    kv_place places[VECTOR_TILE];
    long k[VECTOR_TILE], v[VECTOR_TILE], later_k[VECTOR_TILE], later_v[VECTOR_TILE];
    const __global uchar *next_k[VECTOR_TILE], *next_v[VECTOR_TILE];
    int later_token, later_head;
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
#pragma unroll
    for (int line = first; line < first + count && line < num_rows * row_lines; line++)
        __builtin_prefetch((const void *)((ulong)rows[line / row_lines] + line % row_lines * LINE_BYTES));
#endif
}

/* Finds the tokens of the tile that begins at `begin`. `end`: where the item's tokens end. */
VECTOR_INLINE void vector_find(vector_tile *tile, const kv_cache *cache, int begin, int end)
{
    const decode_args *const args = tile->args;
    tile->first = begin;
    tile->count = min(VECTOR_TILE, end - begin);
    for (int t = 0; t < VECTOR_TILE; t++) {
        tile->places[t] = decode_find_key(args, tile->in, cache, begin + min(t, tile->count - 1));
        tile->k[t] = kv_key_offset(args, tile->places[t]);
        tile->v[t] = kv_value_offset(args, tile->places[t]);
    }
#if VECTOR_PREFETCH > 0
    /* Counted from the tile's first token, because a token past the last one may not fit in an int; and only tokens that
     * there are may be looked up in a table. */
    const int last = (KV_PAGED ? end - 1 : INT_MAX) - begin;
    for (int t = 0; t < VECTOR_TILE; t++) {
        const kv_place place = decode_find_key(args, tile->in, cache, begin + min(VECTOR_PREFETCH + t, last));
        tile->later_k[t] = kv_key_offset(args, place);
        tile->later_v[t] = kv_value_offset(args, place);
    }
    tile->later_token = tile->later_head = 0;
#endif
}

/* Points at head h's (of `heads`) rows of the tile, and at its share of the tile VECTOR_PREFETCH tokens on: as many rows,
 * counted through the heads of a token before those of the next. */
VECTOR_INLINE void vector_point(vector_tile *tile, const kv_cache *cache, int h, int heads)
{
    tile->cache = kv_next_head(tile->args, *cache, h);
#if VECTOR_PREFETCH > 0
    kv_cache next = kv_next_head(tile->args, *cache, tile->later_head);
    for (int t = 0; t < VECTOR_TILE; t++) {
        tile->next_k[t] = next.k + tile->later_k[tile->later_token];
        tile->next_v[t] = next.v + tile->later_v[tile->later_token];
        next = kv_next_head(tile->args, next, 1);
        if (++tile->later_head == heads) {
            tile->later_head = 0;
            tile->later_token++;
            next = *cache;
        }
    }
#endif
}

/* Eight elements of token t from dim d on. */
VECTOR_INLINE float8 vector_key8(const vector_tile *tile, int t, int d)
{
    const __global uchar *const row = tile->cache.k + tile->k[t];
    float8 key = K_FORMAT(floats8)(row, d);
#if K_SCALED && K_ZEROS
    key -= kv_key_zero(tile->args, tile->in, &tile->cache, tile->places[t], d);
#endif
#if K_SCALED
    key *= kv_key_scale(tile->args, tile->in, &tile->cache, tile->places[t], row, d);
#endif
    return key;
}

VECTOR_INLINE float8 vector_value8(const vector_tile *tile, int t, int d)
{
    const __global uchar *const row = tile->cache.v + tile->v[t];
    float8 value = V_FORMAT(floats8)(row, d);
#if V_SCALED && V_ZEROS
    value -= kv_value_zero(tile->args, tile->in, &tile->cache, tile->places[t], d);
#endif
#if V_SCALED
    value *= kv_value_scale(tile->args, tile->in, &tile->cache, tile->places[t], row, d);
#endif
    return value;
}

/* Sixteen of them. */
VECTOR_INLINE float16 vector_key16(const vector_tile *tile, int t, int d)
{
#if K_SCALED
    return formats_join(vector_key8(tile, t, d), vector_key8(tile, t, d + 8));
#else
    return K_FORMAT(floats16)(tile->cache.k + tile->k[t], d);
#endif
}

VECTOR_INLINE float16 vector_value16(const vector_tile *tile, int t, int d)
{
#if V_SCALED
    return formats_join(vector_value8(tile, t, d), vector_value8(tile, t, d + 8));
#else
    return V_FORMAT(floats16)(tile->cache.v + tile->v[t], d);
#endif
}

#endif

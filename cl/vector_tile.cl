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

/* A tile of one head: its rows, those past the last token repeating it, and the rows to prefetch meanwhile. */
typedef struct vector_tile {
    const __global kv_element *k[VECTOR_TILE], *v[VECTOR_TILE], *next_k[VECTOR_TILE], *next_v[VECTOR_TILE];
    int first;    /* token */
    bool partial; /* some row of the block may not see all of its tokens */
} vector_tile;

#define LINE_BYTES 64
#define ROW_LINES(dims) ((int)((dims) * sizeof(kv_element) + LINE_BYTES - 1) / LINE_BYTES)

/* Prefetches `count` cache lines of num_rows rows of row_lines lines each, from line `first` on. A hint: it does nothing
 * past the end of a buffer. */
VECTOR_INLINE void vector_prefetch(const __global kv_element *const *rows, int num_rows, int row_lines, int first,
                                   int count)
{
#if VECTOR_PREFETCH > 0
    for (int line = first; line < first + count && line < num_rows * row_lines; line++)
        __builtin_prefetch((const void *)((ulong)rows[line / row_lines] + line % row_lines * LINE_BYTES));
#endif
}

/* Points at head h's (of `heads`) rows of the tile that begins at `begin`, and at its share of the tile VECTOR_PREFETCH tokens on:
 * as many rows, counted through the heads of a token before those of the next. */
VECTOR_INLINE void vector_point(const kv_rows *rows, long head_stride, int h, int heads, int begin, int end,
                                const __global kv_element **at, const __global kv_element **next)
{
    int token = begin + VECTOR_PREFETCH + h * VECTOR_TILE / heads, head = h * VECTOR_TILE % heads;
    for (int t = 0; t < VECTOR_TILE; t++) {
        at[t] = kv_row(rows, begin + min(t, end - begin - 1)) + h * head_stride;
        next[t] = kv_row(rows, token) + head * head_stride;
        if (++head == heads) {
            head = 0;
            token++;
        }
    }
}

#endif

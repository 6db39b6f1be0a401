/* matrix_ring.cl - the ring of a warp: tiles of K and of V, in turn, on their way from global to local memory.
 *
 * Slot x of an item holds K (x even) or V (x odd) of the warp's tile x / 2, and lies at place x mod MATRIX_SLOTS. A slot
 * is filled again as soon as what it held is in registers, each filling being a set of copies of its own, so that to wait
 * for a slot is to wait until MATRIX_SLOTS - 1 sets are on their way. What no token owns is filled with zeros and read
 * from nowhere.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_RING_CL
#define CLFD_MATRIX_RING_CL

#include "matrix.cl"
#include "matrix_scales.cl"

/* MATRIX_SLOTS - 1 as PTX must have it: one number. */
#if MATRIX_SLOTS == 2
#define SLOTS_AHEAD 1
#elif MATRIX_SLOTS == 3
#define SLOTS_AHEAD 2
#elif MATRIX_SLOTS == 4
#define SLOTS_AHEAD 3
#elif MATRIX_SLOTS == 5
#define SLOTS_AHEAD 4
#elif MATRIX_SLOTS == 6
#define SLOTS_AHEAD 5
#elif MATRIX_SLOTS == 7
#define SLOTS_AHEAD 6
#else
#define SLOTS_AHEAD 7
#endif
#define TILES_AHEAD (MATRIX_SLOTS / 2 + 1) /* tiles that are filled and not yet used up, at most */

/* Where no tile is left a warp does nothing; the emulation's warps go on together, over tiles without tokens. */
#define MATRIX_SKIPS(left) (CLFD_PTX && (left) <= 0)

/* The way from tile to tile of an item. Splits of many tiles take them in turn by runs, because a multiprocessor that finds
 * its next tile nearby spares address translations (an H200, 16 splits of 131072 tokens: 124.2 instead of 125.7 us), and
 * what is too little for a run of each one by one. */
typedef struct matrix_steps {
    int step, until; /* tokens to the next tile; tiles to the end of the run */
    int run, far;    /* tiles of a run; tokens from its last tile to the first of the next run */
    int stride;      /* where single tiles follow: tokens from one to the next */
    int back;        /* how much nearer than a run the first of those is */
    int round, rest; /* tokens of a run of each split; from the first of them to the item's end */
} matrix_steps;

MATRIX_INLINE matrix_steps matrix_begin_steps(const decode_item *item)
{
    const int run = matrix_opaque(item->run); /* not before what must not wait for it */
    const int stride = matrix_opaque(item->stride);
    const int before = item->slot * DECODE_TILE * run; /* of the first round, to the item's first tile */
    matrix_steps steps;
    steps.step = run > 1 ? DECODE_TILE : stride;
    steps.until = run > 1 ? run : INT_MAX;
    steps.round = stride * run;
    steps.run = run;
    steps.far = steps.round - (run - 1) * DECODE_TILE;
    steps.stride = stride;
    steps.back = before - item->slot * DECODE_TILE;
    steps.rest = item->end - item->begin + before;
    return steps;
}

/* At the end of a run: how much farther than a step the next tile is. */
MATRIX_INLINE int matrix_end_run(matrix_steps *steps)
{
    int farther = steps->far - steps->step;
    steps->until = steps->run;
    steps->rest -= steps->round;
    if (steps->rest < steps->round) {
        farther -= steps->back;
        steps->step = steps->stride;
        steps->until = INT_MAX;
    }
    return farther;
}

/* Goes on to the next tile: tokens from this one to it, the same for all warps. */
MATRIX_INLINE int matrix_next_tile(matrix_steps *steps)
{
    const int step = steps->step;
    return DECODE_RUN > 1 && --steps->until == 0 ? step + matrix_end_run(steps) : step;
}

/* What is filled next. */
typedef struct matrix_ring {
    kv_cache cache;
    int end, left; /* the tile to fill: tokens from its first to the item's end; none where not above 0 */
    matrix_steps steps;
    uint fill, use; /* the address of the slot to fill next; where in the ring the one to use next lies */
    matrix_scale_rows scales;
#if KV_PAGED
    int step;                /* tokens to the tile after it */
    kv_place here, next;     /* of token lane % 16 of the tile to fill, and of the one after it; MATRIX_PAGE_TILES: of
                                token 0 */
    uint there[TILES_AHEAD]; /* bits of the tokens that have a page: of the tile in use, and of those filled since */
    long k_piece, v_piece;   /* MATRIX_PAGE_TILES: from token 0 of a tile to the lane's first piece */
#else
    const __global uchar *k, *v; /* where the lane's first piece of the tile to fill is read */
    long k_step, v_step;         /* from there to the next tile of a run */
#endif
} matrix_ring;

MATRIX_INLINE uint matrix_next_slot(uint slot)
{
    return slot + SLOT_BYTES == MATRIX_SLOTS * SLOT_BYTES ? 0 : slot + SLOT_BYTES;
}

/* Goes on to the slot to fill after this one. */
MATRIX_INLINE void matrix_next_fill(const matrix_place *at, matrix_ring *ring)
{
    const uint next = ring->fill + SLOT_BYTES;
    ring->fill = next == at->base + MATRIX_SLOTS * SLOT_BYTES ? at->base : next;
}

/* Where piece `piece` of row `row` lies in a slot. */
MATRIX_INLINE uint matrix_piece(int row, int piece, int bytes, int pitch)
{
    return row * pitch + (SWAPS(bytes) ? piece ^ (row & 7) : piece) * COPY_BYTES(bytes);
}

/* The address `rows` rows on from that of a piece of a row below it, `rows` being a multiple of a power of two above that
 * row. */
MATRIX_INLINE uint matrix_rows_on(uint address, int rows, int bytes, int pitch)
{
    return (SWAPS(bytes) ? address ^ (rows & 7) * 16 : address) + rows * pitch;
}

/* The address `pieces` pieces on from that of piece 0 or 1, `pieces` being even. */
MATRIX_INLINE uint matrix_pieces_on(uint address, int pieces, int bytes)
{
    return SWAPS(bytes) ? (address ^ (pieces & 7) * 16) + (pieces & ~7) * 16 : address + pieces * 16;
}

#if CLFD_PTX && MATRIX_ONCE
#define TILE_COPY(bytes) matrix_copy_once_if##bytes
#else
#define TILE_COPY(bytes) matrix_copy_if##bytes
#endif

MATRIX_INLINE void matrix_copy_tile(const matrix_place *at, uint to, const __global uchar *from, bool there, int bytes)
{
    if (bytes == 16)
        TILE_COPY(16)(at, to, from, there);
    else if (bytes == 8)
        TILE_COPY(8)(at, to, from, there);
    else
        TILE_COPY(4)(at, to, from, there);
}

/* Copies go by turns of 32 pieces. Where a turn is whole rows a lane has the same piece of rows at equal distances, so that
 * it must know the place of one only. */
#define PIECES(bytes) ((bytes) / COPY_BYTES(bytes))
#define EVEN_TURNS(bytes) (32 % PIECES(bytes) == 0 && 32 / PIECES(bytes) <= TILE)
#define FIRST_ROW(at, bytes) (EVEN_TURNS(bytes) ? (uint)(at)->lane / PIECES(bytes) : 0)
#define FIRST_PIECE(at, bytes) (EVEN_TURNS(bytes) ? (uint)(at)->lane % PIECES(bytes) : 0)

#if KV_PAGED && !MATRIX_PAGE_TILES
/* Begins to copy the rows of a tile, `bytes` each, into the slot at address `slot`. `row` is that of token lane % 16, which
 * is there if its bit of `there` is set. */
MATRIX_INLINE void matrix_fill(const matrix_place *at, uint slot, const __global uchar *row, uint there, int bytes,
                               int pitch)
{
    const int copy_bytes = COPY_BYTES(bytes), pieces = PIECES(bytes), turns = (TILE * pieces + 31) / 32;

#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < turns; i++) {
        const uint x = (uint)(i * 32 + at->lane);
        const uint r = EVEN_TURNS(bytes) ? i * (32 / pieces) + FIRST_ROW(at, bytes) : x / pieces;
        const uint piece = EVEN_TURNS(bytes) ? FIRST_PIECE(at, bytes) : x % pieces;
        const uint low = matrix_from(at, (uint)(ulong)row, r & 15);
        const uint high = matrix_from(at, (uint)((ulong)row >> 32), r & 15);
        const __global uchar *const from = (const __global uchar *)((ulong)high << 32 | low) + piece * copy_bytes;
        const bool exists = (there >> r & 1u) != 0;
        if (TILE * pieces % 32 == 0 || r < TILE)
            matrix_copy_tile(at, slot + matrix_piece(r, piece, bytes, pitch), exists ? from : row, exists, copy_bytes);
    }
}
#else
/* Begins to copy the rows of a tile, `bytes` each, into the slot at address `slot`: `left` of them, zeros for the others.
 * `from` is where the lane's first piece is read, and `stride` leads from each row to the next. */
MATRIX_INLINE void matrix_fill(const matrix_place *at, uint slot, const __global uchar *from, long stride, int left,
                               int bytes, int pitch)
{
    const int copy_bytes = COPY_BYTES(bytes), pieces = PIECES(bytes);

    if (EVEN_TURNS(bytes)) {
        const int rows = 32 / pieces;
        const int first = FIRST_ROW(at, bytes);
        const uint to = slot + matrix_piece(first, FIRST_PIECE(at, bytes), bytes, pitch);
        const long step = rows * stride;
#pragma unroll MATRIX_UNROLL
        for (int r = 0; r < TILE; r += rows, from += step)
            matrix_copy_tile(at, matrix_rows_on(to, r, bytes, pitch), from, r < left - first, copy_bytes);
        return;
    }
    /* Parts of rows of 32, 16, 8, ... pieces, each by turns that are whole parts. */
#pragma unroll MATRIX_UNROLL
    for (int part = 32; part > 0; part /= 2) {
        const int rows = 32 / part, first = (uint)at->lane / part;
        const int piece = (pieces & ~(2 * part - 1)) + (uint)at->lane % part;
        const uint to = slot + matrix_piece(first, piece, bytes, pitch);
        const __global uchar *own = from + (first * stride + piece * copy_bytes);
        if ((pieces & part) == 0 || first >= TILE)
            continue;
#pragma unroll MATRIX_UNROLL
        for (int r = 0; r < TILE; r += rows, own += rows * stride)
            matrix_copy_tile(at, matrix_rows_on(to, r, bytes, pitch), own, r < left - first, copy_bytes);
    }
}
#endif

#if KV_PAGED
/* The tokens of the tile to fill, a bit each. */
MATRIX_INLINE uint matrix_tokens(int left) { return left >= TILE ? 0xffffu : left > 0 ? (1u << left) - 1 : 0; }

/* Looks up the pages of the tile that is `left` tokens before the end, long before they are needed. */
MATRIX_INLINE void matrix_look_up(const decode_args *args, const decode_inputs *in, const matrix_place *at,
                                  matrix_ring *ring, int left)
{
    const int token = MATRIX_PAGE_TILES ? 0 : min(at->lane & 15, left - 1);
    if (left > 0)
        ring->next = decode_find_key(args, in, &ring->cache, ring->end - left + token);
}
#endif

#if !KV_PAGED
/* What follows from steps.step. */
MATRIX_INLINE void matrix_find_steps(const decode_args *args, matrix_ring *ring)
{
    ring->k_step = ring->steps.step * args->k.token;
    ring->v_step = ring->steps.step * args->v.token;
    matrix_find_scale_steps(args, ring->steps.step, &ring->scales);
}

/* Goes on to the tile to fill next. Where there are runs there are no scales: DECODE_RUN. */
MATRIX_INLINE void matrix_go_on(const decode_args *args, matrix_ring *ring)
{
    int step = ring->steps.step;
    ring->k += ring->k_step;
    ring->v += ring->v_step;
    matrix_next_scales(&ring->scales);
    if (DECODE_RUN > 1 && --ring->steps.until == 0) {
        const int farther = matrix_end_run(&ring->steps);
        ring->k += farther * args->k.token;
        ring->v += farther * args->v.token;
        matrix_find_steps(args, ring);
        step += farther;
    }
    if (ring->left > 0)
        ring->left -= step;
}
#endif

/* Fills the next slot with the rows of K of the next tile; matrix_fill_values, which must follow, the one after it with
 * those of V. */
MATRIX_INLINE void matrix_fill_keys(const decode_args *args, const decode_inputs *in, const matrix_place *at,
                                    matrix_ring *ring)
{
#if KV_PAGED
    uint there = matrix_tokens(ring->left);
    ring->step = matrix_next_tile(&ring->steps);
    if (!MATRIX_SKIPS(ring->left)) {
        ring->here = ring->next;
        matrix_look_up(args, in, at, ring, ring->left - ring->step);
#if MATRIX_PAGE_TILES
        there = ring->here.valid ? there : 0;
        matrix_fill(at, ring->fill, kv_key(args, &ring->cache, ring->here) + ring->k_piece, args->k.token,
                    ring->here.valid ? ring->left : 0, K_BYTES, K_PITCH);
        matrix_find_scales(args, in, &ring->cache, ring->here.page, ring->here.token + (at->lane & 15), &ring->scales);
#else
        there &= matrix_ballot(at, ring->here.valid);
        matrix_fill(at, ring->fill, kv_key(args, &ring->cache, ring->here), there, K_BYTES, K_PITCH);
        matrix_find_scales(args, in, &ring->cache, ring->here.page, ring->here.token, &ring->scales);
#endif
        matrix_fill_key_scales(args, at, ring->fill, (there >> (at->lane & 15) & 1u) != 0, &ring->scales);
    }
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i + 1 < TILES_AHEAD; i++)
        ring->there[i] = ring->there[i + 1];
    ring->there[TILES_AHEAD - 1] = there;
#else
    if (!MATRIX_SKIPS(ring->left)) {
        matrix_fill(at, ring->fill, ring->k, args->k.token, ring->left, K_BYTES, K_PITCH);
        matrix_fill_key_scales(args, at, ring->fill, (at->lane & 15) < ring->left, &ring->scales);
    }
#endif
    matrix_commit();
    matrix_next_fill(at, ring);
}

MATRIX_INLINE void matrix_fill_values(const decode_args *args, const decode_inputs *in, const matrix_place *at,
                                      matrix_ring *ring)
{
#if KV_PAGED
    if (!MATRIX_SKIPS(ring->left)) {
        const uint there = ring->there[TILES_AHEAD - 1];
#if MATRIX_PAGE_TILES
        matrix_fill(at, ring->fill, kv_value(args, &ring->cache, ring->here) + ring->v_piece, args->v.token,
                    ring->here.valid ? ring->left : 0, V_BYTES, V_PITCH);
#else
        matrix_fill(at, ring->fill, kv_value(args, &ring->cache, ring->here), there, V_BYTES, V_PITCH);
#endif
        matrix_fill_value_scales(args, at, ring->fill, (there >> (at->lane & 15) & 1u) != 0, &ring->scales);
    }
    if (ring->left > 0)
        ring->left -= ring->step;
#else
    if (!MATRIX_SKIPS(ring->left)) {
        matrix_fill(at, ring->fill, ring->v, args->v.token, ring->left, V_BYTES, V_PITCH);
        matrix_fill_value_scales(args, at, ring->fill, (at->lane & 15) < ring->left, &ring->scales);
    }
    matrix_go_on(args, ring);
#endif
    matrix_commit();
    matrix_next_fill(at, ring);
}

/* Starts on an item: fills every slot. The warp's first tile is `left` tokens before the item's end. */
MATRIX_INLINE void matrix_open_ring(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                    const matrix_place *at, int left, matrix_ring *ring)
{
    ring->cache = kv_open(args, in, item->batch, item->sequence.cache_row, item->kv_head);
    ring->end = item->end;
    ring->left = left;
    ring->fill = at->base;
    ring->use = 0;
#if KV_PAGED
    ring->steps = matrix_begin_steps(item);
    ring->next.page = ring->next.token = 0;
    ring->next.valid = false;
    matrix_look_up(args, in, at, ring, left);
    ring->k_piece = FIRST_ROW(at, K_BYTES) * args->k.token + FIRST_PIECE(at, K_BYTES) * COPY_BYTES(K_BYTES);
    ring->v_piece = FIRST_ROW(at, V_BYTES) * args->v.token + FIRST_PIECE(at, V_BYTES) * COPY_BYTES(V_BYTES);
#else
    const uint first = (uint)ring->end - (uint)left; /* no token where none is left */
    matrix_find_scales(args, in, &ring->cache, 0, first + (at->lane & 15), &ring->scales);
    ring->k = ring->cache.k +
              ((first + FIRST_ROW(at, K_BYTES)) * args->k.token + FIRST_PIECE(at, K_BYTES) * COPY_BYTES(K_BYTES));
    ring->v = ring->cache.v +
              ((first + FIRST_ROW(at, V_BYTES)) * args->v.token + FIRST_PIECE(at, V_BYTES) * COPY_BYTES(V_BYTES));
#endif
#pragma unroll MATRIX_UNROLL
    for (int x = 0; x < MATRIX_SLOTS; x++) {
        if (x == 1) /* nothing of what follows the first copies before them */
            ring->fill = (uint)matrix_opaque((int)ring->fill);
#if !KV_PAGED
        if (x == 1) {
            ring->steps = matrix_begin_steps(item);
            matrix_find_steps(args, ring);
        }
#endif
        if (x % 2 == 0)
            matrix_fill_keys(args, in, at, ring);
        else
            matrix_fill_values(args, in, at, ring);
    }
}

/* Waits for the slot to use next; its contents are there for all lanes. */
MATRIX_INLINE uint matrix_take_slot(matrix_ring *ring)
{
    const uint slot = ring->use;
    matrix_wait(SLOTS_AHEAD);
    matrix_sync();
    ring->use = matrix_next_slot(slot);
    return slot;
}

/* Gives the slot of K, or of V, back: all lanes have read it. */
MATRIX_INLINE void matrix_refill(const decode_args *args, const decode_inputs *in, const matrix_place *at,
                                 matrix_ring *ring, bool keys)
{
    matrix_sync();
    if (keys)
        matrix_fill_keys(args, in, at, ring);
    else
        matrix_fill_values(args, in, at, ring);
}

#endif

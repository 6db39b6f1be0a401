/* matrix_stages.cl - the ring of a work-group whose warps share tiles: stages of STAGE_TILES tiles, each of K and then of V
 * where that is not a part of K, on their way from global to local memory.
 *
 * All work-items copy: those of a row take its pieces in turn. A stage is filled while the work-group uses the ones before
 * it, into the slot of the last one that all warps are done with. What no token owns is filled with zeros and read from
 * nowhere.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_STAGES_CL
#define CLFD_MATRIX_STAGES_CL

#include "matrix_ring.cl"

#if MATRIX_PARTS

#define STAGE_ROWS (STAGE_TILES * TILE)
#define ROW_LANES (MATRIX_WG / STAGE_ROWS) /* work-items that copy a row */
#define V_STAGE_BYTES (V_FROM_K ? K_BYTES : V_BYTES)
#define V_STAGE_PITCH (V_FROM_K ? K_PITCH : V_PITCH)
#define V_STAGE_BEGIN (V_FROM_K ? 0 : STAGE_ROWS * K_PITCH)
#define STAGE_BYTES (STAGE_ROWS * (K_PITCH + (V_FROM_K ? 0 : V_PITCH)))

/* Stages that are on their way while one is used. */
#if MATRIX_SLOTS == 2
#define STAGES_AHEAD 0
#elif MATRIX_SLOTS == 3
#define STAGES_AHEAD 1
#elif MATRIX_SLOTS == 4
#define STAGES_AHEAD 2
#elif MATRIX_SLOTS == 5
#define STAGES_AHEAD 3
#elif MATRIX_SLOTS == 6
#define STAGES_AHEAD 4
#elif MATRIX_SLOTS == 7
#define STAGES_AHEAD 5
#else
#define STAGES_AHEAD 6
#endif

typedef struct matrix_stages {
    int left;       /* the stage to fill: tokens from its first to the item's end; none where not above 0 */
    uint fill, use; /* the slots to fill and to use next */
#if KV_PAGED
    kv_cache cache;
    kv_place next; /* of the stage to fill: the token whose row this work-item copies, or the last one before the end */
#else
    const __global uchar *k, *v; /* of that stage, the first piece that this work-item copies */
#endif
} matrix_stages;

MATRIX_INLINE uint matrix_next_stage(uint slot)
{
    return slot + STAGE_BYTES == MATRIX_SLOTS * STAGE_BYTES ? 0 : slot + STAGE_BYTES;
}

/* Which row of a stage this work-item copies, and the first of its pieces. */
MATRIX_INLINE int matrix_copied_row(const matrix_place *at) { return (at->warp * 32 + at->lane) / ROW_LANES; }
MATRIX_INLINE int matrix_copied_piece(const matrix_place *at) { return (at->warp * 32 + at->lane) % ROW_LANES; }

#if KV_PAGED
MATRIX_INLINE void matrix_find_row(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                   const matrix_place *at, matrix_stages *ring)
{
    if (ring->left > 0)
        ring->next = decode_find_key(args, in, &ring->cache,
                                     item->end - ring->left + min(matrix_copied_row(at), ring->left - 1));
}
#endif

/* Begins to copy this work-item's part of a row: pieces from the one at `from` on. */
MATRIX_INLINE void matrix_copy_row(const matrix_place *at, uint to, const __global uchar *from, bool there, int bytes,
                                   int pitch)
{
    const int row = matrix_copied_row(at), first = matrix_copied_piece(at);
    const bool binary =
        (ROW_LANES & (ROW_LANES - 1)) == 0; /* the pieces' numbers differ in bits that `first` has not */
    const uint first_to = at->base + to + matrix_piece(row, first, bytes, pitch);

#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < (bytes / 16 + ROW_LANES - 1) / ROW_LANES; i++) {
        const int piece = first + i * ROW_LANES;
        if (bytes / 16 % ROW_LANES == 0 || piece < bytes / 16)
            matrix_copy_if16(at,
                             binary ? matrix_pieces_on(first_to, i * ROW_LANES, bytes)
                                    : at->base + to + matrix_piece(row, piece, bytes, pitch),
                             from + i * ROW_LANES * 16, there);
    }
}

/* Fills the next slot with the next stage. */
MATRIX_INLINE void matrix_fill_stage(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                     const matrix_place *at, matrix_stages *ring)
{
    if (ring->left > 0) {
        bool there = matrix_copied_row(at) < ring->left;
#if KV_PAGED
        const int first = matrix_copied_piece(at) * 16;
        const __global uchar *const k = kv_key(args, &ring->cache, ring->next) + first;
        const __global uchar *const v = kv_value(args, &ring->cache, ring->next) + first;
        there &= ring->next.valid;
#else
        const __global uchar *const k = ring->k, *const v = ring->v;
        ring->k += item->stride * args->k.token;
        ring->v += item->stride * args->v.token;
#endif
        matrix_copy_row(at, ring->fill, k, there, K_BYTES, K_PITCH);
#if !V_FROM_K
        matrix_copy_row(at, ring->fill + V_STAGE_BEGIN, v, there, V_BYTES, V_PITCH);
#endif
        ring->left -= item->stride;
#if KV_PAGED
        matrix_find_row(args, in, item, at, ring);
#endif
    }
    matrix_commit();
    ring->fill = matrix_next_stage(ring->fill);
}

/* Starts on an item: fills all slots but one. */
MATRIX_INLINE void matrix_open_stages(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                      const matrix_place *at, matrix_stages *ring)
{
    const kv_cache cache = kv_open(args, in, item->batch, item->sequence.cache_row, item->kv_head);

    ring->left = max(item->end - item->begin, 0);
    ring->fill = ring->use = 0;
#if KV_PAGED
    ring->cache = cache;
    ring->next.page = ring->next.token = 0;
    ring->next.valid = false;
    matrix_find_row(args, in, item, at, ring);
#else
    const long token = (long)item->begin + matrix_copied_row(at);
    ring->k = cache.k + (token * args->k.token + matrix_copied_piece(at) * 16);
    ring->v = cache.v + (token * args->v.token + matrix_copied_piece(at) * 16);
#endif
#pragma unroll MATRIX_UNROLL
    for (int x = 0; x < MATRIX_SLOTS - 1; x++)
        matrix_fill_stage(args, in, item, at, ring);
}

/* Waits for the next stage, which is `left` tokens before the end, and fills the slot of the one before it. `holes` says
 * whether some token of it has no page. */
MATRIX_INLINE uint matrix_take_stage(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                     const matrix_place *at, matrix_stages *ring, int left, bool *holes)
{
    const uint stage = ring->use;

    matrix_wait(STAGES_AHEAD);
#if KV_PAGED
    const int token = item->end - left + min(matrix_copied_row(at), left - 1);
    *holes = matrix_meet(at, !kv_find(args, in, &ring->cache, token).valid);
#else
    barrier(CLK_LOCAL_MEM_FENCE);
    *holes = false;
#endif
    matrix_fill_stage(args, in, item, at, ring);
    ring->use = matrix_next_stage(stage);
    return stage;
}

/* Where piece `side` (0 or 1) of a warp's step c lies in a row of a tile. Those of every fourth step differ by a constant. */
MATRIX_INLINE uint matrix_step_piece(const matrix_place *at, int row, int c, int side, int bytes, int pitch)
{
    const int step = c * DIM_PARTS % 4 + at->part;

    return matrix_piece(row, 2 * step + side, bytes, pitch) + c * DIM_PARTS / 4 * 128;
}

#endif

#endif

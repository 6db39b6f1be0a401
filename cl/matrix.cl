/* matrix.cl - the shape of a matrix work-group: tunables, the constants derived from them, and where the elements of a
 * row lie in the fragments. decode_matrix.cl says what they are for.
 *
 * Tunables, given by the host:
 *   MATRIX_WARPS   warps per work-group
 *   Q_ALIGNED      1: rows of q start on boundaries of 4 bytes
 *   MATRIX_SLOTS   slots of a warp's ring, each for TILE rows of K or of V; at least 2
 *   MATRIX_ONCE    1: each key is read by one work-group alone, as far as the plan knows
 *   MATRIX_PAGE_TILES  1: every tile lies within one page
 *   MATRIX_PARTS   0: each warp has tiles of its own and all rows of the block. Else the warps share tiles, and slots
 *                  hold stages of them: matrix_block.cl. So many warps (1, 2 or 4) divide the dims of rows of their own
 */
#ifndef CLFD_MATRIX_CL
#define CLFD_MATRIX_CL

#include "matrix_warp.cl"

#ifndef MATRIX_PARTS
#define MATRIX_PARTS 0
#endif
#if MATRIX_PARTS == 0
#define DIM_PARTS 1
#define DECODE_TILE (MATRIX_WARPS * 16)
#define DECODE_RUN (K_SCALED || V_SCALED ? 1 : 8) /* what makes operands of codes bounds the time of those */
#else
#define DIM_PARTS MATRIX_PARTS
#define STAGE_TILES (MATRIX_PARTS == 1 && HEAD_DIM <= 128 && HEAD_DIM_V <= 128 ? 2 : 1)
#define DECODE_TILE (STAGE_TILES * 16)
#define ROW_SETS (MATRIX_WARPS / MATRIX_PARTS) /* of warps, each with rows of its own */
#define WARP_ROWS ((DECODE_ROWS + 16 * ROW_SETS - 1) / (16 * ROW_SETS) * 16)
#endif
#include "decode_store.cl"

#ifndef Q_ALIGNED
#define Q_ALIGNED 0
#endif
#ifndef MATRIX_ONCE
#define MATRIX_ONCE 0
#endif
#ifndef MATRIX_PAGE_TILES
#define MATRIX_PAGE_TILES 0
#endif
#ifndef MATRIX_SLOTS
#define MATRIX_SLOTS 2
#endif

#define TILE 16                               /* tokens that a warp takes at a time */
#define MATRIX_BLOCKS ((DECODE_ROWS + 7) / 8) /* of eight query rows */
#define MATRIX_SPREAD (DECODE_ROWS <= 4)      /* four rows take the columns of eight, two each */
#define LANE_ROWS (MATRIX_SPREAD ? 1 : 2)     /* rows of a block whose scores a lane has */
#define K_STEPS (HEAD_DIM / 16 / DIM_PARTS)   /* products of 16 dims each that a warp makes of a score */

/* Codes come in units of 32 dims: a scale, where it lies among them, and 32 or 16 bytes. Integer codes are taken as they
 * lie, fp8 by conversion. */
#define CODES_LEAD(type) ((type) == TYPE_Q8_0 || (type) == TYPE_Q4_0 ? 2 : 0)
#define CODES_NIBBLES(type) ((type) == TYPE_INT4 || (type) == TYPE_Q4_0)
#define CODES_UNIT_BYTES(type) (CODES_LEAD(type) + (CODES_NIBBLES(type) ? 16 : 32))
#define K_FP8 (K_TYPE == TYPE_E4M3 || K_TYPE == TYPE_E5M2)
#define V_FP8 (V_TYPE == TYPE_E4M3 || V_TYPE == TYPE_E5M2)
#define K_INTEGERS K_SCALED
#define V_INTEGERS V_SCALED
#define K_NIBBLES CODES_NIBBLES(K_TYPE)
#define V_NIBBLES CODES_NIBBLES(V_TYPE)
#define K_UNITS (HEAD_DIM / 32)
#define V_UNITS (HEAD_DIM_V / 32)

/* A row in a slot: pieces that are copied at once, at a pitch that spreads rows over the banks. Where eight pieces make a
 * multiple of the row, pieces change places instead (MATRIX_SWAP), which costs no memory. */
#define COPY_BYTES(bytes) ((bytes) % 16 == 0 ? 16 : (bytes) % 8 == 0 ? 8 : 4)
#define SWAPS(bytes) ((bytes) % 128 == 0)
#define PITCH(bytes) (SWAPS(bytes) ? (bytes) : (((bytes) + 15) / 16 | 1) * 16)
#define K_BYTES K_ROW_BYTES(HEAD_DIM)
#define V_BYTES V_ROW_BYTES(HEAD_DIM_V)
#define K_PITCH PITCH(K_BYTES)
#define V_PITCH PITCH(V_BYTES)
#define TILE_BYTES (TILE * (K_PITCH > V_PITCH ? K_PITCH : V_PITCH))

/* The scale of a whole row belongs to its score or to its weight. A smaller group's belongs to units. Those that lie in
 * tensors of their own follow the tile in its slot, unit by unit, four bytes each. */
#define K_ROW_SCALED (K_SCALE == SCALE_GROUP && K_GROUP >= HEAD_DIM)
#define V_ROW_SCALED (V_SCALE == SCALE_GROUP && V_GROUP >= HEAD_DIM_V)
#define K_UNIT_SCALED (K_SCALED && !K_ROW_SCALED)
#define V_UNIT_SCALED (V_SCALED && !V_ROW_SCALED)
#define K_UNIT_SCALES (K_UNIT_SCALED ? K_UNITS : 1)
#define V_UNIT_SCALES (V_UNIT_SCALED ? V_UNITS : 1)
#define K_SLOT_SCALES (K_SCALE == SCALE_GROUP ? K_UNIT_SCALES : 0)
#define V_SLOT_SCALES (V_SCALE == SCALE_GROUP ? V_UNIT_SCALES : 0)
#define SLOT_SCALES (K_SLOT_SCALES > V_SLOT_SCALES ? K_SLOT_SCALES : V_SLOT_SCALES)
#define SLOT_BYTES ((TILE_BYTES + TILE * 4 * SLOT_SCALES + 127) / 128 * 128)

/* At the end a warp puts eight rows of o and their statistics where its ring was. */
#define FOLD_STRIDE (HEAD_DIM_V + 4)
#define FOLD_BYTES ((8 * FOLD_STRIDE + 8 * 4) * 4)
#define WARP_BYTES (MATRIX_SLOTS * SLOT_BYTES > FOLD_BYTES ? MATRIX_SLOTS * SLOT_BYTES : FOLD_BYTES)

/* Integer codes of K are multiplied by steps of 16 bytes of nibbles, 32 of others. Units that begin where steps do are
 * one product each. GGML's begin anywhere, in one step of two: there is a product for each step and unit that meet, of
 * which each is numbered one above the one before it in either. */
#define K_LEAD CODES_LEAD(K_TYPE)
#define K_UNIT_SPAN CODES_UNIT_BYTES(K_TYPE)
#define K_STEP_BYTES (K_NIBBLES ? 16 : 32)
#define K_PIECES ((K_BYTES + 15) / 16)
#define K_LOADS ((K_PIECES + 1) / 2)
#define K_MEETS (K_LEAD > 0 ? 2 : 1) /* steps that a unit meets at most */
#define K_FIRST_STEP(unit) (((unit)*K_UNIT_SPAN + K_LEAD) / K_STEP_BYTES)
#define K_LAST_STEP(unit) ((((unit) + 1) * K_UNIT_SPAN - 1) / K_STEP_BYTES)
#define K_PRODUCT(step, unit) (K_LEAD > 0 ? (step) + (unit) : (unit))
#define K_SETS (MATRIX_SPREAD ? 2 : 3) /* of products, for three digits */
#define K_PRODUCTS (K_PRODUCT(K_LAST_STEP(K_UNITS - 1), K_UNITS - 1) + 1)

/* Steps of o: of 16 dims each. Integer codes of V are taken by pieces of 16 bytes, which give one step or, of nibbles, two;
 * of GGML's types those of each unit that the piece meets, numbered as the products of K are. */
#define V_LEAD CODES_LEAD(V_TYPE)
#define V_UNIT_SPAN CODES_UNIT_BYTES(V_TYPE)
#define V_PIECES ((V_BYTES + 15) / 16)
#define V_LOADS ((V_PIECES + 1) / 2)
#define V_MEETS (V_LEAD > 0 ? 2 : 1) /* units that a piece meets at most */
#define V_FIRST_UNIT(piece) ((piece)*16 / V_UNIT_SPAN)
#define V_LAST_UNIT(piece) (((piece)*16 + 15 - V_LEAD) / V_UNIT_SPAN)
#define V_PIECE_STEPS (V_NIBBLES ? 2 : 1)
#define V_STEP(piece, unit) ((V_LEAD > 0 ? (piece) + (unit) : (piece)) * V_PIECE_STEPS)
#if V_INTEGERS
#define V_STEPS (V_STEP(V_PIECES - 1, V_UNITS - 1) + V_PIECE_STEPS)
#else
#define V_STEPS (HEAD_DIM_V / 16 / DIM_PARTS)
#endif

MATRIX_INLINE void matrix_set_lane(matrix_place *at, int lane)
{
    at->lane = lane;
    at->row = (int)((uint)lane / 4);
    at->pair = (int)((uint)lane % 4);
}

/* The same place, of which nothing that comes of the lane is known before: for the sake of what must not wait for it. */
MATRIX_INLINE matrix_place matrix_place_again(const matrix_place *at)
{
    matrix_place again = *at;
    matrix_set_lane(&again, matrix_opaque(at->lane));
    return again;
}

/* Which dim of K is element i (0 to 3) of what a lane holds of product `step`. The order of dims is free as long as q has
 * the same: fp8 is taken as it lies together. */
MATRIX_INLINE int matrix_key_dim(int step, int pair, int i)
{
#if K_FP8
    return step * 16 + 4 * pair + i;
#else
    return step * 16 + 2 * pair + i % 2 + i / 2 * 8;
#endif
}

/* Which dim of V is a lane's row (i: 0 or 1) of step `step` of o; below 0 where it is none. */
MATRIX_INLINE int matrix_value_dim(int step, int row, int i)
{
#if V_LEAD > 0
    const int number = step / V_PIECE_STEPS, unit = (16 * number + 15 - V_LEAD) / (V_UNIT_SPAN + 16);
    const int byte = (number - unit) * 16 + 2 * row + (V_NIBBLES ? step % 2 : i) - (unit * V_UNIT_SPAN + V_LEAD);
    return byte < 0 || byte >= V_UNIT_SPAN - V_LEAD ? -1 : unit * 32 + byte + (V_NIBBLES ? 16 * i : 0);
#elif V_NIBBLES
    return step / 2 * 32 + 4 * row + step % 2 * 2 + i;
#elif V_INTEGERS || V_FP8
    return step * 16 + 2 * row + i;
#else
    return step * 16 + row + 8 * i;
#endif
}

/* What a lane holds of its warp's states: of its rows of each block, 2 pair and 2 pair + 1 or row pair, the maximum that o
 * and l stand under, its own part of l, and its dims of o. */
typedef struct matrix_stream {
    float m[MATRIX_BLOCKS][LANE_ROWS], l[MATRIX_BLOCKS][LANE_ROWS];
    float unit[MATRIX_BLOCKS][LANE_ROWS]; /* V_SCALED: what o is counted in, a power of two */
    float least;                          /* V_SCALED: of the units */
    float4 o[MATRIX_BLOCKS][V_STEPS];
} matrix_stream;

/* The query rows: fragments of q, or its digits, and what their scores need. */
typedef struct matrix_queries {
#if K_INTEGERS
    uint2 digits[MATRIX_BLOCKS][K_SETS][K_PRODUCTS]; /* the greatest first; two to a set where four rows are spread */
    float unit[MATRIX_BLOCKS][LANE_ROWS];            /* what they count */
    uint irregular;                                  /* bit 2 b + i: row i of a lane's of block b is not finite */
#else
    uint2 q[MATRIX_BLOCKS][K_STEPS];
#endif
    score_row rows[MATRIX_BLOCKS][LANE_ROWS];
} matrix_queries;

/* Which of all steps a warp's step c is. */
MATRIX_INLINE int matrix_step(const matrix_place *at, int c) { return c * DIM_PARTS + at->part; }

/* Row i of a lane's of a block; past the last row of DECODE_ROWS that one is meant again. */
MATRIX_INLINE int matrix_block_row(int block, int pair, int i)
{
    return min(block * 8 + pair * LANE_ROWS + i, DECODE_ROWS - 1);
}

/* Numbers of the first and the last of a lane's rows of a block, as sums of products lie. */
MATRIX_INLINE float4 matrix_by_row(float first, float last) { return (float4)(first, last, first, last); }

/* The row of q in column `column` of a block; spread rows are in the even columns, and some have something else in the odd
 * ones. */
MATRIX_INLINE int matrix_column_row(int block, int column) { return block * 8 + column * LANE_ROWS / 2; }

#if !K_INTEGERS
/* The pair of elements i and i + 1 of product `step`; `own` is where element 0 of product 0 lies, as distances of dims are
 * the same for all lanes. */
MATRIX_INLINE uint matrix_load_q(const __global q_element *own, bool exists, int step, int i)
{
    const int low = matrix_key_dim(step, 0, i), high = matrix_key_dim(step, 0, i + 1);
#if Q_ALIGNED
    return exists ? *(const __global uint *)(own + low) : 0;
#else
    return exists ? own[low] | (uint)own[high] << 16 : 0;
#endif
}

/* Fragments of q. */
MATRIX_INLINE void matrix_load_queries(const __global q_element *q, const decode_args *args, const decode_item *item,
                                       const matrix_place *at, matrix_queries *queries)
{
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        const int r = matrix_column_row(b, at->row);
        const bool exists = r < DECODE_ROWS && (at->row & (LANE_ROWS == 1)) == 0;
        const decode_row row = decode_find_row(args, item, min(r, DECODE_ROWS - 1));
        const __global q_element *const own = q + (decode_q_index(args, item, &row) + matrix_key_dim(0, at->pair, 0));
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < K_STEPS; c++) {
            queries->q[b][c].x = matrix_load_q(own, exists, c, 0);
            queries->q[b][c].y = matrix_load_q(own, exists, c, 2);
        }
    }
}
#endif

/* What scores need of the rows. */
MATRIX_INLINE void matrix_find_rows(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                    const matrix_place *at, matrix_queries *queries)
{
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++)
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < LANE_ROWS; i++) {
            queries->rows[b][i] = decode_score_row(args, in, item, matrix_block_row(b, at->pair, i));
            queries->rows[b][i].limit = min(queries->rows[b][i].limit, item->end);
        }
}

#endif

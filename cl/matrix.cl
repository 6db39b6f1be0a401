/* matrix.cl - the shape of a matrix work-group: tunables, the constants derived from them, and where the elements of a
 * row lie in the fragments. decode_matrix.cl says what they are for.
 *
 * Tunables, given by the host:
 *   MATRIX_WARPS   warps per work-group
 *   Q_ALIGNED      1: rows of q start on boundaries of 4 bytes
 *   MATRIX_SLOTS   slots of a warp's ring, each for TILE rows of K or of V; at least 2
 *   MATRIX_ONCE    1: one pass reads all of K and V
 */
#ifndef CLFD_MATRIX_CL
#define CLFD_MATRIX_CL

#include "matrix_warp.cl"

#define DECODE_TILE (MATRIX_WARPS * 16)
#include "decode.cl"

#ifndef Q_ALIGNED
#define Q_ALIGNED 0
#endif
#ifndef MATRIX_ONCE
#define MATRIX_ONCE 0
#endif
#ifndef MATRIX_SLOTS
#define MATRIX_SLOTS 2
#endif

#define TILE 16                               /* tokens that a warp takes at a time */
#define MATRIX_BLOCKS ((DECODE_ROWS + 7) / 8) /* of eight query rows */
#define K_STEPS (HEAD_DIM / 16)               /* products of 16 dims each that make a score */
#define V_STEPS (HEAD_DIM_V / 16)             /* of 16 dims of o */

/* Codes are taken by units of 32 dims, two products. */
#define K_CODES (K_TYPE != TYPE_F16 && K_TYPE != TYPE_BF16)
#define V_CODES (V_TYPE != TYPE_F16 && V_TYPE != TYPE_BF16)
#define K_UNITS (HEAD_DIM / 32)
#define V_UNITS (HEAD_DIM_V / 32)

/* A row in a slot: pieces that are copied at once, at a pitch that spreads rows over the banks. Where eight pieces make a
 * multiple of the row, pieces change places instead (MATRIX_SWAP), which costs no memory. */
#define COPY_BYTES(bytes) ((bytes) % 16 == 0 ? 16 : (bytes) % 8 == 0 ? 8 : 4)
#define SWAPS(bytes) ((bytes) % 128 == 0)
#define PITCH(bytes) ((bytes) % 16 != 0 || SWAPS(bytes) ? (bytes) : ((bytes) / 16 | 1) * 16)
#define K_BYTES K_ROW_BYTES(HEAD_DIM)
#define V_BYTES V_ROW_BYTES(HEAD_DIM_V)
#define K_PITCH PITCH(K_BYTES)
#define V_PITCH PITCH(V_BYTES)
#define SLOT_BYTES ((TILE * (K_PITCH > V_PITCH ? K_PITCH : V_PITCH) + 127) / 128 * 128)

/* At the end a warp puts eight rows of o and their statistics where its ring was, or o of what it merges. */
#define FOLD_STRIDE (HEAD_DIM_V + 4)
#define FOLD_ROWS_BYTES ((8 * FOLD_STRIDE + 8 * 4) * 4)
#define MERGE_MOST 16 /* states that one merge takes */
#define MERGE_GROUP 8
#define MERGE_BYTES (MERGE_MOST * HEAD_DIM_V * 4)
#define FOLD_BYTES (MERGE_BYTES > FOLD_ROWS_BYTES ? MERGE_BYTES : FOLD_ROWS_BYTES)
#define WARP_BYTES (MATRIX_SLOTS * SLOT_BYTES > FOLD_BYTES ? MATRIX_SLOTS * SLOT_BYTES : FOLD_BYTES)

/* Which dim of K is element i (0 to 3) of what a lane holds of product `step`. The order of dims is free as long as q has
 * the same: codes are taken as they lie together. */
MATRIX_INLINE int matrix_key_dim(int step, int pair, int i)
{
#if !K_CODES
    return step * 16 + 2 * pair + i % 2 + i / 2 * 8;
#elif K_TYPE == TYPE_INT4 /* nibbles n and n + 4 are pairs */
    return step / 2 * 32 + 8 * pair + step % 2 * 2 + i / 2 + i % 2 * 4;
#elif K_TYPE == TYPE_Q4_0 /* the low nibbles of a block are its first half */
    return step / 2 * 32 + step % 2 * 16 + 4 * pair + i / 2 + i % 2 * 2;
#else
    return step / 2 * 32 + 8 * pair + step % 2 * 4 + i;
#endif
}

/* Which dim of V is a lane's row (i: 0 or 1) of product `step`. */
MATRIX_INLINE int matrix_value_dim(int step, int row, int i)
{
#if !V_CODES
    return step * 16 + row + 8 * i;
#elif V_TYPE == TYPE_Q4_0
    return step / 2 * 32 + step % 2 * 16 + 2 * row + i;
#else
    return step / 2 * 32 + 4 * row + step % 2 * 2 + i;
#endif
}

/* What a lane holds of its warp's states: of rows 2 pair and 2 pair + 1 of each block the maximum that o and l stand
 * under, its own part of l, and its dims of o. */
typedef struct matrix_stream {
    float m[MATRIX_BLOCKS][2], l[MATRIX_BLOCKS][2];
    float unit[MATRIX_BLOCKS][2]; /* V_SCALED: what o is counted in, a power of two */
    float4 o[MATRIX_BLOCKS][V_STEPS];
} matrix_stream;

/* The query rows: fragments of q, and what their scores need. */
typedef struct matrix_queries {
    uint2 q[MATRIX_BLOCKS][K_STEPS];
    score_row rows[MATRIX_BLOCKS][2];
} matrix_queries;

/* Row i of a lane's two of a block; past the last row of DECODE_ROWS that one is meant again. */
MATRIX_INLINE int matrix_block_row(int block, int pair, int i)
{
    return min(block * 8 + 2 * pair + i, DECODE_ROWS - 1);
}

/* The pair of elements i and i + 1 of product `step`; `own` is where element 0 of product 0 lies, as distances of dims are
 * the same for all lanes. */
MATRIX_INLINE uint matrix_load_q(const __global q_element *own, bool exists, int step, int i)
{
    const int low = matrix_key_dim(step, 0, i), high = matrix_key_dim(step, 0, i + 1);
#if Q_ALIGNED && K_TYPE != TYPE_INT4 && K_TYPE != TYPE_Q4_0
    return exists ? *(const __global uint *)(own + low) : 0;
#else
    return exists ? own[low] | (uint)own[high] << 16 : 0;
#endif
}

MATRIX_INLINE void matrix_load_queries(const __global q_element *q, const decode_args *args, const decode_inputs *in,
                                       const decode_item *item, const matrix_place *at, matrix_queries *queries)
{
#pragma unroll MATRIX_UNROLL
    for (int b = 0; b < MATRIX_BLOCKS; b++) {
        const int r = b * 8 + at->row;
        const decode_row row = decode_find_row(args, item, min(r, DECODE_ROWS - 1));
        const __global q_element *const own = q + (decode_q_index(args, item, &row) + matrix_key_dim(0, at->pair, 0));
#pragma unroll MATRIX_UNROLL
        for (int c = 0; c < K_STEPS; c++) {
            queries->q[b][c].x = matrix_load_q(own, r < DECODE_ROWS, c, 0);
            queries->q[b][c].y = matrix_load_q(own, r < DECODE_ROWS, c, 2);
        }
#pragma unroll MATRIX_UNROLL
        for (int i = 0; i < 2; i++) {
            queries->rows[b][i] = decode_score_row(args, in, item, matrix_block_row(b, at->pair, i));
            queries->rows[b][i].limit = min(queries->rows[b][i].limit, item->end);
        }
    }
}

#endif

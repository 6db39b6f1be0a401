/* append.cl - one append: the new rows of K and V go to the cache, K rotated and both converted or quantised; q is
 * rotated in place; the new lengths are written.
 *
 * A work-item does one piece of one row: some dims that share a scale or, of types without, APPEND_DIMS dims or pairs. The
 * pieces of a token are those of its K heads, V heads, and query heads, in this order. No piece depends on another, so
 * any work-group does.
 *
 * Tunables, given by the host:
 *   APPEND_WG                    work-items per work-group
 *   HEAD_DIM, HEAD_DIM_V         dims of a row of K and of V
 *   APPEND_K_DIMS, APPEND_V_DIMS dims per piece: a group of int8 and int4, a block of GGML's 32, else any divisor of the
 *                                row; APPEND_V_DIMS 0: V is a part of K, and there is no row of V
 *   APPEND_Q_PAIRS               pairs of q per piece; 0: q is not rotated
 *   K_TYPE, V_TYPE, Q_TYPE, NEW_TYPE            values of clfd_type
 *   K_ZEROS, V_ZEROS, K_SCALE_TYPE, V_SCALE_TYPE  of int8 and int4; fp8 has scale types
 *   and those of rope.cl and pages.cl
 */
#include "args.h"
#include "pages.cl"
#include "quantise.cl"

#ifndef APPEND_WG
#define APPEND_WG 64
#endif
#ifndef HEAD_DIM
#define HEAD_DIM 128
#endif
#ifndef HEAD_DIM_V
#define HEAD_DIM_V 128
#endif
#ifndef APPEND_K_DIMS
#define APPEND_K_DIMS 8
#endif
#ifndef APPEND_V_DIMS
#define APPEND_V_DIMS 8
#endif
#ifndef APPEND_Q_PAIRS
#define APPEND_Q_PAIRS 4
#endif
#ifndef K_TYPE
#define K_TYPE TYPE_F16
#endif
#ifndef V_TYPE
#define V_TYPE K_TYPE
#endif
#ifndef K_ZEROS
#define K_ZEROS 0
#endif
#ifndef V_ZEROS
#define V_ZEROS K_ZEROS
#endif
#ifndef K_SCALE_TYPE
#define K_SCALE_TYPE TYPE_F32
#endif
#ifndef V_SCALE_TYPE
#define V_SCALE_TYPE K_SCALE_TYPE
#endif

#define K_PIECES (HEAD_DIM / APPEND_K_DIMS)
#if APPEND_V_DIMS
#define V_PIECES (HEAD_DIM_V / APPEND_V_DIMS)
#else
#define V_PIECES 0
#endif
#if APPEND_Q_PAIRS
#define Q_PIECES ((ROTARY_PAIRS + APPEND_Q_PAIRS - 1) / APPEND_Q_PAIRS)
#else
#define Q_PIECES 0
#endif

/* Where a token goes: a page (a cache row where there are no pages) and the token within it; page -1: it is dropped, for
 * the reason in `flag`. */
typedef struct append_place {
    int page, within;
    uint flag;
} append_place;

static inline append_place append_find(const append_args *args, const __global int *cache_rows,
                                       const __global int *block_table, const __global int *page_indptr, int sequence,
                                       int kv_len, int token)
{
    const int row = args->has_cache_rows ? cache_rows[args->cache_rows_offset + sequence] : sequence;
    append_place place = {-1, 0, 0u};

    if (row < 0 || row >= args->num_cache_rows) {
        place.flag = FLAG_CACHE_ROW;
    } else if (token >= args->max_kv_len - kv_len) {
        place.flag = FLAG_CAPACITY;
    } else {
        place.page = page_find(block_table + args->block_table_offset, page_indptr + args->page_indptr_offset, row,
                               kv_len + token, &args->pages, &place.within);
        place.flag = place.page < 0 ? FLAG_PAGE : 0u;
    }
    return place;
}

/* A piece of a row of K or of V. */
typedef struct append_piece {
    int sequence, token, head, part;
    append_place place;
} append_piece;

static inline scale_place append_scale(__global uchar *scales, __global uchar *zeros, const scale_args *args,
                                       append_piece at, int type, bool has_zeros)
{
    const long index =
        at.place.page * args->batch + at.place.within * args->token + at.head * args->head + at.part * args->group;
    scale_place scale;
    scale.scales = scales;
    scale.zeros = zeros;
    scale.scale = args->scale_offset + index;
    scale.zero = args->zero_offset + index;
    scale.type = type;
    scale.has_zeros = has_zeros;
    return scale;
}

/* Writes it: `dims` dims of what new_k or new_v has for it, to k or v. Inlined as quantise_dims is. */
static inline __attribute__((always_inline)) void append_write(append_piece at, const __global uchar *new_rows,
                                                               const row_args *new_args, new_row from,
                                                               __global uchar *cache, const kv_args *args,
                                                               scale_place scale, int dims, int type)
{
    const long first =
        new_args->offset + at.sequence * new_args->batch + at.token * new_args->token + at.head * new_args->head;
    __global uchar *const to =
        cache + (args->offset + at.place.page * args->batch + at.place.within * args->token + at.head * args->head);

    from.elements = new_rows + first * (NEW_TYPE == TYPE_F32 ? 4 : 2);
    quantise_dims(to, &from, at.part * dims, dims, type, &scale);
}

/* Rotates piece `piece` of a row of q; a work-item reads and writes whole pairs, which are nobody else's. */
static inline void append_rotate(__global uchar *q, long row, int piece, const __global float *cosines,
                                 const __global float *sines)
{
    const int end = min((piece + 1) * APPEND_Q_PAIRS, ROTARY_PAIRS);

    for (int i = piece * APPEND_Q_PAIRS; i < end; i++) {
        const float2 pair = rope_rotate(element_load(q, row + rope_first(i), Q_TYPE),
                                        element_load(q, row + rope_second(i), Q_TYPE), cosines[i], sines[i]);
        element_store(q, row + rope_first(i), pair.x, Q_TYPE);
        element_store(q, row + rope_second(i), pair.y, Q_TYPE);
    }
}

__attribute__((reqd_work_group_size(APPEND_WG, 1, 1))) __kernel void
append(const __global uchar *new_k, const __global uchar *new_v, __global uchar *k, __global uchar *v,
       __global uchar *k_scale, __global uchar *v_scale, __global uchar *k_zero, __global uchar *v_zero,
       const __global int *block_table, const __global int *page_indptr, const __global int *cache_rows,
       const __global int *kv_lens, __global int *kv_lens_out, const __global int *new_lens,
       const __global float *cosines, const __global float *sines, const __global int *positions, __global uchar *q,
       __global uint *status, const append_args args)
{
    const int pieces = args.num_kv_heads * (K_PIECES + V_PIECES) + args.num_q_heads * Q_PIECES;
    const long item = (long)get_global_id(0), row = item / pieces;
    int piece = (int)(item - row * pieces);
    const int sequence = (int)(row / args.num_tokens), token = (int)(row - (long)sequence * args.num_tokens);
    if (sequence >= args.num_sequences)
        return;
    const int kv_len = args.has_kv_lens ? clamp(kv_lens[args.kv_lens_offset + sequence], 0, args.max_kv_len) : 0;
    const int count =
        args.has_new_lens ? clamp(new_lens[args.new_lens_offset + sequence], 0, args.num_tokens) : args.num_tokens;
    if (args.has_kv_lens_out && token == 0 && piece == 0)
        kv_lens_out[args.kv_lens_out_offset + sequence] = kv_len + min(count, args.max_kv_len - kv_len);
    if (token >= count)
        return;

    const append_place place = append_find(&args, cache_rows, block_table, page_indptr, sequence, kv_len, token);
    if (place.page < 0 && piece == 0 && args.has_status)
        atomic_or(status + args.status_offset, place.flag);
    new_row from;
    from.rotated = false;
#if ROPE != ROPE_NONE
    const long position = args.has_positions ? positions[args.positions_offset + row] : (long)kv_len + token;
    const long table = clamp(position, 0L, (long)args.max_positions - 1) * ROTARY_PAIRS;
    from.cosines = cosines + args.cos_offset + table;
    from.sines = sines + args.sin_offset + table;
#endif

    append_piece at;
    at.sequence = sequence;
    at.token = token;
    at.place = place;
    if (piece < args.num_kv_heads * K_PIECES) {
        at.head = piece / K_PIECES;
        at.part = piece % K_PIECES;
        from.rotated = ROPE != ROPE_NONE;
        if (place.page >= 0)
            append_write(at, new_k, &args.new_k, from, k, &args.k,
                         append_scale(k_scale, k_zero, &args.k_scale, at, K_SCALE_TYPE, K_ZEROS), APPEND_K_DIMS,
                         K_TYPE);
        return;
    }
    piece -= args.num_kv_heads * K_PIECES;
#if V_PIECES
    if (piece < args.num_kv_heads * V_PIECES) {
        at.head = piece / V_PIECES;
        at.part = piece % V_PIECES;
        if (place.page >= 0)
            append_write(at, new_v, &args.new_v, from, v, &args.v,
                         append_scale(v_scale, v_zero, &args.v_scale, at, V_SCALE_TYPE, V_ZEROS), APPEND_V_DIMS,
                         V_TYPE);
        return;
    }
    piece -= args.num_kv_heads * V_PIECES;
#endif
#if Q_PIECES
    const long q_row = args.q.offset + sequence * args.q.batch + token * args.q.token + piece / Q_PIECES * args.q.head;
    append_rotate(q, q_row, piece % Q_PIECES, from.cosines, from.sines);
#endif
}

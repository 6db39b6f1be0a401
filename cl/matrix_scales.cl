/* matrix_scales.cl - scales of K and V. Those among the codes come with them. Those in tensors of their own are copied like
 * codes, to the end of the slot: a register that a load is on its way to is soon waited for. Those of f16, which are too
 * short for such copies, go through registers, from where K is filled to where V is.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_SCALES_CL
#define CLFD_MATRIX_SCALES_CL

#include "matrix.cl"

typedef struct matrix_scales {
    float k[2][K_UNIT_SCALES], v[2][V_UNIT_SCALES]; /* of tokens row and row + 8; those of V as they are stored */
} matrix_scales;

/* Where those of a lane's token, lane % 16, of the tile to fill are read, and short ones until they are put in place. */
typedef struct matrix_scale_rows {
#if K_SLOT_SCALES > 0
    const __global uchar *k;
    long k_step; /* bytes from tile to tile of a warp */
    ushort short_k[K_SLOT_SCALES];
#endif
#if V_SLOT_SCALES > 0
    const __global uchar *v;
    long v_step;
    ushort short_v[V_SLOT_SCALES];
#endif
    uint key_slot; /* the address of the one that was filled with K */
} matrix_scale_rows;

#define SCALE_BYTES(type) ((type) == TYPE_F16 ? 2 : 4)

/* Finds them for a token. */
MATRIX_INLINE void matrix_find_scales(const decode_args *args, const decode_inputs *in, const kv_cache *cache, int page,
                                      long token, matrix_scale_rows *rows)
{
#if K_SLOT_SCALES > 0
    rows->k = in->k_scale +
              (args->k_scale.scale_offset + cache->k_scale + page * args->k_scale.batch + token * args->k_scale.token) *
                  SCALE_BYTES(K_SCALE_TYPE);
#endif
#if V_SLOT_SCALES > 0
    rows->v = in->v_scale +
              (args->v_scale.scale_offset + cache->v_scale + page * args->v_scale.batch + token * args->v_scale.token) *
                  SCALE_BYTES(V_SCALE_TYPE);
#endif
}

/* Without pages: goes on by the tokens of `step`, again and again. */
MATRIX_INLINE void matrix_find_scale_steps(const decode_args *args, int step, matrix_scale_rows *rows)
{
#if K_SLOT_SCALES > 0
    rows->k_step = step * args->k_scale.token * SCALE_BYTES(K_SCALE_TYPE);
#endif
#if V_SLOT_SCALES > 0
    rows->v_step = step * args->v_scale.token * SCALE_BYTES(V_SCALE_TYPE);
#endif
}

MATRIX_INLINE void matrix_next_scales(matrix_scale_rows *rows)
{
#if K_SLOT_SCALES > 0
    rows->k += rows->k_step;
#endif
#if V_SLOT_SCALES > 0
    rows->v += rows->v_step;
#endif
}

/* Where that of unit u of a token lies, in a slot or by the address of one. */
MATRIX_INLINE uint matrix_scale_place(uint slot, int u, int token)
{
    return slot + TILE_BYTES + (u * TILE + token) * 4;
}

/* Begins to copy those of K into the slot at address `slot`, which is filled with K, if the lane's token is there; loads
 * short ones of both. */
MATRIX_INLINE void matrix_fill_key_scales(const decode_args *args, const matrix_place *at, uint slot, bool there,
                                          matrix_scale_rows *rows)
{
    rows->key_slot = slot;
    if (at->lane >= TILE)
        return;
#if K_SLOT_SCALES > 0
#pragma unroll MATRIX_UNROLL
    for (int u = 0; u < K_SLOT_SCALES; u++) {
        const long group = 32 * u / K_GROUP * args->k_scale.group;
#if K_SCALE_TYPE == TYPE_F16
        rows->short_k[u] = there ? ((const __global ushort *)rows->k)[group] : 0;
#else
        matrix_copy_if4(at, matrix_scale_place(slot, u, at->lane), rows->k + group * 4, there);
#endif
    }
#endif
#if V_SLOT_SCALES > 0 && V_SCALE_TYPE == TYPE_F16
#pragma unroll MATRIX_UNROLL
    for (int u = 0; u < V_SLOT_SCALES; u++)
        rows->short_v[u] = there ? ((const __global ushort *)rows->v)[32 * u / V_GROUP * args->v_scale.group] : 0;
#endif
}

/* The same of V; puts short ones of both in place. */
MATRIX_INLINE void matrix_fill_value_scales(const decode_args *args, const matrix_place *at, uint slot, bool there,
                                            const matrix_scale_rows *rows)
{
    if (at->lane >= TILE)
        return;
#if K_SLOT_SCALES > 0 && K_SCALE_TYPE == TYPE_F16
#pragma unroll MATRIX_UNROLL
    for (int u = 0; u < K_SLOT_SCALES; u++)
        *(__local ushort *)(at->ring + (matrix_scale_place(rows->key_slot, u, at->lane) - at->base)) = rows->short_k[u];
#endif
#if V_SLOT_SCALES > 0
#pragma unroll MATRIX_UNROLL
    for (int u = 0; u < V_SLOT_SCALES; u++) {
#if V_SCALE_TYPE == TYPE_F16
        *(__local ushort *)(at->ring + (matrix_scale_place(slot, u, at->lane) - at->base)) = rows->short_v[u];
#else
        matrix_copy_if4(at, matrix_scale_place(slot, u, at->lane), rows->v + 32 * u / V_GROUP * args->v_scale.group * 4,
                        there);
#endif
    }
#endif
}

/* ---- From a slot ------------------------------------------------------------------------------------------------- */

MATRIX_INLINE float matrix_slot_scale(const matrix_place *at, uint from, int type)
{
    return type == TYPE_F16 ? vload_half(0, (const __local half *)(at->ring + from))
                            : *(const __local float *)(at->ring + from);
}

/* Those of the tile of K in a slot. */
MATRIX_INLINE void matrix_read_key_scales(const matrix_place *at, uint slot, matrix_scales *scales)
{
#if K_SCALED
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < 2; i++)
#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < K_UNIT_SCALES; u++) {
            const int token = at->row + 8 * i;
            scales->k[i][u] = kv_key_factor(
                K_SLOT_SCALES > 0 ? matrix_slot_scale(at, matrix_scale_place(slot, u, token), K_SCALE_TYPE)
                                  : matrix_slot_scale(at, slot + token * K_PITCH + K_UNIT_BYTES * u, TYPE_F16));
        }
#endif
}

/* Those of the tile of V in a slot. */
MATRIX_INLINE void matrix_read_value_scales(const matrix_place *at, uint slot, matrix_scales *scales)
{
#if V_SCALED
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < 2; i++)
#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < V_UNIT_SCALES; u++) {
            const int token = at->row + 8 * i;
            scales->v[i][u] = V_SLOT_SCALES > 0
                                  ? matrix_slot_scale(at, matrix_scale_place(slot, u, token), V_SCALE_TYPE)
                                  : matrix_slot_scale(at, slot + token * V_PITCH + V_UNIT_BYTES * u, TYPE_F16);
        }
#endif
}

#endif

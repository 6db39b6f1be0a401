/* matrix_scales.cl - scales of K and V: those in tensors of their own the lanes of a warp load a tile ahead of their use, and
 * share; those among the codes they read from the slots.
 *
 * Tunables: those of matrix.cl.
 */
#ifndef CLFD_MATRIX_SCALES_CL
#define CLFD_MATRIX_SCALES_CL

#include "matrix.cl"
#include "matrix_ring.cl"

/* The scale of a whole row belongs to its score or to its weight. A smaller group's belongs to units, of which a lane
 * needs those of tokens row and row + 8. */
#define K_ROW_SCALED (K_SCALE == SCALE_GROUP && K_GROUP >= HEAD_DIM)
#define V_ROW_SCALED (V_SCALE == SCALE_GROUP && V_GROUP >= HEAD_DIM_V)
#define K_UNIT_SCALED (K_SCALED && !K_ROW_SCALED)
#define V_UNIT_SCALED (V_SCALED && !V_ROW_SCALED)
#define K_UNIT_SCALES (K_UNIT_SCALED ? K_UNITS : 1)
#define V_UNIT_SCALES (V_UNIT_SCALED ? V_UNITS : 1)

typedef struct matrix_scales {
    float k[2][K_UNIT_SCALES], v[2][V_UNIT_SCALES]; /* of tokens row and row + 8; those of V as they are stored */
} matrix_scales;

#define K_LOADED_SCALES (K_SCALE == SCALE_GROUP ? K_UNIT_SCALES : 0)
#define V_LOADED_SCALES (V_SCALE == SCALE_GROUP ? V_UNIT_SCALES : 0)
#define LOADED_SCALES (K_LOADED_SCALES > V_LOADED_SCALES ? K_LOADED_SCALES : V_LOADED_SCALES)

#define SCALE_BYTES(type) ((type) == TYPE_F16 ? 2 : 4)

/* A tile's scales as they are loaded: lanes 0 to 15 have those of K of its tokens, lanes 16 to 31 those of V. */
typedef struct matrix_loaded {
    float scales[LOADED_SCALES > 0 ? LOADED_SCALES : 1];
#if LOADED_SCALES && !KV_PAGED
    const __global uchar *from; /* those of this lane's token of the tile to load next */
    long step;                  /* bytes from tile to tile */
#endif
} matrix_loaded;

/* Where the scales of a token lie: those of K or of V, as the lane has them. */
MATRIX_INLINE const __global uchar *matrix_scales_of(const decode_args *args, const decode_inputs *in,
                                                     const matrix_place *at, const matrix_ring *ring, kv_place place)
{
    if (at->lane < 16)
        return in->k_scale + (args->k_scale.scale_offset + ring->cache.k_scale + place.page * args->k_scale.batch +
                              place.token * args->k_scale.token) *
                                 SCALE_BYTES(K_SCALE_TYPE);
    return in->v_scale + (args->v_scale.scale_offset + ring->cache.v_scale + place.page * args->v_scale.batch +
                          place.token * args->v_scale.token) *
                             SCALE_BYTES(V_SCALE_TYPE);
}

/* Begins with the tile that is `left` tokens before the end. */
MATRIX_INLINE void matrix_open_scales(const decode_args *args, const decode_inputs *in, const matrix_place *at,
                                      const matrix_ring *ring, int left, matrix_loaded *loaded)
{
#pragma unroll MATRIX_UNROLL
    for (int u = 0; u < LOADED_SCALES; u++)
        loaded->scales[u] = 0.0f;
#if LOADED_SCALES && !KV_PAGED
    kv_place first;
    first.page = 0;
    first.token = ring->end - max(left, 1);
    first.valid = true;
    loaded->step = at->lane < 16 ? args->k_scale.token * SCALE_BYTES(K_SCALE_TYPE)
                                 : args->v_scale.token * SCALE_BYTES(V_SCALE_TYPE);
    loaded->from = matrix_scales_of(args, in, at, ring, first) + (at->lane & 15) * loaded->step;
    loaded->step *= ring->stride;
#endif
}

/* Loads those of the tile that is `left` tokens before the end, each time of the next. Nothing is done with them here: a
 * lane would wait for what it needs a tile later. */
MATRIX_INLINE void matrix_load_scales(const decode_args *args, const decode_inputs *in, const matrix_place *at,
                                      const matrix_ring *ring, int left, matrix_loaded *loaded)
{
#if LOADED_SCALES
#if KV_PAGED
    if (left <= 0)
        return;
    const kv_place place = decode_find_key(args, in, &ring->cache, ring->end - left + min(at->lane & 15, left - 1));
    const __global uchar *const rows = matrix_scales_of(args, in, at, ring, place);
    const bool there = true;
#else
    const __global uchar *const rows = loaded->from;
    const bool there = (at->lane & 15) < left;
    loaded->from += loaded->step;
#endif
    /* One load for both halves of the warp: of two into one register the second waits for the first. */
#pragma unroll MATRIX_UNROLL
    for (int u = 0; u < LOADED_SCALES; u++) {
        const bool of_key = at->lane < 16;
        const long group = of_key ? 32 * u / K_GROUP * args->k_scale.group : 32 * u / V_GROUP * args->v_scale.group;
        if (!there || u >= (of_key ? K_LOADED_SCALES : V_LOADED_SCALES))
            continue;
#if K_SCALE_TYPE == V_SCALE_TYPE
        loaded->scales[u] = kv_scale_load(rows, group, K_SCALE_TYPE);
#else
        loaded->scales[u] =
            of_key ? kv_scale_load(rows, group, K_SCALE_TYPE) : kv_scale_load(rows, group, V_SCALE_TYPE);
#endif
    }
#endif
}

/* Gives every lane those of its tokens. */
MATRIX_INLINE void matrix_share_scales(const matrix_place *at, const matrix_loaded *loaded, matrix_scales *scales)
{
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < 2; i++) {
#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < K_LOADED_SCALES; u++)
            scales->k[i][u] = kv_key_factor(as_float(matrix_from(at, as_uint(loaded->scales[u]), at->row + 8 * i)));
#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < V_LOADED_SCALES; u++)
            scales->v[i][u] = as_float(matrix_from(at, as_uint(loaded->scales[u]), 16 + at->row + 8 * i));
    }
}

/* Those among the codes of K, and of V, of the tile in a slot. */
MATRIX_INLINE float matrix_slot_scale(const matrix_place *at, uint from)
{
    return vload_half(0, (const __local half *)(at->ring + from));
}

MATRIX_INLINE void matrix_read_key_scales(const matrix_place *at, uint slot, matrix_scales *scales)
{
#if K_SCALE == SCALE_ROW
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < 2; i++)
#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < K_UNITS; u++)
            scales->k[i][u] =
                kv_key_factor(matrix_slot_scale(at, slot + (at->row + 8 * i) * K_PITCH + K_UNIT_BYTES * u));
#endif
}

MATRIX_INLINE void matrix_read_value_scales(const matrix_place *at, uint slot, matrix_scales *scales)
{
#if V_SCALE == SCALE_ROW
#pragma unroll MATRIX_UNROLL
    for (int i = 0; i < 2; i++)
#pragma unroll MATRIX_UNROLL
        for (int u = 0; u < V_UNITS; u++)
            scales->v[i][u] = matrix_slot_scale(at, slot + (at->row + 8 * i) * V_PITCH + V_UNIT_BYTES * u);
#endif
}

#endif

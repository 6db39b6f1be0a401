/* kv.cl - where token t of sequence b lives, and what scales belong to it.
 *
 * Strided: row = offset + cache row * batch + t * token + h * head, 64-bit. Paged: page and token within it in the place
 * of cache row and t; pages.cl finds them. Strides of K and V are bytes, those of scales elements.
 *
 * Tunables, given by the host:
 *   V_FROM_K                  1: V is the first HEAD_DIM_V elements of K: the host gives K for V and its scales
 *   K_GROUP, V_GROUP          int8, int4: dims per scale
 *   K_ZEROS, V_ZEROS          int8, int4: 1: there are zeros
 *   K_SCALE_TYPE, V_SCALE_TYPE  TYPE_F32, TYPE_F16: of scales and zeros
 */
#ifndef CLFD_KV_CL
#define CLFD_KV_CL

#include "formats.cl"
#include "inputs.cl"
#include "pages.cl"

#ifndef V_FROM_K
#define V_FROM_K 0
#endif
#ifndef K_GROUP
#define K_GROUP 8
#endif
#ifndef V_GROUP
#define V_GROUP 8
#endif
#ifndef K_ZEROS
#define K_ZEROS 0
#endif
#ifndef V_ZEROS
#define V_ZEROS 0
#endif
#ifndef K_SCALE_TYPE
#define K_SCALE_TYPE TYPE_F32
#endif
#ifndef V_SCALE_TYPE
#define V_SCALE_TYPE TYPE_F32
#endif

/* Where the scale of a type lies: nowhere; one for the tensor or the head; a tensor with one for each group; in the row. */
#define SCALE_NONE 0
#define SCALE_TENSOR 1
#define SCALE_GROUP 2
#define SCALE_ROW 3
#define SCALE_OF(type)                                                                                                 \
    ((type) == TYPE_E4M3 || (type) == TYPE_E5M2   ? SCALE_TENSOR                                                       \
     : (type) == TYPE_INT8 || (type) == TYPE_INT4 ? SCALE_GROUP                                                        \
     : (type) == TYPE_Q8_0 || (type) == TYPE_Q4_0 ? SCALE_ROW                                                          \
                                                  : SCALE_NONE)
#define K_SCALE SCALE_OF(K_TYPE)
#define V_SCALE SCALE_OF(V_TYPE)
#define K_SCALED (K_SCALE >= SCALE_GROUP) /* a scale by groups of dims, applied to partial products */
#define V_SCALED (V_SCALE >= SCALE_GROUP)

/* The cache of one KV head of a sequence. */
typedef struct kv_cache {
    const __global uchar *k, *v; /* of token 0, or of token 0 of page 0 */
    long k_scale, v_scale;       /* likewise, in elements; scales and zeros share strides */
    int batch;                   /* which sequence's */
    int row;                     /* of the cache, or of the block table */
} kv_cache;

/* A token of it: the page, 0 where there are none, and the token within it. `valid` is false where there is no such page;
 * page and token are then those of some key that exists. */
typedef struct kv_place {
    int page, token;
    bool valid;
} kv_place;

static inline kv_cache kv_open(const decode_args *args, const decode_inputs *in, int batch, int row, int head)
{
    const long region = KV_PAGED ? 0 : row;
    kv_cache cache;
    cache.batch = batch;
    cache.row = row;
    cache.k = in->k + (args->k.offset + region * args->k.batch + head * args->k.head);
    cache.v = in->v + (args->v.offset + region * args->v.batch + head * args->v.head);
    cache.k_scale = region * args->k_scale.batch + head * args->k_scale.head;
    cache.v_scale = region * args->v_scale.batch + head * args->v_scale.head;
    return cache;
}

/* Another head of the same sequence. */
static inline kv_cache kv_next_head(const decode_args *args, kv_cache cache, int heads)
{
    cache.k += heads * args->k.head;
    cache.v += heads * args->v.head;
    cache.k_scale += heads * args->k_scale.head;
    cache.v_scale += heads * args->v_scale.head;
    return cache;
}

static inline kv_place kv_find(const decode_args *args, const decode_inputs *in, const kv_cache *cache, int token)
{
    kv_place place;
#if KV_PAGED
    place.page = page_find(in->block_table + args->block_table_offset, in->page_indptr + args->page_indptr_offset,
                           cache->row, token, &args->pages, &place.token);
    place.valid = place.page >= 0;
    if (!place.valid)
        place.page = place.token = 0;
#else
    place.page = 0;
    place.token = token;
    place.valid = true;
#endif
    return place;
}

/* Where a token's rows lie, in bytes from cache.k and cache.v: the same for all heads. */
static inline long kv_key_offset(const decode_args *args, kv_place place)
{
    return place.page * args->k.batch + place.token * args->k.token;
}

static inline long kv_value_offset(const decode_args *args, kv_place place)
{
    return place.page * args->v.batch + place.token * args->v.token;
}

static inline const __global uchar *kv_key(const decode_args *args, const kv_cache *cache, kv_place place)
{
    return cache->k + kv_key_offset(args, place);
}

static inline const __global uchar *kv_value(const decode_args *args, const kv_cache *cache, kv_place place)
{
    return cache->v + kv_value_offset(args, place);
}

static inline float kv_scale_load(const __global uchar *scales, long index, int type)
{
    return type == TYPE_F16 ? vload_half(index, (const __global half *)scales)
                            : ((const __global float *)scales)[index];
}

/* A scale that partial products of a key are multiplied by: NaN for an infinity, which makes infinities of both signs of the
 * key's elements, where a product of -inf would hide the key. */
static inline float kv_key_factor(float scale) { return fma(scale, 0.0f, scale); }

/* ---- Scales of groups. `row` is what kv_key or kv_value returned for the place, d the first of eight dims. -------- */

static inline float kv_key_scale(const decode_args *args, const decode_inputs *in, const kv_cache *cache,
                                 kv_place place, const __global uchar *row, int d)
{
#if K_SCALE == SCALE_GROUP
    const long index = cache->k_scale + place.page * args->k_scale.batch + place.token * args->k_scale.token +
                       d / K_GROUP * args->k_scale.group;
    return kv_key_factor(kv_scale_load(in->k_scale, args->k_scale.scale_offset + index, K_SCALE_TYPE));
#else
    return kv_key_factor(K_FORMAT(scale)(row, d));
#endif
}

static inline float kv_key_zero(const decode_args *args, const decode_inputs *in, const kv_cache *cache, kv_place place,
                                int d)
{
    const long index = cache->k_scale + place.page * args->k_scale.batch + place.token * args->k_scale.token +
                       d / K_GROUP * args->k_scale.group;
    return kv_scale_load(in->k_zero, args->k_scale.zero_offset + index, K_SCALE_TYPE);
}

static inline float kv_value_scale(const decode_args *args, const decode_inputs *in, const kv_cache *cache,
                                   kv_place place, const __global uchar *row, int d)
{
#if V_SCALE == SCALE_GROUP
    const long index = cache->v_scale + place.page * args->v_scale.batch + place.token * args->v_scale.token +
                       d / V_GROUP * args->v_scale.group;
    return kv_scale_load(in->v_scale, args->v_scale.scale_offset + index, V_SCALE_TYPE);
#else
    return V_FORMAT(scale)(row, d);
#endif
}

static inline float kv_value_zero(const decode_args *args, const decode_inputs *in, const kv_cache *cache,
                                  kv_place place, int d)
{
    const long index = cache->v_scale + place.page * args->v_scale.batch + place.token * args->v_scale.token +
                       d / V_GROUP * args->v_scale.group;
    return kv_scale_load(in->v_zero, args->v_scale.zero_offset + index, V_SCALE_TYPE);
}

/* ---- Scales of the tensor or the head: constant factors of all products and of the result ------------------------ */

static inline float kv_keys_factor(const decode_args *args, const decode_inputs *in, const kv_cache *cache)
{
#if K_SCALE == SCALE_TENSOR
    return kv_key_factor(kv_scale_load(in->k_scale, args->k_scale.scale_offset + cache->k_scale, K_SCALE_TYPE)) *
           K_UNIT;
#else
    return K_UNIT;
#endif
}

static inline float kv_values_factor(const decode_args *args, const decode_inputs *in, const kv_cache *cache)
{
#if V_SCALE == SCALE_TENSOR
    return kv_scale_load(in->v_scale, args->v_scale.scale_offset + cache->v_scale, V_SCALE_TYPE) * V_UNIT;
#else
    return V_UNIT;
#endif
}

#endif

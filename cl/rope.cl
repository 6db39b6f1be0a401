/* rope.cl - rotary position embedding of a row's rotary dims, and rows of new elements as the cache shall hold them.
 *
 * Tunables, given by the host:
 *   NEW_TYPE                  element type of new_k and new_v (a plain clfd_type)
 *   ROPE                      ROPE_NONE, ROPE_NEOX, ROPE_GPTJ (values of clfd_rope)
 *   ROTARY_START, ROTARY_DIM  first rotated dim, and how many
 */
#ifndef CLFD_ROPE_CL
#define CLFD_ROPE_CL

#include "types.cl"

#define ROPE_NONE 0
#define ROPE_NEOX 1
#define ROPE_GPTJ 2

#ifndef NEW_TYPE
#define NEW_TYPE TYPE_F16
#endif
#ifndef ROPE
#define ROPE ROPE_NEOX
#endif
#ifndef ROTARY_START
#define ROTARY_START 0
#endif
#ifndef ROTARY_DIM
#define ROTARY_DIM 64
#endif

#define ROTARY_PAIRS (ROTARY_DIM / 2)

/* Every product of a rotation is rounded, on all devices alike. */
#pragma OPENCL FP_CONTRACT OFF

/* One element of a plain type, which is a constant wherever this is called. */
static inline float element_load(const __global uchar *elements, long index, int type)
{
    if (type == TYPE_F32)
        return ((const __global float *)elements)[index];
    if (type == TYPE_F16)
        return vload_half(index, (const __global half *)elements);
    return bf16_to_float(((const __global ushort *)elements)[index]);
}

static inline void element_store(__global uchar *elements, long index, float value, int type)
{
    if (type == TYPE_F32)
        ((__global float *)elements)[index] = value;
    else if (type == TYPE_F16)
        vstore_half_rte(value, index, (__global half *)elements);
    else
        ((__global ushort *)elements)[index] = float_to_bf16(value);
}

/* The two dims of pair i < ROTARY_PAIRS. */
static inline int rope_first(int i) { return ROTARY_START + (ROPE == ROPE_GPTJ ? 2 * i : i); }
static inline int rope_second(int i) { return ROTARY_START + (ROPE == ROPE_GPTJ ? 2 * i + 1 : i + ROTARY_PAIRS); }

static inline float2 rope_rotate(float a, float b, float cosine, float sine)
{
    return (float2)(a * cosine - b * sine, b * cosine + a * sine);
}

/* A row of new_k or new_v; cosines and sines are those of its position, and unused where it is not rotated. */
typedef struct new_row {
    const __global uchar *elements;
    const __global float *cosines, *sines;
    bool rotated;
} new_row;

/* Element d of it, rotated. */
static inline float new_element(const new_row *row, int d)
{
#if ROPE != ROPE_NONE
    const int r = d - ROTARY_START;
    if (!row->rotated || r < 0 || r >= ROTARY_DIM)
        return element_load(row->elements, d, NEW_TYPE);
    const int i = ROPE == ROPE_GPTJ ? r / 2 : r % ROTARY_PAIRS;
    const float2 pair =
        rope_rotate(element_load(row->elements, rope_first(i), NEW_TYPE),
                    element_load(row->elements, rope_second(i), NEW_TYPE), row->cosines[i], row->sines[i]);
    return d == rope_first(i) ? pair.x : pair.y;
#else
    return element_load(row->elements, d, NEW_TYPE);
#endif
}

#endif

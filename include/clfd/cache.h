/* clfd/cache.h - writing the KV cache: new keys and values appended on the device, quantised on the host.
 *
 * An append is the other half of a decode step. Both read the same lengths on the device, so that a decode loop needs no
 * host round trip: append writes the new lengths to kv_lens_out, which is the kv_lens of the decode that follows. A
 * loop needs two such arrays in turn, the first filled with zeros: kv_lens of NONE means 0 to an append and all keys to a
 * decode.
 */
#ifndef CLFD_CACHE_H
#define CLFD_CACHE_H

#include <clfd/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How rotary position embedding pairs the elements x = row + rotary_start (Su et al., RoFormer, 2021):
 *
 *     NEOX  (x[i], x[i + rotary_dim / 2]), "rotate half"        GPTJ  (x[2 i], x[2 i + 1]), interleaved
 *     (a, b) -> (a cos - b sin, b cos + a sin) with cos = cos[r][i], sin = sin[r][i], i < rotary_dim / 2
 *
 * in fp32, each product and each sum rounded. */
typedef enum clfd_rope { CLFD_ROPE_NONE = 0, CLFD_ROPE_NEOX = 1, CLFD_ROPE_GPTJ = 2 } clfd_rope;

/* One append, of the new rows of K and V to the cache that `attention` describes:
 *
 *     for (b < batch) {
 *         len = clamp(kv_lens ? kv_lens[b] : 0, 0, max_kv_len)
 *         count = ragged ? clamp(new_lens[b], 0, num_tokens) : num_tokens
 *         for (t < count) {
 *             p = len + t; r = clamp(positions ? positions[b][t] : p, 0, max_positions - 1)
 *             for (h < num_q_heads) if (rope_q) q[b][t][h] = rope(q[b][t][h], r)   // in place
 *             if (b has no cache row)  { status |= CLFD_FLAG_CACHE_ROW; continue; }
 *             if (p >= max_kv_len)     { status |= CLFD_FLAG_CAPACITY; continue; }
 *             if (p has no valid page) { status |= CLFD_FLAG_PAGE; continue; }
 *             for (g < num_kv_heads) {
 *                 K(b, p, g) = convert(rope(new_k[b][t][g], r)); V(b, p, g) = convert(new_v[b][t][g])
 *             }
 *         }
 *         kv_lens_out[b] = min(len + count, max_kv_len)
 *     }
 *
 * K(b, p, g) and V(b, p, g) as at the top of attention.h; nothing but these rows and their scales is written. convert
 * rounds to nearest even. int8 and int4 get the scale (and zero) of each group from the row itself, GGML formats their
 * block's, fp8 divides by the given scale and saturates: see clfd_quantise_row, which gives the same codes and scales.
 * Scales of type F16 are rounded before the codes are computed from them. A device without CL_FP_DENORM may take
 * subnormal floats for 0.
 *
 * Rows of the cache must not overlap. What the descriptor says of scores and splits does not matter. With shared_kv there
 * is one sequence: batch is 0 or 1, and q cannot be rotated. With v_from_k there is no new_v. */
typedef struct clfd_append {
    size_t struct_size;              /* sizeof(clfd_append) */
    const clfd_attention *attention; /* the cache, as a decode over it says; read during the call only */
    uint32_t num_tokens;             /* new tokens per sequence at most, 1..65536; default q_len */
    uint32_t ragged;                 /* 1: the count of each sequence comes from buffers.new_lens */
    clfd_type new_type;              /* of new_k and new_v, plain; default q_type */
    clfd_strides new_k_strides;      /* elements; default dense [batch][num_tokens][num_kv_heads][dim] */
    clfd_strides new_v_strides;      /* likewise */
    clfd_rope rope;                  /* of K, and of q with rope_q; without it the fields below are 0 */
    uint32_t rope_q; /* 1: q is rotated in place; num_tokens is then at most q_len, and rows of q do not overlap */
    uint32_t rotary_start;  /* the first rotated element of a row: 0, or 512 for the last 64 of MLA's 576 */
    uint32_t rotary_dim;    /* even, 2..head_dim - rotary_start; default all of them */
    uint32_t max_positions; /* rows of cos and sin; default max_kv_len */
    uint32_t positions;     /* 1: rotary positions come from buffers.positions */
} clfd_append;

/* The tensors of one append. As in clfd_buffers, what an option asks for is required and anything else refused. */
typedef struct clfd_append_buffers {
    size_t struct_size;           /* sizeof(clfd_append_buffers) */
    uint32_t batch;               /* 0..max_batch */
    uint32_t num_page_indices;    /* CSR: elements of block_table */
    clfd_buffer new_k;            /* new_type [batch][num_tokens][num_kv_heads][head_dim] by new_k_strides */
    clfd_buffer new_v;            /* likewise [..][head_dim_v]; NONE with v_from_k */
    clfd_buffer k, v;             /* the cache, written; v NONE with v_from_k */
    clfd_buffer k_scale, v_scale; /* int8, int4: written; fp8: read */
    clfd_buffer k_zero, v_zero;   /* written */
    clfd_buffer block_table, page_indptr, cache_batch_idx; /* as in clfd_buffers */
    clfd_buffer kv_lens;                                   /* int32 [batch], before the append; NONE: 0 for all */
    clfd_buffer kv_lens_out;                               /* int32 [batch], after it; NONE: not written */
    clfd_buffer new_lens;                                  /* int32 [batch], with ragged */
    clfd_buffer cos, sin;                                  /* float [max_positions][rotary_dim / 2], with rope */
    clfd_buffer positions;                                 /* int32 [batch][num_tokens], with positions */
    clfd_buffer q;      /* q_type, by attention.q_strides, with rope_q; read and written */
    clfd_buffer status; /* as in clfd_buffers */
} clfd_append_buffers;

/* Opaque, immutable, reference-counted; as clfd_plan. */
typedef struct clfd_append_plan clfd_append_plan;

/* As clfd_plan_create, clfd_plan_retain, clfd_plan_release and clfd_plan_describe. */
CLFD_API clfd_status clfd_append_plan_create(clfd_context *context, const clfd_append *append, clfd_append_plan **plan);
CLFD_API void clfd_append_plan_retain(clfd_append_plan *plan);
CLFD_API void clfd_append_plan_release(clfd_append_plan *plan);
CLFD_API const char *clfd_append_plan_describe(const clfd_append_plan *plan);

/* Enqueues the append, which needs no workspace. Two sequences must not write the same token of the same page or row.
 *
 * Checks, non-blocking behaviour and thread-safety as clfd_enqueue_decode. No written tensor may overlap another tensor;
 * tensors of one buffer may interleave, as K and V of a page, codes and their scales, or q, new_k and new_v of one
 * projection do. */
CLFD_API clfd_status clfd_enqueue_append(clfd_append_plan *plan, cl_command_queue queue,
                                         const clfd_append_buffers *buffers, cl_uint num_wait, const cl_event *wait,
                                         cl_event *event);

/* ---- On the host ------------------------------------------------------------------------------------------------- */

/* Quantises one row of dim elements (any type; plain ones are converted), in fp32, each operation rounded:
 *
 *     int8, int4, no zeros   scales[g] = max|x| / 127 (7);  code = clamp(rint(x / scales[g]), -127 (-7), 127 (7))
 *     int8, int4, zeros      scales[g] = (max - min) / 255 (15); zeros[g] = -128 (-8) - rint(min / scales[g]);
 *                            code = clamp(rint(x / scales[g]) + zeros[g], -128 (-8), 127 (7)), min <= 0 <= max
 *     fp8                    code = x / scales[0], to nearest even; beyond the greatest finite code it saturates, an
 *                            infinity too (OCP, saturating mode); NaN stays NaN. scales is read
 *     q8_0                   d = f16(max|x| / 127), code = rint(x * 127 / max|x|)
 *     q4_0                   d = f16(m / -8), m the element of greatest magnitude; code = min(15, (int)(x / d + 8.5))
 *
 * A group of zeros has scale 0 and codes 0 (q4_0: 8, which stands for 0), also where it is the scale that rounds to 0. A
 * group of int8, int4, q8_0 or q4_0 with a NaN or an infinity has scale NaN and the same codes: all of it reads as NaN. A
 * d beyond the greatest f16 is an infinity. The fp8 code of a NaN is 0x7f or 0xff.
 *
 * group divides dim (0: dim; the only one for other types than int8 and int4); scales and zeros have dim / group floats,
 * and are ignored where the type has none. codes are aligned to 4 bytes for F32, 2 for F16, BF16 and the GGML formats.
 * CLFD_ERROR_TYPE, CLFD_ERROR_HEAD_DIM for a dim that is no whole number of storage units, CLFD_ERROR_QUANT,
 * CLFD_ERROR_NULL_ARGUMENT. Thread-safe. */
CLFD_API clfd_status clfd_quantise_row(clfd_type type, uint32_t dim, uint32_t group, const float *from, void *codes,
                                       float *scales, float *zeros);

/* to[d] = the value of element d, as clfd_type says; exact up to the rounding of one product. Errors likewise. */
CLFD_API clfd_status clfd_dequantise_row(clfd_type type, uint32_t dim, uint32_t group, const void *codes,
                                         const float *scales, const float *zeros, float *to);

#ifdef __cplusplus
}
#endif
#endif

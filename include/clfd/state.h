/* clfd/state.h - softmax states: the operators on the host, and the merge on the device.
 *
 * A state stands for a set of keys that some query row has seen. Two forms, both exact:
 *
 *     LSE   S = log sum exp(score),  o = softmax-weighted mean of V             (S natural logarithm)
 *     MLO   m = max score,  l = sum exp(score - m),  o as above                 (S = m + log l)
 *
 * The empty state has S = -inf, or m = -inf and l = 0; its o is ignored, whatever it holds. Rules, on host and device:
 * merge(empty, x) = x bit for bit; merge(empty, empty) = (0, -inf); S, m or l that is NaN or +inf gives NaN in o, S, m
 * and l. -inf is IEEE -inf: no finite number stands for it.
 *
 * S holds log l beside m in one fp32 number: where |S| is about 1e6 its last bit is 0.06, and states that the LSE form
 * merges weigh a few per cent wrong against each other. The MLO form keeps l apart and does not have that limit.
 *
 * Host operators hold states in fp32, as devices write them, compute in double precision, are thread-safe, allocate
 * nothing, and accept dim 0. They take plain pointers, cannot fail, and require that none is NULL (o and v may be NULL
 * where dim is 0). Unless said otherwise an output may be exactly one of the inputs and overlaps nothing else.
 *
 * Sources: online softmax, Milakov and Gimelshein (2018), algorithm 3; the (m, l, o) recurrence, Rabe and Staats (2021)
 * and FlashAttention (Dao et al., 2022), algorithm 1; the (S, o) merge, Ring Attention (Liu et al., 2023), FlashInfer
 * (Ye et al., 2025), section 2.2.
 */
#ifndef CLFD_STATE_H
#define CLFD_STATE_H

#include <clfd/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- One state, growing by keys ---------------------------------------------------------------------------------- */

/* The online-softmax update by one key: state (m, l, o) sees (score, v).
 *
 *     if (score == -inf) return;
 *     M = max(*m, score);  L = *l * exp(*m - M) + exp(score - M);
 *     for (d < dim) o[d] = (o[d] * *l * exp(*m - M) + exp(score - M) * v[d]) / L;
 *     *m = M;  *l = L;
 *
 * Start from the empty state (*m = -inf, *l = 0). With dim 0 it is the online softmax of scores alone. */
CLFD_API void clfd_state_update(float *m, float *l, float *o, size_t dim, float score, const float *v);

/* The update by one tile of num_keys keys: the tile's own maximum and sum first, then one rescaling of the state. Equal
 * to num_keys calls of clfd_state_update up to rounding.
 *
 *     v[j * v_stride + d]: value d of key j; v_stride in elements, at least dim */
CLFD_API void clfd_state_update_tile(float *m, float *l, float *o, size_t dim, size_t num_keys, const float *scores,
                                     const float *v, size_t v_stride);

/* Streams: num_streams running states, tile t of tile_len keys to stream t mod num_streams, merged at the end by the
 * two-step merge. The result is the state of all num_keys keys.
 *
 *     for (t = 0; t * tile_len < num_keys; t++) update_tile(stream[t % num_streams], tile t)
 *     (*lse, out) = merge of the streams
 *
 * stream_o: scratch [num_streams][dim]; stream_m, stream_l: scratch [num_streams]; all overwritten. num_streams and
 * tile_len at least 1. lse and out alias nothing. */
CLFD_API void clfd_state_streams(size_t num_streams, size_t tile_len, size_t dim, size_t num_keys, const float *scores,
                                 const float *v, size_t v_stride, float *stream_m, float *stream_l, float *stream_o,
                                 float *lse, float *out);

/* ---- Merging on the host ----------------------------------------------------------------------------------------- */

/* The pairwise merge (o1, S1) (+) (o2, S2), associative and commutative up to rounding:
 *
 *     S = max(S1, S2) + log1p(exp(min(S1, S2) - max(S1, S2)));  o = o1 * exp(S1 - S) + o2 * exp(S2 - S)
 *
 * (o, lse) may be exactly (o1, lse1) or (o2, lse2). */
CLFD_API void clfd_merge_pair_lse(const float *o1, float lse1, const float *o2, float lse2, size_t dim, float *o,
                                  float *lse);

/* The same in the other form: M = max m_i; L = sum l_i exp(m_i - M); o = sum l_i exp(m_i - M) o_i / L. */
CLFD_API void clfd_merge_pair_mlo(const float *o1, float m1, float l1, const float *o2, float m2, float l2, size_t dim,
                                  float *o, float *m, float *l);

/* The N-way two-step merge: first S over all states, then the weighted sum.
 *
 *     *lse = log sum_i exp(lses[i]);  out[d] = sum_i exp(lses[i] - *lse) * o[i * o_stride + d]
 *
 * num_states may be 0 (the empty state). out and lse alias nothing. */
CLFD_API void clfd_merge_lse(size_t num_states, const float *o, size_t o_stride, const float *lses, size_t dim,
                             float *out, float *lse);

/* The N-way merge of (m, l, o) states in sequence: ((s0 (+) s1) (+) s2) ... out, *m and *l alias nothing. */
CLFD_API void clfd_merge_mlo_sequential(size_t num_states, const float *o, size_t o_stride, const float *ms,
                                        const float *ls, size_t dim, float *out, float *m, float *l);

/* The N-way merge of (m, l, o) states as a binary tree, in place: state i takes in state i + step, for step 1, 2, 4 ...
 * State 0 ends as the result; all states are overwritten. With num_states 0 nothing happens. */
CLFD_API void clfd_merge_mlo_tree(size_t num_states, float *o, size_t o_stride, float *ms, float *ls, size_t dim);

/* The ring: the holder of shard `rank` of num_ranks accumulates all shards with (+), its own first, then those that
 * reach it over the ring, from rank - 1, rank - 2, ...
 *
 *     acc = shard[rank];  for (s = 1; s < num_ranks; s++) acc = acc (+) shard[(rank - s + num_ranks) % num_ranks]
 *
 * o[i * o_stride + d], lses[i]: shard i's state. out and lse alias nothing. rank < num_ranks. */
CLFD_API void clfd_merge_ring_lse(size_t num_ranks, size_t rank, const float *o, size_t o_stride, const float *lses,
                                  size_t dim, float *out, float *lse);

/* S of an (m, l) pair: m + log l, -inf for the empty state. */
CLFD_API float clfd_state_lse(float m, float l);

/* One attention over a cache in two parts, each with a plan of its own: compute both with out_type F32, dense out and
 * an lse buffer, and merge (out, lse) of the earlier part with (out, lse) of the later one, rows = batch * q_len *
 * num_q_heads in that order. A causal mask belongs to the later part alone, which must hold all new tokens: positions
 * are counted from a part's own last key, and the earlier part is visible whole. */

/* ---- Merging on the device --------------------------------------------------------------------------------------- */

/* A merge of num_states states for each of num_rows rows:
 *
 *     for (row < num_rows) {
 *         M = max_i e_i;  W = sum_i exp(e_i - M) * w_i        // LSE: e = S, w = 1;  MLO: e = m, w = l
 *         out[row] = sum_i (exp(e_i - M) * w_i / W) * o[row][i]
 *         LSE: lse[row] = M + log W;   MLO: m[row] = M, l[row] = W
 *     }
 */
typedef struct clfd_merge {
    size_t struct_size;  /* sizeof(clfd_merge) */
    uint32_t max_rows;   /* rows per call at most; required */
    uint32_t num_states; /* states per row, 1 and up; default 2 */
    uint32_t head_dim_v; /* a multiple of 8 from 8 to 576; required */
    clfd_partial partial;
    clfd_type out_type; /* default F32, which alone makes the output a state again */
} clfd_merge;

/* State arrays on the device, each contiguous. */
typedef struct clfd_state_buffers {
    clfd_buffer o;    /* float [rows][num_states][head_dim_v], 16-byte aligned */
    clfd_buffer lse;  /* LSE: float [rows][num_states] */
    clfd_buffer m, l; /* MLO: float [rows][num_states] each */
} clfd_state_buffers;

/* Opaque, immutable, reference-counted; as clfd_plan. */
typedef struct clfd_merge_plan clfd_merge_plan;

/* As clfd_plan_create. */
CLFD_API clfd_status clfd_merge_plan_create(clfd_context *context, const clfd_merge *merge, clfd_merge_plan **plan);
CLFD_API void clfd_merge_plan_retain(clfd_merge_plan *plan);
CLFD_API void clfd_merge_plan_release(clfd_merge_plan *plan);
CLFD_API const char *clfd_merge_plan_describe(const clfd_merge_plan *plan);

/* Enqueues the N-way merge. states: the inputs. merged: o is out_type [rows][head_dim_v]; lse, or m and l, float
 * [rows], may be NONE where not wanted. No output may overlap an input or another output. rows 0 is a marker.
 * Needs no workspace. Checks, non-blocking behaviour and thread-safety as clfd_enqueue_decode. */
CLFD_API clfd_status clfd_enqueue_merge(clfd_merge_plan *plan, cl_command_queue queue, uint32_t rows,
                                        const clfd_state_buffers *states, const clfd_state_buffers *merged,
                                        cl_uint num_wait, const cl_event *wait, cl_event *event);

/* Enqueues the pairwise merge of two states per row, each [rows][head_dim_v] and [rows]: merged = a (+) b. The plan
 * must have num_states 2 and out_type F32. Each array of merged may be exactly that of a or that of b (the accumulator), and
 * overlaps nothing else. merged needs its statistics: a pairwise merge yields a state. */
CLFD_API clfd_status clfd_enqueue_merge_pair(clfd_merge_plan *plan, cl_command_queue queue, uint32_t rows,
                                             const clfd_state_buffers *a, const clfd_state_buffers *b,
                                             const clfd_state_buffers *merged, cl_uint num_wait, const cl_event *wait,
                                             cl_event *event);

#ifdef __cplusplus
}
#endif
#endif

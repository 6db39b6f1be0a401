/* clfd/attention.h - decode attention: descriptor, plan, buffers, enqueue.
 *
 * What one call computes, for every sequence b < batch, query i < q_len and query head h < num_q_heads:
 *
 *     g    = h / (num_q_heads / num_kv_heads)                       // the KV head of query head h
 *     n    = clamp(kv_lens ? kv_lens[b] : max_kv_len, 0, kv_len_bound ? min(kv_len_bound, max_kv_len) : max_kv_len)
 *     p    = query_positions ? query_positions[b][i] : n - q_len + i // kv_len counts the new tokens
 *     m = -inf; l = 0; o[0..Dv) = 0
 *     for (j = kv_start ? kv_start[b] : 0; j < n; j++) {
 *         if (causal && j > p || window && j <= p - window || masked(b, i, j) || page_is_invalid(b, j)) continue;
 *         score = scale * dot(q[b][i][h], K(b, j, g), head_dim)
 *         if (softcap)  score = softcap * tanh(score / softcap)
 *         if (alibi)    score -= alibi[h] * |j - p|
 *         if (bias)     score += bias[b][h][i][j]
 *         if (score == -inf) continue;
 *         l += exp(score); o += exp(score) * V(b, j, g)              // computed as an online softmax, split and merged
 *     }
 *     if (sinks) l += exp(sinks[h])                                  // one more logit, without a value
 *     out[b][i][h] = l == 0 ? 0 : o / l
 *     lse[b][i][h] = l == 0 ? -inf : log(l)                          // natural logarithm
 *
 * K(b, j, g) and V(b, j, g) are rows of the cache: row c = cache_batch_idx ? cache_batch_idx[b] : b, and
 *
 *     strided   k[c][j][g]
 *     paged     k[page][j % page_size][g], page = block_table[c][j / page_size], or under CSR
 *               block_table[page_indptr[c] + j / page_size] where that is below page_indptr[c + 1]
 *
 * dequantised, where their type is a quantised one, as clfd_type says.
 *
 * A visible key with a NaN score, or a score of +inf, gives NaN in that row's out and lse and in no other's; a NaN in a
 * visible V gives NaN in that element of out. Scores are fp32: |score| beyond 2.3e38 counts as infinite, and a weight
 * below 2^-125 of the greatest one as 0, which makes NaN of an infinity in its V. An infinite scale may make NaN where
 * its products are infinite; so may finite numbers whose sums, of q K or of weights times V, leave the range of fp32.
 * Nothing else is ever used: neither what lies past a sequence's end nor the V of a key whose
 * score is -inf.
 *
 * The algorithm is Flash-Decoding (Dao, Haziza, Massa, Sizov, 2023): the keys are cut into splits, each split is an
 * online softmax (Milakov and Gimelshein, 2018), and the partial states merge exactly.
 */
#ifndef CLFD_ATTENTION_H
#define CLFD_ATTENTION_H

#include <clfd/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. 0 stands for the default that the field names. The plain types serve every tensor, the quantised ones K
 * and V, which may differ. A storage unit is what strides count: an element of most types, a byte (two elements) of int4,
 * a block of 32 elements of the GGML formats.
 *
 *     int8, int4   value = (code - zero) * scale; codes are two's complement; of int4, element 2i is the low nibble of
 *                  byte i and element 2i + 1 the high one. Scales and zeros are tensors of their own: clfd_quant
 *     fp8          value = code * scale; e4m3fn and e5m2 of the OCP 8-bit floating point specification 1.0: e4m3 has NaN
 *                  and no infinities, e5m2 has both; one scale per tensor or per KV head
 *     q8_0, q4_0   GGML's blocks of 32: an f16 scale d, then 32 codes of int8, value = code * d; or 16 bytes of which
 *                  byte i holds elements i (low nibble) and i + 16 (high), value = (nibble - 8) * d */
typedef enum clfd_type {
    CLFD_TYPE_DEFAULT = 0,
    CLFD_TYPE_F32 = 1,
    CLFD_TYPE_F16 = 2,
    CLFD_TYPE_BF16 = 3,
    CLFD_TYPE_INT8 = 4,
    CLFD_TYPE_INT4 = 5,
    CLFD_TYPE_FP8_E4M3 = 6,
    CLFD_TYPE_FP8_E5M2 = 7,
    CLFD_TYPE_Q8_0 = 8,
    CLFD_TYPE_Q4_0 = 9
} clfd_type;

/* Default order of K and V in memory, slowest first; explicit strides override it one by one. */
typedef enum clfd_layout {
    CLFD_LAYOUT_BSHD = 0, /* [batch][token][kv_head][dim] */
    CLFD_LAYOUT_BHSD = 1  /* [batch][kv_head][token][dim] */
} clfd_layout;

/* The form in which a split hands its softmax state to the merge. Both are exact. */
typedef enum clfd_partial {
    CLFD_PARTIAL_LSE = 0, /* (S = m + log l, o) */
    CLFD_PARTIAL_MLO = 1  /* (m, l, o), o normalised */
} clfd_partial;

typedef enum clfd_split_policy {
    CLFD_SPLIT_AUTO = 0,  /* as many splits as keep the device busy, from max_batch and expected_kv_len */
    CLFD_SPLIT_COUNT = 1, /* split_size splits of each sequence's own length; 0 is AUTO */
    CLFD_SPLIT_TOKENS = 2 /* splits of split_size tokens: a row's bits depend on that row alone */
} clfd_split_policy;

/* Strides in storage units of the type. 0 is the default of the tensor; CLFD_STRIDE_BROADCAST is a true zero (K and V only). The
 * innermost stride, over dim, is always 1. Defaults are those of a dense tensor of the plan's own sizes: K and V hold
 * max_kv_len tokens, so plans of different max_kv_len over one cache need its batch stride (BHSD: head stride) said. Paged
 * K and V hold page_size tokens per page. */
typedef struct clfd_strides {
    int64_t batch; /* of paged K and V: over the pages */
    int64_t token; /* for q and out: over the q_len queries */
    int64_t head;
} clfd_strides;

#define CLFD_STRIDE_BROADCAST INT64_MIN

/* How K and V lie in memory: one region per cache row, or pages in any order, which sequences may share. */
typedef enum clfd_paging {
    CLFD_PAGING_NONE = 0,
    CLFD_PAGING_TABLE = 1, /* block_table int32 [cache row][page of the sequence] */
    CLFD_PAGING_CSR = 2    /* block_table int32 [num_page_indices], page_indptr int32 [cache rows + 1] */
} clfd_paging;

/* Which keys a mask hides, besides causal and window. */
typedef enum clfd_mask {
    CLFD_MASK_NONE = 0,
    CLFD_MASK_BOOL = 1, /* uint8 [batch][query][key]: 0 hides, anything else shows */
    CLFD_MASK_TREE = 2  /* uint32 [batch][query]: bit j shows key kv_len - q_len + j; all earlier keys are visible. For
                           the trees of speculative decoding */
} clfd_mask;

/* Strides in elements of a bias [batch][head][query][key] or of a mask [batch][query][key]. All 0: dense, with
 * max_batch, num_q_heads, q_len and max_kv_len. Otherwise a stride of 0 broadcasts. None is negative. A tree mask has no
 * key stride, a mask no head stride. */
typedef struct clfd_score_strides {
    int64_t batch, head, query, key;
} clfd_score_strides;

/* The scales of quantised K or V: for int8 and int4 one for each (token, KV head, group of dims), for fp8 one for the
 * tensor or for each KV head. All 0 for other types. Index of a scale, in elements:
 *
 *     batch * strides.batch + token * strides.token + head * strides.head + d / group * group_stride
 *
 * where batch and token are those of the cache: page and token within it where K and V are paged. */
typedef struct clfd_quant {
    uint32_t group; /* int8, int4: dims per scale, a multiple of 8 that divides the head dim; default all of them */
    clfd_type scale_type; /* F32 or F16, of scales and zeros; default F32 */
    uint32_t zeros;       /* int8, int4: 1: a zero for each scale, in the same layout; else zeros are 0 */
    clfd_strides strides; /* default for int8, int4: dense in the order of kv_layout, the groups innermost; for fp8: one
                             scale for all (head 1: one for each KV head; batch and token must stay 0) */
    int64_t group_stride; /* default 1 */
} clfd_quant;

/* One attention. Zero every field that you do not set: zero means the default everywhere. */
typedef struct clfd_attention {
    size_t struct_size;    /* sizeof(clfd_attention); an older, shorter one is zero-extended, a longer one must end in
                              zeros */
    uint32_t max_batch;    /* sequences per call at most; default 1 */
    uint32_t q_len;        /* queries per sequence, 1..16; default 1 */
    uint32_t num_q_heads;  /* a multiple of num_kv_heads; required */
    uint32_t num_kv_heads; /* default num_q_heads */
    uint32_t head_dim;     /* a multiple of 8 from 8 to 576; required */
    uint32_t head_dim_v;   /* likewise; default head_dim */
    clfd_type q_type;      /* default F32 */
    clfd_type k_type;      /* default q_type; any type. GGML formats need head dims that are multiples of 32 */
    clfd_type v_type;      /* default k_type; a plain type only beside the same k_type */
    clfd_type out_type;    /* default q_type; plain, like q_type */
    uint32_t max_kv_len;   /* hard bound of every length, 1..2^31-1; sizes the workspace; required */
    uint32_t expected_kv_len; /* typical length, a hint for AUTO; default max_kv_len */
    float scale;              /* finite, at most 2e38; default 1 / sqrt(head_dim) */
    uint32_t causal;          /* 1: query i sees keys up to its own position p, by default aligned to the last key */
    uint32_t window;          /* 0, or query i sees only keys above p - window; tiles outside it are not read */
    float softcap;            /* 0, or scores become softcap * tanh(score / softcap); positive and finite */
    uint32_t alibi;           /* 1: slopes in buffers.alibi */
    uint32_t sinks;           /* 1: a logit per query head in buffers.sinks */
    clfd_type bias_type;      /* F32 or F16: a bias in buffers.bias; default none */
    clfd_score_strides bias_strides;
    clfd_mask mask;
    clfd_score_strides mask_strides;
    uint32_t query_positions; /* 1: p comes from buffers.query_positions */
    uint32_t kv_start;        /* 1: the first key of each sequence comes from buffers.kv_start (left padding) */
    uint32_t cache_batch_idx; /* 1: the cache row of each sequence comes from buffers.cache_batch_idx */
    uint32_t num_cache_rows;  /* rows of the cache, or of the block table; default max_batch. A cache_batch_idx outside
                                 them shows the sequence no key, and sets CLFD_FLAG_CACHE_ROW */
    uint32_t shared_kv; /* 1: K and V are one sequence that all sequences attend to (a shared prefix), read once for
                                 all query rows. kv_lens, kv_start and cache_batch_idx have one element. Causal, window
 and ALiBi then need query_positions; a tree mask is not allowed. Windows hide keys
 but do not spare reading them: members must not decide for one another */
    uint32_t v_from_k; /* 1: V is the first head_dim_v elements of K (MLA); no v buffer, strides or quant: of K's groups
                                 it must cover whole ones, or lie in the first */
    clfd_paging paging;
    uint32_t page_size; /* tokens per page, 1 and up; required with paging. Powers of two are fastest */
    uint32_t num_pages; /* pages of K and of V; required with paging. A used page id outside [0, num_pages) makes
                                 its keys invisible and sets CLFD_FLAG_PAGE */
    int64_t block_table_stride; /* TABLE: elements from row to row; default ceil(max_kv_len / page_size) */
    clfd_quant k_quant, v_quant;
    clfd_layout kv_layout;
    clfd_strides q_strides;   /* default [batch][q_len][num_q_heads][head_dim] */
    clfd_strides k_strides;   /* default by kv_layout; may overlap themselves */
    clfd_strides v_strides;   /* likewise */
    clfd_strides out_strides; /* default [batch][q_len][num_q_heads][head_dim_v]; must not overlap themselves */
    uint32_t q_alignment;     /* bytes, a power of two, that the caller promises for the base (buffer plus offset) of */
    uint32_t k_alignment;     /* each tensor; checked at every enqueue; at least the element size; default 16 */
    uint32_t v_alignment;
    uint32_t out_alignment;
    clfd_partial partial;
    clfd_split_policy split_policy;
    uint32_t split_size; /* COUNT: splits; TOKENS: tokens per split, at least 1; AUTO: 0 */
    const char *tuning;  /* NULL, or "key=value ..." that replaces fields of the tuning row: see clfd_plan_describe.
                              family=decode_vector, decode_lanes or decode_matrix chooses it. Read during the call only */
} clfd_attention;

/* What a buffer is. Only cl_mem is implemented; the others are refused with CLFD_ERROR_BUFFER_KIND. */
typedef enum clfd_buffer_kind { CLFD_BUFFER_NONE = 0, CLFD_BUFFER_MEM = 1, CLFD_BUFFER_SVM = 2 } clfd_buffer_kind;

typedef struct clfd_buffer {
    clfd_buffer_kind kind;
    cl_mem mem;    /* CLFD_BUFFER_MEM */
    void *svm;     /* CLFD_BUFFER_SVM */
    size_t offset; /* bytes from the start of mem to element [0][0][0][0] */
} clfd_buffer;

/* Bits of the status word. */
enum {
    CLFD_FLAG_PAGE = 1,      /* a page id that was needed lies outside [0, num_pages), or beyond its row of the table */
    CLFD_FLAG_CACHE_ROW = 2, /* a cache_batch_idx lies outside [0, num_cache_rows) */
    CLFD_FLAG_CAPACITY = 4   /* clfd_enqueue_append dropped tokens */
};

/* The tensors of one call. A buffer that an option of the descriptor asks for is required, one that none asks for is
 * refused with CLFD_ERROR_BUFFER_UNEXPECTED. */
typedef struct clfd_buffers {
    size_t struct_size;           /* sizeof(clfd_buffers) */
    uint32_t batch;               /* 0..max_batch; 0 computes nothing and still completes the event */
    uint32_t kv_len_bound;        /* 0, or no length exceeds this: shrinks the grid; longer ones are clamped to it */
    uint32_t num_page_indices;    /* CSR: elements of block_table */
    clfd_buffer q;                /* q_type    [batch][q_len][num_q_heads][head_dim] by q_strides */
    clfd_buffer k;                /* k_type    [cache row or page][token][num_kv_heads][head_dim] by k_strides */
    clfd_buffer v;                /* v_type    likewise [..][head_dim_v] by v_strides; NONE with v_from_k */
    clfd_buffer kv_lens;          /* int32     [batch]; NONE: max_kv_len for all. Read on the device */
    clfd_buffer alibi;            /* float     [num_q_heads] */
    clfd_buffer bias;             /* bias_type [batch][head][query][key] by bias_strides; -inf hides a key */
    clfd_buffer mask;             /* uint8 or uint32, by mask and mask_strides */
    clfd_buffer sinks;            /* float     [num_q_heads]; -inf is no sink */
    clfd_buffer query_positions;  /* int32   [batch][q_len] */
    clfd_buffer kv_start;         /* int32     [batch]; below 0 is 0 */
    clfd_buffer cache_batch_idx;  /* int32   [batch] */
    clfd_buffer block_table;      /* int32, by paging. Entries of pages that no key needs are never looked at */
    clfd_buffer page_indptr;      /* int32     [num_cache_rows + 1], CSR */
    clfd_buffer k_scale, v_scale; /* scale_type, by k_quant and v_quant */
    clfd_buffer k_zero, v_zero;   /* likewise */
    clfd_buffer out;              /* out_type  [batch][q_len][num_q_heads][head_dim_v] by out_strides */
    clfd_buffer lse;              /* float     [batch][q_len][num_q_heads], contiguous; NONE: not written */
    clfd_buffer status;    /* uint32    [1]; NONE, or CLFD_FLAG_ bits are set in it, never cleared: the caller's own */
    clfd_buffer workspace; /* clfd_plan_workspace_bytes, 64-byte aligned, initialised once */
} clfd_buffers;

/* A validated descriptor with its programs: immutable, reference-counted, usable from several threads and queues. */
typedef struct clfd_plan clfd_plan;

/* Creates a plan with one reference: checks the descriptor, chooses a tuning row, computes the splits, builds the
 * kernels (from the context's cache where it can). What it accepts will enqueue. A row that the device's compiler
 * refuses is logged as a warning and the next one tried.
 *
 * Each broken rule of the descriptor has its own status (status.h). *plan is written only on success. Blocks while
 * compiling. Thread-safe. */
CLFD_API clfd_status clfd_plan_create(clfd_context *context, const clfd_attention *attention, clfd_plan **plan);

/* One more reference, one less; NULL is allowed. Releasing does not wait for enqueued work. Thread-safe. */
CLFD_API void clfd_plan_retain(clfd_plan *plan);
CLFD_API void clfd_plan_release(clfd_plan *plan);

/* Bytes of workspace one call needs: the control region and the partial states. 0 for a NULL plan. Thread-safe. */
CLFD_API size_t clfd_plan_workspace_bytes(const clfd_plan *plan);

/* One line that names the kernel family, the types, and every number chosen, for benches and logs:
 *
 *     decode_lanes f16 d128 g4 q1 r4 passes1 splits33 lse wg=256 lanes=16 unroll=2 ...
 *
 * `fused`: where there are splits the kernel merges them itself, without a second launch. The words of the form
 * key=value are what clfd_attention.tuning takes. The string lives as long as the plan. NULL for a NULL plan.
 * Thread-safe. */
CLFD_API const char *clfd_plan_describe(const clfd_plan *plan);

/* Forces what a driver defers to the first launch (PoCL compiles there): runs the plan's kernels on an empty batch of
 * its own buffers, and waits. Optional. queue: of the plan's context and device. Thread-safe. */
CLFD_API clfd_status clfd_plan_warmup(clfd_plan *plan, cl_command_queue queue);

/* Zeroes the control region at the start of a workspace; needed once before the first use and again after any failed
 * or aborted call, not between calls: kernels leave it zeroed. The region is equal for all plans of a context, so a
 * workspace may serve any of them, one call in flight at a time.
 *
 *     memset(workspace + offset, 0, control region bytes)
 *
 * Errors: as clfd_enqueue_decode for the workspace, the queue and the wait list. Non-blocking. */
CLFD_API clfd_status clfd_enqueue_workspace_init(clfd_plan *plan, cl_command_queue queue, const clfd_buffer *workspace,
                                                 cl_uint num_wait, const cl_event *wait, cl_event *event);

/* Enqueues the attention at the top of this file. Makes no allocation of its own, never blocks, never compiles.
 *
 * event, where not NULL, completes when out and lse are written. batch 0 enqueues a marker with the wait list. Every
 * buffer is checked before anything is enqueued: kind, context, access, size against the furthest byte that the plan
 * and kv_len_bound may touch, alignment promise, and that out, lse and workspace overlap no other buffer. If the launch
 * of the merge fails after the split kernel was enqueued, that kernel still runs and writes the workspace only.
 *
 * Thread-safe: several threads and queues may share a plan, each call with a workspace of its own. Works on in-order
 * and out-of-order queues. */
CLFD_API clfd_status clfd_enqueue_decode(clfd_plan *plan, cl_command_queue queue, const clfd_buffers *buffers,
                                         cl_uint num_wait, const cl_event *wait, cl_event *event);

/* The same, with one event per launch, for measuring: events[0] is the split kernel, events[1] the merge where there is
 * one. *num_events says how many were written; the last completes when the result is there. */
#define CLFD_MAX_LAUNCHES 2
CLFD_API clfd_status clfd_enqueue_decode_profiled(clfd_plan *plan, cl_command_queue queue, const clfd_buffers *buffers,
                                                  cl_uint num_wait, const cl_event *wait,
                                                  cl_event events[CLFD_MAX_LAUNCHES], cl_uint *num_events);

/* Host memory for clfd_reference_attention, laid out by the descriptor's strides. */
typedef struct clfd_host_tensors {
    size_t struct_size;    /* sizeof(clfd_host_tensors) */
    uint32_t batch;        /* 0..max_batch */
    uint32_t kv_len_bound; /* as in clfd_buffers, like everything below */
    uint32_t num_page_indices;
    const void *q;          /* q_type */
    const void *k;          /* k_type */
    const void *v;          /* v_type; NULL with v_from_k */
    const int32_t *kv_lens; /* [batch], or NULL */
    const float *alibi;
    const void *bias;
    const void *mask;
    const float *sinks;
    const int32_t *query_positions, *kv_start, *cache_batch_idx, *block_table, *page_indptr;
    const void *k_scale, *v_scale, *k_zero, *v_zero;
    double *out;      /* [batch][q_len][num_q_heads][head_dim_v], contiguous whatever out_strides */
    double *lse;      /* [batch][q_len][num_q_heads], or NULL */
    uint32_t *status; /* or NULL */
} clfd_host_tensors;

/* The definition of correct: the loop at the top of this file in double precision, two passes per row (maximum, then
 * sums), on one thread. Types, strides and options are the descriptor's; split policy, partial format, out_type,
 * out_strides, alignments and tuning do not matter. out, lse and status are written only on success; CLFD_FLAG_PAGE is
 * set for pages that the range of some row needs (kv_start, window, causal), whatever its mask. Errors: the descriptor's;
 * CLFD_ERROR_BATCH_RANGE; CLFD_ERROR_NULL_ARGUMENT for a tensor that an option asks for and CLFD_ERROR_BUFFER_UNEXPECTED
 * for one that none asks for; CLFD_ERROR_HOST_MEMORY. Thread-safe. logger may be NULL. */
CLFD_API clfd_status clfd_reference_attention(const clfd_attention *attention, const clfd_host_tensors *tensors,
                                              const clfd_logger *logger);

/* Bytes of one storage unit (an element; int4: two; q8_0, q4_0: a block of 32), and elements of one; 0 for an unknown
 * type. */
CLFD_API size_t clfd_type_size(clfd_type type);
CLFD_API uint32_t clfd_type_elements(clfd_type type);

/* "f32", "f16", "bf16", "int8", "int4", "fp8_e4m3", "fp8_e5m2", "q8_0", "q4_0"; NULL for an unknown type. */
CLFD_API const char *clfd_type_name(clfd_type type);

/* for (i < count) to[i] = from[i], from `type` to float: exact, infinities and NaN kept. Both arrays are aligned to
 * their elements and do not overlap; NULL only with count 0. CLFD_ERROR_TYPE, CLFD_ERROR_NULL_ARGUMENT. Thread-safe. */
CLFD_API clfd_status clfd_convert_to_float(clfd_type type, const void *from, float *to, size_t count);

/* for (i < count) to[i] = from[i], from float to `type`: round to nearest, ties to even; overflow gives infinity;
 * NaN stays NaN. Arrays and errors as above. Thread-safe. */
CLFD_API clfd_status clfd_convert_from_float(clfd_type type, const float *from, void *to, size_t count);

#ifdef __cplusplus
}
#endif
#endif

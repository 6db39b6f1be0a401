/* run.h - one attention over .npy files: options, inputs, results.
 *
 *     run_input_load       files -> arrays and the descriptor
 *     run_quantise         K and V into another type, on the host
 *     run_cut_pages        K and V into shuffled pages
 *     run_execute          arrays -> device -> results
 *     run_reference        the same in double precision on the host
 */
#ifndef TOOLS_RUN_H
#define TOOLS_RUN_H

#include "npy.h"
#include "session.h"

#define RUN_NOT_GIVEN UINT64_MAX

/* The arrays that a call may need. Scales and zeros are made by run_quantise, the others are files. */
typedef enum run_operand {
    RUN_Q,
    RUN_K,
    RUN_V,
    RUN_KV_LENS,
    RUN_ALIBI,
    RUN_SINKS,
    RUN_MASK,
    RUN_TREE_MASK,
    RUN_BIAS,
    RUN_QUERY_POSITIONS,
    RUN_KV_START,
    RUN_CACHE_BATCH_IDX,
    RUN_BLOCK_TABLE,  /* [rows, pages of a row] */
    RUN_PAGE_INDICES, /* the block table in its CSR form: [num_page_indices] */
    RUN_PAGE_INDPTR,
    RUN_K_SCALE,
    RUN_V_SCALE,
    RUN_K_ZERO,
    RUN_V_ZERO,
    RUN_OPERANDS
} run_operand;

/* The options of `clfd run`, as given. */
typedef struct run_options {
    const char *files[RUN_OPERANDS]; /* of RUN_PAGE_INDICES: none, --block-table names both forms */
    const char *device, *out, *lse, *expect, *expect_lse, *kv_type;
    uint64_t v_from_k, num_splits, split_tokens, window, page_size, page_seed, kv_group; /* RUN_NOT_GIVEN */
    double scale, softcap, tolerance;                                                    /* NaN: not given */
    bool causal, shared_kv, csr, kv_zeros, status, json;
    unsigned type, out_type; /* values of clfd_type; 0: not given */
    unsigned partial;        /* a clfd_partial + 1; 0: not given */
} run_options;

/* What the call is given. Arrays that it has no use for are zeroed. */
typedef struct run_input {
    npy_array arrays[RUN_OPERANDS];
    clfd_attention attention;
    npy_array plain_k, plain_v; /* K and V before run_quantise, and the descriptor of before */
    clfd_attention plain;
} run_input;

/* What the device computed. */
typedef struct run_result {
    npy_array out; /* [B, q_len, Hq, Dv] in out's type; bf16 as u2 */
    npy_array lse; /* f4 [B, q_len, Hq] */
    char plan[512];
    size_t workspace_bytes;
    cl_uint status; /* CLFD_FLAG_ bits */
} run_result;

/* Checks the options against each other, reads the files, checks types and shapes, and makes the descriptor. Lengths
 * that the kernels will clamp are a warning on stderr. *input needs run_input_free whatever happens. */
bool run_input_load(const run_options *options, run_input *input, tool_fault *fault);
void run_input_free(run_input *input);

/* The number of sequences that K and V hold: of kv_lens, kv_start and cache_batch_idx. */
uint32_t run_num_sequences(const run_input *input);

/* The length of a sequence, clamped as kernels do. */
int64_t run_kv_len(const run_input *input, uint32_t sequence);

/* Converts K and V to the types of `names`, "q8_0" or "q8_0,q4_0" for K and V, and makes their scales and zeros. group: 0 or
 * dims per scale; zeros: affine. */
bool run_quantise(run_input *input, const char *names, uint32_t group, bool zeros, tool_fault *fault);

/* Cuts K and V, with what is stored beside them, into pages of page_size tokens, as an engine would hold them: in an
 * order that the seed draws, with pages that nobody uses, holding only what the sequences need: everything else in the
 * pages is 0xFF bytes (a NaN in every type, or in its scale), and every other entry of the table names no page. csr: the table
 * in its CSR form. */
bool run_cut_pages(run_input *input, uint32_t page_size, uint64_t seed, bool csr, tool_fault *fault);

/* Computes on the session's device. Every output and the workspace are filled with 0xFF beforehand, so that a row which
 * no kernel writes is NaN. *result needs run_result_free whatever happens. */
bool run_execute(tool_session *session, const run_input *input, run_result *result, tool_fault *fault);
void run_result_free(run_result *result);

/* The same by clfd_reference_attention, of `attention` and the arrays. *out is malloc'ed: [B, q_len, Hq, Dv]. */
bool run_reference(const clfd_attention *attention, const npy_array arrays[RUN_OPERANDS], double **out,
                   tool_fault *fault);

/* The error of out against the double reference over the K and V of before run_quantise. */
typedef struct run_error {
    double max, rms;
} run_error;
bool run_quantisation_error(const run_input *input, const run_result *result, run_error *error, tool_fault *fault);

#endif

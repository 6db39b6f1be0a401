/* run.h - one attention over .npy files: options, inputs, results. */
#ifndef TOOLS_RUN_H
#define TOOLS_RUN_H

#include "npy.h"

#define RUN_NOT_GIVEN UINT64_MAX

/* The options of `clfd run`, as given. */
typedef struct run_options {
    const char *device, *q, *k, *v, *kv_lens, *out, *lse, *expect, *expect_lse;
    uint64_t v_from_k, num_splits, split_tokens; /* RUN_NOT_GIVEN */
    double scale;                                /* NaN: not given */
    double tolerance;
    bool causal, json;
    unsigned type, out_type; /* values of clfd_type; 0: not given */
    unsigned partial;        /* a clfd_partial + 1; 0: not given */
} run_options;

/* What the files hold. kv_lens, and v with --v-from-k, are zeroed where they are not given. */
typedef struct run_input {
    npy_array q, k, v, kv_lens;
    clfd_attention attention;
} run_input;

/* What the device computed. */
typedef struct run_result {
    npy_array out; /* [B, q_len, Hq, Dv] in out's type; bf16 as u2 */
    npy_array lse; /* f4 [B, q_len, Hq] */
    char plan[512];
    size_t workspace_bytes;
    char device[320];
} run_result;

/* Checks the options against each other, reads the files, checks types and shapes, and makes the descriptor. *input
 * needs run_input_free whatever happens. */
bool run_input_load(const run_options *options, run_input *input, tool_fault *fault);
void run_input_free(run_input *input);

/* Computes on the device of `spec`. Every output and the workspace are filled with 0xFF beforehand, so that a row which
 * no kernel writes is NaN. *result needs run_result_free whatever happens. */
bool run_execute(const char *spec, const run_input *input, run_result *result, tool_fault *fault);
void run_result_free(run_result *result);

#endif

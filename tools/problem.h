/* problem.h - one attention problem in a line of words:
 *
 *     b16 q1 hq32 hkv8 d128 dv128 kv8192 f16 kvtype=bf16 out=f32 causal v_from_k partial=mlo splits=8 ragged=0..8192
 *
 *     b    sequences, default 1             hq, hkv  query and KV heads; hkv default hq
 *     q    queries per sequence, default 1  d, dv    head_dim and head_dim_v; dv default d
 *     kv   keys per sequence, capacity      f32 f16 bf16  type of q, K, V and out; default f32
 *     kvtype= out=     types of K and V, and of out, where they differ
 *     partial=lse|mlo  partial format       splits=N, tokens=N  split policy COUNT or TOKENS; else AUTO
 *     ragged=LO..HI    lengths drawn evenly from LO to HI instead of kv for all
 *     causal v_from_k  options
 *
 * Words stand in any order, each at most once. hq, d and kv are required.
 */
#ifndef TOOLS_PROBLEM_H
#define TOOLS_PROBLEM_H

#include "fault.h"

typedef struct bench_problem {
    uint32_t batch, q_len, num_q_heads, num_kv_heads, head_dim, head_dim_v, kv_len;
    uint32_t num_splits, split_tokens;        /* 0: not given */
    uint32_t causal, v_from_k;                /* 0 or 1 */
    uint32_t ragged, ragged_low, ragged_high; /* ragged: 1 where the bounds are given */
    clfd_type type, kv_type, out_type;
    clfd_partial partial;
} bench_problem;

/* Parses one problem and fills in the defaults. Syntax and the ranges of the syntax only: whether clfd accepts the
 * problem, clfd_plan_create says. Exit code USAGE: a word that is unknown, malformed, given twice or of a later version,
 * a required word that is missing, ragged bounds outside 0 <= LO <= HI <= kv, splits together with tokens. */
bool problem_parse(const char *text, bench_problem *problem, tool_fault *fault);

/* Prints the words that differ from the defaults, b to kv and the type always: parses back to the same problem. Returns
 * text. */
#define PROBLEM_BYTES 512
const char *problem_print(const bench_problem *problem, char text[PROBLEM_BYTES]);

/* The descriptor of the problem: max_batch is its batch, max_kv_len its kv. */
clfd_attention problem_attention(const bench_problem *problem);

#endif

/* problem.h - one attention problem in a line of words:
 *
 *     b16 q1 hq32 hkv8 d128 dv128 kv8192 f16 kvtype=q8_0 out=f32 causal window=1024 page=16 ragged=16..8192
 *
 *     b    sequences, default 1             hq, hkv  query and KV heads; hkv default hq
 *     q    queries per sequence, default 1  d, dv    head_dim and head_dim_v; dv default d
 *     kv   keys per sequence, capacity      f32 f16 bf16  type of q, K, V and out; default f32
 *     kvtype=  type of K and V              ktype= vtype=  the same one by one
 *     out=     type of out                  kvgroup=N, kvzeros  of int8 and int4: dims per scale, affine
 *     v_from_k         V is the first dv elements of K
 *     page=N, csr      shuffled pages of N tokens; the block table in its CSR form
 *     cache_rows=N     sequences use N or fewer of N cache rows, in any order
 *     shared_kv        one K and V for all sequences
 *     bhsd             K and V are [batch][kv_head][token][dim], or their pages; else the token comes before the head
 *     causal window=N softcap=X alibi bias bias=f16 mask tree sinks positions kv_start   options of the scores
 *     partial=lse|mlo  partial format       splits=N, tokens=N  split policy COUNT or TOKENS; else AUTO
 *     ragged=LO..HI    lengths drawn from LO to HI, each power of two equally likely, instead of kv for all
 *     prefix=N         N more keys before those, shared by all sequences: decode of the prefix, of the rest, merge
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
    uint32_t quant_group, quant_zeros;        /* 0: not given */
    uint32_t page_size, csr, cache_rows, shared_kv, heads_apart, prefix;
    uint32_t window, alibi, sinks, positions, kv_start;
    float softcap;
    clfd_type type, k_type, v_type, out_type;
    clfd_type kv_type;   /* k_type where v_type is the same, else DEFAULT */
    clfd_type bias_type; /* DEFAULT: no bias */
    clfd_mask mask;
    clfd_partial partial;
} bench_problem;

/* Parses one problem and fills in the defaults. Syntax and the ranges of the syntax only: whether clfd accepts the
 * problem, clfd_plan_create says. Exit code USAGE: a word that is unknown, malformed or given twice, a required word that
 * is missing, ragged bounds outside 0 <= LO <= HI <= kv, words that exclude or need each other. */
bool problem_parse(const char *text, bench_problem *problem, tool_fault *fault);

/* Prints the words that differ from the defaults, b to kv and the type always: parses back to the same problem. Returns
 * text. */
#define PROBLEM_BYTES 512
const char *problem_print(const bench_problem *problem, char text[PROBLEM_BYTES]);

/* The descriptor of the problem: max_batch is its batch, max_kv_len its kv. num_pages is left to whoever makes the block
 * table; a prefix is no part of it. */
clfd_attention problem_attention(const bench_problem *problem);

/* The descriptor of the prefix that all sequences share: max_kv_len is its length, out f32, without sinks. */
clfd_attention problem_prefix_attention(const bench_problem *problem);

/* What `clfd bench --help` says of the words. */
#define PROBLEM_HELP                                                                                                   \
    "  b16 q1 hq32 hkv8 d128 dv128 kv8192 f16    sizes and the type, f32 f16 or bf16; hq, d and kv are required\n"     \
    "  kvtype=TYPE ktype=TYPE vtype=TYPE kvgroup=N kvzeros out=TYPE v_from_k\n"                                        \
    "                                            types of K and V: f32 f16 bf16 int8 int4 fp8 e5m2 q8_0 q4_0\n"        \
    "  page=N csr cache_rows=N shared_kv bhsd    shuffled pages, rows of a cache, one K and V for all, tokens of a "   \
    "head\n"                                                                                                           \
    "                                            side by side\n"                                                       \
    "  causal window=N softcap=X alibi bias bias=f16 mask tree sinks positions kv_start\n"                             \
    "  partial=lse|mlo splits=N tokens=N ragged=LO..HI\n"                                                              \
    "  prefix=N                                  N keys more before those, shared by all sequences: three launches,\n" \
    "                                            of the prefix, of the rest, and of their merge"

#endif

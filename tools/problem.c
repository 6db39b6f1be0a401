#include "problem_words.h"

#define FIELD(name) offsetof(bench_problem, name)

const problem_word problem_words[NUM_PROBLEM_WORDS] = {
    /* Sizes. */
    {"b", WORD_NUMBER, FIELD(batch), 1},
    {"q", WORD_NUMBER, FIELD(q_len), 1},
    {"hq", WORD_NUMBER, FIELD(num_q_heads), 1},
    {"hkv", WORD_NUMBER, FIELD(num_kv_heads), 1},
    {"d", WORD_NUMBER, FIELD(head_dim), 1},
    {"dv", WORD_NUMBER, FIELD(head_dim_v), 1},
    {"kv", WORD_NUMBER, FIELD(kv_len), 1},
    /* Types. */
    {"kvtype=", WORD_TYPE, FIELD(kv_type), 0},
    {"ktype=", WORD_TYPE, FIELD(k_type), 0},
    {"vtype=", WORD_TYPE, FIELD(v_type), 0},
    {"kvgroup=", WORD_VALUE, FIELD(quant_group), 1},
    {"kvzeros", WORD_SET, FIELD(quant_zeros), 1},
    {"out=", WORD_TYPE, FIELD(out_type), 0},
    {"v_from_k", WORD_SET, FIELD(v_from_k), 1},
    /* The cache. */
    {"page=", WORD_VALUE, FIELD(page_size), 1},
    {"csr", WORD_SET, FIELD(csr), 1},
    {"cache_rows=", WORD_VALUE, FIELD(cache_rows), 1},
    {"shared_kv", WORD_SET, FIELD(shared_kv), 1},
    {"bhsd", WORD_SET, FIELD(heads_apart), 1},
    /* Scores. */
    {"causal", WORD_SET, FIELD(causal), 1},
    {"window=", WORD_VALUE, FIELD(window), 1},
    {"softcap=", WORD_REAL, FIELD(softcap), 0},
    {"alibi", WORD_SET, FIELD(alibi), 1},
    {"bias", WORD_SET, FIELD(bias_type), CLFD_TYPE_F32},
    {"bias=", WORD_TYPE, FIELD(bias_type), CLFD_TYPE_F32},
    {"mask", WORD_SET, FIELD(mask), CLFD_MASK_BOOL},
    {"tree", WORD_SET, FIELD(mask), CLFD_MASK_TREE},
    {"sinks", WORD_SET, FIELD(sinks), 1},
    {"positions", WORD_SET, FIELD(positions), 1},
    {"kv_start", WORD_SET, FIELD(kv_start), 1},
    /* Splits and lengths. */
    {"partial=", WORD_PARTIAL, FIELD(partial), 0},
    {"splits=", WORD_VALUE, FIELD(num_splits), 0},
    {"tokens=", WORD_VALUE, FIELD(split_tokens), 1},
    {"ragged=", WORD_RANGE, FIELD(ragged), 0},
    {"prefix=", WORD_VALUE, FIELD(prefix), 1},
};

const char *const problem_partials[2] = {[CLFD_PARTIAL_LSE] = "lse", [CLFD_PARTIAL_MLO] = "mlo"};

static clfd_quant quant_of(const bench_problem *problem, clfd_type type)
{
    clfd_quant quant = {0};

    if (type == CLFD_TYPE_INT8 || type == CLFD_TYPE_INT4) {
        quant.group = problem->quant_group;
        quant.zeros = problem->quant_zeros;
    }
    return quant;
}

/* Strides with the tokens of a head side by side, of rows of `units`; those of 0 are the default. */
static clfd_strides strides_of(const bench_problem *problem, uint32_t units)
{
    const int64_t tokens = problem->page_size > 0 ? problem->page_size : problem->kv_len;

    if (!problem->heads_apart)
        return (clfd_strides){0};
    return (clfd_strides){.batch = tokens * units * problem->num_kv_heads, .token = units, .head = tokens * units};
}

clfd_attention problem_attention(const bench_problem *problem)
{
    const uint32_t page_size = problem->page_size;

    return (clfd_attention){
        .struct_size = sizeof(clfd_attention),
        .max_batch = problem->batch,
        .q_len = problem->q_len,
        .num_q_heads = problem->num_q_heads,
        .num_kv_heads = problem->num_kv_heads,
        .head_dim = problem->head_dim,
        .head_dim_v = problem->head_dim_v,
        .q_type = problem->type,
        .k_type = problem->k_type,
        .v_type = problem->v_type,
        .out_type = problem->prefix > 0 ? CLFD_TYPE_F32 : problem->out_type,
        .max_kv_len = problem->kv_len,
        .k_strides = strides_of(problem, problem->head_dim / clfd_type_elements(problem->k_type)),
        .v_strides = problem->v_from_k ? (clfd_strides){0}
                                       : strides_of(problem, problem->head_dim_v / clfd_type_elements(problem->v_type)),
        .causal = problem->causal,
        .window = problem->window,
        .softcap = problem->softcap,
        .alibi = problem->alibi,
        .sinks = problem->sinks,
        .bias_type = problem->bias_type,
        .mask = problem->mask,
        .query_positions = problem->positions,
        .kv_start = problem->kv_start,
        .cache_batch_idx = problem->cache_rows > 0,
        .num_cache_rows = problem->cache_rows,
        .shared_kv = problem->shared_kv,
        .v_from_k = problem->v_from_k,
        .paging = page_size == 0 ? CLFD_PAGING_NONE
                  : problem->csr ? CLFD_PAGING_CSR
                                 : CLFD_PAGING_TABLE,
        .page_size = page_size,
        .k_quant = quant_of(problem, problem->k_type),
        .v_quant = problem->v_from_k ? (clfd_quant){0} : quant_of(problem, problem->v_type),
        .partial = problem->partial,
        .split_policy = problem->num_splits > 0     ? CLFD_SPLIT_COUNT
                        : problem->split_tokens > 0 ? CLFD_SPLIT_TOKENS
                                                    : CLFD_SPLIT_AUTO,
        .split_size = problem->num_splits > 0 ? problem->num_splits : problem->split_tokens,
    };
}

clfd_attention problem_prefix_attention(const bench_problem *problem)
{
    clfd_attention attention = problem_attention(problem);

    attention.max_kv_len = problem->prefix;
    attention.shared_kv = 1;
    /* Every query sees all of the prefix, and sinks count once. */
    attention.causal = 0;
    attention.sinks = 0;
    attention.mask = CLFD_MASK_NONE;
    return attention;
}

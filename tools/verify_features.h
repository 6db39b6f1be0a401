/* verify_features.h - what the problems of `clfd verify` exercise: a line of the report each, and which pairs of them
 * were met in one problem. */
#ifndef TOOLS_VERIFY_FEATURES_H
#define TOOLS_VERIFY_FEATURES_H

#include <stdbool.h>
#include <stdint.h>

/* Features of one factor exclude one another; those of NONE stand alone. */
typedef enum feature_factor {
    FACTOR_NONE,
    FACTOR_Q_TYPE,
    FACTOR_K_TYPE,
    FACTOR_V_TYPE,
    FACTOR_OUT_TYPE,
    FACTOR_PARTIAL,
    FACTOR_SPLIT,
    FACTOR_RATIO,
    FACTOR_BIAS,
    FACTOR_MASK,
    FACTOR_PAGING,
    FACTOR_PAGE_SIZE,
    FACTOR_CONTENTS
} feature_factor;

/* FEATURE(identifier, factor, the name in the report) */
#define FEATURE_LIST(FEATURE)                                                                                          \
    FEATURE(Q_F32, Q_TYPE, "q f32")                                                                                    \
    FEATURE(Q_F16, Q_TYPE, "q f16")                                                                                    \
    FEATURE(Q_BF16, Q_TYPE, "q bf16")                                                                                  \
    FEATURE(K_F32, K_TYPE, "k f32")                                                                                    \
    FEATURE(K_F16, K_TYPE, "k f16")                                                                                    \
    FEATURE(K_BF16, K_TYPE, "k bf16")                                                                                  \
    FEATURE(K_INT8, K_TYPE, "k int8")                                                                                  \
    FEATURE(K_INT4, K_TYPE, "k int4")                                                                                  \
    FEATURE(K_FP8_E4M3, K_TYPE, "k fp8_e4m3")                                                                          \
    FEATURE(K_FP8_E5M2, K_TYPE, "k fp8_e5m2")                                                                          \
    FEATURE(K_Q8_0, K_TYPE, "k q8_0")                                                                                  \
    FEATURE(K_Q4_0, K_TYPE, "k q4_0")                                                                                  \
    FEATURE(V_F32, V_TYPE, "v f32")                                                                                    \
    FEATURE(V_F16, V_TYPE, "v f16")                                                                                    \
    FEATURE(V_BF16, V_TYPE, "v bf16")                                                                                  \
    FEATURE(V_INT8, V_TYPE, "v int8")                                                                                  \
    FEATURE(V_INT4, V_TYPE, "v int4")                                                                                  \
    FEATURE(V_FP8_E4M3, V_TYPE, "v fp8_e4m3")                                                                          \
    FEATURE(V_FP8_E5M2, V_TYPE, "v fp8_e5m2")                                                                          \
    FEATURE(V_Q8_0, V_TYPE, "v q8_0")                                                                                  \
    FEATURE(V_Q4_0, V_TYPE, "v q4_0")                                                                                  \
    FEATURE(K_GROUPS, NONE, "k groups")                                                                                \
    FEATURE(V_GROUPS, NONE, "v groups")                                                                                \
    FEATURE(K_ZEROS, NONE, "k zeros")                                                                                  \
    FEATURE(V_ZEROS, NONE, "v zeros")                                                                                  \
    FEATURE(K_SCALE_F16, NONE, "k scales f16")                                                                         \
    FEATURE(V_SCALE_F16, NONE, "v scales f16")                                                                         \
    FEATURE(K_SCALE_HEAD, NONE, "k scale per head")                                                                    \
    FEATURE(V_SCALE_HEAD, NONE, "v scale per head")                                                                    \
    FEATURE(SCALE_STRIDES, NONE, "strides of scales")                                                                  \
    FEATURE(OUT_F32, OUT_TYPE, "out f32")                                                                              \
    FEATURE(OUT_F16, OUT_TYPE, "out f16")                                                                              \
    FEATURE(OUT_BF16, OUT_TYPE, "out bf16")                                                                            \
    FEATURE(PARTIAL_LSE, PARTIAL, "partial lse")                                                                       \
    FEATURE(PARTIAL_MLO, PARTIAL, "partial mlo")                                                                       \
    FEATURE(SPLIT_AUTO, SPLIT, "split auto")                                                                           \
    FEATURE(SPLIT_COUNT, SPLIT, "split count")                                                                         \
    FEATURE(SPLIT_TOKENS, SPLIT, "split tokens")                                                                       \
    FEATURE(RATIO_1, RATIO, "ratio 1")                                                                                 \
    FEATURE(RATIO_8, RATIO, "ratio 2 to 8")                                                                            \
    FEATURE(RATIO_MORE, RATIO, "ratio above 8")                                                                        \
    FEATURE(DIM_V, NONE, "dv differs from d")                                                                          \
    FEATURE(V_FROM_K, NONE, "v_from_k")                                                                                \
    FEATURE(Q_LEN, NONE, "q_len above 1")                                                                              \
    FEATURE(CAUSAL, NONE, "causal")                                                                                    \
    FEATURE(WINDOW, NONE, "window")                                                                                    \
    FEATURE(SOFTCAP, NONE, "softcap")                                                                                  \
    FEATURE(ALIBI, NONE, "alibi")                                                                                      \
    FEATURE(BIAS_F32, BIAS, "bias f32")                                                                                \
    FEATURE(BIAS_F16, BIAS, "bias f16")                                                                                \
    FEATURE(BIAS_STRIDES, NONE, "strides of bias")                                                                     \
    FEATURE(BIAS_BROADCAST, NONE, "broadcast bias")                                                                    \
    FEATURE(BIAS_INFINITE, NONE, "bias of -inf")                                                                       \
    FEATURE(MASK_BOOL, MASK, "mask bool")                                                                              \
    FEATURE(MASK_TREE, MASK, "mask tree")                                                                              \
    FEATURE(MASK_STRIDES, NONE, "strides of mask")                                                                     \
    FEATURE(MASK_BROADCAST, NONE, "broadcast mask")                                                                    \
    FEATURE(SINKS, NONE, "sinks")                                                                                      \
    FEATURE(SINK_NONE, NONE, "sink of -inf")                                                                           \
    FEATURE(POSITIONS, NONE, "query_positions")                                                                        \
    FEATURE(POSITION_RANGE, NONE, "wild positions")                                                                    \
    FEATURE(START, NONE, "kv_start")                                                                                   \
    FEATURE(START_RANGE, NONE, "kv_start out of range")                                                                \
    FEATURE(CACHE_ROWS, NONE, "cache_batch_idx")                                                                       \
    FEATURE(ROW_REPEATED, NONE, "repeated cache row")                                                                  \
    FEATURE(ROW_RANGE, NONE, "cache row out of range")                                                                 \
    FEATURE(SHARED_KV, NONE, "shared_kv")                                                                              \
    FEATURE(PAGED_TABLE, PAGING, "paged by table")                                                                     \
    FEATURE(PAGED_CSR, PAGING, "paged by CSR")                                                                         \
    FEATURE(PAGE_1, PAGE_SIZE, "page of 1")                                                                            \
    FEATURE(PAGE_POWER, PAGE_SIZE, "page of 2^n")                                                                      \
    FEATURE(PAGE_ODD, PAGE_SIZE, "page of any size")                                                                   \
    FEATURE(PAGE_SHARED, NONE, "shared pages")                                                                         \
    FEATURE(PAGE_RANGE, NONE, "page out of range")                                                                     \
    FEATURE(ONE_BUFFER, NONE, "k and v in one buffer")                                                                 \
    FEATURE(RAGGED, NONE, "ragged lengths")                                                                            \
    FEATURE(LENGTH_ZERO, NONE, "length 0")                                                                             \
    FEATURE(LENGTH_RANGE, NONE, "length out of range")                                                                 \
    FEATURE(BOUND, NONE, "kv_len_bound")                                                                               \
    FEATURE(BATCH, NONE, "batch below max_batch")                                                                      \
    FEATURE(STRIDES, NONE, "strides")                                                                                  \
    FEATURE(BROADCAST, NONE, "broadcast k or v")                                                                       \
    FEATURE(UNALIGNED, NONE, "unaligned bases")                                                                        \
    FEATURE(NO_LSE, NONE, "without lse")                                                                               \
    FEATURE(STATUS, NONE, "status word")                                                                               \
    FEATURE(HOT, CONTENTS, "hot scores")                                                                               \
    FEATURE(SPECIAL, CONTENTS, "visible NaN and inf")                                                                  \
    FEATURE(REPEAT, NONE, "equal bits twice")                                                                          \
    FEATURE(PERMUTED, NONE, "equal bits with pages permuted")                                                          \
    FEATURE(ALONE, NONE, "equal bits of a row alone")                                                                  \
    FEATURE(INPUTS, NONE, "inputs unchanged")

#define FEATURE_ENUMERATOR(identifier, factor, name) FEATURE_##identifier,
typedef enum verify_feature { FEATURE_LIST(FEATURE_ENUMERATOR) NUM_FEATURES } verify_feature;

#define FEATURE_WORDS ((NUM_FEATURES + 63) / 64)

typedef struct feature_set {
    uint64_t words[FEATURE_WORDS];
} feature_set;

static inline void feature_add(feature_set *set, verify_feature feature)
{
    set->words[feature / 64] |= (uint64_t)1 << feature % 64;
}

static inline bool feature_has(const feature_set *set, verify_feature feature)
{
    return (set->words[feature / 64] >> feature % 64 & 1) != 0;
}

/* The name in the report. */
const char *feature_name(verify_feature feature);

/* Whether the descriptor allows both in one problem; false for a feature and itself. */
bool feature_pair_possible(verify_feature a, verify_feature b);

/* The pairs met so far. Zeroed at first. */
typedef struct feature_pairs {
    feature_set met[NUM_FEATURES]; /* met[a] has b where both were in one problem */
} feature_pairs;

void feature_pairs_add(feature_pairs *pairs, const feature_set *features);

/* Pairs among the features of a set that were not met yet. */
uint32_t feature_pairs_new(const feature_pairs *pairs, const feature_set *features);

/* How many pairs are possible, and how many of them were met. */
void feature_pairs_count(const feature_pairs *pairs, uint32_t *possible, uint32_t *met);

/* Steps to the next possible pair a < b that was not met, from *a = *b = 0 on; false where there is none. */
bool feature_pairs_next_missing(const feature_pairs *pairs, verify_feature *a, verify_feature *b);

#endif

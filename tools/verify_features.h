/* verify_features.h - what the problems of `clfd verify` exercise: a line of the report each. */
#ifndef TOOLS_VERIFY_FEATURES_H
#define TOOLS_VERIFY_FEATURES_H

/* FEATURE(identifier, the name in the report) */
#define FEATURE_LIST(FEATURE)                                                                                          \
    FEATURE(Q_F32, "q f32")                                                                                            \
    FEATURE(Q_F16, "q f16")                                                                                            \
    FEATURE(Q_BF16, "q bf16")                                                                                          \
    FEATURE(KV_F32, "kv f32")                                                                                          \
    FEATURE(KV_F16, "kv f16")                                                                                          \
    FEATURE(KV_BF16, "kv bf16")                                                                                        \
    FEATURE(OUT_F32, "out f32")                                                                                        \
    FEATURE(OUT_F16, "out f16")                                                                                        \
    FEATURE(OUT_BF16, "out bf16")                                                                                      \
    FEATURE(PARTIAL_LSE, "partial lse")                                                                                \
    FEATURE(PARTIAL_MLO, "partial mlo")                                                                                \
    FEATURE(SPLIT_AUTO, "split auto")                                                                                  \
    FEATURE(SPLIT_COUNT, "split count")                                                                                \
    FEATURE(SPLIT_TOKENS, "split tokens")                                                                              \
    FEATURE(RATIO_1, "ratio 1")                                                                                        \
    FEATURE(RATIO_8, "ratio 2 to 8")                                                                                   \
    FEATURE(RATIO_MORE, "ratio above 8")                                                                               \
    FEATURE(DIM_V, "dv differs from d")                                                                                \
    FEATURE(V_FROM_K, "v_from_k")                                                                                      \
    FEATURE(Q_LEN, "q_len above 1")                                                                                    \
    FEATURE(CAUSAL, "causal")                                                                                          \
    FEATURE(RAGGED, "ragged lengths")                                                                                  \
    FEATURE(LENGTH_ZERO, "length 0")                                                                                   \
    FEATURE(LENGTH_RANGE, "length out of range")                                                                       \
    FEATURE(BOUND, "kv_len_bound")                                                                                     \
    FEATURE(BATCH, "batch below max_batch")                                                                            \
    FEATURE(STRIDES, "strides")                                                                                        \
    FEATURE(BROADCAST, "broadcast strides")                                                                            \
    FEATURE(UNALIGNED, "unaligned bases")                                                                              \
    FEATURE(NO_LSE, "without lse")                                                                                     \
    FEATURE(HOT, "hot scores")                                                                                         \
    FEATURE(SPECIAL, "visible NaN and inf")                                                                            \
    FEATURE(REPEAT, "equal bits twice")

#define FEATURE_ENUMERATOR(identifier, name) FEATURE_##identifier,
enum { FEATURE_LIST(FEATURE_ENUMERATOR) NUM_FEATURES };

#define FEATURE_BIT(identifier) ((uint64_t)1 << FEATURE_##identifier)

#endif

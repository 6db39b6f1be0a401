#include "verify_features.h"
#include <stddef.h>

#define MOST_CHOICES 7

#define FEATURE_ROW(identifier, factor, name) {name, FACTOR_##factor},
static const struct {
    const char *name;
    feature_factor factor;
} features[] = {FEATURE_LIST(FEATURE_ROW)};

/* `feature` comes with one of `choices` only, which are of one factor. The list ends at the first NUM_FEATURES. */
#define NEEDS(feature, ...)                                                                                            \
    {                                                                                                                  \
        FEATURE_##feature, { __VA_ARGS__, NUM_FEATURES }                                                               \
    }
#define QUANTISED(tensor)                                                                                              \
    FEATURE_##tensor##_INT8, FEATURE_##tensor##_INT4, FEATURE_##tensor##_FP8_E4M3, FEATURE_##tensor##_FP8_E5M2,        \
        FEATURE_##tensor##_Q8_0, FEATURE_##tensor##_Q4_0
#define GROUPED(tensor) FEATURE_##tensor##_INT8, FEATURE_##tensor##_INT4
#define FP8(tensor) FEATURE_##tensor##_FP8_E4M3, FEATURE_##tensor##_FP8_E5M2
#define ANY_BIAS FEATURE_BIAS_F32, FEATURE_BIAS_F16
#define ANY_MASK FEATURE_MASK_BOOL, FEATURE_MASK_TREE

static const struct {
    verify_feature feature, choices[MOST_CHOICES];
} needs[] = {
    /* K and V are of one plain type, or each of a quantised one. */
    NEEDS(K_F32, FEATURE_V_F32),
    NEEDS(K_F16, FEATURE_V_F16),
    NEEDS(K_BF16, FEATURE_V_BF16),
    NEEDS(K_INT8, QUANTISED(V)),
    NEEDS(K_INT4, QUANTISED(V)),
    NEEDS(K_FP8_E4M3, QUANTISED(V)),
    NEEDS(K_FP8_E5M2, QUANTISED(V)),
    NEEDS(K_Q8_0, QUANTISED(V)),
    NEEDS(K_Q4_0, QUANTISED(V)),
    /* Which types have which scales; and a V of scales of its own stands beside a quantised K. */
    NEEDS(K_GROUPS, GROUPED(K)),
    NEEDS(V_GROUPS, GROUPED(V)),
    NEEDS(K_GROUPS, QUANTISED(V)),
    NEEDS(V_GROUPS, QUANTISED(K)),
    NEEDS(K_ZEROS, GROUPED(K)),
    NEEDS(V_ZEROS, GROUPED(V)),
    NEEDS(K_ZEROS, QUANTISED(V)),
    NEEDS(V_ZEROS, QUANTISED(K)),
    NEEDS(K_SCALE_F16, GROUPED(K), FP8(K)),
    NEEDS(V_SCALE_F16, GROUPED(V), FP8(V)),
    NEEDS(K_SCALE_F16, QUANTISED(V)),
    NEEDS(V_SCALE_F16, QUANTISED(K)),
    NEEDS(K_SCALE_HEAD, FP8(K)),
    NEEDS(V_SCALE_HEAD, FP8(V)),
    NEEDS(K_SCALE_HEAD, QUANTISED(V)),
    NEEDS(V_SCALE_HEAD, QUANTISED(K)),
    NEEDS(SCALE_STRIDES, QUANTISED(K)),
    NEEDS(SCALE_STRIDES, QUANTISED(V)),
    NEEDS(BIAS_STRIDES, ANY_BIAS),
    NEEDS(BIAS_BROADCAST, ANY_BIAS),
    NEEDS(BIAS_INFINITE, ANY_BIAS),
    NEEDS(MASK_STRIDES, ANY_MASK),
    NEEDS(MASK_BROADCAST, ANY_MASK),
    /* Only TOKENS promises bits that depend on the row alone. */
    NEEDS(ALONE, FEATURE_SPLIT_TOKENS),
};

/* Pairs that exclude each other for a reason of their own. */
static const verify_feature excluded[][2] = {
    /* The V of v_from_k has neither scales nor a buffer of its own. */
    {FEATURE_V_FROM_K, FEATURE_V_GROUPS},
    {FEATURE_V_FROM_K, FEATURE_V_ZEROS},
    {FEATURE_V_FROM_K, FEATURE_V_SCALE_F16},
    {FEATURE_V_FROM_K, FEATURE_V_SCALE_HEAD},
    {FEATURE_V_FROM_K, FEATURE_ONE_BUFFER},
    /* Groups and zeros are of int8 and int4, the scale per head is of fp8. */
    {FEATURE_K_GROUPS, FEATURE_K_SCALE_HEAD},
    {FEATURE_K_ZEROS, FEATURE_K_SCALE_HEAD},
    {FEATURE_V_GROUPS, FEATURE_V_SCALE_HEAD},
    {FEATURE_V_ZEROS, FEATURE_V_SCALE_HEAD},
    /* One K and V for all sequences has one length and one cache row, and no new keys. */
    {FEATURE_SHARED_KV, FEATURE_RAGGED},
    {FEATURE_SHARED_KV, FEATURE_ROW_REPEATED},
    {FEATURE_SHARED_KV, FEATURE_MASK_TREE},
};

const char *feature_name(verify_feature feature) { return features[feature].name; }

/* Whether b is of the factor that a chooses from, and not among the choices. */
static bool breaks_a_need(verify_feature a, verify_feature b)
{
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        const verify_feature *choices = needs[i].choices;
        bool chosen = false;
        if (needs[i].feature != a || features[choices[0]].factor != features[b].factor)
            continue;
        for (int k = 0; k < MOST_CHOICES && choices[k] != NUM_FEATURES; k++)
            chosen = chosen || choices[k] == b;
        if (!chosen)
            return true;
    }
    return false;
}

bool feature_pair_possible(verify_feature a, verify_feature b)
{
    if (a == b || (features[a].factor != FACTOR_NONE && features[a].factor == features[b].factor))
        return false;
    for (size_t i = 0; i < sizeof excluded / sizeof excluded[0]; i++)
        if ((excluded[i][0] == a && excluded[i][1] == b) || (excluded[i][0] == b && excluded[i][1] == a))
            return false;
    return !breaks_a_need(a, b) && !breaks_a_need(b, a);
}

void feature_pairs_add(feature_pairs *pairs, const feature_set *set)
{
    for (int i = 0; i < NUM_FEATURES; i++)
        for (int word = 0; feature_has(set, (verify_feature)i) && word < FEATURE_WORDS; word++)
            pairs->met[i].words[word] |= set->words[word];
}

static uint32_t count_bits(uint64_t bits)
{
    uint32_t count = 0;

    for (; bits != 0; bits &= bits - 1)
        count++;
    return count;
}

uint32_t feature_pairs_new(const feature_pairs *pairs, const feature_set *set)
{
    uint32_t count = 0;

    for (int i = 0; i < NUM_FEATURES; i++)
        for (int word = 0; feature_has(set, (verify_feature)i) && word < FEATURE_WORDS; word++)
            count += count_bits(set->words[word] & ~pairs->met[i].words[word]);
    return count / 2;
}

void feature_pairs_count(const feature_pairs *pairs, uint32_t *possible, uint32_t *met)
{
    *possible = *met = 0;
    for (int a = 0; a < NUM_FEATURES; a++)
        for (int b = a + 1; b < NUM_FEATURES; b++)
            if (feature_pair_possible((verify_feature)a, (verify_feature)b)) {
                ++*possible;
                *met += feature_has(&pairs->met[a], (verify_feature)b);
            }
}

bool feature_pairs_next_missing(const feature_pairs *pairs, verify_feature *a, verify_feature *b)
{
    int first = (int)*a, second = (int)*b;

    for (; first < NUM_FEATURES; first++, second = first)
        for (second++; second < NUM_FEATURES; second++)
            if (feature_pair_possible((verify_feature)first, (verify_feature)second) &&
                !feature_has(&pairs->met[first], (verify_feature)second)) {
                *a = (verify_feature)first;
                *b = (verify_feature)second;
                return true;
            }
    return false;
}

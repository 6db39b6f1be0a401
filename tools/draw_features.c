#include "verify_draw.h"

#define MARK(set, holds, feature)                                                                                      \
    do {                                                                                                               \
        if (holds)                                                                                                     \
            feature_add(set, (verify_feature)(feature));                                                               \
    } while (0)

static void mark_types(const clfd_attention *a, feature_set *set)
{
    feature_add(set, (verify_feature)(FEATURE_Q_F32 + (int)a->q_type - CLFD_TYPE_F32));
    feature_add(set, (verify_feature)(FEATURE_K_F32 + (int)a->k_type - CLFD_TYPE_F32));
    feature_add(set, (verify_feature)(FEATURE_V_F32 + (int)a->v_type - CLFD_TYPE_F32));
    feature_add(set, (verify_feature)(FEATURE_OUT_F32 + (int)a->out_type - CLFD_TYPE_F32));
    MARK(set, a->k_quant.group != 0 && a->k_quant.group != a->head_dim, FEATURE_K_GROUPS);
    MARK(set, a->v_quant.group != 0 && a->v_quant.group != a->head_dim_v, FEATURE_V_GROUPS);
    MARK(set, a->k_quant.zeros, FEATURE_K_ZEROS);
    MARK(set, a->v_quant.zeros, FEATURE_V_ZEROS);
    MARK(set, a->k_quant.scale_type == CLFD_TYPE_F16, FEATURE_K_SCALE_F16);
    MARK(set, a->v_quant.scale_type == CLFD_TYPE_F16, FEATURE_V_SCALE_F16);
}

static void mark_options(const clfd_attention *a, feature_set *set)
{
    const uint32_t ratio = a->num_q_heads / a->num_kv_heads, page = a->page_size;

    feature_add(set, (verify_feature)(FEATURE_PARTIAL_LSE + (int)a->partial));
    feature_add(set, ratio == 1 ? FEATURE_RATIO_1 : ratio <= 8 ? FEATURE_RATIO_8 : FEATURE_RATIO_MORE);
    MARK(set, a->head_dim_v != a->head_dim, FEATURE_DIM_V);
    MARK(set, a->v_from_k, FEATURE_V_FROM_K);
    MARK(set, a->q_len > 1, FEATURE_Q_LEN);
    MARK(set, a->causal, FEATURE_CAUSAL);
    MARK(set, a->window > 0, FEATURE_WINDOW);
    MARK(set, a->softcap > 0, FEATURE_SOFTCAP);
    MARK(set, a->alibi, FEATURE_ALIBI);
    MARK(set, a->bias_type != CLFD_TYPE_DEFAULT, FEATURE_BIAS_F32 + (int)a->bias_type - CLFD_TYPE_F32);
    MARK(set, a->mask != CLFD_MASK_NONE, FEATURE_MASK_BOOL + (int)a->mask - CLFD_MASK_BOOL);
    MARK(set, a->sinks, FEATURE_SINKS);
    MARK(set, a->query_positions, FEATURE_POSITIONS);
    MARK(set, a->kv_start, FEATURE_START);
    MARK(set, a->cache_batch_idx, FEATURE_CACHE_ROWS);
    MARK(set, a->shared_kv, FEATURE_SHARED_KV);
    MARK(set, a->paging != CLFD_PAGING_NONE, FEATURE_PAGED_TABLE + (int)a->paging - CLFD_PAGING_TABLE);
    MARK(set, page > 0, page == 1 ? FEATURE_PAGE_1 : (page & (page - 1)) == 0 ? FEATURE_PAGE_POWER : FEATURE_PAGE_ODD);
}

feature_set draw_specialisation_features(const draw_specialisation *s)
{
    feature_set set = {0};

    mark_types(&s->attention, &set);
    mark_options(&s->attention, &set);
    MARK(&set, s->balanced, FEATURE_SPLIT_AUTO);
    MARK(&set, !s->aligned, FEATURE_UNALIGNED);
    return set;
}

static void mark_sequences(const verify_trial *trial, feature_set *set)
{
    const clfd_attention *a = &trial->attention;
    bool used[TRIAL_MAX_ROWS] = {false};

    for (uint32_t s = 0; s < trial->num_sequences; s++) {
        const uint32_t length = trial->lengths[s];
        MARK(set, length != trial->lengths[0], FEATURE_RAGGED);
        MARK(set, length == 0, FEATURE_LENGTH_ZERO);
        MARK(set, trial->kv_lens[s] < 0 || (uint32_t)trial->kv_lens[s] > a->max_kv_len, FEATURE_LENGTH_RANGE);
        MARK(set, a->kv_start && (trial->kv_start[s] < 0 || (uint32_t)trial->kv_start[s] >= length),
             FEATURE_START_RANGE);
        uint32_t row;
        if (!view_cache_row(trial, s, &row))
            continue;
        MARK(set, used[row], FEATURE_ROW_REPEATED);
        used[row] = true;
    }
    for (uint32_t b = 0; b < trial->batch; b++)
        for (uint32_t i = 0; i < a->q_len; i++) {
            const int64_t position = view_position(trial, b, i);
            MARK(set, a->query_positions && (position < 0 || position >= trial->lengths[view_sequence(trial, b)]),
                 FEATURE_POSITION_RANGE);
        }
}

static void mark_tensors(const verify_trial *trial, feature_set *set)
{
    const clfd_attention *a = &trial->attention;

    MARK(set, view_is_fp8(a->k_type) && a->k_quant.strides.head == 1, FEATURE_K_SCALE_HEAD);
    MARK(set, view_is_fp8(a->v_type) && a->v_quant.strides.head == 1, FEATURE_V_SCALE_HEAD);
    MARK(set, trial->infinite_bias, FEATURE_BIAS_INFINITE);
    MARK(set, trial->no_sinks, FEATURE_SINK_NONE);
    MARK(set, (trial->flags & CLFD_FLAG_CACHE_ROW) != 0, FEATURE_ROW_RANGE);
    MARK(set, (trial->flags & CLFD_FLAG_PAGE) != 0, FEATURE_PAGE_RANGE);
    MARK(set, trial->shared_pages, FEATURE_PAGE_SHARED);
    MARK(set, trial->one_buffer, FEATURE_ONE_BUFFER);
    MARK(set, !trial->placements[OPERAND_LSE].present, FEATURE_NO_LSE);
    MARK(set, trial->placements[OPERAND_STATUS].present, FEATURE_STATUS);
}

void draw_features(const draw_specialisation *s, verify_trial *trial)
{
    feature_set *set = &trial->features;

    mark_types(&trial->attention, set);
    mark_options(&trial->attention, set);
    MARK(set, true,
         trial->attention.split_size == 0 ? FEATURE_SPLIT_AUTO
                                          : FEATURE_SPLIT_AUTO + (int)trial->attention.split_policy);
    MARK(set, !s->aligned, FEATURE_UNALIGNED);
    mark_sequences(trial, set);
    mark_tensors(trial, set);
    MARK(set, trial->kv_len_bound > 0, FEATURE_BOUND);
    MARK(set, trial->batch < trial->attention.max_batch, FEATURE_BATCH);
    MARK(set, trial->contents == CONTENTS_HOT, FEATURE_HOT);
    MARK(set, trial->contents == CONTENTS_SPECIAL, FEATURE_SPECIAL);
    MARK(set, trial->repeat, FEATURE_REPEAT);
    MARK(set, trial->permute, FEATURE_PERMUTED);
    MARK(set, trial->alone, FEATURE_ALONE);
    MARK(set, trial->inputs, FEATURE_INPUTS);
}

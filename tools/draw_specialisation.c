#include "verify_draw.h"
#include "verify_view.h"
#include <stdlib.h>

#define MAX_ROWS_PER_HEAD 128u
#define GGML_BLOCK 32u
/* Drawn for each specialisation; the one that adds most pairs of options is taken. */
#define NUM_CANDIDATES 60

/* How likely options are, in percent of their usual chance: every fourth specialisation has few, because a kernel
 * without options is the one that most callers run. */
enum { RICH = 100, POOR = 20 };

static bool draw_option(rng_state *rng, uint32_t percent, uint32_t richness)
{
    return rng_chance(rng, percent * richness / 100);
}

static clfd_type draw_plain_type(rng_state *rng) { return (clfd_type)(CLFD_TYPE_F32 + rng_below(rng, 3)); }

static clfd_type draw_quantised_type(rng_state *rng) { return (clfd_type)(CLFD_TYPE_INT8 + rng_below(rng, 6)); }

static uint32_t draw_dim(rng_state *rng)
{
    static const uint32_t common[] = {64, 64, 80, 96, 112, 128, 128, 128, 192, 256, 512, 576};
    return rng_chance(rng, 60) ? PICK(rng, common) : 8 * rng_between(rng, 1, TRIAL_MAX_DIM / 8);
}

/* A multiple of a GGML block where the type asks for one. */
static uint32_t whole_blocks(uint32_t dim, clfd_type type)
{
    const uint32_t block = clfd_type_elements(type) == GGML_BLOCK ? GGML_BLOCK : 8;
    return (dim + block - 1) / block * block;
}

static void draw_types(rng_state *rng, uint32_t richness, clfd_attention *a)
{
    a->q_type = draw_plain_type(rng);
    a->out_type = draw_plain_type(rng);
    a->k_type = a->v_type = draw_plain_type(rng);
    if (draw_option(rng, 60, richness)) {
        a->k_type = draw_quantised_type(rng);
        a->v_type = rng_chance(rng, 30) ? a->k_type : draw_quantised_type(rng);
    }
    a->v_from_k = draw_option(rng, 15, richness);
    if (a->v_from_k)
        a->v_type = a->k_type;
}

static void draw_dims(rng_state *rng, clfd_attention *a)
{
    a->head_dim = whole_blocks(draw_dim(rng), a->k_type);
    if (a->v_from_k)
        a->head_dim_v = whole_blocks(8 * rng_between(rng, 1, a->head_dim / 8), a->v_type);
    else
        a->head_dim_v = whole_blocks(rng_chance(rng, 65) ? a->head_dim : draw_dim(rng), a->v_type);
}

static void draw_quant(rng_state *rng, clfd_type type, uint32_t dim, clfd_quant *quant)
{
    if (view_is_plain(type) || clfd_type_elements(type) == GGML_BLOCK)
        return;
    if (rng_chance(rng, 50))
        quant->scale_type = rng_chance(rng, 80) ? CLFD_TYPE_F16 : CLFD_TYPE_F32;
    if (!view_is_grouped(type))
        return;
    quant->zeros = rng_chance(rng, 50);
    if (rng_chance(rng, 60))
        do
            quant->group = 8 * rng_between(rng, 1, dim / 8);
        while (dim % quant->group != 0);
}

/* V under v_from_k is whole groups of K or a part of the first. */
static void fit_group(clfd_attention *a)
{
    const uint32_t group = a->k_quant.group;

    if (a->v_from_k && group != 0 && a->head_dim_v > group)
        a->head_dim_v = a->head_dim_v / group * group;
}

static void draw_score_options(rng_state *rng, uint32_t richness, clfd_attention *a)
{
    a->causal = draw_option(rng, 40, richness);
    a->window = draw_option(rng, 35, richness);
    a->softcap = draw_option(rng, 35, richness) ? 1.0f : 0.0f;
    a->alibi = draw_option(rng, 35, richness);
    a->sinks = draw_option(rng, 40, richness);
    if (draw_option(rng, 45, richness))
        a->bias_type = rng_chance(rng, 50) ? CLFD_TYPE_F32 : CLFD_TYPE_F16;
    if (draw_option(rng, 50, richness))
        a->mask = rng_chance(rng, 50) ? CLFD_MASK_BOOL : CLFD_MASK_TREE;
}

static void draw_cache_options(rng_state *rng, uint32_t richness, clfd_attention *a)
{
    static const uint32_t powers[] = {2, 8, 16, 16, 32, 64, 128, 256}, odd[] = {3, 5, 7, 12, 48, 48, 100};
    const uint32_t kind = rng_below(rng, 3);

    a->query_positions = draw_option(rng, 40, richness);
    a->kv_start = draw_option(rng, 35, richness);
    a->cache_batch_idx = draw_option(rng, 40, richness);
    a->shared_kv = draw_option(rng, 20, richness);
    if (draw_option(rng, 65, richness)) {
        a->paging = rng_chance(rng, 50) ? CLFD_PAGING_TABLE : CLFD_PAGING_CSR;
        a->page_size = kind == 0 ? 1 : kind == 1 ? PICK(rng, powers) : PICK(rng, odd);
    }
    if (a->shared_kv && a->mask == CLFD_MASK_TREE)
        a->mask = CLFD_MASK_BOOL;
    if (a->shared_kv && (a->causal || a->window != 0 || a->alibi))
        a->query_positions = 1;
}

static draw_specialisation draw_candidate(rng_state *rng, uint32_t richness)
{
    static const uint32_t ratios[] = {1, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 71};
    draw_specialisation s = {.balanced = rng_chance(rng, 40), .aligned = rng_chance(rng, 60)};
    clfd_attention *a = &s.attention;

    a->struct_size = sizeof *a;
    a->num_kv_heads = 1;
    a->num_q_heads = PICK(rng, ratios);
    a->q_len = rng_chance(rng, 50) ? 1 : rng_between(rng, 2, TRIAL_MAX_Q_LEN);
    if (a->q_len * a->num_q_heads > MAX_ROWS_PER_HEAD)
        a->q_len = MAX_ROWS_PER_HEAD / a->num_q_heads;
    a->partial = rng_chance(rng, 50) ? CLFD_PARTIAL_MLO : CLFD_PARTIAL_LSE;
    draw_types(rng, richness, a);
    draw_dims(rng, a);
    draw_quant(rng, a->k_type, a->head_dim, &a->k_quant);
    if (!a->v_from_k)
        draw_quant(rng, a->v_type, a->head_dim_v, &a->v_quant);
    fit_group(a);
    draw_score_options(rng, richness, a);
    draw_cache_options(rng, richness, a);
    return s;
}

bool draw_space_open(draw_space *space, uint64_t seed, uint32_t max_programs, const char *tuning)
{
    feature_pairs pairs = {0};

    *space = (draw_space){.seed = seed, .max_programs = max_programs, .tuning = tuning};
    space->specialisations = calloc(max_programs, sizeof space->specialisations[0]);
    if (space->specialisations == NULL)
        return false;
    for (uint32_t i = 0; i < max_programs; i++) {
        rng_state rng = rng_start(seed, PURPOSE_SPECIALISATION, i);
        const bool poor = i % 4 == 3;
        feature_set best_features = {0};
        uint32_t best = 0;
        for (int k = 0; k < (poor ? 1 : NUM_CANDIDATES); k++) {
            const draw_specialisation candidate = draw_candidate(&rng, poor ? POOR : RICH);
            const feature_set features = draw_specialisation_features(&candidate);
            const uint32_t added = feature_pairs_new(&pairs, &features);
            if (k > 0 && added <= best)
                continue;
            best = added;
            best_features = features;
            space->specialisations[i] = candidate;
        }
        feature_pairs_add(&pairs, &best_features);
    }
    return true;
}

void draw_space_close(draw_space *space)
{
    free(space->specialisations);
    *space = (draw_space){0};
}

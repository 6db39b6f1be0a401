#include "verify_draw.h"
#include <stdio.h>

/* Products of the reference per problem at most: 30 ms of one core. */
#define MAX_WORK 16000000u
#define MAX_KV_LEN 20000u
/* Floats in the partial states at most. */
#define MAX_PARTIALS 4000000u

static uint32_t at_most(uint32_t value, uint32_t most) { return value < 1 ? 1 : value > most ? most : value; }

static void draw_sizes(rng_state *rng, verify_trial *trial)
{
    clfd_attention *a = &trial->attention;
    /* Many sequences now and then: the balanced schedule deals with them one after the other. */
    const uint32_t ratio = a->num_q_heads, most = rng_chance(rng, 15) ? 24 : a->shared_kv ? 12 : 6;
    uint32_t room = MAX_WORK / (a->q_len * ratio * (a->head_dim + a->head_dim_v));

    a->max_kv_len = draw_length(rng, at_most(room, MAX_KV_LEN));
    room = room / a->max_kv_len;
    a->num_kv_heads = rng_between(rng, 1, at_most(room, 8));
    a->num_q_heads = a->num_kv_heads * ratio;
    room = room / a->num_kv_heads;
    trial->batch = rng_between(rng, 1, at_most(room, most));
    a->max_batch = trial->batch + (rng_chance(rng, 25) ? rng_between(rng, 1, 3) : 0);
    if (rng_chance(rng, 20))
        trial->kv_len_bound = rng_between(rng, 1, a->max_kv_len);
    if (rng_chance(rng, 30))
        a->expected_kv_len = rng_between(rng, 1, a->max_kv_len);
}

static void draw_splits(rng_state *rng, bool balanced, verify_trial *trial)
{
    static const uint32_t counts[] = {1, 1, 2, 3, 4, 7, 8, 16, 33, 100, 10000};
    static const uint32_t tokens[] = {1, 7, 16, 33, 64, 100, 128, 256, 1000, 4096, 100000};
    clfd_attention *a = &trial->attention;
    const uint64_t floats_per_split = (uint64_t)a->max_batch * a->q_len * a->num_q_heads * a->head_dim_v;
    uint64_t most = MAX_PARTIALS / floats_per_split;

    most = most < 1 ? 1 : most;
    if (balanced) {
        /* 0 splits are AUTO as well. */
        a->split_policy = rng_chance(rng, 80) ? CLFD_SPLIT_AUTO : CLFD_SPLIT_COUNT;
    } else if (rng_chance(rng, 45)) {
        a->split_policy = CLFD_SPLIT_COUNT;
        a->split_size = PICK(rng, counts);
        a->split_size = a->split_size > most ? (uint32_t)most : a->split_size;
    } else {
        const uint32_t least = (uint32_t)((a->max_kv_len + most - 1) / most);
        a->split_policy = CLFD_SPLIT_TOKENS;
        a->split_size = PICK(rng, tokens);
        a->split_size = a->split_size < least ? least : a->split_size;
    }
}

void draw_trial(const draw_space *space, uint64_t number, verify_trial *trial)
{
    const draw_specialisation *s = &space->specialisations[number % space->max_programs];
    rng_state rng = rng_start(space->seed, PURPOSE_TRIAL, number);
    const uint32_t contents = rng_below(&rng, 10);

    *trial = (struct verify_trial){
        .number = number, .attention = s->attention, .data = rng_start(space->seed, PURPOSE_DATA, number)};
    trial->attention.tuning = space->tuning;
    trial->contents = contents < 7 ? CONTENTS_PLAIN : contents == 7 ? CONTENTS_HOT : CONTENTS_SPECIAL;
    trial->poison = (verify_poison)rng_below(&rng, NUM_POISONS);
    draw_sizes(&rng, trial);
    draw_sequences(&rng, trial);
    draw_scores(&rng, trial);
    draw_cache(&rng, trial);
    draw_splits(&rng, s->balanced, trial);
    draw_layout(&rng, s->aligned, trial);
    draw_scales(&rng, trial);
    draw_checks(&rng, trial);
    draw_features(s, trial);
}

/* Appends to a text that is cut where it ends. */
#define PRINT(...) used += used < TRIAL_BYTES ? (size_t)snprintf(text + used, TRIAL_BYTES - used, __VA_ARGS__) : 0

const char *trial_print(const verify_trial *trial, char text[TRIAL_BYTES])
{
    const clfd_attention *a = &trial->attention;
    const char *separator = ": ";
    size_t used = 0;

    PRINT("b%u of %u q%u hq%u hkv%u d%u dv%u kv%u split %u bound %u", trial->batch, a->max_batch, a->q_len,
          a->num_q_heads, a->num_kv_heads, a->head_dim, a->head_dim_v, a->max_kv_len, a->split_size,
          trial->kv_len_bound);
    if (a->paging != CLFD_PAGING_NONE)
        PRINT(" page %u of %u", a->page_size, a->num_pages);
    if (a->k_quant.group + a->v_quant.group > 0)
        PRINT(" groups %u %u", a->k_quant.group, a->v_quant.group);
    if (a->window > 0)
        PRINT(" window %u", a->window);
    if (a->softcap > 0)
        PRINT(" softcap %g", (double)a->softcap);
    for (int i = 0; i < NUM_FEATURES; i++)
        if (feature_has(&trial->features, (verify_feature)i)) {
            PRINT("%s%s", separator, feature_name((verify_feature)i));
            separator = ", ";
        }
    return text;
}

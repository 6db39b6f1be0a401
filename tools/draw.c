#include "verify.h"
#include <math.h>
#include <stdio.h>

/* Products of the reference per problem at most: 30 ms of one core. */
#define MAX_WORK 16000000u
#define MAX_KV_LEN 20000u
/* Floats in the partial states at most. */
#define MAX_PARTIALS 4000000u
#define MAX_ROWS_PER_HEAD 128u

enum { PURPOSE_SPECIALISATION = 1, PURPOSE_TRIAL = 2, PURPOSE_DATA = 3 };

#define PICK(rng, table) (table)[rng_below(rng, sizeof(table) / sizeof(table)[0])]

/* Everything that is compiled into a decode kernel. Problems share these, since each costs a build. */
struct specialisation {
    clfd_type q_type, kv_type, out_type;
    uint32_t head_dim, head_dim_v, ratio, q_len;
    clfd_partial partial;
    bool causal, v_from_k, aligned;
};

static clfd_type draw_type(rng_state *rng) { return (clfd_type)(CLFD_TYPE_F32 + rng_below(rng, 3)); }

static uint32_t draw_dim(rng_state *rng)
{
    static const uint32_t common[] = {64, 64, 80, 96, 112, 128, 128, 128, 192, 256, 512, 576};
    return rng_chance(rng, 60) ? PICK(rng, common) : 8 * rng_between(rng, 1, 72);
}

/* Specialisation `index` of the space. The types of K and V and the partial format rotate, so that a small space still
 * has all of them. */
static struct specialisation draw_specialisation(uint64_t seed, uint32_t index)
{
    static const uint32_t ratios[] = {1, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 12, 16, 71};
    rng_state rng = rng_start(seed, PURPOSE_SPECIALISATION, index);
    struct specialisation s = {
        .q_type = draw_type(&rng),
        .kv_type = (clfd_type)(CLFD_TYPE_F32 + index % 3),
        .out_type = draw_type(&rng),
        .head_dim = draw_dim(&rng),
        .ratio = PICK(&rng, ratios),
        .q_len = rng_chance(&rng, 50) ? 1 : rng_between(&rng, 2, 16),
        .partial = (clfd_partial)(index / 3 % 2),
        .causal = rng_chance(&rng, 40),
        .v_from_k = rng_chance(&rng, 15),
        .aligned = rng_chance(&rng, 60),
    };

    if (s.v_from_k)
        s.head_dim_v = 8 * rng_between(&rng, 1, s.head_dim / 8);
    else
        s.head_dim_v = rng_chance(&rng, 65) ? s.head_dim : draw_dim(&rng);
    if (s.q_len * s.ratio > MAX_ROWS_PER_HEAD)
        s.q_len = MAX_ROWS_PER_HEAD / s.ratio;
    return s;
}

/* A length from 1 to `most`: often at a tile's edge, else any size. */
static uint32_t draw_length(rng_state *rng, uint32_t most)
{
    static const uint32_t tiles[] = {16, 32, 64, 128, 256, 1024};
    const uint32_t edge = PICK(rng, tiles) * rng_between(rng, 1, 4) + rng_below(rng, 3) - 1;

    return rng_chance(rng, 40) && edge <= most ? edge : rng_log(rng, 1, most);
}

static void draw_sizes(rng_state *rng, const struct specialisation *s, verify_trial *trial)
{
    clfd_attention *a = &trial->attention;
    uint32_t room = MAX_WORK / (s->q_len * s->ratio * (s->head_dim + s->head_dim_v));

    a->max_kv_len = draw_length(rng, room < 1 ? 1 : room > MAX_KV_LEN ? MAX_KV_LEN : room);
    room = room / a->max_kv_len;
    a->num_kv_heads = rng_between(rng, 1, room < 1 ? 1 : room > 8 ? 8 : room);
    a->num_q_heads = a->num_kv_heads * s->ratio;
    room = room / a->num_kv_heads;
    trial->batch = rng_between(rng, 1, room < 1 ? 1 : room > 6 ? 6 : room);
    a->max_batch = trial->batch + (rng_chance(rng, 25) ? rng_between(rng, 1, 3) : 0);
    if (rng_chance(rng, 20))
        trial->kv_len_bound = rng_between(rng, 1, a->max_kv_len);
    if (rng_chance(rng, 30))
        a->expected_kv_len = rng_between(rng, 1, a->max_kv_len);
}

/* Lengths as a caller may give them, right or wrong, and as they count. */
static void draw_lengths(rng_state *rng, verify_trial *trial)
{
    const uint32_t capacity = trial->attention.max_kv_len;
    const uint32_t bound = trial->kv_len_bound > 0 && trial->kv_len_bound < capacity ? trial->kv_len_bound : capacity;
    const bool ragged = rng_chance(rng, 75);

    trial->placements[OPERAND_KV_LENS].present = ragged;
    for (uint32_t b = 0; b < trial->batch; b++) {
        const uint32_t kind = rng_below(rng, 20);
        int64_t length = capacity;
        if (ragged && kind < 14)
            length = draw_length(rng, capacity);
        else if (ragged && kind < 16)
            length = 0;
        else if (ragged && kind == 16)
            length = rng_chance(rng, 50) ? INT32_MIN : -(int64_t)rng_between(rng, 1, 1000);
        else if (ragged && kind == 17)
            length = rng_chance(rng, 50) ? INT32_MAX : (int64_t)capacity + rng_between(rng, 1, 1000);
        trial->kv_lens[b] = (int32_t)length;
        trial->lengths[b] = length < 0 ? 0 : length > bound ? bound : (uint32_t)length;
    }
}

static void draw_splits(rng_state *rng, verify_trial *trial)
{
    static const uint32_t counts[] = {0, 1, 1, 2, 3, 4, 7, 8, 16, 33, 100, 10000};
    static const uint32_t tokens[] = {1, 7, 16, 33, 64, 100, 128, 256, 1000, 4096, 100000};
    clfd_attention *a = &trial->attention;
    const uint64_t floats_per_split = (uint64_t)a->max_batch * a->q_len * a->num_q_heads * a->head_dim_v;
    uint64_t most = MAX_PARTIALS / floats_per_split;

    most = most < 1 ? 1 : most;
    a->split_policy = (clfd_split_policy)rng_below(rng, 3);
    if (a->split_policy == CLFD_SPLIT_COUNT) {
        a->split_size = PICK(rng, counts);
        a->split_size = a->split_size > most ? (uint32_t)most : a->split_size;
    } else if (a->split_policy == CLFD_SPLIT_TOKENS) {
        const uint32_t least = (uint32_t)((a->max_kv_len + most - 1) / most);
        a->split_size = PICK(rng, tokens);
        a->split_size = a->split_size < least ? least : a->split_size;
    }
}

/* The features that follow from what was drawn; strides have marked theirs already. */
static void mark_features(const struct specialisation *s, verify_trial *trial)
{
    const clfd_attention *a = &trial->attention;
    bool ragged = false, zero = false, range = false;

    for (uint32_t b = 0; b < trial->batch; b++) {
        ragged = ragged || trial->lengths[b] != trial->lengths[0];
        zero = zero || trial->lengths[b] == 0;
        range = range || trial->kv_lens[b] < 0 || (uint32_t)trial->kv_lens[b] > a->max_kv_len;
    }
    const struct {
        bool holds;
        int feature;
    } marks[] = {
        {true, FEATURE_Q_F32 + (int)a->q_type - CLFD_TYPE_F32},
        {true, FEATURE_KV_F32 + (int)a->k_type - CLFD_TYPE_F32},
        {true, FEATURE_OUT_F32 + (int)a->out_type - CLFD_TYPE_F32},
        {true, FEATURE_PARTIAL_LSE + (int)a->partial},
        {true, FEATURE_SPLIT_AUTO + (int)a->split_policy},
        {true, s->ratio == 1   ? FEATURE_RATIO_1
               : s->ratio <= 8 ? FEATURE_RATIO_8
                               : FEATURE_RATIO_MORE},
        {a->head_dim_v != a->head_dim, FEATURE_DIM_V},
        {s->v_from_k, FEATURE_V_FROM_K},
        {s->q_len > 1, FEATURE_Q_LEN},
        {s->causal, FEATURE_CAUSAL},
        {ragged, FEATURE_RAGGED},
        {zero, FEATURE_LENGTH_ZERO},
        {range, FEATURE_LENGTH_RANGE},
        {trial->kv_len_bound > 0, FEATURE_BOUND},
        {trial->batch < a->max_batch, FEATURE_BATCH},
        {!s->aligned, FEATURE_UNALIGNED},
        {!trial->placements[OPERAND_LSE].present, FEATURE_NO_LSE},
        {trial->contents == CONTENTS_HOT, FEATURE_HOT},
        {trial->contents == CONTENTS_SPECIAL, FEATURE_SPECIAL},
        {trial->repeat, FEATURE_REPEAT},
    };
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (marks[i].holds)
            trial->features |= (uint64_t)1 << marks[i].feature;
}

void draw_trial(const draw_space *space, uint64_t number, verify_trial *trial)
{
    rng_state rng = rng_start(space->seed, PURPOSE_TRIAL, number);
    const struct specialisation s = draw_specialisation(space->seed, rng_below(&rng, space->max_programs));
    const uint32_t contents = rng_below(&rng, 10);

    *trial = (struct verify_trial){.number = number, .data = rng_start(space->seed, PURPOSE_DATA, number)};
    trial->attention = (clfd_attention){
        .struct_size = sizeof trial->attention,
        .q_len = s.q_len,
        .head_dim = s.head_dim,
        .head_dim_v = s.head_dim_v,
        .q_type = s.q_type,
        .k_type = s.kv_type,
        .v_type = s.kv_type,
        .out_type = s.out_type,
        .causal = s.causal,
        .v_from_k = s.v_from_k,
        .partial = s.partial,
        .tuning = space->tuning,
    };
    trial->contents = contents < 7 ? CONTENTS_PLAIN : contents == 7 ? CONTENTS_HOT : CONTENTS_SPECIAL;
    trial->poison = (verify_poison)rng_below(&rng, NUM_POISONS);
    trial->repeat = rng_chance(&rng, 25);
    if (rng_chance(&rng, 30))
        trial->attention.scale =
            (rng_chance(&rng, 20) ? -1.0f : 1.0f) * (0.25f + rng_uniform(&rng)) / sqrtf((float)s.head_dim);
    draw_sizes(&rng, &s, trial);
    draw_lengths(&rng, trial);
    draw_splits(&rng, trial);
    draw_layout(&rng, s.aligned, trial);
    mark_features(&s, trial);
}

const char *trial_print(const verify_trial *trial, char text[TRIAL_BYTES])
{
    static const char *const policies[] = {"auto", "count", "tokens"};
    const clfd_attention *a = &trial->attention;

    snprintf(text, TRIAL_BYTES,
             "b%u of %u q%u hq%u hkv%u d%u dv%u kv%u %s kvtype=%s out=%s%s%s partial=%s split %s %u bound %u",
             trial->batch, a->max_batch, a->q_len, a->num_q_heads, a->num_kv_heads, a->head_dim, a->head_dim_v,
             a->max_kv_len, clfd_type_name(a->q_type), clfd_type_name(a->k_type), clfd_type_name(a->out_type),
             a->causal ? " causal" : "", a->v_from_k ? " v_from_k" : "", a->partial == CLFD_PARTIAL_MLO ? "mlo" : "lse",
             policies[a->split_policy], a->split_size, trial->kv_len_bound);
    return text;
}

#include "verify_draw.h"
#include <math.h>

enum { NUM_AXES = 4 }; /* batch, head, query, key */

static void shuffle_axes(rng_state *rng, int order[NUM_AXES])
{
    for (int i = NUM_AXES; i > 1; i--) {
        const int k = (int)rng_below(rng, (uint32_t)i), other = order[k];
        order[k] = order[i - 1];
        order[i - 1] = other;
    }
}

/* Strides of a bias or a mask: default, or given with padding, in any order, or with axes that broadcast. An axis of
 * count 0 is none, and its stride 0. Returns the extent in elements. */
static size_t draw_score_strides(rng_state *rng, const uint32_t counts[NUM_AXES], verify_feature padded_mark,
                                 verify_feature broadcast_mark, clfd_score_strides *given, clfd_score_strides *strides,
                                 verify_trial *trial)
{
    const uint32_t kind = rng_below(rng, 20);
    const bool padded = kind >= 8 && kind < 15, broadcast = kind >= 13;
    int order[NUM_AXES] = {0, 1, 2, 3};
    int64_t steps[NUM_AXES] = {0}, next = 1;
    size_t last = 0;
    bool any = false;

    if (padded && rng_chance(rng, 30))
        shuffle_axes(rng, order);
    for (int i = NUM_AXES - 1; i >= 0; i--) {
        const int axis = order[i];
        if (counts[axis] == 0 || (broadcast && rng_chance(rng, 50)))
            continue;
        next += padded ? rng_below(rng, 4) : 0;
        steps[axis] = next;
        last += (size_t)(counts[axis] - 1) * (size_t)next;
        next *= counts[axis];
        any = true;
    }
    /* All 0 would be the default. */
    if (!any) {
        steps[0] = 1;
        last = counts[0] - 1;
    }
    *strides = (clfd_score_strides){steps[0], steps[1], steps[2], steps[3]};
    if (padded || broadcast)
        *given = *strides;
    if (padded)
        feature_add(&trial->features, padded_mark);
    for (int axis = 0; axis < NUM_AXES; axis++)
        if (counts[axis] > 0 && steps[axis] == 0)
            feature_add(&trial->features, broadcast_mark);
    return last + 1;
}

static void draw_bias(rng_state *rng, verify_trial *trial)
{
    clfd_attention *a = &trial->attention;
    const uint32_t counts[] = {a->max_batch, a->num_q_heads, a->q_len, a->max_kv_len};

    if (a->bias_type == CLFD_TYPE_DEFAULT)
        return;
    const size_t count = draw_score_strides(rng, counts, FEATURE_BIAS_STRIDES, FEATURE_BIAS_BROADCAST, &a->bias_strides,
                                            &trial->bias, trial);
    trial->placements[OPERAND_BIAS] = draw_array(rng, count, clfd_type_size(a->bias_type));
    trial->infinite_bias = rng_chance(rng, 50);
    trial->masking_bias = rng_chance(rng, 15);
}

static void draw_mask(rng_state *rng, verify_trial *trial)
{
    static const uint32_t percents[] = {0, 10, 40, 40, 90, 100};
    clfd_attention *a = &trial->attention;
    const bool tree = a->mask == CLFD_MASK_TREE;
    const uint32_t counts[] = {a->max_batch, 0, a->q_len, tree ? 0 : a->max_kv_len};

    if (a->mask == CLFD_MASK_NONE)
        return;
    const size_t count = draw_score_strides(rng, counts, FEATURE_MASK_STRIDES, FEATURE_MASK_BROADCAST, &a->mask_strides,
                                            &trial->mask, trial);
    trial->placements[OPERAND_MASK] = draw_array(rng, count, tree ? sizeof(uint32_t) : 1);
    trial->mask_percent = PICK(rng, percents);
}

void draw_scores(rng_state *rng, verify_trial *trial)
{
    static const float caps[] = {1, 5, 20, 30, 50, 1000};
    clfd_attention *a = &trial->attention;

    if (rng_chance(rng, 30))
        a->scale = (rng_chance(rng, 20) ? -1.0f : 1.0f) * (0.25f + rng_uniform(rng)) / sqrtf((float)a->head_dim);
    if (a->softcap > 0)
        a->softcap = PICK(rng, caps);
    if (a->window > 0)
        a->window = rng_chance(rng, 15) ? INT32_MAX - rng_below(rng, 2) : draw_length(rng, a->max_kv_len + 10);
    draw_bias(rng, trial);
    draw_mask(rng, trial);
    if (a->alibi)
        trial->placements[OPERAND_ALIBI] = draw_array(rng, a->num_q_heads, sizeof(float));
    if (a->sinks) {
        trial->placements[OPERAND_SINKS] = draw_array(rng, a->num_q_heads, sizeof(float));
        trial->no_sinks = rng_chance(rng, 40);
    }
}

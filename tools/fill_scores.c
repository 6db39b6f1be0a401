#include "verify_fill.h"
#include <math.h>

/* Calls back for every key that length, start, causal, window and cache row leave to a query. */
typedef void (*visit)(verify_trial *trial, verify_images *images, uint32_t b, uint32_t i, uint32_t t, bool placed);

/* placed: the key has a valid page. */
static void visit_keys(verify_trial *trial, verify_images *images, visit function)
{
    for (uint32_t b = 0; b < trial->batch; b++)
        for (uint32_t i = 0; i < trial->attention.q_len; i++) {
            const uint32_t sequence = view_sequence(trial, b);
            const view_keys keys = view_row_keys(trial, b, i);
            uint32_t row;
            for (uint32_t t = keys.first; view_cache_row(trial, sequence, &row) && t < keys.end; t++) {
                view_slot slot;
                function(trial, images, b, i, t, view_slot_of(trial, images, sequence, t, &slot));
            }
        }
}

/* A key without a page is shown: whether a page that a mask hides is needed is left open. */
static void fill_bool(verify_trial *trial, verify_images *images, uint32_t b, uint32_t i, uint32_t t, bool placed)
{
    const clfd_score_strides *s = &trial->mask;
    uint8_t *entry = (uint8_t *)image_base(trial, images, OPERAND_MASK) + b * s->batch + i * s->query + t * s->key;
    const bool shown = !placed || !rng_chance(&trial->data, trial->mask_percent);

    *entry = shown ? (uint8_t)rng_between(&trial->data, 1, 255) : 0;
}

/* Bits of keys that are no new keys stay poison. */
static void fill_tree(verify_trial *trial, verify_images *images, uint32_t b, uint32_t i, uint32_t t, bool placed)
{
    uint32_t *entry =
        (uint32_t *)image_base(trial, images, OPERAND_MASK) + b * trial->mask.batch + i * trial->mask.query;
    const uint32_t q_len = trial->attention.q_len;
    const int64_t bit = (int64_t)t - ((int64_t)trial->lengths[view_sequence(trial, b)] - q_len);

    if (bit < 0)
        return;
    *entry &= ~((uint32_t)1 << bit);
    if (!placed || !rng_chance(&trial->data, trial->mask_percent))
        *entry |= (uint32_t)1 << bit;
}

static float draw_bias(verify_trial *trial)
{
    rng_state *rng = &trial->data;
    const float span = trial->contents == CONTENTS_HOT ? FILL_BIAS_MOST : FILL_BIAS_SPAN;
    const uint32_t kind = rng_below(rng, 100);

    if (trial->infinite_bias && kind < 15)
        return -INFINITY;
    if (trial->masking_bias && kind >= 85)
        return trial->attention.bias_type == CLFD_TYPE_F16 ? FILL_BIAS_MASKED_F16 : FILL_BIAS_MASKED;
    return span * (2.0f * rng_uniform(rng) - 1.0f);
}

static void fill_bias(verify_trial *trial, verify_images *images, uint32_t b, uint32_t i, uint32_t t, bool placed)
{
    const clfd_attention *a = &trial->attention;

    if (!placed || !view_mask_shows(trial, images, b, i, t))
        return;
    for (uint32_t h = 0; h < a->num_q_heads; h++) {
        const float value = draw_bias(trial);
        clfd_convert_from_float(a->bias_type, &value, view_bias_entry(trial, images, b, h, i, t), 1);
    }
}

/* Slopes of the paper (Press et al., 2022), or any, none among them. */
static void fill_slopes(verify_trial *trial, verify_images *images)
{
    const uint32_t heads = trial->attention.num_q_heads;
    const bool usual = rng_chance(&trial->data, 50);
    float *slopes = image_base(trial, images, OPERAND_ALIBI);

    for (uint32_t h = 0; h < heads; h++) {
        if (usual)
            slopes[h] = exp2f(-8.0f * (float)(h + 1) / (float)heads);
        else if (rng_chance(&trial->data, 20))
            slopes[h] = 0.0f;
        else
            slopes[h] = (rng_chance(&trial->data, 20) ? -0.1f : 0.5f) * rng_uniform(&trial->data);
    }
}

static void fill_sinks(verify_trial *trial, verify_images *images)
{
    const float span = trial->contents == CONTENTS_HOT ? 2000.0f : 12.0f;
    float *sinks = image_base(trial, images, OPERAND_SINKS);

    for (uint32_t h = 0; h < trial->attention.num_q_heads; h++)
        sinks[h] = trial->no_sinks && (h == 0 || rng_chance(&trial->data, 30))
                       ? -INFINITY
                       : span * (2.0f * rng_uniform(&trial->data) - 1.0f);
}

void fill_scores(verify_trial *trial, verify_images *images)
{
    const clfd_attention *a = &trial->attention;

    if (a->mask != CLFD_MASK_NONE)
        visit_keys(trial, images, a->mask == CLFD_MASK_BOOL ? fill_bool : fill_tree);
    if (a->bias_type != CLFD_TYPE_DEFAULT)
        visit_keys(trial, images, fill_bias);
    if (a->alibi)
        fill_slopes(trial, images);
    if (a->sinks)
        fill_sinks(trial, images);
}

#include "verify.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIM 576

size_t placement_bytes(const verify_placement *placement)
{
    return placement->before + placement->bytes + placement->after;
}

void *image_base(const verify_trial *trial, const verify_images *images, verify_operand operand)
{
    return images->data[operand] == NULL ? NULL : images->data[operand] + trial->placements[operand].before;
}

static void fill_poison(unsigned char *bytes, size_t count, clfd_type type, verify_poison poison, rng_state *rng)
{
    static const float infinity = INFINITY;
    const size_t element = clfd_type_size(type);
    unsigned char pattern[4] = {0xff, 0xff, 0xff, 0xff};

    if (poison == POISON_INFINITY)
        clfd_convert_from_float(type, &infinity, pattern, 1);
    for (size_t i = 0; i < count; i++)
        bytes[i] = poison == POISON_GARBAGE ? (unsigned char)(rng_bits(rng) >> 32) : pattern[i % element];
}

/* Address of the row of `dim` elements at (batch, token, head). */
static void *row_at(void *base, const clfd_strides *strides, clfd_type type, uint32_t batch, uint32_t token,
                    uint32_t head)
{
    const int64_t index = batch * strides->batch + token * strides->token + head * strides->head;
    return (unsigned char *)base + index * (int64_t)clfd_type_size(type);
}

/* Writes numbers into the rows that count: lengths[b] tokens of each sequence, or `tokens` where lengths is NULL. */
static void fill_rows(verify_trial *trial, void *base, const clfd_strides *strides, clfd_type type, uint32_t tokens,
                      const uint32_t *lengths, uint32_t heads, uint32_t dim, float factor)
{
    float values[MAX_DIM];

    for (uint32_t b = 0; b < trial->batch; b++)
        for (uint32_t t = 0; t < (lengths != NULL ? lengths[b] : tokens); t++)
            for (uint32_t h = 0; h < heads; h++) {
                for (uint32_t d = 0; d < dim; d++)
                    values[d] = factor * (4.0f * rng_uniform(&trial->data) - 2.0f);
                clfd_convert_from_float(type, values, row_at(base, strides, type, b, t, h), dim);
            }
}

static void put(void *row, clfd_type type, uint32_t d, float value)
{
    clfd_convert_from_float(type, &value, (unsigned char *)row + d * clfd_type_size(type), 1);
}

/* Where a special value goes, and which. */
typedef enum special { SPECIAL_Q, SPECIAL_KEY, SPECIAL_VALUE, SPECIAL_ALL_KEYS, NUM_SPECIALS } special;

/* Puts one NaN or infinity where some row sees it. Every first element of a head's keys -inf hides all keys from the
 * rows whose q is positive there. */
static void put_special(verify_trial *trial, const verify_images *images)
{
    static const float numbers[] = {NAN, INFINITY, -INFINITY};
    const clfd_attention *a = &trial->attention;
    rng_state *rng = &trial->data;
    const special kind = (special)rng_below(rng, NUM_SPECIALS);
    const float number = numbers[rng_below(rng, 3)];
    const uint32_t b = rng_below(rng, trial->batch), head = rng_below(rng, a->num_kv_heads);
    const uint32_t q_head = rng_below(rng, a->num_q_heads), query = rng_below(rng, a->q_len);
    const uint32_t token = trial->lengths[b] > 0 ? rng_below(rng, trial->lengths[b]) : 0;
    const uint32_t d = rng_below(rng, a->head_dim), d_v = rng_below(rng, a->head_dim_v);
    void *q = image_base(trial, images, OPERAND_Q), *k = image_base(trial, images, OPERAND_K);
    void *v = a->v_from_k ? k : image_base(trial, images, OPERAND_V);

    if (kind == SPECIAL_Q)
        put(row_at(q, &trial->q, a->q_type, b, query, q_head), a->q_type, d, number);
    if (trial->lengths[b] == 0)
        return;
    if (kind == SPECIAL_KEY)
        put(row_at(k, &trial->k, a->k_type, b, token, head), a->k_type, d, number);
    if (kind == SPECIAL_VALUE)
        put(row_at(v, a->v_from_k ? &trial->k : &trial->v, a->k_type, b, token, head), a->k_type, d_v, number);
    for (uint32_t t = 0; kind == SPECIAL_ALL_KEYS && t < trial->lengths[b]; t++)
        put(row_at(k, &trial->k, a->k_type, b, t, head), a->k_type, 0, -INFINITY);
}

static void fill_tensors(verify_trial *trial, verify_images *images)
{
    const clfd_attention *a = &trial->attention;
    /* Plain scores have a standard deviation of 1.8; hot ones 8 to 4000 times that. */
    const float factor = trial->contents == CONTENTS_HOT ? (float)rng_log(&trial->data, 8, 4000) : 1.0f;
    const struct {
        verify_operand operand;
        clfd_type type;
    } tensors[] = {{OPERAND_Q, a->q_type}, {OPERAND_K, a->k_type}, {OPERAND_V, a->v_type}};

    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        const verify_placement *place = &trial->placements[tensors[i].operand];
        if (place->present)
            fill_poison(images->data[tensors[i].operand], placement_bytes(place), tensors[i].type, trial->poison,
                        &trial->data);
    }
    fill_rows(trial, image_base(trial, images, OPERAND_Q), &trial->q, a->q_type, a->q_len, NULL, a->num_q_heads,
              a->head_dim, factor);
    fill_rows(trial, image_base(trial, images, OPERAND_K), &trial->k, a->k_type, 0, trial->lengths, a->num_kv_heads,
              a->head_dim, 1.0f);
    if (!a->v_from_k)
        fill_rows(trial, image_base(trial, images, OPERAND_V), &trial->v, a->v_type, 0, trial->lengths, a->num_kv_heads,
                  a->head_dim_v, 1.0f);
    if (trial->contents == CONTENTS_SPECIAL)
        for (uint32_t i = rng_between(&trial->data, 1, 3); i > 0; i--)
            put_special(trial, images);
}

bool fill_images(verify_trial *trial, verify_images *images, tool_fault *fault)
{
    *images = (struct verify_images){0};
    for (int i = 0; i < OPERAND_WORKSPACE; i++) {
        const size_t bytes = placement_bytes(&trial->placements[i]);
        if (!trial->placements[i].present)
            continue;
        images->data[i] = malloc(bytes);
        if (images->data[i] == NULL)
            return fault_failed(fault, "no memory for a tensor of %zu bytes", bytes);
        memset(images->data[i], 0xff, bytes);
    }
    if (trial->placements[OPERAND_KV_LENS].present)
        memcpy(image_base(trial, images, OPERAND_KV_LENS), trial->kv_lens, trial->batch * sizeof trial->kv_lens[0]);
    fill_tensors(trial, images);
    return true;
}

void images_free(verify_images *images)
{
    for (int i = 0; i < NUM_OPERANDS; i++)
        free(images->data[i]);
    *images = (struct verify_images){0};
}

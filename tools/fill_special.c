#include "verify_fill.h"
#include <math.h>

/* Where a special value goes. */
typedef enum special_kind {
    SPECIAL_Q,
    SPECIAL_KEY,
    SPECIAL_VALUE,
    SPECIAL_ALL_KEYS, /* -inf in the first element of each: rows of a positive q there see none */
    SPECIAL_BIAS,
    NUM_SPECIALS
} special_kind;

/* A key that some query sees. */
typedef struct special_place {
    uint32_t b, i, t;
    view_slot slot;
} special_place;

static bool draw_place(verify_trial *trial, const verify_images *images, special_place *place)
{
    rng_state *rng = &trial->data;

    for (int tries = 0; tries < 8; tries++) {
        place->b = rng_below(rng, trial->batch);
        place->i = rng_below(rng, trial->attention.q_len);
        const view_keys keys = view_row_keys(trial, place->b, place->i);
        if (keys.first == keys.end)
            continue;
        place->t = rng_between(rng, keys.first, keys.end - 1);
        if (view_slot_of(trial, images, view_sequence(trial, place->b), place->t, &place->slot) &&
            view_mask_shows(trial, images, place->b, place->i, place->t))
            return true;
    }
    return false;
}

static void put(clfd_type type, unsigned char *to, float value) { clfd_convert_from_float(type, &value, to, 1); }

/* Puts a number into element d of a row of K or V; NaN into what the element is multiplied by, where codes are finite.
 * An infinite scale is not drawn: (code - zero) of both signs make NaN of it, and their sum does not. */
static void put_element(verify_trial *trial, const verify_tensor *tensor, view_slot slot, uint32_t head, uint32_t d,
                        float number)
{
    unsigned char *row = view_row(tensor, slot, head);
    const bool e5m2 = tensor->type == CLFD_TYPE_FP8_E5M2;
    const size_t size = clfd_type_size(tensor->type);

    if (view_is_plain(tensor->type))
        put(tensor->type, row + d * size, number);
    else if (view_is_fp8(tensor->type))
        row[d] = (unsigned char)(!e5m2 || isnan(number) ? 0x7f : number > 0 ? 0x7c : 0xfc);
    else if (view_is_grouped(tensor->type))
        put(tensor->scale_type,
            view_scale(tensor, tensor->zeros != NULL && rng_chance(&trial->data, 50) ? tensor->zeros : tensor->scales,
                       slot, head, d / tensor->group),
            NAN);
    else
        put(CLFD_TYPE_F16, row + d / clfd_type_elements(tensor->type) * size, NAN);
}

static bool has_infinity(clfd_type type) { return view_is_plain(type) || type == CLFD_TYPE_FP8_E5M2; }

static void put_all_keys(verify_trial *trial, const verify_images *images, uint32_t sequence, uint32_t head)
{
    const verify_tensor k = view_tensor(trial, images, OPERAND_K);
    view_slot slot;

    for (uint32_t t = 0; has_infinity(k.type) && t < trial->lengths[sequence]; t++)
        if (view_slot_of(trial, images, sequence, t, &slot) && view_key_seen(trial, images, sequence, t))
            put_element(trial, &k, slot, head, 0, -INFINITY);
}

/* An infinity in V times a weight that float has as 0 is NaN; a wide spread of scores makes such weights. Under softcap
 * an infinity in K is a score of +-softcap. */
static bool spreads_scores(const verify_trial *trial)
{
    return trial->attention.alibi || trial->attention.softcap > 0 || trial->masking_bias;
}

static void put_special(verify_trial *trial, const verify_images *images)
{
    static const float numbers[] = {NAN, INFINITY, -INFINITY};
    const clfd_attention *a = &trial->attention;
    rng_state *rng = &trial->data;
    const special_kind kind = (special_kind)rng_below(rng, NUM_SPECIALS);
    const float number = numbers[rng_below(rng, 3)];
    const uint32_t head = rng_below(rng, a->num_kv_heads), q_head = rng_below(rng, a->num_q_heads);
    const verify_tensor k = view_tensor(trial, images, OPERAND_K), v = view_tensor(trial, images, OPERAND_V);
    special_place place;

    if (kind == SPECIAL_Q) {
        const int64_t row = rng_below(rng, trial->batch) * trial->q.batch + rng_below(rng, a->q_len) * trial->q.token +
                            q_head * trial->q.head + rng_below(rng, a->head_dim);
        put(a->q_type, (unsigned char *)image_base(trial, images, OPERAND_Q) + row * (int64_t)clfd_type_size(a->q_type),
            number);
        return;
    }
    if (!draw_place(trial, images, &place))
        return;
    const uint32_t sequence = view_sequence(trial, place.b);
    if (kind == SPECIAL_KEY)
        put_element(trial, &k, place.slot, head, rng_below(rng, k.dim), number);
    else if (kind == SPECIAL_VALUE)
        put_element(trial, &v, place.slot, head, rng_below(rng, v.dim), spreads_scores(trial) ? NAN : number);
    else if (kind == SPECIAL_ALL_KEYS)
        put_all_keys(trial, images, sequence, head);
    else if (a->bias_type != CLFD_TYPE_DEFAULT)
        put(a->bias_type, view_bias_entry(trial, images, place.b, q_head, place.i, place.t),
            rng_chance(rng, 50) ? NAN : INFINITY);
}

void fill_special(verify_trial *trial, verify_images *images)
{
    for (uint32_t i = rng_between(&trial->data, 1, 3); i > 0; i--)
        put_special(trial, images);
}

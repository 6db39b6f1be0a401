#include "verify_fill.h"

/* Values lie within about +-2 for every type. */
#define SPAN 2.0f

/* The f16 scale of a GGML block stands before its codes. */
#define GGML_BLOCK 32u

static void fill_plain(rng_state *rng, const verify_tensor *tensor, unsigned char *row)
{
    float values[TRIAL_MAX_DIM];

    for (uint32_t d = 0; d < tensor->dim; d++)
        values[d] = SPAN * (2.0f * rng_uniform(rng) - 1.0f);
    clfd_convert_from_float(tensor->type, values, row, tensor->dim);
}

/* Bytes of any bits: every code is legal. */
static void fill_bytes(rng_state *rng, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(rng_bits(rng) >> 32);
}

static void put_number(clfd_type type, float value, unsigned char *to) { clfd_convert_from_float(type, &value, to, 1); }

/* A scale that brings codes up to `greatest` into the span; some are negative, few are 0. */
static float draw_scale(rng_state *rng, float greatest)
{
    if (rng_chance(rng, 2))
        return 0.0f;
    return (rng_chance(rng, 10) ? -1.0f : 1.0f) * (0.5f + rng_uniform(rng)) * SPAN / greatest;
}

static void fill_groups(rng_state *rng, const verify_tensor *tensor, view_slot slot, uint32_t head, unsigned char *row)
{
    const float greatest = tensor->type == CLFD_TYPE_INT8 ? 127.0f : 7.0f;

    fill_bytes(rng, row, tensor->dim / clfd_type_elements(tensor->type));
    for (uint32_t g = 0; g < tensor->num_groups; g++) {
        float zero = (rng_uniform(rng) - 0.5f) * greatest;
        /* Some zeros are codes, some lie between two. */
        zero = rng_chance(rng, 50) ? (float)(int)zero : zero;
        put_number(tensor->scale_type, draw_scale(rng, greatest), view_scale(tensor, tensor->scales, slot, head, g));
        if (tensor->zeros != NULL)
            put_number(tensor->scale_type, zero, view_scale(tensor, tensor->zeros, slot, head, g));
    }
}

/* Codes of magnitudes below 2, some below 2^-6 and subnormal; or, in some problems, of any finite magnitude. */
static void fill_fp8(rng_state *rng, const verify_tensor *tensor, bool wide, unsigned char *row)
{
    const uint32_t finite = tensor->type == CLFD_TYPE_FP8_E4M3 ? 0x7f : 0x7c;

    for (uint32_t d = 0; d < tensor->dim; d++) {
        const uint32_t bits = (uint32_t)(rng_bits(rng) >> 32), sign = bits >> 24 & 0x80;
        row[d] = (unsigned char)(sign | (wide                  ? bits % finite
                                         : rng_chance(rng, 70) ? 0x28 + bits % 0x18
                                                               : bits % 0x40));
    }
}

/* Filled once per tensor. */
static void fill_fp8_scales(rng_state *rng, const verify_tensor *tensor, bool wide, uint32_t num_heads)
{
    const float greatest = !wide ? SPAN : tensor->type == CLFD_TYPE_FP8_E4M3 ? 448.0f : 57344.0f;

    for (uint32_t head = 0; head < num_heads; head++)
        put_number(tensor->scale_type, draw_scale(rng, greatest),
                   view_scale(tensor, tensor->scales, (view_slot){0, 0}, head, 0));
}

static void fill_blocks(rng_state *rng, const verify_tensor *tensor, unsigned char *row)
{
    const float greatest = tensor->type == CLFD_TYPE_Q8_0 ? 127.0f : 8.0f;
    const size_t bytes = clfd_type_size(tensor->type);

    fill_bytes(rng, row, tensor->dim / GGML_BLOCK * bytes);
    for (uint32_t block = 0; block < tensor->dim / GGML_BLOCK; block++)
        put_number(CLFD_TYPE_F16, draw_scale(rng, greatest), row + block * bytes);
}

static void fill_row(rng_state *rng, const verify_tensor *tensor, bool wide, view_slot slot, uint32_t head)
{
    unsigned char *row = view_row(tensor, slot, head);

    if (view_is_plain(tensor->type))
        fill_plain(rng, tensor, row);
    else if (view_is_grouped(tensor->type))
        fill_groups(rng, tensor, slot, head, row);
    else if (view_is_fp8(tensor->type))
        fill_fp8(rng, tensor, wide, row);
    else
        fill_blocks(rng, tensor, row);
}

void fill_cache(verify_trial *trial, verify_images *images)
{
    const clfd_attention *a = &trial->attention;
    const verify_tensor k = view_tensor(trial, images, OPERAND_K), v = view_tensor(trial, images, OPERAND_V);
    rng_state *rng = &trial->data;
    const bool wide = rng_chance(rng, 25);

    if (view_is_fp8(a->k_type))
        fill_fp8_scales(rng, &k, wide, a->num_kv_heads);
    if (view_is_fp8(a->v_type) && !a->v_from_k)
        fill_fp8_scales(rng, &v, wide, a->num_kv_heads);
    for (uint32_t s = 0; s < trial->num_sequences; s++)
        for (uint32_t t = 0; t < trial->lengths[s]; t++) {
            view_slot slot;
            if (!view_slot_of(trial, images, s, t, &slot) || !view_key_seen(trial, images, s, t))
                continue;
            for (uint32_t head = 0; head < a->num_kv_heads; head++) {
                fill_row(rng, &k, wide, slot, head);
                if (!a->v_from_k && view_value_seen(trial, images, s, t, head))
                    fill_row(rng, &v, wide, slot, head);
            }
        }
}

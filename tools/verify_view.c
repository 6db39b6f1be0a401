#include "verify_view.h"
#include <clfd/cache.h>
#include <math.h>
#include <string.h>

#define MAX_GROUPS (TRIAL_MAX_DIM / 8)

bool view_is_plain(clfd_type type) { return type >= CLFD_TYPE_F32 && type <= CLFD_TYPE_BF16; }

bool view_is_grouped(clfd_type type) { return type == CLFD_TYPE_INT8 || type == CLFD_TYPE_INT4; }

bool view_is_fp8(clfd_type type) { return type == CLFD_TYPE_FP8_E4M3 || type == CLFD_TYPE_FP8_E5M2; }

verify_tensor view_tensor(const verify_trial *trial, const verify_images *images, verify_operand operand)
{
    const clfd_attention *a = &trial->attention;
    const bool value = operand == OPERAND_V, own = value && !a->v_from_k;
    const clfd_quant *quant = own ? &a->v_quant : &a->k_quant;
    verify_tensor tensor = {
        .type = value ? a->v_type : a->k_type,
        .dim = value ? a->head_dim_v : a->head_dim,
        .scale_type = quant->scale_type == CLFD_TYPE_DEFAULT ? CLFD_TYPE_F32 : quant->scale_type,
        .strides = own ? trial->v : trial->k,
        .scale_strides = own ? trial->v_scale : trial->k_scale,
        .group_stride = quant->group_stride == 0 ? 1 : quant->group_stride,
        .base = image_base(trial, images, own ? OPERAND_V : OPERAND_K),
        .scales = image_base(trial, images, own ? OPERAND_V_SCALE : OPERAND_K_SCALE),
        .zeros = image_base(trial, images, own ? OPERAND_V_ZERO : OPERAND_K_ZERO),
    };

    if (tensor.scales != NULL) {
        tensor.group = quant->group == 0 || quant->group > tensor.dim ? tensor.dim : quant->group;
        tensor.num_groups = tensor.dim / tensor.group;
    }
    return tensor;
}

uint32_t view_sequence(const verify_trial *trial, uint32_t b) { return trial->attention.shared_kv ? 0 : b; }

int64_t view_position(const verify_trial *trial, uint32_t b, uint32_t i)
{
    const clfd_attention *a = &trial->attention;

    return a->query_positions ? trial->query_positions[b * a->q_len + i]
                              : (int64_t)trial->lengths[view_sequence(trial, b)] - a->q_len + i;
}

static view_keys clamp_keys(int64_t first, int64_t end)
{
    end = end < 0 ? 0 : end;
    first = first < 0 ? 0 : first > end ? end : first;
    return (view_keys){(uint32_t)first, (uint32_t)end};
}

view_keys view_row_keys(const verify_trial *trial, uint32_t b, uint32_t i)
{
    const clfd_attention *a = &trial->attention;
    const uint32_t sequence = view_sequence(trial, b);
    const int64_t position = view_position(trial, b, i);
    int64_t first = a->kv_start ? trial->kv_start[sequence] : 0, end = trial->lengths[sequence];

    if (a->window > 0 && position - a->window + 1 > first)
        first = position - a->window + 1;
    if (a->causal && position + 1 < end)
        end = position + 1;
    return clamp_keys(first, end);
}

view_keys view_needed_keys(const verify_trial *trial, uint32_t sequence)
{
    const clfd_attention *a = &trial->attention;
    const int64_t start = a->kv_start ? trial->kv_start[sequence] : 0;
    int64_t first = INT64_MAX;

    for (uint32_t b = 0; b < trial->batch; b++)
        for (uint32_t i = 0; i < a->q_len && view_sequence(trial, b) == sequence; i++) {
            const int64_t windowed = a->window > 0 ? view_position(trial, b, i) - a->window + 1 : 0;
            const int64_t own = windowed > start ? windowed : start;
            first = own < first ? own : first;
        }
    return clamp_keys(first, trial->lengths[sequence]);
}

bool view_cache_row(const verify_trial *trial, uint32_t sequence, uint32_t *row)
{
    const int64_t given = trial->attention.cache_batch_idx ? trial->cache_batch_idx[sequence] : (int64_t)sequence;

    *row = (uint32_t)given;
    return given >= 0 && given < trial->num_cache_rows;
}

bool view_slot_of(const verify_trial *trial, const verify_images *images, uint32_t sequence, uint32_t t,
                  view_slot *slot)
{
    const clfd_attention *a = &trial->attention;
    const int32_t *table = image_base(trial, images, OPERAND_BLOCK_TABLE);
    uint32_t row;

    if (!view_cache_row(trial, sequence, &row))
        return false;
    *slot = (view_slot){row, t};
    if (a->paging == CLFD_PAGING_NONE)
        return true;
    const int64_t entry = trial->row_starts[row] + t / a->page_size;
    if (entry < 0 || entry >= trial->row_ends[row] || table[entry] < 0 || (uint32_t)table[entry] >= a->num_pages)
        return false;
    *slot = (view_slot){(uint32_t)table[entry], t % a->page_size};
    return true;
}

bool view_mask_shows(const verify_trial *trial, const verify_images *images, uint32_t b, uint32_t i, uint32_t t)
{
    const clfd_attention *a = &trial->attention;
    const void *mask = image_base(trial, images, OPERAND_MASK);
    const int64_t row = b * trial->mask.batch + i * trial->mask.query;

    if (a->mask == CLFD_MASK_BOOL)
        return ((const uint8_t *)mask)[row + t * trial->mask.key] != 0;
    if (a->mask == CLFD_MASK_TREE) {
        const int64_t bit = (int64_t)t - ((int64_t)trial->lengths[view_sequence(trial, b)] - a->q_len);
        return bit < 0 || (((const uint32_t *)mask)[row] >> bit & 1) != 0;
    }
    return true;
}

unsigned char *view_bias_entry(const verify_trial *trial, const verify_images *images, uint32_t b, uint32_t h,
                               uint32_t i, uint32_t t)
{
    const clfd_score_strides *s = &trial->bias;
    const int64_t index = b * s->batch + h * s->head + i * s->query + t * s->key;

    return (unsigned char *)image_base(trial, images, OPERAND_BIAS) +
           index * (int64_t)clfd_type_size(trial->attention.bias_type);
}

float view_bias(const verify_trial *trial, const verify_images *images, uint32_t b, uint32_t h, uint32_t i, uint32_t t)
{
    float value = 0;

    if (trial->attention.bias_type != CLFD_TYPE_DEFAULT)
        clfd_convert_to_float(trial->attention.bias_type, view_bias_entry(trial, images, b, h, i, t), &value, 1);
    return value;
}

/* Whether query i of entry b sees key t; pages do not matter. */
static bool row_sees(const verify_trial *trial, const verify_images *images, uint32_t b, uint32_t i, uint32_t t)
{
    const view_keys keys = view_row_keys(trial, b, i);

    return t >= keys.first && t < keys.end && view_mask_shows(trial, images, b, i, t);
}

bool view_key_seen(const verify_trial *trial, const verify_images *images, uint32_t sequence, uint32_t t)
{
    for (uint32_t b = 0; b < trial->batch; b++)
        for (uint32_t i = 0; i < trial->attention.q_len && view_sequence(trial, b) == sequence; i++)
            if (row_sees(trial, images, b, i, t))
                return true;
    return false;
}

bool view_value_seen(const verify_trial *trial, const verify_images *images, uint32_t sequence, uint32_t t,
                     uint32_t kv_head)
{
    const clfd_attention *a = &trial->attention;
    const uint32_t ratio = a->num_q_heads / a->num_kv_heads;

    for (uint32_t b = 0; b < trial->batch; b++)
        for (uint32_t i = 0; i < a->q_len && view_sequence(trial, b) == sequence; i++)
            for (uint32_t r = 0; row_sees(trial, images, b, i, t) && r < ratio; r++)
                if (view_bias(trial, images, b, kv_head * ratio + r, i, t) != -INFINITY)
                    return true;
    return false;
}

unsigned char *view_row(const verify_tensor *tensor, view_slot slot, uint32_t head)
{
    const clfd_strides *s = &tensor->strides;

    return tensor->base +
           (slot.outer * s->batch + slot.inner * s->token + head * s->head) * (int64_t)clfd_type_size(tensor->type);
}

unsigned char *view_scale(const verify_tensor *tensor, unsigned char *scales, view_slot slot, uint32_t head,
                          uint32_t group)
{
    const clfd_strides *s = &tensor->scale_strides;
    const int64_t index = slot.outer * s->batch + slot.inner * s->token + head * s->head + group * tensor->group_stride;

    return scales + index * (int64_t)clfd_type_size(tensor->scale_type);
}

static void load_scales(const verify_tensor *tensor, unsigned char *scales, view_slot slot, uint32_t head, float *to)
{
    for (uint32_t g = 0; g < tensor->num_groups; g++)
        clfd_convert_to_float(tensor->scale_type, view_scale(tensor, scales, slot, head, g), &to[g], 1);
}

void view_load(const verify_tensor *tensor, view_slot slot, uint32_t head, float *values, float *magnitudes)
{
    const unsigned char *codes = view_row(tensor, slot, head);
    float scales[MAX_GROUPS], zeros[MAX_GROUPS];

    if (view_is_plain(tensor->type)) {
        clfd_convert_to_float(tensor->type, codes, values, tensor->dim);
        for (uint32_t d = 0; d < tensor->dim; d++)
            magnitudes[d] = fabsf(values[d]);
        return;
    }
    if (tensor->scales != NULL)
        load_scales(tensor, tensor->scales, slot, head, scales);
    if (tensor->zeros != NULL)
        load_scales(tensor, tensor->zeros, slot, head, zeros);
    clfd_dequantise_row(tensor->type, tensor->dim, tensor->group, codes, scales, NULL, magnitudes);
    clfd_dequantise_row(tensor->type, tensor->dim, tensor->group, codes, scales, tensor->zeros != NULL ? zeros : NULL,
                        values);
    for (uint32_t d = 0; d < tensor->dim; d++)
        magnitudes[d] = fabsf(magnitudes[d]) +
                        (tensor->zeros != NULL ? fabsf(zeros[d / tensor->group] * scales[d / tensor->group]) : 0);
}

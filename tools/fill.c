#include "verify_fill.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void fill_poison(unsigned char *bytes, size_t count, clfd_type type, verify_poison poison, rng_state *rng)
{
    /* Infinity, or what comes nearest to it; codes of quantised types with scales of their own are all legal. */
    static const unsigned char infinities[][4] = {
        [CLFD_TYPE_F32] = {0x00, 0x00, 0x80, 0x7f},      [CLFD_TYPE_F16] = {0x00, 0x7c, 0x00, 0x7c},
        [CLFD_TYPE_BF16] = {0x80, 0x7f, 0x80, 0x7f},     [CLFD_TYPE_INT8] = {0x80, 0x7f, 0x80, 0x7f},
        [CLFD_TYPE_INT4] = {0x88, 0x77, 0x88, 0x77},     [CLFD_TYPE_FP8_E4M3] = {0x7f, 0xff, 0x7f, 0xff},
        [CLFD_TYPE_FP8_E5M2] = {0x7c, 0xfc, 0x7c, 0xfc}, [CLFD_TYPE_Q8_0] = {0x00, 0x7c, 0x00, 0x7c},
        [CLFD_TYPE_Q4_0] = {0x00, 0x7c, 0x00, 0x7c},
    };
    uint64_t bits = 0;

    /* All ones are NaN in every type that has one. */
    if (poison == POISON_NAN)
        memset(bytes, 0xff, count);
    for (size_t i = 0; poison == POISON_INFINITY && i < count; i++)
        bytes[i] = infinities[type][i % 4];
    for (size_t i = 0; poison == POISON_GARBAGE && i < count; i++, bits >>= 8) {
        bits = i % 8 == 0 ? rng_bits(rng) : bits;
        bytes[i] = (unsigned char)bits;
    }
}

static bool allocate(const verify_trial *trial, verify_images *images, tool_fault *fault)
{
    *images = (struct verify_images){.one_buffer = trial->one_buffer};
    for (int i = 0; i < OPERAND_WORKSPACE; i++) {
        const size_t bytes = placement_bytes(&trial->placements[i]);
        if (!trial->placements[i].present)
            continue;
        if (i == OPERAND_V && trial->one_buffer) {
            images->data[i] = images->data[OPERAND_K];
            continue;
        }
        images->data[i] = malloc(bytes > 0 ? bytes : 1);
        if (images->data[i] == NULL)
            return fault_failed(fault, "no memory for a tensor of %zu bytes", bytes);
        memset(images->data[i], 0xff, bytes);
    }
    return true;
}

/* From a generator of its own: the numbers do not depend on the poison around them. */
static void poison_tensors(const verify_trial *trial, verify_images *images)
{
    const clfd_attention *a = &trial->attention;
    rng_state rng = rng_start(trial->data.state, 0, trial->number);
    const struct {
        verify_operand operand;
        clfd_type type;
    } tensors[] = {
        {OPERAND_Q, a->q_type},
        {OPERAND_K, a->k_type},
        {OPERAND_V, a->v_type},
        {OPERAND_BIAS, a->bias_type},
        {OPERAND_MASK, CLFD_TYPE_INT8},
        {OPERAND_K_SCALE, a->k_quant.scale_type == CLFD_TYPE_F16 ? CLFD_TYPE_F16 : CLFD_TYPE_F32},
        {OPERAND_V_SCALE, a->v_quant.scale_type == CLFD_TYPE_F16 ? CLFD_TYPE_F16 : CLFD_TYPE_F32},
        {OPERAND_K_ZERO, a->k_quant.scale_type == CLFD_TYPE_F16 ? CLFD_TYPE_F16 : CLFD_TYPE_F32},
        {OPERAND_V_ZERO, a->v_quant.scale_type == CLFD_TYPE_F16 ? CLFD_TYPE_F16 : CLFD_TYPE_F32},
    };

    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        const verify_operand operand = tensors[i].operand;
        if (trial->placements[operand].present && !(operand == OPERAND_V && trial->one_buffer))
            fill_poison(images->data[operand], placement_bytes(&trial->placements[operand]), tensors[i].type,
                        trial->poison, &rng);
    }
}

/* The small arrays, which were drawn with the problem. */
static void copy_arrays(const verify_trial *trial, verify_images *images)
{
    const struct {
        verify_operand operand;
        const void *array;
    } arrays[] = {
        {OPERAND_KV_LENS, trial->kv_lens},
        {OPERAND_KV_START, trial->kv_start},
        {OPERAND_CACHE_BATCH_IDX, trial->cache_batch_idx},
        {OPERAND_QUERY_POSITIONS, trial->query_positions},
        {OPERAND_PAGE_INDPTR, trial->page_indptr},
        {OPERAND_STATUS, &trial->status_before},
    };

    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        if (trial->placements[arrays[i].operand].present)
            memcpy(image_base(trial, images, arrays[i].operand), arrays[i].array,
                   trial->placements[arrays[i].operand].bytes);
}

static void fill_queries(verify_trial *trial, verify_images *images)
{
    const clfd_attention *a = &trial->attention;
    /* Plain scores have a standard deviation of 1.8; hot ones 8 to 4000 times that. */
    const float factor = trial->contents == CONTENTS_HOT ? (float)rng_log(&trial->data, 8, 4000) : 1.0f;
    unsigned char *base = image_base(trial, images, OPERAND_Q);
    float values[TRIAL_MAX_DIM];

    for (uint32_t b = 0; b < trial->batch; b++)
        for (uint32_t i = 0; i < a->q_len; i++)
            for (uint32_t h = 0; h < a->num_q_heads; h++) {
                const int64_t index = b * trial->q.batch + i * trial->q.token + h * trial->q.head;
                for (uint32_t d = 0; d < a->head_dim; d++)
                    values[d] = factor * (4.0f * rng_uniform(&trial->data) - 2.0f);
                clfd_convert_from_float(a->q_type, values, base + index * (int64_t)clfd_type_size(a->q_type),
                                        a->head_dim);
            }
}

bool fill_images(verify_trial *trial, verify_images *images, tool_fault *fault)
{
    if (!allocate(trial, images, fault))
        return false;
    poison_tensors(trial, images);
    copy_arrays(trial, images);
    fill_queries(trial, images);
    if (trial->attention.paging != CLFD_PAGING_NONE && !fill_block_table(trial, images, fault))
        return false;
    fill_scores(trial, images);
    fill_cache(trial, images);
    if (trial->contents == CONTENTS_SPECIAL)
        fill_special(trial, images);
    return true;
}

#include "verify_draw.h"

/* Bytes from one cache row of K or V to the next, where a sequence has a row of its own. */
static size_t row_bytes(const verify_trial *trial, const clfd_strides *strides, size_t element)
{
    const clfd_attention *a = &trial->attention;
    const bool own = !a->shared_kv && !a->cache_batch_idx && a->paging == CLFD_PAGING_NONE;

    return own ? (size_t)strides->batch * element : 0;
}

size_t draw_alone_shift(const verify_trial *trial, verify_operand operand, uint32_t b)
{
    const clfd_attention *a = &trial->attention;
    const size_t k_scale = a->k_quant.scale_type == CLFD_TYPE_F16 ? 2 : 4;
    const size_t v_scale = a->v_quant.scale_type == CLFD_TYPE_F16 ? 2 : 4;
    const size_t per_sequence = a->shared_kv ? 0 : sizeof(int32_t), per_row = a->cache_batch_idx ? 0 : per_sequence;
    const size_t steps[NUM_OPERANDS] = {
        [OPERAND_Q] = (size_t)trial->q.batch * clfd_type_size(a->q_type),
        [OPERAND_K] = row_bytes(trial, &trial->k, clfd_type_size(a->k_type)),
        [OPERAND_V] = row_bytes(trial, &trial->v, clfd_type_size(a->v_type)),
        [OPERAND_KV_LENS] = per_sequence,
        [OPERAND_BIAS] = (size_t)trial->bias.batch * clfd_type_size(a->bias_type),
        [OPERAND_MASK] = (size_t)trial->mask.batch * (a->mask == CLFD_MASK_TREE ? sizeof(uint32_t) : 1),
        [OPERAND_QUERY_POSITIONS] = a->q_len * sizeof(int32_t),
        [OPERAND_KV_START] = per_sequence,
        [OPERAND_CACHE_BATCH_IDX] = per_sequence,
        [OPERAND_BLOCK_TABLE] = a->paging == CLFD_PAGING_TABLE ? trial->block_table_stride * per_row : 0,
        [OPERAND_PAGE_INDPTR] = per_row,
        [OPERAND_K_SCALE] = row_bytes(trial, &trial->k_scale, k_scale),
        [OPERAND_K_ZERO] = row_bytes(trial, &trial->k_scale, k_scale),
        [OPERAND_V_SCALE] = row_bytes(trial, &trial->v_scale, v_scale),
        [OPERAND_V_ZERO] = row_bytes(trial, &trial->v_scale, v_scale),
    };
    return steps[operand] * b;
}

/* Whether the tensors of sequence b begin where the descriptor promises. */
static bool can_be_alone(const verify_trial *trial, uint32_t b)
{
    const clfd_attention *a = &trial->attention;
    const struct {
        verify_operand operand;
        uint32_t promise;
    } promises[] = {{OPERAND_Q, a->q_alignment}, {OPERAND_K, a->k_alignment}, {OPERAND_V, a->v_alignment}};

    for (int i = 0; i < 3; i++)
        if (draw_alone_shift(trial, promises[i].operand, b) % (promises[i].promise == 0 ? 16 : promises[i].promise) !=
            0)
            return false;
    return a->split_policy == CLFD_SPLIT_TOKENS;
}

void draw_checks(rng_state *rng, verify_trial *trial)
{
    trial->repeat = rng_chance(rng, 25);
    trial->inputs = rng_chance(rng, 20);
    trial->permute = trial->attention.paging != CLFD_PAGING_NONE && rng_chance(rng, 30);
    trial->alone_sequence = rng_below(rng, trial->batch);
    trial->alone = rng_chance(rng, 40) && can_be_alone(trial, trial->alone_sequence);
    if (rng_chance(rng, 70))
        trial->placements[OPERAND_STATUS] = draw_array(rng, 1, sizeof(uint32_t));
    /* Bits that the call does not set must stay. */
    trial->status_before = (uint32_t)rng_bits(rng) & ~(uint32_t)(CLFD_FLAG_PAGE | CLFD_FLAG_CACHE_ROW);
}

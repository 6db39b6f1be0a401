#include "verify_draw.h"

/* int8 and int4: a scale for each token, head and group, in strides of their own. */
static clfd_strides draw_groups(rng_state *rng, uint32_t dim, clfd_quant *quant, size_t *count, verify_trial *trial)
{
    const uint32_t num_groups = quant->group == 0 ? 1 : dim / quant->group;
    const uint32_t step = rng_chance(rng, 15) ? rng_between(rng, 2, 3) : 1;
    draw_shape shape = draw_cache_shape(trial, (num_groups - 1) * step + 1);

    /* The default is dense for groups that lie side by side. */
    shape.explicit_strides = step > 1;
    if (step > 1)
        quant->group_stride = step;
    const clfd_strides strides = draw_strides(rng, &shape, &quant->strides, FEATURE_SCALE_STRIDES, trial);
    *count = draw_extent(&shape, &strides);
    return strides;
}

/* fp8: one scale, or one for each KV head. */
static clfd_strides draw_per_head(rng_state *rng, clfd_quant *quant, size_t *count, const verify_trial *trial)
{
    quant->strides.head = rng_chance(rng, 50);
    *count = quant->strides.head == 1 ? trial->attention.num_kv_heads : 1;
    return quant->strides;
}

void draw_scales(rng_state *rng, verify_trial *trial)
{
    clfd_attention *a = &trial->attention;
    const struct {
        clfd_type type;
        uint32_t dim;
        clfd_quant *quant;
        clfd_strides *strides;
        verify_operand scale, zero;
    } tensors[] = {
        {a->k_type, a->head_dim, &a->k_quant, &trial->k_scale, OPERAND_K_SCALE, OPERAND_K_ZERO},
        {a->v_type, a->head_dim_v, &a->v_quant, &trial->v_scale, OPERAND_V_SCALE, OPERAND_V_ZERO},
    };

    for (int i = 0; i < (a->v_from_k ? 1 : 2); i++) {
        clfd_quant *quant = tensors[i].quant;
        const size_t element = quant->scale_type == CLFD_TYPE_F16 ? 2 : 4;
        size_t count;
        if (view_is_grouped(tensors[i].type))
            *tensors[i].strides = draw_groups(rng, tensors[i].dim, quant, &count, trial);
        else if (view_is_fp8(tensors[i].type))
            *tensors[i].strides = draw_per_head(rng, quant, &count, trial);
        else
            continue;
        trial->placements[tensors[i].scale] = draw_array(rng, count, element);
        if (quant->zeros)
            trial->placements[tensors[i].zero] = draw_array(rng, count, element);
    }
}

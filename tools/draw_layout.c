#include "verify.h"

#define PICK(rng, table) (table)[rng_below(rng, sizeof(table) / sizeof(table)[0])]

/* Strides of a tensor, dense in some order of its dimensions with some padding behind each. `unit` elements is what
 * everything is a multiple of. `given` is what the descriptor says: zeros for the default. */
static clfd_strides draw_strides(rng_state *rng, const uint64_t counts[3], uint32_t dim, uint32_t unit, bool head_first,
                                 bool may_broadcast, clfd_strides *given, verify_trial *trial)
{
    static const uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const uint32_t kind = rng_below(rng, 20);
    /* Dimensions 0 batch, 1 token, 2 head, slowest first. */
    const uint8_t *order = kind < 15 ? orders[head_first ? 1 : 0] : PICK(rng, orders);
    int64_t strides[3], next = dim;

    for (int i = 2; i >= 0; i--) {
        if (kind >= 15)
            next += (int64_t)unit * rng_below(rng, 4);
        strides[order[i]] = next;
        next *= (int64_t)counts[order[i]];
    }
    *given = (clfd_strides){0};
    if (kind >= 15) {
        *given = (clfd_strides){strides[0], strides[1], strides[2]};
        trial->features |= FEATURE_BIT(STRIDES);
    } else if (kind == 14) {
        /* One stride alone, the others by default. */
        strides[0] += unit;
        given->batch = strides[0];
        trial->features |= FEATURE_BIT(STRIDES);
    }
    if (may_broadcast && rng_chance(rng, 10)) {
        const bool batch = rng_chance(rng, 50);
        *(batch ? &given->batch : &given->head) = CLFD_STRIDE_BROADCAST;
        strides[batch ? 0 : 2] = 0;
        trial->features |= FEATURE_BIT(BROADCAST);
    }
    return (clfd_strides){strides[0], strides[1], strides[2]};
}

/* Bytes around an operand: `before` a multiple of its alignment, `after` any number of elements, also none. */
static verify_placement place(rng_state *rng, size_t bytes, size_t element, size_t alignment)
{
    return (verify_placement){
        .present = true,
        .before = rng_chance(rng, 70) ? alignment * rng_between(rng, 1, 20) : 0,
        .bytes = bytes,
        .after = rng_chance(rng, 70) ? element * rng_between(rng, 1, 100) : 0,
    };
}

static verify_placement place_tensor(rng_state *rng, const clfd_strides *strides, const uint64_t counts[3],
                                     uint32_t dim, clfd_type type, bool aligned)
{
    const size_t element = clfd_type_size(type);
    const int64_t last = (int64_t)(counts[0] - 1) * strides->batch + (int64_t)(counts[1] - 1) * strides->token +
                         (int64_t)(counts[2] - 1) * strides->head;

    return place(rng, ((size_t)last + dim) * element, element, aligned ? 16 : element);
}

void draw_layout(rng_state *rng, bool aligned, verify_trial *trial)
{
    clfd_attention *a = &trial->attention;
    const uint64_t q_counts[] = {a->max_batch, a->q_len, a->num_q_heads};
    const uint64_t kv_counts[] = {a->max_batch, a->max_kv_len, a->num_kv_heads};
    const uint32_t q_unit = aligned ? 16 / (uint32_t)clfd_type_size(a->q_type) : 1;
    const uint32_t kv_unit = aligned ? 16 / (uint32_t)clfd_type_size(a->k_type) : 1;
    const uint32_t out_unit = aligned ? 16 / (uint32_t)clfd_type_size(a->out_type) : 1;
    const uint64_t num_rows = (uint64_t)a->max_batch * a->q_len * a->num_q_heads;
    bool head_first;

    a->kv_layout = rng_chance(rng, 30) ? CLFD_LAYOUT_BHSD : CLFD_LAYOUT_BSHD;
    head_first = a->kv_layout == CLFD_LAYOUT_BHSD;
    trial->q = draw_strides(rng, q_counts, a->head_dim, q_unit, false, false, &a->q_strides, trial);
    trial->out = draw_strides(rng, q_counts, a->head_dim_v, out_unit, false, false, &a->out_strides, trial);
    trial->k = draw_strides(rng, kv_counts, a->head_dim, kv_unit, head_first, true, &a->k_strides, trial);
    trial->placements[OPERAND_Q] = place_tensor(rng, &trial->q, q_counts, a->head_dim, a->q_type, aligned);
    trial->placements[OPERAND_OUT] = place_tensor(rng, &trial->out, q_counts, a->head_dim_v, a->out_type, aligned);
    trial->placements[OPERAND_K] = place_tensor(rng, &trial->k, kv_counts, a->head_dim, a->k_type, aligned);
    if (!a->v_from_k) {
        trial->v = draw_strides(rng, kv_counts, a->head_dim_v, kv_unit, head_first, true, &a->v_strides, trial);
        trial->placements[OPERAND_V] = place_tensor(rng, &trial->v, kv_counts, a->head_dim_v, a->v_type, aligned);
    }
    if (trial->placements[OPERAND_KV_LENS].present)
        trial->placements[OPERAND_KV_LENS] =
            place(rng, trial->batch * sizeof(int32_t), sizeof(int32_t), sizeof(int32_t));
    if (rng_chance(rng, 85))
        trial->placements[OPERAND_LSE] = place(rng, num_rows * sizeof(float), sizeof(float), sizeof(float));
    trial->placements[OPERAND_WORKSPACE] = place(rng, 0, 1, 64);
    if (!aligned) {
        a->q_alignment = (uint32_t)clfd_type_size(a->q_type);
        a->k_alignment = (uint32_t)clfd_type_size(a->k_type);
        a->v_alignment = a->v_from_k ? 0 : (uint32_t)clfd_type_size(a->v_type);
        a->out_alignment = (uint32_t)clfd_type_size(a->out_type);
    }
}

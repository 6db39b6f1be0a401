#include "plan/alignment.h"
#include "type.h"

uint32_t clfd_row_alignment(const clfd_strides *strides, clfd_type type, uint32_t promise)
{
    const int64_t size = (int64_t)clfd_type_size(type), all = strides->batch | strides->token | strides->head;
    uint32_t alignment = promise < 16 ? promise : 16;

    while (all * size % alignment != 0)
        alignment /= 2;
    return alignment;
}

uint32_t clfd_aligned_class(const clfd_strides *strides, clfd_type type, uint32_t promise)
{
    const uint32_t alignment = clfd_row_alignment(strides, type, promise);
    /* The least alignments of classes 1, 2 and 3. */
    static const uint32_t plain[3] = {16, 16, 16}, bytes[3] = {4, 8, 16}, nibbles[3] = {4, 4, 16},
                          blocks[3] = {4, 4, 8};
    const uint32_t *const least = clfd_type_is_plain(type)     ? plain
                                  : type == CLFD_TYPE_INT4     ? nibbles
                                  : clfd_type_has_scales(type) ? bytes
                                                               : blocks;
    uint32_t class = 0;

    while (class < 3 && alignment >= least[class])
        class ++;
    return class;
}

uint32_t clfd_kv_aligned(const clfd_attention *a)
{
    const uint32_t k = clfd_aligned_class(&a->k_strides, a->k_type, a->k_alignment);
    const uint32_t v = a->v_from_k ? k : clfd_aligned_class(&a->v_strides, a->v_type, a->v_alignment);
    const uint32_t both = k < v ? k : v;

    return clfd_type_is_plain(a->k_type) && both > 1 ? 1 : both;
}

/* Whether a stride of blocks keeps to 16-byte boundaries. */
static bool keeps_pairs(int64_t stride, clfd_type type) { return stride * (int64_t)clfd_type_size(type) % 16 == 0; }

/* Whether the rows of one head all lie alike on them, or there is nothing to lie there. */
static bool rows_keep_pairs(const clfd_attention *a, const clfd_strides *strides, clfd_type type)
{
    const int64_t steps = a->paging == CLFD_PAGING_NONE ? strides->token : strides->token | strides->batch;

    return type != CLFD_TYPE_Q8_0 || keeps_pairs(steps, type);
}

bool clfd_kv_pairs(const clfd_attention *a)
{
    const clfd_strides *const k = &a->k_strides, *const v = a->v_from_k ? k : &a->v_strides;
    const clfd_type v_type = a->v_from_k ? a->k_type : a->v_type;

    if (clfd_kv_aligned(a) < 3 || !rows_keep_pairs(a, k, a->k_type) || !rows_keep_pairs(a, v, v_type))
        return false;
    if (a->k_type != CLFD_TYPE_Q8_0 || v_type != CLFD_TYPE_Q8_0)
        return a->k_type == CLFD_TYPE_Q8_0 || v_type == CLFD_TYPE_Q8_0;
    return a->v_from_k || (a->k_alignment >= 16 && a->v_alignment >= 16 && keeps_pairs(k->head - v->head, v_type) &&
                           keeps_pairs(k->batch - v->batch, v_type));
}

bool clfd_q_aligned(const clfd_attention *a)
{
    return clfd_row_alignment(&a->q_strides, a->q_type, a->q_alignment) >= 4;
}

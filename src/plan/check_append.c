#include "plan/append.h"
#include "plan/check.h"
#include "plan/check_parts.h"
#include "struct_size.h"
#include "type.h"

#define MAX_NUM_TOKENS 65536u
#define MAX_GROUPS 0x7fffffffull /* NVIDIA's limit of work-groups in dimension 0; others are higher */

static clfd_status complete_tokens(clfd_append *p, const clfd_logger *logger)
{
    const clfd_attention *const a = p->attention;

    p->num_tokens = clfd_default_u32(p->num_tokens, a->q_len);
    if (p->num_tokens > MAX_NUM_TOKENS)
        return clfd_fail(logger, CLFD_ERROR_NUM_TOKENS, "num_tokens is %u; it must be 1 to %u", p->num_tokens,
                         MAX_NUM_TOKENS);
    if (p->ragged > 1)
        return clfd_fail(logger, CLFD_ERROR_OPTION, "ragged is %u; it must be 0 or 1", p->ragged);
    if (p->new_type == CLFD_TYPE_DEFAULT)
        p->new_type = a->q_type;
    if (!clfd_type_is_plain(p->new_type))
        return clfd_fail(logger, CLFD_ERROR_TYPE, "new_type is %d; it must be f32, f16 or bf16", (int)p->new_type);
    return CLFD_SUCCESS;
}

static clfd_status complete_new_rows(clfd_append *p, clfd_strides *strides, uint32_t dim, const char *name,
                                     const clfd_logger *logger)
{
    const clfd_attention *const a = p->attention;
    const int64_t token = (int64_t)a->num_kv_heads * dim;
    const clfd_strides dense = {p->num_tokens * token, token, dim};
    const clfd_status status = clfd_complete_strides(strides, &dense, false, name, logger);
    uint64_t elements;

    if (status == CLFD_SUCCESS &&
        (!clfd_tensor_extent(strides, a->max_batch, p->num_tokens, a->num_kv_heads, dim, &elements) ||
         elements > (uint64_t)INT64_MAX / clfd_type_size(p->new_type)))
        return clfd_fail(logger, CLFD_ERROR_OVERFLOW, "%s reach beyond 2^63 bytes (max_batch %u, num_tokens %u)", name,
                         a->max_batch, p->num_tokens);
    return status;
}

static clfd_status complete_new(clfd_append *p, const clfd_logger *logger)
{
    const clfd_attention *const a = p->attention;
    const clfd_status status = complete_new_rows(p, &p->new_k_strides, a->head_dim, "new_k_strides", logger);

    if (status != CLFD_SUCCESS || !a->v_from_k)
        return status != CLFD_SUCCESS ? status
                                      : complete_new_rows(p, &p->new_v_strides, a->head_dim_v, "new_v_strides", logger);
    if (p->new_v_strides.batch != 0 || p->new_v_strides.token != 0 || p->new_v_strides.head != 0)
        return clfd_fail(logger, CLFD_ERROR_V_FROM_K, "v_from_k with new_v_strides; there is no new_v, they must be 0");
    return CLFD_SUCCESS;
}

/* Without rope its fields would be forgotten in silence. */
static clfd_status check_no_rope(const clfd_append *p, const clfd_logger *logger)
{
    const struct {
        uint32_t value;
        const char *name;
    } fields[] = {{p->rope_q, "rope_q"},
                  {p->rotary_start, "rotary_start"},
                  {p->rotary_dim, "rotary_dim"},
                  {p->max_positions, "max_positions"},
                  {p->positions, "positions"}};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].value != 0)
            return clfd_fail(logger, CLFD_ERROR_ROPE, "%s is %u; without rope it must be 0", fields[i].name,
                             fields[i].value);
    return CLFD_SUCCESS;
}

static clfd_status complete_rope(clfd_append *p, const clfd_logger *logger)
{
    const clfd_attention *const a = p->attention;

    if (p->rope != CLFD_ROPE_NONE && p->rope != CLFD_ROPE_NEOX && p->rope != CLFD_ROPE_GPTJ)
        return clfd_fail(logger, CLFD_ERROR_ROPE, "rope is %d; it must be a clfd_rope", (int)p->rope);
    if (p->rope == CLFD_ROPE_NONE)
        return check_no_rope(p, logger);
    if (p->rope_q > 1 || p->positions > 1)
        return clfd_fail(logger, CLFD_ERROR_OPTION, "rope_q is %u and positions is %u; each must be 0 or 1", p->rope_q,
                         p->positions);
    if (p->rotary_start > a->head_dim - 2)
        return clfd_fail(logger, CLFD_ERROR_ROPE, "rotary_start is %u; with head_dim %u it must be 0 to %u",
                         p->rotary_start, a->head_dim, a->head_dim - 2);
    p->rotary_dim = clfd_default_u32(p->rotary_dim, a->head_dim - p->rotary_start);
    if (p->rotary_dim % 2 != 0 || p->rotary_dim > a->head_dim - p->rotary_start)
        return clfd_fail(logger, CLFD_ERROR_ROPE, "rotary_dim is %u; it must be even and at most %u, head_dim less %u",
                         p->rotary_dim, a->head_dim - p->rotary_start, p->rotary_start);
    p->max_positions = clfd_default_u32(p->max_positions, a->max_kv_len);
    if (p->max_positions > CLFD_MAX_INT32)
        return clfd_fail(logger, CLFD_ERROR_ROPE, "max_positions is %u; it must be 1 to %u", p->max_positions,
                         CLFD_MAX_INT32);
    if (p->rope_q && p->num_tokens > a->q_len)
        return clfd_fail(logger, CLFD_ERROR_NUM_TOKENS, "num_tokens is %u; with rope_q it must not exceed q_len, %u",
                         p->num_tokens, a->q_len);
    if (p->rope_q && a->shared_kv)
        return clfd_fail(logger, CLFD_ERROR_SHARED_KV,
                         "rope_q is 1 with shared_kv; the one sequence that is appended to has no queries of its own");
    return CLFD_SUCCESS;
}

/* What is written must not overlap itself, for the order of writes is nobody's. */
static clfd_status check_written(const clfd_append *p, const clfd_logger *logger)
{
    const clfd_attention *const a = p->attention;
    const uint64_t batch = a->max_batch;
    const bool k_groups = clfd_type_is_grouped(a->k_type), v_groups = clfd_type_is_grouped(a->v_type) && !a->v_from_k;
    const struct {
        bool written;
        const clfd_strides *strides;
        clfd_footprint footprint;
        const char *name;
    } tensors[] = {
        {true, &a->k_strides, clfd_append_k_footprint(p, batch), "k_strides"},
        {!a->v_from_k, &a->v_strides, clfd_append_v_footprint(p, batch), "v_strides"},
        {p->rope_q, &a->q_strides, clfd_append_q_footprint(p, batch), "q_strides"},
        {k_groups, &a->k_quant.strides, clfd_append_scale_footprint(p, &a->k_quant, a->head_dim, batch),
         "k_quant.strides"},
        {v_groups, &a->v_quant.strides, clfd_append_scale_footprint(p, &a->v_quant, a->head_dim_v, batch),
         "v_quant.strides"},
    };

    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++)
        if (tensors[i].written && !clfd_footprint_is_nested(&tensors[i].footprint))
            return clfd_fail(logger, CLFD_ERROR_STRIDE,
                             "%s are [%lld, %lld, %lld]; rows would overlap, and an append writes them",
                             tensors[i].name, (long long)tensors[i].strides->batch,
                             (long long)tensors[i].strides->token, (long long)tensors[i].strides->head);
    return CLFD_SUCCESS;
}

/* The kernel's grid at its finest, whatever the device. */
static clfd_status check_items(const clfd_append *p, const clfd_logger *logger)
{
    const clfd_caps finest = {.type = CL_DEVICE_TYPE_GPU, .max_work_group = 1};
    const clfd_append_pieces pieces = clfd_append_cut(&finest, p);
    const uint64_t items = clfd_append_items(p, &pieces, p->attention->max_batch);

    return items <= MAX_GROUPS ? CLFD_SUCCESS
                               : clfd_fail(logger, CLFD_ERROR_OVERFLOW,
                                           "an append of max_batch %u times num_tokens %u needs %llu work-items; no "
                                           "more than %llu are possible",
                                           p->attention->max_batch, p->num_tokens, (unsigned long long)items,
                                           (unsigned long long)MAX_GROUPS);
}

clfd_status clfd_complete_append(const clfd_append *given, clfd_append *complete, clfd_attention *attention,
                                 const clfd_logger *logger)
{
    clfd_attention a;
    clfd_append p;
    clfd_status status = clfd_read_struct(given, &p, sizeof p, "clfd_append", logger);

    if (status == CLFD_SUCCESS)
        status = clfd_complete_attention(p.attention, &a, logger);
    p.attention = &a;
    if (status == CLFD_SUCCESS)
        status = complete_tokens(&p, logger);
    if (status == CLFD_SUCCESS)
        status = complete_new(&p, logger);
    if (status == CLFD_SUCCESS)
        status = complete_rope(&p, logger);
    if (status == CLFD_SUCCESS)
        status = check_written(&p, logger);
    if (status == CLFD_SUCCESS)
        status = check_items(&p, logger);
    if (status != CLFD_SUCCESS)
        return status;
    *attention = a;
    *complete = p;
    complete->attention = attention;
    return CLFD_SUCCESS;
}

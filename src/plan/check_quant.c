#include "plan/check_parts.h"
#include "plan/extent.h"
#include "type.h"

#define GROUP_STEP 8u

/* K or V: its clfd_quant, what it belongs to, and the name of the field. */
typedef struct quantised {
    clfd_quant *quant;
    clfd_type type;
    uint32_t dim;
    const char *name, *strides_name;
} quantised;

static bool any_field(const clfd_quant *q)
{
    return q->group != 0 || q->scale_type != CLFD_TYPE_DEFAULT || q->zeros != 0 || q->group_stride != 0 ||
           q->strides.batch != 0 || q->strides.token != 0 || q->strides.head != 0;
}

/* One scale for the tensor, or one for each KV head. */
static clfd_status complete_fp8(const quantised *x, const clfd_logger *logger)
{
    clfd_quant *q = x->quant;
    const struct {
        int64_t value, greatest;
        const char *name;
    } fields[] = {{q->zeros, 0, "zeros"},
                  {q->group_stride, 0, "group_stride"},
                  {q->strides.batch, 0, "strides.batch"},
                  {q->strides.token, 0, "strides.token"},
                  {q->strides.head, 1, "strides.head"}};

    if (q->group != 0 && q->group != x->dim)
        return clfd_fail(logger, CLFD_ERROR_QUANT, "%s.group is %u; an fp8 type has no groups, it must be 0", x->name,
                         q->group);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].value < 0 || fields[i].value > fields[i].greatest)
            return clfd_fail(logger, CLFD_ERROR_QUANT, "%s.%s is %lld; with an fp8 type it must be 0%s", x->name,
                             fields[i].name, (long long)fields[i].value, fields[i].greatest == 1 ? " or 1" : "");
    q->group = x->dim;
    return CLFD_SUCCESS;
}

/* int8 and int4: a scale for each token, KV head and group of dims. */
static clfd_status complete_groups(const clfd_attention *a, const quantised *x, const clfd_logger *logger)
{
    clfd_quant *q = x->quant;

    q->group = clfd_default_u32(q->group, x->dim);
    if (q->group % GROUP_STEP != 0 || x->dim % q->group != 0)
        return clfd_fail(logger, CLFD_ERROR_QUANT, "%s.group is %u; it must be a multiple of %u that divides %u",
                         x->name, q->group, GROUP_STEP, x->dim);
    if (q->zeros > 1)
        return clfd_fail(logger, CLFD_ERROR_OPTION, "%s.zeros is %u; it must be 0 or 1", x->name, q->zeros);
    if (q->group_stride < 0 || q->group_stride > CLFD_MAX_STRIDE)
        return clfd_fail(logger, CLFD_ERROR_STRIDE, "%s.group_stride is %lld; it must be 0 to 2^48", x->name,
                         (long long)q->group_stride);
    if (q->group_stride == 0)
        q->group_stride = 1;
    const clfd_strides dense = clfd_dense_cache(a, x->dim / q->group);
    return clfd_complete_strides(&q->strides, &dense, true, x->strides_name, logger);
}

static clfd_status complete_quant(const clfd_attention *a, const quantised *x, const clfd_logger *logger)
{
    clfd_quant *q = x->quant;
    uint64_t bytes;

    if (!clfd_type_has_scales(x->type))
        return !any_field(q) ? CLFD_SUCCESS
                             : clfd_fail(logger, CLFD_ERROR_QUANT,
                                         "%s is set with the type %s, which has no scales; it must be all 0", x->name,
                                         clfd_type_name(x->type));
    if (q->scale_type == CLFD_TYPE_DEFAULT)
        q->scale_type = CLFD_TYPE_F32;
    if (q->scale_type != CLFD_TYPE_F32 && q->scale_type != CLFD_TYPE_F16)
        return clfd_fail(logger, CLFD_ERROR_TYPE, "%s.scale_type is %d; it must be f32 or f16", x->name,
                         (int)q->scale_type);
    const clfd_status status = clfd_type_is_grouped(x->type) ? complete_groups(a, x, logger) : complete_fp8(x, logger);
    if (status == CLFD_SUCCESS && !clfd_scale_extent(a, q, x->dim, a->num_cache_rows, a->max_kv_len, &bytes))
        return clfd_fail_overflow(a, x->name, logger);
    return status;
}

/* V shares the scales of K, and ends where a group does. */
static clfd_status share_quant(clfd_attention *a, const clfd_logger *logger)
{
    const uint32_t group = a->k_quant.group;

    if (any_field(&a->v_quant))
        return clfd_fail(logger, CLFD_ERROR_V_FROM_K, "v_from_k with v_quant; V has the scales of K, it must be all 0");
    if (group != 0 && a->head_dim_v > group && a->head_dim_v % group != 0)
        return clfd_fail(logger, CLFD_ERROR_QUANT,
                         "v_from_k with head_dim_v %u and k_quant.group %u; V must be whole groups or part of the "
                         "first",
                         a->head_dim_v, group);
    a->v_quant = a->k_quant;
    if (group > a->head_dim_v)
        a->v_quant.group = a->head_dim_v;
    return CLFD_SUCCESS;
}

clfd_status clfd_complete_quants(clfd_attention *a, const clfd_logger *logger)
{
    const quantised k = {&a->k_quant, a->k_type, a->head_dim, "k_quant", "k_quant.strides"};
    const quantised v = {&a->v_quant, a->v_type, a->head_dim_v, "v_quant", "v_quant.strides"};
    const clfd_status status = complete_quant(a, &k, logger);

    if (status != CLFD_SUCCESS)
        return status;
    return a->v_from_k ? share_quant(a, logger) : complete_quant(a, &v, logger);
}

#include "plan/check_parts.h"
#include "plan/extent.h"
#include <math.h>

#define MAX_SCALE 2e38f /* log2(e) times it is still a float: kernels score in units of log2 */

static bool any_stride(const clfd_score_strides *s)
{
    return s->batch != 0 || s->head != 0 || s->query != 0 || s->key != 0;
}

/* Strides that are all 0 become the dense ones; 0 among others stays, and broadcasts. */
static clfd_status complete_score_strides(clfd_score_strides *strides, const clfd_score_strides *dense,
                                          const char *name, const clfd_logger *logger)
{
    if (!any_stride(strides))
        *strides = *dense;
    const struct {
        int64_t stride;
        const char *axis;
    } axes[] = {{strides->batch, "batch"}, {strides->head, "head"}, {strides->query, "query"}, {strides->key, "key"}};

    for (int i = 0; i < 4; i++)
        if (axes[i].stride < 0 || axes[i].stride > CLFD_MAX_STRIDE)
            return clfd_fail(logger, CLFD_ERROR_STRIDE, "%s.%s is %lld; it must be 0 to 2^48", name, axes[i].axis,
                             (long long)axes[i].stride);
    return CLFD_SUCCESS;
}

static clfd_status complete_bias(clfd_attention *a, const clfd_logger *logger)
{
    const int64_t keys = a->max_kv_len, queries = a->q_len, heads = a->num_q_heads;
    const clfd_score_strides dense = {heads * queries * keys, queries * keys, keys, 1};
    uint64_t bytes;

    if (a->bias_type == CLFD_TYPE_DEFAULT)
        return !any_stride(&a->bias_strides)
                   ? CLFD_SUCCESS
                   : clfd_fail(logger, CLFD_ERROR_BIAS, "bias_strides are set and bias_type is 0; there is no bias");
    if (a->bias_type != CLFD_TYPE_F32 && a->bias_type != CLFD_TYPE_F16)
        return clfd_fail(logger, CLFD_ERROR_BIAS, "bias_type is %d; it must be 0, f32 or f16", (int)a->bias_type);
    const clfd_status status = complete_score_strides(&a->bias_strides, &dense, "bias_strides", logger);
    if (status == CLFD_SUCCESS && !clfd_bias_extent(a, a->max_batch, a->max_kv_len, &bytes))
        return clfd_fail_overflow(a, "bias", logger);
    return status;
}

static clfd_status complete_mask(clfd_attention *a, const clfd_logger *logger)
{
    const int64_t keys = a->max_kv_len, queries = a->q_len;
    const clfd_score_strides dense[] = {
        [CLFD_MASK_BOOL] = {queries * keys, 0, keys, 1}, [CLFD_MASK_TREE] = {queries, 0, 1, 0}};
    uint64_t bytes;

    if (a->mask != CLFD_MASK_NONE && a->mask != CLFD_MASK_BOOL && a->mask != CLFD_MASK_TREE)
        return clfd_fail(logger, CLFD_ERROR_MASK, "mask is %d; it must be a clfd_mask", (int)a->mask);
    if (a->mask == CLFD_MASK_NONE)
        return !any_stride(&a->mask_strides)
                   ? CLFD_SUCCESS
                   : clfd_fail(logger, CLFD_ERROR_MASK, "mask_strides are set and mask is 0; there is no mask");
    if (a->mask_strides.head != 0)
        return clfd_fail(logger, CLFD_ERROR_MASK, "mask_strides.head is %lld; a mask has no head stride, it must be 0",
                         (long long)a->mask_strides.head);
    if (a->mask == CLFD_MASK_TREE && a->mask_strides.key != 0)
        return clfd_fail(logger, CLFD_ERROR_MASK,
                         "mask_strides.key is %lld; a tree mask has no key stride, it must be 0",
                         (long long)a->mask_strides.key);
    const clfd_status status = complete_score_strides(&a->mask_strides, &dense[a->mask], "mask_strides", logger);
    if (status == CLFD_SUCCESS && !clfd_mask_extent(a, a->max_batch, a->max_kv_len, &bytes))
        return clfd_fail_overflow(a, "mask", logger);
    return status;
}

/* One K and V for all sequences have a length of their own, so a query's position must be said where it matters. */
static clfd_status check_shared_kv(const clfd_attention *a, const clfd_logger *logger)
{
    const struct {
        bool set;
        const char *name;
    } positional[] = {{a->causal, "causal"}, {a->window != 0, "window"}, {a->alibi, "alibi"}};

    if (!a->shared_kv)
        return CLFD_SUCCESS;
    if (a->mask == CLFD_MASK_TREE)
        return clfd_fail(logger, CLFD_ERROR_SHARED_KV, "shared_kv with a tree mask; the new keys are not shared");
    for (int i = 0; i < 3; i++)
        if (positional[i].set && !a->query_positions)
            return clfd_fail(logger, CLFD_ERROR_SHARED_KV, "shared_kv with %s; it must be given query_positions",
                             positional[i].name);
    return CLFD_SUCCESS;
}

clfd_status clfd_complete_score(clfd_attention *a, const clfd_logger *logger)
{
    if (!(fabsf(a->scale) <= MAX_SCALE))
        return clfd_fail(logger, CLFD_ERROR_SCALE, "scale is %g; it must be finite, and %g at most", (double)a->scale,
                         (double)MAX_SCALE);
    if (a->scale == 0.0f)
        a->scale = (float)(1.0 / sqrt((double)a->head_dim));
    if (!isfinite(a->softcap) || a->softcap < 0.0f)
        return clfd_fail(logger, CLFD_ERROR_SOFTCAP, "softcap is %g; it must be finite and not negative",
                         (double)a->softcap);
    if (a->window > CLFD_MAX_INT32)
        return clfd_fail(logger, CLFD_ERROR_WINDOW, "window is %u; it must be 0 to %u", a->window, CLFD_MAX_INT32);
    clfd_status status = complete_bias(a, logger);
    if (status == CLFD_SUCCESS)
        status = complete_mask(a, logger);
    return status == CLFD_SUCCESS ? check_shared_kv(a, logger) : status;
}

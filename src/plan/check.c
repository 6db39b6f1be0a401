#include "plan/check.h"
#include "struct_size.h"
#include "type.h"
#include <math.h>
#include <stdlib.h>

#define MAX_Q_LEN 16u
#define MAX_HEADS 65536u
#define MIN_HEAD_DIM 8u
#define MAX_HEAD_DIM 576u
#define HEAD_DIM_STEP 8u
#define MAX_BATCH (1u << 24)
#define MAX_KV_LEN 0x7fffffffu /* lengths are int32 on the device */
#define MAX_STRIDE ((int64_t)1 << 48)
#define MAX_SPLITS (1u << 20)
#define MAX_MERGE_ROWS (1u << 30) /* a work-group per row */
#define DEFAULT_ALIGNMENT 16u
#define MAX_ALIGNMENT 4096u

static uint32_t default_u32(uint32_t value, uint32_t otherwise) { return value != 0 ? value : otherwise; }

bool clfd_tensor_extent(const clfd_strides *strides, uint64_t batch, uint64_t tokens, uint64_t heads, uint64_t dim,
                        uint64_t *elements)
{
    const uint64_t counts[3] = {batch, tokens, heads};
    const int64_t steps[3] = {strides->batch, strides->token, strides->head};
    uint64_t last = 0;

    *elements = 0;
    if (batch == 0 || tokens == 0 || heads == 0 || dim == 0)
        return true;
    for (int i = 0; i < 3; i++) {
        const uint64_t step = (uint64_t)steps[i];
        if (step != 0 && counts[i] - 1 > ((uint64_t)INT64_MAX - last) / step)
            return false;
        last += (counts[i] - 1) * step;
    }
    if (dim > (uint64_t)INT64_MAX - last)
        return false;
    *elements = last + dim;
    return true;
}

/* ---- The parts of a descriptor, one function each: fill in the defaults, then check. ------------------------------ */

static clfd_status complete_shape(clfd_attention *a, const clfd_logger *logger)
{
    a->max_batch = default_u32(a->max_batch, 1);
    a->q_len = default_u32(a->q_len, 1);
    a->num_kv_heads = default_u32(a->num_kv_heads, a->num_q_heads);
    a->head_dim_v = default_u32(a->head_dim_v, a->head_dim);
    a->expected_kv_len = default_u32(a->expected_kv_len, a->max_kv_len);
    if (a->max_batch > MAX_BATCH)
        return clfd_fail(logger, CLFD_ERROR_BATCH, "max_batch is %u; it must be 1 to %u", a->max_batch, MAX_BATCH);
    if (a->q_len > MAX_Q_LEN)
        return clfd_fail(logger, CLFD_ERROR_Q_LEN, "q_len is %u; it must be 1 to %u", a->q_len, MAX_Q_LEN);
    if (a->num_q_heads == 0 || a->num_q_heads > MAX_HEADS || a->num_kv_heads > MAX_HEADS)
        return clfd_fail(logger, CLFD_ERROR_HEADS, "num_q_heads is %u and num_kv_heads is %u; each must be 1 to %u",
                         a->num_q_heads, a->num_kv_heads, MAX_HEADS);
    if (a->num_q_heads % a->num_kv_heads != 0)
        return clfd_fail(logger, CLFD_ERROR_HEAD_RATIO,
                         "num_q_heads is %u and num_kv_heads is %u; the first must be a multiple of the second",
                         a->num_q_heads, a->num_kv_heads);
    const uint32_t dims[2] = {a->head_dim, a->head_dim_v};
    for (int i = 0; i < 2; i++)
        if (dims[i] < MIN_HEAD_DIM || dims[i] > MAX_HEAD_DIM || dims[i] % HEAD_DIM_STEP != 0)
            return clfd_fail(logger, CLFD_ERROR_HEAD_DIM, "%s is %u; it must be a multiple of %u from %u to %u",
                             i == 0 ? "head_dim" : "head_dim_v", dims[i], HEAD_DIM_STEP, MIN_HEAD_DIM, MAX_HEAD_DIM);
    if (a->max_kv_len == 0 || a->max_kv_len > MAX_KV_LEN)
        return clfd_fail(logger, CLFD_ERROR_KV_LEN, "max_kv_len is %u; it must be 1 to %u", a->max_kv_len, MAX_KV_LEN);
    if (a->expected_kv_len > a->max_kv_len)
        return clfd_fail(logger, CLFD_ERROR_KV_LEN, "expected_kv_len is %u; it must not exceed max_kv_len, %u",
                         a->expected_kv_len, a->max_kv_len);
    return CLFD_SUCCESS;
}

static clfd_status complete_types(clfd_attention *a, const clfd_logger *logger)
{
    clfd_type *const types[4] = {&a->q_type, &a->k_type, &a->v_type, &a->out_type};
    static const char *const names[4] = {"q_type", "k_type", "v_type", "out_type"};

    if (a->q_type == CLFD_TYPE_DEFAULT)
        a->q_type = CLFD_TYPE_F32;
    if (a->k_type == CLFD_TYPE_DEFAULT)
        a->k_type = a->q_type;
    if (a->v_type == CLFD_TYPE_DEFAULT)
        a->v_type = a->k_type;
    if (a->out_type == CLFD_TYPE_DEFAULT)
        a->out_type = a->q_type;
    for (int i = 0; i < 4; i++)
        if (!clfd_type_is_plain(*types[i]))
            return clfd_fail(logger, CLFD_ERROR_TYPE, "%s is %d; it must be a clfd_type", names[i], (int)*types[i]);
    if (a->v_type != a->k_type)
        return clfd_fail(logger, a->v_from_k ? CLFD_ERROR_V_FROM_K : CLFD_ERROR_TYPE,
                         "v_type is %s and k_type is %s; plain types of K and V must be equal",
                         clfd_type_name(a->v_type), clfd_type_name(a->k_type));
    return CLFD_SUCCESS;
}

static clfd_status complete_options(clfd_attention *a, const clfd_logger *logger)
{
    if (!isfinite(a->scale))
        return clfd_fail(logger, CLFD_ERROR_SCALE, "scale is %g; it must be finite", (double)a->scale);
    if (a->scale == 0.0f)
        a->scale = (float)(1.0 / sqrt((double)a->head_dim));
    if (a->causal > 1)
        return clfd_fail(logger, CLFD_ERROR_OPTION, "causal is %u; it must be 0 or 1", a->causal);
    if (a->v_from_k > 1)
        return clfd_fail(logger, CLFD_ERROR_OPTION, "v_from_k is %u; it must be 0 or 1", a->v_from_k);
    if (a->partial != CLFD_PARTIAL_LSE && a->partial != CLFD_PARTIAL_MLO)
        return clfd_fail(logger, CLFD_ERROR_PARTIAL_FORMAT, "partial is %d; it must be a clfd_partial",
                         (int)a->partial);
    if (a->split_policy == CLFD_SPLIT_COUNT && a->split_size == 0)
        a->split_policy = CLFD_SPLIT_AUTO;
    switch (a->split_policy) {
    case CLFD_SPLIT_AUTO:
        if (a->split_size != 0)
            return clfd_fail(logger, CLFD_ERROR_SPLIT_POLICY, "split_size is %u; under AUTO it must be 0",
                             a->split_size);
        break;
    case CLFD_SPLIT_COUNT:
        if (a->split_size > MAX_SPLITS)
            return clfd_fail(logger, CLFD_ERROR_SPLIT_POLICY, "split_size is %u; under COUNT it must be 0 to %u",
                             a->split_size, MAX_SPLITS);
        break;
    case CLFD_SPLIT_TOKENS:
        if (a->split_size == 0 || a->split_size > MAX_KV_LEN)
            return clfd_fail(logger, CLFD_ERROR_SPLIT_POLICY, "split_size is %u; under TOKENS it must be 1 to %u",
                             a->split_size, MAX_KV_LEN);
        break;
    default:
        return clfd_fail(logger, CLFD_ERROR_SPLIT_POLICY, "split_policy is %d; it must be a clfd_split_policy",
                         (int)a->split_policy);
    }
    return CLFD_SUCCESS;
}

/* Replaces the default (0) of one stride, and a broadcast by a true zero where that is allowed. */
static clfd_status complete_stride(int64_t *stride, int64_t otherwise, bool may_broadcast, const char *name,
                                   const char *axis, const clfd_logger *logger)
{
    if (*stride == CLFD_STRIDE_BROADCAST) {
        if (!may_broadcast)
            return clfd_fail(logger, CLFD_ERROR_STRIDE, "%s.%s is CLFD_STRIDE_BROADCAST; only K and V may broadcast",
                             name, axis);
        *stride = 0;
        return CLFD_SUCCESS;
    }
    if (*stride < 0 || *stride > MAX_STRIDE)
        return clfd_fail(logger, CLFD_ERROR_STRIDE, "%s.%s is %lld; it must be 0 to 2^48", name, axis,
                         (long long)*stride);
    if (*stride == 0)
        *stride = otherwise;
    return CLFD_SUCCESS;
}

static clfd_status complete_strides(clfd_strides *strides, const clfd_strides *defaults, bool may_broadcast,
                                    const char *name, const clfd_logger *logger)
{
    clfd_status status = complete_stride(&strides->batch, defaults->batch, may_broadcast, name, "batch", logger);
    if (status == CLFD_SUCCESS)
        status = complete_stride(&strides->token, defaults->token, may_broadcast, name, "token", logger);
    if (status == CLFD_SUCCESS)
        status = complete_stride(&strides->head, defaults->head, may_broadcast, name, "head", logger);
    return status;
}

static clfd_strides token_major(uint32_t tokens, uint32_t heads, uint32_t dim)
{
    return (clfd_strides){(int64_t)tokens * heads * dim, (int64_t)heads * dim, dim};
}

static clfd_strides head_major(uint32_t tokens, uint32_t heads, uint32_t dim)
{
    return (clfd_strides){(int64_t)tokens * heads * dim, dim, (int64_t)tokens * dim};
}

typedef struct axis {
    uint64_t count, stride;
} axis;

static int compare_axes(const void *left, const void *right)
{
    const axis *a = left, *b = right;
    return a->stride < b->stride ? -1 : a->stride > b->stride;
}

/* A written tensor must not overlap itself: with its axes sorted by stride, each must step over all of the inner ones. */
static bool overlaps_itself(const clfd_strides *s, uint64_t batch, uint64_t tokens, uint64_t heads, uint64_t dim)
{
    axis axes[3] = {{batch, (uint64_t)s->batch}, {tokens, (uint64_t)s->token}, {heads, (uint64_t)s->head}};
    uint64_t inner = dim;

    qsort(axes, 3, sizeof axes[0], compare_axes);
    for (int i = 0; i < 3; i++) {
        if (axes[i].count == 1)
            continue;
        if (axes[i].stride < inner)
            return true;
        inner += (axes[i].count - 1) * axes[i].stride;
    }
    return false;
}

/* Whether the furthest byte of a tensor has a 63-bit offset: what is counted in bytes after this does not wrap. */
static bool bytes_fit(const clfd_strides *strides, uint64_t batch, uint64_t tokens, uint64_t heads, uint64_t dim,
                      clfd_type type)
{
    uint64_t elements;

    return clfd_tensor_extent(strides, batch, tokens, heads, dim, &elements) &&
           elements <= (uint64_t)INT64_MAX / clfd_type_size(type);
}

static clfd_status complete_layout(clfd_attention *a, const clfd_logger *logger)
{
    const uint32_t heads = a->num_kv_heads;
    clfd_strides k, v, q, out;
    clfd_status status;

    if (a->kv_layout != CLFD_LAYOUT_BSHD && a->kv_layout != CLFD_LAYOUT_BHSD)
        return clfd_fail(logger, CLFD_ERROR_LAYOUT, "kv_layout is %d; it must be a clfd_layout", (int)a->kv_layout);
    if (a->v_from_k) {
        if (a->head_dim_v > a->head_dim)
            return clfd_fail(logger, CLFD_ERROR_V_FROM_K,
                             "v_from_k with head_dim_v %u and head_dim %u; V must fit into a row of K", a->head_dim_v,
                             a->head_dim);
        if (a->v_strides.batch != 0 || a->v_strides.token != 0 || a->v_strides.head != 0)
            return clfd_fail(logger, CLFD_ERROR_V_FROM_K, "v_from_k with v_strides; V has the strides of K");
    }
    if (a->kv_layout == CLFD_LAYOUT_BSHD) {
        k = token_major(a->max_kv_len, heads, a->head_dim);
        v = token_major(a->max_kv_len, heads, a->head_dim_v);
    } else {
        k = head_major(a->max_kv_len, heads, a->head_dim);
        v = head_major(a->max_kv_len, heads, a->head_dim_v);
    }
    q = token_major(a->q_len, a->num_q_heads, a->head_dim);
    out = token_major(a->q_len, a->num_q_heads, a->head_dim_v);
    if ((status = complete_strides(&a->q_strides, &q, false, "q_strides", logger)) != CLFD_SUCCESS ||
        (status = complete_strides(&a->k_strides, &k, true, "k_strides", logger)) != CLFD_SUCCESS ||
        (status = complete_strides(&a->v_strides, a->v_from_k ? &a->k_strides : &v, true, "v_strides", logger)) !=
            CLFD_SUCCESS ||
        (status = complete_strides(&a->out_strides, &out, false, "out_strides", logger)) != CLFD_SUCCESS)
        return status;
    if (a->v_from_k)
        a->v_strides = a->k_strides;
    if (!bytes_fit(&a->q_strides, a->max_batch, a->q_len, a->num_q_heads, a->head_dim, a->q_type) ||
        !bytes_fit(&a->k_strides, a->max_batch, a->max_kv_len, heads, a->head_dim, a->k_type) ||
        !bytes_fit(&a->v_strides, a->max_batch, a->max_kv_len, heads, a->head_dim_v, a->v_type) ||
        !bytes_fit(&a->out_strides, a->max_batch, a->q_len, a->num_q_heads, a->head_dim_v, a->out_type))
        return clfd_fail(logger, CLFD_ERROR_OVERFLOW,
                         "a tensor's strides reach beyond 2^63 bytes (max_batch %u, max_kv_len %u)", a->max_batch,
                         a->max_kv_len);
    if (overlaps_itself(&a->out_strides, a->max_batch, a->q_len, a->num_q_heads, a->head_dim_v))
        return clfd_fail(logger, CLFD_ERROR_STRIDE,
                         "out_strides are [%lld, %lld, %lld]; rows of out would overlap, and it is written",
                         (long long)a->out_strides.batch, (long long)a->out_strides.token,
                         (long long)a->out_strides.head);
    return CLFD_SUCCESS;
}

static clfd_status complete_alignments(clfd_attention *a, const clfd_logger *logger)
{
    uint32_t *const promises[4] = {&a->q_alignment, &a->k_alignment, &a->v_alignment, &a->out_alignment};
    const clfd_type types[4] = {a->q_type, a->k_type, a->v_type, a->out_type};
    static const char *const names[4] = {"q_alignment", "k_alignment", "v_alignment", "out_alignment"};

    for (int i = 0; i < 4; i++) {
        const uint32_t element = (uint32_t)clfd_type_size(types[i]);
        const uint32_t promise = *promises[i] = default_u32(*promises[i], DEFAULT_ALIGNMENT);
        if ((promise & (promise - 1)) != 0 || promise < element || promise > MAX_ALIGNMENT)
            return clfd_fail(logger, CLFD_ERROR_ALIGNMENT_PROMISE,
                             "%s is %u; it must be a power of two from the element's %u bytes to %u", names[i], promise,
                             element, MAX_ALIGNMENT);
    }
    return CLFD_SUCCESS;
}

clfd_status clfd_complete_attention(const clfd_attention *given, clfd_attention *complete, const clfd_logger *logger)
{
    clfd_attention a;
    clfd_status status = clfd_read_struct(given, &a, sizeof a, "clfd_attention", logger);

    if (status == CLFD_SUCCESS)
        status = complete_shape(&a, logger);
    if (status == CLFD_SUCCESS)
        status = complete_options(&a, logger);
    if (status == CLFD_SUCCESS)
        status = complete_types(&a, logger);
    if (status == CLFD_SUCCESS)
        status = complete_layout(&a, logger);
    if (status == CLFD_SUCCESS)
        status = complete_alignments(&a, logger);
    if (status == CLFD_SUCCESS)
        *complete = a;
    return status;
}

clfd_status clfd_complete_merge(const clfd_merge *given, clfd_merge *complete, const clfd_logger *logger)
{
    clfd_merge m;
    const clfd_status status = clfd_read_struct(given, &m, sizeof m, "clfd_merge", logger);

    if (status != CLFD_SUCCESS)
        return status;
    m.num_states = default_u32(m.num_states, 2);
    if (m.out_type == CLFD_TYPE_DEFAULT)
        m.out_type = CLFD_TYPE_F32;
    if (m.max_rows == 0 || m.max_rows > MAX_MERGE_ROWS)
        return clfd_fail(logger, CLFD_ERROR_NUM_STATES, "max_rows is %u; it must be 1 to %u", m.max_rows,
                         MAX_MERGE_ROWS);
    if (m.num_states > MAX_SPLITS)
        return clfd_fail(logger, CLFD_ERROR_NUM_STATES, "num_states is %u; it must be 1 to %u", m.num_states,
                         MAX_SPLITS);
    if (m.head_dim_v < MIN_HEAD_DIM || m.head_dim_v > MAX_HEAD_DIM || m.head_dim_v % HEAD_DIM_STEP != 0)
        return clfd_fail(logger, CLFD_ERROR_HEAD_DIM, "head_dim_v is %u; it must be a multiple of %u from %u to %u",
                         m.head_dim_v, HEAD_DIM_STEP, MIN_HEAD_DIM, MAX_HEAD_DIM);
    if (m.partial != CLFD_PARTIAL_LSE && m.partial != CLFD_PARTIAL_MLO)
        return clfd_fail(logger, CLFD_ERROR_PARTIAL_FORMAT, "partial is %d; it must be a clfd_partial", (int)m.partial);
    if (!clfd_type_is_plain(m.out_type))
        return clfd_fail(logger, CLFD_ERROR_TYPE, "out_type is %d; it must be a clfd_type", (int)m.out_type);
    *complete = m;
    return CLFD_SUCCESS;
}

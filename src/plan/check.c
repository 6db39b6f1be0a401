#include "plan/check.h"
#include "plan/check_parts.h"
#include "struct_size.h"
#include "type.h"

#define MAX_Q_LEN 16u
#define MAX_HEADS 65536u
#define MIN_HEAD_DIM 8u
#define HEAD_DIM_STEP 8u
#define MAX_BATCH (1u << 24)
#define MAX_SPLITS (1u << 20)
#define MAX_MERGE_ROWS (1u << 30) /* a work-group per row */
#define DEFAULT_ALIGNMENT 16u
#define MAX_ALIGNMENT 4096u

static clfd_status complete_shape(clfd_attention *a, const clfd_logger *logger)
{
    a->max_batch = clfd_default_u32(a->max_batch, 1);
    a->q_len = clfd_default_u32(a->q_len, 1);
    a->num_kv_heads = clfd_default_u32(a->num_kv_heads, a->num_q_heads);
    a->head_dim_v = clfd_default_u32(a->head_dim_v, a->head_dim);
    a->expected_kv_len = clfd_default_u32(a->expected_kv_len, a->max_kv_len);
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
        if (dims[i] < MIN_HEAD_DIM || dims[i] > CLFD_MAX_HEAD_DIM || dims[i] % HEAD_DIM_STEP != 0)
            return clfd_fail(logger, CLFD_ERROR_HEAD_DIM, "%s is %u; it must be a multiple of %u from %u to %u",
                             i == 0 ? "head_dim" : "head_dim_v", dims[i], HEAD_DIM_STEP, MIN_HEAD_DIM,
                             CLFD_MAX_HEAD_DIM);
    if (a->max_kv_len == 0 || a->max_kv_len > CLFD_MAX_INT32)
        return clfd_fail(logger, CLFD_ERROR_KV_LEN, "max_kv_len is %u; it must be 1 to %u", a->max_kv_len,
                         CLFD_MAX_INT32);
    if (a->expected_kv_len > a->max_kv_len)
        return clfd_fail(logger, CLFD_ERROR_KV_LEN, "expected_kv_len is %u; it must not exceed max_kv_len, %u",
                         a->expected_kv_len, a->max_kv_len);
    return CLFD_SUCCESS;
}

static clfd_status check_flags(const clfd_attention *a, const clfd_logger *logger)
{
    const struct {
        uint32_t value;
        const char *name;
    } flags[] = {{a->causal, "causal"},       {a->alibi, "alibi"},
                 {a->sinks, "sinks"},         {a->query_positions, "query_positions"},
                 {a->kv_start, "kv_start"},   {a->cache_batch_idx, "cache_batch_idx"},
                 {a->shared_kv, "shared_kv"}, {a->v_from_k, "v_from_k"}};

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (flags[i].value > 1)
            return clfd_fail(logger, CLFD_ERROR_OPTION, "%s is %u; it must be 0 or 1", flags[i].name, flags[i].value);
    return CLFD_SUCCESS;
}

static clfd_status complete_splits(clfd_attention *a, const clfd_logger *logger)
{
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
        if (a->split_size == 0 || a->split_size > CLFD_MAX_INT32)
            return clfd_fail(logger, CLFD_ERROR_SPLIT_POLICY, "split_size is %u; under TOKENS it must be 1 to %u",
                             a->split_size, CLFD_MAX_INT32);
        break;
    default:
        return clfd_fail(logger, CLFD_ERROR_SPLIT_POLICY, "split_policy is %d; it must be a clfd_split_policy",
                         (int)a->split_policy);
    }
    return CLFD_SUCCESS;
}

static clfd_status complete_alignments(clfd_attention *a, const clfd_logger *logger)
{
    uint32_t *const promises[4] = {&a->q_alignment, &a->k_alignment, &a->v_alignment, &a->out_alignment};
    const clfd_type types[4] = {a->q_type, a->k_type, a->v_type, a->out_type};
    static const char *const names[4] = {"q_alignment", "k_alignment", "v_alignment", "out_alignment"};

    for (int i = 0; i < 4; i++) {
        const uint32_t element = clfd_type_alignment(types[i]);
        const uint32_t promise = *promises[i] = clfd_default_u32(*promises[i], DEFAULT_ALIGNMENT);
        if ((promise & (promise - 1)) != 0 || promise < element || promise > MAX_ALIGNMENT)
            return clfd_fail(logger, CLFD_ERROR_ALIGNMENT_PROMISE,
                             "%s is %u; it must be a power of two from the element's %u bytes to %u", names[i], promise,
                             element, MAX_ALIGNMENT);
    }
    return CLFD_SUCCESS;
}

clfd_status clfd_complete_attention(const clfd_attention *given, clfd_attention *complete, const clfd_logger *logger)
{
    static clfd_status (*const parts[])(clfd_attention *, const clfd_logger *) = {
        complete_shape,      complete_splits,      clfd_complete_types,  clfd_complete_cache,
        clfd_complete_score, clfd_complete_layout, clfd_complete_quants, complete_alignments};
    clfd_attention a;
    clfd_status status = clfd_read_struct(given, &a, sizeof a, "clfd_attention", logger);

    if (status == CLFD_SUCCESS)
        status = check_flags(&a, logger);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && status == CLFD_SUCCESS; i++)
        status = parts[i](&a, logger);
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
    m.num_states = clfd_default_u32(m.num_states, 2);
    if (m.out_type == CLFD_TYPE_DEFAULT)
        m.out_type = CLFD_TYPE_F32;
    if (m.max_rows == 0 || m.max_rows > MAX_MERGE_ROWS)
        return clfd_fail(logger, CLFD_ERROR_NUM_STATES, "max_rows is %u; it must be 1 to %u", m.max_rows,
                         MAX_MERGE_ROWS);
    if (m.num_states > MAX_SPLITS)
        return clfd_fail(logger, CLFD_ERROR_NUM_STATES, "num_states is %u; it must be 1 to %u", m.num_states,
                         MAX_SPLITS);
    if (m.head_dim_v < MIN_HEAD_DIM || m.head_dim_v > CLFD_MAX_HEAD_DIM || m.head_dim_v % HEAD_DIM_STEP != 0)
        return clfd_fail(logger, CLFD_ERROR_HEAD_DIM, "head_dim_v is %u; it must be a multiple of %u from %u to %u",
                         m.head_dim_v, HEAD_DIM_STEP, MIN_HEAD_DIM, CLFD_MAX_HEAD_DIM);
    if (m.partial != CLFD_PARTIAL_LSE && m.partial != CLFD_PARTIAL_MLO)
        return clfd_fail(logger, CLFD_ERROR_PARTIAL_FORMAT, "partial is %d; it must be a clfd_partial", (int)m.partial);
    if (!clfd_type_is_plain(m.out_type))
        return clfd_fail(logger, CLFD_ERROR_TYPE, "out_type is %d; it must be f32, f16 or bf16", (int)m.out_type);
    *complete = m;
    return CLFD_SUCCESS;
}

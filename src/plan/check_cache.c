#include "plan/check_parts.h"
#include "plan/extent.h"
#include "type.h"

clfd_status clfd_complete_types(clfd_attention *a, const clfd_logger *logger)
{
    clfd_type *const types[4] = {&a->q_type, &a->out_type, &a->k_type, &a->v_type};
    static const char *const names[4] = {"q_type", "out_type", "k_type", "v_type"};

    if (a->q_type == CLFD_TYPE_DEFAULT)
        a->q_type = CLFD_TYPE_F32;
    if (a->k_type == CLFD_TYPE_DEFAULT)
        a->k_type = a->q_type;
    if (a->v_type == CLFD_TYPE_DEFAULT)
        a->v_type = a->k_type;
    if (a->out_type == CLFD_TYPE_DEFAULT)
        a->out_type = a->q_type;
    for (int i = 0; i < 4; i++) {
        if (i < 2 && !clfd_type_is_plain(*types[i]))
            return clfd_fail(logger, CLFD_ERROR_TYPE, "%s is %d; it must be f32, f16 or bf16", names[i],
                             (int)*types[i]);
        if (clfd_type_size(*types[i]) == 0)
            return clfd_fail(logger, CLFD_ERROR_TYPE, "%s is %d; it must be a clfd_type", names[i], (int)*types[i]);
    }
    if (a->v_type != a->k_type && a->v_from_k)
        return clfd_fail(logger, CLFD_ERROR_V_FROM_K, "v_type is %s and k_type is %s; with v_from_k they must be equal",
                         clfd_type_name(a->v_type), clfd_type_name(a->k_type));
    if (a->v_type != a->k_type && (clfd_type_is_plain(a->v_type) || clfd_type_is_plain(a->k_type)))
        return clfd_fail(logger, CLFD_ERROR_TYPE,
                         "v_type is %s and k_type is %s; unless both are quantised they must be equal",
                         clfd_type_name(a->v_type), clfd_type_name(a->k_type));
    const uint32_t dims[2] = {a->head_dim, a->head_dim_v};
    for (int i = 0; i < 2; i++)
        if (dims[i] % clfd_type_elements(*types[i + 2]) != 0)
            return clfd_fail(logger, CLFD_ERROR_HEAD_DIM, "%s is %u; with a %s of %s it must be a multiple of %u",
                             i == 0 ? "head_dim" : "head_dim_v", dims[i], names[i + 2], clfd_type_name(*types[i + 2]),
                             clfd_type_elements(*types[i + 2]));
    return CLFD_SUCCESS;
}

static clfd_status complete_cache_rows(clfd_attention *a, const clfd_logger *logger)
{
    const uint32_t needed = a->cache_batch_idx || a->shared_kv ? 1 : a->max_batch;

    a->num_cache_rows = clfd_default_u32(a->num_cache_rows, a->cache_batch_idx ? a->max_batch : needed);
    if (a->num_cache_rows < needed)
        return clfd_fail(logger, CLFD_ERROR_CACHE_ROWS,
                         "num_cache_rows is %u; without cache_batch_idx it must be at least max_batch, %u",
                         a->num_cache_rows, a->max_batch);
    if (a->num_cache_rows > CLFD_MAX_INT32)
        return clfd_fail(logger, CLFD_ERROR_CACHE_ROWS, "num_cache_rows is %u; it must be 1 to %u", a->num_cache_rows,
                         CLFD_MAX_INT32);
    return CLFD_SUCCESS;
}

/* Without paging its sizes are 0; CSR has no row stride. */
static clfd_status check_no_paging(const clfd_attention *a, const clfd_logger *logger)
{
    if (a->page_size != 0)
        return clfd_fail(logger, CLFD_ERROR_PAGING, "page_size is %u; without paging it must be 0", a->page_size);
    if (a->num_pages != 0)
        return clfd_fail(logger, CLFD_ERROR_PAGING, "num_pages is %u; without paging it must be 0", a->num_pages);
    if (a->block_table_stride != 0)
        return clfd_fail(logger, CLFD_ERROR_PAGING,
                         "block_table_stride is %lld; without CLFD_PAGING_TABLE it must be 0",
                         (long long)a->block_table_stride);
    return CLFD_SUCCESS;
}

static clfd_status complete_block_table(clfd_attention *a, const clfd_logger *logger)
{
    const int64_t row = a->max_kv_len / a->page_size + (a->max_kv_len % a->page_size != 0);
    const int64_t least = a->num_cache_rows == 1 ? 0 : row; /* of a single row no step is taken */
    uint64_t bytes;

    if (a->block_table_stride == 0)
        a->block_table_stride = row;
    if (a->block_table_stride < least || a->block_table_stride > CLFD_MAX_STRIDE)
        return clfd_fail(logger, CLFD_ERROR_PAGING,
                         "block_table_stride is %lld; it must be %lld, ceil(max_kv_len / page_size), to 2^48",
                         (long long)a->block_table_stride, (long long)row);
    if (!clfd_block_table_extent(a, a->num_cache_rows, a->max_kv_len, &bytes))
        return clfd_fail_overflow(a, "block_table", logger);
    return CLFD_SUCCESS;
}

clfd_status clfd_complete_cache(clfd_attention *a, const clfd_logger *logger)
{
    const clfd_status status = complete_cache_rows(a, logger);

    if (status != CLFD_SUCCESS)
        return status;
    if (a->paging != CLFD_PAGING_NONE && a->paging != CLFD_PAGING_TABLE && a->paging != CLFD_PAGING_CSR)
        return clfd_fail(logger, CLFD_ERROR_PAGING, "paging is %d; it must be a clfd_paging", (int)a->paging);
    if (a->paging == CLFD_PAGING_NONE)
        return check_no_paging(a, logger);
    const uint32_t sizes[2] = {a->page_size, a->num_pages};
    for (int i = 0; i < 2; i++)
        if (sizes[i] == 0 || sizes[i] > CLFD_MAX_INT32)
            return clfd_fail(logger, CLFD_ERROR_PAGING, "%s is %u; with paging it must be 1 to %u",
                             i == 0 ? "page_size" : "num_pages", sizes[i], CLFD_MAX_INT32);
    if (a->paging == CLFD_PAGING_TABLE)
        return complete_block_table(a, logger);
    return a->block_table_stride == 0 ? CLFD_SUCCESS
                                      : clfd_fail(logger, CLFD_ERROR_PAGING,
                                                  "block_table_stride is %lld; without CLFD_PAGING_TABLE it must be 0",
                                                  (long long)a->block_table_stride);
}

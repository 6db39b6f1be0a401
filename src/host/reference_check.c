#include "host/reference_parts.h"
#include "type.h"

clfd_status clfd_check_host_tensors(const clfd_attention *a, const clfd_host_tensors *t, const clfd_logger *logger)
{
    const bool own_v = !a->v_from_k, csr = a->paging == CLFD_PAGING_CSR;
    const struct {
        const void *pointer;
        const char *name;
        bool wanted;
    } tensors[] = {
        {t->q, "q", true},
        {t->k, "k", true},
        {t->v, "v", own_v},
        {t->alibi, "alibi", a->alibi},
        {t->bias, "bias", a->bias_type != CLFD_TYPE_DEFAULT},
        {t->mask, "mask", a->mask != CLFD_MASK_NONE},
        {t->sinks, "sinks", a->sinks},
        {t->query_positions, "query_positions", a->query_positions},
        {t->kv_start, "kv_start", a->kv_start},
        {t->cache_batch_idx, "cache_batch_idx", a->cache_batch_idx},
        {t->block_table, "block_table", a->paging != CLFD_PAGING_NONE},
        {t->page_indptr, "page_indptr", csr},
        {t->k_scale, "k_scale", clfd_type_has_scales(a->k_type)},
        {t->k_zero, "k_zero", a->k_quant.zeros},
        {t->v_scale, "v_scale", own_v && clfd_type_has_scales(a->v_type)},
        {t->v_zero, "v_zero", own_v && a->v_quant.zeros},
        {t->out, "out", true},
    };

    if (t->batch > a->max_batch)
        return clfd_fail(logger, CLFD_ERROR_BATCH_RANGE, "batch is %u; it must not exceed max_batch, %u", t->batch,
                         a->max_batch);
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        if (!tensors[i].wanted && tensors[i].pointer != NULL)
            return clfd_fail(logger, CLFD_ERROR_BUFFER_UNEXPECTED,
                             "clfd_host_tensors.%s is set; the descriptor has no use for it", tensors[i].name);
        if (tensors[i].wanted && tensors[i].pointer == NULL && t->batch > 0)
            return clfd_fail(logger, CLFD_ERROR_NULL_ARGUMENT, "clfd_host_tensors.%s is NULL", tensors[i].name);
    }
    if (!csr && t->num_page_indices != 0)
        return clfd_fail(logger, CLFD_ERROR_BUFFER_UNEXPECTED,
                         "clfd_host_tensors.num_page_indices is %u; without CLFD_PAGING_CSR it must be 0",
                         t->num_page_indices);
    return CLFD_SUCCESS;
}

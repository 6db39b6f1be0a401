#include "run.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#define TENSOR(name) offsetof(clfd_host_tensors, name)

static const struct {
    run_operand operand;
    size_t field; /* a pointer of clfd_host_tensors */
} fields[] = {
    {RUN_Q, TENSOR(q)},
    {RUN_K, TENSOR(k)},
    {RUN_V, TENSOR(v)},
    {RUN_KV_LENS, TENSOR(kv_lens)},
    {RUN_ALIBI, TENSOR(alibi)},
    {RUN_SINKS, TENSOR(sinks)},
    {RUN_MASK, TENSOR(mask)},
    {RUN_TREE_MASK, TENSOR(mask)},
    {RUN_BIAS, TENSOR(bias)},
    {RUN_QUERY_POSITIONS, TENSOR(query_positions)},
    {RUN_KV_START, TENSOR(kv_start)},
    {RUN_CACHE_BATCH_IDX, TENSOR(cache_batch_idx)},
    {RUN_BLOCK_TABLE, TENSOR(block_table)},
    {RUN_PAGE_INDICES, TENSOR(block_table)},
    {RUN_PAGE_INDPTR, TENSOR(page_indptr)},
    {RUN_K_SCALE, TENSOR(k_scale)},
    {RUN_V_SCALE, TENSOR(v_scale)},
    {RUN_K_ZERO, TENSOR(k_zero)},
    {RUN_V_ZERO, TENSOR(v_zero)},
};

bool run_reference(const clfd_attention *attention, const npy_array arrays[RUN_OPERANDS], double **out,
                   tool_fault *fault)
{
    clfd_host_tensors tensors = {.struct_size = sizeof tensors, .batch = attention->max_batch};
    const clfd_logger logger = fault_logger(fault);
    const size_t count =
        (size_t)attention->max_batch * attention->q_len * attention->num_q_heads * attention->head_dim_v;
    clfd_status status;

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (arrays[fields[i].operand].data != NULL)
            *(const void **)((char *)&tensors + fields[i].field) = arrays[fields[i].operand].data;
    tensors.num_page_indices = (uint32_t)arrays[RUN_PAGE_INDICES].count;
    tensors.out = *out = malloc(count * sizeof **out);
    if (*out == NULL)
        return fault_failed(fault, "no memory for %zu values", count);
    fault_clear(fault);
    status = clfd_reference_attention(attention, &tensors, &logger);
    return status == CLFD_SUCCESS ? true : fault_status(fault, status, "clfd_reference_attention");
}

bool run_quantisation_error(const run_input *input, const run_result *result, run_error *error, tool_fault *fault)
{
    npy_array arrays[RUN_OPERANDS];
    double *expected = NULL, squares = 0;
    float *actual = malloc(result->out.count * sizeof actual[0]);
    bool good = false;

    *error = (run_error){0, 0};
    if (actual == NULL) {
        fault_failed(fault, "no memory for %zu values", result->out.count);
        goto done;
    }
    for (int i = 0; i < RUN_OPERANDS; i++)
        arrays[i] = i < RUN_K_SCALE ? input->arrays[i] : (npy_array){0};
    arrays[RUN_K] = input->plain_k;
    arrays[RUN_V] = input->plain_v;
    /* A table that run_cut_pages made is none of the call before it. */
    if (input->plain.paging == CLFD_PAGING_NONE)
        arrays[RUN_BLOCK_TABLE] = arrays[RUN_PAGE_INDICES] = arrays[RUN_PAGE_INDPTR] = (npy_array){0};
    if (!run_reference(&input->plain, arrays, &expected, fault))
        goto done;
    clfd_convert_to_float(input->attention.out_type, result->out.data, actual, result->out.count);
    for (size_t i = 0; i < result->out.count; i++) {
        /* Equal infinities, and NaN beside NaN, are no error. */
        const bool equal = actual[i] == expected[i] || (isnan(actual[i]) && isnan(expected[i]));
        const double difference = equal                                          ? 0
                                  : isfinite(actual[i]) && isfinite(expected[i]) ? fabs(actual[i] - expected[i])
                                                                                 : INFINITY;
        error->max = fmax(error->max, difference);
        squares += difference * difference;
    }
    error->rms = result->out.count > 0 ? sqrt(squares / (double)result->out.count) : 0;
    good = true;

done:
    free(expected);
    free(actual);
    return good;
}

#include "run_arrays.h"
#include <inttypes.h>
#include <string.h>

#define MAX_OPERAND_DIMS 4
/* Beside a run_dim: the size may be 1 instead, which serves for all. */
#define OR_ONE 64u

static const char *const dim_names[NUM_DIMS] = {
    [DIM_BATCH] = "the batch",
    [DIM_Q_LEN] = "q_len",
    [DIM_Q_HEADS] = "the number of query heads",
    [DIM_KV_HEADS] = "the number of KV heads",
    [DIM_HEAD] = "head_dim",
    [DIM_HEAD_V] = "head_dim_v",
    [DIM_TOKENS] = "the number of tokens",
    [DIM_CACHE_ROWS] = "the number of cache rows",
    [DIM_ONE] = "the number of shared sequences",
    [DIM_PAGES] = "the number of pages",
    [DIM_PAGE_SIZE] = "the page size",
    [DIM_ROW_PAGES] = "the number of pages of a row",
    [DIM_PAGE_INDICES] = "the number of page indices",
    [DIM_PAGE_POINTERS] = "the length of the CSR pointers",
};

/* Every file: which elements it may hold (NULL: those of q, K and V) and its shape. */
static const struct operand_row {
    const char *option, *types;
    uint32_t num_dims;
    unsigned dims[MAX_OPERAND_DIMS];
} rows[] = {
    [RUN_Q] = {"--q", NULL, 4, {DIM_BATCH, DIM_Q_LEN, DIM_Q_HEADS, DIM_HEAD}},
    [RUN_K] = {"--k", NULL, 4, {DIM_KV_ROWS, DIM_KV_TOKENS, DIM_KV_HEADS, DIM_HEAD}},
    [RUN_V] = {"--v", NULL, 4, {DIM_KV_ROWS, DIM_KV_TOKENS, DIM_KV_HEADS, DIM_HEAD_V}},
    [RUN_KV_LENS] = {"--kv-lens", "i4", 1, {DIM_SEQUENCES}},
    [RUN_ALIBI] = {"--alibi", "f4", 1, {DIM_Q_HEADS}},
    [RUN_SINKS] = {"--sinks", "f4", 1, {DIM_Q_HEADS}},
    [RUN_MASK] = {"--mask", "u1 or b1", 3, {DIM_BATCH, DIM_Q_LEN, DIM_TOKENS}},
    [RUN_TREE_MASK] = {"--tree-mask", "u4 or i4", 2, {DIM_BATCH, DIM_Q_LEN}},
    [RUN_BIAS] = {"--bias", "f4 or f2", 4, {DIM_BATCH | OR_ONE, DIM_Q_HEADS | OR_ONE, DIM_Q_LEN, DIM_TOKENS}},
    [RUN_QUERY_POSITIONS] = {"--query-positions", "i4", 2, {DIM_BATCH, DIM_Q_LEN}},
    [RUN_KV_START] = {"--kv-start", "i4", 1, {DIM_SEQUENCES}},
    [RUN_CACHE_BATCH_IDX] = {"--cache-batch-idx", "i4", 1, {DIM_SEQUENCES}},
    [RUN_BLOCK_TABLE] = {"--block-table", "i4", 2, {DIM_ROWS, DIM_ROW_PAGES}},
    [RUN_PAGE_INDICES] = {"--block-table", "i4", 1, {DIM_PAGE_INDICES}},
    [RUN_PAGE_INDPTR] = {"--page-indptr", "i4", 1, {DIM_PAGE_POINTERS}},
};

#define NUM_ROWS ((int)(sizeof rows / sizeof rows[0]))

static run_dim resolve(const run_options *options, unsigned dim)
{
    if (options->files[RUN_BLOCK_TABLE] != NULL && (dim == DIM_KV_ROWS || dim == DIM_KV_TOKENS))
        return dim == DIM_KV_ROWS ? DIM_PAGES : DIM_PAGE_SIZE;
    if (dim == DIM_KV_TOKENS)
        return DIM_TOKENS;
    if (dim == DIM_KV_ROWS || dim == DIM_ROWS)
        dim = options->files[RUN_CACHE_BATCH_IDX] != NULL ? DIM_CACHE_ROWS : DIM_SEQUENCES;
    if (dim == DIM_SEQUENCES)
        return options->shared_kv ? DIM_ONE : DIM_BATCH;
    return (run_dim)dim;
}

bool run_bind(run_size sizes[NUM_DIMS], run_dim dim, uint64_t value, const char *said_by, tool_fault *fault)
{
    run_size *size = &sizes[dim];

    if (size->said_by == NULL)
        *size = (run_size){value, said_by};
    if (size->value == value)
        return true;
    return fault_failed(fault, "%s is %" PRIu64 " in %s and %" PRIu64 " in %s; they must be equal", dim_names[dim],
                        size->value, size->said_by, value, said_by);
}

/* Reads a file and checks its number of dimensions, none of them 0, each within 31 bits. */
static bool read_array(const struct operand_row *row, const char *path, npy_array *array, tool_fault *fault)
{
    char shape[NPY_SHAPE_BYTES];

    if (!npy_read(path, array, fault))
        return false;
    if (array->num_dims != row->num_dims)
        return fault_failed(fault, "%s %s has shape %s; it must have %u dimension%s", row->option, path,
                            npy_shape(array, shape), row->num_dims, row->num_dims == 1 ? "" : "s");
    for (uint32_t i = 0; i < row->num_dims; i++)
        if (array->shape[i] < 1 || array->shape[i] > INT32_MAX)
            return fault_failed(fault, "%s %s has shape %s; every dimension must be 1 to %" PRId32, row->option, path,
                                npy_shape(array, shape), INT32_MAX);
    return true;
}

static bool check_shape(const run_options *options, const struct operand_row *row, const npy_array *array,
                        run_size sizes[NUM_DIMS], tool_fault *fault)
{
    for (uint32_t i = 0; i < row->num_dims; i++)
        if (!((row->dims[i] & OR_ONE) != 0 && array->shape[i] == 1) &&
            !run_bind(sizes, resolve(options, row->dims[i] & ~OR_ONE), array->shape[i], row->option, fault))
            return false;
    return true;
}

/* A floating-point array has its own type; 16-bit integers hold what --type says. */
static bool find_type(const struct operand_row *row, const char *path, const npy_array *array, clfd_type given,
                      clfd_type *type, tool_fault *fault)
{
    const bool integers = (array->kind == 'u' || array->kind == 'i') && array->item_bytes == 2;

    if (integers && given != CLFD_TYPE_BF16 && given != CLFD_TYPE_F16)
        return fault_failed(fault, "%s %s holds %s elements; --type bf16 must say that they are bf16", row->option,
                            path, npy_type(array).text);
    if (!integers && (array->kind != 'f' || array->item_bytes == 8))
        return fault_failed(fault, "%s %s holds %s elements; they must be f4, f2, or u2 with --type bf16", row->option,
                            path, npy_type(array).text);
    *type = integers ? given : array->item_bytes == 4 ? CLFD_TYPE_F32 : CLFD_TYPE_F16;
    /* NumPy has no bf16, so --type bf16 speaks of the integer arrays only and may stand beside an f4 q. */
    if (given != CLFD_TYPE_DEFAULT && given != CLFD_TYPE_BF16 && *type != given)
        return fault_failed(fault, "%s %s holds %s elements; --type is %s", row->option, path, npy_type(array).text,
                            clfd_type_name(given));
    return true;
}

static bool check_type(const run_options *options, run_operand operand, const char *path, run_input *input,
                       tool_fault *fault)
{
    const struct operand_row *row = &rows[operand];
    const npy_array *array = &input->arrays[operand];
    clfd_type *const types[] = {
        [RUN_Q] = &input->attention.q_type, [RUN_K] = &input->attention.k_type, [RUN_V] = &input->attention.v_type};

    if (row->types == NULL)
        return find_type(row, path, array, (clfd_type)options->type, types[operand], fault);
    if (strstr(row->types, npy_type(array).text) != NULL)
        return true;
    return fault_failed(fault, "%s %s holds %s elements; they must be %s", row->option, path, npy_type(array).text,
                        row->types);
}

bool run_arrays_read(const run_options *options, run_input *input, run_size sizes[NUM_DIMS], tool_fault *fault)
{
    for (int i = 0; i < NUM_ROWS; i++) {
        /* The block table has two forms under one option. */
        const bool csr = options->files[RUN_PAGE_INDPTR] != NULL;
        const char *path = i == RUN_BLOCK_TABLE    ? csr ? NULL : options->files[i]
                              : i == RUN_PAGE_INDICES ? csr ? options->files[RUN_BLOCK_TABLE] : NULL
                                                   : options->files[i];
        if (path != NULL && (!read_array(&rows[i], path, &input->arrays[i], fault) ||
                             !check_type(options, (run_operand)i, path, input, fault) ||
                             !check_shape(options, &rows[i], &input->arrays[i], sizes, fault)))
            return false;
    }
    return true;
}

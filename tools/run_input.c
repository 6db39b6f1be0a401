#include "run_arrays.h"
#include "system.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static bool given(uint64_t value) { return value != RUN_NOT_GIVEN; }

/* Options that exclude or need each other. */
static bool check_pairs(const run_options *o, tool_fault *fault)
{
    const char *const *files = o->files;
    const struct {
        const char *name;
        bool is_given;
        const char *other;
        bool other_given;
    } excluded[] =
        {
            {"--v", files[RUN_V] != NULL, "--v-from-k", given(o->v_from_k)},
            {"--splits", given(o->num_splits), "--split-tokens", given(o->split_tokens)},
            {"--mask", files[RUN_MASK] != NULL, "--tree-mask", files[RUN_TREE_MASK] != NULL},
            {"--csr", o->csr, "--block-table", files[RUN_BLOCK_TABLE] != NULL},
            {"--page-seed", given(o->page_seed), "--block-table", files[RUN_BLOCK_TABLE] != NULL},
        },
      needed[] = {
          {"--page-indptr", files[RUN_PAGE_INDPTR] != NULL, "--block-table", files[RUN_BLOCK_TABLE] != NULL},
          {"--csr", o->csr, "--page-size", given(o->page_size)},
          {"--page-seed", given(o->page_seed), "--page-size", given(o->page_size)},
          {"--kv-group", given(o->kv_group), "--kvtype", o->kv_type != NULL},
          {"--kv-zeros", o->kv_zeros, "--kvtype", o->kv_type != NULL},
      };

    for (size_t i = 0; i < sizeof excluded / sizeof excluded[0]; i++)
        if (excluded[i].is_given && excluded[i].other_given)
            return fault_usage(fault, "%s and %s exclude each other", excluded[i].name, excluded[i].other);
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (needed[i].is_given && !needed[i].other_given)
            return fault_usage(fault, "%s is given without %s", needed[i].name, needed[i].other);
    return true;
}

static bool check_options(const run_options *o, tool_fault *fault)
{
    const char *const *files = o->files;

    if (files[RUN_Q] == NULL || files[RUN_K] == NULL)
        return fault_usage(fault, "%s is missing; --q, --k and --v (or --v-from-k) are required",
                           files[RUN_Q] == NULL ? "--q" : "--k");
    if (files[RUN_V] == NULL && !given(o->v_from_k))
        return fault_usage(fault, "--v is missing; V comes from --v FILE, or from K with --v-from-k DV");
    if (!check_pairs(o, fault))
        return false;
    if (o->out != NULL && o->lse != NULL && system_same_place(o->out, o->lse))
        return fault_usage(fault, "--out %s and --lse %s name one file; they must be two", o->out, o->lse);
    if (o->tolerance < 0)
        return fault_usage(fault, "--tolerance is %g; it must not be negative", o->tolerance);
    /* 0 stands for the default in the descriptor, so a scale that is 0 in fp32 would silently become another one. */
    if (!isnan(o->scale) && ((float)o->scale == 0.0f || !isfinite((float)o->scale)))
        return fault_usage(fault, "--scale is %g; it must be neither 0 nor infinite in fp32", o->scale);
    if (!isnan(o->softcap) && !((float)o->softcap > 0.0f && isfinite((float)o->softcap)))
        return fault_usage(fault, "--softcap is %g; it must be positive and finite in fp32", o->softcap);
    return true;
}

/* Whether the page pointers can be those of a CSR table; *longest is the most pages of a row. The entries themselves are
 * the kernel's to judge. */
static bool check_pointers(const run_input *input, uint64_t *longest, tool_fault *fault)
{
    const npy_array *array = &input->arrays[RUN_PAGE_INDPTR];
    const int32_t *pointers = array->data;

    *longest = 0;
    for (size_t i = 0; i < array->count; i++) {
        if (pointers[i] < (i == 0 ? 0 : pointers[i - 1]))
            return fault_failed(fault, "--page-indptr[%zu] is %" PRId32 "; it must be %s", i, pointers[i],
                                i == 0 ? "at least 0" : "at least the one before");
        if (i > 0 && (uint64_t)(pointers[i] - pointers[i - 1]) > *longest)
            *longest = (uint64_t)(pointers[i] - pointers[i - 1]);
    }
    return true;
}

/* The capacity of paged K and V: what the mask or the bias says, else all that the table can name. */
static bool find_capacity(const run_options *options, const run_input *input, run_size sizes[NUM_DIMS],
                          tool_fault *fault)
{
    const run_dim rows = options->files[RUN_CACHE_BATCH_IDX] != NULL ? DIM_CACHE_ROWS
                         : options->shared_kv                        ? DIM_ONE
                                                                     : DIM_BATCH;
    uint64_t row_pages = sizes[DIM_ROW_PAGES].value, most;

    if (options->files[RUN_BLOCK_TABLE] == NULL)
        return true;
    if (options->files[RUN_PAGE_INDPTR] != NULL &&
        (!run_bind(sizes, rows, sizes[DIM_PAGE_POINTERS].value - 1, "--page-indptr", fault) ||
         !check_pointers(input, &row_pages, fault)))
        return false;
    most = row_pages * sizes[DIM_PAGE_SIZE].value;
    most = most > INT32_MAX ? INT32_MAX : most;
    if (sizes[DIM_TOKENS].said_by == NULL)
        return run_bind(sizes, DIM_TOKENS, most > 0 ? most : 1, "the block table", fault);
    if (sizes[DIM_TOKENS].value > most)
        return fault_failed(fault, "%s has %" PRIu64 " tokens; the block table names pages of %" PRIu64 " at most",
                            sizes[DIM_TOKENS].said_by, sizes[DIM_TOKENS].value, most);
    return true;
}

static void describe_pages(const run_options *options, const run_size sizes[NUM_DIMS], clfd_attention *attention)
{
    if (options->files[RUN_BLOCK_TABLE] == NULL)
        return;
    attention->paging = options->files[RUN_PAGE_INDPTR] != NULL ? CLFD_PAGING_CSR : CLFD_PAGING_TABLE;
    attention->page_size = (uint32_t)sizes[DIM_PAGE_SIZE].value;
    attention->num_pages = (uint32_t)sizes[DIM_PAGES].value;
    attention->block_table_stride = (int64_t)sizes[DIM_ROW_PAGES].value;
}

static void describe_scores(const run_options *options, const run_input *input, clfd_attention *attention)
{
    const npy_array *arrays = input->arrays, *bias = &arrays[RUN_BIAS];
    const uint64_t *shape = bias->shape;

    attention->scale = isnan(options->scale) ? 0.0f : (float)options->scale;
    attention->softcap = isnan(options->softcap) ? 0.0f : (float)options->softcap;
    attention->window = given(options->window) ? (uint32_t)options->window : 0;
    attention->causal = options->causal;
    attention->alibi = arrays[RUN_ALIBI].data != NULL;
    attention->sinks = arrays[RUN_SINKS].data != NULL;
    attention->query_positions = arrays[RUN_QUERY_POSITIONS].data != NULL;
    attention->kv_start = arrays[RUN_KV_START].data != NULL;
    attention->mask = arrays[RUN_MASK].data != NULL        ? CLFD_MASK_BOOL
                      : arrays[RUN_TREE_MASK].data != NULL ? CLFD_MASK_TREE
                                                           : CLFD_MASK_NONE;
    if (bias->data == NULL)
        return;
    attention->bias_type = bias->item_bytes == 2 ? CLFD_TYPE_F16 : CLFD_TYPE_F32;
    attention->bias_strides.key = 1;
    attention->bias_strides.query = (int64_t)shape[3];
    attention->bias_strides.head = shape[1] == 1 ? 0 : (int64_t)(shape[2] * shape[3]);
    attention->bias_strides.batch = shape[0] == 1 ? 0 : (int64_t)(shape[1] * shape[2] * shape[3]);
}

static void describe(const run_options *options, const run_size sizes[NUM_DIMS], run_input *input)
{
    clfd_attention *attention = &input->attention;

    attention->struct_size = sizeof *attention;
    attention->max_batch = (uint32_t)sizes[DIM_BATCH].value;
    attention->q_len = (uint32_t)sizes[DIM_Q_LEN].value;
    attention->num_q_heads = (uint32_t)sizes[DIM_Q_HEADS].value;
    attention->num_kv_heads = (uint32_t)sizes[DIM_KV_HEADS].value;
    attention->head_dim = (uint32_t)sizes[DIM_HEAD].value;
    attention->head_dim_v = (uint32_t)(given(options->v_from_k) ? options->v_from_k : sizes[DIM_HEAD_V].value);
    attention->max_kv_len = (uint32_t)sizes[DIM_TOKENS].value;
    attention->v_from_k = given(options->v_from_k);
    if (attention->v_from_k)
        attention->v_type = attention->k_type;
    attention->out_type = options->out_type != 0 ? (clfd_type)options->out_type : attention->q_type;
    attention->shared_kv = options->shared_kv;
    attention->cache_batch_idx = input->arrays[RUN_CACHE_BATCH_IDX].data != NULL;
    attention->num_cache_rows = (uint32_t)sizes[DIM_CACHE_ROWS].value;
    attention->partial = options->partial == 0 ? CLFD_PARTIAL_LSE : (clfd_partial)(options->partial - 1);
    if (given(options->num_splits)) {
        attention->split_policy = CLFD_SPLIT_COUNT;
        attention->split_size = (uint32_t)options->num_splits;
    } else if (given(options->split_tokens)) {
        attention->split_policy = CLFD_SPLIT_TOKENS;
        attention->split_size = (uint32_t)options->split_tokens;
    }
    describe_scores(options, input, attention);
    describe_pages(options, sizes, attention);
}

/* Kernels clamp lengths silently; whoever wrote the file may not have meant that. */
static void warn_of_lengths(const run_input *input)
{
    const npy_array *array = &input->arrays[RUN_KV_LENS];
    const int32_t *lengths = array->data;
    size_t outside = 0, first = 0;

    for (size_t b = array->count; b-- > 0;)
        if (lengths[b] < 0 || (uint32_t)lengths[b] > input->attention.max_kv_len) {
            outside++;
            first = b;
        }
    if (outside > 0)
        fprintf(stderr, "clfd: warning: --kv-lens[%zu] is %" PRId32 "; %zu such length%s clamped to 0 to %u\n", first,
                lengths[first], outside, outside == 1 ? " is" : "s are", input->attention.max_kv_len);
}

bool run_input_load(const run_options *options, run_input *input, tool_fault *fault)
{
    run_size sizes[NUM_DIMS] = {{0, NULL}};

    *input = (run_input){0};
    if (options->shared_kv)
        sizes[DIM_ONE] = (run_size){1, "--shared-kv"};
    if (options->files[RUN_BLOCK_TABLE] != NULL && given(options->page_size))
        sizes[DIM_PAGE_SIZE] = (run_size){options->page_size, "--page-size"};
    if (!check_options(options, fault) || !run_arrays_read(options, input, sizes, fault) ||
        !find_capacity(options, input, sizes, fault))
        return false;
    describe(options, sizes, input);
    warn_of_lengths(input);
    return true;
}

uint32_t run_num_sequences(const run_input *input)
{
    return input->attention.shared_kv ? 1 : input->attention.max_batch;
}

int64_t run_kv_len(const run_input *input, uint32_t sequence)
{
    const int32_t *lengths = input->arrays[RUN_KV_LENS].data;
    const int64_t most = input->attention.max_kv_len, length = lengths != NULL ? lengths[sequence] : most;

    return length < 0 ? 0 : length > most ? most : length;
}

void run_input_free(run_input *input)
{
    for (int i = 0; i < RUN_OPERANDS; i++)
        npy_free(&input->arrays[i]);
    npy_free(&input->plain_k);
    npy_free(&input->plain_v);
}

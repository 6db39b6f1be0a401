/* The files of `clfd run`: which arrays fit together, and the descriptor that they make. */
#include "run.h"
#include "support/folder.h"
#include "support/suite.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 96, MAX_FILES = 12 };

static char folder[64];
static char paths[MAX_FILES][PATH_BYTES];
static int num_paths;

static void set_up(void) { test_folder_create(folder); }

static void tear_down(void) { test_folder_remove(folder); }

/* What to write for an operand: the type as NumPy writes it, and the shape. The elements are zeros, or `values`. */
struct file {
    run_operand operand;
    const char *type;
    uint64_t shape[4];
    const int32_t *values;
};

static const char *write_file(const struct file *file)
{
    npy_array array = {.kind = file->type[0], .item_bytes = (uint32_t)(file->type[1] - '0'), .count = 1};
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    output_file output = {0};
    char *const path = paths[num_paths];

    ck_assert_int_lt(num_paths, MAX_FILES);
    for (; array.num_dims < 4 && file->shape[array.num_dims] > 0; array.num_dims++) {
        array.shape[array.num_dims] = file->shape[array.num_dims];
        array.count *= file->shape[array.num_dims];
    }
    array.data = calloc(array.count, array.item_bytes);
    ck_assert_ptr_nonnull(array.data);
    if (file->values != NULL)
        memcpy(array.data, file->values, array.count * sizeof file->values[0]);
    snprintf(path, PATH_BYTES, "%s/%d.npy", folder, num_paths++);
    ck_assert(output_open(&output, path, &fault) && npy_write(&output, &array, &fault) &&
              output_close(&output, &fault) && output_commit(&output, &fault));
    output_discard(&output);
    npy_free(&array);
    return path;
}

static run_options no_options(void)
{
    return (run_options){.v_from_k = RUN_NOT_GIVEN,
                         .num_splits = RUN_NOT_GIVEN,
                         .split_tokens = RUN_NOT_GIVEN,
                         .window = RUN_NOT_GIVEN,
                         .page_size = RUN_NOT_GIVEN,
                         .page_seed = RUN_NOT_GIVEN,
                         .kv_group = RUN_NOT_GIVEN,
                         .scale = (double)NAN,
                         .softcap = (double)NAN,
                         .tolerance = (double)NAN};
}

/* B 2, q_len 3, Hq 4, Hkv 2, D 16, Dv 8, n 20; with cache rows 5, with pages 6 of 4 tokens. */
static const struct file q = {RUN_Q, "f4", {2, 3, 4, 16}, NULL};
static const struct file k = {RUN_K, "f4", {2, 20, 2, 16}, NULL}, v = {RUN_V, "f4", {2, 20, 2, 8}, NULL};
static const struct file k_rows = {RUN_K, "f4", {5, 20, 2, 16}, NULL}, v_rows = {RUN_V, "f4", {5, 20, 2, 8}, NULL};
static const struct file k_one = {RUN_K, "f4", {1, 20, 2, 16}, NULL}, v_one = {RUN_V, "f4", {1, 20, 2, 8}, NULL};
static const struct file k_pages = {RUN_K, "f4", {6, 4, 2, 16}, NULL}, v_pages = {RUN_V, "f4", {6, 4, 2, 8}, NULL};
static const struct file lens = {RUN_KV_LENS, "i4", {2}, NULL}, indices = {RUN_CACHE_BATCH_IDX, "i4", {2}, NULL};
static const struct file positions = {RUN_QUERY_POSITIONS, "i4", {2, 3}, NULL};
static const struct file table = {RUN_BLOCK_TABLE, "i4", {2, 7}, NULL};

/* Loads what the files and options say. */
static bool load(run_options options, const struct file *const *files, run_input *input, tool_fault *fault)
{
    *fault = (tool_fault){.exit_code = EXIT_CODE_OK};
    num_paths = 0;
    for (; *files != NULL; files++)
        options.files[(*files)->operand] = write_file(*files);
    return run_input_load(&options, input, fault);
}

static run_input load_well(run_options options, const struct file *const *files)
{
    tool_fault fault;
    run_input input;

    ck_assert_msg(load(options, files, &input, &fault), "%s", fault.sentence);
    return input;
}

#define FILES(...) ((const struct file *const[]){__VA_ARGS__, NULL})

START_TEST(shapes_make_the_descriptor)
{
    run_options options = no_options();
    options.causal = true;
    options.window = 7;
    options.softcap = 30;
    options.split_tokens = 5;
    options.partial = 2;
    options.out_type = CLFD_TYPE_BF16;
    run_input input = load_well(options, FILES(&q, &k, &v, &lens));
    const clfd_attention *const a = &input.attention;

    ck_assert(a->max_batch == 2 && a->q_len == 3 && a->num_q_heads == 4 && a->num_kv_heads == 2);
    ck_assert(a->head_dim == 16 && a->head_dim_v == 8 && a->max_kv_len == 20);
    ck_assert(a->causal == 1 && a->window == 7 && a->v_from_k == 0);
    ck_assert_float_eq(a->softcap, 30.0f);
    ck_assert_float_eq(a->scale, 0.0f);
    ck_assert_int_eq(a->out_type, CLFD_TYPE_BF16);
    ck_assert_int_eq(a->partial, CLFD_PARTIAL_MLO);
    ck_assert(a->split_policy == CLFD_SPLIT_TOKENS && a->split_size == 5);
    ck_assert(a->alibi == 0 && a->sinks == 0 && a->mask == 0 && a->bias_type == 0 && a->paging == 0);
    run_input_free(&input);
}
END_TEST

START_TEST(each_file_turns_on_its_option)
{
    static const struct file alibi = {RUN_ALIBI, "f4", {4}, NULL}, sinks = {RUN_SINKS, "f4", {4}, NULL};
    static const struct file mask = {RUN_MASK, "b1", {2, 3, 20}, NULL}, start = {RUN_KV_START, "i4", {2}, NULL};
    static const struct file tree = {RUN_TREE_MASK, "u4", {2, 3}, NULL};
    run_input input = load_well(no_options(), FILES(&q, &k, &v, &alibi, &sinks, &mask, &start, &positions));

    ck_assert(input.attention.alibi == 1 && input.attention.sinks == 1 && input.attention.kv_start == 1);
    ck_assert(input.attention.query_positions == 1 && input.attention.cache_batch_idx == 0);
    ck_assert_int_eq(input.attention.mask, CLFD_MASK_BOOL);
    run_input_free(&input);
    input = load_well(no_options(), FILES(&q, &k_rows, &v_rows, &tree, &indices));
    ck_assert_int_eq(input.attention.mask, CLFD_MASK_TREE);
    ck_assert(input.attention.cache_batch_idx == 1 && input.attention.num_cache_rows == 5);
    ck_assert_uint_eq(input.attention.max_batch, 2);
    run_input_free(&input);
}
END_TEST

START_TEST(bias_of_one_broadcasts)
{
    static const struct {
        struct file file;
        clfd_score_strides strides;
    } cases[] = {
        {{RUN_BIAS, "f4", {2, 4, 3, 20}, NULL}, {240, 60, 20, 1}},
        {{RUN_BIAS, "f2", {1, 4, 3, 20}, NULL}, {0, 60, 20, 1}},
        {{RUN_BIAS, "f4", {2, 1, 3, 20}, NULL}, {60, 0, 20, 1}},
        {{RUN_BIAS, "f4", {1, 1, 3, 20}, NULL}, {0, 0, 20, 1}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_input input = load_well(no_options(), FILES(&q, &k, &v, &cases[i].file));
        const clfd_score_strides *const s = &input.attention.bias_strides;
        ck_assert_int_eq(input.attention.bias_type, cases[i].file.type[1] == '2' ? CLFD_TYPE_F16 : CLFD_TYPE_F32);
        ck_assert(s->batch == cases[i].strides.batch && s->head == cases[i].strides.head);
        ck_assert(s->query == cases[i].strides.query && s->key == cases[i].strides.key);
        run_input_free(&input);
    }
}
END_TEST

START_TEST(block_table_makes_pages_of_k_and_v)
{
    static const int32_t pointers[] = {1, 3, 6};
    static const struct file list = {RUN_BLOCK_TABLE, "i4", {9}, NULL};
    static const struct file indptr = {RUN_PAGE_INDPTR, "i4", {3}, pointers};
    static const struct file mask = {RUN_MASK, "u1", {2, 3, 25}, NULL};
    run_options options = no_options();
    run_input input = load_well(options, FILES(&q, &k_pages, &v_pages, &table));
    const clfd_attention *const a = &input.attention;

    ck_assert_int_eq(a->paging, CLFD_PAGING_TABLE);
    ck_assert(a->page_size == 4 && a->num_pages == 6 && a->block_table_stride == 7 && a->max_kv_len == 28);
    run_input_free(&input);
    input = load_well(options, FILES(&q, &k_pages, &v_pages, &table, &mask));
    ck_assert_uint_eq(a->max_kv_len, 25);
    run_input_free(&input);
    options.page_size = 4;
    input = load_well(options, FILES(&q, &k_pages, &v_pages, &list, &indptr));
    ck_assert_int_eq(a->paging, CLFD_PAGING_CSR);
    ck_assert(a->page_size == 4 && a->num_pages == 6 && a->block_table_stride == 0 && a->max_kv_len == 12);
    ck_assert_ptr_null(input.arrays[RUN_BLOCK_TABLE].data);
    ck_assert_uint_eq(input.arrays[RUN_PAGE_INDICES].count, 9);
    run_input_free(&input);
}
END_TEST

START_TEST(shared_kv_has_one_sequence)
{
    static const int32_t eleven = 11;
    static const struct file length = {RUN_KV_LENS, "i4", {1}, &eleven}, one = {RUN_CACHE_BATCH_IDX, "i4", {1}, NULL};
    run_options options = no_options();
    options.shared_kv = true;
    run_input input = load_well(options, FILES(&q, &k_one, &v_one, &length, &positions));

    ck_assert(input.attention.shared_kv == 1 && input.attention.max_batch == 2);
    ck_assert_uint_eq(run_num_sequences(&input), 1);
    ck_assert_int_eq(run_kv_len(&input, 0), 11);
    run_input_free(&input);
    input = load_well(options, FILES(&q, &k_rows, &v_rows, &one));
    ck_assert_uint_eq(input.attention.num_cache_rows, 5);
    run_input_free(&input);
}
END_TEST

START_TEST(lengths_are_clamped)
{
    static const int32_t lengths[] = {-5, 21};
    const struct file file = {RUN_KV_LENS, "i4", {2}, lengths};
    run_input input = load_well(no_options(), FILES(&q, &k, &v, &file));

    ck_assert_int_eq(run_kv_len(&input, 0), 0);
    ck_assert_int_eq(run_kv_len(&input, 1), 20);
    run_input_free(&input);
    input = load_well(no_options(), FILES(&q, &k, &v));
    ck_assert_int_eq(run_kv_len(&input, 1), 20);
    run_input_free(&input);
}
END_TEST

/* One file more than q, K and V, or other ones, and the sentence. */
START_TEST(arrays_that_do_not_fit_are_refused)
{
    static const int32_t falling[] = {0, 3, 2}, negative[] = {-1, 3, 4};
    static const struct file list = {RUN_BLOCK_TABLE, "i4", {9}, NULL};
    static const struct {
        const struct file *k, *v, *other;
        struct file extra;
        bool shared;
        const char *fragment;
    } cases[] = {
        {&k, &v, NULL, {RUN_KV_LENS, "i4", {3}, NULL}, false, "the batch is 2 in --q and 3 in --kv-lens"},
        {&k, &v, NULL, {RUN_KV_LENS, "i8", {2}, NULL}, false, "holds i8 elements; they must be i4"},
        {&k, &v, NULL, {RUN_KV_LENS, "i4", {2, 1}, NULL}, false, "it must have 1 dimension"},
        {&k, &v, NULL, {RUN_ALIBI, "f8", {4}, NULL}, false, "they must be f4"},
        {&k, &v, NULL, {RUN_ALIBI, "f4", {2}, NULL}, false, "query heads is 4 in --q and 2 in --alibi"},
        {&k, &v, NULL, {RUN_SINKS, "f4", {5}, NULL}, false, "query heads is 4 in --q and 5 in --sinks"},
        {&k, &v, NULL, {RUN_MASK, "i4", {2, 3, 20}, NULL}, false, "they must be u1 or b1"},
        {&k, &v, NULL, {RUN_MASK, "u1", {2, 3, 19}, NULL}, false, "tokens is 20 in --k and 19 in --mask"},
        {&k, &v, NULL, {RUN_MASK, "u1", {1, 3, 20}, NULL}, false, "the batch is 2 in --q and 1 in --mask"},
        {&k, &v, NULL, {RUN_TREE_MASK, "u1", {2, 3}, NULL}, false, "they must be u4 or i4"},
        {&k, &v, NULL, {RUN_TREE_MASK, "u4", {2, 4}, NULL}, false, "q_len is 3 in --q and 4 in --tree-mask"},
        {&k, &v, NULL, {RUN_BIAS, "f4", {2, 2, 3, 20}, NULL}, false, "query heads is 4 in --q and 2 in --bias"},
        {&k, &v, NULL, {RUN_BIAS, "f4", {1, 1, 1, 20}, NULL}, false, "q_len is 3 in --q and 1 in --bias"},
        {&k, &v, NULL, {RUN_QUERY_POSITIONS, "i4", {2, 1}, NULL}, false, "q_len is 3 in --q and 1 in --query-pos"},
        {&k, &v, NULL, {RUN_KV_START, "u4", {2}, NULL}, false, "they must be i4"},
        {&k_rows, &v_rows, NULL, {RUN_KV_START, "i4", {2}, NULL}, false, "the batch is 2 in --q and 5 in --k"},
        {&k_rows, &v, NULL, {RUN_CACHE_BATCH_IDX, "i4", {2}, NULL}, false, "cache rows is 5 in --k and 2 in --v"},
        {&k, &v, NULL, {RUN_KV_LENS, "i4", {1}, NULL}, true, "shared sequences is 1 in --shared-kv and 2 in --k"},
        {&k_one, &v_one, NULL, {RUN_KV_LENS, "i4", {2}, NULL}, true, "is 1 in --shared-kv and 2 in --kv-lens"},
        {&k_pages, &v_pages, NULL, {RUN_BLOCK_TABLE, "i4", {3, 7}, NULL}, false, "2 in --q and 3 in --block-table"},
        {&k_pages, &v, NULL, {RUN_BLOCK_TABLE, "i4", {2, 7}, NULL}, false, "pages is 6 in --k and 2 in --v"},
        {&k_pages, &v_pages, &table, {RUN_MASK, "u1", {2, 3, 29}, NULL}, false, "names pages of 28 at most"},
        {&k_pages, &v_pages, &list, {RUN_PAGE_INDPTR, "i4", {4}, NULL}, false, "2 in --q and 3 in --page-indptr"},
        {&k_pages, &v_pages, &list, {RUN_PAGE_INDPTR, "i4", {3}, falling}, false, "--page-indptr[2] is 2"},
        {&k_pages, &v_pages, &list, {RUN_PAGE_INDPTR, "i4", {3}, negative}, false, "--page-indptr[0] is -1"},
    };
    tool_fault fault;
    run_input input;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_options options = no_options();
        options.shared_kv = cases[i].shared;
        ck_assert_msg(
            !load(options, FILES(&q, cases[i].k, cases[i].v, &cases[i].extra, cases[i].other), &input, &fault),
            "accepted: %s", cases[i].fragment);
        ck_assert_int_eq(fault.exit_code, EXIT_CODE_FAILED);
        ck_assert_msg(strstr(fault.sentence, cases[i].fragment) != NULL, "'%s' does not hold '%s'", fault.sentence,
                      cases[i].fragment);
        run_input_free(&input);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        shapes_make_the_descriptor,         each_file_turns_on_its_option, bias_of_one_broadcasts,
        block_table_makes_pages_of_k_and_v, shared_kv_has_one_sequence,    lengths_are_clamped,
        arrays_that_do_not_fit_are_refused,
    };
    return run_suite_around("run_input", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
}

#include "run.h"
#include "system.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define Q_DIMS 4

static bool check_options(const run_options *options, tool_fault *fault)
{
    if (options->q == NULL || options->k == NULL)
        return fault_usage(fault, "%s is missing; --q, --k and --v (or --v-from-k) are required",
                           options->q == NULL ? "--q" : "--k");
    if (options->v == NULL && options->v_from_k == RUN_NOT_GIVEN)
        return fault_usage(fault, "--v is missing; V comes from --v FILE, or from K with --v-from-k DV");
    if (options->v != NULL && options->v_from_k != RUN_NOT_GIVEN)
        return fault_usage(fault, "--v and --v-from-k exclude each other");
    if (options->num_splits != RUN_NOT_GIVEN && options->split_tokens != RUN_NOT_GIVEN)
        return fault_usage(fault, "--splits and --split-tokens exclude each other");
    if (options->out != NULL && options->lse != NULL && system_same_place(options->out, options->lse))
        return fault_usage(fault, "--out %s and --lse %s name one file; they must be two", options->out, options->lse);
    if (options->tolerance < 0)
        return fault_usage(fault, "--tolerance is %g; it must not be negative", options->tolerance);
    /* 0 stands for the default in the descriptor, so a scale that is 0 in fp32 would silently become another one. */
    if (!isnan(options->scale) && ((float)options->scale == 0.0f || !isfinite((float)options->scale)))
        return fault_usage(fault, "--scale is %g; it must be neither 0 nor infinite in fp32", options->scale);
    return true;
}

/* Reads a file and checks its number of dimensions, none of them 0, each within 31 bits. */
static bool read_array(const char *option, const char *path, uint32_t num_dims, npy_array *array, tool_fault *fault)
{
    char shape[NPY_SHAPE_BYTES];

    if (!npy_read(path, array, fault))
        return false;
    if (array->num_dims != num_dims)
        return fault_failed(fault, "%s %s has shape %s; it must have %u dimensions", option, path,
                            npy_shape(array, shape), num_dims);
    for (uint32_t i = 0; i < num_dims; i++)
        if (array->shape[i] < 1 || array->shape[i] > INT32_MAX)
            return fault_failed(fault, "%s %s has shape %s; every dimension must be 1 to %" PRId32, option, path,
                                npy_shape(array, shape), INT32_MAX);
    return true;
}

/* A floating-point array has its own type; 16-bit integers hold what --type says. */
static bool find_type(const char *option, const char *path, const npy_array *array, clfd_type given, clfd_type *type,
                      tool_fault *fault)
{
    const bool integers = (array->kind == 'u' || array->kind == 'i') && array->item_bytes == 2;

    if (integers && given != CLFD_TYPE_BF16 && given != CLFD_TYPE_F16)
        return fault_failed(fault, "%s %s holds %s elements; --type bf16 must say that they are bf16", option, path,
                            npy_type(array).text);
    if (!integers && (array->kind != 'f' || array->item_bytes == 8))
        return fault_failed(fault, "%s %s holds %s elements; they must be f4, f2, or u2 with --type bf16", option, path,
                            npy_type(array).text);
    *type = integers ? given : array->item_bytes == 4 ? CLFD_TYPE_F32 : CLFD_TYPE_F16;
    /* NumPy has no bf16, so --type bf16 speaks of the integer arrays only and may stand beside an f4 q. */
    if (given != CLFD_TYPE_DEFAULT && given != CLFD_TYPE_BF16 && *type != given)
        return fault_failed(fault, "%s %s holds %s elements; --type is %s", option, path, npy_type(array).text,
                            clfd_type_name(given));
    return true;
}

static bool same(const char *what, uint64_t left, uint64_t right, const char *left_name, const char *right_name,
                 tool_fault *fault)
{
    if (left == right)
        return true;
    return fault_failed(fault, "%s is %" PRIu64 " in %s and %" PRIu64 " in %s; they must be equal", what, left,
                        left_name, right, right_name);
}

static bool check_shapes(const run_options *options, const run_input *input, tool_fault *fault)
{
    const uint64_t *q = input->q.shape, *k = input->k.shape, *v = input->v.shape;
    char shape[NPY_SHAPE_BYTES];

    if (!same("the batch", q[0], k[0], "--q", "--k", fault) || !same("head_dim", q[3], k[3], "--q", "--k", fault))
        return false;
    if (options->v != NULL && (!same("the batch", k[0], v[0], "--k", "--v", fault) ||
                               !same("the number of tokens", k[1], v[1], "--k", "--v", fault) ||
                               !same("the number of KV heads", k[2], v[2], "--k", "--v", fault)))
        return false;
    if (options->kv_lens == NULL)
        return true;
    if (input->kv_lens.kind != 'i' || input->kv_lens.item_bytes != 4)
        return fault_failed(fault, "--kv-lens %s holds %s elements; they must be i4", options->kv_lens,
                            npy_type(&input->kv_lens).text);
    if (input->kv_lens.shape[0] != q[0])
        return fault_failed(fault, "--kv-lens %s has shape %s; it must be (%" PRIu64 ",), the batch", options->kv_lens,
                            npy_shape(&input->kv_lens, shape), q[0]);
    return true;
}

static void describe(const run_options *options, run_input *input)
{
    clfd_attention *attention = &input->attention;

    attention->struct_size = sizeof *attention;
    attention->max_batch = (uint32_t)input->q.shape[0];
    attention->q_len = (uint32_t)input->q.shape[1];
    attention->num_q_heads = (uint32_t)input->q.shape[2];
    attention->num_kv_heads = (uint32_t)input->k.shape[2];
    attention->head_dim = (uint32_t)input->k.shape[3];
    attention->head_dim_v = (uint32_t)(options->v != NULL ? input->v.shape[3] : options->v_from_k);
    attention->max_kv_len = (uint32_t)input->k.shape[1];
    attention->out_type = options->out_type != 0 ? (clfd_type)options->out_type : attention->q_type;
    attention->scale = isnan(options->scale) ? 0.0f : (float)options->scale;
    attention->causal = options->causal;
    attention->v_from_k = options->v == NULL;
    attention->partial = options->partial == 0 ? CLFD_PARTIAL_LSE : (clfd_partial)(options->partial - 1);
    if (options->num_splits != RUN_NOT_GIVEN) {
        attention->split_policy = CLFD_SPLIT_COUNT;
        attention->split_size = (uint32_t)options->num_splits;
    } else if (options->split_tokens != RUN_NOT_GIVEN) {
        attention->split_policy = CLFD_SPLIT_TOKENS;
        attention->split_size = (uint32_t)options->split_tokens;
    }
}

bool run_input_load(const run_options *options, run_input *input, tool_fault *fault)
{
    const clfd_type given = (clfd_type)options->type;
    clfd_attention *attention = &input->attention;

    *input = (run_input){0};
    if (!check_options(options, fault) || !read_array("--q", options->q, Q_DIMS, &input->q, fault) ||
        !read_array("--k", options->k, Q_DIMS, &input->k, fault) ||
        !find_type("--q", options->q, &input->q, given, &attention->q_type, fault) ||
        !find_type("--k", options->k, &input->k, given, &attention->k_type, fault))
        return false;
    attention->v_type = attention->k_type;
    if (options->v != NULL && (!read_array("--v", options->v, Q_DIMS, &input->v, fault) ||
                               !find_type("--v", options->v, &input->v, given, &attention->v_type, fault)))
        return false;
    if (options->kv_lens != NULL && !read_array("--kv-lens", options->kv_lens, 1, &input->kv_lens, fault))
        return false;
    if (!check_shapes(options, input, fault))
        return false;
    describe(options, input);
    return true;
}

void run_input_free(run_input *input)
{
    npy_free(&input->q);
    npy_free(&input->k);
    npy_free(&input->v);
    npy_free(&input->kv_lens);
}

#include "tune.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is tuned without problems: every type with every dim and ratio, the commonest first. */
static const char *const default_types[] = {"f16",
                                            "bf16",
                                            "f32",
                                            "f16 kvtype=int8",
                                            "f16 kvtype=fp8_e4m3",
                                            "f16 kvtype=int4",
                                            "f16 kvtype=q8_0",
                                            "f16 kvtype=q4_0"};
static const uint32_t default_dims[] = {128, 64, 256}, default_ratios[] = {1, 4, 8};
#define KV_HEADS 8u

/* The timed problems of such a class, quick: the first. K and V take `share` of what a problem takes at most. */
static const struct {
    uint32_t batch, share;
} default_shapes[] = {{8, 1}, {1, 1}, {1, 16}};

/* K and V of a problem, in bytes: several times what a GPU takes to launch it; a hundredth of a second on a CPU. */
#define GPU_BYTES ((uint64_t)256 << 20)
#define CPU_BYTES ((uint64_t)32 << 20)
#define KEY_STEP 128u

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

const char *tune_class_print(const clfd_tuning_class *shared, char text[TUNE_CLASS_BYTES])
{
    int used = snprintf(text, TUNE_CLASS_BYTES, "%s", clfd_type_name(shared->k_type));

    if (shared->v_type != shared->k_type)
        used += snprintf(text + used, TUNE_CLASS_BYTES - (size_t)used, ",%s", clfd_type_name(shared->v_type));
    used += snprintf(text + used, TUNE_CLASS_BYTES - (size_t)used, " d%u", shared->head_dim);
    if (shared->head_dim_v != shared->head_dim)
        used += snprintf(text + used, TUNE_CLASS_BYTES - (size_t)used, ",%u", shared->head_dim_v);
    snprintf(text + used, TUNE_CLASS_BYTES - (size_t)used, " ratio %u", shared->ratio);
    return text;
}

/* The class of a problem; a new one at the end of the list where it has none yet. NULL without memory. */
static tune_class *find_class(tune_list *list, const clfd_tuning_class *shared)
{
    tune_class *longer;

    for (size_t i = 0; i < list->count; i++)
        if (clfd_tuning_class_equal(&list->classes[i].shared, shared))
            return &list->classes[i];
    longer = realloc(list->classes, (list->count + 1) * sizeof longer[0]);
    if (longer == NULL)
        return NULL;
    list->classes = longer;
    list->classes[list->count] = (tune_class){.shared = *shared};
    return &list->classes[list->count++];
}

static bool add_problem(tune_list *list, const bench_problem *problem, tool_fault *fault)
{
    const clfd_attention attention = problem_attention(problem);
    const clfd_tuning_class shared = clfd_tuning_class_of(&attention);
    tune_class *class;
    char text[TUNE_CLASS_BYTES];

    if (problem->prefix > 0)
        return fault_usage(fault, "prefix=%u is two problems at once; clfd tune takes one at a time", problem->prefix);
    if (problem->num_q_heads % problem->num_kv_heads != 0)
        return fault_usage(fault, "hq=%u must be a multiple of hkv=%u", problem->num_q_heads, problem->num_kv_heads);
    if ((class = find_class(list, &shared)) == NULL)
        return fault_failed(fault, "no memory for %zu classes", list->count + 1);
    if (class->num_problems == TUNE_MAX_PROBLEMS)
        return fault_usage(fault, "more than %d problems are of the class %s", TUNE_MAX_PROBLEMS,
                           tune_class_print(&shared, text));
    class->problems[class->num_problems++] = *problem;
    return true;
}

/* So many keys that K and V take `bytes`. */
static uint32_t count_keys(const bench_problem *problem, uint64_t bytes)
{
    const double elements = (double)problem->batch * KV_HEADS * (problem->head_dim + problem->head_dim_v);
    const double element = (double)clfd_type_size(problem->k_type) / clfd_type_elements(problem->k_type);
    const uint32_t keys = (uint32_t)((double)bytes / (elements * element)) / KEY_STEP * KEY_STEP;

    return keys > KEY_STEP ? keys : KEY_STEP;
}

static bool add_defaults(const clfd_device_info *device, const char *types, uint32_t dim, uint32_t ratio, bool quick,
                         tune_list *list, tool_fault *fault)
{
    const uint64_t wanted = (device->type & CL_DEVICE_TYPE_GPU) != 0 ? GPU_BYTES : CPU_BYTES;
    const uint64_t most = device->max_alloc_bytes / 8, bytes = wanted < most ? wanted : most;

    for (size_t i = 0; i < (quick ? 1 : COUNT(default_shapes)); i++) {
        bench_problem problem;
        char text[128];
        snprintf(text, sizeof text, "b%u hq%u hkv%u d%u kv1 %s", default_shapes[i].batch, KV_HEADS * ratio, KV_HEADS,
                 dim, types);
        if (!problem_parse(text, &problem, fault))
            return false;
        problem.kv_len = count_keys(&problem, bytes / default_shapes[i].share);
        if (!add_problem(list, &problem, fault))
            return false;
    }
    return true;
}

bool tune_list_make(const problem_list *given, const clfd_device_info *device, bool quick, tune_list *list,
                    tool_fault *fault)
{
    *list = (tune_list){NULL, 0};
    for (size_t i = 0; i < given->count; i++)
        if (!add_problem(list, &given->problems[i], fault))
            return false;
    if (given->count > 0)
        return true;
    for (size_t t = 0; t < (quick ? 1 : COUNT(default_types)); t++)
        for (size_t d = 0; d < (quick ? 1 : COUNT(default_dims)); d++)
            for (size_t r = 0; r < COUNT(default_ratios); r++)
                if (!add_defaults(device, default_types[t], default_dims[d], default_ratios[r], quick, list, fault))
                    return false;
    return true;
}

#include "run.h"
#include "type_names.h"
#include <clfd/cache.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Greatest finite values of the fp8 formats. */
#define E4M3_MAX 448.0f
#define E5M2_MAX 57344.0f

/* One of K and V on its way into another type. */
struct job {
    clfd_type from, to;
    uint32_t dim, group; /* group: dims per scale, 0 where the type has no scales beside it */
    bool zeros;
    npy_array *values, *scales, *zero_values;
    clfd_quant *quant;
};

static bool is_fp8(clfd_type type) { return type == CLFD_TYPE_FP8_E4M3 || type == CLFD_TYPE_FP8_E5M2; }

static bool is_grouped(clfd_type type) { return type == CLFD_TYPE_INT8 || type == CLFD_TYPE_INT4; }

static bool is_plain(clfd_type type) { return type >= CLFD_TYPE_F32 && type <= CLFD_TYPE_BF16; }

/* "q8_0" or "q8_0,q4_0": K and V. */
static bool parse_types(const char *names, clfd_type types[2], tool_fault *fault)
{
    const char *comma = strchr(names, ',');

    types[0] = type_find(names, comma != NULL ? (size_t)(comma - names) : strlen(names));
    types[1] = comma != NULL ? type_find(comma + 1, strlen(comma + 1)) : types[0];
    if (types[0] != CLFD_TYPE_DEFAULT && types[1] != CLFD_TYPE_DEFAULT)
        return true;
    return fault_usage(fault, "--kvtype is '%s'; it must be one or two (K,V) of " TYPE_NAMES, names);
}

/* Arrays like `like` but for the element and the innermost dimension. */
static bool make_array(npy_array *array, const npy_array *like, char kind, size_t item_bytes, uint64_t inner,
                       tool_fault *fault)
{
    *array = (npy_array){.kind = kind, .item_bytes = (uint32_t)item_bytes, .num_dims = like->num_dims};
    memcpy(array->shape, like->shape, sizeof array->shape);
    array->shape[like->num_dims - 1] = inner;
    array->count = like->count / like->shape[like->num_dims - 1] * inner;
    array->data = malloc(array->count * item_bytes);
    return array->data != NULL ? true : fault_failed(fault, "no memory for %zu quantised values", array->count);
}

/* The scale that makes the greatest finite magnitude of a tensor the greatest code. */
static bool fp8_scale(const struct job *job, const npy_array *from, tool_fault *fault)
{
    const float greatest = job->to == CLFD_TYPE_FP8_E4M3 ? E4M3_MAX : E5M2_MAX;
    float *row = malloc(job->dim * sizeof row[0]), most = 0.0f;
    const size_t row_bytes = job->dim * from->item_bytes;

    if (row == NULL)
        return fault_failed(fault, "no memory for %u values", job->dim);
    for (size_t i = 0; i < from->count / job->dim; i++) {
        clfd_convert_to_float(job->from, (const char *)from->data + i * row_bytes, row, job->dim);
        for (uint32_t d = 0; d < job->dim; d++)
            if (isfinite(row[d]) && fabsf(row[d]) > most)
                most = fabsf(row[d]);
    }
    free(row);
    *(float *)job->scales->data = most > 0.0f ? most / greatest : 1.0f;
    return true;
}

static bool make_scales(const struct job *job, const npy_array *from, tool_fault *fault)
{
    const npy_array one = {.num_dims = 1, .shape = {1}, .count = 1};

    if (is_fp8(job->to))
        return make_array(job->scales, &one, 'f', sizeof(float), 1, fault) && fp8_scale(job, from, fault);
    if (!is_grouped(job->to))
        return true;
    job->quant->group = job->group;
    job->quant->zeros = job->zeros;
    return make_array(job->scales, from, 'f', sizeof(float), job->dim / job->group, fault) &&
           (!job->zeros || make_array(job->zero_values, from, 'f', sizeof(float), job->dim / job->group, fault));
}

/* Row by row; `from` is moved to the float row first. */
static bool convert_rows(const struct job *job, const npy_array *from, tool_fault *fault)
{
    const size_t from_bytes = job->dim * from->item_bytes, num_rows = from->count / job->dim;
    const size_t to_bytes = job->dim / clfd_type_elements(job->to) * clfd_type_size(job->to);
    const size_t num_groups = is_grouped(job->to) ? job->dim / job->group : 0;
    float *row = malloc(job->dim * sizeof row[0]), *scales = job->scales->data, *zeros = job->zero_values->data;
    clfd_status status = CLFD_SUCCESS;

    if (row == NULL)
        return fault_failed(fault, "no memory for %u values", job->dim);
    for (size_t i = 0; i < num_rows && status == CLFD_SUCCESS; i++) {
        char *to = (char *)job->values->data + i * to_bytes;
        clfd_convert_to_float(job->from, (const char *)from->data + i * from_bytes, row, job->dim);
        status = is_plain(job->to) ? clfd_convert_from_float(job->to, row, to, job->dim)
                                   : clfd_quantise_row(job->to, job->dim, job->group, row, to,
                                                       scales == NULL ? NULL : scales + i * num_groups,
                                                       zeros == NULL ? NULL : zeros + i * num_groups);
    }
    free(row);
    if (status == CLFD_SUCCESS)
        return true;
    return fault_failed(fault, "cannot convert rows of %u dims to %s: %s (%d)", job->dim, clfd_type_name(job->to),
                        clfd_status_string(status), (int)status);
}

static bool convert(struct job *job, const npy_array *from, tool_fault *fault)
{
    const uint32_t unit = clfd_type_elements(job->to);

    if (job->dim % unit != 0)
        return fault_failed(fault, "the head dim is %u; in %s it must be a multiple of %u", job->dim,
                            clfd_type_name(job->to), unit);
    if (!is_grouped(job->to))
        job->group = 0;
    else if (job->group == 0)
        job->group = job->dim;
    if (job->group > 0 && (job->group % 8 != 0 || job->dim % job->group != 0))
        return fault_failed(fault, "--kv-group is %u; it must be a multiple of 8 that divides the head dim, %u",
                            job->group, job->dim);
    return make_array(job->values, from,
                      job->to == CLFD_TYPE_BF16 ? 'u'
                      : is_plain(job->to)       ? 'f'
                                                : 'V',
                      clfd_type_size(job->to), job->dim / unit, fault) &&
           make_scales(job, from, fault) && convert_rows(job, from, fault);
}

bool run_quantise(run_input *input, const char *names, uint32_t group, bool zeros, tool_fault *fault)
{
    npy_array *arrays = input->arrays;
    clfd_attention *a = &input->attention;
    clfd_type types[2];

    if (!parse_types(names, types, fault))
        return false;
    if (!is_grouped(types[0]) && !is_grouped(types[1]) && (group > 0 || zeros))
        return fault_usage(fault, "%s is given, but --kvtype %s has no groups; int8 and int4 do",
                           group > 0 ? "--kv-group" : "--kv-zeros", names);
    input->plain = *a;
    input->plain_k = arrays[RUN_K];
    input->plain_v = arrays[RUN_V];
    arrays[RUN_K] = arrays[RUN_V] = (npy_array){0};
    struct job k = {a->k_type,           types[0],   a->head_dim, group, zeros, &arrays[RUN_K], &arrays[RUN_K_SCALE],
                    &arrays[RUN_K_ZERO], &a->k_quant};
    struct job v = {a->v_type,           types[1],   a->head_dim_v, group, zeros, &arrays[RUN_V], &arrays[RUN_V_SCALE],
                    &arrays[RUN_V_ZERO], &a->v_quant};
    if (!convert(&k, &input->plain_k, fault))
        return false;
    a->k_type = types[0];
    a->v_type = a->v_from_k ? types[0] : types[1];
    return a->v_from_k || convert(&v, &input->plain_v, fault);
}

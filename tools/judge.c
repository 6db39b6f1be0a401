#include "verify.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>

#define MAX_DIM 576

/* Tolerances, all in one place. Kernels compute in fp32, with rounding error u = 2^-24 per operation:
 *   score  a dot product of D terms in at least 8 chains errs by (D / 8 + 8) u sum|q_d k_d|, and by Cauchy and Schwarz
 *          sum|q_d k_d| <= |q| |k|; the 8 covers the reduction, the scale and the difference to the maximum
 *   sum    exp (2 ulp), and adding up n weights: below 5e-7 on PoCL at up to 2,700 keys
 *   out    an error e in every score moves out by at most 2 e max|V|; out's own type rounds by half a unit in the last
 *          place, or by half its smallest number */
#define UNIT_F32 0x1p-24
#define SUM_ERROR 4e-6

static const struct {
    double half_unit, half_smallest;
} rounding[] = {
    [CLFD_TYPE_F32] = {0x1p-24, 0x1p-150},
    [CLFD_TYPE_F16] = {0x1p-11, 0x1p-25},
    [CLFD_TYPE_BF16] = {0x1p-8, 0x1p-134},
};

/* What bounds the rows of one KV head of one sequence. */
struct bounds {
    double key_norm;  /* the largest norm of a visible key */
    double value_max; /* the largest visible |V| */
};

/* One judgement: what is compared, and what was found so far. */
struct judgement {
    const verify_trial *trial;
    const verify_images *images;
    const double *out, *lse; /* the reference's */
    trial_errors *errors;
    tool_fault *fault;
};

static void load_row(const void *base, const clfd_strides *strides, clfd_type type, uint32_t batch, uint32_t token,
                     uint32_t head, uint32_t dim, float *values)
{
    const int64_t index = batch * strides->batch + token * strides->token + head * strides->head;
    clfd_convert_to_float(type, (const unsigned char *)base + index * (int64_t)clfd_type_size(type), values, dim);
}

/* NaN and infinities, whose rows are judged without a tolerance, do not count. */
static double norm(const float *values, uint32_t dim)
{
    double sum = 0;

    for (uint32_t d = 0; d < dim; d++)
        sum += isfinite(values[d]) ? (double)values[d] * values[d] : 0;
    return sqrt(sum);
}

static struct bounds find_bounds(const struct judgement *j, uint32_t batch, uint32_t head)
{
    const verify_trial *trial = j->trial;
    const clfd_attention *a = &trial->attention;
    const void *k = image_base(trial, j->images, OPERAND_K), *v = image_base(trial, j->images, OPERAND_V);
    struct bounds bounds = {0, 0};
    float values[MAX_DIM];

    for (uint32_t t = 0; t < trial->lengths[batch]; t++) {
        load_row(k, &trial->k, a->k_type, batch, t, head, a->head_dim, values);
        bounds.key_norm = fmax(bounds.key_norm, norm(values, a->head_dim));
        if (!a->v_from_k)
            load_row(v, &trial->v, a->v_type, batch, t, head, a->head_dim_v, values);
        for (uint32_t d = 0; d < a->head_dim_v; d++)
            if (isfinite(values[d]))
                bounds.value_max = fmax(bounds.value_max, fabs(values[d]));
    }
    return bounds;
}

/* Records an error against its tolerance; false where it exceeds it. */
static bool record(double actual, double expected, double tolerance, double unit, double *error, double *of_tolerance)
{
    if (actual == expected || (isnan(actual) && isnan(expected)))
        return true;
    const double difference = isfinite(actual) && isfinite(expected) ? fabs(actual - expected) : INFINITY;
    *error = fmax(*error, difference / unit);
    *of_tolerance = fmax(*of_tolerance, tolerance > 0 ? difference / tolerance : INFINITY);
    return difference <= tolerance;
}

static bool judge_row(const struct judgement *j, uint32_t b, uint32_t i, uint32_t h, const struct bounds *bounds)
{
    const verify_trial *trial = j->trial;
    const clfd_attention *a = &trial->attention;
    const size_t row = ((size_t)b * a->q_len + i) * a->num_q_heads + h;
    const float *lse = image_base(trial, j->images, OPERAND_LSE);
    const double scale = a->scale != 0 ? fabs(a->scale) : 1 / sqrt(a->head_dim);
    float values[MAX_DIM];

    load_row(image_base(trial, j->images, OPERAND_Q), &trial->q, a->q_type, b, i, h, a->head_dim, values);
    const double score_error = UNIT_F32 * (a->head_dim / 8 + 8) * scale * norm(values, a->head_dim) * bounds->key_norm;
    /* A row without keys is exactly 0 and -inf. */
    const bool empty = isinf(j->lse[row]) && j->lse[row] < 0;
    const double lse_tolerance = empty ? 0 : SUM_ERROR + score_error + 4 * UNIT_F32 * fabs(j->lse[row]);

    if (lse != NULL && !record(lse[row], j->lse[row], lse_tolerance, 1, &j->errors->lse, &j->errors->of_tolerance))
        return fault_failed(j->fault, "lse[%u, %u, %u] is %.9g and the reference says %.9g; the tolerance is %.3g", b,
                            i, h, lse[row], j->lse[row], lse_tolerance);
    load_row(image_base(trial, j->images, OPERAND_OUT), &trial->out, a->out_type, b, i, h, a->head_dim_v, values);
    for (uint32_t d = 0; d < a->head_dim_v; d++) {
        const double expected = j->out[row * a->head_dim_v + d];
        const double rounded = rounding[a->out_type].half_unit * fabs(expected) + rounding[a->out_type].half_smallest;
        const double tolerance = empty ? 0 : (SUM_ERROR + 2 * score_error) * bounds->value_max + rounded;
        if (!record(values[d], expected, tolerance, bounds->value_max > 0 ? bounds->value_max : 1, &j->errors->out,
                    &j->errors->of_tolerance))
            return fault_failed(j->fault,
                                "out[%u, %u, %u, %u] is %.9g and the reference says %.9g; the tolerance is %.3g", b, i,
                                h, d, values[d], expected, tolerance);
    }
    return true;
}

static bool compute_reference(const verify_trial *trial, const verify_images *images, double *out, double *lse,
                              tool_fault *fault)
{
    const clfd_logger logger = fault_logger(fault);
    const clfd_host_tensors tensors = {
        .struct_size = sizeof tensors,
        .batch = trial->batch,
        .kv_len_bound = trial->kv_len_bound,
        .q = image_base(trial, images, OPERAND_Q),
        .k = image_base(trial, images, OPERAND_K),
        .v = image_base(trial, images, OPERAND_V),
        .kv_lens = trial->placements[OPERAND_KV_LENS].present ? trial->kv_lens : NULL,
        .out = out,
        .lse = lse,
    };
    const clfd_status status = clfd_reference_attention(&trial->attention, &tensors, &logger);

    return status == CLFD_SUCCESS ? true : fault_status(fault, status, "clfd_reference_attention");
}

bool judge_trial(const verify_trial *trial, const verify_images *images, trial_errors *errors, tool_fault *fault)
{
    const clfd_attention *a = &trial->attention;
    const uint32_t ratio = a->num_q_heads / a->num_kv_heads;
    const size_t num_rows = (size_t)trial->batch * a->q_len * a->num_q_heads;
    double *out = malloc(num_rows * a->head_dim_v * sizeof out[0]), *lse = malloc(num_rows * sizeof lse[0]);
    const struct judgement judgement = {trial, images, out, lse, errors, fault};
    bool good = false;

    if (out == NULL || lse == NULL) {
        fault_failed(fault, "no memory for the reference of %zu rows", num_rows);
        goto done;
    }
    if (!compute_reference(trial, images, out, lse, fault))
        goto done;
    for (uint32_t b = 0; b < trial->batch; b++)
        for (uint32_t head = 0; head < a->num_kv_heads; head++) {
            const struct bounds bounds = find_bounds(&judgement, b, head);
            for (uint32_t i = 0; i < a->q_len; i++)
                for (uint32_t r = 0; r < ratio; r++)
                    if (!judge_row(&judgement, b, i, head * ratio + r, &bounds))
                        goto done;
        }
    good = true;

done:
    free(out);
    free(lse);
    return good;
}

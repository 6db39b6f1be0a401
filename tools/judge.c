#include "verify_judge.h"
#include <math.h>
#include <stdlib.h>

/* One judgement: what is compared, and what was found so far. */
struct judgement {
    const verify_trial *trial;
    const verify_images *images;
    double *out, *lse; /* the reference's */
    uint32_t status;
    trial_errors *errors;
    tool_fault *fault;
};

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

static bool judge_row(const struct judgement *j, uint32_t b, uint32_t i, uint32_t h, const judge_bounds *bounds)
{
    const verify_trial *trial = j->trial;
    const clfd_attention *a = &trial->attention;
    const size_t row = ((size_t)b * a->q_len + i) * a->num_q_heads + h, element = clfd_type_size(a->out_type);
    const int64_t index = b * trial->out.batch + i * trial->out.token + h * trial->out.head;
    const float *lse = image_base(trial, j->images, OPERAND_LSE);
    const judge_tolerance tolerance = judge_find_tolerance(trial, j->images, bounds, b, i, h, j->lse[row]);
    float values[TRIAL_MAX_DIM];

    /* Or poison that somebody saw would be right on both sides. */
    if (isnan(j->lse[row]) && trial->contents != CONTENTS_SPECIAL)
        return fault_failed(j->fault, "lse[%u, %u, %u] of the reference is NaN, and no row sees one", b, i, h);
    if (lse != NULL && !record(lse[row], j->lse[row], tolerance.lse, 1, &j->errors->lse, &j->errors->of_tolerance))
        return fault_failed(j->fault, "lse[%u, %u, %u] is %.9g and the reference says %.9g; the tolerance is %.3g", b,
                            i, h, lse[row], j->lse[row], tolerance.lse);
    clfd_convert_to_float(a->out_type,
                          (const unsigned char *)image_base(trial, j->images, OPERAND_OUT) + index * (int64_t)element,
                          values, a->head_dim_v);
    for (uint32_t d = 0; d < a->head_dim_v; d++) {
        const double expected = j->out[row * a->head_dim_v + d];
        const double allowed = tolerance.out + tolerance.half_unit * fabs(expected) + tolerance.half_smallest;
        if (!record(values[d], expected, allowed, bounds->value_max > 0 ? bounds->value_max : 1, &j->errors->out,
                    &j->errors->of_tolerance))
            return fault_failed(j->fault,
                                "out[%u, %u, %u, %u] is %.9g and the reference says %.9g; the tolerance is %.3g", b, i,
                                h, d, values[d], expected, allowed);
    }
    return true;
}

/* Both words, the device's and the reference's, against the bits that the problem was drawn to set. */
static bool judge_status(const struct judgement *j)
{
    const verify_trial *trial = j->trial;
    const uint32_t *word = image_base(trial, j->images, OPERAND_STATUS);

    if (j->status != trial->flags)
        return fault_failed(j->fault, "the reference's status word is 0x%x; the problem was drawn to give 0x%x",
                            j->status, trial->flags);
    if (word != NULL && *word != (trial->status_before | trial->flags))
        return fault_failed(j->fault, "the status word is 0x%x; it was 0x%x, and 0x%x should have been set", *word,
                            trial->status_before, trial->flags);
    return true;
}

bool judge_compute_reference(const verify_trial *trial, const verify_images *images, double *out, double *lse,
                             uint32_t *word, tool_fault *fault)
{
    const clfd_logger logger = fault_logger(fault);
    const clfd_host_tensors tensors = {
        .struct_size = sizeof tensors,
        .batch = trial->batch,
        .kv_len_bound = trial->kv_len_bound,
        .num_page_indices = trial->attention.paging == CLFD_PAGING_CSR ? trial->num_table_entries : 0,
        .q = image_base(trial, images, OPERAND_Q),
        .k = image_base(trial, images, OPERAND_K),
        .v = image_base(trial, images, OPERAND_V),
        .kv_lens = image_base(trial, images, OPERAND_KV_LENS),
        .alibi = image_base(trial, images, OPERAND_ALIBI),
        .bias = image_base(trial, images, OPERAND_BIAS),
        .mask = image_base(trial, images, OPERAND_MASK),
        .sinks = image_base(trial, images, OPERAND_SINKS),
        .query_positions = image_base(trial, images, OPERAND_QUERY_POSITIONS),
        .kv_start = image_base(trial, images, OPERAND_KV_START),
        .cache_batch_idx = image_base(trial, images, OPERAND_CACHE_BATCH_IDX),
        .block_table = image_base(trial, images, OPERAND_BLOCK_TABLE),
        .page_indptr = image_base(trial, images, OPERAND_PAGE_INDPTR),
        .k_scale = image_base(trial, images, OPERAND_K_SCALE),
        .v_scale = image_base(trial, images, OPERAND_V_SCALE),
        .k_zero = image_base(trial, images, OPERAND_K_ZERO),
        .v_zero = image_base(trial, images, OPERAND_V_ZERO),
        .out = out,
        .lse = lse,
        .status = word,
    };
    const clfd_status status = clfd_reference_attention(&trial->attention, &tensors, &logger);

    return status == CLFD_SUCCESS ? true : fault_status(fault, status, "clfd_reference_attention");
}

static bool judge_rows(const struct judgement *j)
{
    const clfd_attention *a = &j->trial->attention;
    const uint32_t ratio = a->num_q_heads / a->num_kv_heads;

    for (uint32_t head = 0; head < a->num_kv_heads; head++) {
        judge_bounds bounds = {0, 0};
        for (uint32_t b = 0; b < j->trial->batch; b++) {
            if (b == 0 || !a->shared_kv)
                bounds = judge_find_bounds(j->trial, j->images, view_sequence(j->trial, b), head);
            for (uint32_t i = 0; i < a->q_len; i++)
                for (uint32_t r = 0; r < ratio; r++)
                    if (!judge_row(j, b, i, head * ratio + r, &bounds))
                        return false;
        }
    }
    return true;
}

bool judge_trial(const verify_trial *trial, const verify_images *images, trial_errors *errors, tool_fault *fault)
{
    const clfd_attention *a = &trial->attention;
    const size_t num_rows = (size_t)trial->batch * a->q_len * a->num_q_heads;
    struct judgement j = {.trial = trial, .images = images, .errors = errors, .fault = fault};
    bool good = false;

    j.out = malloc(num_rows * a->head_dim_v * sizeof j.out[0]);
    j.lse = malloc(num_rows * sizeof j.lse[0]);
    if (j.out == NULL || j.lse == NULL)
        fault_failed(fault, "no memory for the reference of %zu rows", num_rows);
    else
        good = judge_compute_reference(trial, images, j.out, j.lse, &j.status, fault) && judge_rows(&j) &&
               judge_status(&j);
    free(j.out);
    free(j.lse);
    return good;
}

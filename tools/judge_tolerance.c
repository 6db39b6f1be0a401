#include "verify_fill.h"
#include "verify_judge.h"
#include <math.h>

/* Tolerances, all in one place. Kernels compute in fp32, with rounding error u = 2^-24 per operation:
 *   dot      a dot product of D terms in at least 8 chains errs by (D / 8 + 8) u sum|q_d k_d|, and by Cauchy and Schwarz
 *            sum|q_d k_d| <= |q| |k|; the 8 covers the reduction, the scale and the difference to the maximum. Of
 *            quantised types k is the dequantised value: scales change what is summed, not how; a zero that is taken out
 *            of the sum counts as a term of its own, |k| = |code scale| + |zero scale|
 *   softcap  its slope is at most 1, so the dot product's error does not grow; tanh by itself or from exp is good to 8
 *            units in the last place, 16 u, times the cap
 *   added    ALiBi and bias round in each of at most 8 operations: the distance, the slope, their product, the
 *            difference, the bias, the sum, the difference to the maximum and the argument of exp. None is above
 *            8 u (|score before| + |ALiBi| + |bias|)
 *   sink     one logit more, whose argument of exp rounds likewise
 *   sum      exp (2 ulp), and adding up n weights: below 5e-7 on PoCL at up to 2,700 keys
 *   weights  that a plan rounds to f16: half a unit in the last place of each, or half the smallest number, of which the
 *            greatest weight is 2^7 / 2^-25 times as much
 *   out      an error e in every score moves out by at most 2 e max|V|; out's own type rounds by half a unit in the last
 *            place, or by half its smallest number
 *
 * An error counts by the weight of its key. A term x of a score s = x + rest weighs |x| <= |rest| + |s| at most, and with
 * weights w = exp(s - lse), sum w |s| <= |lse| + sum w log(1 / w) <= |lse| + log(keys + 1). So far keys under ALiBi, and
 * keys under a bias of -1e30, do not widen what a row of near ones may differ by. */
#define UNIT_F32 0x1p-24
#define SUM_ERROR 4e-6
#define SOFTCAP_UNITS 16
#define ADDED_UNITS 8
#define HALF_UNIT_F16 0x1p-12
#define HALF_SMALLEST_WEIGHT 0x1p-32

static const struct {
    double half_unit, half_smallest;
} rounding[] = {
    [CLFD_TYPE_F32] = {0x1p-24, 0x1p-150},
    [CLFD_TYPE_F16] = {0x1p-11, 0x1p-25},
    [CLFD_TYPE_BF16] = {0x1p-8, 0x1p-134},
};

/* NaN and infinities, whose rows are judged without a tolerance, do not count. */
static double norm(const float *values, uint32_t dim)
{
    double sum = 0;

    for (uint32_t d = 0; d < dim; d++)
        sum += isfinite(values[d]) ? (double)values[d] * values[d] : 0;
    return sqrt(sum);
}

judge_bounds judge_find_bounds(const verify_trial *trial, const verify_images *images, uint32_t sequence, uint32_t head)
{
    const verify_tensor k = view_tensor(trial, images, OPERAND_K), v = view_tensor(trial, images, OPERAND_V);
    judge_bounds bounds = {0, 0};
    float values[TRIAL_MAX_DIM], magnitudes[TRIAL_MAX_DIM];
    view_slot slot;

    for (uint32_t t = 0; t < trial->lengths[sequence]; t++) {
        if (!view_slot_of(trial, images, sequence, t, &slot) || !view_key_seen(trial, images, sequence, t))
            continue;
        view_load(&k, slot, head, values, magnitudes);
        bounds.key_norm = fmax(bounds.key_norm, norm(magnitudes, k.dim));
        if (!view_value_seen(trial, images, sequence, t, head))
            continue;
        view_load(&v, slot, head, values, magnitudes);
        for (uint32_t d = 0; d < v.dim; d++)
            if (isfinite(magnitudes[d]))
                bounds.value_max = fmax(bounds.value_max, magnitudes[d]);
    }
    return bounds;
}

/* What is added to the scores of one row. */
struct added {
    double distance; /* greatest |key - position| */
    double bias;     /* greatest |bias| but for those that hide their keys */
    uint32_t keys;   /* whose score is above -inf, as far as the bias says */
};

static struct added find_added(const verify_trial *trial, const verify_images *images, uint32_t b, uint32_t i,
                               uint32_t h)
{
    const view_keys keys = view_row_keys(trial, b, i);
    const int64_t position = view_position(trial, b, i);
    struct added added = {0, 0, 0};
    view_slot slot;

    for (uint32_t t = keys.first; t < keys.end; t++) {
        if (!view_mask_shows(trial, images, b, i, t) || !view_slot_of(trial, images, view_sequence(trial, b), t, &slot))
            continue;
        const double bias = view_bias(trial, images, b, h, i, t);
        if (bias == -INFINITY)
            continue;
        added.keys++;
        added.distance = fmax(added.distance, fabs((double)t - (double)position));
        if (fabs(bias) <= (double)FILL_BIAS_MOST)
            added.bias = fmax(added.bias, fabs(bias));
    }
    return added;
}

/* The error of a score, weighted as the head of this file says. dot: greatest |score| before anything is added. */
static double added_error(const verify_trial *trial, const verify_images *images, const struct added *added, uint32_t h,
                          double dot, double lse)
{
    const clfd_attention *a = &trial->attention;
    const float *slopes = image_base(trial, images, OPERAND_ALIBI), *sinks = image_base(trial, images, OPERAND_SINKS);
    const double weighted = fabs(lse) + log(added->keys + 1.0);
    double terms = 0;

    if (a->alibi)
        terms += fmin(fabs(slopes[h]) * added->distance, dot + added->bias + weighted);
    if (a->bias_type != CLFD_TYPE_DEFAULT)
        terms += added->bias;
    if (a->alibi || a->bias_type != CLFD_TYPE_DEFAULT)
        terms += dot;
    /* A row of nothing but hidden keys. */
    if (trial->masking_bias && -lse > (double)FILL_BIAS_MOST)
        terms += -lse;
    if (a->sinks && isfinite(sinks[h]))
        terms += fmin(fabs(sinks[h]), weighted);
    return ADDED_UNITS * UNIT_F32 * terms;
}

judge_tolerance judge_find_tolerance(const verify_trial *trial, const verify_images *images, const judge_bounds *bounds,
                                     uint32_t b, uint32_t i, uint32_t h, double lse)
{
    const clfd_attention *a = &trial->attention;
    const double scale = a->scale != 0 ? fabs(a->scale) : 1 / sqrt(a->head_dim);
    const int64_t row = b * trial->q.batch + i * trial->q.token + h * trial->q.head;
    const struct added added = find_added(trial, images, b, i, h);
    judge_tolerance tolerance = {0, 0, 0, 0};
    float q[TRIAL_MAX_DIM];

    /* A row without keys is exactly 0, and its lse -inf or the sink. */
    if (added.keys == 0 || (isinf(lse) && lse < 0)) {
        tolerance.lse = isinf(lse) ? 0 : SUM_ERROR + 4 * UNIT_F32 * fabs(lse);
        return tolerance;
    }
    clfd_convert_to_float(a->q_type,
                          (const unsigned char *)image_base(trial, images, OPERAND_Q) +
                              row * (int64_t)clfd_type_size(a->q_type),
                          q, a->head_dim);
    double dot = scale * norm(q, a->head_dim) * bounds->key_norm;
    double score_error = UNIT_F32 * (a->head_dim / 8 + 8) * dot;
    if (a->softcap > 0) {
        dot = fmin(dot, a->softcap);
        score_error += SOFTCAP_UNITS * UNIT_F32 * a->softcap;
    }
    score_error += added_error(trial, images, &added, h, dot, lse);
    tolerance.lse = SUM_ERROR + score_error + 4 * UNIT_F32 * fabs(lse);
    tolerance.out = (SUM_ERROR + 2 * score_error) * bounds->value_max;
    if (trial->f16_weights)
        tolerance.out += (HALF_UNIT_F16 + HALF_SMALLEST_WEIGHT * added.keys) * bounds->value_max;
    tolerance.half_unit = rounding[a->out_type].half_unit;
    tolerance.half_smallest = rounding[a->out_type].half_smallest;
    return tolerance;
}

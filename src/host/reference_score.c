/* reference_score.c - the score pipeline for one row and one key. */
#include "host/reference_parts.h"
#include <math.h>

#define LANES 8 /* partial sums of a dot product, for the compiler to vectorise; divides every head_dim */

static double dot(const double *a, const double *b, uint32_t dim)
{
    double sums[LANES] = {0};

    for (uint32_t d = 0; d < dim; d += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += a[d + lane] * b[d + lane];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++)
            sums[lane] += sums[lane + half];
    return sums[0];
}

void clfd_set_range(const clfd_attention *a, const clfd_sequence *sequence, clfd_query_row *row)
{
    row->first = sequence->first;
    row->limit = sequence->kv_len;
    if (a->causal && row->position + 1 < row->limit)
        row->limit = row->position + 1;
    if (a->window != 0 && row->position - a->window + 1 > row->first)
        row->first = row->position - a->window + 1;
}

bool clfd_is_masked(const clfd_reference *r, const clfd_sequence *sequence, const clfd_query_row *row, int64_t j)
{
    const clfd_attention *a = &r->attention;
    const int64_t offset = sequence->batch * a->mask_strides.batch + row->query * a->mask_strides.query;
    const int64_t bit = j - (sequence->kv_len - a->q_len); /* of a tree mask; the keys before bit 0 are visible */

    if (a->mask == CLFD_MASK_BOOL)
        return ((const uint8_t *)r->tensors.mask)[offset + j * a->mask_strides.key] == 0;
    return a->mask == CLFD_MASK_TREE && bit >= 0 && (((const uint32_t *)r->tensors.mask)[offset] >> bit & 1u) == 0;
}

double clfd_score_of(const clfd_reference *r, const clfd_sequence *sequence, const clfd_query_row *row, int64_t j)
{
    const clfd_attention *a = &r->attention;
    const clfd_score_strides *s = &a->bias_strides;
    double score = (double)a->scale * dot(row->q, r->kv_row, a->head_dim);

    if (a->softcap != 0.0f)
        score = (double)a->softcap * tanh(score / (double)a->softcap);
    if (a->alibi)
        score -= (double)r->tensors.alibi[row->head] * fabs((double)(j - row->position));
    if (a->bias_type != CLFD_TYPE_DEFAULT)
        score +=
            clfd_load_number(a->bias_type, r->tensors.bias,
                             sequence->batch * s->batch + row->head * s->head + row->query * s->query + j * s->key);
    return score;
}

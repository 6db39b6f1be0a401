/* reference.c - attention by its definition, in double precision: what every kernel is measured against.
 *
 * The query rows that share a KV head go through its keys in blocks, so that a row of K or V is converted once per
 * block. No row's arithmetic depends on the rows beside it.
 */
#include "host/reference_parts.h"
#include "plan/check.h"
#include "struct_size.h"
#include <math.h>
#include <stdlib.h>

#define BLOCK_ROWS 16 /* rows whose scores are kept at a time: 128 bytes per key */

static void add_scaled(double *restrict sums, const double *restrict values, double weight, uint32_t dim)
{
    for (uint32_t d = 0; d < dim; d++)
        sums[d] += weight * values[d];
}

/* Prepares row `index` of a KV head, 0 .. q_len * ratio - 1, as row `slot` of a block. */
static clfd_query_row start_row(const clfd_reference *r, const clfd_sequence *sequence, uint32_t kv_head,
                                uint32_t index, uint32_t slot)
{
    const clfd_attention *a = &r->attention;
    const uint32_t batch = sequence->batch, query = index / r->ratio, head = kv_head * r->ratio + index % r->ratio;
    const size_t result = ((size_t)batch * a->q_len + query) * a->num_q_heads + head;
    double *q = r->q_rows + (size_t)slot * a->head_dim;
    clfd_query_row row = {.query = query,
                          .head = head,
                          .q = q,
                          .scores = r->scores + slot * r->longest,
                          .out = r->tensors.out + result * a->head_dim_v,
                          .lse = r->tensors.lse != NULL ? r->tensors.lse + result : NULL,
                          .position = a->query_positions ? r->tensors.query_positions[(size_t)batch * a->q_len + query]
                                                         : sequence->kv_len - a->q_len + query,
                          .max = -INFINITY};

    clfd_set_range(a, sequence, &row);
    clfd_load_query(r, batch * a->q_strides.batch + query * a->q_strides.token + head * a->q_strides.head, q);
    for (uint32_t d = 0; d < a->head_dim_v; d++)
        row.out[d] = 0.0;
    return row;
}

static bool in_range(const clfd_query_row *row, int64_t j) { return j >= row->first && j < row->limit; }

/* One key of the first pass: its scores, and the maximum so far. */
static void score_key(clfd_reference *r, const clfd_sequence *sequence, uint32_t kv_head, int64_t j,
                      clfd_query_row *rows, uint32_t num_rows)
{
    bool needed = false;

    for (uint32_t i = 0; i < num_rows; i++)
        needed = needed || in_range(&rows[i], j);
    const bool exists = needed && clfd_load_key(r, sequence, j, kv_head);
    for (clfd_query_row *row = rows; needed && row < rows + num_rows; row++) {
        if (!in_range(row, j))
            continue;
        row->scores[j] = -INFINITY;
        if (!exists || clfd_is_masked(r, sequence, row, j))
            continue;
        const double score = row->scores[j] = clfd_score_of(r, sequence, row, j);
        if (score > row->max)
            row->max = score;
        if (!(score < INFINITY))
            row->invalid = true;
    }
}

/* A sink is one more score, of a key without a value: the sums begin with it. */
static void add_sink(const clfd_reference *r, clfd_query_row *row)
{
    const double sink = r->attention.sinks ? (double)r->tensors.sinks[row->head] : -INFINITY;

    if (!(sink < INFINITY))
        row->invalid = true;
    if (sink > row->max)
        row->max = sink;
    if (sink > -INFINITY && !row->invalid)
        row->sum = exp(sink - row->max);
}

/* One key of the second pass: the sum of the weights, and of the values times their weights. */
static void sum_value(clfd_reference *r, const clfd_sequence *sequence, uint32_t kv_head, int64_t j,
                      clfd_query_row *rows, uint32_t num_rows)
{
    const uint32_t dim = r->attention.head_dim_v;
    bool loaded = false;

    for (clfd_query_row *row = rows; row < rows + num_rows; row++) {
        if (row->invalid || !in_range(row, j) || row->scores[j] == -INFINITY)
            continue;
        loaded = loaded || clfd_load_value(r, sequence, j, kv_head); /* the page exists: the key was scored */
        const double weight = exp(row->scores[j] - row->max);
        row->sum += weight;
        add_scaled(row->out, r->kv_row, weight, dim);
    }
}

/* A row that saw no key has the sum 0 and gives zeros; what is divided by NaN is NaN. */
static void finish_row(const clfd_query_row *row, uint32_t dim)
{
    const double divisor = row->invalid ? NAN : row->sum == 0.0 ? 1.0 : row->sum;

    for (uint32_t d = 0; d < dim; d++)
        row->out[d] /= divisor;
    if (row->lse != NULL)
        *row->lse = row->sum == 0.0 && !row->invalid ? -INFINITY : row->max + log(divisor);
}

/* All rows of one KV head of one sequence. */
static void attend(clfd_reference *r, const clfd_sequence *sequence, uint32_t kv_head)
{
    const uint32_t total = r->attention.q_len * r->ratio;
    clfd_query_row rows[BLOCK_ROWS];

    for (uint32_t done = 0; done < total; done += BLOCK_ROWS) {
        const uint32_t num_rows = total - done < BLOCK_ROWS ? total - done : BLOCK_ROWS;
        int64_t first = INT64_MAX, limit = 0; /* of the block */
        for (uint32_t slot = 0; slot < num_rows; slot++) {
            const clfd_query_row row = rows[slot] = start_row(r, sequence, kv_head, done + slot, slot);
            first = row.first < first ? row.first : first;
            limit = row.limit > limit ? row.limit : limit;
        }
        for (int64_t j = first; j < limit; j++)
            score_key(r, sequence, kv_head, j, rows, num_rows);
        for (uint32_t slot = 0; slot < num_rows; slot++)
            add_sink(r, &rows[slot]);
        for (int64_t j = first; j < limit; j++)
            sum_value(r, sequence, kv_head, j, rows, num_rows);
        for (uint32_t slot = 0; slot < num_rows; slot++)
            finish_row(&rows[slot], r->attention.head_dim_v);
    }
}

/* Finds the longest sequence and allocates the scratch memory. */
static clfd_status allocate(clfd_reference *r, const clfd_logger *logger)
{
    const clfd_attention *a = &r->attention;
    const uint32_t widest = a->head_dim > a->head_dim_v ? a->head_dim : a->head_dim_v;
    const uint32_t total = a->q_len * r->ratio, rows = total < BLOCK_ROWS ? total : BLOCK_ROWS;

    r->longest = 1;
    for (uint32_t b = 0; b < r->tensors.batch; b++)
        if (clfd_sequence_length(r, b) > r->longest)
            r->longest = clfd_sequence_length(r, b);
    r->loaded = calloc(widest, sizeof *r->loaded);
    r->kv_row = calloc(widest, sizeof *r->kv_row);
    r->q_rows = calloc((size_t)rows * a->head_dim, sizeof *r->q_rows);
    r->scores = calloc((size_t)r->longest, rows * sizeof *r->scores);
    if (r->loaded == NULL || r->kv_row == NULL || r->q_rows == NULL || r->scores == NULL)
        return clfd_fail(logger, CLFD_ERROR_HOST_MEMORY, "no memory for the scores of %u rows of %lld keys", rows,
                         (long long)r->longest);
    return CLFD_SUCCESS;
}

clfd_status clfd_reference_attention(const clfd_attention *attention, const clfd_host_tensors *tensors,
                                     const clfd_logger *logger)
{
    clfd_reference r = {.longest = 0};
    clfd_status status = clfd_complete_attention(attention, &r.attention, logger);

    if (status == CLFD_SUCCESS)
        status = clfd_read_struct(tensors, &r.tensors, sizeof r.tensors, "clfd_host_tensors", logger);
    if (status == CLFD_SUCCESS)
        status = clfd_check_host_tensors(&r.attention, &r.tensors, logger);
    if (status != CLFD_SUCCESS)
        return status;
    r.ratio = r.attention.num_q_heads / r.attention.num_kv_heads;
    status = allocate(&r, logger);
    if (status != CLFD_SUCCESS)
        goto done;
    for (uint32_t b = 0; b < r.tensors.batch; b++) {
        const clfd_sequence sequence = clfd_find_sequence(&r, b);
        for (uint32_t g = 0; g < r.attention.num_kv_heads; g++)
            attend(&r, &sequence, g);
    }
    if (r.tensors.status != NULL)
        *r.tensors.status |= r.flags;
done:
    free(r.loaded);
    free(r.kv_row);
    free(r.q_rows);
    free(r.scores);
    return status;
}

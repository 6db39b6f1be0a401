/* reference.c - attention by its definition, in double precision: what every kernel is measured against.
 *
 * The query rows that share a KV head go through its keys in blocks, so that a row of K or V is converted once per
 * block. No row's arithmetic depends on the rows beside it.
 */
#include "plan/check.h"
#include "struct_size.h"
#include <math.h>
#include <stdlib.h>

#define BLOCK_ROWS 16 /* rows whose scores are kept at a time: 128 bytes per key */
#define LANES 8       /* partial sums of a dot product, for the compiler to vectorise; divides every head_dim */

/* A validated call and its scratch memory. */
typedef struct reference {
    clfd_attention attention; /* complete */
    clfd_host_tensors tensors;
    uint32_t ratio;  /* query heads per KV head */
    float *loaded;   /* [widest dim] a row of q, K or V as float */
    double *kv_row;  /* [widest dim] a row of K or V */
    double *q_rows;  /* [BLOCK_ROWS][head_dim] */
    double *scores;  /* [BLOCK_ROWS][longest] */
    int64_t longest; /* greatest length of the batch */
} reference;

/* One query row of a block. */
typedef struct query_row {
    const double *q;
    double *scores;
    double *out;   /* where the result goes; the sums meanwhile */
    double *lse;   /* likewise; may be NULL */
    int64_t limit; /* the row sees keys below this; none where it is not positive */
    double max, sum;
    bool invalid; /* a score was NaN or +inf */
} query_row;

static int64_t sequence_length(const reference *r, uint32_t batch)
{
    const int64_t max_kv_len = r->attention.max_kv_len, given = r->tensors.kv_len_bound;
    const int64_t bound = given > 0 && given < max_kv_len ? given : max_kv_len;
    const int64_t length = r->tensors.kv_lens != NULL ? r->tensors.kv_lens[batch] : bound;

    return length < 0 ? 0 : length > bound ? bound : length;
}

/* row[d] = element offset + d of a tensor. */
static void load_row(const reference *r, clfd_type type, const void *tensor, int64_t offset, uint32_t dim, double *row)
{
    const char *first = (const char *)tensor + (size_t)offset * clfd_type_size(type);

    (void)clfd_convert_to_float(type, first, r->loaded, dim); /* cannot fail: the type was checked */
    for (uint32_t d = 0; d < dim; d++)
        row[d] = (double)r->loaded[d];
}

static int64_t offset_of(const clfd_strides *strides, int64_t batch, int64_t token, int64_t head)
{
    return batch * strides->batch + token * strides->token + head * strides->head;
}

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

static void add_scaled(double *restrict sums, const double *restrict values, double weight, uint32_t dim)
{
    for (uint32_t d = 0; d < dim; d++)
        sums[d] += weight * values[d];
}

/* Prepares row `index` of a KV head, 0 .. q_len * ratio - 1, as row `slot` of a block. */
static query_row start_row(const reference *r, uint32_t batch, uint32_t kv_head, uint32_t index, uint32_t slot,
                           int64_t kv_len)
{
    const clfd_attention *a = &r->attention;
    const uint32_t query = index / r->ratio, head = kv_head * r->ratio + index % r->ratio;
    const size_t result = ((size_t)batch * a->q_len + query) * a->num_q_heads + head;
    const int64_t position = kv_len - a->q_len + query;
    double *q = r->q_rows + (size_t)slot * a->head_dim;
    query_row row = {.q = q,
                     .scores = r->scores + slot * r->longest,
                     .out = r->tensors.out + result * a->head_dim_v,
                     .lse = r->tensors.lse != NULL ? r->tensors.lse + result : NULL,
                     .limit = !a->causal     ? kv_len
                              : position < 0 ? 0
                                             : position + 1,
                     .max = -INFINITY};

    load_row(r, a->q_type, r->tensors.q, offset_of(&a->q_strides, batch, query, head), a->head_dim, q);
    for (uint32_t d = 0; d < a->head_dim_v; d++)
        row.out[d] = 0.0;
    return row;
}

/* First pass: scores and their maximum. */
static void score_keys(const reference *r, uint32_t batch, uint32_t kv_head, int64_t num_keys, query_row *rows,
                       uint32_t num_rows)
{
    const clfd_attention *a = &r->attention;

    for (int64_t j = 0; j < num_keys; j++) {
        load_row(r, a->k_type, r->tensors.k, offset_of(&a->k_strides, batch, j, kv_head), a->head_dim, r->kv_row);
        for (query_row *row = rows; row < rows + num_rows; row++) {
            if (j >= row->limit)
                continue;
            const double score = (double)a->scale * dot(row->q, r->kv_row, a->head_dim);
            row->scores[j] = score;
            if (score > row->max)
                row->max = score;
            if (!(score < INFINITY))
                row->invalid = true;
        }
    }
}

/* Second pass: the sum of the weights, and of the values times their weights. */
static void sum_values(const reference *r, uint32_t batch, uint32_t kv_head, int64_t num_keys, query_row *rows,
                       uint32_t num_rows)
{
    const clfd_attention *a = &r->attention;
    const void *v = a->v_from_k ? r->tensors.k : r->tensors.v;

    for (int64_t j = 0; j < num_keys; j++) {
        load_row(r, a->v_type, v, offset_of(&a->v_strides, batch, j, kv_head), a->head_dim_v, r->kv_row);
        for (query_row *row = rows; row < rows + num_rows; row++) {
            if (row->invalid || j >= row->limit || row->scores[j] == -INFINITY)
                continue;
            const double weight = exp(row->scores[j] - row->max);
            row->sum += weight;
            add_scaled(row->out, r->kv_row, weight, a->head_dim_v);
        }
    }
}

/* A row that saw no key has the sum 0 and gives zeros; what is divided by NaN is NaN. */
static void finish_row(const query_row *row, uint32_t dim)
{
    const double divisor = row->invalid ? NAN : row->sum == 0.0 ? 1.0 : row->sum;

    for (uint32_t d = 0; d < dim; d++)
        row->out[d] /= divisor;
    if (row->lse != NULL)
        *row->lse = row->sum == 0.0 && !row->invalid ? -INFINITY : row->max + log(divisor);
}

/* All rows of one KV head of one sequence. */
static void attend(const reference *r, uint32_t batch, uint32_t kv_head)
{
    const uint32_t total = r->attention.q_len * r->ratio;
    const int64_t kv_len = sequence_length(r, batch);
    query_row rows[BLOCK_ROWS];

    for (uint32_t first = 0; first < total; first += BLOCK_ROWS) {
        const uint32_t num_rows = total - first < BLOCK_ROWS ? total - first : BLOCK_ROWS;
        for (uint32_t slot = 0; slot < num_rows; slot++)
            rows[slot] = start_row(r, batch, kv_head, first + slot, slot, kv_len);
        const int64_t num_keys = rows[num_rows - 1].limit; /* later queries see more */
        score_keys(r, batch, kv_head, num_keys, rows, num_rows);
        sum_values(r, batch, kv_head, num_keys, rows, num_rows);
        for (uint32_t slot = 0; slot < num_rows; slot++)
            finish_row(&rows[slot], r->attention.head_dim_v);
    }
}

static clfd_status check_tensors(const reference *r, const clfd_logger *logger)
{
    const clfd_host_tensors *t = &r->tensors;
    const struct {
        const void *pointer;
        const char *name;
    } required[] = {{t->q, "q"}, {t->k, "k"}, {r->attention.v_from_k ? t->k : t->v, "v"}, {t->out, "out"}};

    if (t->batch > r->attention.max_batch)
        return clfd_fail(logger, CLFD_ERROR_BATCH_RANGE, "batch is %u; it must not exceed max_batch, %u", t->batch,
                         r->attention.max_batch);
    for (size_t i = 0; i < sizeof required / sizeof required[0] && t->batch > 0; i++)
        if (required[i].pointer == NULL)
            return clfd_fail(logger, CLFD_ERROR_NULL_ARGUMENT, "clfd_host_tensors.%s is NULL", required[i].name);
    if (r->attention.v_from_k && t->v != NULL)
        return clfd_fail(logger, CLFD_ERROR_BUFFER_UNEXPECTED,
                         "clfd_host_tensors.v is set; with v_from_k there is none");
    return CLFD_SUCCESS;
}

/* Finds the longest sequence and allocates the scratch memory. */
static clfd_status allocate(reference *r, const clfd_logger *logger)
{
    const clfd_attention *a = &r->attention;
    const uint32_t widest = a->head_dim > a->head_dim_v ? a->head_dim : a->head_dim_v;
    const uint32_t total = a->q_len * r->ratio, rows = total < BLOCK_ROWS ? total : BLOCK_ROWS;

    r->longest = 1;
    for (uint32_t b = 0; b < r->tensors.batch; b++)
        if (sequence_length(r, b) > r->longest)
            r->longest = sequence_length(r, b);
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
    reference r = {.longest = 0};
    clfd_status status = clfd_complete_attention(attention, &r.attention, logger);

    if (status == CLFD_SUCCESS)
        status = clfd_read_struct(tensors, &r.tensors, sizeof r.tensors, "clfd_host_tensors", logger);
    if (status == CLFD_SUCCESS)
        status = check_tensors(&r, logger);
    if (status != CLFD_SUCCESS)
        return status;
    r.ratio = r.attention.num_q_heads / r.attention.num_kv_heads;
    status = allocate(&r, logger);
    if (status != CLFD_SUCCESS)
        goto done;
    for (uint32_t b = 0; b < r.tensors.batch; b++)
        for (uint32_t g = 0; g < r.attention.num_kv_heads; g++)
            attend(&r, b, g);
done:
    free(r.loaded);
    free(r.kv_row);
    free(r.q_rows);
    free(r.scores);
    return status;
}

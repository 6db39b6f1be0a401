#include "bench.h"
#include "rng.h"
#include <math.h>
#include <stdlib.h>

#define SEED 1u
enum { PURPOSE_LENGTHS, PURPOSE_STARTS, PURPOSE_ROWS, PURPOSE_PAGES, PURPOSE_SINKS };

/* Pages beyond those in use, as an engine's pool has them. */
#define SPARE_PAGES(used) ((used) / 16 + 1)

static uint32_t num_sequences(const clfd_attention *a) { return a->shared_kv ? 1 : a->max_batch; }

static void *make(bench_part *part, bench_table table, uint64_t count, tool_fault *fault)
{
    void *data = count > SIZE_MAX / sizeof(int32_t) ? NULL : calloc((size_t)count + 1, sizeof(int32_t));

    part->tables[table].data = data;
    part->tables[table].count = (size_t)count;
    if (data == NULL)
        fault_failed(fault, "no memory for a table of %llu entries", (unsigned long long)count);
    return data;
}

/* 0 .. count - 1 in an order of its own. */
static void shuffle(int32_t *values, uint32_t count, rng_state *rng)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t j = rng_below(rng, i + 1);
        values[i] = values[j];
        values[j] = (int32_t)i;
    }
}

/* Each power of two between the bounds equally likely. */
static int32_t draw_length(const bench_problem *problem, rng_state *rng)
{
    const uint32_t zero = problem->ragged_low == 0; /* the logarithm of one more */

    return (int32_t)(rng_log(rng, problem->ragged_low + zero, problem->ragged_high + zero) - zero);
}

static bool make_lengths(const bench_problem *problem, bool prefix, bench_part *part, tool_fault *fault)
{
    rng_state rng = rng_start(SEED, PURPOSE_LENGTHS, 0);
    int32_t *lengths;

    if (!problem->ragged || prefix)
        return true;
    lengths = make(part, BENCH_KV_LENS, num_sequences(&part->attention), fault);
    for (size_t s = 0; lengths != NULL && s < part->tables[BENCH_KV_LENS].count; s++)
        lengths[s] = draw_length(problem, &rng);
    return lengths != NULL;
}

static int64_t length_of(const bench_part *part, uint32_t sequence)
{
    const int32_t *lengths = part->tables[BENCH_KV_LENS].data;

    return lengths != NULL ? lengths[sequence] : (int64_t)part->attention.max_kv_len;
}

/* Paddings of up to an eighth of a sequence, positions at its end, rows in any order, slopes as published, sinks of -1 to
 * 1. */
static bool make_small_tables(bench_part *part, tool_fault *fault)
{
    const clfd_attention *a = &part->attention;
    rng_state starts = rng_start(SEED, PURPOSE_STARTS, 0), rows = rng_start(SEED, PURPOSE_ROWS, 0);
    rng_state logits = rng_start(SEED, PURPOSE_SINKS, 0);
    int32_t *integers;
    float *numbers;

    if (a->kv_start) {
        if ((integers = make(part, BENCH_KV_START, num_sequences(a), fault)) == NULL)
            return false;
        for (uint32_t s = 0; s < num_sequences(a); s++)
            integers[s] = (int32_t)rng_below(&starts, (uint32_t)(length_of(part, s) / 8) + 1);
    }
    if (a->query_positions) {
        if ((integers = make(part, BENCH_QUERY_POSITIONS, (uint64_t)a->max_batch * a->q_len, fault)) == NULL)
            return false;
        for (uint32_t b = 0; b < a->max_batch; b++)
            for (uint32_t i = 0; i < a->q_len; i++)
                integers[b * a->q_len + i] = (int32_t)(length_of(part, a->shared_kv ? 0 : b) - a->q_len + i);
    }
    if (a->cache_batch_idx) {
        if ((integers = make(part, BENCH_CACHE_BATCH_IDX, a->num_cache_rows, fault)) == NULL)
            return false;
        shuffle(integers, a->num_cache_rows, &rows);
        part->tables[BENCH_CACHE_BATCH_IDX].count = num_sequences(a); /* the first of all rows, in their new order */
    }
    if (a->alibi) {
        if ((numbers = make(part, BENCH_ALIBI, a->num_q_heads, fault)) == NULL)
            return false;
        for (uint32_t h = 0; h < a->num_q_heads; h++)
            numbers[h] = exp2f(-8.0f * (float)(h + 1) / (float)a->num_q_heads);
    }
    if (a->sinks) {
        if ((numbers = make(part, BENCH_SINKS, a->num_q_heads, fault)) == NULL)
            return false;
        for (uint32_t h = 0; h < a->num_q_heads; h++)
            numbers[h] = 2.0f * rng_uniform(&logits) - 1.0f;
    }
    return true;
}

/* Pages of a cache row: those of the sequence that uses it. */
static int64_t pages_of(const bench_part *part, uint32_t sequence)
{
    return (length_of(part, sequence) + part->attention.page_size - 1) / part->attention.page_size;
}

/* row_start[r]: where the entries of a row start, one more than there are rows; -1 for rows that nobody uses. */
static bool fill_table(bench_part *part, const int32_t *pages, const int64_t *row_start, uint64_t count,
                       tool_fault *fault)
{
    const int32_t *rows = part->tables[BENCH_CACHE_BATCH_IDX].data;
    int32_t *table = make(part, BENCH_BLOCK_TABLE, count, fault);

    if (table == NULL)
        return false;
    for (uint64_t i = 0; i < count; i++)
        table[i] = -1;
    for (uint32_t s = 0; s < num_sequences(&part->attention); s++)
        for (int64_t p = 0; p < pages_of(part, s); p++)
            table[row_start[rows != NULL ? rows[s] : (int64_t)s] + p] = *pages++;
    return true;
}

/* The table, in either form: every page that is in use anywhere among all, in an order that is drawn. */
static bool make_pages(bench_part *part, tool_fault *fault)
{
    clfd_attention *a = &part->attention;
    const int32_t *rows = part->tables[BENCH_CACHE_BATCH_IDX].data;
    const uint32_t num_rows = a->num_cache_rows > 0 ? a->num_cache_rows : num_sequences(a);
    const int64_t row_pages = ((int64_t)a->max_kv_len + a->page_size - 1) / a->page_size;
    rng_state rng = rng_start(SEED, PURPOSE_PAGES, 0);
    int64_t used = 0, *row_start = NULL;
    int32_t *pages = NULL, *pointers;
    bool good = false;

    for (uint32_t s = 0; s < num_sequences(a); s++)
        used += pages_of(part, s);
    if (used + SPARE_PAGES(used) > INT32_MAX)
        return fault_failed(fault, "the problem has %lld pages; 2^31 are too many", (long long)used);
    a->num_pages = (uint32_t)(used + SPARE_PAGES(used));
    row_start = calloc((size_t)num_rows + 1, sizeof row_start[0]);
    pages = malloc(a->num_pages * sizeof pages[0]);
    if (row_start == NULL || pages == NULL) {
        fault_failed(fault, "no memory for %u pages", a->num_pages);
        goto done;
    }
    shuffle(pages, a->num_pages, &rng);
    if (a->paging == CLFD_PAGING_TABLE) {
        for (uint32_t r = 0; r <= num_rows; r++)
            row_start[r] = r * row_pages;
        good = fill_table(part, pages, row_start, (uint64_t)row_start[num_rows], fault);
        goto done;
    }
    if ((pointers = make(part, BENCH_PAGE_INDPTR, num_rows + (uint64_t)1, fault)) == NULL)
        goto done;
    for (uint32_t s = 0; s < num_sequences(a); s++)
        row_start[(rows != NULL ? rows[s] : (int64_t)s) + 1] = pages_of(part, s);
    for (uint32_t r = 1; r <= num_rows; r++) {
        row_start[r] += row_start[r - 1];
        pointers[r] = (int32_t)row_start[r];
    }
    good = fill_table(part, pages, row_start, (uint64_t)row_start[num_rows], fault);

done:
    free(row_start);
    free(pages);
    return good;
}

/* The tokens of a sequence that some query sees: from its start, or from the first window's. */
static uint64_t visible_tokens(const bench_part *part, uint32_t sequence)
{
    const clfd_attention *a = &part->attention;
    const int32_t *starts = part->tables[BENCH_KV_START].data;
    const int64_t length = length_of(part, sequence);
    /* Without causal a query sees what lies behind its window, too: the first query's window bounds all. */
    const int64_t window = a->window > 0 ? length - a->q_len - a->window + 1 : 0;
    int64_t first = starts != NULL ? starts[sequence] : 0;

    first = first > window ? first : window;
    return first < length ? (uint64_t)(length - first) : 0;
}

bool bench_make_tables(const bench_problem *problem, bool prefix, bench_part *part, tool_fault *fault)
{
    part->attention = prefix ? problem_prefix_attention(problem) : problem_attention(problem);
    if (!make_lengths(problem, prefix, part, fault) || !make_small_tables(part, fault) ||
        (part->attention.paging != CLFD_PAGING_NONE && !make_pages(part, fault)))
        return false;
    part->visible = 0;
    for (uint32_t s = 0; s < num_sequences(&part->attention); s++)
        part->visible += visible_tokens(part, s);
    return true;
}

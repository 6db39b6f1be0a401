#include "verify_draw.h"
#include "verify_view.h"

#define MAX_SPARE_ROWS 3

/* Draws a query of a sequence that sees some key, but for its mask; false where none was found. */
static bool draw_seeing_row(rng_state *rng, const verify_trial *trial, uint32_t *sequence, view_keys *keys)
{
    for (int tries = 0; tries < 8; tries++) {
        const uint32_t b = rng_below(rng, trial->batch);
        *sequence = view_sequence(trial, b);
        *keys = view_row_keys(trial, b, rng_below(rng, trial->attention.q_len));
        if (keys->first < keys->end)
            return true;
    }
    return false;
}

static void shuffle(rng_state *rng, uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t k = rng_below(rng, i), other = numbers[k];
        numbers[k] = numbers[i - 1];
        numbers[i - 1] = other;
    }
}

/* Which row each sequence uses: all different where that is possible, or any. */
static void draw_indices(rng_state *rng, verify_trial *trial)
{
    const uint32_t num_rows = trial->num_cache_rows;
    const bool different = rng_chance(rng, 50) && num_rows >= trial->num_sequences;
    const int32_t wild[] = {-1, (int32_t)num_rows, INT32_MIN, INT32_MAX, (int32_t)rng_bits(rng)};
    uint32_t rows[TRIAL_MAX_ROWS], sequence;
    view_keys keys;

    for (uint32_t i = 0; i < num_rows; i++)
        rows[i] = i;
    shuffle(rng, rows, num_rows);
    for (uint32_t s = 0; s < trial->num_sequences; s++)
        trial->cache_batch_idx[s] = (int32_t)(different ? rows[s] : rng_below(rng, num_rows));
    if (rng_chance(rng, 25) && draw_seeing_row(rng, trial, &sequence, &keys)) {
        trial->cache_batch_idx[sequence] = PICK(rng, wild);
        if (!view_cache_row(trial, sequence, &rows[0]))
            trial->flags |= CLFD_FLAG_CACHE_ROW;
    }
    trial->placements[OPERAND_CACHE_BATCH_IDX] = draw_array(rng, trial->num_sequences, sizeof(int32_t));
}

static void draw_rows(rng_state *rng, verify_trial *trial)
{
    clfd_attention *a = &trial->attention;

    trial->num_cache_rows = a->shared_kv && !a->cache_batch_idx ? 1 : a->max_batch;
    if (rng_chance(rng, a->cache_batch_idx ? 70 : 15)) {
        trial->num_cache_rows = a->cache_batch_idx ? rng_between(rng, 1, trial->num_sequences + MAX_SPARE_ROWS)
                                                   : trial->num_cache_rows + rng_below(rng, MAX_SPARE_ROWS);
        a->num_cache_rows = trial->num_cache_rows;
    }
    if (a->cache_batch_idx)
        draw_indices(rng, trial);
}

void draw_needs(const verify_trial *trial, view_keys needs[TRIAL_MAX_BATCH])
{
    for (uint32_t s = 0; s < trial->num_sequences; s++)
        needs[s] = view_needed_keys(trial, s);
}

bool draw_page_needed(const verify_trial *trial, const view_keys *needs, uint32_t row, uint32_t page)
{
    const uint64_t size = trial->attention.page_size, first = page * size;

    for (uint32_t s = 0; s < trial->num_sequences; s++) {
        uint32_t used;
        if (view_cache_row(trial, s, &used) && used == row && needs[s].first < needs[s].end && first < needs[s].end &&
            first + size > needs[s].first)
            return true;
    }
    return false;
}

static bool row_is_used(const verify_trial *trial, uint32_t row)
{
    uint32_t used;

    for (uint32_t s = 0; s < trial->num_sequences; s++)
        if (view_cache_row(trial, s, &used) && used == row)
            return true;
    return false;
}

/* Pages of the longest sequence of a row. */
static uint32_t pages_of_row(const verify_trial *trial, uint32_t row)
{
    const uint32_t size = trial->attention.page_size;
    uint32_t pages = 0, used;

    for (uint32_t s = 0; s < trial->num_sequences; s++)
        if (view_cache_row(trial, s, &used) && used == row && (trial->lengths[s] + size - 1) / size > pages)
            pages = (trial->lengths[s] + size - 1) / size;
    return pages;
}

/* Takes away a page that some row needs. */
static void draw_bad_pages(rng_state *rng, verify_trial *trial)
{
    static const verify_bad_pages csr[] = {BAD_PAGES_ENTRY, BAD_PAGES_SHORT, BAD_PAGES_CUT, BAD_PAGES_BEFORE};
    const clfd_attention *a = &trial->attention;
    uint32_t sequence;
    view_keys keys;

    if (!rng_chance(rng, 25) || !draw_seeing_row(rng, trial, &sequence, &keys) ||
        !view_cache_row(trial, sequence, &trial->bad_row))
        return;
    trial->bad_page = rng_between(rng, keys.first, keys.end - 1) / a->page_size;
    trial->bad_pages = a->paging == CLFD_PAGING_CSR ? PICK(rng, csr) : BAD_PAGES_ENTRY;
    if (trial->bad_pages == BAD_PAGES_BEFORE && trial->bad_row > 0)
        trial->bad_pages = BAD_PAGES_SHORT;
    trial->flags |= CLFD_FLAG_PAGE;
}

/* Rows of equal room, a stride apart. */
static void draw_table(rng_state *rng, verify_trial *trial)
{
    clfd_attention *a = &trial->attention;
    const uint32_t room = (a->max_kv_len + a->page_size - 1) / a->page_size;

    trial->block_table_stride = room;
    if (rng_chance(rng, 30))
        a->block_table_stride = trial->block_table_stride = room + rng_below(rng, 5);
    for (uint32_t row = 0; row < trial->num_cache_rows; row++) {
        trial->row_starts[row] = (int64_t)row * trial->block_table_stride;
        trial->row_ends[row] = trial->row_starts[row] + room;
    }
    trial->num_table_entries = (uint32_t)trial->row_ends[trial->num_cache_rows - 1];
}

/* Rows of their own lengths one after the other; some are longer than need be, and the first need not start at 0. */
static void draw_csr(rng_state *rng, verify_trial *trial)
{
    int64_t next = trial->bad_pages == BAD_PAGES_BEFORE ? -1 - (int64_t)trial->bad_page : rng_below(rng, 3);

    for (uint32_t row = 0; row < trial->num_cache_rows; row++) {
        trial->row_starts[row] = next;
        trial->page_indptr[row] = (int32_t)next;
        next += pages_of_row(trial, row) + (rng_chance(rng, 40) ? rng_below(rng, 4) : 0);
        if (trial->bad_pages == BAD_PAGES_SHORT && trial->bad_row == row)
            next = trial->row_starts[row] + trial->bad_page;
        trial->row_ends[row] = next;
    }
    trial->page_indptr[trial->num_cache_rows] = (int32_t)next;
    trial->num_table_entries = (next > 0 ? (uint32_t)next : 0) + rng_below(rng, 3);
    if (trial->bad_pages == BAD_PAGES_CUT)
        trial->num_table_entries = (uint32_t)trial->row_starts[trial->bad_row] + trial->bad_page;
    for (uint32_t row = 0; row < trial->num_cache_rows; row++)
        if (trial->row_ends[row] > trial->num_table_entries)
            trial->row_ends[row] = trial->num_table_entries;
    /* Where neither the row that ends there nor the one that starts there is used. */
    for (uint32_t row = 0; row <= trial->num_cache_rows; row++)
        if (!row_is_used(trial, row) && (row == 0 || !row_is_used(trial, row - 1)))
            trial->page_indptr[row] = (int32_t)rng_bits(rng);
    trial->placements[OPERAND_PAGE_INDPTR] = draw_array(rng, trial->num_cache_rows + 1u, sizeof(int32_t));
}

static void draw_pages(rng_state *rng, verify_trial *trial)
{
    clfd_attention *a = &trial->attention;
    view_keys needs[TRIAL_MAX_BATCH];
    uint32_t needed = 0;

    draw_bad_pages(rng, trial);
    if (a->paging == CLFD_PAGING_TABLE)
        draw_table(rng, trial);
    else
        draw_csr(rng, trial);
    trial->placements[OPERAND_BLOCK_TABLE] = draw_array(rng, trial->num_table_entries, sizeof(int32_t));
    draw_needs(trial, needs);
    for (uint32_t row = 0; row < trial->num_cache_rows; row++)
        for (int64_t entry = trial->row_starts[row]; entry < trial->row_ends[row]; entry++)
            needed += entry >= 0 && draw_page_needed(trial, needs, row, (uint32_t)(entry - trial->row_starts[row]));
    needed -= trial->bad_pages == BAD_PAGES_ENTRY;
    trial->shared_pages = needed > 1 && rng_chance(rng, 30);
    a->num_pages = trial->shared_pages ? rng_between(rng, 1, needed - 1) : needed + rng_below(rng, 4);
    a->num_pages = a->num_pages < 1 ? 1 : a->num_pages;
}

void draw_cache(rng_state *rng, verify_trial *trial)
{
    draw_rows(rng, trial);
    if (trial->attention.paging != CLFD_PAGING_NONE)
        draw_pages(rng, trial);
}

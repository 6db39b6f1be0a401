#include "verify_draw.h"
#include "verify_fill.h"
#include <stdlib.h>

/* An entry that is no page; or now and then one that is, where `any` will do. */
static int32_t draw_entry(rng_state *rng, uint32_t num_pages, bool any)
{
    const int32_t outside[] = {-1, INT32_MAX, INT32_MIN, (int32_t)num_pages, -(int32_t)rng_between(rng, 1, num_pages)};

    return any && rng_chance(rng, 40) ? (int32_t)rng_bits(rng) : PICK(rng, outside);
}

/* All pages in a random order. */
static uint32_t *shuffled_pages(rng_state *rng, uint32_t num_pages)
{
    uint32_t *pages = malloc(num_pages * sizeof pages[0]);

    for (uint32_t i = 0; pages != NULL && i < num_pages; i++) {
        const uint32_t k = rng_below(rng, i + 1);
        pages[i] = pages[k];
        pages[k] = i;
    }
    return pages;
}

bool fill_block_table(verify_trial *trial, verify_images *images, tool_fault *fault)
{
    const uint32_t num_pages = trial->attention.num_pages;
    int32_t *table = image_base(trial, images, OPERAND_BLOCK_TABLE);
    uint32_t *pages = shuffled_pages(&trial->data, num_pages), next = 0;
    view_keys needs[TRIAL_MAX_BATCH];

    if (pages == NULL)
        return fault_failed(fault, "no memory for an order of %u pages", num_pages);
    for (uint32_t entry = 0; entry < trial->num_table_entries; entry++)
        table[entry] = draw_entry(&trial->data, num_pages, true);
    draw_needs(trial, needs);
    for (uint32_t row = 0; row < trial->num_cache_rows; row++)
        for (int64_t entry = trial->row_starts[row]; entry < trial->row_ends[row]; entry++) {
            const uint32_t page = (uint32_t)(entry - trial->row_starts[row]);
            if (entry < 0 || !draw_page_needed(trial, needs, row, page))
                continue;
            if (trial->bad_pages == BAD_PAGES_ENTRY && row == trial->bad_row && page == trial->bad_page)
                table[entry] = draw_entry(&trial->data, num_pages, false);
            else
                table[entry] = (int32_t)(trial->shared_pages ? rng_below(&trial->data, num_pages) : pages[next++]);
        }
    free(pages);
    return true;
}

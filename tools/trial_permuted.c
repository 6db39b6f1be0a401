#include "verify_run.h"
#include "verify_view.h"
#include <stdlib.h>
#include <string.h>

/* What lies in pages, and the table that finds them. */
static const verify_operand moved_operands[] = {OPERAND_K,      OPERAND_V,      OPERAND_K_SCALE,    OPERAND_V_SCALE,
                                                OPERAND_K_ZERO, OPERAND_V_ZERO, OPERAND_BLOCK_TABLE};

#define NUM_MOVED (sizeof moved_operands / sizeof moved_operands[0])

static bool copy_images(const verify_run *run, verify_images *moved)
{
    moved->one_buffer = run->trial->one_buffer;
    for (size_t i = 0; i < NUM_MOVED; i++) {
        const verify_operand operand = moved_operands[i];
        const size_t bytes = placement_bytes(&run->trial->placements[operand]);
        if (run->images.data[operand] == NULL)
            continue;
        if (operand == OPERAND_V && moved->one_buffer) {
            moved->data[operand] = moved->data[OPERAND_K];
            continue;
        }
        moved->data[operand] = malloc(bytes + 1);
        if (moved->data[operand] == NULL)
            return fault_failed(run->fault, "no memory for %zu bytes of %s", bytes, run_operand_names[operand]);
        memcpy(moved->data[operand], run->images.data[operand], bytes);
    }
    return true;
}

static void move_row(const verify_tensor *from, const verify_tensor *to, view_slot old, view_slot new, uint32_t head)
{
    const size_t bytes = from->dim / clfd_type_elements(from->type) * clfd_type_size(from->type);

    memcpy(view_row(to, new, head), view_row(from, old, head), bytes);
    for (uint32_t g = 0; view_is_grouped(from->type) && g < from->num_groups; g++) {
        const size_t element = clfd_type_size(from->scale_type);
        memcpy(view_scale(to, to->scales, new, head, g), view_scale(from, from->scales, old, head, g), element);
        if (from->zeros != NULL)
            memcpy(view_scale(to, to->zeros, new, head, g), view_scale(from, from->zeros, old, head, g), element);
    }
}

/* Page p becomes page order[p]. */
static void move_pages(const verify_run *run, verify_images *moved, const uint32_t *order)
{
    const verify_trial *trial = run->trial;
    const clfd_attention *a = &trial->attention;
    int32_t *table = image_base(trial, moved, OPERAND_BLOCK_TABLE);

    for (int i = 0; i < (a->v_from_k ? 1 : 2); i++) {
        const verify_operand operand = i == 0 ? OPERAND_K : OPERAND_V;
        const verify_tensor from = view_tensor(trial, &run->images, operand), to = view_tensor(trial, moved, operand);
        for (uint32_t page = 0; page < a->num_pages; page++)
            for (uint32_t t = 0; t < a->page_size; t++)
                for (uint32_t head = 0; head < a->num_kv_heads; head++)
                    move_row(&from, &to, (view_slot){page, t}, (view_slot){order[page], t}, head);
    }
    for (uint32_t i = 0; i < trial->num_table_entries; i++)
        if (table[i] >= 0 && (uint32_t)table[i] < a->num_pages)
            table[i] = (int32_t)order[table[i]];
}

static bool write_images(const verify_run *run, const verify_images *moved)
{
    for (size_t i = 0; i < NUM_MOVED; i++) {
        const verify_operand operand = moved_operands[i];
        const size_t bytes = placement_bytes(&run->trial->placements[operand]);
        cl_int code;
        if (moved->data[operand] == NULL || bytes == 0)
            continue;
        code = clEnqueueWriteBuffer(run->session->queue, run->buffers[operand], CL_TRUE, 0, bytes, moved->data[operand],
                                    0, NULL, NULL);
        if (code != CL_SUCCESS)
            return fault_cl(run->fault, code, "clEnqueueWriteBuffer");
    }
    return true;
}

bool run_check_permuted(verify_run *run)
{
    const uint32_t num_pages = run->trial->attention.num_pages;
    uint32_t *order = malloc(num_pages * sizeof order[0]);
    verify_images moved = {{NULL}, false};
    bool good = order != NULL || fault_failed(run->fault, "no memory for an order of %u pages", num_pages);

    for (uint32_t i = 0; good && i < num_pages; i++) {
        const uint32_t k = rng_below(&run->trial->data, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    good = good && copy_images(run, &moved);
    if (good) {
        move_pages(run, &moved, order);
        good = write_images(run, &moved) && run_compare_again(run, "another order of the pages");
    }
    free(order);
    images_free(&moved);
    return good;
}

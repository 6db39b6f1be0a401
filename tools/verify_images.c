#include "verify.h"
#include <stdlib.h>

size_t placement_bytes(const verify_placement *placement)
{
    return placement->before + placement->bytes + placement->after;
}

void *image_base(const verify_trial *trial, const verify_images *images, verify_operand operand)
{
    return images->data[operand] == NULL ? NULL : images->data[operand] + trial->placements[operand].before;
}

void images_free(verify_images *images)
{
    for (int i = 0; i < NUM_OPERANDS; i++)
        if (i != OPERAND_V || !images->one_buffer)
            free(images->data[i]);
    *images = (struct verify_images){0};
}

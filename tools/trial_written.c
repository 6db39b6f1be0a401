#include "verify_run.h"
#include <stdlib.h>
#include <string.h>

static bool check_untouched(const unsigned char *bytes, size_t count, const char *where, verify_operand operand,
                            tool_fault *fault)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0xff)
            return fault_failed(fault, "byte %zu %s %s was written", i, where, run_operand_names[operand]);
    return true;
}

/* The guards before and after an operand, in its image. */
static bool check_guards(verify_run *run, const unsigned char *image, verify_operand operand)
{
    const verify_placement *place = &run->trial->placements[operand];

    return !place->present ||
           (check_untouched(image, place->before, "before", operand, run->fault) &&
            check_untouched(image + place->before + place->bytes, place->after, "after", operand, run->fault));
}

/* Between and around the rows of out that the call computes nothing is written: not the padding of the strides, and not
 * the sequences beyond the call's batch. */
static bool check_out(verify_run *run)
{
    const verify_trial *trial = run->trial;
    const clfd_attention *a = &trial->attention;
    const verify_placement *place = &trial->placements[OPERAND_OUT];
    const size_t element = clfd_type_size(a->out_type), bytes = placement_bytes(place);
    unsigned char *rest = malloc(bytes);
    bool good;

    if (rest == NULL)
        return fault_failed(run->fault, "no memory for %zu bytes of out", bytes);
    memcpy(rest, run->images.data[OPERAND_OUT], bytes);
    for (uint32_t b = 0; b < trial->batch; b++)
        for (uint32_t i = 0; i < a->q_len; i++)
            for (uint32_t h = 0; h < a->num_q_heads; h++) {
                const int64_t index = b * trial->out.batch + i * trial->out.token + h * trial->out.head;
                memset(rest + place->before + (size_t)index * element, 0xff, a->head_dim_v * element);
            }
    good = check_untouched(rest, bytes, "outside the rows in the buffer of", OPERAND_OUT, run->fault);
    free(rest);
    return good;
}

static bool check_lse(verify_run *run)
{
    const verify_trial *trial = run->trial;
    const clfd_attention *a = &trial->attention;
    const verify_placement *place = &trial->placements[OPERAND_LSE];
    const size_t written = (size_t)trial->batch * a->q_len * a->num_q_heads * sizeof(float);

    if (!place->present)
        return true;
    return check_guards(run, run->images.data[OPERAND_LSE], OPERAND_LSE) &&
           check_untouched(run->images.data[OPERAND_LSE] + place->before + written, place->bytes - written,
                           "after the rows of the call in", OPERAND_LSE, run->fault);
}

static bool check_workspace(verify_run *run)
{
    const size_t bytes = placement_bytes(&run->trial->placements[OPERAND_WORKSPACE]);
    unsigned char *image = malloc(bytes);
    bool good;

    if (image == NULL)
        return fault_failed(run->fault, "no memory for %zu bytes of the workspace", bytes);
    good = session_read(run->session, run->buffers[OPERAND_WORKSPACE], bytes, image, run->fault) &&
           check_guards(run, image, OPERAND_WORKSPACE);
    free(image);
    return good;
}

bool run_check_written(verify_run *run)
{
    return check_out(run) && check_lse(run) && check_guards(run, run->images.data[OPERAND_STATUS], OPERAND_STATUS) &&
           check_workspace(run);
}

bool run_check_inputs(verify_run *run)
{
    for (int i = 0; i < NUM_INPUTS; i++) {
        const size_t bytes = placement_bytes(&run->trial->placements[i]);
        unsigned char *image;
        bool good;
        if (!run->trial->placements[i].present)
            continue;
        image = malloc(bytes + 1);
        if (image == NULL)
            return fault_failed(run->fault, "no memory for %zu bytes of %s", bytes, run_operand_names[i]);
        good = session_read(run->session, run->buffers[i], bytes, image, run->fault);
        if (good && memcmp(image, run->images.data[i], bytes) != 0)
            good = fault_failed(run->fault, "the call changed %s", run_operand_names[i]);
        free(image);
        if (!good)
            return false;
    }
    return true;
}

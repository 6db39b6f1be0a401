#include "verify.h"
#include <stdlib.h>
#include <string.h>

static const char *const operand_names[NUM_OPERANDS] = {"q", "k", "v", "kv_lens", "out", "lse", "the workspace"};

/* Creates and fills the buffers of all operands that are there. */
static bool create_buffers(tool_session *session, const verify_trial *trial, const verify_images *images,
                           cl_mem buffers[NUM_OPERANDS], tool_fault *fault)
{
    for (int i = 0; i < NUM_OPERANDS; i++)
        if (trial->placements[i].present &&
            !session_buffer(session, operand_names[i], placement_bytes(&trial->placements[i]), images->data[i],
                            &buffers[i], fault))
            return false;
    return true;
}

static bool decode(tool_session *session, clfd_plan *plan, const verify_trial *trial, cl_mem buffers[NUM_OPERANDS],
                   bool first, tool_fault *fault)
{
    clfd_buffer operands[NUM_OPERANDS];
    clfd_status status = CLFD_SUCCESS;

    for (int i = 0; i < NUM_OPERANDS; i++)
        operands[i] = session_operand(buffers[i], trial->placements[i].before);
    const clfd_buffers call = {
        .struct_size = sizeof call,
        .batch = trial->batch,
        .kv_len_bound = trial->kv_len_bound,
        .q = operands[OPERAND_Q],
        .k = operands[OPERAND_K],
        .v = operands[OPERAND_V],
        .kv_lens = operands[OPERAND_KV_LENS],
        .out = operands[OPERAND_OUT],
        .lse = operands[OPERAND_LSE],
        .workspace = operands[OPERAND_WORKSPACE],
    };
    /* Once per workspace: the second call relies on the control region being as the first found it. */
    if (first)
        status = clfd_enqueue_workspace_init(plan, session->queue, &call.workspace, 0, NULL, NULL);
    if (status == CLFD_SUCCESS)
        status = clfd_enqueue_decode(plan, session->queue, &call, 0, NULL, NULL);
    return status == CLFD_SUCCESS ? true : fault_status(fault, status, "clfd_enqueue_decode");
}

/* Reads out and lse over their images. */
static bool read_results(tool_session *session, const verify_trial *trial, cl_mem buffers[NUM_OPERANDS],
                         verify_images *images, tool_fault *fault)
{
    for (int i = OPERAND_OUT; i <= OPERAND_LSE; i++)
        if (trial->placements[i].present &&
            !session_read(session, buffers[i], placement_bytes(&trial->placements[i]), images->data[i], fault))
            return false;
    return true;
}

static bool check_untouched(const unsigned char *bytes, size_t count, const char *where, verify_operand operand,
                            tool_fault *fault)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0xff)
            return fault_failed(fault, "byte %zu %s %s was written", i, where, operand_names[operand]);
    return true;
}

/* The guards before and after an operand, in its image. */
static bool check_guards(const verify_trial *trial, const unsigned char *image, verify_operand operand,
                         tool_fault *fault)
{
    const verify_placement *place = &trial->placements[operand];

    return check_untouched(image, place->before, "before", operand, fault) &&
           check_untouched(image + place->before + place->bytes, place->after, "after", operand, fault);
}

/* Between and around the rows of out that the call computes nothing is written: not the padding of the strides, and not
 * the sequences beyond the call's batch. */
static bool check_out(const verify_trial *trial, const verify_images *images, tool_fault *fault)
{
    const clfd_attention *a = &trial->attention;
    const verify_placement *place = &trial->placements[OPERAND_OUT];
    const size_t element = clfd_type_size(a->out_type), bytes = placement_bytes(place);
    unsigned char *rest = malloc(bytes);
    bool good;

    if (rest == NULL)
        return fault_failed(fault, "no memory for %zu bytes of out", bytes);
    memcpy(rest, images->data[OPERAND_OUT], bytes);
    for (uint32_t b = 0; b < trial->batch; b++)
        for (uint32_t i = 0; i < a->q_len; i++)
            for (uint32_t h = 0; h < a->num_q_heads; h++) {
                const int64_t index = b * trial->out.batch + i * trial->out.token + h * trial->out.head;
                memset(rest + place->before + (size_t)index * element, 0xff, a->head_dim_v * element);
            }
    good = check_untouched(rest, bytes, "outside the rows in the buffer of", OPERAND_OUT, fault);
    free(rest);
    return good;
}

static bool check_lse(const verify_trial *trial, const verify_images *images, tool_fault *fault)
{
    const clfd_attention *a = &trial->attention;
    const verify_placement *place = &trial->placements[OPERAND_LSE];
    const size_t written = (size_t)trial->batch * a->q_len * a->num_q_heads * sizeof(float);

    if (!place->present)
        return true;
    return check_guards(trial, images->data[OPERAND_LSE], OPERAND_LSE, fault) &&
           check_untouched(images->data[OPERAND_LSE] + place->before + written, place->bytes - written,
                           "after the rows of the call in", OPERAND_LSE, fault);
}

static bool check_workspace(tool_session *session, const verify_trial *trial, cl_mem buffer, tool_fault *fault)
{
    const size_t bytes = placement_bytes(&trial->placements[OPERAND_WORKSPACE]);
    unsigned char *image = malloc(bytes);
    bool good;

    if (image == NULL)
        return fault_failed(fault, "no memory for %zu bytes of the workspace", bytes);
    good = session_read(session, buffer, bytes, image, fault) && check_guards(trial, image, OPERAND_WORKSPACE, fault);
    free(image);
    return good;
}

/* Computes once more over fresh poison: every bit must be what it was. */
static bool check_repeat(tool_session *session, clfd_plan *plan, const verify_trial *trial,
                         cl_mem buffers[NUM_OPERANDS], const verify_images *first, tool_fault *fault)
{
    const cl_uchar poison = 0xff;
    verify_images second = {{NULL}};
    bool good = false;

    for (int i = OPERAND_OUT; i <= OPERAND_LSE; i++) {
        const size_t bytes = placement_bytes(&trial->placements[i]);
        cl_int code;
        if (!trial->placements[i].present)
            continue;
        second.data[i] = malloc(bytes);
        if (second.data[i] == NULL) {
            fault_failed(fault, "no memory for %zu bytes of %s", bytes, operand_names[i]);
            goto done;
        }
        code = clEnqueueFillBuffer(session->queue, buffers[i], &poison, sizeof poison, 0, bytes, 0, NULL, NULL);
        if (code != CL_SUCCESS) {
            fault_cl(fault, code, "clEnqueueFillBuffer");
            goto done;
        }
    }
    if (!decode(session, plan, trial, buffers, false, fault) || !read_results(session, trial, buffers, &second, fault))
        goto done;
    for (int i = OPERAND_OUT; i <= OPERAND_LSE; i++)
        if (second.data[i] != NULL &&
            memcmp(first->data[i], second.data[i], placement_bytes(&trial->placements[i])) != 0) {
            fault_failed(fault, "a second run of the same call gives other bits in %s", operand_names[i]);
            goto done;
        }
    good = true;

done:
    images_free(&second);
    return good;
}

trial_result trial_run(tool_session *session, verify_trial *trial, trial_errors *errors, tool_fault *fault)
{
    cl_mem buffers[NUM_OPERANDS] = {NULL};
    verify_images images = {{NULL}};
    clfd_plan *plan = NULL;
    trial_result result = TRIAL_FAILED;
    clfd_status status;

    *errors = (trial_errors){0, 0, 0};
    fault_clear(fault);
    status = clfd_plan_create(session->clfd, &trial->attention, &plan);
    if (status != CLFD_SUCCESS) {
        fault_status(fault, status, "clfd_plan_create");
        result = status == CLFD_ERROR_TUNING && trial->attention.tuning != NULL ? TRIAL_REFUSED : TRIAL_FAILED;
        goto done;
    }
    trial->placements[OPERAND_WORKSPACE].bytes = clfd_plan_workspace_bytes(plan);
    if (fill_images(trial, &images, fault) && create_buffers(session, trial, &images, buffers, fault) &&
        decode(session, plan, trial, buffers, true, fault) && read_results(session, trial, buffers, &images, fault) &&
        check_out(trial, &images, fault) && check_lse(trial, &images, fault) &&
        judge_trial(trial, &images, errors, fault) &&
        (!trial->repeat || check_repeat(session, plan, trial, buffers, &images, fault)) &&
        check_workspace(session, trial, buffers[OPERAND_WORKSPACE], fault))
        result = TRIAL_PASSED;

done:
    clFinish(session->queue);
    for (int i = 0; i < NUM_OPERANDS; i++)
        if (buffers[i] != NULL)
            clReleaseMemObject(buffers[i]);
    clfd_plan_release(plan);
    images_free(&images);
    return result;
}

#include "verify_run.h"
#include <stddef.h>
#include <string.h>

#define FIELD(name) offsetof(clfd_buffers, name)

static const size_t fields[NUM_OPERANDS] = {
    [OPERAND_Q] = FIELD(q),
    [OPERAND_K] = FIELD(k),
    [OPERAND_V] = FIELD(v),
    [OPERAND_KV_LENS] = FIELD(kv_lens),
    [OPERAND_ALIBI] = FIELD(alibi),
    [OPERAND_BIAS] = FIELD(bias),
    [OPERAND_MASK] = FIELD(mask),
    [OPERAND_SINKS] = FIELD(sinks),
    [OPERAND_QUERY_POSITIONS] = FIELD(query_positions),
    [OPERAND_KV_START] = FIELD(kv_start),
    [OPERAND_CACHE_BATCH_IDX] = FIELD(cache_batch_idx),
    [OPERAND_BLOCK_TABLE] = FIELD(block_table),
    [OPERAND_PAGE_INDPTR] = FIELD(page_indptr),
    [OPERAND_K_SCALE] = FIELD(k_scale),
    [OPERAND_V_SCALE] = FIELD(v_scale),
    [OPERAND_K_ZERO] = FIELD(k_zero),
    [OPERAND_V_ZERO] = FIELD(v_zero),
    [OPERAND_OUT] = FIELD(out),
    [OPERAND_LSE] = FIELD(lse),
    [OPERAND_STATUS] = FIELD(status),
    [OPERAND_WORKSPACE] = FIELD(workspace),
};

const char *const run_operand_names[NUM_OPERANDS] = {"q",
                                                     "k",
                                                     "v",
                                                     "kv_lens",
                                                     "alibi",
                                                     "bias",
                                                     "mask",
                                                     "sinks",
                                                     "query_positions",
                                                     "kv_start",
                                                     "cache_batch_idx",
                                                     "block_table",
                                                     "page_indptr",
                                                     "k_scale",
                                                     "v_scale",
                                                     "k_zero",
                                                     "v_zero",
                                                     "out",
                                                     "lse",
                                                     "status",
                                                     "workspace"};

/* Creates and fills the buffers of all operands that are there. */
static bool create_buffers(verify_run *run)
{
    for (int i = 0; i < NUM_OPERANDS; i++) {
        const verify_placement *place = &run->trial->placements[i];
        if (!place->present)
            continue;
        if (i == OPERAND_V && run->trial->one_buffer) {
            run->buffers[i] = run->buffers[OPERAND_K];
            clRetainMemObject(run->buffers[i]);
        } else if (!session_buffer(run->session, run_operand_names[i], placement_bytes(place), run->images.data[i],
                                   &run->buffers[i], run->fault)) {
            return false;
        }
    }
    return true;
}

/* out and lse are poison before every call, and the status word is what it was. */
static bool reset_results(verify_run *run)
{
    const cl_uchar poison = 0xff;

    for (int i = OPERAND_OUT; i <= OPERAND_STATUS; i++) {
        const verify_placement *place = &run->trial->placements[i];
        cl_int code;
        if (!place->present)
            continue;
        code = clEnqueueFillBuffer(run->session->queue, run->buffers[i], &poison, sizeof poison, 0,
                                   placement_bytes(place), 0, NULL, NULL);
        if (code == CL_SUCCESS && i == OPERAND_STATUS)
            code = clEnqueueWriteBuffer(run->session->queue, run->buffers[i], CL_TRUE, place->before, place->bytes,
                                        &run->trial->status_before, 0, NULL, NULL);
        if (code != CL_SUCCESS)
            return fault_cl(run->fault, code, "clEnqueueFillBuffer");
    }
    return true;
}

bool run_decode(verify_run *run, clfd_plan *plan, uint32_t batch, const size_t shifts[NUM_OPERANDS])
{
    const verify_trial *trial = run->trial;
    clfd_buffers call = {.struct_size = sizeof call, .batch = batch, .kv_len_bound = trial->kv_len_bound};
    clfd_status status;

    if (trial->attention.paging == CLFD_PAGING_CSR)
        call.num_page_indices = trial->num_table_entries;
    for (int i = 0; i < NUM_OPERANDS; i++) {
        const size_t shift = shifts != NULL ? shifts[i] : 0;
        const clfd_buffer operand = session_operand(run->buffers[i], trial->placements[i].before + shift);
        memcpy((char *)&call + fields[i], &operand, sizeof operand);
    }
    if (!reset_results(run))
        return false;
    status = clfd_enqueue_decode(plan, run->session->queue, &call, 0, NULL, NULL);
    return status == CLFD_SUCCESS ? true : fault_status(run->fault, status, "clfd_enqueue_decode");
}

bool run_read(verify_run *run, verify_images *images)
{
    for (int i = OPERAND_OUT; i <= OPERAND_STATUS; i++)
        if (run->trial->placements[i].present &&
            !session_read(run->session, run->buffers[i], placement_bytes(&run->trial->placements[i]), images->data[i],
                          run->fault))
            return false;
    return true;
}

/* Once per workspace: later calls rely on the control region being as the first found it. */
static bool start_workspace(verify_run *run)
{
    const clfd_buffer workspace =
        session_operand(run->buffers[OPERAND_WORKSPACE], run->trial->placements[OPERAND_WORKSPACE].before);
    const clfd_status status = clfd_enqueue_workspace_init(run->plan, run->session->queue, &workspace, 0, NULL, NULL);

    return status == CLFD_SUCCESS ? true : fault_status(run->fault, status, "clfd_enqueue_workspace_init");
}

static bool run_and_check(verify_run *run, trial_errors *errors)
{
    const verify_trial *trial = run->trial;

    return fill_images(run->trial, &run->images, run->fault) && create_buffers(run) && start_workspace(run) &&
           run_decode(run, run->plan, trial->batch, NULL) && run_read(run, &run->images) && run_check_written(run) &&
           judge_trial(trial, &run->images, errors, run->fault) && (!trial->inputs || run_check_inputs(run)) &&
           (!trial->repeat || run_check_repeat(run)) && (!trial->alone || run_check_alone(run)) &&
           (!trial->permute || run_check_permuted(run));
}

trial_result trial_run(tool_session *session, verify_trial *trial, trial_errors *errors, tool_fault *fault)
{
    verify_run run = {.session = session, .trial = trial, .fault = fault};
    trial_result result = TRIAL_FAILED;
    clfd_status status;

    *errors = (trial_errors){0, 0, 0};
    fault_clear(fault);
    status = clfd_plan_create(session->clfd, &trial->attention, &run.plan);
    if (status != CLFD_SUCCESS) {
        fault_status(fault, status, "clfd_plan_create");
        result = status == CLFD_ERROR_TUNING && trial->attention.tuning != NULL ? TRIAL_REFUSED : TRIAL_FAILED;
        goto done;
    }
    trial->placements[OPERAND_WORKSPACE].bytes = clfd_plan_workspace_bytes(run.plan);
    if (run_and_check(&run, errors))
        result = TRIAL_PASSED;

done:
    clFinish(session->queue);
    for (int i = 0; i < NUM_OPERANDS; i++)
        if (run.buffers[i] != NULL)
            clReleaseMemObject(run.buffers[i]);
    clfd_plan_release(run.plan);
    images_free(&run.images);
    return result;
}

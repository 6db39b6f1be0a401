#include "verify_run.h"
#include <string.h>

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
    trial->f16_weights = strstr(clfd_plan_describe(run.plan), " f16_weights") != NULL;
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

#include "run/plan.h"
#include "plan/check.h"
#include "plan/describe.h"
#include <stdlib.h>

#define MAX_OPTIONS 1024

/* Tries one tuning row: schedule, programs, kernels. A failure that leaves the plan with a decode kernel is the merge's,
 * which is the same for every row. */
static clfd_status try_row(clfd_plan *plan, const clfd_tuning *tuning, clfd_log_level level)
{
    clfd_context *const context = plan->context;
    const clfd_attention *const attention = &plan->attention;
    const uint32_t sub_group =
        tuning->family == CLFD_FAMILY_LANES && tuning->exchange == CLFD_EXCHANGE_SUB_GROUP ? tuning->lanes : 0;
    const char *const name = clfd_family_name(tuning->family);
    char options[MAX_OPTIONS];
    /* A row of a file may ask for more than the device has; the sentence is that of the last one. */
    clfd_status status = clfd_schedule_make(&context->caps, attention, tuning, &plan->schedule,
                                            level == CLFD_LOG_ERROR ? &context->logger : NULL);

    if (status != CLFD_SUCCESS)
        return status;
    plan->tuning = *tuning;
    clfd_decode_options(&context->caps, attention, tuning, &plan->schedule, false, options, sizeof options);
    status = clfd_kernel_create(context, name, name, options, tuning->work_group, sub_group, level, &plan->decode);
    if (status == CLFD_SUCCESS && plan->schedule.num_groups > 0) {
        clfd_decode_options(&context->caps, attention, tuning, &plan->schedule, true, options, sizeof options);
        status =
            clfd_kernel_create(context, name, name, options, tuning->work_group, sub_group, level, &plan->balanced);
        if (status != CLFD_SUCCESS)
            clfd_kernel_destroy(&plan->decode);
    }
    if (status == CLFD_SUCCESS && ((plan->schedule.grid_splits > 1 && plan->schedule.fused == 0) ||
                                   (plan->schedule.num_groups > 0 && plan->schedule.balanced_fused == 0)))
        status = clfd_kernel_create_merge(context, "merge", attention->partial, attention->head_dim_v,
                                          attention->out_type, plan->schedule.merge_work_group, &plan->merge);
    return status;
}

static clfd_status fill(clfd_plan *plan, const clfd_attention *given)
{
    const clfd_logger *const logger = &plan->context->logger;
    clfd_tuning rows[CLFD_MAX_LOOKUP];
    size_t count = 0;
    clfd_status status = clfd_complete_attention(given, &plan->attention, logger);

    if (status != CLFD_SUCCESS ||
        (status = clfd_tuning_lookup(&plan->context->caps, &plan->attention, &plan->context->tuning, rows, &count,
                                     logger)) != CLFD_SUCCESS)
        return status;
    plan->attention.tuning = NULL; /* the caller's string; not ours to keep */
    status = CLFD_ERROR_NO_KERNEL;
    for (size_t i = 0; i < count; i++) {
        const bool last = i + 1 == count;
        status = try_row(plan, &rows[i], last ? CLFD_LOG_ERROR : CLFD_LOG_WARNING);
        if (status == CLFD_SUCCESS)
            break;
        if (status == CLFD_ERROR_HOST_MEMORY || status == CLFD_ERROR_KERNEL_SOURCE || plan->decode.handle != NULL) {
            clfd_kernel_destroy(&plan->decode);
            clfd_kernel_destroy(&plan->balanced);
            return status; /* no other row would help */
        }
        if (!last)
            clfd_note(logger, CLFD_LOG_WARNING, "tuning row %zu (%s) is refused: %s (%d); trying the next", i,
                      clfd_family_name(rows[i].family), clfd_status_string(status), (int)status);
    }
    if (status == CLFD_SUCCESS)
        clfd_describe(&plan->attention, &plan->tuning, &plan->schedule, plan->description, sizeof plan->description);
    return status;
}

clfd_status clfd_plan_create(clfd_context *context, const clfd_attention *attention, clfd_plan **plan)
{
    clfd_plan *made;
    clfd_status status;

    if (context == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    if (plan == NULL)
        return clfd_fail(&context->logger, CLFD_ERROR_NULL_ARGUMENT, "clfd_plan_create: plan is NULL");
    if ((made = calloc(1, sizeof *made)) == NULL)
        return clfd_fail(&context->logger, CLFD_ERROR_HOST_MEMORY, "no memory for a clfd_plan");
    made->context = context;
    if ((status = fill(made, attention)) != CLFD_SUCCESS) {
        free(made);
        return status;
    }
    clfd_context_retain(context);
    atomic_init(&made->references, 1);
    *plan = made;
    return CLFD_SUCCESS;
}

void clfd_plan_retain(clfd_plan *plan)
{
    if (plan != NULL)
        atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
}

void clfd_plan_release(clfd_plan *plan)
{
    if (plan == NULL || atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) != 1)
        return;
    clfd_kernel_destroy(&plan->decode);
    clfd_kernel_destroy(&plan->balanced);
    clfd_kernel_destroy(&plan->merge);
    clfd_context_release(plan->context);
    free(plan);
}

size_t clfd_plan_workspace_bytes(const clfd_plan *plan)
{
    return plan != NULL ? (size_t)plan->schedule.workspace_bytes : 0;
}

const char *clfd_plan_describe(const clfd_plan *plan) { return plan != NULL ? plan->description : NULL; }

#include "run/append.h"
#include "run/buffers.h"
#include "struct_size.h"
#include <stdlib.h>

#define MAX_OPTIONS 768

/* Where the device refuses the work-group, smaller ones are tried. */
static clfd_status create_kernel(clfd_append_plan *plan)
{
    const clfd_caps *const caps = &plan->context->caps;
    char options[MAX_OPTIONS];

    plan->pieces = clfd_append_cut(caps, &plan->append);
    for (;; plan->pieces.work_group /= 2) {
        const uint32_t size = plan->pieces.work_group;
        clfd_append_options(caps, &plan->append, &plan->pieces, options, sizeof options);
        const clfd_status status = clfd_kernel_create(plan->context, "append", "append", options, size, 0,
                                                      size > 1 ? CLFD_LOG_WARNING : CLFD_LOG_ERROR, &plan->kernel);
        if (status == CLFD_SUCCESS || status == CLFD_ERROR_KERNEL_SOURCE || size == 1)
            return status;
    }
}

clfd_status clfd_append_plan_create(clfd_context *context, const clfd_append *append, clfd_append_plan **plan)
{
    clfd_append_plan *made;
    clfd_status status;

    if (context == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    if (plan == NULL)
        return clfd_fail(&context->logger, CLFD_ERROR_NULL_ARGUMENT, "clfd_append_plan_create: plan is NULL");
    if ((made = calloc(1, sizeof *made)) == NULL)
        return clfd_fail(&context->logger, CLFD_ERROR_HOST_MEMORY, "no memory for a clfd_append_plan");
    made->context = context;
    if ((status = clfd_complete_append(append, &made->append, &made->attention, &context->logger)) != CLFD_SUCCESS ||
        (status = create_kernel(made)) != CLFD_SUCCESS) {
        free(made);
        return status;
    }
    made->attention.tuning = NULL; /* the caller's string; not ours to keep */
    clfd_append_describe(&made->append, &made->pieces, made->description, sizeof made->description);
    clfd_context_retain(context);
    atomic_init(&made->references, 1);
    *plan = made;
    return CLFD_SUCCESS;
}

void clfd_append_plan_retain(clfd_append_plan *plan)
{
    if (plan != NULL)
        atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
}

void clfd_append_plan_release(clfd_append_plan *plan)
{
    if (plan == NULL || atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) != 1)
        return;
    clfd_kernel_destroy(&plan->kernel);
    clfd_context_release(plan->context);
    free(plan);
}

const char *clfd_append_plan_describe(const clfd_append_plan *plan) { return plan != NULL ? plan->description : NULL; }

static clfd_status launch(clfd_append_plan *plan, cl_command_queue queue, const clfd_append_buffers *b,
                          cl_uint num_wait, const cl_event *wait, cl_event *event)
{
    /* In the order of the kernel's parameters. */
    const clfd_buffer *const buffers[] = {
        &b->new_k,       &b->new_v,    &b->k,           &b->v,           &b->k_scale,         &b->v_scale,
        &b->k_zero,      &b->v_zero,   &b->block_table, &b->page_indptr, &b->cache_batch_idx, &b->kv_lens,
        &b->kv_lens_out, &b->new_lens, &b->cos,         &b->sin,         &b->positions,       &b->q,
        &b->status,
    };
    enum { NUM_BUFFERS = sizeof buffers / sizeof buffers[0] };
    const append_args args = clfd_make_append_args(plan, b);
    const uint64_t items = clfd_append_items(&plan->append, &plan->pieces, b->batch);
    const uint64_t groups = (items + plan->pieces.work_group - 1) / plan->pieces.work_group;
    cl_mem mems[NUM_BUFFERS];
    clfd_argument arguments[NUM_BUFFERS + 1];

    for (int i = 0; i < NUM_BUFFERS; i++) {
        mems[i] = clfd_buffer_mem(buffers[i]);
        arguments[i] = (clfd_argument){sizeof(cl_mem), &mems[i]};
    }
    arguments[NUM_BUFFERS] = (clfd_argument){sizeof args, &args};
    return clfd_kernel_launch(&plan->kernel, queue, arguments, NUM_BUFFERS + 1, groups, num_wait, wait, event,
                              &plan->context->logger);
}

clfd_status clfd_enqueue_append(clfd_append_plan *plan, cl_command_queue queue, const clfd_append_buffers *buffers,
                                cl_uint num_wait, const cl_event *wait, cl_event *event)
{
    clfd_append_buffers known;
    bool out_of_order;
    clfd_status status;

    if (plan == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    const clfd_logger *const logger = &plan->context->logger;
    const clfd_attention *const a = &plan->attention;
    const uint32_t most = a->shared_kv ? 1 : a->max_batch;
    if ((status = clfd_read_struct(buffers, &known, sizeof known, "clfd_append_buffers", logger)) != CLFD_SUCCESS ||
        (status = clfd_check_queue(plan->context, queue, num_wait, wait, &out_of_order)) != CLFD_SUCCESS)
        return status;
    if (known.batch > most)
        return clfd_fail(logger, CLFD_ERROR_BATCH_RANGE, "batch is %u; %s %u", known.batch,
                         a->shared_kv ? "with shared_kv it must not exceed" : "the plan's max_batch is", most);
    if (known.batch == 0)
        return clfd_enqueue_marker(plan->context, queue, num_wait, wait, event);
    if ((status = clfd_check_append_buffers(plan, &known)) != CLFD_SUCCESS)
        return status;
    return launch(plan, queue, &known, num_wait, wait, event);
}

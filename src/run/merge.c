#include "args.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "run/buffers.h"
#include "run/kernel.h"
#include "struct_size.h"
#include <stdlib.h>
#include <string.h>

struct clfd_merge_plan {
    atomic_uint references;
    clfd_context *context;
    clfd_merge merge; /* complete */
    clfd_kernel reduce;
    clfd_kernel pair; /* absent unless num_states is 2 and out_type F32 */
    char description[128];
};

/* The work-group that a merge kernel gets on this device, as a decode plan's merge does. */
static clfd_status create_kernels(clfd_merge_plan *plan)
{
    const clfd_merge *const m = &plan->merge;
    const uint32_t work_group = clfd_merge_work_group(&plan->context->caps, m->head_dim_v);
    clfd_status status = clfd_kernel_create_merge(plan->context, "merge", m->partial, m->head_dim_v, m->out_type,
                                                  work_group, &plan->reduce);

    if (status == CLFD_SUCCESS && m->num_states == 2 && m->out_type == CLFD_TYPE_F32)
        status = clfd_kernel_create_merge(plan->context, "merge_pair", m->partial, m->head_dim_v, m->out_type,
                                          work_group, &plan->pair);
    if (status != CLFD_SUCCESS)
        clfd_kernel_destroy(&plan->reduce);
    return status;
}

clfd_status clfd_merge_plan_create(clfd_context *context, const clfd_merge *merge, clfd_merge_plan **plan)
{
    clfd_merge_plan *made;
    clfd_status status;

    if (context == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    if (plan == NULL)
        return clfd_fail(&context->logger, CLFD_ERROR_NULL_ARGUMENT, "clfd_merge_plan_create: plan is NULL");
    if ((made = calloc(1, sizeof *made)) == NULL)
        return clfd_fail(&context->logger, CLFD_ERROR_HOST_MEMORY, "no memory for a clfd_merge_plan");
    made->context = context;
    if ((status = clfd_complete_merge(merge, &made->merge, &context->logger)) != CLFD_SUCCESS ||
        (status = create_kernels(made)) != CLFD_SUCCESS) {
        free(made);
        return status;
    }
    snprintf(made->description, sizeof made->description, "merge %s dv%u states%u %s wg=%zu",
             clfd_type_name(made->merge.out_type), made->merge.head_dim_v, made->merge.num_states,
             made->merge.partial == CLFD_PARTIAL_MLO ? "mlo" : "lse", made->reduce.work_group);
    clfd_context_retain(context);
    atomic_init(&made->references, 1);
    *plan = made;
    return CLFD_SUCCESS;
}

void clfd_merge_plan_retain(clfd_merge_plan *plan)
{
    if (plan != NULL)
        atomic_fetch_add_explicit(&plan->references, 1, memory_order_relaxed);
}

void clfd_merge_plan_release(clfd_merge_plan *plan)
{
    if (plan == NULL || atomic_fetch_sub_explicit(&plan->references, 1, memory_order_acq_rel) != 1)
        return;
    clfd_kernel_destroy(&plan->reduce);
    clfd_kernel_destroy(&plan->pair);
    clfd_context_release(plan->context);
    free(plan);
}

const char *clfd_merge_plan_describe(const clfd_merge_plan *plan) { return plan != NULL ? plan->description : NULL; }

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

/* Names of a state's arrays in sentences, one set per operand. */
typedef struct state_names {
    const char *o, *lse, *m, *l;
} state_names;

/* How a call uses a state. */
typedef enum state_use { STATE_INPUT, STATE_RESULT, STATE_ACCUMULATOR } state_use;

/* Appends the ranges of a state's arrays; `count` states in all. Returns the new number of ranges. */
static size_t add_state(const clfd_merge_plan *plan, const clfd_state_buffers *state, const state_names *names,
                        state_use use, uint64_t count, clfd_range *ranges, size_t num_ranges)
{
    const bool mlo = plan->merge.partial == CLFD_PARTIAL_MLO, result = use == STATE_RESULT;
    const clfd_type o_type = result ? plan->merge.out_type : CLFD_TYPE_F32;
    const uint64_t stat_bytes = count * sizeof(float);
    const struct {
        const char *name;
        const clfd_buffer *buffer;
        uint64_t bytes;
        size_t alignment;
        bool belongs, required;
    } parts[] = {
        {names->o, &state->o, count * plan->merge.head_dim_v * clfd_type_size(o_type),
         result ? clfd_type_size(o_type) : 16, true, true},
        {names->lse, &state->lse, stat_bytes, sizeof(float), !mlo, !mlo && !result},
        {names->m, &state->m, stat_bytes, sizeof(float), mlo, mlo && !result},
        {names->l, &state->l, stat_bytes, sizeof(float), mlo, mlo && !result},
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].belongs)
            ranges[num_ranges++] = (clfd_range){.name = parts[i].name,
                                                .buffer = parts[i].buffer,
                                                .bytes = parts[i].bytes,
                                                .element = i == 0 ? clfd_type_size(o_type) : sizeof(float),
                                                .alignment = parts[i].alignment,
                                                .required = parts[i].required,
                                                .written = use != STATE_INPUT,
                                                .may_equal = result ? 0 : (unsigned)i + 1,
                                                .too_small = CLFD_ERROR_BUFFER_SIZE};
    return num_ranges;
}

/* A statistic that the plan's format does not have must be NONE, so that nobody believes that it was read or written. */
static clfd_status refuse_unused(const clfd_merge_plan *plan, const clfd_state_buffers *state, const state_names *names)
{
    const bool mlo = plan->merge.partial == CLFD_PARTIAL_MLO;
    const clfd_buffer *const unused[2] = {mlo ? &state->lse : &state->m, mlo ? &state->lse : &state->l};
    const char *const unused_names[2] = {mlo ? names->lse : names->m, mlo ? names->lse : names->l};

    for (int i = 0; i < 2; i++)
        if (unused[i]->kind != CLFD_BUFFER_NONE)
            return clfd_fail(&plan->context->logger, CLFD_ERROR_BUFFER_UNEXPECTED,
                             "%s is given; states of the %s format have none", unused_names[i], mlo ? "MLO" : "LSE");
    return CLFD_SUCCESS;
}

static const state_names input_names = {"states.o", "states.lse", "states.m", "states.l"};
static const state_names a_names = {"a.o", "a.lse", "a.m", "a.l"};
static const state_names b_names = {"b.o", "b.lse", "b.m", "b.l"};
static const state_names merged_names = {"merged.o", "merged.lse", "merged.m", "merged.l"};

static clfd_status check_rows(const clfd_merge_plan *plan, uint32_t rows)
{
    if (rows > plan->merge.max_rows)
        return clfd_fail(&plan->context->logger, CLFD_ERROR_NUM_STATES, "rows is %u; the plan's max_rows is %u", rows,
                         plan->merge.max_rows);
    return CLFD_SUCCESS;
}

static cl_long floats(const clfd_buffer *buffer) { return (cl_long)(buffer->offset / sizeof(float)); }

/* The two statistics of an input state, S twice where there is one. */
static const clfd_buffer *stat0(const clfd_merge_plan *plan, const clfd_state_buffers *state)
{
    return plan->merge.partial == CLFD_PARTIAL_MLO ? &state->m : &state->lse;
}

static const clfd_buffer *stat1(const clfd_merge_plan *plan, const clfd_state_buffers *state)
{
    return plan->merge.partial == CLFD_PARTIAL_MLO ? &state->l : &state->lse;
}

static merge_stats_args make_stats_args(const clfd_state_buffers *merged)
{
    return (merge_stats_args){
        .lse_offset = floats(&merged->lse),
        .m_offset = floats(&merged->m),
        .l_offset = floats(&merged->l),
        .has_lse = merged->lse.kind != CLFD_BUFFER_NONE,
        .has_m = merged->m.kind != CLFD_BUFFER_NONE,
        .has_l = merged->l.kind != CLFD_BUFFER_NONE,
    };
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static clfd_status launch_reduce(clfd_merge_plan *plan, cl_command_queue queue, uint32_t rows,
                                 const clfd_state_buffers *states, const clfd_state_buffers *merged, cl_uint num_wait,
                                 const cl_event *wait, cl_event *event)
{
    const clfd_merge *const m = &plan->merge;
    const cl_mem mems[] = {states->o.mem,
                           stat0(plan, states)->mem,
                           stat1(plan, states)->mem,
                           NULL,
                           NULL,
                           merged->o.mem,
                           clfd_buffer_mem(&merged->lse),
                           clfd_buffer_mem(&merged->m),
                           clfd_buffer_mem(&merged->l)};
    enum { NUM_MEMS = sizeof mems / sizeof mems[0] };
    clfd_argument arguments[NUM_MEMS + 1];
    merge_args args;

    memset(&args, 0, sizeof args);
    args.o_offset = floats(&states->o);
    args.stat0_offset = floats(stat0(plan, states));
    args.stat1_offset = floats(stat1(plan, states));
    args.out_offset = (cl_long)(merged->o.offset / clfd_type_size(m->out_type));
    args.out_batch = m->head_dim_v;
    args.stats = make_stats_args(merged);
    args.num_rows = (cl_int)rows;
    args.q_len = args.num_q_heads = 1;
    args.partial_slots = (cl_int)m->num_states;
    args.list = MERGE_ALL;
    for (int i = 0; i < NUM_MEMS; i++)
        arguments[i] = (clfd_argument){sizeof(cl_mem), &mems[i]};
    arguments[NUM_MEMS] = (clfd_argument){sizeof args, &args};
    return clfd_kernel_launch(&plan->reduce, queue, arguments, NUM_MEMS + 1, rows, num_wait, wait, event,
                              &plan->context->logger);
}

static clfd_status launch_pair(clfd_merge_plan *plan, cl_command_queue queue, uint32_t rows,
                               const clfd_state_buffers *a, const clfd_state_buffers *b,
                               const clfd_state_buffers *merged, cl_uint num_wait, const cl_event *wait,
                               cl_event *event)
{
    const cl_mem mems[] = {a->o.mem,
                           stat0(plan, a)->mem,
                           stat1(plan, a)->mem,
                           b->o.mem,
                           stat0(plan, b)->mem,
                           stat1(plan, b)->mem,
                           merged->o.mem,
                           clfd_buffer_mem(&merged->lse),
                           clfd_buffer_mem(&merged->m),
                           clfd_buffer_mem(&merged->l)};
    enum { NUM_MEMS = sizeof mems / sizeof mems[0] };
    clfd_argument arguments[NUM_MEMS + 1];
    merge_pair_args args;

    memset(&args, 0, sizeof args);
    args.o1_offset = floats(&a->o);
    args.stat0_1_offset = floats(stat0(plan, a));
    args.stat1_1_offset = floats(stat1(plan, a));
    args.o2_offset = floats(&b->o);
    args.stat0_2_offset = floats(stat0(plan, b));
    args.stat1_2_offset = floats(stat1(plan, b));
    args.out_offset = floats(&merged->o);
    args.stats = make_stats_args(merged);
    for (int i = 0; i < NUM_MEMS; i++)
        arguments[i] = (clfd_argument){sizeof(cl_mem), &mems[i]};
    arguments[NUM_MEMS] = (clfd_argument){sizeof args, &args};
    return clfd_kernel_launch(&plan->pair, queue, arguments, NUM_MEMS + 1, rows, num_wait, wait, event,
                              &plan->context->logger);
}

clfd_status clfd_enqueue_merge(clfd_merge_plan *plan, cl_command_queue queue, uint32_t rows,
                               const clfd_state_buffers *states, const clfd_state_buffers *merged, cl_uint num_wait,
                               const cl_event *wait, cl_event *event)
{
    clfd_range ranges[CLFD_MAX_RANGES];
    bool out_of_order;
    size_t count;
    clfd_status status;

    if (plan == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    if (states == NULL || merged == NULL)
        return clfd_fail(&plan->context->logger, CLFD_ERROR_NULL_ARGUMENT, "clfd_enqueue_merge: %s is NULL",
                         states == NULL ? "states" : "merged");
    if ((status = clfd_check_queue(plan->context, queue, num_wait, wait, &out_of_order)) != CLFD_SUCCESS ||
        (status = check_rows(plan, rows)) != CLFD_SUCCESS)
        return status;
    if (rows == 0)
        return clfd_enqueue_marker(plan->context, queue, num_wait, wait, event);
    count = add_state(plan, states, &input_names, STATE_INPUT, (uint64_t)rows * plan->merge.num_states, ranges, 0);
    count = add_state(plan, merged, &merged_names, STATE_RESULT, rows, ranges, count);
    if ((status = refuse_unused(plan, states, &input_names)) != CLFD_SUCCESS ||
        (status = refuse_unused(plan, merged, &merged_names)) != CLFD_SUCCESS ||
        (status = clfd_check_ranges(plan->context, ranges, count)) != CLFD_SUCCESS)
        return status;
    return launch_reduce(plan, queue, rows, states, merged, num_wait, wait, event);
}

clfd_status clfd_enqueue_merge_pair(clfd_merge_plan *plan, cl_command_queue queue, uint32_t rows,
                                    const clfd_state_buffers *a, const clfd_state_buffers *b,
                                    const clfd_state_buffers *merged, cl_uint num_wait, const cl_event *wait,
                                    cl_event *event)
{
    clfd_range ranges[CLFD_MAX_RANGES];
    bool out_of_order;
    size_t count;
    clfd_status status;

    if (plan == NULL)
        return CLFD_ERROR_NULL_ARGUMENT;
    const clfd_logger *const logger = &plan->context->logger;
    if (a == NULL || b == NULL || merged == NULL)
        return clfd_fail(logger, CLFD_ERROR_NULL_ARGUMENT, "clfd_enqueue_merge_pair: %s is NULL",
                         a == NULL   ? "a"
                         : b == NULL ? "b"
                                     : "merged");
    if (plan->pair.handle == NULL)
        return clfd_fail(logger, CLFD_ERROR_NUM_STATES,
                         "the plan has num_states %u and out_type %s; a pairwise merge needs 2 and f32",
                         plan->merge.num_states, clfd_type_name(plan->merge.out_type));
    if ((status = clfd_check_queue(plan->context, queue, num_wait, wait, &out_of_order)) != CLFD_SUCCESS ||
        (status = check_rows(plan, rows)) != CLFD_SUCCESS)
        return status;
    if (rows == 0)
        return clfd_enqueue_marker(plan->context, queue, num_wait, wait, event);
    count = add_state(plan, a, &a_names, STATE_INPUT, rows, ranges, 0);
    count = add_state(plan, b, &b_names, STATE_INPUT, rows, ranges, count);
    count = add_state(plan, merged, &merged_names, STATE_ACCUMULATOR, rows, ranges, count);
    if ((status = refuse_unused(plan, a, &a_names)) != CLFD_SUCCESS ||
        (status = refuse_unused(plan, b, &b_names)) != CLFD_SUCCESS ||
        (status = refuse_unused(plan, merged, &merged_names)) != CLFD_SUCCESS ||
        (status = clfd_check_ranges(plan->context, ranges, count)) != CLFD_SUCCESS)
        return status;
    return launch_pair(plan, queue, rows, a, b, merged, num_wait, wait, event);
}

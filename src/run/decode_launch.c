#include "run/buffers.h"
#include "run/decode.h"

clfd_status clfd_launch_decode(clfd_plan *plan, cl_command_queue queue, const clfd_decode_call *call, cl_uint num_wait,
                               const cl_event *wait, cl_event *event)
{
    const clfd_attention *const a = &plan->attention;
    const clfd_buffers *const b = &call->buffers;
    clfd_kernel *const kernel = call->balanced ? &plan->balanced : &plan->decode;
    /* In the order of DECODE_ARGUMENTS in cl/inputs.cl, but for args. */
    const clfd_buffer *const buffers[] = {
        &b->q,
        &b->k,
        a->v_from_k ? &b->k : &b->v,
        &b->kv_lens,
        &b->alibi,
        &b->bias,
        &b->mask,
        &b->sinks,
        &b->query_positions,
        &b->kv_start,
        &b->cache_batch_idx,
        &b->block_table,
        &b->page_indptr,
        &b->k_scale,
        a->v_from_k ? &b->k_scale : &b->v_scale,
        &b->k_zero,
        a->v_from_k ? &b->k_zero : &b->v_zero,
        &b->out,
        &b->lse,
        &b->status,
        &b->workspace,
    };
    enum { NUM_BUFFERS = sizeof buffers / sizeof buffers[0], ARGS = 4 }; /* the place of decode_args */
    cl_mem mems[NUM_BUFFERS];
    clfd_argument arguments[NUM_BUFFERS + 1];
    const decode_args args = clfd_make_decode_args(plan, call);
    const uint64_t most = plan->schedule.max_groups;

    for (int i = 0; i < NUM_BUFFERS; i++) {
        mems[i] = clfd_buffer_mem(buffers[i]);
        arguments[i < ARGS ? i : i + 1] = (clfd_argument){sizeof(cl_mem), &mems[i]};
    }
    arguments[ARGS] = (clfd_argument){sizeof args, &args};
    return clfd_kernel_launch(kernel, queue, arguments, NUM_BUFFERS + 1,
                              call->balanced                            ? plan->schedule.num_groups
                              : most > 0 && most < (uint64_t)args.items ? most
                                                                        : (uint64_t)args.items,
                              num_wait, wait, event, &plan->context->logger);
}

clfd_status clfd_launch_merge(clfd_plan *plan, cl_command_queue queue, const clfd_decode_call *call, cl_uint num_wait,
                              const cl_event *wait, cl_event *event)
{
    const clfd_buffers *const b = &call->buffers;
    const cl_mem workspace = b->workspace.mem, sinks = clfd_buffer_mem(&b->sinks), out = b->out.mem,
                 lse = clfd_buffer_mem(&b->lse), none = NULL;
    const merge_args args = clfd_make_merge_args(plan, call);
    const clfd_argument arguments[] = {
        {sizeof(cl_mem), &workspace}, {sizeof(cl_mem), &workspace}, {sizeof(cl_mem), &workspace},
        {sizeof(cl_mem), &workspace}, {sizeof(cl_mem), &sinks},     {sizeof(cl_mem), &out},
        {sizeof(cl_mem), &lse},       {sizeof(cl_mem), &none},      {sizeof(cl_mem), &none},
        {sizeof args, &args},
    };

    return clfd_kernel_launch(&plan->merge, queue, arguments, sizeof arguments / sizeof arguments[0],
                              (uint64_t)args.num_rows, num_wait, wait, event, &plan->context->logger);
}

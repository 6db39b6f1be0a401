#include "run/buffers.h"
#include "run/decode.h"

clfd_status clfd_launch_decode(clfd_plan *plan, cl_command_queue queue, const clfd_decode_call *call, cl_uint num_wait,
                               const cl_event *wait, cl_event *event)
{
    const clfd_attention *const a = &plan->attention;
    const clfd_buffers *const b = &call->buffers;
    clfd_kernel *const kernel = call->balanced ? &plan->balanced : &plan->decode;
    const decode_args args = clfd_make_decode_args(plan, call);
    const uint32_t wants = clfd_decode_wants(a);
    /* In the order of DECODE_ARGUMENTS in cl/inputs.cl. */
    const struct {
        const clfd_buffer *buffer; /* NULL: args */
        uint32_t wanted;           /* 0: always */
    } inputs[] = {
        {&b->q, 0},
        {&b->k, 0},
        {a->v_from_k ? &b->k : &b->v, 0},
        {&b->kv_lens, 0},
        {NULL, 0},
        {&b->alibi, CLFD_WANTS_ALIBI},
        {&b->bias, CLFD_WANTS_BIAS},
        {&b->mask, CLFD_WANTS_MASK},
        {&b->sinks, CLFD_WANTS_SINKS},
        {&b->query_positions, CLFD_WANTS_POSITIONS},
        {&b->kv_start, CLFD_WANTS_KV_START},
        {&b->cache_batch_idx, CLFD_WANTS_CACHE_ROWS},
        {&b->block_table, CLFD_WANTS_BLOCK_TABLE},
        {&b->page_indptr, CLFD_WANTS_PAGE_INDPTR},
        {&b->k_scale, CLFD_WANTS_K_SCALE},
        {&b->v_scale, CLFD_WANTS_V_SCALE},
        {&b->k_zero, CLFD_WANTS_K_ZERO},
        {&b->v_zero, CLFD_WANTS_V_ZERO},
        {&b->out, 0},
        {&b->lse, 0},
        {&b->status, 0},
        {&b->workspace, 0},
    };
    enum { NUM_INPUTS = sizeof inputs / sizeof inputs[0] };
    cl_mem mems[NUM_INPUTS];
    clfd_argument arguments[NUM_INPUTS];
    size_t count = 0;
    const uint64_t most = plan->schedule.max_groups;

    for (int i = 0; i < NUM_INPUTS; i++) {
        if (inputs[i].wanted != 0 && (wants & inputs[i].wanted) == 0)
            continue;
        if (inputs[i].buffer == NULL) {
            arguments[count++] = (clfd_argument){sizeof args, &args};
            continue;
        }
        mems[i] = clfd_buffer_mem(inputs[i].buffer);
        arguments[count++] = (clfd_argument){sizeof(cl_mem), &mems[i]};
    }
    return clfd_kernel_launch(kernel, queue, arguments, count,
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

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

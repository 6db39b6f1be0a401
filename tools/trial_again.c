#include "verify_draw.h"
#include "verify_run.h"
#include <stdlib.h>
#include <string.h>

/* Images of the results alone. */
static bool allocate_results(verify_run *run, verify_images *images)
{
    for (int i = OPERAND_OUT; i <= OPERAND_STATUS; i++) {
        const size_t bytes = placement_bytes(&run->trial->placements[i]);
        if (!run->trial->placements[i].present)
            continue;
        images->data[i] = malloc(bytes);
        if (images->data[i] == NULL)
            return fault_failed(run->fault, "no memory for %zu bytes of %s", bytes, run_operand_names[i]);
    }
    return true;
}

bool run_compare_again(verify_run *run, const char *what)
{
    verify_images second = {{NULL}, false};
    bool good =
        allocate_results(run, &second) && run_decode(run, run->plan, run->trial->batch, NULL) && run_read(run, &second);

    for (int i = OPERAND_OUT; good && i <= OPERAND_STATUS; i++)
        if (second.data[i] != NULL &&
            memcmp(run->images.data[i], second.data[i], placement_bytes(&run->trial->placements[i])) != 0)
            good = fault_failed(run->fault, "%s gives other bits in %s", what, run_operand_names[i]);
    images_free(&second);
    return good;
}

bool run_check_repeat(verify_run *run) { return run_compare_again(run, "a second run of the same call"); }

/* A plan for one sequence, with the cache of the whole batch. */
static bool create_alone_plan(verify_run *run, clfd_plan **plan)
{
    clfd_attention attention = run->trial->attention;
    clfd_status status;

    attention.max_batch = 1;
    attention.num_cache_rows = attention.cache_batch_idx ? run->trial->num_cache_rows : 0;
    status = clfd_plan_create(run->session->clfd, &attention, plan);
    return status == CLFD_SUCCESS ? true : fault_status(run->fault, status, "clfd_plan_create of a batch of 1");
}

/* The rows of the sequence in the first result, and those of the call of it alone. */
static bool compare_alone(verify_run *run, const verify_images *alone)
{
    const verify_trial *trial = run->trial;
    const clfd_attention *a = &trial->attention;
    const size_t element = clfd_type_size(a->out_type), rows = (size_t)a->q_len * a->num_q_heads;
    const uint32_t b = trial->alone_sequence;
    const unsigned char *out = image_base(trial, &run->images, OPERAND_OUT);
    const unsigned char *out_alone = image_base(trial, alone, OPERAND_OUT);
    const float *lse = image_base(trial, &run->images, OPERAND_LSE);
    const float *lse_alone = image_base(trial, alone, OPERAND_LSE);

    for (uint32_t i = 0; i < a->q_len; i++)
        for (uint32_t h = 0; h < a->num_q_heads; h++) {
            const size_t row = (size_t)(i * trial->out.token + h * trial->out.head) * element;
            if (memcmp(out + (size_t)(b * trial->out.batch) * element + row, out_alone + row,
                       a->head_dim_v * element) != 0)
                return fault_failed(run->fault, "sequence %u alone gives other bits in out[%u, %u, %u]", b, b, i, h);
        }
    if (lse != NULL && memcmp(lse + b * rows, lse_alone, rows * sizeof lse[0]) != 0)
        return fault_failed(run->fault, "sequence %u alone gives other bits in lse", b);
    return true;
}

bool run_check_alone(verify_run *run)
{
    verify_images alone = {{NULL}, false};
    size_t shifts[NUM_OPERANDS];
    clfd_plan *plan = NULL;
    bool good;

    for (int i = 0; i < NUM_OPERANDS; i++)
        shifts[i] = draw_alone_shift(run->trial, (verify_operand)i, run->trial->alone_sequence);
    good = create_alone_plan(run, &plan) && allocate_results(run, &alone) && run_decode(run, plan, 1, shifts) &&
           run_read(run, &alone) && compare_alone(run, &alone);
    clFinish(run->session->queue);
    clfd_plan_release(plan);
    images_free(&alone);
    return good;
}

/* verify_run.h - one trial on the device, and what is checked of it beside the result. */
#ifndef TOOLS_VERIFY_RUN_H
#define TOOLS_VERIFY_RUN_H

#include "verify.h"

typedef struct verify_run {
    tool_session *session;
    clfd_plan *plan;
    verify_trial *trial;
    verify_images images; /* as given; those of out, lse and status then hold the first result */
    cl_mem buffers[NUM_OPERANDS];
    tool_fault *fault;
} verify_run;

extern const char *const run_operand_names[NUM_OPERANDS];

/* One call into fresh poison. shifts: bytes by which operands lie behind the trial's own; NULL for none. */
bool run_decode(verify_run *run, clfd_plan *plan, uint32_t batch, const size_t shifts[NUM_OPERANDS]);

/* Reads out, lse and status into images that have room for them. */
bool run_read(verify_run *run, verify_images *images);

/* Computes the whole batch once more; every bit must be what it was. */
bool run_compare_again(verify_run *run, const char *what);

/* The checks, each with its own calls: false with a sentence. */
bool run_check_written(verify_run *run);  /* nothing outside out, lse, status and the workspace */
bool run_check_inputs(verify_run *run);   /* the inputs are what they were */
bool run_check_repeat(verify_run *run);   /* a second call gives equal bits */
bool run_check_alone(verify_run *run);    /* one sequence alone gives equal bits */
bool run_check_permuted(verify_run *run); /* pages in another order give equal bits; changes the buffers */

#endif

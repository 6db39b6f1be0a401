/* verify_judge.h - what an answer may differ by. */
#ifndef TOOLS_VERIFY_JUDGE_H
#define TOOLS_VERIFY_JUDGE_H

#include "verify_view.h"

/* clfd_reference_attention of the images: out, lse and the status word, which is 0 at first. */
bool judge_compute_reference(const verify_trial *trial, const verify_images *images, double *out, double *lse,
                             uint32_t *word, tool_fault *fault);

/* What bounds the rows of one KV head of one sequence. */
typedef struct judge_bounds {
    double key_norm;  /* the largest norm of a visible key */
    double value_max; /* the largest visible |V| */
} judge_bounds;

judge_bounds judge_find_bounds(const verify_trial *trial, const verify_images *images, uint32_t sequence,
                               uint32_t head);

/* What one row's out and lse may differ by; lse is the reference's. */
typedef struct judge_tolerance {
    double lse;
    double out;                      /* absolute, before rounding to out's type */
    double half_unit, half_smallest; /* that rounding: relative and absolute */
} judge_tolerance;

judge_tolerance judge_find_tolerance(const verify_trial *trial, const verify_images *images, const judge_bounds *bounds,
                                     uint32_t b, uint32_t i, uint32_t h, double lse);

#endif

/* attention.h - one decode, from the description of a problem to the comparison with the reference.
 *
 * Whatever the problem leaves unused in q, K and V (paddings, tails, sequences beyond the batch, bytes before the
 * tensor) holds NaN; out, lse and the workspace are filled with 0xFF and have guard bytes on both sides, and the
 * workspace has exactly the size that the plan reports. Everything that was not to be written must hold 0xFF afterwards,
 * and the control region zeros.
 *
 *     attention_call *call = attention_open(&problem);   // draws values, creates the plan
 *     image_put(&call->images[ATTENTION_K], 0, 3, 0, 7, NAN); // changes some
 *     attention_run(call);                               // call->out and call->lse are there now
 *     attention_expect_reference(call);
 *     attention_close(call);
 */
#ifndef TEST_SUPPORT_ATTENTION_H
#define TEST_SUPPORT_ATTENTION_H

#include "support/image.h"
#include "support/session.h"
#include <stdbool.h>

/* Bytes on either side of what is written: a multiple of every alignment promise of the tests. */
#define ATTENTION_GUARD 192

typedef struct attention_problem {
    clfd_attention attention; /* struct_size is filled in */
    uint32_t batch;           /* of the call; 0: max_batch */
    uint32_t kv_len_bound;
    const int32_t *kv_lens;     /* [batch]; NULL: none are given */
    bool no_lse;                /* lse is NONE */
    bool hot;                   /* scores in the hundreds: the wider tolerance */
    float poison;               /* what unused elements of q, K and V hold; 0: NaN */
    size_t q_offset, kv_offset; /* bytes before q, and before K and V */
    size_t out_offset;
    uint64_t seed;
} attention_problem;

typedef enum attention_tensor {
    ATTENTION_Q,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_OUT,
    ATTENTION_TENSORS
} attention_tensor;

typedef struct attention_call {
    attention_problem problem;
    clfd_attention complete; /* every default filled in */
    uint32_t batch;
    tensor_image images[ATTENTION_TENSORS];
    clfd_plan *plan;
    clfd_buffers buffers; /* on the device from attention_upload on */
    float *out, *lse;     /* what came back: [batch][q_len][num_q_heads][head_dim_v], and without dims */
    double *expected_out, *expected_lse;
    size_t num_rows; /* batch * q_len * num_q_heads */
} attention_call;

attention_call *attention_open(const attention_problem *problem);
void attention_close(attention_call *call);

/* The length of a sequence as the library must see it: clamped. */
uint32_t attention_kv_len(const attention_call *call, uint32_t batch);

/* upload: writes the inputs, spoils the outputs, initialises the workspace. read: waits for the session's queue, reads
 * the outputs and checks everything that must not have changed. run: both, with the decode between them. */
void attention_upload(attention_call *call);
void attention_read(attention_call *call);
void attention_run(attention_call *call);

/* Compares out and lse with clfd_reference_attention on the same images. */
void attention_expect_reference(attention_call *call);

/* The same with given results instead. */
void attention_expect(const attention_call *call, const double *out, const double *lse);

/* open, run, expect_reference, close. */
void attention_verify(const attention_problem *problem);

/* out[row] and lse[row] of a call, row = (batch * q_len + query) * num_q_heads + head. */
size_t attention_row(const attention_call *call, uint32_t batch, uint32_t query, uint32_t head);
const float *attention_out(const attention_call *call, uint32_t batch, uint32_t query, uint32_t head);

/* Whether out and lse of two calls are equal bit for bit. */
bool attention_same_bits(const attention_call *a, const attention_call *b);

#endif

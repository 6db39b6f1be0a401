/* append_case.h - one append, from the description of a problem to the comparison with the loop of clfd/cache.h, run on
 * the host.
 *
 * Every tensor that is written lies between guard bytes and is filled with garbage. Afterwards every byte of its buffer
 * is compared: what the loop did not write must not have changed, and what it did write must be equal, but that any NaN
 * is as good as another.
 *
 *     append_call *call = append_open(&problem);       // draws values, creates the plan
 *     append_put(call, APPEND_NEW_K, 3, NAN);          // changes some
 *     append_run(call);
 *     append_expect_loop(call);
 *     append_close(call);
 */
#ifndef TEST_SUPPORT_APPEND_CASE_H
#define TEST_SUPPORT_APPEND_CASE_H

#include "support/session.h"
#include <stdbool.h>

typedef struct append_problem {
    clfd_attention attention; /* struct_size is filled in */
    clfd_append append;       /* likewise, and attention */
    bool gpu;                 /* the kernel that GPUs get: small pieces, many work-items */
    uint32_t batch;           /* of the call; 0: max_batch */
    const int32_t *kv_lens;   /* NULL: none are given */
    const int32_t *new_lens, *positions, *cache_batch_idx, *block_table, *page_indptr; /* where options ask for them */
    uint32_t num_page_indices;
    uint32_t status; /* bits that are set before */
    uint64_t seed;
} append_problem;

typedef enum append_tensor {
    APPEND_NEW_K,
    APPEND_NEW_V,
    APPEND_K,
    APPEND_V,
    APPEND_K_SCALE,
    APPEND_V_SCALE,
    APPEND_K_ZERO,
    APPEND_V_ZERO,
    APPEND_Q,
    APPEND_KV_LENS_OUT,
    APPEND_STATUS,
    APPEND_TENSORS
} append_tensor;

/* A tensor in host memory exactly as it lies in its buffer, and what the loop makes of it. */
typedef struct append_image {
    size_t offset, bytes; /* of element [0][0][0][0]; of all, with the guards; 0: there is none */
    unsigned char *data, *expected;
} append_image;

#define APPEND_GARBAGE 0xA5 /* what bytes hold that were not set */

typedef struct append_call {
    append_problem problem;
    clfd_attention attention; /* complete */
    clfd_append append;       /* complete */
    uint32_t batch;
    append_image images[APPEND_TENSORS];
    float *cos, *sin;
    clfd_append_plan *plan;
    clfd_append_buffers buffers; /* on the device from append_run on */
} append_call;

append_call *append_open(const append_problem *problem);
void append_close(append_call *call);

/* Element `index` of new_k, new_v or q, counted in memory from the first one. */
void append_put(append_call *call, append_tensor tensor, size_t index, float value);

/* Runs the loop on `expected`, and creates the buffers. run: the same, enqueues the append once, and reads what it wrote
 * into `data`. */
void append_upload(append_call *call);
void append_run(append_call *call);

/* Compares the images with the loop on what they held before. */
void append_expect_loop(append_call *call);

/* The status word and the lengths after append_run. */
uint32_t append_status(const append_call *call);
int32_t append_length(const append_call *call, uint32_t batch);

/* open, run, expect_loop, close: in the form that CPUs get and in the one of GPUs. */
void append_verify(const append_problem *problem);

/* The loop itself, on the images' `expected` (append_loop.c). */
void append_loop(append_call *call);

/* Where the rows of a tensor are, in bytes from the start of its buffer: the row of (batch or page, token, head), and of
 * the scale or zero of a group. */
size_t append_row_at(const append_call *call, append_tensor tensor, uint32_t batch, uint32_t token, uint32_t head);
size_t append_scale_at(const append_call *call, append_tensor tensor, uint32_t batch, uint32_t token, uint32_t head,
                       uint32_t group);

/* Page (or cache row) and token within it of a sequence's token, or the flag that says why there is none. */
uint32_t append_find_token(const append_call *call, uint32_t batch, int64_t token, uint32_t *page, uint32_t *within);

/* Tokens of a sequence before the append, and how many are new. */
int64_t append_kv_len(const append_call *call, uint32_t batch);
int64_t append_count(const append_call *call, uint32_t batch);

#endif

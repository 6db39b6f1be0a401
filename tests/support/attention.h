/* attention.h - one decode, from the description of a problem to the comparison with the reference.
 *
 * Whatever the problem leaves unused in its inputs holds poison: paddings, tails, sequences beyond the batch, bytes before
 * a tensor, keys that no query sees, the bias of keys that a row does not see, pages and entries of the block table that
 * nothing needs. out, lse and the workspace are filled with 0xFF and have guard bytes on both sides, and the workspace has
 * exactly the size that the plan reports. Everything that was not to be written must hold 0xFF afterwards, and the control
 * region zeros. A status word goes with every call: its bits must be those of the reference.
 *
 *     attention_call *call = attention_open(&problem);   // draws values, creates the plan
 *     image_put(&call->images[ATTENTION_K], 0, 3, 0, 7, NAN); // changes some
 *     attention_run(call);                               // call->out and call->lse are there now
 *     attention_expect_reference(call);
 *     attention_close(call);
 *
 * The values of a sequence are drawn from its identity alone, so that the same sequence may be had in another batch, in
 * another place, in pages, or in a larger cache.
 */
#ifndef TEST_SUPPORT_ATTENTION_H
#define TEST_SUPPORT_ATTENTION_H

#include "support/image.h"
#include "support/session.h"
#include <stdbool.h>

/* Bytes on either side of what is written: a multiple of every alignment promise of the tests. */
#define ATTENTION_GUARD 192

/* A bit of the status word that is nobody's, and set before each call: the library never clears one. */
#define ATTENTION_STATUS_BEFORE 0x40000000u

typedef struct attention_problem {
    clfd_attention attention; /* struct_size is filled in, and num_pages where it is 0 and there are pages */
    uint32_t batch;           /* of the call; 0: max_batch */
    uint32_t kv_len_bound;
    const int32_t *kv_lens;     /* [batch]; NULL: none are given */
    bool no_lse;                /* lse is NONE */
    bool hot;                   /* scores in the hundreds: the wider tolerance */
    float poison;               /* what unused elements of plain types hold; 0: NaN */
    size_t q_offset, kv_offset; /* bytes before q, and before K and V */
    size_t out_offset;
    uint64_t seed;

    /* Of options; NULL: drawn. Positions lie round those of the last keys, starts in the first half. */
    const int32_t *query_positions, *kv_start; /* [batch][q_len]; [batch] */
    const int32_t *cache_batch_idx;            /* [batch]; drawn: as far as possible all different */
    const uint32_t *identities;                /* [batch]; NULL: 0, 1, 2, ... */
    int32_t unused_entry;                      /* of the block table; 0: -1 */
    uint64_t page_seed;                        /* decides the order of the pages, and nothing else */
} attention_problem;

typedef enum attention_tensor {
    ATTENTION_Q,
    ATTENTION_K, /* [cache row or page][token][kv_head][dim], like V and the scales and zeros */
    ATTENTION_V,
    ATTENTION_OUT,
    ATTENTION_K_SCALE, /* [..][group], type scale_type */
    ATTENTION_V_SCALE,
    ATTENTION_K_ZERO,
    ATTENTION_V_ZERO,
    ATTENTION_ALIBI, /* dims are heads */
    ATTENTION_SINKS,
    ATTENTION_BIAS, /* [batch][query][head][key] */
    ATTENTION_MASK, /* [batch][query][0][key] in int8; a tree mask [batch][query][0][0] in 4 bytes */
    ATTENTION_TENSORS
} attention_tensor;

/* Arrays of int32 of the call. */
typedef enum attention_index {
    ATTENTION_KV_LENS,
    ATTENTION_POSITIONS,
    ATTENTION_START,
    ATTENTION_CACHE_ROWS,
    ATTENTION_BLOCK_TABLE,
    ATTENTION_PAGE_INDPTR,
    ATTENTION_INDICES
} attention_index;

typedef struct index_array {
    int32_t *values; /* NULL: there is none */
    size_t count;
} index_array;

typedef struct attention_call {
    attention_problem problem;
    clfd_attention complete;   /* every default filled in */
    uint32_t batch, sequences; /* of the call; of those, the ones with a K and V of their own */
    tensor_image images[ATTENTION_TENSORS];
    index_array indices[ATTENTION_INDICES];
    clfd_plan *plan;
    cl_mem (*create_input)(const void *data, size_t bytes); /* makes a buffer of each input; NULL: one like any other */
    clfd_buffers buffers;                                   /* on the device from attention_upload on */
    float *out, *lse; /* what came back: [batch][q_len][num_q_heads][head_dim_v], and without dims */
    uint32_t status;  /* likewise, without ATTENTION_STATUS_BEFORE */
    double *expected_out, *expected_lse;
    uint32_t expected_status;
    size_t num_rows; /* batch * q_len * num_q_heads */
} attention_call;

attention_call *attention_open(const attention_problem *problem);
void attention_close(attention_call *call);

/* The same without a plan, for those who want the tensors alone: attention_create_plan makes one later. */
attention_call *attention_draw(const attention_problem *problem);
void attention_create_plan(attention_call *call);

/* upload: writes the inputs, spoils the outputs, initialises the workspace. read: waits for the session's queue, reads
 * the outputs and checks everything that must not have changed. run: both, with the decode between them. */
void attention_upload(attention_call *call);
void attention_read(attention_call *call);
void attention_run(attention_call *call);

/* Compares out, lse and the status word with clfd_reference_attention on the same images. */
void attention_expect_reference(attention_call *call);

/* The same with given results instead. */
void attention_expect(const attention_call *call, const double *out, const double *lse);

/* open, run, expect_reference, close. */
void attention_verify(const attention_problem *problem);

/* ---- What the library must see in a problem (attention_keys.c) --------------------------------------------------- */

/* The length of a sequence: clamped. */
uint32_t attention_kv_len(const attention_call *call, uint32_t batch);

/* The keys [first, limit) that start, window, length and causal leave a query; whether it sees key j: the masks too. */
typedef struct key_range {
    int64_t first, limit;
} key_range;
key_range attention_range(const attention_call *call, uint32_t batch, uint32_t query);
bool attention_sees(const attention_call *call, uint32_t batch, uint32_t query, uint32_t key);

/* Where a key lies: cache row or page, and token within it. False where it has no page or no cache row. */
typedef struct key_place {
    uint32_t batch, token;
} key_place;
bool attention_find_key(const attention_call *call, uint32_t batch, uint32_t key, key_place *place);

/* ---- Tensors (attention_tensors.c, attention_pages.c) ------------------------------------------------------------ */

/* Writes a row of K or V, quantised with the scales of its own where the type has them. */
void attention_put_row(attention_call *call, attention_tensor tensor, const key_place *place, uint32_t head,
                       const float *values);

/* Makes page `to` a copy of page `from`, with its scales. */
void attention_copy_page(attention_call *call, uint32_t from, uint32_t to);

/* The entry of the block table that holds the page of a key. */
int32_t *attention_page_of(const attention_call *call, uint32_t batch, uint32_t key);

/* For attention_open: makes the images and arrays; finds a page for every key that some query sees. */
void attention_make_tensors(attention_call *call);
void attention_make_block_table(attention_call *call);
void attention_draw_values(attention_call *call);

/* ---- Results (attention_results.c) ------------------------------------------------------------------------------- */

/* out[row] and lse[row] of a call, row = (batch * q_len + query) * num_q_heads + head. */
size_t attention_row(const attention_call *call, uint32_t batch, uint32_t query, uint32_t head);
const float *attention_out(const attention_call *call, uint32_t batch, uint32_t query, uint32_t head);

/* Whether out and lse of two calls are equal bit for bit; the same of one sequence of each. */
bool attention_same_bits(const attention_call *a, const attention_call *b);
bool attention_same_sequence(const attention_call *a, uint32_t a_batch, const attention_call *b, uint32_t b_batch);

#endif

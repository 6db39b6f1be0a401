/* run_arrays.h - reading the files of one attention: element types and shapes that fit together. */
#ifndef TOOLS_RUN_ARRAYS_H
#define TOOLS_RUN_ARRAYS_H

#include "run.h"

/* The sizes that arrays share. The last ones are other names of those before, as the options say. */
typedef enum run_dim {
    DIM_BATCH,
    DIM_Q_LEN,
    DIM_Q_HEADS,
    DIM_KV_HEADS,
    DIM_HEAD,
    DIM_HEAD_V,
    DIM_TOKENS,
    DIM_CACHE_ROWS,
    DIM_ONE, /* of --shared-kv */
    DIM_PAGES,
    DIM_PAGE_SIZE,
    DIM_ROW_PAGES,
    DIM_PAGE_INDICES,
    DIM_PAGE_POINTERS,
    NUM_DIMS,
    DIM_SEQUENCES, /* the batch, or one with --shared-kv */
    DIM_ROWS,      /* the cache rows, or the sequences without --cache-batch-idx */
    DIM_KV_ROWS,   /* the pages, or the rows where K and V are no pages */
    DIM_KV_TOKENS  /* the page size, or the tokens */
} run_dim;

/* What a size is, and which option said so first. */
typedef struct run_size {
    uint64_t value;
    const char *said_by; /* NULL: nothing yet */
} run_size;

/* Reads every file that is given into input->arrays, in the order of run_operand, and the types into the descriptor.
 * *sizes receives what the shapes say. */
bool run_arrays_read(const run_options *options, run_input *input, run_size sizes[NUM_DIMS], tool_fault *fault);

/* Makes a size known, or compares it with what is known. */
bool run_bind(run_size sizes[NUM_DIMS], run_dim dim, uint64_t value, const char *said_by, tool_fault *fault);

#endif

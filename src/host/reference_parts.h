/* reference_parts.h - what the files of the reference attention share. */
#ifndef CLFD_REFERENCE_PARTS_H
#define CLFD_REFERENCE_PARTS_H

#include "report.h"
#include <clfd/attention.h>
#include <stdbool.h>

/* A validated call and its scratch memory. */
typedef struct clfd_reference {
    clfd_attention attention; /* complete */
    clfd_host_tensors tensors;
    uint32_t ratio;  /* query heads per KV head */
    uint32_t flags;  /* of the status word */
    float *loaded;   /* [widest dim] a row of q, K or V as numbers before its scales */
    double *kv_row;  /* [widest dim] a row of K or V */
    double *q_rows;  /* [rows of a block][head_dim] */
    double *scores;  /* [rows of a block][longest] */
    int64_t longest; /* greatest length of the batch */
} clfd_reference;

/* The keys of one sequence: those from `first` to below `kv_len` of a row of the cache. */
typedef struct clfd_sequence {
    uint32_t batch;
    int64_t cache_row;
    int64_t first, kv_len;
} clfd_sequence;

/* One query row of a block. Its own range holds the keys that kv_start, causal and window leave it. */
typedef struct clfd_query_row {
    uint32_t query, head;
    const double *q;
    double *scores;       /* of the keys of its range; -inf where hidden */
    double *out;          /* where the result goes; the sums meanwhile */
    double *lse;          /* likewise; may be NULL */
    int64_t position;     /* p of attention.h */
    int64_t first, limit; /* the range: empty where limit <= first */
    double max, sum;
    bool invalid; /* a score was NaN or +inf */
} clfd_query_row;

/* reference_check.c: a pointer for each option that is set, and for no other. */
clfd_status clfd_check_host_tensors(const clfd_attention *complete, const clfd_host_tensors *tensors,
                                    const clfd_logger *logger);

/* ---- reference_cache.c ---- */

/* Clamped to the bounds of the call. */
int64_t clfd_sequence_length(const clfd_reference *reference, uint32_t batch);

/* A sequence whose cache row does not exist has no keys, and a flag is set. */
clfd_sequence clfd_find_sequence(clfd_reference *reference, uint32_t batch);

/* Loads row j of K, or of V, of one KV head into kv_row. False, with a flag set, where its page does not exist. */
bool clfd_load_key(clfd_reference *reference, const clfd_sequence *sequence, int64_t j, uint32_t kv_head);
bool clfd_load_value(clfd_reference *reference, const clfd_sequence *sequence, int64_t j, uint32_t kv_head);

/* row[d] = element offset + d of q. */
void clfd_load_query(const clfd_reference *reference, int64_t offset, double *row);

/* Element i of an array of f32 or f16. */
double clfd_load_number(clfd_type type, const void *array, int64_t i);

/* ---- reference_score.c ---- */

/* The range of a row: that of its sequence, narrowed by causal and window. */
void clfd_set_range(const clfd_attention *complete, const clfd_sequence *sequence, clfd_query_row *row);

/* Whether the mask hides key j from a row. */
bool clfd_is_masked(const clfd_reference *reference, const clfd_sequence *sequence, const clfd_query_row *row,
                    int64_t j);

/* The score of a visible key, whose row of K is loaded. */
double clfd_score_of(const clfd_reference *reference, const clfd_sequence *sequence, const clfd_query_row *row,
                     int64_t j);

#endif

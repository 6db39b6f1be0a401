/* score.cl - from a dot product to a score in log2 units, and which keys a query may see. The order of operations is
 * always: scale, masks.
 *
 * Tunables, given by the host:
 *   SCORE_CAUSAL  1: query i sees keys up to its own position, aligned to the last key
 */
#ifndef CLFD_SCORE_CL
#define CLFD_SCORE_CL

#include "args.h"
#include "state.cl"

#ifndef SCORE_CAUSAL
#define SCORE_CAUSAL 0
#endif

/* The factor from a dot product to log2 units; computed once, applied to the fp32 score. */
static inline float score_factor(const decode_args *args) { return args->scale * STATE_LOG2E; }

/* Keys that query i of the sequence may see: those below the limit. */
static inline int score_limit(const decode_args *args, int kv_len, int query)
{
#if SCORE_CAUSAL
    return max(kv_len - args->q_len + query + 1, 0);
#else
    return kv_len;
#endif
}

#endif

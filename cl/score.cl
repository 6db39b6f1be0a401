/* score.cl - from a dot product to a score in log2 units, and which keys a query may see. The order of operations is
 * always: scale, softcap, ALiBi, bias, masks. Sinks come at the very end: state_sink of state.cl.
 *
 * Tunables, given by the host; each adds code only where it is set:
 *   SCORE_CAUSAL     1: a query sees keys up to its own position
 *   SCORE_WINDOW     1: and only those above position - args.window
 *   SCORE_START      1: and only those from kv_start on
 *   SCORE_POSITIONS  1: positions come from query_positions; else they are aligned to the last key
 *   SCORE_MASK       1: mask is uchar [batch][query][key]; 2: uint [batch][query], a bit for each of the last q_len keys
 *   SCORE_SOFTCAP    1: scores become softcap * tanh(score / softcap)
 *   SCORE_ALIBI      1: minus alibi[head] * |key - position|
 *   SCORE_BIAS       TYPE_F32, TYPE_F16: plus bias [batch][head][query][key]
 */
#ifndef CLFD_SCORE_CL
#define CLFD_SCORE_CL

#include "inputs.cl"
#include "state.cl"

#ifndef SCORE_CAUSAL
#define SCORE_CAUSAL 0
#endif
#ifndef SCORE_WINDOW
#define SCORE_WINDOW 0
#endif
#ifndef SCORE_START
#define SCORE_START 0
#endif
#ifndef SCORE_POSITIONS
#define SCORE_POSITIONS 0
#endif
#ifndef SCORE_MASK
#define SCORE_MASK 0
#endif
#ifndef SCORE_SOFTCAP
#define SCORE_SOFTCAP 0
#endif
#ifndef SCORE_ALIBI
#define SCORE_ALIBI 0
#endif
#ifndef SCORE_BIAS
#define SCORE_BIAS 0
#endif

#define SCORE_NATURAL (SCORE_SOFTCAP || SCORE_ALIBI || SCORE_BIAS) /* a score is more than a product */
#define SCORE_BY_KEY (SCORE_NATURAL || SCORE_MASK)                 /* each key must be asked for itself */

/* A query row as its scores need it. */
typedef struct score_row {
    int first, limit; /* the keys [first, limit) that start, window, length and causal leave it */
    int position;
    float slope;
    long bias;      /* of key 0, in elements */
    long mask;      /* likewise */
    uint tree;      /* the row's word of a tree mask */
    int tree_begin; /* the key of its bit 0 */
} score_row;

static inline int score_position(const decode_args *args, const decode_inputs *in, int kv_len, int batch, int query)
{
#if SCORE_POSITIONS
    return in->query_positions[args->positions_offset + (long)batch * args->q_len + query];
#else
    return kv_len - args->q_len + query;
#endif
}

/* The first key that a query at a position sees, from `start` on. Any position is legal, so nothing may overflow. */
static inline int score_first(const decode_args *args, int start, int position)
{
#if SCORE_WINDOW
    return (int)clamp((long)position - args->window + 1, (long)start, (long)INT_MAX);
#else
    return start;
#endif
}

/* Keys below this one are what it sees. */
static inline int score_limit(int kv_len, int position)
{
#if SCORE_CAUSAL
    return position < kv_len ? max(position + 1, 0) : kv_len;
#else
    return kv_len;
#endif
}

static inline score_row score_find_row(const decode_args *args, const decode_inputs *in, int start, int kv_len,
                                       int batch, int query, int head)
{
    score_row row;
    row.position = score_position(args, in, kv_len, batch, query);
    row.first = score_first(args, start, row.position);
    row.limit = score_limit(kv_len, row.position);
#if SCORE_ALIBI
    row.slope = in->alibi[args->alibi_offset + head];
#endif
#if SCORE_BIAS
    row.bias = args->bias.offset + batch * args->bias.batch + head * args->bias.head + query * args->bias.query;
#endif
#if SCORE_MASK
    row.mask = args->mask.offset + batch * args->mask.batch + query * args->mask.query;
#endif
#if SCORE_MASK == 2
    row.tree = ((const __global uint *)in->mask)[row.mask];
    row.tree_begin = kv_len - args->q_len;
#endif
    return row;
}

/* Whether the mask shows a key of [first, limit). */
static inline bool score_unmasked(const decode_args *args, const decode_inputs *in, const score_row *row, int token)
{
#if SCORE_MASK == 1
    return in->mask[row->mask + token * args->mask.key] != 0;
#elif SCORE_MASK == 2
    return token < row->tree_begin || (row->tree >> (token - row->tree_begin) & 1u) != 0;
#else
    return true;
#endif
}

/* The score, in log2 units, of a key whose product with q is `dot`; `scale` is the call's, times what K's tensor has. */
static inline float score_value(const decode_args *args, const decode_inputs *in, const score_row *row, int token,
                                float scale, float dot)
{
#if SCORE_NATURAL
    float score = dot * scale;
#if SCORE_SOFTCAP
    score = args->softcap * tanh(score / args->softcap);
#endif
#if SCORE_ALIBI
    score -= row->slope * (float)abs_diff(token, row->position);
#endif
#if SCORE_BIAS == TYPE_F32
    score += ((const __global float *)in->bias)[row->bias + token * args->bias.key];
#elif SCORE_BIAS == TYPE_F16
    score += vload_half(row->bias + token * args->bias.key, (const __global half *)in->bias);
#endif
    return score * STATE_LOG2E;
#else
    return dot * (scale * STATE_LOG2E);
#endif
}

/* The score of any token of the tile; -inf where the row may not see it, and then nothing of the key's is looked at. */
static inline float score_key(const decode_args *args, const decode_inputs *in, const score_row *row, int token,
                              float scale, float dot)
{
    if (token < row->first || token >= row->limit || !score_unmasked(args, in, row, token))
        return -INFINITY;
    return score_value(args, in, row, token, scale, dot);
}

#endif

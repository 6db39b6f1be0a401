/* split.cl - which tokens a split owns. The cuts come from the sequence's own length, so neither the capacity of the
 * cache nor the rest of the batch moves them. Used by every decode kernel and by the merge.
 */
#ifndef CLFD_SPLIT_CL
#define CLFD_SPLIT_CL

#include "args.h"

/* Tokens of sequence b, clamped to what the host validated the buffers for. */
static inline int split_kv_len(const split_args *args, const __global int *kv_lens, long index)
{
    return args->has_kv_lens ? clamp(kv_lens[index], 0, args->max_kv_len) : args->max_kv_len;
}

/* Splits of a sequence that own at least one token. */
static inline int split_count(const split_args *args, int kv_len)
{
    if (args->split_tokens > 0)
        return kv_len / args->split_tokens + (kv_len % args->split_tokens != 0);
    return min(args->num_splits, kv_len / args->split_tile + (kv_len % args->split_tile != 0));
}

/* First token of split `split`; the first token of split + 1 ends it. */
static inline int split_begin(const split_args *args, int kv_len, int split)
{
    if (args->split_tokens > 0)
        return (int)min((long)split * args->split_tokens, (long)kv_len);
    const int tiles = kv_len / args->split_tile + (kv_len % args->split_tile != 0);
    const int count = max(min(args->num_splits, tiles), 1);
    return (int)min((long)tiles * split / count * args->split_tile, (long)kv_len);
}

#endif

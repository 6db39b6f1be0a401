/* split.cl - which tokens a split owns. The cuts come from the keys that the sequence itself shows, so neither the
 * capacity of the cache nor the rest of the batch moves them.
 */
#ifndef CLFD_SPLIT_CL
#define CLFD_SPLIT_CL

#include "divisor.cl"

/* The keys of a sequence that some query may see, as far as start, window and length say: [begin, end). */
typedef struct split_range {
    int begin, end;
} split_range;

/* Tokens of sequence b, clamped to what the host validated the buffers for. */
static inline int split_kv_len(const split_args *args, const __global int *kv_lens, long index)
{
    return args->has_kv_lens ? clamp(kv_lens[index], 0, args->max_kv_len) : args->max_kv_len;
}

static inline int split_ceil(int tokens, int size) { return tokens / size + (tokens % size != 0); }

/* Tiles of a range; 1 where it has no token. */
static inline int split_tiles(const split_args *args, split_range range)
{
    return divide(max(range.end - range.begin, 1) - 1, args->by_tile) + 1;
}

/* Splits of a sequence under COUNT and AUTO that own at least one token; 1 where there is none. */
static inline int split_count_tiles(const split_args *args, split_range range)
{
    return min(args->num_splits, split_tiles(args, range));
}

/* Splits of a sequence that own at least one token; 1 where there is none. Under TOKENS a split is a whole chunk of the
 * sequence, chunks being counted from token 0. */
static inline int split_count(const split_args *args, split_range range)
{
    if (args->split_tokens == 0)
        return split_count_tiles(args, range);
    return range.begin >= range.end ? 1 : split_ceil(range.end, args->split_tokens) - range.begin / args->split_tokens;
}

/* First token of split `split`; the first token of split + 1 ends it. */
static inline int split_begin(const split_args *args, split_range range, int split)
{
    if (args->split_tokens > 0) {
        const long chunk = (long)(range.begin / args->split_tokens + split) * args->split_tokens;
        return (int)clamp(chunk, (long)range.begin, (long)range.end);
    }
    const int tiles = split_ceil(range.end - range.begin, args->split_tile);
    const int count = max(min(args->num_splits, tiles), 1);
    return (int)min((long)tiles * split / count * args->split_tile + range.begin, (long)range.end);
}

#endif

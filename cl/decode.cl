/* decode.cl - what every decode family shares: which items a work-group computes, and which query rows belong to them. How
 * it writes a row's state: decode_store.cl. Included by the families; holds no kernel.
 *
 * An item is (K and V sequence, KV heads, tokens, pass): one pass reads the tokens' keys once for DECODE_ROWS query rows
 * of each of args.heads heads. The rows of a KV head are its q_len * ratio query rows, query by query; where the whole
 * batch shares one K and V sequence, those of all its members, one after the other.
 *
 * A kernel asks for its items one by one:
 *
 *     DECODE_WORK_SPACE decode_work work;
 *     decode_item item;
 *     decode_start(&args, &in, &work);
 *     DECODE_EACH_ITEM(&args, &in, &work, &item, workspace) { ... }
 *
 * Tunables, given by the host:
 *   HEAD_DIM, HEAD_DIM_V  elements of a row of K and of V, multiples of 8
 *   DECODE_ROWS           query rows per block
 *   DECODE_HEADS          KV heads per item at most; args.heads says how many, a divisor of their number
 *   DECODE_ONE_PASS       1: args.passes is 1
 *   DECODE_SHARED         1: all sequences of the batch attend to one K and V sequence
 *   DECODE_INTERLEAVED    1: splits take tiles of DECODE_TILE tokens in turn; 0: each has one range of tokens
 *   DECODE_FUSED          1, 2: the work-groups of a sequence merge its splits themselves: no merge follows. See
 *                         matrix_merge.cl
 *   DECODE_DIRECT         1: every sequence has one split, which writes out and lse
 *   DECODE_LOOPS          1: there may be fewer work-groups than items, which they then take in turn
 *   DECODE_BALANCED       1: the work-groups share all tiles of all sequences evenly: schedule.cl
 *   DECODE_SINKS          1: rows that are written directly have sinks
 *   CACHE_ROWS            1: the cache row of a sequence comes from cache_rows
 */
#ifndef CLFD_DECODE_CL
#define CLFD_DECODE_CL

#include "inputs.cl"
#include "kv.cl"
#include "score.cl"
#include "split.cl"
#include "state.cl"

#ifndef HEAD_DIM
#define HEAD_DIM 128
#endif
#ifndef HEAD_DIM_V
#define HEAD_DIM_V HEAD_DIM
#endif
#ifndef DECODE_ROWS
#define DECODE_ROWS 1
#endif
#ifndef DECODE_HEADS
#define DECODE_HEADS 1
#endif
#ifndef DECODE_ONE_PASS
#define DECODE_ONE_PASS 0
#endif
#ifndef DECODE_SHARED
#define DECODE_SHARED 0
#endif
#ifndef DECODE_FUSED
#define DECODE_FUSED 0
#endif
#ifndef DECODE_INTERLEAVED
#define DECODE_INTERLEAVED 0
#endif
#ifndef DECODE_TILE /* tokens that a work-group of the family takes at a time */
#define DECODE_TILE 1
#endif
#ifndef DECODE_RUN /* tiles that a split of many takes side by side before it goes on */
#define DECODE_RUN 1
#endif
#ifndef DECODE_BALANCED
#define DECODE_BALANCED 0
#endif
#ifndef DECODE_LOOPS
#define DECODE_LOOPS 0
#endif
#ifndef DECODE_DIRECT
#define DECODE_DIRECT 0
#endif
#ifndef DECODE_SINKS
#define DECODE_SINKS 0
#endif
#ifndef CACHE_ROWS
#define CACHE_ROWS 0
#endif

/* A K and V sequence. */
typedef struct decode_sequence {
    int kv_len, start; /* keys [start, kv_len), as far as length and kv_start say */
    int cache_row;
    split_range range; /* of those, the ones within some query's window */
} decode_sequence;

typedef struct decode_item {
    int batch, kv_head, first_row; /* kv_head: the first one */
    decode_sequence sequence;
    int begin, end; /* the item's tokens that some row of the block may see, or that lie between them */
    int stride; /* tokens from one of the item's tiles to its next; run times as many from one of its runs to the next */
    int run;    /* tiles of a run, side by side: 1 or DECODE_RUN */
    int splits;     /* of the sequence */
    int slot;       /* where partial states go: the split, or the balanced schedule's number */
    int first_slot; /* balanced and fused: the slot of the share in which the sequence begins */
    bool direct;    /* no: the rows are complete, and go to out and lse */
    float k_scale;  /* the call's scale, times the factor of K's tensor */
    float v_scale;  /* the factor of V's tensor */
} decode_item;

typedef struct decode_row {
    int batch, query, head;
    int index;  /* its place in lse */
    long state; /* the place of its partial state in slot 0 of the item */
} decode_row;

/* args.heads and args.passes, as constants where the host says so. */
static inline int decode_heads(const decode_args *args) { return DECODE_HEADS > 1 ? args->heads : 1; }
static inline int decode_passes(const decode_args *args) { return DECODE_ONE_PASS ? 1 : args->passes; }

/* ---- Sequences and rows ------------------------------------------------------------------------------------------ */

/* Whether the sequences of a call without kv_lens differ in nothing. They have a way of their own through decode_take,
 * which spares registers in the loop over the tiles (decode_matrix by clang 15 and ptxas 13.0, 128 registers: 0 to 1
 * instead of 9 to 16 accesses to memory there). */
#define SEQUENCES_ALIKE (!CACHE_ROWS && !SCORE_START && !SCORE_WINDOW)

/* Sequence b of those. */
static inline decode_sequence decode_whole_sequence(const decode_args *args, int b)
{
    const decode_sequence s = {args->split.max_kv_len, 0, b, {0, args->split.max_kv_len}};
    return s;
}

static inline decode_sequence decode_find_sequence(const decode_args *args, const decode_inputs *in, int b)
{
    decode_sequence s;
    s.kv_len = split_kv_len(&args->split, in->kv_lens, args->kv_lens_offset + b);
    s.cache_row = b;
#if CACHE_ROWS
    s.cache_row = in->cache_rows[args->cache_rows_offset + b];
    if (s.cache_row < 0 || s.cache_row >= args->num_cache_rows) {
        s.cache_row = s.kv_len = 0;
        status_set(args, in, FLAG_CACHE_ROW);
    }
#endif
#if SCORE_START
    s.start = clamp(in->kv_start[args->kv_start_offset + b], 0, s.kv_len);
#else
    s.start = 0;
#endif
    s.range.begin = s.start;
    s.range.end = s.kv_len;
    /* Of a shared sequence the window of one member must not decide where the others begin: a row's bits depend on it. */
#if SCORE_WINDOW && SCORE_POSITIONS && !DECODE_SHARED
    int begin = INT_MAX;
    for (int i = 0; i < args->q_len; i++)
        begin = min(begin, score_first(args, s.start, score_position(args, in, s.kv_len, b, i)));
    s.range.begin = min(begin, s.kv_len);
#elif SCORE_WINDOW && !DECODE_SHARED
    s.range.begin = min(score_first(args, s.start, score_position(args, in, s.kv_len, b, 0)), s.kv_len);
#endif
    return s;
}

/* Whether the range of some query of sequence b holds a token between the first and the last that any of them sees. The
 * windows of positions apart leave some out, and so does every window over a shared sequence. */
static inline bool decode_needs(const decode_args *args, const decode_inputs *in, int b, int token)
{
#if SCORE_WINDOW && SCORE_POSITIONS && (SCORE_CAUSAL || DECODE_SHARED)
    const decode_sequence s = decode_find_sequence(args, in, b);
    for (int i = 0; i < args->rows / args->ratio; i++) {
        const int position = score_position(args, in, s.kv_len, b, i);
        if (token >= score_first(args, s.start, position) && token < score_limit(s.kv_len, position))
            return true;
    }
    return false;
#else
    return true;
#endif
}

/* kv_find, which reports a page that is needed and is not there. */
static inline kv_place decode_find_key(const decode_args *args, const decode_inputs *in, const kv_cache *cache,
                                       int token)
{
    const kv_place place = kv_find(args, in, cache, token);
    if (!place.valid && args->has_status && decode_needs(args, in, cache->batch, token))
        status_set(args, in, FLAG_PAGE);
    return place;
}

/* A row of the block. Rows past the last one repeat it and are not stored. */
static inline decode_row decode_find_row(const decode_args *args, const decode_item *item, int r)
{
    int x = min(item->first_row + r, args->rows - 1);
    decode_row row;
    row.batch = item->batch;
#if DECODE_SHARED
    row.batch = x / (args->q_len * args->ratio);
    x %= args->q_len * args->ratio;
#endif
    row.query = divide(x, args->by_ratio);
    row.head = item->kv_head * args->ratio + (x - row.query * args->ratio);
    row.index = (row.batch * args->q_len + row.query) * (args->num_kv_heads * args->ratio) + row.head;
#if DECODE_BALANCED
    row.state = item->kv_head % decode_heads(args) * DECODE_ROWS + r;
#else
    row.state = (long)row.index * args->partial_slots;
#endif
    return row;
}

static inline bool decode_row_exists(const decode_args *args, const decode_item *item, int r)
{
    return item->first_row + r < args->rows;
}

static inline score_row decode_score_row(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                         int r)
{
    const decode_row row = decode_find_row(args, item, r);
    return score_find_row(args, in, item->sequence.start, item->sequence.kv_len, row.batch, row.query, row.head);
}

static inline long decode_q_index(const decode_args *args, const decode_item *item, const decode_row *row)
{
    return args->q_offset + row->batch * args->q_batch + row->query * args->q_token + row->head * args->q_head;
}

/* ---- Items ------------------------------------------------------------------------------------------------------- */

/* Bounds an item's tokens by what its rows may see. */
static inline void decode_bound_item(const decode_args *args, const decode_inputs *in, decode_item *item)
{
#if SCORE_WINDOW || SCORE_CAUSAL
    int first = INT_MAX, limit = 0;
#if SCORE_POSITIONS
    for (int r = 0; r < DECODE_ROWS; r++) {
#else
    for (int r = 0; r < DECODE_ROWS; r += max(DECODE_ROWS - 1, 1)) { /* later queries see later keys */
#endif
        const decode_row row = decode_find_row(args, item, r);
        const int position = score_position(args, in, item->sequence.kv_len, row.batch, row.query);
        first = min(first, score_first(args, item->sequence.start, position));
        limit = max(limit, score_limit(item->sequence.kv_len, position));
    }
    item->begin = DECODE_SHARED ? item->begin : max(item->begin, first);
    item->end = min(item->end, limit);
#endif
}

/* Fills in an item's scales. Apart from what says where its tokens lie: the first copies must not wait for them. */
static inline void decode_scale_item(const decode_args *args, const decode_inputs *in, decode_item *item)
{
    const kv_cache cache = kv_open(args, in, item->batch, item->sequence.cache_row, item->kv_head);

    item->k_scale = args->scale * kv_keys_factor(args, in, &cache);
    item->v_scale = kv_values_factor(args, in, &cache);
}

/* The item as its KV head h alone has it. */
static inline decode_item decode_head_item(const decode_args *args, const decode_inputs *in, const decode_item *item,
                                           int h)
{
    decode_item own = *item;
    own.kv_head += h;
#if K_SCALE == SCALE_TENSOR || V_SCALE == SCALE_TENSOR
    decode_scale_item(args, in, &own);
#endif
    return own;
}

/* Where a work-group keeps its place in its share: each work-item for itself, or all DECODE_WORK_SHARED of them one
 * place in local memory, which saves each some registers (an H200 ran one lanes work-group per unit instead of two: 160
 * registers, not 128). */
#ifndef DECODE_WORK_SPACE
#define DECODE_WORK_SPACE
#define DECODE_WORK_BARRIER()
#define DECODE_WORK_OWNER true
#define DECODE_WORK_SHARED 0
#endif

#if DECODE_BALANCED
#include "schedule.cl"
#define DECODE_EACH_ITEM(args, in, work, item, workspace) while (decode_take(args, in, work, item, workspace))
#else
#if DECODE_LOOPS
#define DECODE_EACH_ITEM(args, in, work, item, workspace)                                                              \
    for (; (work)->index < (uint)(args)->items; (work)->index += (uint)get_num_groups(0))                              \
        if (decode_take(args, in, work, item, workspace))
#else
/* No loop, so that no compiler keeps registers for a second turn. */
#define DECODE_EACH_ITEM(args, in, work, item, workspace) if (decode_take(args, in, work, item, workspace))
#endif

/* One item a work-group, or DECODE_LOOPS: every n-th; passes vary fastest, so that those that share tokens run together
 * and share the cache. */
typedef struct decode_work {
    uint index; /* DECODE_LOOPS, where each work-item has a decode_work of its own */
} decode_work;

static inline void decode_start(const decode_args *args, const decode_inputs *in, DECODE_WORK_SPACE decode_work *work)
{
#if DECODE_LOOPS
    work->index = (uint)get_group_id(0);
#endif
}

/* The item of this index; false where there is none. */
static inline bool decode_take(const decode_args *args, const decode_inputs *in, DECODE_WORK_SPACE decode_work *work,
                               decode_item *item, __global float *workspace)
{
#if DECODE_LOOPS
    const int index = (int)work->index;
#else
    const int index = (int)get_group_id(0);
#endif
    const int splits = DECODE_ONE_PASS ? index : divide(index, args->by_passes);
    const int heads = DECODE_DIRECT ? splits : divide(splits, args->by_splits);
    const int pass = index - splits * decode_passes(args);
    int count;

    item->slot = DECODE_DIRECT ? 0 : splits - heads * args->split.grid_splits;
    item->batch = divide(heads, args->by_head_groups);
    item->kv_head = (heads - item->batch * args->head_groups) * decode_heads(args);
    item->first_row = pass * DECODE_ROWS;
    if (SEQUENCES_ALIKE && !args->split.has_kv_lens) {
        item->sequence = decode_whole_sequence(args, item->batch);
        count = args->split.grid_splits;
    } else {
#if CLFD_PTX
        ptx_branch();
#endif
        item->sequence = decode_find_sequence(args, in, item->batch);
        /* A sequence without keys still has split 0: somebody must write its empty state. */
        if (DECODE_INTERLEAVED) /* never under TOKENS */
            count = split_count_tiles(&args->split, item->sequence.range);
        else
            count = split_count(&args->split, item->sequence.range);
    }
    if (DECODE_DIRECT)
        count = 1;
    if (item->slot >= count)
        return false;
    item->splits = count;
#if DECODE_FUSED
    item->direct = count == 1; /* no work-group is left out, whatever the grid */
#else
    item->direct = DECODE_DIRECT || args->direct;
    if (!item->direct && item->slot == 0 && item->kv_head == 0 && pass == 0 && get_local_id(0) == 0)
        ((__global int *)workspace)[args->list_offset + item->batch] = count;
#endif
#if DECODE_INTERLEAVED
    item->begin = item->sequence.range.begin;
    item->end = item->sequence.range.end;
    decode_bound_item(args, in, item);
    const int tokens = max(item->end - item->begin, 0);
    item->run = count > 1 && tokens / (8 * DECODE_RUN * DECODE_TILE) >= count ? DECODE_RUN : 1;
    item->begin += min(item->slot * item->run * DECODE_TILE, tokens); /* a split has a tile of the sequence at least */
    item->stride = count * DECODE_TILE;
#else
    item->begin = split_begin(&args->split, item->sequence.range, item->slot);
    item->end = split_begin(&args->split, item->sequence.range, item->slot + 1);
    item->stride = DECODE_TILE;
    item->run = 1;
    decode_bound_item(args, in, item);
#endif
    return true;
}
#endif

#endif

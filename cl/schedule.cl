/* schedule.cl - the balanced schedule for batches of unequal lengths: a fixed grid of work-groups takes equal shares of
 * all tiles of all sequences, and the host knows none of their lengths. Included by decode.cl where DECODE_BALANCED is 1.
 *
 * The tiles of all sequences stand in one row, sequence by sequence; a sequence without keys counts one. The row is cut
 * into args.num_shares equal shares, and every block (KV heads, then passes) of each share has a work-group: blocks vary
 * fastest, so that the heads of a token are read at about the same time (each head's tokens one after the other cost a
 * third of an H200's bandwidth). A sequence's part of a share is an item. A sequence within one share is written directly;
 * of a longer one, the share s in which it begins has its state in slot 2 s + 1, those that go on with it in slot 2 s. So
 * two slots a work-group are enough, whatever the lengths. For the merge, list[2 b] and list[2 b + 1] are the first and
 * the last share of sequence b; under DECODE_FUSED there is none.
 */
#ifndef CLFD_SCHEDULE_CL
#define CLFD_SCHEDULE_CL

#include "decode.cl"

#if DECODE_BALANCED

#ifndef SCHEDULE_BATCH
#define SCHEDULE_BATCH 1024 /* sequences at most; the host keeps to it */
#endif
/* Parts of the list, whose tiles are added up side by side. */
#define SCHEDULE_PARTS (DECODE_WORK_SHARED < 16 ? DECODE_WORK_SHARED : 16)

/* A work-group's share, and where it is in it. */
typedef struct decode_work {
#if DECODE_WORK_SHARED
    int list[SCHEDULE_BATCH]; /* tiles of each sequence: found by all work-items together, since each costs a wait */
    int before[SCHEDULE_PARTS + 1]; /* tiles before each part of the list */
#endif
    int next, end, tiles_per_share;
    int batch; /* the sequence that holds tile `next`, or an earlier one */
    int first; /* its first tile */
    int tiles; /* how many it has */
} decode_work;

static inline int schedule_blocks(const decode_args *args) { return args->head_groups * decode_passes(args); }

static inline int schedule_sequence_tiles(const decode_args *args, const decode_inputs *in,
                                          DECODE_WORK_SPACE const decode_work *work, int b)
{
#if DECODE_WORK_SHARED
    return work->list[b];
#else
    return split_tiles(&args->split, decode_find_sequence(args, in, b).range);
#endif
}

#if DECODE_WORK_SHARED
static inline int schedule_part(const decode_args *args) { return split_ceil(args->sequences, SCHEDULE_PARTS); }

/* Fills in the list and what stands before its parts. */
static inline void schedule_add_up(const decode_args *args, const decode_inputs *in,
                                   DECODE_WORK_SPACE decode_work *work)
{
    const int part = schedule_part(args), own = (int)get_local_id(0), step = (int)get_local_size(0);

    for (int b = own; b < args->sequences; b += step)
        work->list[b] = split_tiles(&args->split, decode_find_sequence(args, in, b).range);
    barrier(CLK_LOCAL_MEM_FENCE);
    /* No loop over parts: with one NVIDIA's compiler moves more registers round in the loop over the tiles. */
    if (own < SCHEDULE_PARTS) {
        int sum = 0;
        for (int b = own * part; b < min((own + 1) * part, args->sequences); b++)
            sum += work->list[b];
        work->before[own + 1] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (own == 0) {
        int sums[SCHEDULE_PARTS];
#pragma unroll
        for (int p = 0; p < SCHEDULE_PARTS; p++)
            sums[p] = work->before[p + 1];
        work->before[0] = 0;
#pragma unroll
        for (int p = 1; p < SCHEDULE_PARTS; p++)
            work->before[p + 1] = sums[p] += sums[p - 1];
    }
}
#endif

static inline void decode_start(const decode_args *args, const decode_inputs *in, DECODE_WORK_SPACE decode_work *work)
{
    int total = 0;

#if DECODE_WORK_SHARED
    schedule_add_up(args, in, work);
    if (get_local_id(0) != 0)
        return;
    total = work->before[SCHEDULE_PARTS];
#else
    for (int b = 0; b < args->sequences; b++)
        total += schedule_sequence_tiles(args, in, work, b);
#endif
    work->tiles_per_share = max(divide(total + args->num_shares - 1, args->by_shares), args->min_tiles);
    work->next = divide((int)get_group_id(0), args->by_blocks) * work->tiles_per_share;
    work->end = min(work->next + work->tiles_per_share, total);
    work->batch = 0;
    work->first = 0;
#if DECODE_WORK_SHARED
    for (int p = 1; p < SCHEDULE_PARTS; p++)
        if (work->before[p] <= work->next && p * schedule_part(args) < args->sequences) {
            work->batch = p * schedule_part(args);
            work->first = work->before[p];
        }
#endif
    work->tiles = schedule_sequence_tiles(args, in, work, work->batch);
}

/* The next item of this work-group; false where there is none. */
static inline bool decode_take(const decode_args *args, const decode_inputs *in, DECODE_WORK_SPACE decode_work *work,
                               decode_item *item, __global float *workspace)
{
    const int blocks = schedule_blocks(args), tile = args->split.split_tile;
    const int share = divide((int)get_group_id(0), args->by_blocks), block = (int)get_group_id(0) - share * blocks;

    DECODE_WORK_BARRIER();
    const int next = work->next, share_end = work->end;
    int first = work->first, batch = work->batch, tiles = work->tiles;
    DECODE_WORK_BARRIER();
    if (next >= share_end)
        return false;
    while (next >= first + tiles) {
        first += tiles;
        tiles = schedule_sequence_tiles(args, in, work, ++batch);
    }
    item->sequence = decode_find_sequence(args, in, batch);
    const int begin = next - first, end = min(tiles, share_end - first);
    const split_range range = item->sequence.range;

    item->batch = batch;
    const int group = DECODE_ONE_PASS ? block : divide(block, args->by_passes);
    item->kv_head = group * decode_heads(args);
    item->first_row = (block - group * decode_passes(args)) * DECODE_ROWS;
    item->stride = DECODE_TILE;
    item->run = 1;
    item->direct = begin == 0 && end == tiles;
    item->slot = 2 * (int)get_group_id(0) + (begin == 0);
#if DECODE_FUSED
    if (!item->direct) {
        const int first_share = first / work->tiles_per_share;
        item->splits = (first + tiles - 1) / work->tiles_per_share - first_share + 1;
        item->first_slot = 2 * (first_share * blocks + block);
    }
#endif
    item->begin = (int)min((long)range.begin + (long)begin * tile, (long)range.end);
    item->end = (int)min((long)range.begin + (long)end * tile, (long)range.end);
    if (DECODE_WORK_OWNER) {
        __global int *const list = (__global int *)workspace + args->list_offset + 2 * (long)batch;
        if (!DECODE_FUSED && begin == 0 && block == 0) {
            list[0] = share;
            list[1] = (first + tiles - 1) / work->tiles_per_share;
        }
        work->next = first + end;
        work->first = first;
        work->batch = batch;
        work->tiles = tiles;
    }
    decode_bound_item(args, in, item);
    return true;
}

#endif

#endif

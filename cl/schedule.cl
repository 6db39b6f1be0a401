/* schedule.cl - the balanced schedule for batches of unequal lengths: a fixed grid of work-groups takes equal shares of
 * all tiles of all sequences, and the host knows none of their lengths. Included by decode.cl where DECODE_BALANCED is 1.
 *
 * The tiles of the call stand in one row: sequence by sequence, within a sequence block by block (KV heads, then passes),
 * within a block token by token. A sequence without keys counts one tile per block. Work-group g owns the tiles
 * [g * share, (g + 1) * share). The part of a block that lies in its share is an item. A block within one share is
 * written directly; of a longer one, the work-group where it begins writes its state to slot 2 g + 1, those that go on
 * with it to slot 2 g. So two slots a work-group are enough, whatever the lengths. For the merge, the work-group where a
 * block begins lists which work-groups have it: list[2 block] to list[2 block + 1].
 */
#ifndef CLFD_SCHEDULE_CL
#define CLFD_SCHEDULE_CL

#include "decode.cl"

#if DECODE_BALANCED

/* A work-group's share, and where it is in it. */
typedef struct decode_work {
    long next, end, share;
    int batch;                /* the sequence that holds tile `next`, or an earlier one */
    long first;               /* its first tile */
    int tiles;                /* of each of its blocks */
    decode_sequence sequence; /* itself */
} decode_work;

/* Blocks of a sequence. */
static inline int schedule_blocks(const decode_args *args) { return args->num_kv_heads / args->heads * args->passes; }

static inline int schedule_tiles(const decode_args *args, split_range range)
{
    return max(split_ceil(max(range.end - range.begin, 0), args->split.split_tile), 1);
}

static inline void schedule_enter(const decode_args *args, const decode_inputs *in, decode_work *work)
{
    work->sequence = decode_find_sequence(args, in, work->batch);
    work->tiles = schedule_tiles(args, work->sequence.range);
}

static inline void decode_start(const decode_args *args, const decode_inputs *in, decode_work *work)
{
    const int blocks = schedule_blocks(args);
    long total = 0;

    for (int b = 0; b < args->sequences; b++)
        total += schedule_tiles(args, decode_find_sequence(args, in, b).range);
    total *= blocks;
    work->share = max((total + args->num_groups - 1) / args->num_groups, (long)args->min_tiles);
    work->next = (long)get_group_id(0) * work->share;
    work->end = min(work->next + work->share, total);
    work->batch = 0;
    work->first = 0;
    schedule_enter(args, in, work);
}

/* The next item of this work-group; false where there is none. */
static inline bool decode_take(const decode_args *args, const decode_inputs *in, decode_work *work, decode_item *item,
                               __global float *workspace)
{
    const int group = (int)get_group_id(0), blocks = schedule_blocks(args), tile = args->split.split_tile;

    if (work->next >= work->end)
        return false;
    while (work->next >= work->first + (long)work->tiles * blocks) {
        work->first += (long)work->tiles * blocks;
        work->batch++;
        schedule_enter(args, in, work);
    }
    const int block = (int)((work->next - work->first) / work->tiles);
    const long block_first = work->first + (long)block * work->tiles;
    const int begin = (int)(work->next - block_first);
    const int end = (int)min((long)work->tiles, work->end - block_first);
    const split_range range = work->sequence.range;

    item->batch = work->batch;
    item->sequence = work->sequence;
    item->kv_head = block / args->passes * args->heads;
    item->first_row = block % args->passes * DECODE_ROWS;
    item->direct = begin == 0 && end == work->tiles;
    item->slot = 2 * group + (begin == 0);
    item->begin = (int)min((long)range.begin + (long)begin * tile, (long)range.end);
    item->end = (int)min((long)range.begin + (long)end * tile, (long)range.end);
    if (begin == 0 && get_local_id(0) == 0) {
        __global int *const list =
            (__global int *)workspace + args->list_offset + 2 * ((long)work->batch * blocks + block);
        list[0] = group;
        list[1] = (int)((block_first + work->tiles - 1) / work->share);
    }
    work->next = block_first + end;
    decode_complete_item(args, in, item);
    return true;
}

#endif

#endif

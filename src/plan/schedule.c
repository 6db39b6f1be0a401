#include "plan/schedule.h"
#include "plan/matrix.h"
#include "type.h"

#define MAX_STATE_BYTES (64u << 10) /* of a work-item: together with a tile within a second-level cache */
#define MAX_BALANCED_BATCH 1024u
#define MAX_BALANCED_TILES (1u << 30) /* cl/schedule.cl counts them in 32 bits, rounded up to whole shares */
#define MAX_FUSED_SPLITS 128u
#define MERGED_ALONE 16u         /* cl/matrix_states.cl: MERGE_MOST */
#define EVEN_SHARES 4u           /* shares from which the rest of a division is small */
#define MAX_GROUPS 0x7fffffffull /* NVIDIA's limit of work-groups in dimension 0; others are higher */

static uint64_t ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

static uint64_t round_up(uint64_t value, uint64_t step) { return ceil_div(value, step) * step; }

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* Query rows of a KV head that attend to one K and V sequence. */
static uint64_t sequence_rows(const clfd_attention *attention, uint32_t batch)
{
    const uint64_t rows = (uint64_t)attention->q_len * (attention->num_q_heads / attention->num_kv_heads);
    return attention->shared_kv ? rows * batch : rows;
}

/* Rows per block: as few as give the same number of passes over K and V, so that no block is mostly empty, but never
 * fewer than the query heads that share a KV head, up to the family's limit. */
static uint32_t rows_per_block(uint32_t rows, uint32_t ratio, uint32_t limit)
{
    const uint32_t passes = (uint32_t)ceil_div(rows, min_u32(rows, limit));
    return max_u32((uint32_t)ceil_div(rows, passes), min_u32(ratio, limit));
}

/* KV heads that an item of the kernel has room for: the family's limit, as far as private memory for q and o allows. */
static uint32_t heads_limit(const clfd_attention *attention, const clfd_tuning *tuning, uint32_t rows)
{
    const uint64_t state_bytes = (uint64_t)rows * (attention->head_dim + attention->head_dim_v) * sizeof(float);

    return tuning->tile <= 1 ? 1 : max_u32(min_u32(tuning->heads, (uint32_t)(MAX_STATE_BYTES / state_bytes)), 1);
}

/* KV heads per item: several take turns where the heads of a token lie side by side. A row's bits do not depend on it. */
static uint32_t heads_per_item(const clfd_attention *attention, uint32_t limit)
{
    uint32_t heads = 1;

    if (attention->k_strides.head >= attention->k_strides.token)
        return 1;
    for (uint32_t count = 2; count <= limit; count++)
        if (attention->num_kv_heads % count == 0)
            heads = count;
    return heads;
}

/* Keys of a sequence of kv_len tokens between the first and the last that some query sees, at most. A window
 * begins at a position and reaches to the last key: with positions of the caller's own it may begin anywhere. */
static uint32_t visible_tokens(const clfd_attention *attention, uint32_t kv_len)
{
    if (attention->window == 0 || attention->query_positions)
        return kv_len;
    return (uint32_t)min_u64((uint64_t)attention->window + attention->q_len - 1, kv_len);
}

/* Work-groups that AUTO aims at per compute unit. Pages lie anywhere, and every tile waits for an address and for its
 * translation: where one work-group has all that is on its way, two hide it. */
static uint32_t groups_per_unit(const clfd_attention *attention, const clfd_tuning *tuning)
{
    const bool waits =
        attention->paging != CLFD_PAGING_NONE && tuning->family == CLFD_FAMILY_MATRIX && tuning->parts == 0;

    return max_u32(tuning->groups_per_unit, waits ? 2 : 1);
}

/* AUTO: enough splits to give every compute unit its work-groups, none shorter than is worth a merge. */
static uint32_t auto_splits(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                            uint32_t blocks)
{
    const uint64_t items = (uint64_t)(attention->shared_kv ? 1 : attention->max_batch) * blocks;
    const uint64_t wanted = (uint64_t)caps->compute_units * groups_per_unit(attention, tuning);
    const uint64_t most = ceil_div(visible_tokens(attention, attention->expected_kv_len), tuning->min_split);
    const uint64_t splits = wanted / items;

    return (uint32_t)(splits < 1 ? 1 : splits < most ? splits : most);
}

uint32_t clfd_schedule_splits(const clfd_schedule *schedule, const clfd_attention *attention, const clfd_tuning *tuning,
                              uint32_t kv_len)
{
    const uint64_t visible = visible_tokens(attention, kv_len), tokens = schedule->split_tokens;
    uint32_t splits;

    if (tokens > 0) /* a range that begins within a chunk touches one more */
        splits = (uint32_t)min_u64(ceil_div(kv_len, tokens), visible == 0 ? 0 : (visible + tokens - 2) / tokens + 1);
    else
        splits = min_u32(schedule->num_splits, (uint32_t)ceil_div(visible, tuning->split_tile));
    return max_u32(splits, 1);
}

uint32_t clfd_schedule_passes(const clfd_schedule *schedule, const clfd_attention *attention, uint32_t batch)
{
    return (uint32_t)ceil_div(sequence_rows(attention, batch), schedule->rows);
}

uint32_t clfd_merge_work_group(const clfd_caps *caps, uint32_t head_dim_v)
{
    const uint32_t quads = head_dim_v / 4;
    const uint32_t wanted = (caps->type & CL_DEVICE_TYPE_GPU) != 0 ? min_u32(256, 8 * quads) : 1;
    uint32_t size = 1;

    while (size * 2 <= min_u32(wanted, caps->max_work_group))
        size *= 2;
    return size;
}

/* Lays out `slots` partial states and a list of `list_items` integers behind the control region. Returns where they
 * end. */
static uint64_t lay_out(const clfd_attention *attention, uint64_t slots, uint64_t list_items, clfd_partials *partials)
{
    const uint32_t stats = attention->partial == CLFD_PARTIAL_MLO ? 2 : 1;

    partials->o_offset = CLFD_CONTROL_BYTES;
    partials->stats_offset = partials->o_offset + slots * attention->head_dim_v * sizeof(float);
    partials->stats_bytes = round_up(slots * sizeof(float), CLFD_WORKSPACE_ALIGNMENT);
    partials->list_offset = partials->stats_offset + stats * partials->stats_bytes;
    return partials->list_offset + round_up(list_items * sizeof(int32_t), CLFD_WORKSPACE_ALIGNMENT);
}

/* How the kernel merges what its work-groups make; 0 where it cannot: each warp has a counter of 8 bytes in the control
 * region for every block of rows of a sequence. Without waits for states to arrive, but not where what makes operands of
 * codes bounds the time, which is shorter without marks (an H200, int4: 50.4 instead of 51.1 us). */
static uint32_t merge_kind(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                           const clfd_schedule *s)
{
    const uint64_t blocks = (uint64_t)(attention->shared_kv ? 1 : attention->max_batch) * attention->num_kv_heads;

    if (!caps->fused_merge || tuning->family != CLFD_FAMILY_MATRIX || tuning->parts != 0 ||
        tuning->exchange != CLFD_EXCHANGE_PTX ||
        blocks * s->passes * (tuning->work_group / 32) > CLFD_CONTROL_BYTES / sizeof(uint64_t))
        return 0;
    return clfd_type_is_plain(attention->k_type) ? 2 : 1;
}

/* Work-groups of the matrix family that can live on a compute unit together and gain by it: as one begins or ends, the others
 * read on (an H200, 512 items of 256 tokens: 19.9 instead of 20.8 us). Four leave room for the registers of one block of rows
 * with plain K and V; others spill there, or are bound by what makes operands of codes. */
static uint32_t live_groups(const clfd_attention *attention, const clfd_tuning *tuning, const clfd_schedule *s)
{
    return max_u32(tuning->groups_per_unit, clfd_type_is_plain(attention->k_type) && s->rows <= 8 ? 4 : 2);
}

/* Blocks of rows of all sequences and KV heads: items, but for splits. */
static uint64_t count_blocks(const clfd_attention *attention, const clfd_schedule *s)
{
    const uint64_t sequences = attention->shared_kv ? 1 : attention->max_batch;

    return sequences * (attention->num_kv_heads / s->heads) * s->passes;
}

/* Whether the work-groups of a sequence merge its splits, which pays as long as these are few: of more than live at once
 * each goes through many items, and meanwhile others wait for the last of a sequence to merge (an H200, 64 sequences of 8
 * heads and 1024 keys: 2 splits 68 instead of 81 us with a launch for the merge, 8 splits 75 instead of 86, but 16 splits
 * 97 instead of 89; 20 sequences of 4096 keys in 16 splits 90.4 instead of 89.5, 8 of 8192 keys 68 instead of 71). Nothing
 * here depends on lengths or on the capacity: the order of summation does on the answer. */
static uint32_t merges_itself(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                              const clfd_schedule *s)
{
    const uint64_t groups = count_blocks(attention, s) * s->num_splits;
    const uint64_t live = (uint64_t)caps->compute_units * live_groups(attention, tuning, s);
    const uint32_t most = groups <= live ? MAX_FUSED_SPLITS : groups <= 4 * live ? MERGED_ALONE : MERGED_ALONE / 2;

    return s->split_tokens == 0 && s->num_splits <= most ? merge_kind(caps, attention, tuning, s) : 0;
}

/* Decides who merges. AUTO gives up some splits where their work-groups then merge them: those that only pages ask for, and
 * one of nine others; and beyond 16 takes a multiple of 8, which cuts most lengths evenly. */
static void choose_merge(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                         clfd_schedule *s)
{
    const uint32_t splits = s->num_splits;
    const bool automatic = attention->split_policy == CLFD_SPLIT_AUTO;
    const uint64_t own = (uint64_t)splits * tuning->groups_per_unit / groups_per_unit(attention, tuning);

    if (automatic && own <= MAX_FUSED_SPLITS * 9 / 8)
        s->num_splits = min_u32(splits, MAX_FUSED_SPLITS);
    s->fused = merges_itself(caps, attention, tuning, s);
    if (s->fused == 0)
        s->num_splits = splits;
    else if (automatic && s->num_splits > MERGED_ALONE)
        s->num_splits -= s->num_splits % 8;
}

/* Shares for `blocks` work-groups each: one work-group for each place on the device where that comes out even; otherwise
 * several times as many, so that the rest of a division weighs little. */
static uint32_t count_shares(uint64_t places, uint64_t blocks)
{
    const uint64_t even = places / blocks;

    return even >= EVEN_SHARES || (even > 0 && places % blocks == 0)
               ? (uint32_t)even
               : (uint32_t)max_u64(EVEN_SHARES * places / blocks, 1);
}

/* Work-groups per compute unit of the balanced schedule. Rings of warps have fewer slots there, beside the list: twice as
 * many work-groups keep as much on its way. */
static uint32_t balanced_groups(const clfd_tuning *tuning)
{
    return tuning->groups_per_unit * (tuning->family == CLFD_FAMILY_MATRIX && tuning->parts == 0 ? 2 : 1);
}

/* Decides how many work-groups the grid has at most. More of the matrix family than live on the device together would begin as
 * others end, and a last few alone: instead as many as do go through all items. */
static void choose_groups(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                          uint64_t groups, clfd_schedule *s)
{
    const uint64_t units = caps->compute_units, few = units * max_u32(tuning->groups_per_unit, 2);
    const uint32_t live = live_groups(attention, tuning, s);

    s->unit_groups = tuning->groups_per_unit;
    if (tuning->family != CLFD_FAMILY_MATRIX || tuning->parts > 0 || groups <= few)
        return;
    s->unit_groups = (uint32_t)min_u64(ceil_div(groups, units), live);
    s->max_groups = groups > units * live ? (uint32_t)(units * live) : 0;
}

/* Slots of the rings: where several work-groups of the matrix family live on a compute unit, each needs fewer, unless its
 * warps share tiles. */
static void choose_slots(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                         uint64_t groups, clfd_schedule *s)
{
    const bool crowded =
        tuning->parts == 0 && groups > (uint64_t)caps->compute_units * groups_per_unit(attention, tuning);

    if (tuning->family != CLFD_FAMILY_MATRIX)
        return;
    s->slots =
        clfd_matrix_slots(caps, attention, tuning, crowded ? max_u32(tuning->slots - 1, 2) : tuning->slots, false);
    s->balanced_slots = clfd_matrix_slots(caps, attention, tuning,
                                          tuning->parts == 0 ? max_u32(tuning->slots - 1, 2) : tuning->slots, true);
}

/* AUTO, several sequences: calls whose lengths the host does not know share all tiles among the work-groups. Each of them
 * goes through the lengths of the batch twice, which bounds the batch. Returns where the partial states end. */
static uint64_t plan_balanced(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                              clfd_schedule *s)
{
    const uint64_t blocks = (uint64_t)(attention->num_kv_heads / s->heads) * s->passes;
    const uint64_t tiles = attention->max_batch * ceil_div(attention->max_kv_len, tuning->split_tile);

    if (attention->split_policy != CLFD_SPLIT_AUTO || attention->shared_kv || attention->max_batch < 2 ||
        tiles > MAX_BALANCED_TILES ||
        attention->max_batch >
            (tuning->family == CLFD_FAMILY_MATRIX ? clfd_matrix_balanced_batch(tuning) : MAX_BALANCED_BATCH) ||
        (tuning->family == CLFD_FAMILY_MATRIX && s->balanced_slots == 0)) /* no room beside its list */
        return 0;
    s->min_tiles = max_u32(tuning->min_split / tuning->split_tile, 1);
    s->num_shares = (uint32_t)min_u64(count_shares((uint64_t)caps->compute_units * balanced_groups(tuning), blocks),
                                      ceil_div(tiles, s->min_tiles));
    s->num_groups = (uint32_t)(s->num_shares * blocks);
    /* Not of codes: there the merges wait in the way of the next items' conversions (an H200, int8: 57 instead of 48 us). */
    s->balanced_fused = clfd_type_is_plain(attention->k_type) ? merge_kind(caps, attention, tuning, s) : 0;
    return lay_out(attention, (uint64_t)s->num_groups * 2 * s->heads * s->rows, 2 * (uint64_t)attention->max_batch,
                   &s->balanced);
}

clfd_status clfd_schedule_make(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                               clfd_schedule *schedule, const clfd_logger *logger)
{
    const uint32_t ratio = attention->num_q_heads / attention->num_kv_heads;
    const uint32_t sequences = attention->shared_kv ? 1 : attention->max_batch;
    clfd_schedule s = {0};

    s.ratio = ratio;
    /* Of a shared sequence the batch must not decide the rows of a block: a row's bits depend on them. */
    s.rows = attention->shared_kv ? tuning->rows : rows_per_block(attention->q_len * ratio, ratio, tuning->rows);
    s.passes = clfd_schedule_passes(&s, attention, attention->max_batch);
    s.heads_limit = heads_limit(attention, tuning, s.rows);
    s.heads = heads_per_item(attention, s.heads_limit);
    s.num_rows = (uint64_t)attention->max_batch * attention->q_len * attention->num_q_heads;
    s.merge_work_group = clfd_merge_work_group(caps, attention->head_dim_v);
    if (attention->split_policy == CLFD_SPLIT_TOKENS)
        s.split_tokens = attention->split_size;
    else if (attention->split_policy == CLFD_SPLIT_COUNT)
        s.num_splits = attention->split_size;
    else
        s.num_splits = auto_splits(caps, attention, tuning, attention->num_kv_heads / s.heads * s.passes);
    choose_merge(caps, attention, tuning, &s);
    s.grid_splits = clfd_schedule_splits(&s, attention, tuning, attention->max_kv_len);
    if (s.grid_splits == 1) /* nothing to merge, and registers that a merge would need */
        s.fused = 0;

    /* Each factor is below 2^32, and the first product below 2^56 by the limits of check.c. */
    const uint64_t items = count_blocks(attention, &s);
    if (items > MAX_GROUPS / s.grid_splits || s.num_rows > MAX_GROUPS)
        return clfd_fail(logger, CLFD_ERROR_OVERFLOW,
                         "%llu blocks of rows times %u splits; a grid has at most %llu work-groups",
                         (unsigned long long)items, s.grid_splits, (unsigned long long)MAX_GROUPS);
    choose_groups(caps, attention, tuning, items * s.grid_splits, &s);
    choose_slots(caps, attention, tuning, items * s.grid_splits, &s);
    s.workspace_bytes = CLFD_CONTROL_BYTES;
    if (s.grid_splits > 1)
        s.workspace_bytes = lay_out(attention, s.num_rows * s.grid_splits, sequences, &s.partials);
    const uint64_t balanced_bytes = plan_balanced(caps, attention, tuning, &s);
    if (balanced_bytes > s.workspace_bytes)
        s.workspace_bytes = balanced_bytes;
    if (s.workspace_bytes > caps->max_alloc_bytes || s.workspace_bytes > SIZE_MAX)
        return clfd_fail(logger, CLFD_ERROR_OVERFLOW,
                         "the workspace needs %llu bytes (%llu rows, %u splits); the device allocates at most %llu",
                         (unsigned long long)s.workspace_bytes, (unsigned long long)s.num_rows, s.grid_splits,
                         (unsigned long long)caps->max_alloc_bytes);
    *schedule = s;
    return CLFD_SUCCESS;
}

/* schedule.h - splits, ND-ranges and workspace of a plan: pure numbers. */
#ifndef CLFD_SCHEDULE_H
#define CLFD_SCHEDULE_H

#include "plan/tuning.h"

/* Bytes at the start of every workspace that are zero between calls, equal for all plans. */
#define CLFD_CONTROL_BYTES 131072u
#define CLFD_WORKSPACE_ALIGNMENT 64u

/* Where partial states lie: bytes from the start of the workspace. `list` is what the merge must know of them. */
typedef struct clfd_partials {
    uint64_t o_offset, stats_offset, list_offset;
    uint64_t stats_bytes; /* of one statistic */
} clfd_partials;

typedef struct clfd_schedule {
    uint32_t ratio;        /* query heads per KV head */
    uint32_t rows;         /* R: query rows per block, at least min(ratio, tuning.rows) */
    uint32_t heads;        /* KV heads per item, a divisor of their number */
    uint32_t heads_limit;  /* what the kernel is built for; at least heads */
    uint32_t passes;       /* blocks per KV head of the largest batch: ceil(query rows of a K and V sequence / rows) */
    uint32_t num_splits;   /* AUTO, COUNT: splits per sequence at most; TOKENS: 0 */
    uint32_t split_tokens; /* TOKENS: tokens per split; else 0 */
    uint32_t grid_splits;  /* splits of the longest sequence: slots in the grid, at least 1 */
    uint32_t num_shares;   /* balanced schedule: equal shares of all tiles; 0 where the plan has none */
    uint32_t num_groups;   /* balanced schedule: its work-groups, one for each block of each share */
    uint32_t min_tiles;    /* balanced schedule: tiles of split_tile tokens per share at least */
    uint64_t num_rows;     /* max_batch * q_len * num_q_heads */
    clfd_partials partials, balanced; /* of a call with splits, and of one with the balanced schedule */
    uint64_t workspace_bytes;
    uint32_t max_groups;  /* work-groups of the grid, which go through all items; 0: one per item */
    uint32_t unit_groups; /* work-groups that registers must leave room for on a compute unit */
    /* DECODE_FUSED of cl/decode.cl, of calls with splits and of those with the balanced schedule: other than 0, the
     * work-groups of a sequence merge its splits themselves, and no merge kernel follows. */
    uint32_t fused, balanced_fused;
    uint32_t slots, balanced_slots; /* matrix family: of a warp's ring, in either kernel */
    uint32_t merge_work_group;
} clfd_schedule;

/* CLFD_ERROR_OVERFLOW where the grid or the workspace is beyond what the device can address or allocate. */
clfd_status clfd_schedule_make(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning *tuning,
                               clfd_schedule *schedule, const clfd_logger *logger);

/* Splits that a sequence of kv_len tokens is cut into at most, whatever its start and its queries' positions; at least 1.
 * cl/split.cl has the same arithmetic. */
uint32_t clfd_schedule_splits(const clfd_schedule *schedule, const clfd_attention *attention, const clfd_tuning *tuning,
                              uint32_t kv_len);

/* Blocks per KV head of a call with `batch` sequences. */
uint32_t clfd_schedule_passes(const clfd_schedule *schedule, const clfd_attention *attention, uint32_t batch);

/* Work-items per work-group that the merge kernels ask for: on GPUs 8 per 4 dims of a row, up to 256; on CPUs one. */
uint32_t clfd_merge_work_group(const clfd_caps *caps, uint32_t head_dim_v);

#endif

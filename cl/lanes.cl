/* lanes.cl - the shape of a lanes work-group: tunables, the constants derived from them, and where a work-item stands.
 * decode_lanes.cl says what they are for.
 *
 * Tunables, given by the host:
 *   LANES_WG        work-items per work-group, a power of two
 *   LANES           lanes per KV row, a power of two, at least LANES_ROWS
 *   LANES_UNROLL    tokens per lane group and step, a power of two
 *   LANES_PARTS     parts that share the query rows of a block, a power of two
 *   LANES_EXCHANGE  how lanes exchange values: 0 local memory and barriers, 1 sub-group shuffles, 2 PTX shuffles
 */
#ifndef CLFD_LANES_CL
#define CLFD_LANES_CL

#include "decode.cl"

#ifndef LANES_EXCHANGE
#define LANES_EXCHANGE 0
#endif
#ifndef LANES_WG
#define LANES_WG 128
#endif
#ifndef LANES
#define LANES 16
#endif
#ifndef LANES_UNROLL
#define LANES_UNROLL 2
#endif
#ifndef LANES_PARTS
#define LANES_PARTS 1
#endif

#define LANES_ROWS ((DECODE_ROWS + LANES_PARTS - 1) / LANES_PARTS)
#define PART_WG (LANES_WG / LANES_PARTS)
#define GROUPS (PART_WG / LANES)
#define TILE (GROUPS * LANES_UNROLL)
#define CHUNKS (HEAD_DIM / 8)
#define CHUNKS_V (HEAD_DIM_V / 8)
#define LANE_CHUNKS ((CHUNKS + LANES - 1) / LANES)
#define LANE_CHUNKS_V ((CHUNKS_V + LANES - 1) / LANES)

/* Scales that a lane needs of a row: one where a group is the whole row, else one per chunk. */
#define LANE_SCALES (K_SCALE == SCALE_GROUP && K_GROUP >= HEAD_DIM ? 1 : LANE_CHUNKS)
#define LANE_SCALES_V (V_SCALE == SCALE_GROUP && V_GROUP >= HEAD_DIM_V ? 1 : LANE_CHUNKS_V)

/* The sums of a step, row by row and token by token, rows padded to a power of two. */
#if LANES_ROWS > 4
#define PADDED_ROWS 8
#elif LANES_ROWS > 2
#define PADDED_ROWS 4
#else
#define PADDED_ROWS LANES_ROWS
#endif
#define SUMS (PADDED_ROWS * LANES_UNROLL)
#define SLOTS (SUMS > LANES ? SUMS / LANES : 1)  /* sums that a lane holds after the reduction */
#define COPIES (SUMS < LANES ? LANES / SUMS : 1) /* lanes that then hold the same sum */
#define ROW_LANES (LANES / PADDED_ROWS)          /* lanes that hold sums of one row */
#define SUM_LANE(sum) ((sum) / SLOTS * COPIES)   /* the first lane that holds a sum, and where */
#define SUM_SLOT(sum) ((sum) % SLOTS)

/* q in registers while it fits; otherwise in local memory, one copy per work-group. */
#ifndef LANES_Q_LOCAL
#define LANES_Q_LOCAL (LANES_ROWS * LANE_CHUNKS > 8)
#endif

/* Chunks of o that the final fold takes through local memory at a time; 8 planes of a padded row of lanes each. */
#define FOLD_STRIDE (LANES_WG + LANES)
#define FOLD_CHUNKS (4096 / (8 * FOLD_STRIDE) > 1 ? 4096 / (8 * FOLD_STRIDE) : 1)
#define FOLD_FLOATS (FOLD_CHUNKS * 8 * FOLD_STRIDE)

#if LANES_EXCHANGE == 0
#define SHARE_FLOATS (SUMS * LANES_WG > FOLD_FLOATS ? SUMS * LANES_WG : FOLD_FLOATS)
#else
#define SHARE_FLOATS FOLD_FLOATS
#endif

/* What a lane holds of its lane group's state: m and l of the row whose sums it holds, row lane / ROW_LANES of its part;
 * and its chunks of o of all rows, each under its own row's m. */
typedef struct lanes_stream {
    float m, l;
    float8 o[LANES_ROWS][LANE_CHUNKS_V];
} lanes_stream;

/* Where a work-item stands. */
typedef struct lanes_place {
    __local float *share; /* SHARE_FLOATS of local memory, for the exchange and for the fold */
    int item, lane;
    int first; /* the item that is lane 0 of this lane group */
    int group; /* of the part */
    int part;
} lanes_place;

static inline lanes_place lanes_find_place(__local float *share)
{
    const int item = (int)get_local_id(0);
    lanes_place at;
    at.share = share;
    at.item = item;
    at.lane = item % LANES;
    at.first = item - at.lane;
    at.group = item / LANES % GROUPS;
    at.part = item / PART_WG;
    return at;
}

/* Row r of a part as a row of the block. A part may end past the block. */
static inline int lanes_row(int part, int r) { return part * LANES_ROWS + r; }

static inline bool lanes_row_exists(const decode_args *args, const decode_item *item, int part, int r)
{
    return lanes_row(part, r) < DECODE_ROWS && decode_row_exists(args, item, lanes_row(part, r));
}

#endif

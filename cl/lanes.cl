/* lanes.cl - the shape of a lanes work-group: tunables, the constants derived from them, and where a work-item stands.
 * decode_lanes.cl says what they are for.
 *
 * Tunables, given by the host:
 *   LANES_WG        work-items per work-group, a power of two
 *   LANES           lanes per KV row, a power of two, at least LANES_ROWS
 *   LANES_UNROLL    tokens per lane group and step, a power of two
 *   LANES_PARTS     parts that share the query rows of a block, a power of two
 *   LANES_AHEAD     1: a step's tokens are loaded while those of the one before are used; 2: its keys as soon as those of
 *                   the one before are used, its values likewise, into the same registers
 *   LANES_DOT       1: scores of codes are summed up in integers where lanes_dot.cl can
 *   LANES_EXCHANGE  how lanes exchange values: 0 local memory and barriers, 1 sub-group shuffles, 2 PTX shuffles
 */
#ifndef CLFD_LANES_CL
#define CLFD_LANES_CL

#ifndef LANES_WG
#define LANES_WG 128
#endif
#define DECODE_WORK_SPACE __local
#define DECODE_WORK_SHARED LANES_WG
#define DECODE_WORK_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define DECODE_WORK_OWNER (get_local_id(0) == 0)
#include "decode_store.cl"

/* A function that is not a copy would index the registers' arrays in memory. */
#define LANES_INLINE static inline __attribute__((always_inline))

#ifndef LANES_EXCHANGE
#define LANES_EXCHANGE 0
#endif
#ifndef LANES
#define LANES 16
#endif
#ifndef LANES_UNROLL
#define LANES_UNROLL 2
#endif
#ifndef LANES_AHEAD
#define LANES_AHEAD 0
#endif
#ifndef LANES_DOT /* where four products and their sum are one instruction */
#define LANES_DOT CLFD_PTX
#endif
#ifndef LANES_PARTS
#define LANES_PARTS 1
#endif

/* NVIDIA's compiler heeds a limit of registers only where the size of the work-group is left open. */
#if CLFD_PTX
#define LANES_KERNEL_SIZE
#else
#define LANES_KERNEL_SIZE __attribute__((reqd_work_group_size(LANES_WG, 1, 1)))
#endif

#define LANES_ROWS ((DECODE_ROWS + LANES_PARTS - 1) / LANES_PARTS)
#define PART_WG (LANES_WG / LANES_PARTS)
#define GROUPS (PART_WG / LANES)
#define TILE (GROUPS * LANES_UNROLL)
#define CHUNKS (HEAD_DIM / 8)
#define CHUNKS_V (HEAD_DIM_V / 8)

/* Chunks that a lane takes together, as one load where the format has longer ones and all lanes get some. A run has one
 * scale. */
#define RUN_FITS(run, chunks, scale, group)                                                                            \
    (KV_ALIGNED >= 3 && (run) > 1 && (chunks) % (run) == 0 && (chunks) / (run) >= LANES &&                             \
     ((scale) != SCALE_GROUP || (group) % (8 * (run)) == 0))
#if RUN_FITS(K_RUN, CHUNKS, K_SCALE, K_GROUP)
#define LANE_RUN K_RUN
#else
#define LANE_RUN 1
#endif
#if RUN_FITS(V_RUN, CHUNKS_V, V_SCALE, V_GROUP)
#define LANE_RUN_V V_RUN
#else
#define LANE_RUN_V 1
#endif
#define LANE_RUNS ((CHUNKS / LANE_RUN + LANES - 1) / LANES)
#define LANE_RUNS_V ((CHUNKS_V / LANE_RUN_V + LANES - 1) / LANES)
#define LANE_CHUNKS (LANE_RUNS * LANE_RUN)
#define LANE_CHUNKS_V (LANE_RUNS_V * LANE_RUN_V)

/* Which chunk of its row chunk c of a lane is, by runs that go round the lanes; it may lie past the last one. */
#define RUN_CHUNK(c, lane, run) (((c) / (run)*LANES + (lane)) * (run) + (c) % (run))
#define LANE_CHUNK(c, lane) RUN_CHUNK(c, lane, LANE_RUN)
#define LANE_CHUNK_V(c, lane) RUN_CHUNK(c, lane, LANE_RUN_V)

/* A scale of a whole row belongs to its score or to its weight, and only the lane that has those needs it. Otherwise a
 * lane needs one for each of its runs, as it does of zeros. */
#define ROW_SCALED (K_SCALE == SCALE_GROUP && K_GROUP >= HEAD_DIM)
#define ROW_SCALED_V (V_SCALE == SCALE_GROUP && V_GROUP >= HEAD_DIM_V)
#define RUN_SCALED (K_SCALED && !ROW_SCALED)
#define RUN_SCALED_V (V_SCALED && !ROW_SCALED_V)
#define RUN_SCALE_APART (RUN_SCALED && !(K_SCALE == SCALE_ROW && LANE_RUN > 1)) /* not loaded with the run */
#define RUN_SCALE_APART_V (RUN_SCALED_V && !(V_SCALE == SCALE_ROW && LANE_RUN_V > 1))
#define LANE_SCALES (ROW_SCALED ? 1 : LANE_RUNS)
#define LANE_SCALES_V (ROW_SCALED_V ? 1 : LANE_RUNS_V)

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
    int odd; /* KV_PAIRS: of the rows of an item */
} lanes_place;

LANES_INLINE lanes_place lanes_find_place(__local float *share)
{
    const int item = (int)get_local_id(0);
    lanes_place at;
    at.share = share;
    at.item = item;
    at.lane = item % LANES;
    at.first = item - at.lane;
    at.group = item / LANES % GROUPS;
    at.part = item / PART_WG;
    at.odd = 0;
    return at;
}

/* Where the rows of an item lie. */
LANES_INLINE int lanes_find_odd(const decode_args *args, const decode_inputs *in, const decode_item *item)
{
#if KV_PAIRS
    const kv_cache cache = kv_open(args, in, item->batch, item->sequence.cache_row, item->kv_head);
    return (int)((ulong)(K_TYPE == TYPE_Q8_0 ? cache.k : cache.v) >> 3) & 1;
#else
    return 0;
#endif
}

/* The first dim of run i of a lane, of `dims`; of the last run past it. */
LANES_INLINE int lanes_run_dim(int i, int lane, int run, int dims)
{
    const int d = RUN_CHUNK(i * run, lane, run) * 8;
    return dims / 8 % (LANES * run) == 0 ? d : min(d, dims - 8 * run);
}

/* How the elements of run i of a lane lie. */
LANES_INLINE int lanes_key_phase(int i, int lane, int odd)
{
#if LANE_RUN > 1
    return K_FORMAT(run_phase)(lanes_run_dim(i, lane, LANE_RUN, HEAD_DIM) / (8 * LANE_RUN), odd);
#else
    return 0;
#endif
}

LANES_INLINE int lanes_value_phase(int i, int lane, int odd)
{
#if LANE_RUN_V > 1
    return V_FORMAT(run_phase)(lanes_run_dim(i, lane, LANE_RUN_V, HEAD_DIM_V) / (8 * LANE_RUN_V), odd);
#else
    return 0;
#endif
}

/* The dim of element e of chunk c of a lane, in the order of unpacking. Past the last chunk it is HEAD_DIM at least. */
LANES_INLINE int lanes_key_dim(int c, int lane, int odd, int e)
{
#if LANE_RUN > 1
    const int phase = lanes_key_phase(c / LANE_RUN, lane, odd);
    return LANE_CHUNK(c / LANE_RUN * LANE_RUN, lane) * 8 + K_FORMAT(run_element)(phase, c % LANE_RUN * 8 + e);
#else
    return LANE_CHUNK(c, lane) * 8 + e;
#endif
}

LANES_INLINE int lanes_value_dim(int c, int lane, int odd, int e)
{
#if LANE_RUN_V > 1
    const int phase = lanes_value_phase(c / LANE_RUN_V, lane, odd);
    return LANE_CHUNK_V(c / LANE_RUN_V * LANE_RUN_V, lane) * 8 + V_FORMAT(run_element)(phase, c % LANE_RUN_V * 8 + e);
#else
    return LANE_CHUNK_V(c, lane) * 8 + e;
#endif
}

/* Row r of a part as a row of the block. A part may end past the block. */
LANES_INLINE int lanes_row(int part, int r) { return part * LANES_ROWS + r; }

LANES_INLINE bool lanes_row_exists(const decode_args *args, const decode_item *item, int part, int r)
{
    return lanes_row(part, r) < DECODE_ROWS && decode_row_exists(args, item, lanes_row(part, r));
}

#endif

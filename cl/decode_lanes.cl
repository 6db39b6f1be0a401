/* decode_lanes.cl - a group of work-items ("lanes") per KV row: the family for GPUs.
 *
 * A work-group is LANES_PARTS parts of GROUPS lane groups. A part owns LANES_ROWS of the block's query rows; the parts
 * read the same K and V at about the same time, so that all but the first find them in the cache. Each lane group is a
 * stream: it takes LANES_UNROLL tokens per step, holds its own (m, l, o) and meets the other groups of its part only at
 * the end, in local memory. A lane holds every LANES-th chunk of 8 elements of a row, so a lane group reads a row as
 * one contiguous run. The scores of a step, LANES_UNROLL tokens by LANES_ROWS query rows, are summed over the lanes by a
 * transposing reduction: at each stage a lane passes on half of its sums, so that at the end the sums are spread over
 * the lanes and each exp is computed once.
 *
 * Tunables, given by the host:
 *   LANES_WG        work-items per work-group, a power of two
 *   LANES           lanes per KV row, a power of two, at least LANES_ROWS
 *   LANES_UNROLL    tokens per lane group and step, a power of two
 *   LANES_PARTS     parts that share the query rows of a block, a power of two
 *   LANES_EXCHANGE  how lanes exchange values: 0 local memory and barriers, 1 sub-group shuffles, 2 PTX shuffles
 */
#ifndef LANES_EXCHANGE
#define LANES_EXCHANGE 0
#endif
#if LANES_EXCHANGE == 1
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#endif

#include "decode.cl"

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

/* The sums of a step, row by row and token by token, rows padded to a power of two. */
#if LANES_ROWS > 4
#define PADDED_ROWS 8
#elif LANES_ROWS > 2
#define PADDED_ROWS 4
#else
#define PADDED_ROWS LANES_ROWS
#endif
#define SUMS (PADDED_ROWS * LANES_UNROLL)
#define SLOTS (SUMS > LANES ? SUMS / LANES : 1)   /* sums that a lane holds after the reduction */
#define COPIES (SUMS < LANES ? LANES / SUMS : 1)  /* lanes that then hold the same sum */
#define ROW_LANES (LANES / PADDED_ROWS)           /* lanes that hold sums of one row */
#define SUM_LANE(sum) ((sum) / SLOTS * COPIES)    /* the first lane that holds a sum, and where */
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

/* ---- Exchange between the lanes of a group. `share` is used by the local-memory form alone. ---------------------- */

typedef struct lanes_place {
    __local float *share;
    int item, lane;
    int first; /* the item that is lane 0 of this lane group */
    int group; /* of the part */
    int part;
} lanes_place;

#if LANES_EXCHANGE == 0

static inline float lanes_xor(const lanes_place *at, float value, int mask)
{
    at->share[at->item] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    const float other = at->share[at->item ^ mask];
    barrier(CLK_LOCAL_MEM_FENCE);
    return other;
}

/* The sum of each of sums[] over the lanes of the group, spread over the lanes: slot i of a lane ends as the total of
 * sum (lane / COPIES) * SLOTS + i. */
static inline void lanes_reduce(const lanes_place *at, float *sums)
{
    for (int i = 0; i < SUMS; i++)
        at->share[i * LANES_WG + at->item] = sums[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < SLOTS; i++) {
        const int first = (at->lane / COPIES * SLOTS + i) * LANES_WG + at->first;
        float total = 0.0f;
        for (int x = 0; x < LANES; x++)
            total += at->share[first + x];
        sums[i] = total;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Makes slots readable by the group until lanes_retire. */
static inline void lanes_publish(const lanes_place *at, const float *slots, int count)
{
    for (int i = 0; i < count; i++)
        at->share[i * LANES_WG + at->item] = slots[i];
    barrier(CLK_LOCAL_MEM_FENCE);
}

static inline float lanes_read(const lanes_place *at, const float *slots, int slot, int lane)
{
    return at->share[slot * LANES_WG + at->first + lane];
}

static inline void lanes_retire(void) { barrier(CLK_LOCAL_MEM_FENCE); }

/* Whether a condition holds in any lane that runs together with this one; a sure yes costs only time. */
static inline bool lanes_any(bool condition) { return true; }

#else

#if LANES_EXCHANGE == 1
static inline float lanes_xor(const lanes_place *at, float value, int mask) { return sub_group_shuffle_xor(value, (uint)mask); }
static inline float lanes_from(float value, int lane)
{
    return sub_group_shuffle(value, (get_sub_group_local_id() & ~(uint)(LANES - 1)) + (uint)lane);
}
static inline bool lanes_any(bool condition) { return sub_group_any(condition); }
#else
static inline float lanes_xor(const lanes_place *at, float value, int mask)
{
    float other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(other) : "f"(value), "r"(mask));
    return other;
}
static inline float lanes_from(float value, int lane)
{
    float other;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, 0xffffffff;"
                 : "=f"(other)
                 : "f"(value), "r"(lane), "r"((32 - LANES) << 8 | 0x1f));
    return other;
}
static inline bool lanes_any(bool condition)
{
    uint any;
    asm volatile("{.reg .pred mine, all; setp.ne.u32 mine, %1, 0; vote.sync.any.pred all, mine, 0xffffffff; "
                 "selp.u32 %0, 1, 0, all;}"
                 : "=r"(any)
                 : "r"((uint)condition));
    return any != 0;
}
#endif

static inline void lanes_reduce(const lanes_place *at, float *sums)
{
    int width = LANES / 2;
#pragma unroll
    for (int kept = SUMS / 2; kept > 0 && width > 0; kept /= 2, width /= 2) {
        const bool upper = (at->lane & width) != 0;
#pragma unroll
        for (int i = 0; i < kept; i++) {
            const float keep = upper ? sums[i + kept] : sums[i], pass = upper ? sums[i] : sums[i + kept];
            sums[i] = keep + lanes_xor(at, pass, width);
        }
    }
#pragma unroll
    for (; width > 0; width /= 2)
        sums[0] += lanes_xor(at, sums[0], width);
}

static inline void lanes_publish(const lanes_place *at, const float *slots, int count) {}
static inline float lanes_read(const lanes_place *at, const float *slots, int slot, int lane)
{
    return lanes_from(slots[slot], lane);
}
static inline void lanes_retire(void) {}

#endif

/* ---- The kernel -------------------------------------------------------------------------------------------------- */

/* Chunk c of this lane in a row, zeros past the last one. */
static inline kv_raw8 lanes_load(const __global kv_element *row, int c, int lane, int chunks, int lane_chunks)
{
    const int chunk = c * LANES + lane;
    kv_raw8 raw = 0;
    if (lane_chunks * LANES == chunks || chunk < chunks)
        raw = kv_load8(row, chunk * 8);
    return raw;
}

static inline float lanes_dot8(float8 a, float8 b, float sum)
{
    sum = fma(a.s0, b.s0, sum);
    sum = fma(a.s1, b.s1, sum);
    sum = fma(a.s2, b.s2, sum);
    sum = fma(a.s3, b.s3, sum);
    sum = fma(a.s4, b.s4, sum);
    sum = fma(a.s5, b.s5, sum);
    sum = fma(a.s6, b.s6, sum);
    return fma(a.s7, b.s7, sum);
}

/* Chunk c of query row r as floats, for this lane; zeros past the last one. */
static inline float8 lanes_load_q(const __global q_element *q, const decode_args *args, const decode_item *item, int r, int c,
                           int lane)
{
    const int chunk = c * LANES + lane;
    float values[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    if (chunk < CHUNKS) {
        const decode_row row = decode_find_row(args, item, r);
        const long index = decode_q_index(args, item, &row) + chunk * 8;
#pragma unroll
        for (int e = 0; e < 8; e++)
            values[e] = q_load(q, index + e);
    }
    return vload8(0, values);
}

/* Row r of a part as a row of the block. A part may end past the block. */
static inline int lanes_row(int part, int r) { return part * LANES_ROWS + r; }

static inline bool lanes_row_exists(const decode_args *args, const decode_item *item, int part, int r)
{
    return lanes_row(part, r) < DECODE_ROWS && decode_row_exists(args, item, lanes_row(part, r));
}

/* One chunk of o into 8 planes of local memory, element by element. */
static inline void lanes_put_chunk(__local float *plane, float8 chunk)
{
    plane[0] = chunk.s0;
    plane[FOLD_STRIDE] = chunk.s1;
    plane[2 * FOLD_STRIDE] = chunk.s2;
    plane[3 * FOLD_STRIDE] = chunk.s3;
    plane[4 * FOLD_STRIDE] = chunk.s4;
    plane[5 * FOLD_STRIDE] = chunk.s5;
    plane[6 * FOLD_STRIDE] = chunk.s6;
    plane[7 * FOLD_STRIDE] = chunk.s7;
}

/* Chunk c of row r of every part, put by all lane groups into `planes`: adds up the groups and writes the elements. */
static inline void lanes_write_chunk(const decode_args *args, const decode_item *item, const lanes_place *at, int r,
                                     int c, const __local float *planes, const __local float *totals,
                                     __global out_element *out, __global float *workspace)
{
    for (int x = at->item; x < LANES_PARTS * LANES * 8; x += LANES_WG) {
        const int part = x / (LANES * 8), y = x % (LANES * 8), d = c * LANES * 8 + y;
        const __local float *const column = planes + y % 8 * FOLD_STRIDE + part * PART_WG + y / 8;
        float sum = 0.0f;
        if (d >= HEAD_DIM_V || !lanes_row_exists(args, item, part, r))
            continue;
        for (int g = 0; g < GROUPS; g++)
            sum += column[g * LANES];
        const decode_row row = decode_find_row(args, item, lanes_row(part, r));
        decode_store_o(args, item, &row, out, workspace, d, state_normalise(sum, totals[lanes_row(part, r)]));
    }
}

/* Folds the lane groups of each part into one state per row and writes it. m and l are this lane's, of row
 * lane / ROW_LANES of its part; o is the lane group's. */
static inline void lanes_finish(const decode_args *args, const decode_item *item, const lanes_place *at, float m, float l,
                                float8 (*o)[LANE_CHUNKS_V], __local float *stats, __local float *totals,
                                __global out_element *out, __global float *lse, __global float *workspace)
{
    __local float *const part_m = stats + at->part * (2 * PADDED_ROWS * GROUPS), *const part_l = part_m + PADDED_ROWS * GROUPS;

    for (int width = ROW_LANES / 2; width >= COPIES; width /= 2)
        l += lanes_xor(at, l, width);
    if (at->lane % ROW_LANES == 0) {
        part_m[at->lane / ROW_LANES * GROUPS + at->group] = m;
        part_l[at->lane / ROW_LANES * GROUPS + at->group] = l;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int r = 0; r < LANES_ROWS; r++) {
        float top = -INFINITY, sum = 0.0f;
        for (int g = 0; g < GROUPS; g++)
            top = state_max(top, part_m[r * GROUPS + g]);
        for (int g = 0; g < GROUPS; g++)
            sum += state_weight(part_m[r * GROUPS + g], top) * part_l[r * GROUPS + g];
        const float weight = state_weight(part_m[r * GROUPS + at->group], top);
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS_V; c++)
            o[r][c] *= weight;
        if (at->item % PART_WG == 0 && lanes_row_exists(args, item, at->part, r)) {
            const decode_row row = decode_find_row(args, item, lanes_row(at->part, r));
            totals[lanes_row(at->part, r)] = sum;
            decode_store_stats(args, item, &row, lse, workspace, top, sum);
        }
    }
#pragma unroll
    for (int first = 0; first < LANES_ROWS * LANE_CHUNKS_V; first += FOLD_CHUNKS) {
        const int count = min(FOLD_CHUNKS, LANES_ROWS * LANE_CHUNKS_V - first);
#pragma unroll
        for (int i = 0; i < count; i++)
            lanes_put_chunk(at->share + i * 8 * FOLD_STRIDE + at->item,
                            o[(first + i) / LANE_CHUNKS_V][(first + i) % LANE_CHUNKS_V]);
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int i = 0; i < count; i++)
            lanes_write_chunk(args, item, at, (first + i) / LANE_CHUNKS_V, (first + i) % LANE_CHUNKS_V,
                              at->share + i * 8 * FOLD_STRIDE, totals, out, workspace);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

__attribute__((reqd_work_group_size(LANES_WG, 1, 1))) __kernel void decode_lanes(DECODE_ARGUMENTS)
{
    __local float share[SHARE_FLOATS];
    __local float stats[LANES_PARTS * 2 * PADDED_ROWS * GROUPS];
    __local float totals[LANES_PARTS * LANES_ROWS];
#if LANES_Q_LOCAL
    __local float8 shared_q[LANES_PARTS * LANES_ROWS * LANE_CHUNKS * LANES];
#endif
    decode_item item;
    lanes_place at;
    float8 o[LANES_ROWS][LANE_CHUNKS_V];
    float m = -INFINITY, l = 0.0f; /* of the row whose sums this lane holds; o is under the same m, row by row */

    if (!decode_find_item(&args, kv_lens, (uint)get_group_id(0), &item))
        return;
    at.share = share;
    at.item = (int)get_local_id(0);
    at.lane = at.item % LANES;
    at.first = at.item - at.lane;
    at.group = at.item / LANES % GROUPS;
    at.part = at.item / PART_WG;

#if LANES_Q_LOCAL
    for (int x = at.item; x < LANES_PARTS * LANES_ROWS * LANE_CHUNKS * LANES; x += LANES_WG)
        shared_q[x] = lanes_load_q(q, &args, &item, x / (LANE_CHUNKS * LANES), x / LANES % LANE_CHUNKS, x % LANES);
    barrier(CLK_LOCAL_MEM_FENCE);
#define QUERY(r, c) shared_q[(lanes_row(at.part, r) * LANE_CHUNKS + (c)) * LANES + at.lane]
#else
    float8 own_q[LANES_ROWS][LANE_CHUNKS];
#pragma unroll
    for (int r = 0; r < LANES_ROWS; r++)
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS; c++)
            own_q[r][c] = lanes_load_q(q, &args, &item, lanes_row(at.part, r), c, at.lane);
#define QUERY(r, c) own_q[r][c]
#endif
#pragma unroll
    for (int r = 0; r < LANES_ROWS; r++)
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS_V; c++)
            o[r][c] = 0.0f;

    const float factor = score_factor(&args);
    const kv_rows keys = kv_keys(k, &args, item.batch, item.kv_head);
#if !V_FROM_K
    const kv_rows values = kv_values(v, &args, item.batch, item.kv_head);
#endif
    const int own_row = lanes_row(at.part, min(at.lane / ROW_LANES, LANES_ROWS - 1));
    const decode_row first_row = decode_find_row(&args, &item, 0);
    const int own_limit = min(decode_find_row(&args, &item, own_row).limit, item.end);
    const int full_limit = min(first_row.limit, item.end); /* below it every row of the block sees every token */

    for (int base = item.begin; base < item.end; base += TILE) {
        kv_raw8 raw_k[LANES_UNROLL][LANE_CHUNKS], raw_v[LANES_UNROLL][LANE_CHUNKS_V];
        float sums[SUMS];

#pragma unroll
        for (int u = 0; u < LANES_UNROLL; u++) {
            const int token = min(base + u * GROUPS + at.group, item.end - 1);
            const __global kv_element *const key = kv_row(&keys, token);
#pragma unroll
            for (int c = 0; c < LANE_CHUNKS; c++)
                raw_k[u][c] = lanes_load(key, c, at.lane, CHUNKS, LANE_CHUNKS);
        }
#pragma unroll
        for (int u = 0; u < LANES_UNROLL; u++) {
#if V_FROM_K
#pragma unroll
            for (int c = 0; c < LANE_CHUNKS_V; c++)
                raw_v[u][c] = raw_k[u][c];
#else
            const int token = min(base + u * GROUPS + at.group, item.end - 1);
            const __global kv_element *const value = kv_row(&values, token);
#pragma unroll
            for (int c = 0; c < LANE_CHUNKS_V; c++)
                raw_v[u][c] = lanes_load(value, c, at.lane, CHUNKS_V, LANE_CHUNKS_V);
#endif
        }

#pragma unroll
        for (int i = 0; i < SUMS; i++)
            sums[i] = 0.0f;
#pragma unroll
        for (int u = 0; u < LANES_UNROLL; u++)
#pragma unroll
            for (int c = 0; c < LANE_CHUNKS; c++) {
                const float8 key = kv_unpack8(raw_k[u][c]);
#pragma unroll
                for (int r = 0; r < LANES_ROWS; r++)
                    sums[r * LANES_UNROLL + u] = lanes_dot8(QUERY(r, c), key, sums[r * LANES_UNROLL + u]);
            }
        lanes_reduce(&at, sums);

        /* From here on a lane works on its own slots: scores of one row. */
        float top = -INFINITY;
        bool hidden = false;
#pragma unroll
        for (int i = 0; i < SLOTS; i++) {
            const int u = (at.lane / COPIES * SLOTS + i) % LANES_UNROLL;
            sums[i] *= factor;
            if (base + TILE > full_limit && base + u * GROUPS + at.group >= own_limit)
                sums[i] = -INFINITY;
            top = state_max(top, sums[i]);
            hidden |= sums[i] == -INFINITY;
        }
#pragma unroll
        for (int width = ROW_LANES / 2; width >= COPIES; width /= 2)
            top = state_max(top, lanes_xor(&at, top, width));
        if (lanes_any(top > m)) {
            const float raised = state_max(top, m);
            float shrink = state_weight(m, raised);
            lanes_publish(&at, &shrink, 1);
#pragma unroll
            for (int r = 0; r < LANES_ROWS; r++) {
                const float row_shrink = lanes_read(&at, &shrink, 0, r * ROW_LANES);
#pragma unroll
                for (int c = 0; c < LANE_CHUNKS_V; c++)
                    o[r][c] *= row_shrink;
            }
            lanes_retire();
            l *= shrink;
            m = raised;
        }
        const float under = state_base(m);
#pragma unroll
        for (int i = 0; i < SLOTS; i++) {
            const float p = state_exp2(sums[i] - under);
            const bool invisible = sums[i] == -INFINITY;
            l += invisible ? 0.0f : p;
            sums[i] = invisible ? -1.0f : p; /* no weight is negative: the mark of a key that must not be used */
        }
        lanes_publish(&at, sums, SLOTS);
        if (lanes_any(hidden)) {
#pragma unroll
            for (int u = 0; u < LANES_UNROLL; u++)
#pragma unroll
                for (int r = 0; r < LANES_ROWS; r++) {
                    const int sum = r * LANES_UNROLL + u;
                    const float p = lanes_read(&at, sums, SUM_SLOT(sum), SUM_LANE(sum));
#pragma unroll
                    for (int c = 0; c < LANE_CHUNKS_V; c++)
                        o[r][c] = p < 0.0f ? o[r][c] : fma(p, kv_unpack8(raw_v[u][c]), o[r][c]);
                }
        } else {
#pragma unroll
            for (int u = 0; u < LANES_UNROLL; u++) {
                float p[LANES_ROWS];
#pragma unroll
                for (int r = 0; r < LANES_ROWS; r++)
                    p[r] = lanes_read(&at, sums, SUM_SLOT(r * LANES_UNROLL + u), SUM_LANE(r * LANES_UNROLL + u));
#pragma unroll
                for (int c = 0; c < LANE_CHUNKS_V; c++) {
                    const float8 value = kv_unpack8(raw_v[u][c]);
#pragma unroll
                    for (int r = 0; r < LANES_ROWS; r++)
                        o[r][c] = fma(p[r], value, o[r][c]);
                }
            }
        }
        lanes_retire();
    }
    lanes_finish(&args, &item, &at, m, l, o, stats, totals, out, lse, workspace);
}

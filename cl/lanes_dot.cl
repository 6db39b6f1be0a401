/* lanes_dot.cl - products of queries and keys: a lane's sums of a step.
 *
 * Two forms. One makes floats of K's codes and multiplies them by q. The other (DOT_BYTES) leaves codes of 8 and 4 bits as
 * bytes: it writes a lane's part of q as integers of a unit that is a power of two, and these as digits of a signed byte
 * each, to base 256. Sums of codes times digits are exact in 32 bits, four products an instruction; the unit is such that
 * the greatest |q| of the lane has at least 22 bits, as many as the rounding of float sums leaves anyway. Elements of q that
 * are no number, or so great that the others would lose their bits, have digits of 0: their products are added as
 * floats. The lane groups of a part share the digits in local memory: in registers they left too few for a step's loads,
 * some of which then waited for others (an H200, q8_0: 176 instead of 161 us).
 *
 * Tunables: those of lanes.cl.
 */
#ifndef CLFD_LANES_DOT_CL
#define CLFD_LANES_DOT_CL

#include "lanes_tokens.cl"

/* Where it pays: the more rows share what makes floats of codes, the less of that is a row's. */
#define DOT_BYTES (LANES_DOT && K_BYTES_TIMES != 0 && !K_ZEROS && !LANES_Q_LOCAL && (LANE_RUN > 1 || LANES_ROWS <= 2))
#define DOT_DIGITS 3      /* of an element of q */
#define DOT_BITS 22       /* of the greatest |q| in units, at least */
#define DOT_RANGE 2048.0f /* within which elements share a unit */
#define DOT_FEW 4         /* of so many of those one more may lie below */

/* Chunk c of query row r as floats, for this lane; zeros past the last one. */
LANES_INLINE float8 lanes_load_q(const __global q_element *q, const decode_args *args, const decode_item *item, int r,
                                 int c, const lanes_place *at, int lane)
{
    float values[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    if (LANE_CHUNK(c, lane) < CHUNKS) {
        const decode_row row = decode_find_row(args, item, r);
        const long index = decode_q_index(args, item, &row);
#pragma unroll
        for (int e = 0; e < 8; e++)
            values[e] = q_load(q, index + lanes_key_dim(c, lane, at->odd, e));
    }
    return vload8(0, values);
}

LANES_INLINE float lanes_dot8(float8 a, float8 b, float sum)
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

#define LANES_Q_SHARED (LANES_Q_LOCAL || DOT_BYTES)

/* The block's query rows, for one lane: in registers while they fit, else in local memory. */
typedef struct lanes_queries {
#if LANES_Q_SHARED
    __local float8 *shared; /* of all parts and lanes: lanes_shared_q */
#endif
#if DOT_BYTES
    const __local uint2 *digits; /* the lane's DOT_PLACES */
    float unit[LANES_ROWS];
    uint irregular; /* bit r: row r has elements that cannot share a unit; `shared` has them, 0 in the others' places */
#elif !LANES_Q_LOCAL
    float8 own[LANES_ROWS][LANE_CHUNKS];
#endif
} lanes_queries;

/* Where chunk c of a row of the block has its place in local memory. */
LANES_INLINE int lanes_shared_q(int row, int c, int lane) { return (row * LANE_CHUNKS + c) * LANES + lane; }

#if DOT_BYTES
/* sum + a . b, of four signed bytes each. */
LANES_INLINE int lanes_dot_bytes(uint a, uint b, int sum)
{
#if CLFD_PTX
    int result;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
#else
    const int4 products = convert_int4(as_char4(a)) * convert_int4(as_char4(b));
    return sum + products.x + products.y + products.z + products.w;
#endif
}

LANES_INLINE int lanes_count(int8 conditions)
{
    const int4 four = conditions.lo + conditions.hi;
    return -(four.x + four.y + four.z + four.w);
}

/* Below what |q| an element can share its unit with the others: of those that are not 0, all but few lie within DOT_RANGE of
 * the greatest. */
LANES_INLINE float lanes_regular_limit(const float8 *values)
{
    float limit = INFINITY;
    for (;;) {
        float8 largest = 0.0f;
        int great = 0, small = 0;
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS; c++) {
            const float8 x = fabs(values[c]);
            largest = fmax(largest, x < limit ? x : (float8)(0.0f));
        }
        const float4 four = fmax(largest.lo, largest.hi);
        const float top = fmax(fmax(four.x, four.y), fmax(four.z, four.w)), bound = top / DOT_RANGE;
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS; c++) {
            const float8 x = fabs(values[c]);
            great += lanes_count(x >= bound && x <= top);
            small += lanes_count(x > 0.0f && x < bound);
        }
        if (small * DOT_FEW <= great)
            return limit;
        limit = bound;
    }
}

/* Takes what cannot share the others' unit out of the lane's part of row r, and puts it into local memory. */
LANES_INLINE void lanes_part_q(const lanes_place *at, int r, float8 *values, lanes_queries *queries)
{
    const float limit = lanes_regular_limit(values);
    bool irregular = false;
#pragma unroll
    for (int c = 0; c < LANE_CHUNKS; c++)
        irregular |= !all(fabs(values[c]) < limit);
    if (!irregular)
        return;
    queries->irregular |= 1u << r;
#pragma unroll
    for (int c = 0; c < LANE_CHUNKS; c++) {
        const int8 regular = fabs(values[c]) < limit;
        if (at->group == 0)
            queries->shared[lanes_shared_q(lanes_row(at->part, r), c, at->lane)] =
                select(values[c], (float8)(0.0f), regular);
        values[c] = select((float8)(0.0f), values[c], regular);
    }
}

/* The digits of a lane, each of eight elements, and where digit k (the highest first) of chunk c of row r is. */
#define DOT_PLACES (LANES_ROWS * LANE_CHUNKS * DOT_DIGITS)
LANES_INLINE int lanes_digit(int r, int c, int k)
{
    return ((r * LANE_RUNS + c / LANE_RUN) * DOT_DIGITS + k) * LANE_RUN + c % LANE_RUN;
}

/* The lane's part of row r as digits. */
LANES_INLINE void lanes_split_q(const lanes_place *at, int r, const float8 *values, __local uint2 *to,
                                lanes_queries *queries)
{
    float largest = 0.0f;
#pragma unroll
    for (int c = 0; c < LANE_CHUNKS; c++) {
        const float8 eight = fabs(values[c]);
        const float4 four = max(eight.lo, eight.hi);
        const float2 two = max(four.lo, four.hi);
        largest = max(largest, max(two.x, two.y));
    }
    /* |q| / unit is below twice 2^DOT_BITS less a 64th, which the digits hold. Exponents as the bits of floats have them;
     * unit and 1 / unit are normal numbers. */
    const int exponent = max((as_int(largest) + (1 << 17)) >> 23, DOT_BITS + 5);
    const float per_unit = as_float((2 * 127 + DOT_BITS - exponent) << 23);
    const uint halves = 0x808080u; /* 128 in the place of each digit */
    queries->unit[r] = as_float((exponent - DOT_BITS) << 23) * (1.0f / K_BYTES_TIMES);
#pragma unroll
    for (int c = 0; c < LANE_CHUNKS; c++) {
        uint digits[8];
        /* With 128 added to each the digits are bytes; less 128 again, each for itself, is the uppermost bit turned. */
        vstore8((as_uint8(convert_int8_rte(values[c] * per_unit)) + halves) ^ halves, 0, digits);
#pragma unroll
        for (int k = 0; k < DOT_DIGITS; k++) {
            uint words[2];
#pragma unroll
            for (int w = 0; w < 2; w++) {
                words[w] = 0;
#pragma unroll
                for (int b = 0; b < 4; b++)
                    words[w] |= (digits[K_BYTES_ELEMENT(w * 4 + b)] >> (8 * (DOT_DIGITS - 1 - k)) & 0xffu) << (8 * b);
            }
            if (at->group == 0)
                to[lanes_digit(r, c, k)] = (uint2)(words[0], words[1]);
        }
    }
}

/* Sums within 2^22 of this number are floats at once: its integer is the 0 of the bits. */
#define DOT_ZERO 12582912.0f

/* Run i of a key times row r. A run has 32 elements at most: sums are below 2^19. `digits`: of the lane. */
LANES_INLINE float lanes_dot_run(const lanes_queries *queries, const __local uint2 *digits, const uint2 *codes, int r,
                                 int i)
{
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < DOT_DIGITS; k++) {
        int digit_sum = as_int(DOT_ZERO);
#if LANE_RUN % 2 == 0
#pragma unroll
        for (int c = 0; c < LANE_RUN; c += 2) {
            const uint4 four = *(const __local uint4 *)(digits + lanes_digit(r, i * LANE_RUN + c, k));
            digit_sum = lanes_dot_bytes(codes[c].x, four.x, digit_sum);
            digit_sum = lanes_dot_bytes(codes[c].y, four.y, digit_sum);
            digit_sum = lanes_dot_bytes(codes[c + 1].x, four.z, digit_sum);
            digit_sum = lanes_dot_bytes(codes[c + 1].y, four.w, digit_sum);
        }
#else
        const uint2 two = digits[lanes_digit(r, i, k)];
        digit_sum = lanes_dot_bytes(codes[0].x, two.x, digit_sum);
        digit_sum = lanes_dot_bytes(codes[0].y, two.y, digit_sum);
#endif
        sum = fma(sum, 256.0f, as_float(digit_sum) - DOT_ZERO);
    }
    return sum * queries->unit[r];
}

/* Adds the products of what lanes_part_q put into local memory. */
LANES_INLINE void lanes_sum_irregular(const lanes_place *at, const lanes_queries *queries, const lanes_step *step,
                                      float *sums)
{
#pragma unroll
    for (int i = 0; i < LANE_RUNS; i++)
#pragma unroll
        for (int r = 0; r < LANES_ROWS; r++) {
            if ((queries->irregular >> r & 1u) == 0)
                continue;
#pragma unroll
            for (int u = 0; u < LANES_UNROLL; u++) {
                const lanes_chunks chunks = lanes_key_chunks(&step->tokens[u], i, at);
                const int sum = r * LANES_UNROLL + u;
#pragma unroll
                for (int c = 0; c < LANE_RUN; c++) {
                    const int from = lanes_shared_q(lanes_row(at->part, r), i * LANE_RUN + c, at->lane);
                    sums[sum] =
                        fma(chunks.scales[c], lanes_dot8(queries->shared[from], chunks.values[c], 0.0f), sums[sum]);
                }
            }
        }
}
#else
/* Chunk c of row r of the lane's part. */
LANES_INLINE float8 lanes_query(const lanes_queries *queries, const lanes_place *at, int r, int c)
{
#if LANES_Q_LOCAL
    return queries->shared[lanes_shared_q(lanes_row(at->part, r), c, at->lane)];
#else
    return queries->own[r][c];
#endif
}
#endif

/* Reads the block's query rows. `shared` has room for those of all parts, if LANES_Q_SHARED; `digits`, if DOT_BYTES, for
 * DOT_PLACES of each lane of each part. */
LANES_INLINE void lanes_open_queries(const __global q_element *q, const decode_args *args, const decode_item *item,
                                     const lanes_place *at, __local float8 *shared, __local uint2 *digits,
                                     lanes_queries *queries)
{
#if LANES_Q_SHARED
    queries->shared = shared;
#endif
#if LANES_Q_LOCAL
    for (int x = at->item; x < LANES_PARTS * LANES_ROWS * LANE_CHUNKS * LANES; x += LANES_WG)
        shared[x] = lanes_load_q(q, args, item, x / (LANE_CHUNKS * LANES), x / LANES % LANE_CHUNKS, at, x % LANES);
#else
#if DOT_BYTES
    queries->irregular = 0;
    queries->digits = digits + (at->part * LANES + at->lane) * DOT_PLACES;
#endif
#pragma unroll
    for (int r = 0; r < LANES_ROWS; r++) {
        float8 values[LANE_CHUNKS];
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS; c++)
            values[c] = lanes_load_q(q, args, item, lanes_row(at->part, r), c, at, at->lane);
#if DOT_BYTES
        lanes_part_q(at, r, values, queries);
        lanes_split_q(at, r, values, digits + (at->part * LANES + at->lane) * DOT_PLACES, queries);
#else
#pragma unroll
        for (int c = 0; c < LANE_CHUNKS; c++)
            queries->own[r][c] = values[c];
#endif
    }
#endif
#if LANES_Q_SHARED
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

/* Adds to the lane's sums of a step, which begin as what lanes_sum_irregular leaves or as 0. */
LANES_INLINE void lanes_sum(const lanes_place *at, const lanes_queries *queries, const lanes_step *step, float *sums)
{
#if DOT_BYTES
    int opaque = 0; /* lest the compiler keeps the digits in registers after all */
#if CLFD_PTX
    asm volatile("mov.u32 %0, 0;" : "=r"(opaque));
#endif
    const __local uint2 *const digits = queries->digits + opaque;
#endif
#pragma unroll
    for (int u = 0; u < LANES_UNROLL; u++)
#pragma unroll
        for (int i = 0; i < LANE_RUNS; i++) {
#if DOT_BYTES
            const lanes_bytes bytes = lanes_key_bytes(&step->tokens[u], i, at);
#pragma unroll
            for (int r = 0; r < LANES_ROWS; r++) {
                const int sum = r * LANES_UNROLL + u;
                sums[sum] = fma(bytes.scale, lanes_dot_run(queries, digits, bytes.codes, r, i), sums[sum]);
            }
#else
            const lanes_chunks chunks = lanes_key_chunks(&step->tokens[u], i, at);
#pragma unroll
            for (int c = 0; c < LANE_RUN; c++)
#pragma unroll
                for (int r = 0; r < LANES_ROWS; r++) {
                    const float8 query = lanes_query(queries, at, r, i * LANE_RUN + c);
                    const int sum = r * LANES_UNROLL + u;
#if RUN_SCALED
                    sums[sum] = fma(chunks.scales[c], lanes_dot8(query, chunks.values[c], 0.0f), sums[sum]);
#else
                    sums[sum] = lanes_dot8(query, chunks.values[c], sums[sum]);
#endif
                }
#endif
        }
}

#endif

/* vector_wide.cl - the vectors of the blocked decode: VECTOR_WIDTH floats, and what is done across their lanes.
 *
 * Tunable, given by the host:
 *   VECTOR_WIDTH  8 or 16: floats of one machine register
 */
#ifndef CLFD_VECTOR_WIDE_CL
#define CLFD_VECTOR_WIDE_CL

#include "state.cl"
#include "types.cl"

#ifndef VECTOR_WIDTH
#define VECTOR_WIDTH 8
#endif

#if VECTOR_WIDTH == 8
typedef float8 wide;
typedef int8 wide_int;
#define WIDE_LANES ((int8)(0, 1, 2, 3, 4, 5, 6, 7))

static inline wide wide_exp2(wide x) { return state_exp2_poly8(x); }

static inline wide wide_load(const __global kv_element *row, int index) { return kv_load_floats8(row, index * 8); }

static inline int wide_any(wide_int x)
{
    const int4 halves = x.lo | x.hi;
    const int2 quarters = halves.lo | halves.hi;
    return (quarters.x | quarters.y) != 0;
}

/* Lane i of the result is lane i ^ distance of x. */
static inline wide wide_exchange(wide x, int distance)
{
    return distance == 1 ? x.s10325476 : distance == 2 ? x.s23016745 : x.s45670123;
}

/* Lane i of the result is the sum over the lanes of a[i]. The tree is the same for every i. */
static inline wide wide_sums(const wide *a)
{
    wide halves[4], quarters[2];
#pragma unroll
    for (int i = 0; i < 4; i++)
        halves[i] = (wide)(a[i].lo, a[i + 4].lo) + (wide)(a[i].hi, a[i + 4].hi);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const wide x = halves[2 * i], y = halves[2 * i + 1];
        quarters[i] = (wide)(x.s01, y.s01, x.s45, y.s45) + (wide)(x.s23, y.s23, x.s67, y.s67);
    }
    const wide x = quarters[0], y = quarters[1];
    return (wide)(x.s02, y.s02, x.s46, y.s46) + (wide)(x.s13, y.s13, x.s57, y.s57);
}

#else
typedef float16 wide;
typedef int16 wide_int;
#define WIDE_LANES ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))

static inline wide wide_exp2(wide x) { return state_exp2_poly16(x); }

static inline wide wide_load(const __global kv_element *row, int index)
{
    return (wide)(kv_load_floats8(row, index * 16), kv_load_floats8(row, index * 16 + 8));
}

static inline int wide_any(wide_int x)
{
    const int8 halves = x.lo | x.hi;
    const int4 quarters = halves.lo | halves.hi;
    const int2 eighths = quarters.lo | quarters.hi;
    return (eighths.x | eighths.y) != 0;
}

static inline wide wide_exchange(wide x, int distance)
{
    return distance == 1   ? x.s1032547698badcfe
           : distance == 2 ? x.s23016745ab89efcd
           : distance == 4 ? x.s45670123cdef89ab
                           : x.s89abcdef01234567;
}

static inline wide wide_sums(const wide *a)
{
    wide halves[8], quarters[4], eighths[2];
#pragma unroll
    for (int i = 0; i < 8; i++)
        halves[i] = (wide)(a[i].lo, a[i + 8].lo) + (wide)(a[i].hi, a[i + 8].hi);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const wide x = halves[i], y = halves[i + 4];
        quarters[i] = (wide)(x.s0123, y.s0123, x.s89ab, y.s89ab) + (wide)(x.s4567, y.s4567, x.scdef, y.scdef);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const wide x = quarters[2 * i], y = quarters[2 * i + 1];
        eighths[i] = (wide)(x.s01, y.s01, x.s45, y.s45, x.s89, y.s89, x.scd, y.scd) +
                    (wide)(x.s23, y.s23, x.s67, y.s67, x.sab, y.sab, x.sef, y.sef);
    }
    const wide x = eighths[0], y = eighths[1];
    return (wide)(x.s02, y.s02, x.s46, y.s46, x.s8a, y.s8a, x.sce, y.sce) +
           (wide)(x.s13, y.s13, x.s57, y.s57, x.s9b, y.s9b, x.sdf, y.sdf);
}
#endif

/* See state_base. */
static inline wide wide_base(wide m) { return m == -INFINITY ? 0.0f : m; }

/* The maximum and the sum over each run of `count` lanes, in all lanes of the run; count is a power of two. */
static inline wide wide_max_over(wide x, int count)
{
    for (int distance = 1; distance < count; distance *= 2) {
        const wide other = wide_exchange(x, distance);
        x = STATE_MAX(x, other);
    }
    return x;
}

static inline wide wide_sum_over(wide x, int count)
{
    for (int distance = 1; distance < count; distance *= 2)
        x += wide_exchange(x, distance);
    return x;
}

#endif

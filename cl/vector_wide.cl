/* vector_wide.cl - the vectors of the blocked decode: VECTOR_WIDTH floats, and what is done across their lanes.
 *
 * Tunable, given by the host:
 *   VECTOR_WIDTH  8 or 16: floats of one machine register
 *
 * Vectors are put together part by part: Oclgrind cannot follow a literal made of vectors.
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

static inline bool wide_any(wide_int x)
{
    const int4 four = x.lo | x.hi;
    const int2 two = four.lo | four.hi;
    return (two.x | two.y) != 0;
}

/* Lane i of the result is lane i ^ distance of x. */
static inline wide wide_exchange(wide x, int distance)
{
    return distance == 1 ? x.s10325476 : distance == 2 ? x.s23016745 : x.s45670123;
}

/* Sums of neighbours, four, two or one lane apart: those of a and those of b take turns in the result. */
static inline wide wide_fold4(wide a, wide b)
{
    wide x, y;
    x.lo = a.lo, x.hi = b.lo;
    y.lo = a.hi, y.hi = b.hi;
    return x + y;
}

static inline wide wide_fold2(wide a, wide b)
{
    wide x, y;
    x.s0145 = a.s0145, x.s2367 = b.s0145;
    y.s0145 = a.s2367, y.s2367 = b.s2367;
    return x + y;
}

static inline wide wide_fold1(wide a, wide b)
{
    wide x, y;
    x.s0145 = a.s0246, x.s2367 = b.s0246;
    y.s0145 = a.s1357, y.s2367 = b.s1357;
    return x + y;
}

/* Lane i of the result is the sum over the lanes of a[i]. The order of the additions is the same for every i. */
static inline wide wide_sums(const wide *a)
{
    return wide_fold1(wide_fold2(wide_fold4(a[0], a[4]), wide_fold4(a[1], a[5])),
                      wide_fold2(wide_fold4(a[2], a[6]), wide_fold4(a[3], a[7])));
}

#else
typedef float16 wide;
typedef int16 wide_int;
#define WIDE_LANES ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))

static inline wide wide_exp2(wide x) { return state_exp2_poly16(x); }

static inline bool wide_any(wide_int x)
{
    const int8 eight = x.lo | x.hi;
    const int4 four = eight.lo | eight.hi;
    const int2 two = four.lo | four.hi;
    return (two.x | two.y) != 0;
}

static inline wide wide_exchange(wide x, int distance)
{
    return distance == 1   ? x.s1032547698badcfe
           : distance == 2 ? x.s23016745ab89efcd
           : distance == 4 ? x.s45670123cdef89ab
                           : x.s89abcdef01234567;
}

static inline wide wide_fold8(wide a, wide b)
{
    wide x, y;
    x.lo = a.lo, x.hi = b.lo;
    y.lo = a.hi, y.hi = b.hi;
    return x + y;
}

static inline wide wide_fold4(wide a, wide b)
{
    wide x, y;
    x.s012389ab = a.s012389ab, x.s4567cdef = b.s012389ab;
    y.s012389ab = a.s4567cdef, y.s4567cdef = b.s4567cdef;
    return x + y;
}

static inline wide wide_fold2(wide a, wide b)
{
    wide x, y;
    x.s014589cd = a.s014589cd, x.s2367abef = b.s014589cd;
    y.s014589cd = a.s2367abef, y.s2367abef = b.s2367abef;
    return x + y;
}

static inline wide wide_fold1(wide a, wide b)
{
    wide x, y;
    x.s014589cd = a.s02468ace, x.s2367abef = b.s02468ace;
    y.s014589cd = a.s13579bdf, y.s2367abef = b.s13579bdf;
    return x + y;
}

static inline wide wide_sums(const wide *a)
{
    wide four[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        four[i] = wide_fold4(wide_fold8(a[i], a[i + 8]), wide_fold8(a[i + 4], a[i + 12]));
    return wide_fold1(wide_fold2(four[0], four[1]), wide_fold2(four[2], four[3]));
}
#endif

/* state_max and state_base of each lane. */
static inline wide wide_max(wide a, wide b) { return a > b ? a : b; }
static inline wide wide_base(wide m) { return m == -INFINITY ? 0.0f : m; }

/* The maximum and the sum over each run of `count` lanes, in all lanes of the run; count is a power of two. */
static inline wide wide_max_over(wide x, int count)
{
    for (int distance = 1; distance < count; distance *= 2)
        x = wide_max(x, wide_exchange(x, distance));
    return x;
}

static inline wide wide_sum_over(wide x, int count)
{
    for (int distance = 1; distance < count; distance *= 2)
        x += wide_exchange(x, distance);
    return x;
}

#endif

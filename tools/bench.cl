/* bench.cl - the kernels that `clfd bench` measures against: a plain read, and what fills memory beforehand.
 *
 * Tunables: READ_UNROLL    16-byte loads that a work-item has in flight
 *           READ_PREFETCH  defined where the device's compiler takes __builtin_prefetch
 */
#ifndef READ_UNROLL
#define READ_UNROLL 4
#endif

/* Uses every bit that was read without writing any: no compiler can know that the sum never has this value. */
inline void keep(uint4 sum, __global uint *sink)
{
    const uint bits = sum.x ^ sum.y ^ sum.z ^ sum.w;
    if (bits == 0x9e3779b9u)
        *sink = bits;
}

/* Reads data[first .. first + count): neighbouring work-items read neighbouring 16 bytes. */
__kernel void read_strided(const __global uint4 *restrict data, ulong first, ulong count, __global uint *sink)
{
    const ulong stride = get_global_size(0);
    const __global uint4 *from = data + first;
    ulong i = get_global_id(0);
    uint4 sum = (uint4)(0);

    for (; i + (READ_UNROLL - 1) * stride < count; i += READ_UNROLL * stride) {
        uint4 value[READ_UNROLL];
        for (int u = 0; u < READ_UNROLL; u++)
            value[u] = from[i + u * stride];
        for (int u = 0; u < READ_UNROLL; u++)
            sum ^= value[u];
    }
    for (; i < count; i += stride)
        sum ^= from[i];
    keep(sum, sink);
}

/* The same, each work-item a contiguous part: what suits a core with its own prefetcher. */
__kernel void read_parts(const __global uint4 *restrict data, ulong first, ulong count, __global uint *sink)
{
    const ulong parts = get_global_size(0), part = get_global_id(0);
    const __global uint4 *from = data + first;
    const ulong end = count * (part + 1) / parts;
    ulong i = count * part / parts;
    uint4 sum[READ_UNROLL];

    for (int u = 0; u < READ_UNROLL; u++)
        sum[u] = (uint4)(0);
    for (; i + READ_UNROLL <= end; i += READ_UNROLL)
        for (int u = 0; u < READ_UNROLL; u++)
            sum[u] ^= from[i + u];
    for (; i < end; i++)
        sum[0] ^= from[i];
    for (int u = 1; u < READ_UNROLL; u++)
        sum[0] ^= sum[u];
    keep(sum[0], sink);
}

#ifdef READ_PREFETCH
/* The same in lines of READ_UNROLL loads, each of which asks for the line that lies `ahead` elements further. */
__kernel void read_ahead(const __global uint4 *restrict data, ulong first, ulong count, __global uint *sink,
                         ulong ahead)
{
    const ulong parts = get_global_size(0), part = get_global_id(0);
    const __global uint4 *from = data + first;
    const ulong end = count * (part + 1) / parts;
    ulong i = count * part / parts;
    uint4 sum[READ_UNROLL];

    for (int u = 0; u < READ_UNROLL; u++)
        sum[u] = (uint4)(0);
    for (; i + READ_UNROLL <= end; i += READ_UNROLL) {
        __builtin_prefetch((const void *)(ulong)(from + i + ahead));
        for (int u = 0; u < READ_UNROLL; u++)
            sum[u] ^= from[i + u];
    }
    for (; i < end; i++)
        sum[0] ^= from[i];
    for (int u = 1; u < READ_UNROLL; u++)
        sum[0] ^= sum[u];
    keep(sum[0], sink);
}
#endif

/* 64 random bits for element i of a sequence: splitmix64 (Steele, Lea and Flood, 2014). */
inline ulong random_bits(ulong i, uint seed)
{
    ulong bits = (i + ((ulong)seed << 40)) * 0x9e3779b97f4a7c15ul;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ul;
    return (bits ^ bits >> 27) * 0x94d049bb133111ebul;
}

/* words[first + i] = (random & mask) | base: with the type's bits a random sign and mantissa, and an exponent that makes
 * every element +-0.5 to 1. Never zeros, which some memory systems compress. */
__kernel void fill_random(__global uint *words, ulong first, ulong count, uint seed, uint mask, uint base)
{
    for (ulong i = get_global_id(0); i < count; i += get_global_size(0))
        words[first + i] = ((uint)(random_bits(i, seed) >> 32) & mask) | base;
}

/* The same for blocks of block_halves 16-bit halves: the first is an f16 scale with a random mantissa, the others are
 * random codes. */
__kernel void fill_blocks(__global ushort *halves, ulong first, ulong count, uint seed, uint block_halves, uint scale)
{
    for (ulong i = get_global_id(0); i < count; i += get_global_size(0)) {
        const ushort bits = (ushort)(random_bits(i, seed) >> 48);
        halves[first + i] = i % block_halves == 0 ? (bits & 0x03ff) | (ushort)scale : bits;
    }
}

/* lanes_exchange.cl - how the lanes of a group exchange values, in three forms behind one set of functions: local memory
 * and barriers, sub-group shuffles, PTX shuffles. Every work-item of the work-group must call them, and together.
 *
 * Tunables: those of lanes.cl; LANES_EXCHANGE chooses the form.
 */
#ifndef CLFD_LANES_EXCHANGE_CL
#define CLFD_LANES_EXCHANGE_CL

#if defined(LANES_EXCHANGE) && LANES_EXCHANGE == 1
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#endif

#include "lanes.cl"
#include "ptx.cl"

#if LANES_EXCHANGE == 0

LANES_INLINE float lanes_xor(const lanes_place *at, float value, int mask)
{
    at->share[at->item] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    const float other = at->share[at->item ^ mask];
    barrier(CLK_LOCAL_MEM_FENCE);
    return other;
}

/* The sum of each of sums[] over the lanes of the group, spread over the lanes: slot i of a lane ends as the total of
 * sum (lane / COPIES) * SLOTS + i. */
LANES_INLINE void lanes_reduce(const lanes_place *at, float *sums)
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
LANES_INLINE void lanes_publish(const lanes_place *at, const float *slots, int count)
{
    for (int i = 0; i < count; i++)
        at->share[i * LANES_WG + at->item] = slots[i];
    barrier(CLK_LOCAL_MEM_FENCE);
}

LANES_INLINE float lanes_read(const lanes_place *at, const float *slots, int slot, int lane)
{
    return at->share[slot * LANES_WG + at->first + lane];
}

LANES_INLINE void lanes_retire(void) { barrier(CLK_LOCAL_MEM_FENCE); }

/* Whether a condition holds in any lane that runs together with this one; a sure yes costs only time. */
LANES_INLINE bool lanes_any(bool condition) { return true; }

#else

#if LANES_EXCHANGE == 1
LANES_INLINE float lanes_xor(const lanes_place *at, float value, int mask)
{
    return sub_group_shuffle_xor(value, (uint)mask);
}
LANES_INLINE float lanes_from(float value, int lane)
{
    return sub_group_shuffle(value, (get_sub_group_local_id() & ~(uint)(LANES - 1)) + (uint)lane);
}
LANES_INLINE bool lanes_any(bool condition) { return sub_group_any(condition); }
#else
LANES_INLINE float lanes_xor(const lanes_place *at, float value, int mask) { return ptx_shuffle_xor(value, mask); }
LANES_INLINE float lanes_from(float value, int lane)
{
    float other;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, %3, 0xffffffff;"
                 : "=f"(other)
                 : "f"(value), "r"(lane), "r"((32 - LANES) << 8 | 0x1f));
    return other;
}
LANES_INLINE bool lanes_any(bool condition) { return ptx_any(condition); }
#endif

LANES_INLINE void lanes_reduce(const lanes_place *at, float *sums)
{
    /* Stages counted by one, since compilers unroll such loops: what is indexed by a variable goes to memory. */
#pragma unroll
    for (int stage = 1; stage <= 5; stage++) {
        const int kept = SUMS >> stage, width = LANES >> stage;
        const bool upper = (at->lane & width) != 0;
        if (width == 0)
            continue;
        if (kept == 0)
            sums[0] += lanes_xor(at, sums[0], width);
#pragma unroll
        for (int i = 0; i < kept; i++) {
            const float low = sums[i], high = sums[i + kept];
            sums[i] = (upper ? high : low) + lanes_xor(at, upper ? low : high, width);
        }
    }
}

LANES_INLINE void lanes_publish(const lanes_place *at, const float *slots, int count) {}
LANES_INLINE float lanes_read(const lanes_place *at, const float *slots, int slot, int lane)
{
    return lanes_from(slots[slot], lane);
}
LANES_INLINE void lanes_retire(void) {}

#endif

#endif

/* matrix_ptx.cl - the warp of matrix_warp.cl by NVIDIA's PTX: matrix units, copies that run on, shuffles, votes. Included
 * by matrix_warp.cl, which has the types and the tunables.
 */
#ifndef CLFD_MATRIX_PTX_CL
#define CLFD_MATRIX_PTX_CL

#include "matrix_warp.cl"
#include "ptx.cl"

#if CLFD_PTX

#define MATRIX_TEXT_(x) #x
#define MATRIX_TEXT(x) MATRIX_TEXT_(x)

/* The address as PTX has it. It goes through a shuffle of what each lane has otherwise, so that no compiler sees that all
 * lanes have it: of a copy with a cache policy the address must be no sum of such a number. ptxas 13.0 gives that and the
 * policy one register, and the instruction is refused when it runs (LDGSTS [R + UR], desc[UR]; no other form is). */
MATRIX_INLINE uint matrix_address(__local uchar *ring)
{
    uint address;
    asm volatile("{.reg .u64 whole; .reg .u32 lane; cvta.to.shared.u64 whole, %1; cvt.u32.u64 %0, whole; "
                 "mov.u32 lane, %%laneid; add.u32 %0, %0, lane; "
                 "shfl.sync.idx.b32 %0, %0, lane, 0x1f, 0xffffffff; sub.u32 %0, %0, lane;}"
                 : "=r"(address)
                 : "l"(ring));
    return address;
}

/* A value that the compiler knows nothing of. */
MATRIX_INLINE int matrix_opaque(int value)
{
    asm volatile("" : "+r"(value));
    return value;
}

/* Lets the lanes of a warp see what each of them wrote to local memory. */
MATRIX_INLINE void matrix_sync(void) { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

/* What the second-level cache puts out first. PTX ISA, "createpolicy". */
MATRIX_INLINE ulong matrix_first_out(void)
{
    ulong policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

/* Copies 4, 8 or 16 bytes to local memory, or writes zeros there. What is copied `once` and then not read again is the
 * first to leave the cache, so that the kernel's own code, its arguments and partial states stay there. */
#define MATRIX_COPY(cache, bytes)                                                                                      \
    MATRIX_INLINE void matrix_copy_if##bytes(const matrix_place *at, uint to, const __global uchar *from, bool there)  \
    {                                                                                                                  \
        asm volatile("cp.async." cache ".shared.global [%0], [%1], " #bytes ", %2;" ::"r"(to), "l"(from),              \
                     "r"(there ? bytes : 0)                                                                            \
                     : "memory");                                                                                      \
    }                                                                                                                  \
    MATRIX_INLINE void matrix_copy_once_if##bytes(const matrix_place *at, uint to, const __global uchar *from,         \
                                                  bool there)                                                          \
    {                                                                                                                  \
        asm volatile("cp.async." cache ".shared.global.L2::cache_hint [%0], [%1], " #bytes ", %2, %3;" ::"r"(to),      \
                     "l"(from), "r"(there ? bytes : 0), "l"(matrix_first_out())                                        \
                     : "memory");                                                                                      \
    }
MATRIX_COPY("ca", 4)
MATRIX_COPY("ca", 8)
MATRIX_COPY("cg", 16)

/* Ends a set of copies; waits until at most `count` sets, a constant, are on their way. */
MATRIX_INLINE void matrix_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define matrix_wait(count) asm volatile("cp.async.wait_group " MATRIX_TEXT(count) ";" ::: "memory")

/* c += a * b for a of 16 by 16, b of 16 by 8 elements. */
MATRIX_INLINE void matrix_multiply(const matrix_place *at, float4 *c, uint4 a, uint2 b)
{
#if MATRIX_BF16
#define MATRIX_MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
#else
#define MATRIX_MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
#endif
    asm volatile(MATRIX_MMA "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c->x), "+f"(c->y), "+f"(c->z), "+f"(c->w)
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

/* c += a * b for a of 16 by 32, b of 32 by 8 signed bytes: four that follow one another are a register. */
MATRIX_INLINE void matrix_multiply_codes(const matrix_place *at, int4 *c, uint4 a, uint2 b)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(c->x), "+r"(c->y), "+r"(c->z), "+r"(c->w)
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

/* Four matrices whose rows lie at the addresses that lanes 0 to 7, 8 to 15, ... give; transposed or not. */
MATRIX_INLINE uint4 matrix_load(const matrix_place *at, uint address)
{
    uint4 d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d.x), "=r"(d.y), "=r"(d.z), "=r"(d.w)
                 : "r"(address)
                 : "memory");
    return d;
}

MATRIX_INLINE uint4 matrix_load_transposed(const matrix_place *at, uint address)
{
    uint4 d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d.x), "=r"(d.y), "=r"(d.z), "=r"(d.w)
                 : "r"(address)
                 : "memory");
    return d;
}

MATRIX_INLINE uint matrix_transpose(const matrix_place *at, uint a)
{
    uint d;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a));
    return d;
}

MATRIX_INLINE uint matrix_from(const matrix_place *at, uint value, int lane)
{
    uint other;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(other) : "r"(value), "r"(lane));
    return other;
}

MATRIX_INLINE float matrix_xor(const matrix_place *at, float value, int mask) { return ptx_shuffle_xor(value, mask); }

/* Whether a condition holds in some lane of the warp; the emulation's answer is that of the whole work-group. */
MATRIX_INLINE bool matrix_any(const matrix_place *at, bool condition) { return ptx_any(condition); }

/* A barrier for the work-group that tells whether a condition holds in some work-item. */
MATRIX_INLINE bool matrix_meet(const matrix_place *at, bool condition)
{
    uint any;
    asm volatile("{.reg .pred mine, all; setp.ne.u32 mine, %1, 0; bar.red.or.pred all, 0, mine; "
                 "selp.u32 %0, 1, 0, all;}"
                 : "=r"(any)
                 : "r"((uint)condition)
                 : "memory");
    return any != 0;
}

/* A barrier for `warps` warps, which follow each other. */
MATRIX_INLINE void matrix_meet_warps(const matrix_place *at, int warps)
{
    asm volatile("bar.sync %0, %1;" ::"r"(1 + at->warp / warps), "r"(warps * 32) : "memory");
}

/* Bit l: whether it holds in lane l. */
MATRIX_INLINE uint matrix_ballot(const matrix_place *at, bool condition)
{
    uint lanes;
    asm volatile("{.reg .pred mine; setp.ne.u32 mine, %1, 0; vote.sync.ballot.b32 %0, mine, 0xffffffff;}"
                 : "=r"(lanes)
                 : "r"((uint)condition));
    return lanes;
}

/* Two floats as a pair of elements, the first in the lower half. */
MATRIX_INLINE uint matrix_pack(float low, float high)
{
    uint pair;
#if MATRIX_BF16
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(low), "f"(high));
#else
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(pair) : "f"(low), "f"(high));
#endif
    return pair;
}

#endif

#endif

/* ptx.cl - NVIDIA's PTX for the families that use it: what the 32 work-items of a warp tell each other, for which all of
 * them must call, and together; and what work-groups tell each other through global memory. Empty where CLFD_PTX is 0.
 */
#ifndef CLFD_PTX_CL
#define CLFD_PTX_CL

#ifndef CLFD_PTX
#define CLFD_PTX 0
#endif

#if CLFD_PTX
/* The value of the work-item whose number differs by `mask`. */
static inline __attribute__((always_inline)) float ptx_shuffle_xor(float value, int mask)
{
    float other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(other) : "f"(value), "r"(mask));
    return other;
}

/* What this is part of remains a branch: the assembler makes no predicates of it, which take their time whether they hold
 * or not. */
static inline __attribute__((always_inline)) void ptx_branch(void) { asm volatile("bar.warp.sync 0xffffffff;"); }

/* Whether a condition holds in some work-item. */
static inline __attribute__((always_inline)) bool ptx_any(bool condition)
{
    uint any;
    asm volatile("{.reg .pred mine, all; setp.ne.u32 mine, %1, 0; vote.sync.any.pred all, mine, 0xffffffff; "
                 "selp.u32 %0, 1, 0, all;}"
                 : "=r"(any)
                 : "r"((uint)condition));
    return any != 0;
}

/* Global memory that other work-groups read or write meanwhile: PTX ISA, "Memory consistency model", relaxed operations
 * at device scope. */
static inline __attribute__((always_inline)) void ptx_write(__global float *to, float value)
{
    asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory");
}

static inline __attribute__((always_inline)) void ptx_write4(__global float *to, float4 value)
{
    asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(value.x), "f"(value.y),
                 "f"(value.z), "f"(value.w)
                 : "memory");
}

static inline __attribute__((always_inline)) float ptx_read(const __global float *from)
{
    float value;
    asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(value) : "l"(from) : "memory");
    return value;
}

/* What is there if a condition holds, else the value given. */
static inline __attribute__((always_inline)) float ptx_read_if(const __global float *from, bool condition, float value)
{
    asm volatile("{.reg .pred mine; setp.ne.u32 mine, %2, 0; @mine ld.relaxed.gpu.global.f32 %0, [%1];}"
                 : "+f"(value)
                 : "l"(from), "r"((uint)condition)
                 : "memory");
    return value;
}

static inline __attribute__((always_inline)) float4 ptx_read4_if(const __global float *from, bool condition,
                                                                 float4 value)
{
    asm volatile(
        "{.reg .pred mine; setp.ne.u32 mine, %5, 0; @mine ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];}"
        : "+f"(value.x), "+f"(value.y), "+f"(value.z), "+f"(value.w)
        : "l"(from), "r"((uint)condition)
        : "memory");
    return value;
}

static inline __attribute__((always_inline)) void ptx_add(__global ulong *to, ulong value)
{
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

static inline __attribute__((always_inline)) ulong ptx_or(__global ulong *to, ulong value)
{
    ulong before;
    asm volatile("atom.relaxed.gpu.global.or.b64 %0, [%1], %2;" : "=l"(before) : "l"(to), "l"(value) : "memory");
    return before;
}

/* What others wrote before they wrote what this reads is there for what this work-item does afterwards. */
static inline __attribute__((always_inline)) ulong ptx_acquire(const __global ulong *from)
{
    ulong value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}

/* What this work-item did before comes before what it does later, for whoever learns of the latter. */
static inline __attribute__((always_inline)) void ptx_fence(void) { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
#endif

#endif

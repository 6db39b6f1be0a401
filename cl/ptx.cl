/* ptx.cl - what the 32 work-items of a warp tell each other by NVIDIA's PTX, for the families that use it. All of them must
 * call these functions, and together. Empty where CLFD_PTX is 0.
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
#endif

#endif

#include "run/divisor.h"

divisor_args clfd_make_divisor(uint32_t divisor)
{
    const uint64_t d = divisor > 0 ? divisor : 1;
    int shift = 31;

    while ((uint64_t)1 << (shift - 31) < d)
        shift++;
    return (divisor_args){(cl_uint)((((uint64_t)1 << shift) + d - 1) / d), shift};
}

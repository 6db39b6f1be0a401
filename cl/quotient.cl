/* quotient.cl - the correctly rounded quotient. OpenCL C allows `/` an error of 2.5 ulp, and GPUs use it: codes of a
 * quantised cache would then depend on the device wherever an element lies half-way between two of them.
 */
#ifndef CLFD_QUOTIENT_CL
#define CLFD_QUOTIENT_CL

/* No product is part of an fma that is not written as one. */
#pragma OPENCL FP_CONTRACT OFF

/* The float nearest to a / b, from an estimate that is some ulp off. A remainder a - q b is what one fma gives; divided by
 * b it brings q next to the quotient; then that neighbour of q is taken which leaves less. */
static inline float quotient_from(float a, float b, float estimate)
{
    if (!(fabs(estimate) > 0.0f && fabs(estimate) < INFINITY))
        return estimate;
    const float near = estimate + fma(-estimate, b, a) / b, left = fma(-near, b, a);
    const float other = as_float(as_int(near) + ((left < 0.0f) == (a < 0.0f) ? 1 : -1));
    return fabs(fma(-other, b, a)) < fabs(left) ? other : near;
}

/* a / b; small operands become greater ones first, so that no remainder is lost below the least float. */
static inline float quotient(float a, float b)
{
    const float unit = fabs(a) < 0x1p-62f && fabs(b) < 0x1p62f ? 0x1p64f : 1.0f;

    return quotient_from(a * unit, b * unit, (a * unit) / (b * unit));
}

#endif

/* divisor.cl - integer division by a number that the host knows: a product and a shift, where a division is some forty
 * instructions that wait for each other. Granlund and Montgomery, "Division by invariant integers using multiplication",
 * 1994: for n below 2^31 the upper bits of n * ceil(2^(31 + l) / d), with 2^l not below d, are n / d.
 */
#ifndef CLFD_DIVISOR_CL
#define CLFD_DIVISOR_CL

#include "args.h"

/* n / d; n not below 0. */
static inline int divide(int n, divisor_args d) { return (int)((ulong)(uint)n * d.inverse >> d.shift); }

#endif

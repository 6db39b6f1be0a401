/* divisor.h - what kernels divide by: cl/divisor.cl. */
#ifndef CLFD_DIVISOR_H
#define CLFD_DIVISOR_H

#include "args.h"
#include <stdint.h>

/* Of any divisor below 2^31; 0 is taken for 1. */
divisor_args clfd_make_divisor(uint32_t divisor);

#endif

/* architecture.h - what devices of one kind have in common, under one name: between a device's own and its vendor's. */
#ifndef CLFD_ARCHITECTURE_H
#define CLFD_ARCHITECTURE_H

#include "device/quirks.h"

/* "sm_90" for compute capability 9.0 of NVIDIA's; "pocl-x86_64-v16" for a CPU of PoCL whose vectors hold 16 floats: it is
 * the processor that this library runs on. "" where clfd knows no name. Pure. */
void clfd_architecture_name(const clfd_identity *identity, uint32_t float_width, char text[32]);

#endif

/* clfd - portable Flash-Decoding for OpenCL. This header includes all the others. */
#ifndef CLFD_H
#define CLFD_H

#include <clfd/attention.h>
#include <clfd/cache.h>
#include <clfd/device.h>
#include <clfd/state.h>
#include <clfd/status.h>

#define CLFD_VERSION_MAJOR 0
#define CLFD_VERSION_MINOR 1
#define CLFD_VERSION_PATCH 0
#define CLFD_VERSION (CLFD_VERSION_MAJOR * 1000000 + CLFD_VERSION_MINOR * 1000 + CLFD_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* CLFD_VERSION of the library that is linked, which may differ from the header's. Thread-safe. */
CLFD_API uint32_t clfd_version(void);

#ifdef __cplusplus
}
#endif
#endif

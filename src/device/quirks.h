/* quirks.h - what no query tells: the table of devices that can more, or need more, than they say. The only home of
 * vendor names, beside architecture.c, and of their reasons. Pure functions. */
#ifndef CLFD_QUIRKS_H
#define CLFD_QUIRKS_H

#include "device/caps.h"

/* The extension of NVIDIA's own OpenCL: its devices say their compute capability. */
#define CLFD_NVIDIA_ATTRIBUTES "cl_nv_device_attribute_query"

/* What a quirk is recognised by. */
typedef struct clfd_identity {
    cl_device_type type;
    const char *platform;        /* CL_PLATFORM_NAME */
    const char *vendor;          /* CL_DEVICE_VENDOR */
    const char *extensions;      /* CL_DEVICE_EXTENSIONS */
    uint32_t compute_capability; /* the major number of NVIDIA's; 0 where there is none */
    uint32_t compute_minor;      /* and the minor one */
} clfd_identity;

/* Turns on in *caps what the table grants this device, and appends its build options; says so at level INFO. */
void clfd_quirks_apply(const clfd_identity *identity, clfd_caps *caps, const clfd_logger *logger);

#endif

#include "device/architecture.h"
#include "device/text.h"
#include <stdio.h>

/* A CPU device is the processor that this very code is compiled for. */
#if defined(__x86_64__) || defined(_M_X64)
#define HOST "x86_64"
#elif defined(__aarch64__) || defined(_M_ARM64)
#define HOST "aarch64"
#else
#define HOST "cpu"
#endif

void clfd_architecture_name(const clfd_identity *identity, uint32_t float_width, char text[32])
{
    text[0] = '\0';
    if (identity->compute_capability > 0)
        snprintf(text, 32, "sm_%u%u", identity->compute_capability, identity->compute_minor);
    else if ((identity->type & CL_DEVICE_TYPE_CPU) != 0 &&
             clfd_text_contains(identity->platform, clfd_slice_of("Portable Computing Language")))
        snprintf(text, 32, "pocl-" HOST "-v%u", float_width);
}

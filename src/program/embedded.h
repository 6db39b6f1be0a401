/* embedded.h - the kernel sources and the shipped tuning rows as the build embeds them. */
#ifndef CLFD_EMBEDDED_H
#define CLFD_EMBEDDED_H

#include <stddef.h>

struct clfd_embedded {
    const char *name; /* "types.cl" */
    const char *text; /* zero-terminated */
    size_t bytes;     /* without the terminator */
};

/* Ends with a NULL name. */
extern const struct clfd_embedded clfd_kernels[];
extern const struct clfd_embedded clfd_shipped[]; /* tuning_shipped.json alone */

#endif

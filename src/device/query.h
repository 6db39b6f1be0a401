/* query.h - reading what a driver says of a device or of a platform, whatever its length and width. Every function
 * reports a failed call to the logger and returns its status. `call` names the call in that sentence. */
#ifndef CLFD_QUERY_H
#define CLFD_QUERY_H

#include "report.h"
#include <CL/cl.h>
#include <stddef.h>
#include <stdint.h>

/* The arguments `what` and `call` of the functions below. */
#define CLFD_DEVICE_QUERY(what) (what), "clGetDeviceInfo(" #what ")"
#define CLFD_PLATFORM_QUERY(what) (what), "clGetPlatformInfo(" #what ")"

/* A query whose answer goes into one member of a struct, for tables of them. */
typedef struct clfd_query {
    cl_device_info what;
    const char *call;
    size_t member, bytes;
} clfd_query;
#define CLFD_QUERY(type, name, what)                                                                                   \
    {                                                                                                                  \
        what, "clGetDeviceInfo(" #what ")", offsetof(type, name), sizeof((type *)0)->name                              \
    }
#define CLFD_COUNT(table) (sizeof(table) / sizeof(table)[0])

/* A number, a bool or a bit-field of 4 or 8 bytes, as the driver has it. CL_INVALID_VALUE for any other width. */
clfd_status clfd_query_number(cl_device_id device, cl_device_info what, const char *call, uint64_t *value,
                              const clfd_logger *logger);

/* A malloc'ed copy of a text or of an array, with a zero byte after its *bytes bytes. bytes may be NULL. */
clfd_status clfd_query_copy(cl_device_id device, cl_device_info what, const char *call, void **copy, size_t *bytes,
                            const clfd_logger *logger);

/* A text, cut to `bytes` and terminated. */
clfd_status clfd_query_text(cl_device_id device, cl_device_info what, const char *call, char *text, size_t bytes,
                            const clfd_logger *logger);

/* One text per row of a table, into the members of *into. */
clfd_status clfd_query_texts(cl_device_id device, const clfd_query *rows, size_t count, void *into,
                             const clfd_logger *logger);

clfd_status clfd_query_platform_text(cl_platform_id platform, cl_platform_info what, const char *call, char *text,
                                     size_t bytes, const clfd_logger *logger);

#endif

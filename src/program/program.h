/* program.h - from a kernel's name and options to a built cl_program: source, build, cache. */
#ifndef CLFD_PROGRAM_H
#define CLFD_PROGRAM_H

#include "os.h"
#include "report.h"
#include <CL/cl.h>

/* The text of a kernel file with its #include "..." lines replaced by the files, each once (source.c). From `folder`
 * where that is not NULL, else from the embedded kernels. malloc'ed. CLFD_ERROR_KERNEL_SOURCE. */
clfd_status clfd_source_load(const char *name, const char *folder, char **text, const clfd_logger *logger);

/* Builds a source; on failure the build log from its first error on goes to the logger at `level` (build.c). */
clfd_status clfd_program_build(cl_context context, cl_device_id device, const char *name, const char *source,
                               const char *options, clfd_log_level level, cl_program *program,
                               const clfd_logger *logger);

/* The programs of one context, keyed by kernel name and options (cache.c). */
typedef struct clfd_program_cache {
    clfd_mutex mutex;
    struct clfd_cached_program *first;
} clfd_program_cache;

clfd_status clfd_cache_init(clfd_program_cache *cache);
void clfd_cache_clear(clfd_program_cache *cache); /* releases every program and the mutex */

/* The program for "<name>.cl" and options: from the cache, or built into it under its lock, so that two threads never
 * build the same one. The caller owns one reference. A failed build is not cached. */
clfd_status clfd_cache_get(clfd_program_cache *cache, cl_context context, cl_device_id device, const char *name,
                           const char *options, const char *folder, clfd_log_level level, cl_program *program,
                           const clfd_logger *logger);

#endif

/* lookup.h - all rows to try for an attention, from every place that rows come from. Pure functions. */
#ifndef CLFD_LOOKUP_H
#define CLFD_LOOKUP_H

#include "plan/tuning_file.h"

/* The files of a context, in the order in which they are asked. */
typedef enum clfd_tuning_source { CLFD_SOURCE_USER, CLFD_SOURCE_SHIPPED, CLFD_NUM_SOURCES } clfd_tuning_source;

typedef struct clfd_tuning_files {
    clfd_file_rows sources[CLFD_NUM_SOURCES]; /* zeroed: nothing but the table of types */
} clfd_tuning_files;

/* A row for each file and scope, then those of clfd_tuning_candidates. */
#define CLFD_MAX_LOOKUP (CLFD_NUM_SOURCES * CLFD_NUM_SCOPES + CLFD_MAX_CANDIDATES)

/* The rows to try for an attention (complete), best first: of the user's file those for this very device, then for its
 * architecture, then for its vendor; of the shipped file likewise; then those of clfd_tuning_candidates, whose last is the
 * reference row. Like those they depend on nothing that must not change a row's bits. With attention->tuning there is one
 * row alone. A row of a file that cannot run on the device or for the attention is left out, with a warning where it is
 * the user's. `files` may be NULL. CLFD_ERROR_TUNING as clfd_tuning_candidates. */
clfd_status clfd_tuning_lookup(const clfd_caps *caps, const clfd_attention *attention, const clfd_tuning_files *files,
                               clfd_tuning rows[CLFD_MAX_LOOKUP], size_t *count, const clfd_logger *logger);

#endif

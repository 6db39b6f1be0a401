/* context.h - what a clfd_context holds. */
#ifndef CLFD_CONTEXT_H
#define CLFD_CONTEXT_H

#include "device/caps.h"
#include "plan/lookup.h"
#include "program/program.h"
#include <stdatomic.h>

struct clfd_context {
    atomic_uint references;
    cl_context cl;
    cl_device_id device;
    clfd_caps caps;
    clfd_logger logger;
    char *kernel_folder;      /* CLFD_KERNEL_DIR, or NULL */
    clfd_tuning_files tuning; /* the shipped rows, and the user's */
    clfd_program_cache programs;
};

#endif

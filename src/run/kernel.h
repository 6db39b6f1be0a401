/* kernel.h - one cl_kernel of a plan. Arguments belong to the kernel object, so setting them and enqueueing it is one
 * critical section. */
#ifndef CLFD_KERNEL_H
#define CLFD_KERNEL_H

#include "run/context.h"
#include <clfd/attention.h>

typedef struct clfd_kernel {
    cl_kernel handle; /* NULL: none */
    clfd_mutex mutex;
    size_t work_group;
    uint32_t unused; /* bits of the arguments that were last set to no buffer: most of them, always the same */
} clfd_kernel;

/* One argument of a launch. */
typedef struct clfd_argument {
    size_t bytes;
    const void *value;
} clfd_argument;

/* Creates the kernel `name` of "<file>.cl" built with `options`, and checks that the device runs it with `work_group`
 * work-items (and, where sub_group is not 0, with sub-groups of a multiple of that size). A refusal goes to the logger
 * at `level`: a warning where something else will be tried. The caller destroys the kernel. */
clfd_status clfd_kernel_create(clfd_context *context, const char *file, const char *name, const char *options,
                               size_t work_group, uint32_t sub_group, clfd_log_level level, clfd_kernel *kernel);

void clfd_kernel_destroy(clfd_kernel *kernel); /* a zeroed one is allowed */

/* Sets all arguments and enqueues `groups` work-groups, under the kernel's lock. */
clfd_status clfd_kernel_launch(clfd_kernel *kernel, cl_command_queue queue, const clfd_argument *arguments,
                               size_t num_arguments, uint64_t groups, cl_uint num_wait, const cl_event *wait,
                               cl_event *event, const clfd_logger *logger);

/* The merge kernels live in one program: `name` is "merge" or "merge_pair". Where the device refuses the wanted
 * work-group, smaller ones are tried. */
clfd_status clfd_kernel_create_merge(clfd_context *context, const char *name, clfd_partial partial, uint32_t head_dim_v,
                                     clfd_type out_type, uint32_t work_group, clfd_kernel *kernel);

#endif

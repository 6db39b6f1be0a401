/* buffers.h - every rule of the buffers, queue and wait list of one call, in one place. */
#ifndef CLFD_BUFFERS_H
#define CLFD_BUFFERS_H

#include "plan/footprint.h"
#include "run/context.h"
#include <clfd/attention.h>

/* What a call does to one of its buffers. */
typedef struct clfd_range {
    const char *name;
    const clfd_buffer *buffer;
    uint64_t bytes;        /* touched, from the buffer's offset */
    size_t element;        /* bytes: offsets are whole elements */
    size_t alignment;      /* of base plus offset */
    bool required;         /* else it may be CLFD_BUFFER_NONE */
    bool written;          /* else it is read */
    bool scratch;          /* written and read */
    unsigned may_equal;    /* a written range may be exactly a read one of the same number; 0: none */
    clfd_status too_small; /* the status where it ends too early */
} clfd_range;

#define CLFD_MAX_RANGES 32

/* Checks kind, presence, context, access, size and alignment of every range, and that no written one overlaps another.
 * Statuses: see clfd_enqueue_decode. */
clfd_status clfd_check_ranges(const clfd_context *context, const clfd_range *ranges, size_t count);

/* The same of tensors that may interleave: footprints[i] says which bytes of range i are touched. */
clfd_status clfd_check_footprints(const clfd_context *context, const clfd_range *ranges,
                                  const clfd_footprint *footprints, size_t count);

/* Checks that the queue is of the context and its device, and that the wait list is whole; tells whether the queue runs
 * commands out of order. */
clfd_status clfd_check_queue(const clfd_context *context, cl_command_queue queue, cl_uint num_wait,
                             const cl_event *wait, bool *out_of_order);

/* All that a call on nothing enqueues: a marker, for its event. */
clfd_status clfd_enqueue_marker(const clfd_context *context, cl_command_queue queue, cl_uint num_wait,
                                const cl_event *wait, cl_event *event);

/* The cl_mem of a checked buffer; NULL for CLFD_BUFFER_NONE, which a kernel sees as a null pointer. */
cl_mem clfd_buffer_mem(const clfd_buffer *buffer);

#endif

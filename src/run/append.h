/* append.h - what a clfd_append_plan holds, and one call of it. */
#ifndef CLFD_RUN_APPEND_H
#define CLFD_RUN_APPEND_H

#include "args.h"
#include "plan/append.h"
#include "run/kernel.h"

struct clfd_append_plan {
    atomic_uint references;
    clfd_context *context;
    clfd_attention attention; /* complete */
    clfd_append append;       /* complete; its attention is the one above */
    clfd_append_pieces pieces;
    clfd_kernel kernel;
    char description[256];
};

/* Checks every buffer of a call on at least one sequence (append_buffers.c). */
clfd_status clfd_check_append_buffers(const clfd_append_plan *plan, const clfd_append_buffers *buffers);

/* The arguments by value of such a call. */
append_args clfd_make_append_args(const clfd_append_plan *plan, const clfd_append_buffers *buffers);

#endif

/* plan.h - what a clfd_plan holds: all of it fixed at creation. */
#ifndef CLFD_RUN_PLAN_H
#define CLFD_RUN_PLAN_H

#include "plan/schedule.h"
#include "run/kernel.h"

struct clfd_plan {
    atomic_uint references;
    clfd_context *context;
    clfd_attention attention; /* complete */
    clfd_tuning tuning;
    clfd_schedule schedule;
    clfd_kernel decode;
    clfd_kernel balanced; /* decode with the balanced schedule; absent where the plan has none */
    clfd_kernel merge;    /* absent where every row has one split */
    char description[640];
};

#endif

/* device.h - the OpenCL device that the tests run on, and what most of them need of it. */
#ifndef TEST_SUPPORT_DEVICE_H
#define TEST_SUPPORT_DEVICE_H

#include "support/log.h"
#include <clfd/device.h>

/* The device that the environment variable CLFD_DEVICE selects; where that is unset, the CPU of PoCL. Fails the running
 * test, with clfd's own sentence, where there is none. */
cl_device_id test_device(void);

/* One device, ready for use. */
typedef struct test_rig {
    clfd_device_info info;
    cl_context context;
    cl_command_queue queue;     /* in order, with profiling */
    cl_command_queue unordered; /* out of order, with profiling; NULL where the device has no such queues */
    clfd_context *clfd;
    test_log log; /* what `clfd` logs */
} test_rig;

/* Opens the rig on test_device(). Fails the running test where a part of it cannot be made. The rig must stay where it
 * is: `clfd` logs into it. */
void test_rig_open(test_rig *rig);

/* Waits for both queues and releases everything. */
void test_rig_close(test_rig *rig);

#endif

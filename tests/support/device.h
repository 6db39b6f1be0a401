/* device.h - the OpenCL device that the tests run on. */
#ifndef TEST_SUPPORT_DEVICE_H
#define TEST_SUPPORT_DEVICE_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

/* The first device of the PoCL platform, or of the first platform without one. Fails the running test where there is
 * none. */
cl_device_id test_device(void);

#endif

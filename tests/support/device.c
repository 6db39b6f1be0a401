#include "support/device.h"
#include <check.h>
#include <string.h>

cl_device_id test_device(void)
{
    cl_platform_id platforms[16];
    cl_device_id device;
    cl_uint count = 0, chosen = 0;

    ck_assert_int_eq(clGetPlatformIDs(16, platforms, &count), CL_SUCCESS);
    for (cl_uint i = 0; i < count; i++) {
        char name[128] = "";
        clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL);
        if (strstr(name, "Portable") != NULL)
            chosen = i;
    }
    ck_assert_int_eq(clGetDeviceIDs(platforms[chosen], CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_SUCCESS);
    return device;
}

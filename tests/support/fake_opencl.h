/* fake_opencl.h - OpenCL platforms that a test makes up. A program that links fake_opencl.c sees these platforms and no
 * others: its clGet* functions stand before those of the loader. */
#ifndef TEST_SUPPORT_FAKE_OPENCL_H
#define TEST_SUPPORT_FAKE_OPENCL_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>
#include <stddef.h>

typedef struct fake_device {
    const char *vendor, *name, *driver, *version, *c_version, *profile, *extensions;
    const char *c_feature; /* the only feature of OpenCL C 3.0, or NULL where the query is unknown */
    cl_device_type type;
    cl_uint compute_units, float_width, address_bits, base_align_bits, local_mem_type, compute_capability;
    cl_bool compiler, little_endian;
    size_t work_group, work_items[3];
    cl_ulong memory, max_alloc, local_mem, cache, fp_config;
    cl_device_info broken; /* a query that fails with CL_OUT_OF_RESOURCES; 0: none */
} fake_device;

typedef struct fake_platform {
    const char *name;
    const fake_device *devices;
    cl_uint num_devices;
    cl_int status; /* of clGetDeviceIDs */
} fake_platform;

struct fake_opencl {
    const fake_platform *platforms;
    cl_uint num_platforms;
    cl_int status; /* of clGetPlatformIDs */
};
extern struct fake_opencl fake_opencl;

/* A device with all that clfd needs and no upgrade, to change at will: a CPU of 4 units and 8 GiB. */
fake_device fake_plain_device(void);

cl_platform_id fake_platform_id(const fake_platform *platform);
cl_device_id fake_device_id(const fake_device *device);

#endif

#include "device/caps.h"
#include "support/fake_opencl.h"
#include "support/log.h"
#include "support/suite.h"
#include <string.h>

static fake_device device;
static fake_platform platform;

static void set_up(void)
{
    device = fake_plain_device();
    platform = (fake_platform){.name = "Acme OpenCL", .devices = &device, .num_devices = 1};
    fake_opencl = (struct fake_opencl){.platforms = &platform, .num_platforms = 1};
}

static clfd_device_info describe(void)
{
    clfd_caps caps;
    clfd_device_info info;

    memset(&info, 0xff, sizeof info);
    ck_assert_int_eq(clfd_caps_read(fake_device_id(&device), NULL, &caps, NULL), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_device_describe(fake_platform_id(&platform), fake_device_id(&device), &caps, &info, NULL),
                     CLFD_SUCCESS);
    return info;
}

START_TEST(every_field_is_the_device_s_own)
{
    clfd_device_info info;

    device.extensions = "cl_khr_fp16 cl_khr_subgroups";
    device.work_group = 512;
    info = describe();
    ck_assert_ptr_eq(info.platform, fake_platform_id(&platform));
    ck_assert_ptr_eq(info.device, fake_device_id(&device));
    ck_assert_str_eq(info.platform_name, "Acme OpenCL");
    ck_assert_str_eq(info.vendor, "Acme");
    ck_assert_str_eq(info.name, "Acme One");
    ck_assert_str_eq(info.driver, "1.0");
    ck_assert_str_eq(info.opencl_c, "OpenCL C 1.2 Acme");
    ck_assert_str_eq(info.unsupported, "");
    ck_assert_uint_eq(info.type, CL_DEVICE_TYPE_CPU);
    ck_assert_uint_eq(info.compute_units, 4);
    ck_assert_uint_eq(info.max_work_group, 512);
    ck_assert_uint_eq(info.memory_bytes, (uint64_t)8 << 30);
    ck_assert_uint_eq(info.max_alloc_bytes, (uint64_t)2 << 30);
    ck_assert_uint_eq(info.local_mem_bytes, 512 << 10);
    ck_assert_uint_eq(info.cache_bytes, 32 << 20);
    ck_assert_uint_eq(info.fp16, 1);
    ck_assert_uint_eq(info.sub_groups, 1);
    ck_assert_uint_eq(info.sub_group_shuffle, 0);
}
END_TEST

START_TEST(what_the_caller_knows_stays_empty)
{
    clfd_device_info info;

    info = describe();
    ck_assert_str_eq(info.spec, "");
    ck_assert_str_eq(info.family, "");
}
END_TEST

START_TEST(unsupported_device_says_why)
{
    device.compiler = CL_FALSE;
    ck_assert_ptr_nonnull(strstr(describe().unsupported, "compiler"));
}
END_TEST

START_TEST(long_names_are_cut_and_terminated)
{
    char name[1000];
    clfd_device_info info;

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    platform.name = device.vendor = device.name = device.driver = name;
    info = describe();
    ck_assert_uint_eq(strlen(info.platform_name), sizeof info.platform_name - 1);
    ck_assert_uint_eq(strlen(info.vendor), sizeof info.vendor - 1);
    ck_assert_uint_eq(strlen(info.name), sizeof info.name - 1);
    ck_assert_uint_eq(strlen(info.driver), sizeof info.driver - 1);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_field_is_the_device_s_own,
        what_the_caller_knows_stays_empty,
        unsupported_device_says_why,
        long_names_are_cut_and_terminated,
    };
    return run_suite_around("info", tests, sizeof tests / sizeof tests[0], set_up, NULL);
}

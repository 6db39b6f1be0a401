#include "run/devices.h"
#include "support/device.h"
#include "support/log.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

#define MANY 64

static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    heard = (test_log){0};
    logger = test_logger(&heard);
}

/* The families of devices that a test makes up. */

static clfd_caps plain_caps(cl_device_type type)
{
    return (clfd_caps){
        .type = type,
        .compute_units = 8,
        .max_work_group = 1024,
        .float_width = 8,
        .address_bits = 64,
        .base_align_bytes = 128,
        .memory_bytes = (uint64_t)8 << 30,
        .max_alloc_bytes = (uint64_t)2 << 30,
        .local_mem_bytes = 48 << 10,
        .local_mem_dedicated = true,
        .inf_nan = true,
        .int64 = true,
        .compiler = true,
        .opencl_12 = true,
        .little_endian = true,
    };
}

static const char *family_of(const clfd_caps *caps)
{
    static clfd_device_info info;

    memset(&info, 0xff, sizeof info);
    clfd_devices_name_family(caps, &info);
    return info.family;
}

START_TEST(family_is_the_first_that_a_plan_would_try)
{
    const clfd_caps cpu = plain_caps(CL_DEVICE_TYPE_CPU), gpu = plain_caps(CL_DEVICE_TYPE_GPU);
    clfd_caps narrow = gpu, refused = gpu;

    narrow.max_work_group = 1;
    refused.compiler = false;
    ck_assert_str_eq(family_of(&cpu), "decode_vector");
    ck_assert_str_eq(family_of(&gpu), "decode_lanes");
    ck_assert_str_eq(family_of(&narrow), "decode_vector");
    ck_assert_str_eq(family_of(&refused), "none");
}
END_TEST

/* The devices of this machine. */

static size_t list_all(clfd_device_info infos[MANY])
{
    size_t count = 0;

    ck_assert_int_eq(clfd_list_devices(infos, MANY, &count, &logger), CLFD_SUCCESS);
    ck_assert_uint_ge(count, 1);
    return count < MANY ? count : MANY;
}

START_TEST(list_agrees_with_what_opencl_says)
{
    static clfd_device_info infos[MANY];
    const size_t count = list_all(infos);

    for (size_t i = 0; i < count; i++) {
        const cl_device_id device = infos[i].device;
        char name[256] = "";
        cl_ulong memory = 0;
        cl_uint units = 0;
        cl_platform_id platform = NULL;

        ck_assert_int_eq(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL), CL_SUCCESS);
        ck_assert_int_eq(clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL), CL_SUCCESS);
        ck_assert_int_eq(clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL), CL_SUCCESS);
        ck_assert_int_eq(clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL), CL_SUCCESS);
        ck_assert_str_eq(infos[i].name, name);
        ck_assert_uint_eq(infos[i].memory_bytes, memory);
        ck_assert_uint_eq(infos[i].compute_units, units);
        ck_assert_ptr_eq(infos[i].platform, platform);
        ck_assert(infos[i].unsupported[0] != '\0' || strncmp(infos[i].family, "decode_", 7) == 0);
    }
}
END_TEST

START_TEST(spec_of_every_listed_device_selects_it)
{
    static clfd_device_info infos[MANY];
    const size_t count = list_all(infos);

    for (size_t i = 0; i < count; i++) {
        clfd_device_info info;
        ck_assert_int_eq(clfd_select_device(infos[i].spec, &info, &logger), CLFD_SUCCESS);
        ck_assert_ptr_eq(info.device, infos[i].device);
        ck_assert_str_eq(info.spec, infos[i].spec);
        ck_assert_str_eq(info.family, infos[i].family);
    }
}
END_TEST

START_TEST(list_writes_no_more_than_the_capacity_and_counts_all)
{
    static clfd_device_info infos[MANY];
    const size_t count = list_all(infos);
    clfd_device_info guarded[2];
    size_t again = 0;

    memset(guarded, 0x5a, sizeof guarded);
    ck_assert_int_eq(clfd_list_devices(guarded, 1, &again, &logger), CLFD_SUCCESS);
    ck_assert_uint_eq(again, count);
    ck_assert_str_eq(guarded[0].spec, infos[0].spec);
    for (size_t i = 0; i < sizeof guarded[1]; i++)
        ck_assert_int_eq(((const unsigned char *)&guarded[1])[i], 0x5a);
    again = 0;
    ck_assert_int_eq(clfd_list_devices(NULL, 0, &again, &logger), CLFD_SUCCESS);
    ck_assert_uint_eq(again, count);
}
END_TEST

START_TEST(null_arguments_are_named)
{
    size_t count = 7;

    ck_assert_int_eq(clfd_list_devices(NULL, 0, NULL, &logger), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "count is NULL"));
    ck_assert_int_eq(clfd_list_devices(NULL, 3, &count, &logger), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "infos is NULL"));
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(clfd_select_device(NULL, NULL, &logger), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "info is NULL"));
    ck_assert_int_eq(clfd_list_devices(NULL, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT);
}
END_TEST

START_TEST(failed_selection_leaves_info_alone)
{
    clfd_device_info info, before;

    memset(&info, 0x5a, sizeof info);
    before = info;
    ck_assert_int_eq(clfd_select_device("type=gpuu", &info, &logger), CLFD_ERROR_DEVICE_SPEC);
    ck_assert_int_eq(clfd_select_device("no such device", &info, &logger), CLFD_ERROR_NO_DEVICE_MATCH);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 2);
    ck_assert_mem_eq(&info, &before, sizeof info);
}
END_TEST

/* CLFD_DEVICE, put back as it was. */

static char *saved;

static void save_environment(void)
{
    const char *value = getenv("CLFD_DEVICE");

    set_up();
    saved = value != NULL ? strdup(value) : NULL;
}

static void restore_environment(void)
{
    if (saved != NULL)
        setenv("CLFD_DEVICE", saved, 1);
    else
        unsetenv("CLFD_DEVICE");
    free(saved);
}

START_TEST(environment_is_the_spec_where_none_is_given)
{
    static clfd_device_info infos[MANY];
    const size_t count = list_all(infos);
    clfd_device_info info;

    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(setenv("CLFD_DEVICE", infos[i].spec, 1), 0);
        ck_assert_int_eq(clfd_select_device(NULL, &info, &logger), CLFD_SUCCESS);
        ck_assert_ptr_eq(info.device, infos[i].device);
    }
    ck_assert_int_eq(setenv("CLFD_DEVICE", "no such device", 1), 0);
    ck_assert_int_eq(clfd_select_device(NULL, &info, &logger), CLFD_ERROR_NO_DEVICE_MATCH);
    /* A SPEC goes before it. */
    ck_assert_int_eq(clfd_select_device(infos[0].spec, &info, &logger), CLFD_SUCCESS);
}
END_TEST

START_TEST(best_device_wins_where_the_environment_is_empty)
{
    static clfd_device_info infos[MANY];
    const size_t count = list_all(infos);
    clfd_device_info unset, empty;

    ck_assert_int_eq(unsetenv("CLFD_DEVICE"), 0);
    ck_assert_int_eq(clfd_select_device(NULL, &unset, &logger), CLFD_SUCCESS);
    ck_assert_int_eq(setenv("CLFD_DEVICE", "", 1), 0);
    ck_assert_int_eq(clfd_select_device(NULL, &empty, &logger), CLFD_SUCCESS);
    ck_assert_ptr_eq(unset.device, empty.device);
    for (size_t i = 0; i < count; i++)
        if (infos[i].unsupported[0] == '\0' && (infos[i].type & CL_DEVICE_TYPE_GPU) != 0)
            ck_assert((unset.type & CL_DEVICE_TYPE_GPU) != 0);
}
END_TEST

START_TEST(rig_is_complete_on_the_device_of_the_tests)
{
    test_rig rig;
    clfd_device_info info;
    cl_device_id device;

    test_rig_open(&rig);
    ck_assert_ptr_eq(rig.info.device, test_device());
    ck_assert_int_eq(clGetCommandQueueInfo(rig.queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL), CL_SUCCESS);
    ck_assert_ptr_eq(device, rig.info.device);
    ck_assert_int_eq(clfd_context_info(rig.clfd, &info), CLFD_SUCCESS);
    ck_assert_str_eq(info.spec, rig.info.spec);
    test_rig_close(&rig);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        family_is_the_first_that_a_plan_would_try,
        list_agrees_with_what_opencl_says,
        spec_of_every_listed_device_selects_it,
        list_writes_no_more_than_the_capacity_and_counts_all,
        null_arguments_are_named,
        failed_selection_leaves_info_alone,
        environment_is_the_spec_where_none_is_given,
        best_device_wins_where_the_environment_is_empty,
        rig_is_complete_on_the_device_of_the_tests,
    };
    return run_suite_around("devices", tests, sizeof tests / sizeof tests[0], save_environment, restore_environment);
}

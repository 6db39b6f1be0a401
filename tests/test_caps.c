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

static clfd_caps read_caps(void)
{
    clfd_caps caps;

    ck_assert_int_eq(clfd_caps_read(fake_device_id(&device), NULL, &caps, NULL), CLFD_SUCCESS);
    return caps;
}

START_TEST(every_number_lands_in_its_own_place)
{
    clfd_caps caps;

    device.type = CL_DEVICE_TYPE_ACCELERATOR;
    device.compute_units = 11;
    device.float_width = 16;
    device.address_bits = 32;
    device.base_align_bits = 2048;
    device.memory = (cl_ulong)5 << 40;
    device.max_alloc = (cl_ulong)3 << 40;
    device.local_mem = 49152;
    device.cache = (cl_ulong)5 << 32;
    device.driver = "580.1";
    caps = read_caps();
    ck_assert_uint_eq(caps.type, CL_DEVICE_TYPE_ACCELERATOR);
    ck_assert_uint_eq(caps.compute_units, 11);
    ck_assert_uint_eq(caps.float_width, 16);
    ck_assert_uint_eq(caps.address_bits, 32);
    ck_assert_uint_eq(caps.base_align_bytes, 256);
    ck_assert_uint_eq(caps.memory_bytes, (uint64_t)5 << 40);
    ck_assert_uint_eq(caps.max_alloc_bytes, (uint64_t)3 << 40);
    ck_assert_uint_eq(caps.local_mem_bytes, 49152);
    ck_assert_uint_eq(caps.cache_bytes, (uint64_t)5 << 32);
    ck_assert_str_eq(caps.driver, "580.1");
    ck_assert_str_eq(caps.name, "Acme One");
    ck_assert_str_eq(caps.vendor, "Acme");
    ck_assert_str_eq(caps.architecture, "");
    ck_assert_str_eq(caps.build_options, "");
}
END_TEST

START_TEST(work_group_is_limited_by_the_first_dimension_too)
{
    static const struct {
        size_t group, first;
        uint32_t expected;
    } cases[] = {{1024, 4096, 1024}, {1024, 64, 64}, {1024, 1024, 1024}, {1, 1, 1}, {0, 0, 1}, {8, 0, 1}};

    /* Only the first dimension is used. */
    device.work_items[1] = device.work_items[2] = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        device.work_group = cases[i].group;
        device.work_items[0] = cases[i].first;
        ck_assert_uint_eq(read_caps().max_work_group, cases[i].expected);
    }
    if (sizeof(size_t) > 4) {
        /* Its low 32 bits are zero. */
        device.work_group = device.work_items[0] = (size_t)1 << (sizeof(size_t) * 8 - 1);
        ck_assert_uint_eq(read_caps().max_work_group, UINT32_MAX);
    }
}
END_TEST

START_TEST(local_memory_counts_as_dedicated_only_where_it_is)
{
    device.local_mem_type = CL_GLOBAL;
    ck_assert(!read_caps().local_mem_dedicated);
    device.local_mem_type = CL_LOCAL;
    ck_assert(read_caps().local_mem_dedicated);
    device.local_mem_type = CL_NONE;
    ck_assert(!read_caps().local_mem_dedicated);
}
END_TEST

START_TEST(device_without_a_float_width_has_one_of_1)
{
    device.float_width = 0;
    ck_assert_uint_eq(read_caps().float_width, 1);
}
END_TEST

START_TEST(plain_device_is_supported_and_has_no_upgrade)
{
    clfd_caps caps;

    caps = read_caps();
    ck_assert_ptr_null(clfd_caps_unsupported(&caps));
    ck_assert(!caps.fp16 && !caps.sub_groups && !caps.shuffle && !caps.ptx && !caps.matrix && !caps.fused_merge &&
              !caps.prefetch && !caps.buffers_over_4g);
}
END_TEST

static const char *refusal(void)
{
    static clfd_caps caps;

    caps = read_caps();
    const char *reason = clfd_caps_unsupported(&caps);
    return reason != NULL ? reason : "supported";
}

START_TEST(each_missing_need_is_its_own_refusal)
{
    device.compiler = CL_FALSE;
    ck_assert_ptr_nonnull(strstr(refusal(), "compiler"));
    set_up();
    device.fp_config = CL_FP_ROUND_TO_NEAREST | CL_FP_FMA;
    ck_assert_ptr_nonnull(strstr(refusal(), "CL_FP_INF_NAN"));
    set_up();
    device.little_endian = CL_FALSE;
    ck_assert_ptr_nonnull(strstr(refusal(), "big-endian"));
    set_up();
    device.profile = "EMBEDDED_PROFILE";
    ck_assert_ptr_nonnull(strstr(refusal(), "64-bit integers"));
    device.extensions = "cles_khr_int64 cl_khr_fp16";
    ck_assert_str_eq(refusal(), "supported");
}
END_TEST

START_TEST(versions_from_1_2_are_supported_of_opencl_and_of_opencl_c)
{
    static const struct {
        const char *version, *c_version;
        bool supported;
    } cases[] = {
        {"OpenCL 1.2 CUDA", "OpenCL C 1.2 ", true},
        {"OpenCL 3.0 PoCL", "OpenCL C 1.2 PoCL", true},
        {"OpenCL 2.0 x", "OpenCL C 2.0 x", true},
        {"OpenCL 10.0 x", "OpenCL C 10.0", true},
        {"OpenCL 1.1 x", "OpenCL C 1.1 x", false},
        {"OpenCL 1.2 x", "OpenCL C 1.1 x", false},
        {"OpenCL 1.1 x", "OpenCL C 1.2 x", false},
        {"OpenCL", "OpenCL C 1.2", false},
        {"", "", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        device.version = cases[i].version;
        device.c_version = cases[i].c_version;
        ck_assert_msg((strcmp(refusal(), "supported") == 0) == cases[i].supported, "%s with %s: %s", cases[i].version,
                      cases[i].c_version, refusal());
    }
}
END_TEST

START_TEST(extensions_are_matched_as_whole_words)
{
    device.extensions = "cl_khr_fp16_packed cl_khr_subgroups_more cl_khr_subgroup_shuffle_relative";
    ck_assert(!read_caps().fp16 && !read_caps().sub_groups && !read_caps().shuffle);
    device.extensions = "cl_khr_fp16 cl_khr_subgroups cl_khr_subgroup_shuffle";
    ck_assert(read_caps().fp16 && read_caps().sub_groups && read_caps().shuffle);
}
END_TEST

START_TEST(shuffle_needs_sub_groups_from_the_extension_or_from_opencl_c_3)
{
    device.extensions = "cl_khr_subgroup_shuffle";
    ck_assert(!read_caps().sub_groups && !read_caps().shuffle);
    device.c_feature = "__opencl_c_subgroups";
    ck_assert(!read_caps().sub_groups && !read_caps().shuffle);
    device.version = "OpenCL 3.0 Acme";
    ck_assert(read_caps().sub_groups && read_caps().shuffle);
    device.c_feature = "__opencl_c_subgroups_2";
    ck_assert(!read_caps().sub_groups && !read_caps().shuffle);
    device.c_feature = NULL;
    ck_assert(!read_caps().sub_groups && !read_caps().shuffle);
}
END_TEST

static void become_nvidia(cl_uint compute_capability)
{
    set_up();
    platform.name = "NVIDIA CUDA";
    device.vendor = "NVIDIA Corporation";
    device.extensions = "cl_khr_icd cl_nv_device_attribute_query";
    device.type = CL_DEVICE_TYPE_GPU;
    device.compute_capability = compute_capability;
}

START_TEST(nvidia_gets_ptx_and_what_its_compute_capability_has)
{
    clfd_caps caps;

    become_nvidia(9);
    caps = read_caps();
    ck_assert(caps.ptx && caps.fused_merge && caps.matrix && !caps.prefetch && !caps.sub_groups);
    ck_assert_str_eq(caps.architecture, "sm_90");
    become_nvidia(7);
    caps = read_caps();
    ck_assert(caps.ptx && caps.fused_merge && !caps.matrix);
    /* The query fails. */
    become_nvidia(0);
    caps = read_caps();
    ck_assert(caps.ptx && !caps.fused_merge && !caps.matrix);
    /* The number without the extension is somebody else's. */
    become_nvidia(9);
    device.extensions = "cl_khr_icd";
    caps = read_caps();
    ck_assert(!caps.ptx && !caps.fused_merge && !caps.matrix);
}
END_TEST

START_TEST(platform_of_the_device_reaches_the_quirks)
{
    platform.name = "Portable Computing Language";
    ck_assert(read_caps().prefetch);
    platform.name = "Intel(R) OpenCL Graphics";
    device.type = CL_DEVICE_TYPE_GPU;
    ck_assert(!read_caps().prefetch);
    ck_assert_str_eq(read_caps().build_options, "-cl-intel-greater-than-4GB-buffer-required");
}
END_TEST

START_TEST(disable_list_applies_after_the_quirks)
{
    test_log heard = {0};
    const clfd_logger logger = test_logger(&heard);
    clfd_caps caps, untouched;

    become_nvidia(9);
    ck_assert_int_eq(clfd_caps_read(fake_device_id(&device), "matrix", &caps, NULL), CLFD_SUCCESS);
    ck_assert(caps.ptx && caps.fused_merge && !caps.matrix);
    ck_assert_int_eq(clfd_caps_read(fake_device_id(&device), "ptx", &caps, NULL), CLFD_SUCCESS);
    ck_assert(!caps.ptx && !caps.fused_merge && !caps.matrix);
    untouched = caps;
    ck_assert_int_eq(clfd_caps_read(fake_device_id(&device), "warp", &caps, &logger), CLFD_ERROR_DISABLE_LIST);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "'warp'"));
    ck_assert_mem_eq(&caps, &untouched, sizeof caps);
}
END_TEST

START_TEST(failed_query_returns_its_code_and_names_the_call)
{
    static const struct {
        cl_device_info what;
        const char *name;
    } cases[] = {
        {CL_DEVICE_TYPE, "CL_DEVICE_TYPE"},
        {CL_DEVICE_ENDIAN_LITTLE, "CL_DEVICE_ENDIAN_LITTLE"},
        {CL_DEVICE_SINGLE_FP_CONFIG, "CL_DEVICE_SINGLE_FP_CONFIG"},
        {CL_DEVICE_LOCAL_MEM_TYPE, "CL_DEVICE_LOCAL_MEM_TYPE"},
        {CL_DEVICE_MAX_WORK_ITEM_SIZES, "CL_DEVICE_MAX_WORK_ITEM_SIZES"},
        {CL_DRIVER_VERSION, "CL_DRIVER_VERSION"},
        {CL_DEVICE_PROFILE, "CL_DEVICE_PROFILE"},
        {CL_DEVICE_EXTENSIONS, "CL_DEVICE_EXTENSIONS"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_log heard = {0};
        const clfd_logger logger = test_logger(&heard);
        clfd_caps caps;

        device.broken = cases[i].what;
        ck_assert_int_eq(clfd_caps_read(fake_device_id(&device), NULL, &caps, &logger), CL_OUT_OF_RESOURCES);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
        ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], cases[i].name));
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_number_lands_in_its_own_place,
        work_group_is_limited_by_the_first_dimension_too,
        local_memory_counts_as_dedicated_only_where_it_is,
        device_without_a_float_width_has_one_of_1,
        plain_device_is_supported_and_has_no_upgrade,
        each_missing_need_is_its_own_refusal,
        versions_from_1_2_are_supported_of_opencl_and_of_opencl_c,
        extensions_are_matched_as_whole_words,
        shuffle_needs_sub_groups_from_the_extension_or_from_opencl_c_3,
        nvidia_gets_ptx_and_what_its_compute_capability_has,
        platform_of_the_device_reaches_the_quirks,
        disable_list_applies_after_the_quirks,
        failed_query_returns_its_code_and_names_the_call,
    };
    return run_suite_around("caps", tests, sizeof tests / sizeof tests[0], set_up, NULL);
}

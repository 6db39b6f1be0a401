#include "device/quirks.h"
#include "support/log.h"
#include "support/suite.h"
#include <string.h>

static const clfd_identity pocl_cpu = {
    .type = CL_DEVICE_TYPE_CPU,
    .platform = "Portable Computing Language",
    .vendor = "AuthenticAMD",
    .extensions = "cl_khr_command_buffer",
};
static const clfd_identity h200 = {
    .type = CL_DEVICE_TYPE_GPU,
    .platform = "NVIDIA CUDA",
    .vendor = "NVIDIA Corporation",
    .extensions = "cl_khr_icd cl_nv_device_attribute_query cl_nv_pragma_unroll",
    .compute_capability = 9,
};
static const clfd_identity intel_gpu = {
    .type = CL_DEVICE_TYPE_GPU,
    .platform = "Intel(R) OpenCL Graphics",
    .vendor = "Intel(R) Corporation",
    .extensions = "cl_khr_subgroups",
};
static const clfd_identity llvmpipe = {
    .type = CL_DEVICE_TYPE_CPU,
    .platform = "rusticl",
    .vendor = "Mesa/X.org",
    .extensions = "",
};

static clfd_caps with_quirks(clfd_identity identity)
{
    clfd_caps caps = {.type = identity.type};

    clfd_quirks_apply(&identity, &caps, NULL);
    return caps;
}

START_TEST(prefetch_is_for_cpus_of_pocl)
{
    clfd_identity pocl_gpu = pocl_cpu;

    pocl_gpu.type = CL_DEVICE_TYPE_GPU;
    ck_assert(with_quirks(pocl_cpu).prefetch);
    ck_assert(!with_quirks(pocl_gpu).prefetch);
    ck_assert(!with_quirks(llvmpipe).prefetch);
    ck_assert(!with_quirks(h200).prefetch);
}
END_TEST

START_TEST(blocking_is_for_cpus_of_pocl)
{
    ck_assert(with_quirks(pocl_cpu).blocking);
    ck_assert(!with_quirks(llvmpipe).blocking);
    ck_assert(!with_quirks(h200).blocking);
}
END_TEST

START_TEST(shuffles_of_pocl_are_not_used)
{
    clfd_identity pocl_5 = pocl_cpu;
    clfd_caps caps = {.type = CL_DEVICE_TYPE_CPU, .sub_groups = true, .shuffle = true};

    pocl_5.extensions = "cl_khr_subgroups cl_khr_subgroup_shuffle";
    clfd_quirks_apply(&pocl_5, &caps, NULL);
    ck_assert(!caps.shuffle);
    ck_assert(caps.sub_groups);
    caps = (clfd_caps){.type = CL_DEVICE_TYPE_GPU, .sub_groups = true, .shuffle = true};
    clfd_quirks_apply(&intel_gpu, &caps, NULL);
    ck_assert(caps.shuffle);
}
END_TEST

START_TEST(ptx_needs_the_vendor_and_the_extension)
{
    clfd_identity no_extension = h200, other_vendor = h200, longer_word = h200;

    no_extension.extensions = "cl_khr_icd";
    longer_word.extensions = "cl_nv_device_attribute_query_2";
    other_vendor.vendor = "Acme";
    ck_assert(with_quirks(h200).ptx);
    ck_assert(!with_quirks(no_extension).ptx);
    ck_assert(!with_quirks(longer_word).ptx);
    ck_assert(!with_quirks(other_vendor).ptx);
    ck_assert(!with_quirks(pocl_cpu).ptx);
    ck_assert(!with_quirks(intel_gpu).ptx);
}
END_TEST

START_TEST(upgrades_of_ptx_begin_with_their_compute_capability)
{
    static const struct {
        uint32_t capability;
        bool fused_merge, matrix, cache_hints;
    } cases[] = {{0, false, false, false}, {6, false, false, false}, {7, true, false, false},
                 {8, true, true, false},   {9, true, true, true},    {12, true, true, true}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clfd_identity identity = h200;
        identity.compute_capability = cases[i].capability;
        const clfd_caps caps = with_quirks(identity);
        ck_assert(caps.ptx);
        ck_assert_int_eq(caps.fused_merge, cases[i].fused_merge);
        ck_assert_int_eq(caps.matrix, cases[i].matrix);
        ck_assert_int_eq(caps.cache_hints, cases[i].cache_hints);
    }
}
END_TEST

START_TEST(only_intel_gpus_get_the_option_for_large_buffers)
{
    clfd_identity rusticl_intel = intel_gpu, intel_cpu = intel_gpu;
    const clfd_caps caps = with_quirks(intel_gpu);

    rusticl_intel.platform = "rusticl";
    intel_cpu.type = CL_DEVICE_TYPE_CPU;
    ck_assert(caps.buffers_over_4g);
    ck_assert_str_eq(caps.build_options, "-cl-intel-greater-than-4GB-buffer-required");
    ck_assert_str_eq(with_quirks(rusticl_intel).build_options, "");
    ck_assert_str_eq(with_quirks(intel_cpu).build_options, "");
    ck_assert_str_eq(with_quirks(pocl_cpu).build_options, "");
    ck_assert_str_eq(with_quirks(h200).build_options, "");
}
END_TEST

START_TEST(options_are_appended_and_other_capabilities_stay)
{
    clfd_caps caps = {.fp16 = true, .sub_groups = true, .shuffle = true, .build_options = "-DX"};

    clfd_quirks_apply(&intel_gpu, &caps, NULL);
    ck_assert(caps.fp16 && caps.sub_groups && caps.shuffle);
    ck_assert_str_eq(caps.build_options, "-DX -cl-intel-greater-than-4GB-buffer-required");
}
END_TEST

START_TEST(each_quirk_in_force_says_its_reason)
{
    test_log heard = {0};
    const clfd_logger logger = test_logger(&heard);
    clfd_caps caps = {0};

    clfd_quirks_apply(&llvmpipe, &caps, &logger);
    ck_assert_int_eq(heard.count[CLFD_LOG_INFO], 0);
    clfd_quirks_apply(&pocl_cpu, &caps, &logger);
    ck_assert_int_eq(heard.count[CLFD_LOG_INFO], 2);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_INFO], "llvmpipe"));
    clfd_quirks_apply(&h200, &caps, &logger);
    ck_assert_int_eq(heard.count[CLFD_LOG_INFO], 8);
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING] + heard.count[CLFD_LOG_ERROR], 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        prefetch_is_for_cpus_of_pocl,
        blocking_is_for_cpus_of_pocl,
        shuffles_of_pocl_are_not_used,
        ptx_needs_the_vendor_and_the_extension,
        upgrades_of_ptx_begin_with_their_compute_capability,
        only_intel_gpus_get_the_option_for_large_buffers,
        options_are_appended_and_other_capabilities_stay,
        each_quirk_in_force_says_its_reason,
    };
    return run_suite("quirks", tests, sizeof tests / sizeof tests[0]);
}

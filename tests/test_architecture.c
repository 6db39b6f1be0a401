#include "device/architecture.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

static const char *name_of(clfd_identity identity, uint32_t float_width)
{
    static char text[32];

    clfd_architecture_name(&identity, float_width, text);
    return text;
}

START_TEST(nvidia_devices_are_named_by_their_compute_capability)
{
    const clfd_identity h200 = {
        .type = CL_DEVICE_TYPE_GPU, .platform = "NVIDIA CUDA", .vendor = "NVIDIA Corporation", .compute_capability = 9};
    const clfd_identity ada = {
        .type = CL_DEVICE_TYPE_GPU, .platform = "x", .compute_capability = 8, .compute_minor = 9};

    ck_assert_str_eq(name_of(h200, 1), "sm_90");
    ck_assert_str_eq(name_of(ada, 1), "sm_89");
}
END_TEST

START_TEST(cpus_of_pocl_are_named_by_the_processor_and_its_vectors)
{
    clfd_identity cpu = {
        .type = CL_DEVICE_TYPE_CPU, .platform = "Portable Computing Language", .vendor = "GenuineIntel"};
    char wide[32];

    snprintf(wide, sizeof wide, "%s", name_of(cpu, 16));
    ck_assert_int_eq(strncmp(wide, "pocl-", 5), 0);
    ck_assert_str_eq(wide + strlen(wide) - 4, "-v16");
    ck_assert_str_ne(name_of(cpu, 8), wide);
#if defined(__x86_64__)
    ck_assert_str_eq(wide, "pocl-x86_64-v16");
#endif
}
END_TEST

START_TEST(other_devices_have_no_name)
{
    const clfd_identity others[] = {
        {.type = CL_DEVICE_TYPE_CPU, .platform = "rusticl", .vendor = "Mesa/X.org"},
        {.type = CL_DEVICE_TYPE_GPU, .platform = "Portable Computing Language", .vendor = "Acme"},
        {.type = CL_DEVICE_TYPE_GPU, .platform = "Intel(R) OpenCL Graphics", .vendor = "Intel(R) Corporation"},
    };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_str_eq(name_of(others[i], 8), "");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        nvidia_devices_are_named_by_their_compute_capability,
        cpus_of_pocl_are_named_by_the_processor_and_its_vectors,
        other_devices_have_no_name,
    };
    return run_suite("architecture", tests, sizeof tests / sizeof tests[0]);
}

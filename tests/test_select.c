#include "device/select.h"
#include "support/fake_opencl.h"
#include "support/log.h"
#include "support/suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static test_log heard;

static clfd_logger listen(void)
{
    heard = (test_log){0};
    return test_logger(&heard);
}

/* Choosing, on made-up lists. */

#define GPU CL_DEVICE_TYPE_GPU
#define CPU CL_DEVICE_TYPE_CPU
#define ACCELERATOR CL_DEVICE_TYPE_ACCELERATOR
#define GIB(n) ((uint64_t)(n) << 30)
#define POCL "Portable Computing Language"

#define DEVICE(pair, of_type, gib, of_name, of_platform, why_not)                                                      \
    {                                                                                                                  \
        .info = {                                                                                                      \
            .spec = pair,                                                                                              \
            .type = of_type,                                                                                           \
            .memory_bytes = GIB(gib),                                                                                  \
            .name = of_name,                                                                                           \
            .platform_name = of_platform,                                                                              \
            .unsupported = why_not                                                                                     \
        }                                                                                                              \
    }

static size_t best_of(clfd_found_device *devices, size_t count)
{
    const clfd_device_list list = {devices, count};
    size_t chosen = 99;

    ck_assert_int_eq(clfd_choose_device(&list, NULL, &chosen, NULL), CLFD_SUCCESS);
    return chosen;
}

/* In both orders of the pair, so that no rule is a matter of which comes first. */
static void expect_better(clfd_found_device better, clfd_found_device worse)
{
    clfd_found_device first[] = {better, worse}, second[] = {worse, better};

    ck_assert_msg(best_of(first, 2) == 0 && best_of(second, 2) == 1, "%s does not win over %s", better.info.name,
                  worse.info.name);
}

START_TEST(ranking_goes_by_support_then_gpu_then_memory_then_pocl)
{
    const clfd_found_device small_gpu = DEVICE("0:0", GPU, 4, "small gpu", "A", "");
    const clfd_found_device large_gpu = DEVICE("0:1", GPU, 80, "large gpu", "A", "");
    const clfd_found_device refused_gpu = DEVICE("0:2", GPU, 160, "refused gpu", "A", "it has no online compiler");
    const clfd_found_device accelerator = DEVICE("1:0", ACCELERATOR, 64, "accelerator", "B", "");
    const clfd_found_device pocl = DEVICE("2:0", CPU, 16, "pthread", POCL, "");
    /* More of the same host memory is no merit. */
    const clfd_found_device llvmpipe = DEVICE("3:0", CPU, 32, "llvmpipe", "rusticl", "");

    expect_better(large_gpu, small_gpu);
    expect_better(small_gpu, accelerator);
    expect_better(small_gpu, pocl);
    expect_better(accelerator, pocl);
    expect_better(pocl, llvmpipe);
    expect_better(pocl, refused_gpu);
    expect_better(llvmpipe, refused_gpu);
}
END_TEST

START_TEST(first_of_equals_wins)
{
    clfd_found_device devices[] = {
        DEVICE("0:0", CPU, 16, "cpu", "A", ""),
        DEVICE("1:0", GPU, 80, "gpu", "B", ""),
        DEVICE("1:1", GPU, 80, "gpu", "B", ""),
    };

    ck_assert_uint_eq(best_of(devices, 3), 1);
    ck_assert_uint_eq(best_of(devices, 1), 0);
}
END_TEST

static clfd_found_device two_cpus_and_a_gpu[] = {
    DEVICE("0:0", CPU, 16, "pthread", POCL, ""),
    DEVICE("1:0", GPU, 80, "H200", "NVIDIA CUDA", ""),
    DEVICE("2:0", CPU, 16, "llvmpipe", "rusticl", ""),
};
static const clfd_device_list three = {two_cpus_and_a_gpu, 3};

static clfd_status choose(const clfd_device_list *list, const char *text, size_t *chosen)
{
    const clfd_logger logger = listen();
    clfd_spec spec;

    ck_assert_int_eq(clfd_spec_parse(text, &spec, NULL), CLFD_SUCCESS);
    *chosen = 99;
    return clfd_choose_device(list, &spec, chosen, &logger);
}

START_TEST(spec_chooses_the_one_that_matches_whatever_its_rank)
{
    size_t chosen;

    ck_assert_int_eq(choose(&three, "gpu", &chosen), CLFD_SUCCESS);
    ck_assert_uint_eq(chosen, 1);
    ck_assert_int_eq(choose(&three, "2:0", &chosen), CLFD_SUCCESS);
    ck_assert_uint_eq(chosen, 2);
    ck_assert_int_eq(choose(&three, "portable", &chosen), CLFD_SUCCESS);
    ck_assert_uint_eq(chosen, 0);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
}
END_TEST

START_TEST(ambiguous_spec_lists_the_candidates_and_only_them)
{
    size_t chosen;

    ck_assert_int_eq(choose(&three, "cpu", &chosen), CLFD_ERROR_AMBIGUOUS_DEVICE);
    ck_assert_uint_eq(chosen, 99);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "'cpu' matches 2 devices"));
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "0:0 pthread (" POCL "); 2:0 llvmpipe (rusticl)"));
    ck_assert_ptr_null(strstr(heard.last[CLFD_LOG_ERROR], "H200"));
}
END_TEST

START_TEST(index_counts_among_those_that_match)
{
    size_t chosen;

    ck_assert_int_eq(choose(&three, "cpu,index=0", &chosen), CLFD_SUCCESS);
    ck_assert_uint_eq(chosen, 0);
    ck_assert_int_eq(choose(&three, "type=cpu,index=1", &chosen), CLFD_SUCCESS);
    ck_assert_uint_eq(chosen, 2);
    ck_assert_int_eq(choose(&three, "index=1", &chosen), CLFD_SUCCESS);
    ck_assert_uint_eq(chosen, 1);
    ck_assert_int_eq(choose(&three, "cpu,index=2", &chosen), CLFD_ERROR_NO_DEVICE_MATCH);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "index 2 of 2 devices"));
    ck_assert_int_eq(choose(&three, "index=4294967295", &chosen), CLFD_ERROR_NO_DEVICE_MATCH);
    ck_assert_uint_eq(chosen, 99);
}
END_TEST

START_TEST(spec_without_a_match_lists_all_devices)
{
    static const char *const misses[] = {"accelerator", "tpu", "1:1", "gpu,index=1", "vendor=acme"};
    size_t chosen;

    for (size_t i = 0; i < sizeof misses / sizeof misses[0]; i++)
        ck_assert_int_eq(choose(&three, misses[i], &chosen), CLFD_ERROR_NO_DEVICE_MATCH);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "'vendor=acme'"));
    ck_assert_ptr_nonnull(
        strstr(heard.last[CLFD_LOG_ERROR], "0:0 pthread (" POCL "); 1:0 H200 (NVIDIA CUDA); 2:0 llvmpipe (rusticl)"));
}
END_TEST

START_TEST(many_candidates_are_counted_rather_than_cut)
{
    enum { MANY = 200 };
    clfd_found_device *devices = calloc(MANY, sizeof *devices);
    const clfd_device_list list = {devices, MANY};
    const char *said = heard.last[CLFD_LOG_ERROR];
    size_t chosen, listed = 1;

    ck_assert_ptr_nonnull(devices);
    for (int i = 0; i < MANY; i++) {
        devices[i].info.type = GPU;
        snprintf(devices[i].info.spec, sizeof devices[i].info.spec, "0:%d", i);
        memset(devices[i].info.name, 'n', sizeof devices[i].info.name - 1);
        memset(devices[i].info.platform_name, 'p', sizeof devices[i].info.platform_name - 1);
    }
    ck_assert_int_eq(choose(&list, "gpu", &chosen), CLFD_ERROR_AMBIGUOUS_DEVICE);
    for (const char *at = said; (at = strstr(at, "; 0:")) != NULL; at++)
        listed++;
    /* The count at the end is whole, and adds up. */
    ck_assert_ptr_nonnull(strstr(said, "; and "));
    ck_assert_uint_eq(strtoul(strstr(said, "; and ") + 6, NULL, 10), MANY - listed);
    ck_assert_str_eq(said + strlen(said) - 5, " more");
    ck_assert_uint_ge(listed, 5);
    free(devices);
}
END_TEST

/* Finding, on made-up platforms. */

START_TEST(devices_are_found_in_order_with_the_numbers_that_the_platforms_have)
{
    const fake_device plain[3] = {fake_plain_device(), fake_plain_device(), fake_plain_device()};
    const fake_platform platforms[] = {
        {.name = "A", .devices = plain, .num_devices = 2},
        {.name = "empty", .status = CL_DEVICE_NOT_FOUND},
        {.name = "none"},
        {.name = "B", .devices = plain + 2, .num_devices = 1},
    };
    static const char *const pairs[] = {"0:0", "0:1", "3:0"};
    const clfd_logger logger = listen();
    clfd_device_list list;

    fake_opencl = (struct fake_opencl){.platforms = platforms, .num_platforms = 4};
    ck_assert_int_eq(clfd_find_devices(&list, &logger), CLFD_SUCCESS);
    ck_assert_uint_eq(list.count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(list.devices[i].info.spec, pairs[i]);
        ck_assert_ptr_eq(list.devices[i].info.device, fake_device_id(&plain[i]));
        ck_assert_uint_eq(list.devices[i].caps.compute_units, 4);
    }
    ck_assert_str_eq(list.devices[2].info.platform_name, "B");
    /* An empty platform is nothing to warn of. */
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING] + heard.count[CLFD_LOG_ERROR], 0);
    free(list.devices);
}
END_TEST

START_TEST(broken_platform_and_broken_device_are_skipped_with_a_warning)
{
    fake_device devices[] = {fake_plain_device(), fake_plain_device()};
    const fake_platform platforms[] = {
        {.name = "broken", .status = CL_OUT_OF_HOST_MEMORY},
        {.name = "half", .devices = devices, .num_devices = 2},
    };
    clfd_logger logger = listen();
    clfd_device_list list;

    fake_opencl = (struct fake_opencl){.platforms = platforms, .num_platforms = 2};
    ck_assert_int_eq(clfd_find_devices(&list, &logger), CLFD_SUCCESS);
    ck_assert_uint_eq(list.count, 2);
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 1);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_WARNING], "platform 0 "));
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_WARNING], "CL_OUT_OF_HOST_MEMORY"));
    free(list.devices);

    devices[0].broken = CL_DEVICE_NAME;
    logger = listen();
    ck_assert_int_eq(clfd_find_devices(&list, &logger), CLFD_SUCCESS);
    ck_assert_uint_eq(list.count, 1);
    ck_assert_str_eq(list.devices[0].info.spec, "1:1");
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 2);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_WARNING], "device 1:0 "));
    free(list.devices);
}
END_TEST

START_TEST(no_device_anywhere_is_one_status_with_one_sentence)
{
    fake_device broken = fake_plain_device();
    const fake_platform empty[] = {{.name = "empty"}}, refusing[] = {{.name = "x", .status = CL_OUT_OF_RESOURCES}};
    const fake_platform unreadable[] = {{.name = "y", .devices = &broken, .num_devices = 1}};
    const struct fake_opencl cases[] = {
        {.status = -1001},
        {.num_platforms = 0},
        {.platforms = empty, .num_platforms = 1},
        {.platforms = refusing, .num_platforms = 1},
        {.platforms = unreadable, .num_platforms = 1},
    };

    broken.broken = CL_DEVICE_TYPE;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const clfd_logger logger = listen();
        clfd_device_list list;

        fake_opencl = cases[i];
        ck_assert_int_eq(clfd_find_devices(&list, &logger), CLFD_ERROR_NO_PLATFORM);
        ck_assert_uint_eq(list.count, 0);
        ck_assert_ptr_null(list.devices);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
    }
}
END_TEST

START_TEST(other_failure_of_the_loader_passes_through)
{
    const clfd_logger logger = listen();
    clfd_device_list list;

    fake_opencl = (struct fake_opencl){.status = CL_OUT_OF_HOST_MEMORY};
    ck_assert_int_eq(clfd_find_devices(&list, &logger), CL_OUT_OF_HOST_MEMORY);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "clGetPlatformIDs"));
}
END_TEST

START_TEST(hundreds_of_platforms_are_all_found)
{
    enum { MANY = 300 };
    static fake_platform platforms[MANY];
    static fake_device devices[MANY];
    clfd_device_list list;

    for (int i = 0; i < MANY; i++) {
        devices[i] = fake_plain_device();
        platforms[i] = (fake_platform){.name = "P", .devices = &devices[i], .num_devices = 1};
    }
    fake_opencl = (struct fake_opencl){.platforms = platforms, .num_platforms = MANY};
    ck_assert_int_eq(clfd_find_devices(&list, NULL), CLFD_SUCCESS);
    ck_assert_uint_eq(list.count, MANY);
    ck_assert_str_eq(list.devices[MANY - 1].info.spec, "299:0");
    free(list.devices);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        ranking_goes_by_support_then_gpu_then_memory_then_pocl,
        first_of_equals_wins,
        spec_chooses_the_one_that_matches_whatever_its_rank,
        ambiguous_spec_lists_the_candidates_and_only_them,
        index_counts_among_those_that_match,
        spec_without_a_match_lists_all_devices,
        many_candidates_are_counted_rather_than_cut,
        devices_are_found_in_order_with_the_numbers_that_the_platforms_have,
        broken_platform_and_broken_device_are_skipped_with_a_warning,
        no_device_anywhere_is_one_status_with_one_sentence,
        other_failure_of_the_loader_passes_through,
        hundreds_of_platforms_are_all_found,
    };
    return run_suite("select", tests, sizeof tests / sizeof tests[0]);
}

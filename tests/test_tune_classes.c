/* Which classes are tuned, and by which problems. No device. */
#include "support/suite.h"
#include "tune.h"
#include <stdlib.h>
#include <string.h>

static const clfd_device_info gpu = {.type = CL_DEVICE_TYPE_GPU, .max_alloc_bytes = (uint64_t)32 << 30};
static const clfd_device_info cpu = {.type = CL_DEVICE_TYPE_CPU, .max_alloc_bytes = (uint64_t)2 << 30};
static const clfd_device_info small = {.type = CL_DEVICE_TYPE_GPU, .max_alloc_bytes = (uint64_t)64 << 20};

static tool_fault fault;
static tune_list list;

static void tear_down(void)
{
    free(list.classes);
    list = (tune_list){NULL, 0};
}

static bool make(const char *const *texts, size_t count, const clfd_device_info *device, bool quick)
{
    problem_list problems = {NULL, 0};
    bool good;

    fault_clear(&fault);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(problem_list_add(&problems, texts[i], &fault), "%s", fault.sentence);
    tear_down();
    good = tune_list_make(&problems, device, quick, &list, &fault);
    free(problems.problems);
    return good;
}

START_TEST(problems_of_one_class_share_a_row)
{
    static const char *const texts[] = {"hq32 hkv8 d128 kv64 f16", "hq8 hkv2 d128 kv4096 f16 page=16 csr causal",
                                        "hq32 hkv8 d64 kv64 f16", "q3 hq2 hkv2 d128 kv9 f16",
                                        "hq32 hkv8 d128 kv64 f16 vtype=int8"};
    static const char *const names[] = {"f16 d128 ratio 4", "f16 d64 ratio 4", "f16,int8 d128 ratio 4"};
    char text[TUNE_CLASS_BYTES];

    ck_assert_msg(make(texts, 5, &cpu, false), "%s", fault.sentence);
    ck_assert_uint_eq(list.count, 3);
    for (size_t i = 0; i < 3; i++)
        ck_assert_str_eq(tune_class_print(&list.classes[i].shared, text), names[i]);
    ck_assert_uint_eq(list.classes[0].num_problems, 3);
    ck_assert_uint_eq(list.classes[0].problems[1].kv_len, 4096);
    ck_assert_uint_eq(list.classes[1].num_problems, 1);
}
END_TEST

START_TEST(what_makes_no_class_is_refused)
{
    static const struct {
        const char *text, *fragment;
    } cases[] = {{"hq8 d64 kv64 prefix=8", "prefix=8 is two problems"},
                 {"hq3 hkv2 d64 kv64", "hq=3 must be a multiple"}};
    static const char *const many[] = {"hq1 d8 kv1", "hq1 d8 kv2", "hq1 d8 kv3", "hq1 d8 kv4", "hq1 d8 kv5"};

    for (size_t i = 0; i < 2; i++) {
        ck_assert(!make(&cases[i].text, 1, &cpu, false));
        ck_assert_int_eq(fault.exit_code, EXIT_CODE_USAGE);
        ck_assert_msg(strstr(fault.sentence, cases[i].fragment) != NULL, "%s", fault.sentence);
    }
    ck_assert(!make(many, 5, &cpu, false));
    ck_assert_ptr_nonnull(strstr(fault.sentence, "more than 4 problems are of the class f32 d8 ratio 1"));
}
END_TEST

START_TEST(without_problems_common_classes_are_tuned)
{
    char text[TUNE_CLASS_BYTES];

    ck_assert(make(NULL, 0, &gpu, true));
    ck_assert_uint_eq(list.count, 3);
    ck_assert_str_eq(tune_class_print(&list.classes[1].shared, text), "f16 d128 ratio 4");
    ck_assert_uint_eq(list.classes[1].num_problems, 1);
    ck_assert(make(NULL, 0, &gpu, false));
    ck_assert_uint_gt(list.count, 50);
    ck_assert_str_eq(tune_class_print(&list.classes[0].shared, text), "f16 d128 ratio 1");
    for (size_t i = 0; i < list.count; i++) {
        ck_assert_uint_eq(list.classes[i].num_problems, 3);
        for (size_t other = 0; other < i; other++)
            ck_assert(!clfd_tuning_class_equal(&list.classes[i].shared, &list.classes[other].shared));
    }
}
END_TEST

/* Bytes of K and V of the largest problem. */
static double largest(void)
{
    double most = 0;

    for (size_t i = 0; i < list.count; i++)
        for (size_t p = 0; p < list.classes[i].num_problems; p++) {
            const bench_problem *b = &list.classes[i].problems[p];
            const double bytes = 2.0 * b->batch * b->num_kv_heads * b->kv_len * b->head_dim *
                                 (double)clfd_type_size(b->k_type) / clfd_type_elements(b->k_type);
            most = bytes > most ? bytes : most;
        }
    return most;
}

START_TEST(sizes_suit_the_device)
{
    ck_assert(make(NULL, 0, &gpu, false));
    ck_assert_double_gt(largest(), (double)(200 << 20));
    ck_assert_double_le(largest(), (double)(256 << 20));
    ck_assert(make(NULL, 0, &cpu, false));
    ck_assert_double_le(largest(), (double)(32 << 20));
    ck_assert(make(NULL, 0, &small, false));
    ck_assert_double_le(largest(), (double)(32 << 20));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        problems_of_one_class_share_a_row,
        what_makes_no_class_is_refused,
        without_problems_common_classes_are_tuned,
        sizes_suit_the_device,
    };
    return run_suite_around("tune_classes", tests, sizeof tests / sizeof tests[0], NULL, tear_down);
}

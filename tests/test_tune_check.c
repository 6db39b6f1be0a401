/* The check that a row must pass: the reference of every kind of problem, and what it calls wrong. */
#include "support/suite.h"
#include "tune.h"
#include <math.h>
#include <stdlib.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static bench_device device;
static tool_fault fault;

static bool is_right(const tune_check *check, const char *words)
{
    bool right = false;

    ck_assert_msg(tune_check_row(&device, check, words, &right, &fault), "%s", fault.sentence);
    return right;
}

static tune_check open_check(const char *text)
{
    bench_problem problem;
    tune_check check = {0};

    ck_assert_msg(problem_parse(text, &problem, &fault), "%s", fault.sentence);
    ck_assert_msg(tune_check_open(&device, &problem, &check, &fault), "%s: %s", text, fault.sentence);
    return check;
}

START_TEST(shipped_rows_are_right_for_every_kind_of_problem)
{
    static const char *const texts[] = {
        "hq8 hkv2 d64 dv32 kv300 f32 out=bf16",
        "hq2 d64 kv100 bf16 kvtype=int8 kvgroup=32 kvzeros",
        "b3 hq4 hkv2 d64 kv100 f16 ktype=q8_0 vtype=fp8 page=16 cache_rows=5",
        "b2 q2 hq2 d64 kv100 f16 page=7 csr causal window=50 softcap=20 alibi sinks",
        "b2 q2 hq2 d64 kv100 f32 bias mask positions kv_start partial=mlo splits=3",
        "hq2 hkv1 d64 dv32 kv100 f16 v_from_k tokens=32",
    };

    for (size_t i = 0; i < COUNT(texts); i++) {
        tune_check check = open_check(texts[i]);
        ck_assert_msg(is_right(&check, NULL), "%s", texts[i]);
        tune_check_close(&check);
    }
}
END_TEST

START_TEST(what_differs_from_the_reference_is_wrong)
{
    tune_check check = open_check("b4 hq4 hkv2 d64 kv4096 f32");

    ck_assert(is_right(&check, "family=decode_vector tile=1"));
    for (int c = 0; c < TUNE_CHECKS; c++) {
        double *const values[] = {&check.cases[c].out[check.cases[c].rows * check.cases[c].head_dim_v - 1],
                                  &check.cases[c].lse[0]};
        for (int i = 0; i < 2; i++) {
            *values[i] += 1e-3;
            ck_assert(!is_right(&check, NULL));
            *values[i] -= 1e-3;
        }
    }
    ck_assert(is_right(&check, NULL));
    tune_check_close(&check);
}
END_TEST

START_TEST(a_row_without_a_kernel_is_not_right)
{
    tune_check check = open_check("hq4 hkv2 d64 kv64 f32");

    ck_assert(!is_right(&check, "family=decode_vector tile=4"));
    ck_assert_str_eq(fault.sentence, "");
    tune_check_close(&check);
}
END_TEST

START_TEST(equal_means_within_the_tolerance_and_the_rounding)
{
    static const struct {
        float actual;
        double expected;
        clfd_type type;
        bool equal;
    } cases[] = {
        {1.0f, 1.00009, CLFD_TYPE_F32, true},
        {1.0f, 1.0002, CLFD_TYPE_F32, false},
        {1.0f, 1.001, CLFD_TYPE_F16, true},
        {1.0f, 1.002, CLFD_TYPE_F16, false},
        {1.0f, 1.007, CLFD_TYPE_BF16, true},
        {1.0f, 1.01, CLFD_TYPE_BF16, false},
        {-INFINITY, -INFINITY, CLFD_TYPE_F32, true},
        {-INFINITY, INFINITY, CLFD_TYPE_F32, false},
        {NAN, 1.0, CLFD_TYPE_F32, false},
        {1.0f, NAN, CLFD_TYPE_F32, false},
        {INFINITY, 1.0, CLFD_TYPE_F16, false},
        {1.0f, INFINITY, CLFD_TYPE_F16, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_msg(tune_check_equal(&cases[i].actual, &cases[i].expected, 1, cases[i].type) == cases[i].equal,
                      "%g and %g", cases[i].actual, cases[i].expected);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        shipped_rows_are_right_for_every_kind_of_problem,
        what_differs_from_the_reference_is_wrong,
        a_row_without_a_kernel_is_not_right,
        equal_means_within_the_tolerance_and_the_rounding,
    };
    int result;

    setenv("CLFD_DEVICE", "platform=Portable", 0);
    setenv("CLFD_TUNING", "none", 1);
    if (!bench_open(&device, NULL, &fault))
        return EXIT_FAILURE;
    result = run_suite("tune_check", tests, COUNT(tests));
    bench_close(&device);
    return result;
}

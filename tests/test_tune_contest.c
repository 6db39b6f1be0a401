/* Rows against each other on the device. Which is faster, no test can say: but what is refused loses, and what is compared
 * has times. */
#include "plan/words.h"
#include "support/suite.h"
#include "tune.h"
#include <stdlib.h>
#include <string.h>

static bench_device device;
static tool_fault fault;
static tune_class class;
static tune_contest contest;
static uint32_t shown;
static clfd_tuning row = {.family = CLFD_FAMILY_VECTOR,
                          .work_group = 1,
                          .rows = 8,
                          .width = 8,
                          .tile = 8,
                          .heads = 1,
                          .groups_per_unit = 1,
                          .min_split = 256,
                          .split_tile = 64};

static void count_shown(void *user, const tune_contest *of)
{
    ck_assert_ptr_eq(user, &shown);
    shown = of->tried;
}

static void set_up(void)
{
    static const char *const texts[] = {"b2 hq2 hkv1 d64 kv256 f16", "hq2 hkv1 d64 kv512 f16"};
    bool right = false;

    class = (tune_class){.num_problems = 2};
    for (size_t i = 0; i < 2; i++)
        ck_assert(problem_parse(texts[i], &class.problems[i], &fault));
    contest = (tune_contest){.device = &device, .class = &class, .repeats = 3, .progress = count_shown, .user = &shown};
    ck_assert_msg(tune_contest_open(&contest, &fault), "%s", fault.sentence);
    ck_assert_msg(tune_contest_begin(&contest, &row, &right, &fault), "%s", fault.sentence);
    ck_assert(right);
}

static void tear_down(void) { tune_contest_close(&contest); }

START_TEST(a_row_without_a_kernel_loses_and_is_counted)
{
    clfd_tuning other = row;

    other.tile = 4;
    ck_assert_int_eq(tune_contest_challenge(&contest, &other, &fault), TUNE_LOST);
    ck_assert_str_eq(fault.sentence, "");
    ck_assert_uint_eq(contest.tried, 2);
    ck_assert_uint_eq(contest.refused, 1);
    ck_assert_uint_eq(shown, 2);
    /* The best row is still there. */
    ck_assert_int_ne(tune_contest_challenge(&contest, &row, &fault), TUNE_STOPPED);
    ck_assert_uint_eq(contest.refused, 1);
    ck_assert_uint_eq(contest.wrong, 0);
}
END_TEST

START_TEST(a_row_that_cannot_begin_is_not_right)
{
    clfd_tuning other = row;
    bool right = true;

    other.width = 16;
    ck_assert(tune_contest_begin(&contest, &other, &right, &fault));
    ck_assert(!right);
    ck_assert_uint_eq(contest.refused, 1);
    ck_assert(tune_contest_begin(&contest, &row, &right, &fault));
    ck_assert(right);
}
END_TEST

START_TEST(a_comparison_gives_times_of_every_problem)
{
    double seconds[2][TUNE_MAX_PROBLEMS], speedup = 0;
    clfd_tuning other = row;

    other.min_split = 64;
    ck_assert_msg(tune_contest_compare(&contest, &other, seconds, &speedup, &fault), "%s", fault.sentence);
    for (int i = 0; i < 2; i++)
        for (size_t p = 0; p < 2; p++)
            ck_assert(seconds[i][p] > 0 && seconds[i][p] < 10);
    ck_assert(speedup > 0 && speedup < 1000);
}
END_TEST

START_TEST(words_of_a_row_name_its_family_first)
{
    char words[TUNE_WORDS_BYTES];
    clfd_tuning again = {.family = CLFD_FAMILY_VECTOR};

    ck_assert_int_eq(strncmp(tune_words(&row, words), "family=decode_vector wg=1 ", 26), 0);
    ck_assert_int_eq(clfd_words_apply(words, &again, NULL), CLFD_SUCCESS);
    ck_assert_mem_eq(&again, &row, sizeof row);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_row_without_a_kernel_loses_and_is_counted,
        a_row_that_cannot_begin_is_not_right,
        a_comparison_gives_times_of_every_problem,
        words_of_a_row_name_its_family_first,
    };
    int result;

    setenv("CLFD_DEVICE", "platform=Portable", 0);
    setenv("CLFD_TUNING", "none", 1);
    if (!bench_open(&device, NULL, &fault))
        return EXIT_FAILURE;
    device.session.device.cache_bytes = 0; /* few copies: nobody looks at the times */
    result = run_suite_around("tune_contest", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
    bench_close(&device);
    return result;
}

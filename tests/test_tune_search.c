/* The search for the best row, with a judge that knows what is best. No device. */
#include "plan/words.h"
#include "support/suite.h"
#include "tune.h"
#include <math.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const clfd_tuning start = {.family = CLFD_FAMILY_LANES,
                                  .work_group = 256,
                                  .rows = 8,
                                  .lanes = 8,
                                  .unroll = 4,
                                  .parts = 1,
                                  .exchange = CLFD_EXCHANGE_LOCAL,
                                  .groups_per_unit = 4,
                                  .min_split = 256,
                                  .split_tile = 64};
static const tune_limits unlimited = {100, UINT32_MAX};

/* Rows cost more the further their numbers, by factors of 2, lie from those of `goal`. */
static clfd_tuning goal, challenged[2048];
static size_t num_challenged, stop_after;
static double best_cost;

static double value_of(const clfd_tuning *row, size_t i)
{
    clfd_field field;

    ck_assert(clfd_words_field(row, i, &field));
    EXPECT(field.min <= field.value && field.value <= field.max, "%s=%u is out of range", field.name, field.value);
    EXPECT(!field.power_of_two || (field.value & (field.value - 1)) == 0, "%s=%u", field.name, field.value);
    return log2(field.value + 1.0);
}

static double cost_of(const clfd_tuning *row)
{
    clfd_field field;
    double cost = row->family == goal.family ? 1 : 100;

    for (size_t i = 0; row->family == goal.family && clfd_words_field(row, i, &field); i++)
        cost += fabs(value_of(row, i) - value_of(&goal, i));
    return cost;
}

static tune_verdict challenge(void *user, const clfd_tuning *row, tool_fault *fault)
{
    const double cost = cost_of(row);

    ck_assert_ptr_null(user);
    ck_assert_uint_lt(num_challenged, COUNT(challenged));
    EXPECT(!clfd_tuning_listed(challenged, num_challenged, row), "a row challenges twice");
    challenged[num_challenged++] = *row;
    if (num_challenged == stop_after) {
        fault_failed(fault, "the device is gone");
        return TUNE_STOPPED;
    }
    if (cost >= best_cost)
        return TUNE_LOST;
    best_cost = cost;
    return TUNE_WON;
}

static const tune_judge judge = {challenge, NULL};

static void set_up(void)
{
    goal = start;
    num_challenged = stop_after = 0;
}

static clfd_tuning find(const clfd_tuning *starts, size_t count, const tune_limits *limits)
{
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    clfd_tuning best;

    best_cost = cost_of(&starts[0]);
    ck_assert_msg(tune_search(starts, count, limits, &judge, &best, &fault), "%s", fault.sentence);
    return best;
}

START_TEST(the_best_row_is_found_from_below_and_above_and_at_the_ends)
{
    clfd_tuning best;

    goal.work_group = 64;
    goal.lanes = 32;
    goal.unroll = 1;
    goal.ahead = 1;
    goal.min_split = 1;
    goal.groups_per_unit = 64;
    best = find(&start, 1, &unlimited);
    ck_assert_mem_eq(&best, &goal, sizeof best);
    ck_assert_uint_lt(num_challenged, 100);
}
END_TEST

START_TEST(a_start_that_is_best_stays)
{
    const clfd_tuning best = find(&start, 1, &unlimited);

    ck_assert_mem_eq(&best, &start, sizeof best);
    ck_assert(!clfd_tuning_listed(challenged, num_challenged, &start));
    ck_assert_uint_gt(num_challenged, 10);
}
END_TEST

START_TEST(another_start_of_another_family_may_win)
{
    clfd_tuning starts[] = {
        start, start, {.family = CLFD_FAMILY_VECTOR, .work_group = 1, .rows = 8, .width = 8, .tile = 8}};
    clfd_tuning best;

    starts[1].work_group = 128;
    starts[2].heads = starts[2].groups_per_unit = starts[2].min_split = starts[2].split_tile = 1;
    goal = starts[2];
    goal.tile = 64;
    goal.prefetch = 16;
    goal.heads = 64;
    best = find(starts, COUNT(starts), &unlimited);
    ck_assert_mem_eq(&best, &goal, sizeof best);
}
END_TEST

static tune_verdict only_goal(void *user, const clfd_tuning *row, tool_fault *fault)
{
    (void)user;
    (void)fault;
    return memcmp(row, &goal, sizeof goal) == 0 ? TUNE_WON : TUNE_LOST;
}

/* From the first start, which is faster than the second, two numbers must change at once. */
START_TEST(a_row_is_found_that_another_start_is_one_step_from)
{
    static const tune_judge strict = {only_goal, NULL};
    const clfd_tuning first = {.family = CLFD_FAMILY_VECTOR,
                               .work_group = 1,
                               .rows = 8,
                               .width = 16,
                               .tile = 32,
                               .prefetch = 8,
                               .heads = 16,
                               .groups_per_unit = 4,
                               .min_split = 256,
                               .split_tile = 64};
    clfd_tuning all[3] = {first, first, first}, best;
    tool_fault fault = {.exit_code = EXIT_CODE_OK};

    all[1].tile = all[1].prefetch = 16;
    all[2].tile = 1;
    goal = all[1];
    goal.prefetch = 0;
    ck_assert_msg(tune_search(all, COUNT(all), &unlimited, &strict, &best, &fault), "%s", fault.sentence);
    ck_assert_mem_eq(&best, &goal, sizeof best);
}
END_TEST

START_TEST(a_number_of_few_values_is_changed_one_by_one)
{
    const clfd_tuning matrix = {.family = CLFD_FAMILY_MATRIX,
                                .work_group = 128,
                                .rows = 16,
                                .slots = 4,
                                .exchange = CLFD_EXCHANGE_PTX,
                                .groups_per_unit = 2,
                                .min_split = 256,
                                .split_tile = 64};
    clfd_tuning best;

    goal = matrix;
    goal.slots = 7;
    best = find(&matrix, 1, &unlimited);
    ck_assert_mem_eq(&best, &goal, sizeof best);
}
END_TEST

START_TEST(limits_hold)
{
    static const tune_limits few = {100, 5}, none = {100, 0}, no_round = {0, UINT32_MAX};
    clfd_tuning best;

    goal.min_split = 1;
    find(&start, 1, &few);
    ck_assert_uint_eq(num_challenged, 5);
    set_up();
    best = find(&start, 1, &none);
    ck_assert_uint_eq(num_challenged, 0);
    ck_assert_mem_eq(&best, &start, sizeof best);
    find(&start, 1, &no_round);
    ck_assert_uint_eq(num_challenged, 0);
}
END_TEST

START_TEST(a_judge_that_stops_ends_the_search_with_its_fault)
{
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    clfd_tuning best;

    best_cost = cost_of(&start);
    stop_after = 3;
    ck_assert(!tune_search(&start, 1, &unlimited, &judge, &best, &fault));
    ck_assert_uint_eq(num_challenged, 3);
    ck_assert_str_eq(fault.sentence, "the device is gone");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_best_row_is_found_from_below_and_above_and_at_the_ends,
        a_start_that_is_best_stays,
        another_start_of_another_family_may_win,
        a_row_is_found_that_another_start_is_one_step_from,
        a_number_of_few_values_is_changed_one_by_one,
        limits_hold,
        a_judge_that_stops_ends_the_search_with_its_fault,
    };
    return run_suite_around("tune_search", tests, COUNT(tests), set_up, NULL);
}

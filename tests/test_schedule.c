#include "plan/check.h"
#include "plan/schedule.h"
#include "run/divisor.h"
#include "support/log.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

/* The cuts of a sequence as the kernels make them: split.cl is C but for these words. */
#define __global
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define clamp(x, low, high) min(max(x, low), high)
#define uint uint32_t
#define ulong uint64_t
#include "split.cl"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { TILE = 64, COMPUTE_UNITS = 16, GROUPS = 4, MIN_SPLIT = 256 };

static const clfd_caps gpu = {
    .type = CL_DEVICE_TYPE_GPU,
    .compute_units = COMPUTE_UNITS,
    .max_work_group = 1024,
    .max_alloc_bytes = (uint64_t)1 << 32,
};

static const clfd_tuning tuning = {
    .work_group = 128,
    .rows = 8,
    .groups_per_unit = GROUPS,
    .min_split = MIN_SPLIT,
    .split_tile = TILE,
};

static const clfd_attention plain = {
    .struct_size = sizeof(clfd_attention),
    .max_batch = 2,
    .num_q_heads = 8,
    .num_kv_heads = 2,
    .head_dim = 128,
    .head_dim_v = 64,
    .max_kv_len = 64 * TILE,
};

static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    memset(&heard, 0, sizeof heard);
    logger = test_logger(&heard);
}

static clfd_status make(const clfd_caps *caps, const clfd_attention *given, const clfd_tuning *row,
                        clfd_schedule *schedule)
{
    clfd_attention a;

    ck_assert_msg(clfd_complete_attention(given, &a, &logger) == CLFD_SUCCESS, "%s", heard.last[CLFD_LOG_ERROR]);
    return clfd_schedule_make(caps, &a, row, schedule, &logger);
}

static clfd_schedule made(const clfd_caps *caps, const clfd_attention *given, const clfd_tuning *row)
{
    clfd_schedule schedule;

    ck_assert_msg(make(caps, given, row, &schedule) == CLFD_SUCCESS, "%s", heard.last[CLFD_LOG_ERROR]);
    return schedule;
}

static clfd_attention with_policy(clfd_split_policy policy, uint32_t size)
{
    clfd_attention a = plain;

    a.split_policy = policy;
    a.split_size = size;
    return a;
}

/* ---- Splits ------------------------------------------------------------------------------------------------------ */

START_TEST(count_gives_as_many_splits_as_asked_and_never_more_than_tiles)
{
    static const struct {
        uint32_t asked, grid;
    } cases[] = {{1, 1}, {2, 2}, {12, 12}, {63, 63}, {64, 64}, {65, 64}, {10000, 64}, {1 << 20, 64}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const clfd_attention a = with_policy(CLFD_SPLIT_COUNT, cases[i].asked);
        const clfd_schedule s = made(&gpu, &a, &tuning);
        ck_assert_uint_eq(s.num_splits, cases[i].asked);
        ck_assert_uint_eq(s.split_tokens, 0);
        ck_assert_uint_eq(s.grid_splits, cases[i].grid);
    }
}
END_TEST

START_TEST(count_of_zero_is_auto)
{
    const clfd_attention zero = with_policy(CLFD_SPLIT_COUNT, 0);
    const clfd_schedule of_zero = made(&gpu, &zero, &tuning), of_auto = made(&gpu, &plain, &tuning);

    ck_assert_uint_gt(of_auto.num_splits, 1);
    ck_assert_uint_eq(of_zero.num_splits, of_auto.num_splits);
    ck_assert_uint_eq(of_zero.grid_splits, of_auto.grid_splits);
}
END_TEST

START_TEST(tokens_gives_a_split_to_every_started_chunk)
{
    static const struct {
        uint32_t tokens, kv_len, splits;
    } cases[] = {{64, 0, 1},      {64, 1, 1},      {64, 64, 1},     {64, 65, 2},
                 {1, 4096, 4096}, {4096, 4096, 1}, {4095, 4096, 2}, {0x7fffffff, 4096, 1}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const clfd_attention a = with_policy(CLFD_SPLIT_TOKENS, cases[i].tokens);
        const clfd_schedule s = made(&gpu, &a, &tuning);
        ck_assert_uint_eq(s.split_tokens, cases[i].tokens);
        ck_assert_uint_eq(s.num_splits, 0);
        ck_assert_uint_eq(clfd_schedule_splits(&s, &plain, &tuning, cases[i].kv_len), cases[i].splits);
    }
}
END_TEST

/* A range of the window's length within a longer sequence touches one chunk more than it fills. */
START_TEST(window_bounds_the_splits_of_a_sequence)
{
    static const struct {
        clfd_split_policy policy;
        uint32_t size, q_len, positions, splits;
    } cases[] = {{CLFD_SPLIT_TOKENS, 64, 1, 0, 5},    {CLFD_SPLIT_TOKENS, 64, 2, 0, 5},
                 {CLFD_SPLIT_TOKENS, 10000, 1, 0, 1}, {CLFD_SPLIT_TOKENS, 64, 2, 1, 64},
                 {CLFD_SPLIT_TOKENS, 64, 1, 1, 64},   {CLFD_SPLIT_COUNT, 1000, 1, 0, 4},
                 {CLFD_SPLIT_COUNT, 3, 1, 0, 3},      {CLFD_SPLIT_COUNT, 1000, 2, 0, 5}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        clfd_attention a = with_policy(cases[i].policy, cases[i].size);
        a.window = 4 * TILE;
        a.q_len = cases[i].q_len;
        a.query_positions = cases[i].positions;
        ck_assert_uint_eq(made(&gpu, &a, &tuning).grid_splits, cases[i].splits);
    }
}
END_TEST

START_TEST(longest_lengths_have_their_splits_without_overflow)
{
    const clfd_attention count = with_policy(CLFD_SPLIT_COUNT, 1000);
    const clfd_attention tokens = with_policy(CLFD_SPLIT_TOKENS, 0x7fffffff);
    clfd_schedule s = made(&gpu, &count, &tuning);

    ck_assert_uint_eq(clfd_schedule_splits(&s, &plain, &tuning, 0x7fffffff), 1000);
    s.num_splits = UINT32_MAX;
    ck_assert_uint_eq(clfd_schedule_splits(&s, &plain, &tuning, 0x7fffffff), 1u << 25);
    s = made(&gpu, &tokens, &tuning);
    ck_assert_uint_eq(clfd_schedule_splits(&s, &plain, &tuning, 0x7fffffff), 1);
}
END_TEST

/* The host and the kernels count the splits of a length alike. */
static void expect_same_count(const clfd_schedule *s, const split_args *args, int kv_len)
{
    const uint32_t host = clfd_schedule_splits(s, &plain, &tuning, (uint32_t)kv_len);
    const int device = split_count(args, (split_range){0, kv_len});

    EXPECT(host == (uint32_t)device, "kv_len %d: %u splits on the host, %d on the device", kv_len, host, device);
}

/* The splits own every token of a range once, in order, and none of them is empty; but a range without tokens has one. */
static void expect_range_cuts(const split_args *args, split_range range)
{
    const int count = split_count(args, range);

    EXPECT(split_begin(args, range, 0) == range.begin, "the first of %d splits of [%d, %d) starts at %d", count,
           range.begin, range.end, split_begin(args, range, 0));
    EXPECT(split_begin(args, range, count) == range.end, "the last of %d splits ends at %d of %d", count,
           split_begin(args, range, count), range.end);
    EXPECT(range.begin < range.end || count == 1, "%d splits of no token", count);
    for (int split = 0; split < count && range.begin < range.end; split++)
        EXPECT(split_begin(args, range, split) < split_begin(args, range, split + 1), "split %d of %d is empty", split,
               count);
}

/* All keys of a sequence, and ranges that begin later. */
static void expect_cuts(const split_args *args, int kv_len)
{
    const int begins[] = {0, 1, kv_len / 3, kv_len - 1, kv_len};

    for (size_t i = 0; i < COUNT(begins); i++)
        if (begins[i] >= 0 && begins[i] <= kv_len)
            expect_range_cuts(args, (split_range){begins[i], kv_len});
}

static split_args kernel_args(const clfd_schedule *s)
{
    return (split_args){.num_splits = (clfd_arg_int)s->num_splits,
                        .split_tokens = (clfd_arg_int)s->split_tokens,
                        .split_tile = TILE,
                        .by_tile = clfd_make_divisor(TILE)};
}

START_TEST(splits_own_every_token_once_and_none_is_empty)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 12, 63, 64, 65, 100, 10000};

    for (size_t i = 0; i < COUNT(sizes); i++)
        for (clfd_split_policy policy = CLFD_SPLIT_COUNT; policy <= CLFD_SPLIT_TOKENS; policy++) {
            const clfd_attention a = with_policy(policy, sizes[i]);
            const clfd_schedule s = made(&gpu, &a, &tuning);
            const split_args args = kernel_args(&s);
            for (int kv_len = 0; kv_len <= (int)plain.max_kv_len; kv_len++) {
                expect_same_count(&s, &args, kv_len);
                expect_cuts(&args, kv_len);
            }
        }
}
END_TEST

START_TEST(sixty_four_tiles_in_twelve_splits_are_five_or_six_each)
{
    const clfd_attention a = with_policy(CLFD_SPLIT_COUNT, 12);
    const clfd_schedule s = made(&gpu, &a, &tuning);
    const split_args args = kernel_args(&s);
    int sixes = 0;

    const split_range all = {0, 64 * TILE};
    ck_assert_int_eq(split_count(&args, all), 12);
    for (int split = 0; split < 12; split++) {
        const int tokens = split_begin(&args, all, split + 1) - split_begin(&args, all, split);
        ck_assert(tokens == 5 * TILE || tokens == 6 * TILE);
        sixes += tokens == 6 * TILE;
    }
    ck_assert_int_eq(sixes, 4);
}
END_TEST

START_TEST(cuts_of_the_longest_sequence_stay_in_range)
{
    static const split_args cases[] = {
        {.num_splits = 0x7fffffff, .split_tile = 1},
        {.num_splits = 3, .split_tile = 1 << 20},
        {.num_splits = 1 << 20, .split_tile = TILE},
        {.split_tokens = 0x7fffffff},
        {.split_tokens = 0x40000000},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const split_range all = {0, 0x7fffffff};
        split_args args = cases[i];
        args.by_tile = clfd_make_divisor((uint32_t)args.split_tile);
        const int count = split_count(&args, all);
        ck_assert_int_ge(count, 1);
        ck_assert_int_eq(split_begin(&args, all, 0), 0);
        ck_assert_int_ge(split_begin(&args, all, count - 1), 0);
        ck_assert_int_lt(split_begin(&args, all, count - 1), 0x7fffffff);
        if (count < 0x7fffffff)
            ck_assert_int_eq(split_begin(&args, all, count), 0x7fffffff);
    }
}
END_TEST

/* ---- AUTO -------------------------------------------------------------------------------------------------------- */

START_TEST(auto_gives_each_compute_unit_its_groups_and_no_short_split)
{
    /* Two KV heads: 64 work-groups wanted are 32 splits of one sequence. */
    static const struct {
        uint32_t units, batch, expected_kv_len, splits;
    } cases[] = {
        {16, 1, 65536, 32},   {16, 2, 65536, 16}, {16, 32, 65536, 1}, {16, 33, 65536, 1},
        {16, 1000, 65536, 1}, {32, 1, 65536, 64}, {1, 1, 65536, 2},   {16, 3, 65536, 10},
        {16, 1, 1024, 4},     {16, 1, 1025, 5},   {16, 1, 256, 1},    {16, 1, 1, 1},
        {16, 1, 0, 32},       {16, 1, 8191, 32},  {16, 1, 7936, 31},  {132, 1, 65536, 256},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        clfd_caps caps = gpu;
        clfd_attention a = plain;
        caps.compute_units = cases[i].units;
        a.max_batch = cases[i].batch;
        a.max_kv_len = 65536;
        a.expected_kv_len = cases[i].expected_kv_len;
        const clfd_schedule s = made(&caps, &a, &tuning);
        ck_assert_msg(s.num_splits == cases[i].splits, "case %zu: %u splits instead of %u", i, s.num_splits,
                      cases[i].splits);
        ck_assert_uint_eq(s.grid_splits, cases[i].splits);
    }
}
END_TEST

/* A GPU with matrix units, and the row that it gets for f16 at 128 dims. */
static const clfd_caps matrix_gpu = {.type = CL_DEVICE_TYPE_GPU,
                                     .compute_units = 132,
                                     .max_work_group = 1024,
                                     .max_alloc_bytes = (uint64_t)1 << 40,
                                     .local_mem_bytes = 49152,
                                     .ptx = true,
                                     .matrix = true,
                                     .fused_merge = true};
static const clfd_tuning matrix_row = {.family = CLFD_FAMILY_MATRIX,
                                       .work_group = 128,
                                       .rows = 16,
                                       .slots = 3,
                                       .exchange = CLFD_EXCHANGE_PTX,
                                       .groups_per_unit = 1,
                                       .min_split = 64,
                                       .split_tile = 64};

static clfd_attention problem_of(uint32_t batch, uint32_t q_heads, uint32_t kv_heads, uint32_t kv_len)
{
    clfd_attention a = plain;

    a.max_batch = batch;
    a.num_q_heads = q_heads;
    a.num_kv_heads = kv_heads;
    a.head_dim = a.head_dim_v = 128;
    a.q_type = CLFD_TYPE_F16;
    a.max_kv_len = kv_len;
    return a;
}

/* Two work-groups of the matrix family hide what pages cost, where one does without. */
START_TEST(pages_get_two_work_groups_of_the_matrix_family_per_unit)
{
    clfd_attention a = problem_of(2, 32, 8, 65536);
    clfd_tuning row = matrix_row, lanes = row;

    lanes.family = CLFD_FAMILY_LANES;
    ck_assert_uint_eq(made(&matrix_gpu, &a, &row).num_splits, 8);
    a.paging = CLFD_PAGING_TABLE;
    a.page_size = 16;
    a.num_pages = 1 << 14;
    ck_assert_uint_eq(made(&matrix_gpu, &a, &row).num_splits, 16);
    ck_assert_uint_eq(made(&matrix_gpu, &a, &lanes).num_splits, 8);
    row.groups_per_unit = 3;
    ck_assert_uint_eq(made(&matrix_gpu, &a, &row).num_splits, 24);
}
END_TEST

/* Fused, AUTO gives up a few work-groups rather than the merge without a launch. */
START_TEST(auto_takes_no_more_splits_than_work_groups_merge)
{
    clfd_attention a = problem_of(1, 8, 1, 1 << 20);
    clfd_caps none = matrix_gpu;
    clfd_tuning two = matrix_row;

    none.fused_merge = false;
    two.groups_per_unit = 2;
    ck_assert_uint_eq(made(&none, &a, &matrix_row).num_splits, 132);
    ck_assert_uint_eq(made(&matrix_gpu, &a, &matrix_row).num_splits, 128);
    ck_assert(made(&matrix_gpu, &a, &matrix_row).fused);
    ck_assert_uint_eq(made(&matrix_gpu, &a, &two).num_splits, 264); /* half of them would leave the device idle */
    ck_assert(!made(&matrix_gpu, &a, &two).fused);
    a.paging = CLFD_PAGING_TABLE;
    a.page_size = 16;
    a.num_pages = 1 << 16;
    ck_assert_uint_eq(made(&none, &a, &matrix_row).num_splits, 264);
    ck_assert_uint_eq(made(&matrix_gpu, &a, &matrix_row).num_splits, 128);
}
END_TEST

/* Of the matrix family no more work-groups begin than live on the device together; others have one for each item. */
START_TEST(a_grid_of_the_matrix_family_is_bounded)
{
    const clfd_attention few = problem_of(32, 64, 8, 8192), some = problem_of(40, 32, 8, 1024);
    clfd_attention many = problem_of(128, 8, 8, 4096);
    clfd_tuning row = matrix_row;

    ck_assert_uint_eq(made(&matrix_gpu, &few, &row).max_groups, 0);
    ck_assert_uint_eq(made(&matrix_gpu, &few, &row).unit_groups, 1);
    ck_assert_uint_eq(made(&matrix_gpu, &some, &row).max_groups, 0);
    ck_assert_uint_eq(made(&matrix_gpu, &some, &row).unit_groups, 3);
    ck_assert_uint_eq(made(&matrix_gpu, &many, &row).max_groups, 4 * matrix_gpu.compute_units);
    ck_assert_uint_eq(made(&matrix_gpu, &many, &row).unit_groups, 4);
    many.q_len = 2; /* 16 rows */
    many.num_q_heads = 64;
    ck_assert_uint_eq(made(&matrix_gpu, &many, &row).max_groups, 2 * matrix_gpu.compute_units);
    ck_assert_uint_eq(made(&matrix_gpu, &many, &row).unit_groups, 2);
    row.groups_per_unit = 3;
    ck_assert_uint_eq(made(&matrix_gpu, &many, &row).max_groups, 3 * matrix_gpu.compute_units);
    row.family = CLFD_FAMILY_LANES;
    ck_assert_uint_eq(made(&matrix_gpu, &many, &row).max_groups, 0);
    ck_assert_uint_eq(made(&matrix_gpu, &many, &row).unit_groups, 3);
}
END_TEST

/* Each was within 4% of the best of COUNT 1, 2, 4 ... 128 on an H200 (2026-11-30). */
START_TEST(auto_gives_common_problems_the_splits_that_were_fastest)
{
    static const struct {
        uint32_t batch, q_heads, kv_heads, kv_len, splits, slots;
    } cases[] = {
        {1, 32, 8, 131072, 16, 3}, {16, 32, 8, 8192, 1, 3},  {32, 64, 8, 8192, 1, 2},  {64, 8, 8, 4096, 1, 2},
        {1, 32, 8, 4096, 16, 3},   {1, 32, 8, 1024, 16, 3},  {8, 32, 8, 2048, 2, 3},   {256, 16, 2, 256, 1, 2},
        {128, 16, 2, 512, 1, 2},   {64, 16, 2, 1024, 1, 3},  {32, 16, 2, 2048, 2, 3},  {16, 16, 2, 4096, 4, 3},
        {8, 16, 2, 8192, 8, 3},    {4, 16, 2, 16384, 16, 3}, {2, 16, 2, 32768, 32, 3}, {1, 16, 2, 65536, 64, 3},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const clfd_attention a = problem_of(cases[i].batch, cases[i].q_heads, cases[i].kv_heads, cases[i].kv_len);
        const clfd_schedule s = made(&matrix_gpu, &a, &matrix_row);
        ck_assert_msg(s.grid_splits == cases[i].splits && s.slots == cases[i].slots, "case %zu: %u splits, %u slots", i,
                      s.grid_splits, s.slots);
        ck_assert(s.fused != 0 || s.grid_splits == 1);
    }
}
END_TEST

/* What decides the order of summation may depend on what is asked for, and on the batch, but not on lengths. */
START_TEST(splits_merge_in_their_kernel_where_counters_and_work_groups_suffice)
{
    static const struct {
        clfd_split_policy policy;
        uint32_t size, batch, kv_heads, fused;
    } cases[] = {
        {CLFD_SPLIT_COUNT, 128, 1, 2, 2}, {CLFD_SPLIT_COUNT, 129, 1, 2, 0}, {CLFD_SPLIT_TOKENS, 64, 1, 8, 0},
        {CLFD_SPLIT_COUNT, 2, 512, 8, 2}, {CLFD_SPLIT_COUNT, 2, 513, 8, 0}, {CLFD_SPLIT_AUTO, 0, 1, 8, 2},
        {CLFD_SPLIT_COUNT, 17, 1, 8, 2},  {CLFD_SPLIT_COUNT, 17, 5, 8, 0}, /* more than live at once do not share */
        {CLFD_SPLIT_COUNT, 16, 5, 8, 2},  {CLFD_SPLIT_COUNT, 16, 20, 8, 0}, {CLFD_SPLIT_COUNT, 8, 20, 8, 2},
    };
    static const uint32_t lengths[] = {1, 4096, 1 << 20};
    clfd_caps none = matrix_gpu;

    none.fused_merge = false;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t n = 0; n < COUNT(lengths); n++) {
            clfd_attention a = problem_of(cases[i].batch, 4 * cases[i].kv_heads, cases[i].kv_heads, lengths[n]);
            a.split_policy = cases[i].policy;
            a.split_size = cases[i].size;
            const uint32_t fused = lengths[n] > 1 ? cases[i].fused : 0; /* of one key there is nothing to merge */
            ck_assert_msg(made(&matrix_gpu, &a, &matrix_row).fused == fused, "case %zu, %u keys", i, lengths[n]);
            ck_assert_uint_eq(made(&none, &a, &matrix_row).fused, 0);
            a.k_type = a.v_type = CLFD_TYPE_INT8;
            ck_assert_uint_eq(made(&matrix_gpu, &a, &matrix_row).fused, fused != 0);
        }
}
END_TEST

START_TEST(auto_counts_passes_as_work)
{
    clfd_attention one_pass = plain, two_passes = plain;

    one_pass.max_kv_len = two_passes.max_kv_len = 65536;
    two_passes.num_q_heads = 2 * 16;
    ck_assert_uint_eq(made(&gpu, &two_passes, &tuning).passes, 2);
    ck_assert_uint_eq(made(&gpu, &one_pass, &tuning).num_splits, 16);
    ck_assert_uint_eq(made(&gpu, &two_passes, &tuning).num_splits, 8);
}
END_TEST

/* ---- Rows and passes --------------------------------------------------------------------------------------------- */

START_TEST(blocks_cover_all_rows_none_is_empty_and_shared_heads_stay_together)
{
    for (uint32_t ratio = 1; ratio <= 128; ratio++)
        for (uint32_t q_len = 1; q_len <= 16; q_len++) {
            clfd_attention a = plain;
            const uint32_t rows = ratio * q_len, least = ratio < 8 ? ratio : 8;
            a.num_kv_heads = 1;
            a.num_q_heads = ratio;
            a.q_len = q_len;
            const clfd_schedule s = made(&gpu, &a, &tuning);
            EXPECT(s.ratio == ratio && s.num_rows == (uint64_t)2 * rows, "ratio %u q_len %u: ratio %u", ratio, q_len,
                   s.ratio);
            EXPECT(s.rows >= least && s.rows <= 8, "ratio %u q_len %u: R is %u", ratio, q_len, s.rows);
            EXPECT(s.rows * s.passes >= rows && s.rows * (s.passes - 1) < rows, "ratio %u q_len %u: %u passes of %u",
                   ratio, q_len, s.passes, s.rows);
            EXPECT(s.passes == (rows + 7) / 8, "ratio %u q_len %u: %u passes of %u", ratio, q_len, s.passes, s.rows);
        }
}
END_TEST

START_TEST(a_row_limit_of_the_tuning_row_is_kept)
{
    for (uint32_t limit = 1; limit <= 8; limit++) {
        clfd_tuning row = tuning;
        clfd_attention a = plain;
        row.rows = limit;
        a.num_kv_heads = 1;
        a.num_q_heads = 7;
        a.q_len = 3;
        const clfd_schedule s = made(&gpu, &a, &row);
        ck_assert_uint_le(s.rows, limit);
        ck_assert_uint_ge(s.rows, limit < 7 ? limit : 7);
        ck_assert_uint_ge(s.rows * s.passes, 21);
        ck_assert_uint_lt(s.rows * (s.passes - 1), 21);
    }
}
END_TEST

/* ---- Workspace --------------------------------------------------------------------------------------------------- */

START_TEST(one_split_needs_the_control_region_alone)
{
    const clfd_attention count = with_policy(CLFD_SPLIT_COUNT, 1);
    const clfd_attention tokens = with_policy(CLFD_SPLIT_TOKENS, 64 * TILE);
    const clfd_schedule of_count = made(&gpu, &count, &tuning), of_tokens = made(&gpu, &tokens, &tuning);

    ck_assert_uint_eq(of_count.workspace_bytes, CLFD_CONTROL_BYTES);
    ck_assert_uint_eq(of_tokens.workspace_bytes, CLFD_CONTROL_BYTES);
}
END_TEST

START_TEST(partial_states_follow_the_control_region_in_order_and_aligned)
{
    for (clfd_partial partial = CLFD_PARTIAL_LSE; partial <= CLFD_PARTIAL_MLO; partial++)
        for (uint32_t heads = 1; heads <= 5; heads++)
            for (uint32_t splits = 2; splits <= 9; splits++)
                for (uint32_t dim = 8; dim <= 576; dim += 8) {
                    clfd_attention a = with_policy(CLFD_SPLIT_COUNT, splits);
                    a.max_batch = 3;
                    a.num_q_heads = a.num_kv_heads = heads;
                    a.head_dim_v = dim;
                    a.partial = partial;
                    const clfd_schedule s = made(&gpu, &a, &tuning);
                    const uint64_t slots = (uint64_t)3 * heads * splits,
                                   num_stats = partial == CLFD_PARTIAL_MLO ? 2 : 1;
                    EXPECT(s.partials.o_offset >= CLFD_CONTROL_BYTES &&
                               s.partials.o_offset % CLFD_WORKSPACE_ALIGNMENT == 0,
                           "o starts at %llu", (unsigned long long)s.partials.o_offset);
                    EXPECT(s.partials.stats_offset >= s.partials.o_offset + slots * dim * 4 &&
                               s.partials.stats_offset % 4 == 0,
                           "statistics start at %llu", (unsigned long long)s.partials.stats_offset);
                    EXPECT(s.partials.stats_bytes >= slots * 4 && s.partials.stats_bytes % 4 == 0 &&
                               s.partials.stats_bytes < slots * 4 + 64,
                           "%llu bytes for %llu slots", (unsigned long long)s.partials.stats_bytes,
                           (unsigned long long)slots);
                    EXPECT(s.partials.list_offset == s.partials.stats_offset + num_stats * s.partials.stats_bytes,
                           "the list starts at %llu", (unsigned long long)s.partials.list_offset);
                    EXPECT(s.workspace_bytes == s.partials.list_offset + 64, "workspace of %llu bytes",
                           (unsigned long long)s.workspace_bytes);
                }
}
END_TEST

START_TEST(mlo_has_one_statistic_more_than_lse)
{
    clfd_attention a = with_policy(CLFD_SPLIT_COUNT, 4);
    const clfd_schedule lse = made(&gpu, &a, &tuning);

    a.partial = CLFD_PARTIAL_MLO;
    const clfd_schedule mlo = made(&gpu, &a, &tuning);
    /* 2 sequences x 8 heads x 4 splits */
    ck_assert_uint_eq(lse.partials.stats_bytes, 64 * sizeof(float));
    ck_assert_uint_eq(lse.workspace_bytes, CLFD_CONTROL_BYTES + 64 * 64 * sizeof(float) + 64 * sizeof(float) + 64);
    ck_assert_uint_eq(mlo.workspace_bytes, lse.workspace_bytes + 64 * sizeof(float));
    ck_assert_uint_eq(mlo.partials.stats_offset, lse.partials.stats_offset);
}
END_TEST

/* ---- Balanced schedule, shared sequences ------------------------------------------------------------------------- */

/* 64 work-groups wanted, or as many as cannot be shared by the blocks of two KV heads evenly; four tiles a share at least. */
START_TEST(balanced_shares_keep_the_device_busy_and_none_is_too_small)
{
    static const struct {
        uint32_t batch, kv_len, units, shares;
    } cases[] = {{2, 64 * TILE, 16, 32}, {64, 64 * TILE, 16, 32},  {2, 8 * TILE, 16, 4},
                 {2, 1, 16, 1},          {3, 5 * TILE, 16, 4},     {1024, 1, 16, 32},
                 {2, 64 * TILE, 1, 2},   {9, 64 * TILE, 132, 144}, {1024, 64 * TILE, 132, 264}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        clfd_caps caps = gpu;
        clfd_attention a = plain;
        caps.compute_units = cases[i].units;
        a.max_batch = cases[i].batch;
        a.max_kv_len = cases[i].kv_len;
        const clfd_schedule s = made(&caps, &a, &tuning);
        ck_assert_msg(s.num_shares == cases[i].shares, "case %zu: %u shares", i, s.num_shares);
        ck_assert_uint_eq(s.num_groups, 2 * s.num_shares);
        ck_assert_uint_eq(s.min_tiles, MIN_SPLIT / TILE);
    }
}
END_TEST

/* However many blocks there are: enough work-groups for the device, or twice as many. */
START_TEST(balanced_shares_of_any_number_of_blocks_fill_the_device)
{
    enum { PLACES = COMPUTE_UNITS * GROUPS };

    for (uint32_t heads = 1; heads <= 200; heads++) {
        clfd_attention a = plain;
        a.num_q_heads = a.num_kv_heads = heads;
        a.max_batch = 64;
        const clfd_schedule s = made(&gpu, &a, &tuning);
        const uint32_t rest = s.num_groups % PLACES;
        ck_assert_uint_eq(s.num_groups, s.num_shares * heads);
        ck_assert_msg(s.num_groups >= PLACES * 3 / 4, "%u heads: %u groups", heads, s.num_groups);
        ck_assert_msg(rest == 0 || s.num_groups >= 2 * PLACES || PLACES - s.num_groups < heads, "%u heads: %u groups",
                      heads, s.num_groups);
    }
}
END_TEST

START_TEST(only_auto_with_several_sequences_of_their_own_is_balanced)
{
    clfd_attention cases[] = {
        with_policy(CLFD_SPLIT_COUNT, 4), with_policy(CLFD_SPLIT_TOKENS, TILE), plain, plain, plain, plain};

    cases[2].max_batch = 1;
    cases[3].max_batch = 1025;
    cases[4].shared_kv = 1;
    cases[5].max_batch = 1000;
    cases[5].max_kv_len = INT32_MAX; /* more tiles than 2^30 */
    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_uint_eq(made(&gpu, &cases[i], &tuning).num_groups, 0);
    ck_assert_uint_gt(made(&gpu, &plain, &tuning).num_groups, 0);
}
END_TEST

/* Two partial states of a block for each group, then the list of two integers for each sequence. */
START_TEST(balanced_shares_of_plain_types_merge_in_their_kernel_where_counters_suffice)
{
    static const struct {
        clfd_type k_type;
        uint32_t batch;
        bool ptx;
        uint32_t fused;
    } cases[] = {{CLFD_TYPE_F16, 64, true, 2},
                 {CLFD_TYPE_F16, 64, false, 0},
                 {CLFD_TYPE_INT8, 64, true, 0},
                 {CLFD_TYPE_F16, 512, true, 2},
                 {CLFD_TYPE_F16, 513, true, 0}}; /* 8 heads of 4 warps each in 16384 counters */

    for (size_t i = 0; i < COUNT(cases); i++) {
        clfd_attention a = problem_of(cases[i].batch, 32, 8, 4096);
        clfd_caps caps = matrix_gpu;
        a.k_type = cases[i].k_type;
        caps.fused_merge = cases[i].ptx;
        const clfd_schedule s = made(&caps, &a, &matrix_row);
        ck_assert_uint_gt(s.num_groups, 0);
        ck_assert_msg(s.balanced_fused == cases[i].fused, "case %zu", i);
    }
}
END_TEST

START_TEST(a_balanced_workspace_is_bounded_by_the_groups)
{
    clfd_attention a = plain;
    a.max_batch = 1000;
    const clfd_schedule s = made(&gpu, &a, &tuning);
    const uint64_t slots = (uint64_t)s.num_groups * 2 * s.heads * s.rows, list_bytes = 1000 * 2 * sizeof(int32_t);

    ck_assert_uint_eq(s.rows, 4);
    ck_assert_uint_ge(s.balanced.o_offset, CLFD_CONTROL_BYTES);
    ck_assert_uint_ge(s.balanced.stats_offset, s.balanced.o_offset + slots * a.head_dim_v * sizeof(float));
    ck_assert_uint_ge(s.balanced.list_offset, s.balanced.stats_offset + slots * sizeof(float));
    ck_assert_uint_ge(s.workspace_bytes, s.balanced.list_offset + list_bytes);
    ck_assert_uint_lt(s.workspace_bytes, s.balanced.list_offset + list_bytes + 64);
}
END_TEST

/* The query rows of the whole batch fold into blocks of the tuning row's size, whatever the batch. */
START_TEST(rows_of_a_shared_sequence_come_from_the_whole_batch)
{
    static const uint32_t batches[] = {1, 2, 3, 64};

    for (size_t i = 0; i < COUNT(batches); i++) {
        clfd_attention a = plain;
        a.shared_kv = 1;
        a.max_batch = batches[i];
        const clfd_schedule s = made(&gpu, &a, &tuning);
        ck_assert_uint_eq(s.rows, 8);
        ck_assert_uint_eq(s.passes, (batches[i] * 4 + 7) / 8);
        clfd_complete_attention(&a, &a, NULL);
        ck_assert_uint_eq(clfd_schedule_passes(&s, &a, 1), 1);
    }
}
END_TEST

/* ---- Limits ------------------------------------------------------------------------------------------------------ */

static void expect_overflow(const clfd_caps *caps, const clfd_attention *a, const char *value, const char *rule)
{
    clfd_schedule s, untouched;

    set_up();
    memset(&s, 0x5A, sizeof s);
    memcpy(&untouched, &s, sizeof s);
    ck_assert_int_eq(make(caps, a, &tuning, &s), CLFD_ERROR_OVERFLOW);
    ck_assert_mem_eq(&s, &untouched, sizeof s);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_msg(strstr(heard.last[CLFD_LOG_ERROR], value) != NULL, "%s", heard.last[CLFD_LOG_ERROR]);
    ck_assert_msg(strstr(heard.last[CLFD_LOG_ERROR], rule) != NULL, "%s", heard.last[CLFD_LOG_ERROR]);
}

START_TEST(a_grid_has_at_most_2_to_the_31_minus_1_work_groups)
{
    clfd_attention a = with_policy(CLFD_SPLIT_COUNT, 1);

    a.max_batch = 1 << 20;
    a.num_q_heads = a.num_kv_heads = 2047;
    ck_assert_uint_eq(made(&gpu, &a, &tuning).num_rows, (uint64_t)2047 << 20);
    a.num_q_heads = a.num_kv_heads = 2048;
    expect_overflow(&gpu, &a, "2147483648 blocks of rows times 1 splits", "at most 2147483647 work-groups");
    /* The merge has a work-group per row, of which a block holds several. */
    a.num_q_heads = 4096;
    a.num_kv_heads = 512;
    expect_overflow(&gpu, &a, "536870912 blocks", "at most 2147483647 work-groups");
}
END_TEST

START_TEST(splits_count_towards_the_grid)
{
    clfd_attention a = with_policy(CLFD_SPLIT_TOKENS, 1);

    a.max_batch = 1;
    a.num_q_heads = a.num_kv_heads = 2;
    a.max_kv_len = 0x7fffffff;
    expect_overflow(&gpu, &a, "2 blocks of rows times 2147483647 splits", "at most 2147483647 work-groups");
}
END_TEST

START_TEST(a_workspace_that_the_device_does_not_allocate_is_refused)
{
    const clfd_attention a = with_policy(CLFD_SPLIT_COUNT, 4);
    clfd_caps caps = gpu;
    const uint64_t needed = made(&caps, &a, &tuning).workspace_bytes;
    char value[64];

    caps.max_alloc_bytes = needed;
    ck_assert_uint_eq(made(&caps, &a, &tuning).workspace_bytes, needed);
    caps.max_alloc_bytes = needed - 1;
    snprintf(value, sizeof value, "needs %llu bytes", (unsigned long long)needed);
    expect_overflow(&caps, &a, value, "allocates at most");
}
END_TEST

START_TEST(the_largest_grid_has_a_workspace_that_does_not_wrap)
{
    clfd_attention a = with_policy(CLFD_SPLIT_TOKENS, 1);
    clfd_caps caps = gpu;

    /* A block of 8 rows of 576 dims for each of 2^31 - 1 work-groups. */
    a.max_batch = 1;
    a.num_q_heads = 8;
    a.num_kv_heads = 1;
    a.head_dim = a.head_dim_v = 576;
    a.max_kv_len = 0x7fffffff;
    caps.max_alloc_bytes = UINT64_MAX;
    ck_assert_uint_gt(made(&caps, &a, &tuning).workspace_bytes, (uint64_t)0x7fffffff * 8 * 577 * 4);
    expect_overflow(&gpu, &a, "2147483647 splits", "allocates at most 4294967296");
}
END_TEST

/* ---- The merge's work-group -------------------------------------------------------------------------------------- */

START_TEST(a_merge_gets_eight_items_per_four_dims_within_the_devices_limit)
{
    static const struct {
        cl_device_type type;
        uint32_t limit, dim, work_group;
    } cases[] = {
        {CL_DEVICE_TYPE_GPU, 1024, 8, 16},    {CL_DEVICE_TYPE_GPU, 1024, 64, 128},
        {CL_DEVICE_TYPE_GPU, 1024, 72, 128},  {CL_DEVICE_TYPE_GPU, 1024, 128, 256},
        {CL_DEVICE_TYPE_GPU, 1024, 576, 256}, {CL_DEVICE_TYPE_GPU, 64, 576, 64},
        {CL_DEVICE_TYPE_GPU, 100, 128, 64},   {CL_DEVICE_TYPE_GPU, 1, 128, 1},
        {CL_DEVICE_TYPE_CPU, 4096, 128, 1},   {CL_DEVICE_TYPE_ACCELERATOR, 64, 128, 1},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const clfd_caps caps = {.type = cases[i].type, .max_work_group = cases[i].limit};
        ck_assert_msg(clfd_merge_work_group(&caps, cases[i].dim) == cases[i].work_group, "case %zu: %u instead of %u",
                      i, clfd_merge_work_group(&caps, cases[i].dim), cases[i].work_group);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        count_gives_as_many_splits_as_asked_and_never_more_than_tiles,
        count_of_zero_is_auto,
        tokens_gives_a_split_to_every_started_chunk,
        window_bounds_the_splits_of_a_sequence,
        longest_lengths_have_their_splits_without_overflow,
        splits_own_every_token_once_and_none_is_empty,
        sixty_four_tiles_in_twelve_splits_are_five_or_six_each,
        cuts_of_the_longest_sequence_stay_in_range,
        auto_gives_each_compute_unit_its_groups_and_no_short_split,
        pages_get_two_work_groups_of_the_matrix_family_per_unit,
        auto_takes_no_more_splits_than_work_groups_merge,
        a_grid_of_the_matrix_family_is_bounded,
        auto_gives_common_problems_the_splits_that_were_fastest,
        splits_merge_in_their_kernel_where_counters_and_work_groups_suffice,
        auto_counts_passes_as_work,
        blocks_cover_all_rows_none_is_empty_and_shared_heads_stay_together,
        a_row_limit_of_the_tuning_row_is_kept,
        one_split_needs_the_control_region_alone,
        partial_states_follow_the_control_region_in_order_and_aligned,
        mlo_has_one_statistic_more_than_lse,
        balanced_shares_keep_the_device_busy_and_none_is_too_small,
        balanced_shares_of_any_number_of_blocks_fill_the_device,
        only_auto_with_several_sequences_of_their_own_is_balanced,
        balanced_shares_of_plain_types_merge_in_their_kernel_where_counters_suffice,
        a_balanced_workspace_is_bounded_by_the_groups,
        rows_of_a_shared_sequence_come_from_the_whole_batch,
        a_grid_has_at_most_2_to_the_31_minus_1_work_groups,
        splits_count_towards_the_grid,
        a_workspace_that_the_device_does_not_allocate_is_refused,
        the_largest_grid_has_a_workspace_that_does_not_wrap,
        a_merge_gets_eight_items_per_four_dims_within_the_devices_limit,
    };
    return run_suite_around("schedule", tests, COUNT(tests), set_up, NULL);
}

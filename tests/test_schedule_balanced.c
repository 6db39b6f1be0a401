/* The balanced schedule (cl/schedule.cl): under AUTO, with several sequences whose lengths are on the device, a fixed number
 * of work-groups shares all tiles evenly. Tiles of a few tokens and many groups, so that short sequences are cut up too;
 * neither is compiled in. */
#include "run/context.h"
#include "run/plan.h"
#include "support/option_cases.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { BATCH = 8, LONG = 3000, TUNING_BYTES = 160 };

/* Tiles and groups per compute unit. */
typedef struct shares {
    uint32_t tile, groups;
} shares;

static const shares fine = {4, 16}, matrix = {64, 2}; /* of the matrix family, whose steps are as long */

static attention_problem balanced_case(clfd_attention set)
{
    attention_problem p = option_case((clfd_attention){.max_batch = BATCH});

    p.attention.split_policy = CLFD_SPLIT_AUTO;
    p.attention.split_size = 0;
    set_options(&p.attention, &set);
    return p;
}

/* attention_verify of a plan that has the balanced schedule and a word in its description. */
static void verify_plan(const attention_problem *problem, const char *word)
{
    attention_call *const call = attention_open(problem);

    ck_assert_ptr_nonnull(call->plan->balanced.handle);
    ck_assert_ptr_nonnull(strstr(clfd_plan_describe(call->plan), word));
    attention_run(call);
    attention_expect_reference(call);
    attention_close(call);
}

/* The same of a problem in every form of the families, or in the first and the last one. */
static void verify_balanced_in(const attention_problem *problem, shares s, size_t step)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f += step) {
        char tuning[TUNING_BYTES];
        attention_problem p = in_form(problem, f);
        const bool own = p.attention.tuning == NULL;
        const shares by = own && test_session_get()->context->caps.matrix ? matrix : s;
        snprintf(tuning, sizeof tuning, "%s groups=%u min_split=%u split_tile=%u", own ? "" : p.attention.tuning,
                 by.groups, by.tile, by.tile);
        p.attention.tuning = tuning;
        verify_plan(&p, " balanced");
    }
}

static void verify_balanced(const attention_problem *problem, shares s) { verify_balanced_in(problem, s, 1); }

static void verify_balanced_choice(const attention_problem *problem, shares s)
{
    verify_balanced_in(problem, s, NUM_DECODE_FORMS - 1);
}

static const int32_t ragged[BATCH] = {0, 33, 200, 1, 0, 97, 64, 0};

/* ---- Lengths ----------------------------------------------------------------------------------------------------- */

START_TEST(ragged_lengths_match_the_reference_whatever_the_shares)
{
    static const int32_t lengths[][BATCH] = {
        {0, 33, 200, 1, 0, 97, 64, 0},
        {0, 0, 0, 0, 0, 0, 0, 0},
        {200, 200, 200, 200, 200, 200, 200, 200},
        {1, 1, 1, 1, 1, 1, 1, 1},
        {0, 0, 0, 0, 0, 0, 0, 200},
        {200, 0, 0, 0, 0, 0, 0, 0},
        {-1, INT32_MIN, INT32_MAX, 201, 3, 5, 7, 11},
    };
    static const shares all[] = {{4, 16}, {1, 1}, {8, 2}, {64, 4}, {2, 64}, {256, 7}};

    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t s = 0; s < COUNT(all); s++) {
            attention_problem p = balanced_case((clfd_attention){0});
            p.kv_lens = lengths[i];
            p.seed = i;
            verify_balanced(&p, all[s]);
        }
}
END_TEST

START_TEST(one_giant_among_tiny_sequences_matches_the_reference)
{
    static const int32_t lengths[][BATCH] = {{1, 2, 0, LONG, 3, 0, 2, 1}, {LONG, 1, 1, 1, 1, 1, 1, 1}};
    static const shares all[] = {{64, 4}, {16, 33}, {4, 3}};

    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t s = 0; s < COUNT(all); s++) {
            attention_problem p = balanced_case((clfd_attention){.max_kv_len = LONG});
            p.kv_lens = lengths[i];
            verify_balanced(&p, all[s]);
        }
}
END_TEST

/* Lengths are added up by as many work-items as there are parts of the list, or all that there are: batches of less
 * than a length each, of one each, and of some. */
START_TEST(work_groups_of_fewer_items_than_parts_of_the_list_match_the_reference)
{
    static const uint32_t batches[] = {7, 8, 9, 16, 17, 40};
    int32_t lengths[40];

    for (size_t i = 0; i < COUNT(batches); i++) {
        attention_problem p = balanced_case((clfd_attention){.max_batch = batches[i]});
        for (uint32_t b = 0; b < batches[i]; b++)
            lengths[b] = (int32_t)(b * 37 % 101 * (b % 3));
        p.kv_lens = lengths;
        p.attention.tuning = "family=decode_lanes wg=8 lanes=8 unroll=1 parts=1 ahead=0 exchange=local groups=16 "
                             "min_split=4 split_tile=4";
        verify_plan(&p, " wg=8 ");
    }
}
END_TEST

START_TEST(batches_below_the_plans_match_the_reference)
{
    for (uint32_t batch = 1; batch <= BATCH; batch++) {
        attention_problem p = balanced_case((clfd_attention){0});
        p.batch = batch;
        p.kv_lens = ragged;
        verify_balanced(&p, fine);
        p.kv_len_bound = 90;
        verify_balanced(&p, fine);
    }
}
END_TEST

/* Blocks of several heads, in turns of one or of all of them. */
START_TEST(kv_heads_in_turns_match_the_reference)
{
    static const uint32_t heads[] = {1, 3, 6, 16, 17};

    for (size_t i = 0; i < COUNT(heads); i++) {
        attention_problem p =
            balanced_case((clfd_attention){.num_kv_heads = heads[i], .num_q_heads = 2 * heads[i], .max_kv_len = 100});
        p.kv_lens = (const int32_t[BATCH]){0, 33, 100, 1, 0, 97, 64, 0};
        verify_balanced(&p, fine);
        p.attention.kv_layout = CLFD_LAYOUT_BHSD;
        verify_balanced(&p, fine);
    }
}
END_TEST

/* 16 heads per KV head and 3 queries are 6 blocks of 8 rows; of one KV head and of two. */
START_TEST(several_passes_match_the_reference)
{
    for (uint32_t heads = 1; heads <= 2; heads++) {
        attention_problem p = balanced_case((clfd_attention){.num_kv_heads = heads, .num_q_heads = 16 * heads});
        p.kv_lens = ragged;
        verify_balanced_choice(&p, fine);
    }
}
END_TEST

/* ---- Options ----------------------------------------------------------------------------------------------------- */

START_TEST(options_match_the_reference)
{
    static const clfd_attention options[] = {
        {.partial = CLFD_PARTIAL_MLO},
        {.sinks = 1, .kv_start = 1},
        {.window = 40, .causal = 1},
        {.paging = CLFD_PAGING_TABLE, .page_size = 16, .cache_batch_idx = 1},
        {.k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_Q8_0, .mask = CLFD_MASK_BOOL},
    };

    for (size_t i = 0; i < COUNT(options); i++) {
        attention_problem p = balanced_case(options[i]);
        p.kv_lens = ragged;
        p.seed = i;
        verify_balanced_choice(&p, fine);
        p.no_lse = true;
        verify_balanced_choice(&p, (shares){16, 3});
    }
}
END_TEST

/* Windows anywhere: sequences whose windows begin at or behind their end have a block, and no key. */
START_TEST(windows_and_positions_of_any_value_match_the_reference)
{
    static const int32_t positions[BATCH][3] = {{0, 1, 2},   {INT32_MAX, 5, 6}, {199, 0, 100}, {INT32_MIN, -1, 0},
                                                {7, -50, 3}, {500, 600, 700},   {63, 62, 61},  {0, 0, 0}};

    attention_problem p = balanced_case((clfd_attention){.window = 40, .query_positions = 1, .sinks = 1});
    p.kv_lens = ragged;
    p.query_positions = positions[0];
    verify_balanced_choice(&p, fine);
    verify_balanced_choice(&p, (shares){64, 4});
}
END_TEST

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* Calls of other lengths through the same workspace leave nothing behind. */
START_TEST(a_call_gives_the_same_bits_every_time)
{
    static const int32_t other[BATCH] = {200, 1, 0, 150, 200, 3, 64, 99};
    cl_command_queue queue = test_session_get()->queue;

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        attention_problem all = balanced_case((clfd_attention){0});
        all.kv_lens = ragged;
        const attention_problem p = in_form(&all, f);
        attention_call *const first = attention_open(&p), *const again = attention_open(&p);
        attention_run(first);
        attention_upload(again);
        for (int turn = 0; turn < 6; turn++) {
            const int32_t *const lens = turn % 2 == 0 ? other : ragged;
            ck_assert_int_eq(clEnqueueWriteBuffer(queue, again->buffers.kv_lens.mem, CL_TRUE,
                                                  again->buffers.kv_lens.offset, sizeof ragged, lens, 0, NULL, NULL),
                             CL_SUCCESS);
            ck_assert_int_eq(clfd_enqueue_decode(again->plan, queue, &again->buffers, 0, NULL, NULL), CL_SUCCESS);
        }
        attention_read(again);
        EXPECT(attention_same_bits(first, again), "a call between two others changes a bit in %s",
               clfd_plan_describe(first->plan));
        attention_close(first);
        attention_close(again);
    }
}
END_TEST

/* A plan that has the schedule, called without kv_lens: all lengths are equal, and the host cuts them. */
START_TEST(calls_without_lengths_match_the_reference)
{
    attention_problem p = balanced_case((clfd_attention){0});

    p.kv_lens = NULL;
    p.kv_len_bound = 130;
    verify_balanced(&p, fine);
    p.batch = 3;
    verify_balanced(&p, (shares){64, 4});
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        ragged_lengths_match_the_reference_whatever_the_shares,
        one_giant_among_tiny_sequences_matches_the_reference,
        work_groups_of_fewer_items_than_parts_of_the_list_match_the_reference,
        batches_below_the_plans_match_the_reference,
        kv_heads_in_turns_match_the_reference,
        several_passes_match_the_reference,
        options_match_the_reference,
        windows_and_positions_of_any_value_match_the_reference,
        a_call_gives_the_same_bits_every_time,
        calls_without_lengths_match_the_reference,
    };
    const int result = run_suite("schedule_balanced", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

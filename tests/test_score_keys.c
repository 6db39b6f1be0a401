/* Which keys a query may see (cl/score.cl, cl/decode.cl): causal, window, kv_start and query_positions, alone and
 * together. Keys that no query of a sequence sees hold poison, so do their biases. */
#include "support/option_cases.h"
#include "support/suite.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

START_TEST(each_option_alone_matches_the_reference)
{
    static const clfd_attention options[] = {
        {.window = 40},           {.kv_start = 1},          {.query_positions = 1, .causal = 1},
        {.mask = CLFD_MASK_BOOL}, {.mask = CLFD_MASK_TREE},
    };

    for (size_t i = 0; i < COUNT(options); i++) {
        const attention_problem p = option_case(options[i]);
        verify_forms_and_splits(&p);
    }
}
END_TEST

START_TEST(pairs_of_options_match_the_reference)
{
    static const clfd_attention options[] = {
        {.causal = 1, .window = 7},
        {.window = 40, .kv_start = 1, .query_positions = 1},
    };

    for (size_t i = 0; i < COUNT(options); i++) {
        const attention_problem p = option_case(options[i]);
        verify_forms_and_splits(&p);
    }
}
END_TEST

/* ---- Window ------------------------------------------------------------------------------------------------------ */

START_TEST(windows_of_every_size_under_every_policy_match_the_reference)
{
    static const uint32_t windows[] = {1, 2, 3, 31, 32, 33, 63, 64, 65, 129, 199, 200, INT32_MAX};
    static const struct {
        clfd_split_policy policy;
        uint32_t size;
    } policies[] = {{CLFD_SPLIT_AUTO, 0},
                    {CLFD_SPLIT_COUNT, 1},
                    {CLFD_SPLIT_COUNT, 3},
                    {CLFD_SPLIT_TOKENS, 16},
                    {CLFD_SPLIT_TOKENS, 37}};

    for (size_t i = 0; i < COUNT(windows); i++)
        for (size_t k = 0; k < COUNT(policies); k++) {
            attention_problem p = option_case((clfd_attention){.window = windows[i]});
            p.attention.split_policy = policies[k].policy;
            p.attention.split_size = policies[k].size;
            p.seed = i;
            verify_forms(&p);
        }
}
END_TEST

/* A window that is shorter than the queries are apart: none of them sees a key of another one's. */
START_TEST(windows_of_sixteen_queries_match_the_reference)
{
    static const uint32_t windows[] = {1, 5, 16, 17, 100};
    static const int32_t lens[] = {0, 1, 15, 16, 17, 50, 130, 200};

    for (size_t i = 0; i < COUNT(windows); i++) {
        attention_problem p =
            option_case((clfd_attention){.max_batch = COUNT(lens), .q_len = 16, .causal = 1, .window = windows[i]});
        p.kv_lens = lens;
        p.seed = i;
        verify_forms(&p);
    }
}
END_TEST

/* ---- Positions and starts ---------------------------------------------------------------------------------------- */

/* Positions anywhere, in any order, with the window that they move and the keys that causal cuts off. */
static const int32_t far_positions[5][3] = {
    {0, -1, 5}, {INT32_MAX, INT32_MIN, 0}, {INT32_MIN, INT32_MAX, 17}, {96, 10, 60}, {INT32_MAX, 129, INT32_MAX - 1}};

START_TEST(positions_of_any_value_match_the_reference)
{
    static const uint32_t windows[] = {1, 8, 64, INT32_MAX};

    for (size_t i = 0; i < COUNT(windows); i++) {
        attention_problem p = option_case((clfd_attention){.causal = 1, .window = windows[i], .query_positions = 1});
        p.query_positions = far_positions[0];
        verify_forms_and_splits(&p);
    }
}
END_TEST

/* Without causal a query far back in the sequence sees all keys behind its window, more than the window holds. */
START_TEST(a_window_far_from_the_end_shows_everything_behind_it)
{
    static const int32_t positions[5] = {0, INT32_MIN, 0, 40, INT32_MAX};
    static const struct {
        clfd_split_policy policy;
        uint32_t size;
    } policies[] = {{CLFD_SPLIT_COUNT, 3}, {CLFD_SPLIT_TOKENS, 8}, {CLFD_SPLIT_AUTO, 0}};

    for (size_t k = 0; k < COUNT(policies); k++) {
        attention_problem p = option_case((clfd_attention){.q_len = 1, .window = 16, .query_positions = 1});
        p.query_positions = positions;
        p.attention.split_policy = policies[k].policy;
        p.attention.split_size = policies[k].size;
        verify_forms(&p);
    }
}
END_TEST

START_TEST(starts_of_any_value_match_the_reference)
{
    static const int32_t starts[][5] = {
        {-5, 0, 1, 31, 32}, {INT32_MIN, 1, 33, 96, 129}, {0, 2, INT32_MAX, 97, 130}, {1, INT32_MAX, 34, 64, 65}};

    for (size_t i = 0; i < COUNT(starts); i++) {
        attention_problem p = option_case((clfd_attention){.kv_start = 1});
        p.kv_start = starts[i];
        p.seed = i;
        verify_forms_and_splits(&p);
    }
}
END_TEST

/* ---- Poison ------------------------------------------------------------------------------------------------------ */

START_TEST(what_no_row_sees_changes_no_bit)
{
    static const clfd_attention options[] = {
        {.window = 40, .kv_start = 1, .query_positions = 1},
        {.causal = 1, .window = 50, .mask = CLFD_MASK_BOOL, .bias_type = CLFD_TYPE_F32},
    };

    for (size_t i = 0; i < COUNT(options); i++)
        for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
            const attention_problem all = option_case(options[i]), p = in_form(&all, f);
            expect_poison_unused(&p);
        }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_option_alone_matches_the_reference,
        pairs_of_options_match_the_reference,
        windows_of_every_size_under_every_policy_match_the_reference,
        windows_of_sixteen_queries_match_the_reference,
        positions_of_any_value_match_the_reference,
        a_window_far_from_the_end_shows_everything_behind_it,
        starts_of_any_value_match_the_reference,
        what_no_row_sees_changes_no_bit,
    };
    const int result = run_suite("score_keys", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

/* The vector family: what depends on the call, in the form that this device gets, in others, and in that of the reference
 * row. Blocks of a fixed number of rows, so that few programs serve nearly all of it. */
#include "support/decode_cases.h"
#include "support/suite.h"

static const decode_family chosen = {.tuning = "family=decode_vector rows=3", .ratio = 3};
static const decode_family reference_row = {.tuning = "family=decode_vector width=8 tile=1 prefetch=0 rows=2",
                                            .ratio = 2};

START_TEST(lengths_round_tiles_and_splits_match_the_reference) { verify_lengths(&chosen); }
END_TEST

START_TEST(scores_far_beyond_the_digits_of_a_float_keep_their_weights_in_range) { verify_coarse_scores(&chosen); }
END_TEST
START_TEST(bound_and_batch_of_a_call_match_the_reference) { verify_bounds(&chosen); }
END_TEST
START_TEST(layouts_match_the_reference) { verify_layouts(&chosen); }
END_TEST
START_TEST(unaligned_rows_match_the_reference) { verify_unaligned(&chosen); }
END_TEST
START_TEST(kv_heads_match_the_reference) { verify_kv_heads(&chosen); }
END_TEST
START_TEST(queries_match_the_reference) { verify_queries(&chosen); }
END_TEST

/* Register blocks whose rows see different keys. */
START_TEST(eight_queries_in_one_block_match_the_reference)
{
    static const decode_family eight = {.tuning = "family=decode_vector", .ratio = 1};
    static const int32_t lens[] = {0, 1, 7, 8, 9, 15, 16, 17, 64, 100};
    attention_problem p = decode_case(&eight);

    p.attention.max_batch = sizeof lens / sizeof lens[0];
    p.attention.q_len = 16;
    p.attention.causal = 1;
    p.kv_lens = lens;
    attention_verify(&p);
}
END_TEST

START_TEST(reference_row_matches_the_reference)
{
    verify_lengths(&reference_row);
    verify_layouts(&reference_row);
    verify_queries(&reference_row);
}
END_TEST

START_TEST(widths_tiles_and_turns_match_the_reference)
{
    static const decode_family variants[] = {
        {.tuning = "family=decode_vector width=16 tile=16 rows=4", .ratio = 4},
        {.tuning = "family=decode_vector width=16 tile=32 heads=2 rows=8", .ratio = 8},
        {.tuning = "family=decode_vector width=16 tile=64 heads=3 rows=7", .ratio = 7},
        {.tuning = "family=decode_vector width=8 tile=32 heads=1 prefetch=0", .ratio = 1},
        {.tuning = "family=decode_vector width=8 tile=256 heads=64 rows=2", .ratio = 2},
    };

    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        verify_lengths(&variants[i]);
        verify_kv_heads(&variants[i]);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        lengths_round_tiles_and_splits_match_the_reference,
        scores_far_beyond_the_digits_of_a_float_keep_their_weights_in_range,
        bound_and_batch_of_a_call_match_the_reference,
        layouts_match_the_reference,
        unaligned_rows_match_the_reference,
        kv_heads_match_the_reference,
        queries_match_the_reference,
        eight_queries_in_one_block_match_the_reference,
        reference_row_matches_the_reference,
        widths_tiles_and_turns_match_the_reference,
    };
    const int result = run_suite("decode_vector", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

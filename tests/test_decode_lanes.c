/* The lanes family: what depends on the call. Blocks of two rows, so that one program serves nearly all of it. */
#include "support/decode_cases.h"
#include "support/suite.h"

static const decode_family lanes = {.tuning = "family=decode_lanes rows=2", .ratio = 2, .choice = true};

START_TEST(lengths_round_tiles_and_splits_match_the_reference) { verify_lengths(&lanes); }
END_TEST

START_TEST(scores_far_beyond_the_digits_of_a_float_keep_their_weights_in_range) { verify_coarse_scores(&lanes); }
END_TEST
START_TEST(bound_and_batch_of_a_call_match_the_reference) { verify_bounds(&lanes); }
END_TEST
START_TEST(layouts_match_the_reference) { verify_layouts(&lanes); }
END_TEST
START_TEST(unaligned_rows_match_the_reference) { verify_unaligned(&lanes); }
END_TEST
START_TEST(queries_match_the_reference) { verify_queries(&lanes); }
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        lengths_round_tiles_and_splits_match_the_reference,
        scores_far_beyond_the_digits_of_a_float_keep_their_weights_in_range,
        bound_and_batch_of_a_call_match_the_reference,
        layouts_match_the_reference,
        unaligned_rows_match_the_reference,
        queries_match_the_reference,
    };
    const int result = run_suite("decode_lanes", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

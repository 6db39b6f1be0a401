/* The matrix family, where there are no matrix units in the emulation by local memory. Two warps, so that they meet. */
#include "support/decode_cases.h"
#include "support/suite.h"

static const decode_family matrix = {.tuning = "family=decode_matrix", .ratio = 2, .choice = true};

START_TEST(lengths_round_tiles_and_splits_match_the_reference) { verify_lengths(&matrix); }
END_TEST
START_TEST(bound_and_batch_of_a_call_match_the_reference) { verify_bounds(&matrix); }
END_TEST
START_TEST(queries_match_the_reference) { verify_queries(&matrix); }
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        lengths_round_tiles_and_splits_match_the_reference,
        bound_and_batch_of_a_call_match_the_reference,
        queries_match_the_reference,
    };
    const int result = run_suite("decode_matrix", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

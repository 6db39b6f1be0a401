/* The vector family, as this device gets it and with the numbers of the reference row. */
#include "support/decode_cases.h"
#include "support/suite.h"

static const decode_family chosen = {.tuning = "family=decode_vector", .ratio = 3};
/* The vectors of processors with wider registers; others split them. */
static const decode_family wide = {.tuning = "family=decode_vector width=16 tile=16", .ratio = 3};
static const decode_family reference_row = {.tuning = "family=decode_vector width=8 tile=1 prefetch=0", .ratio = 2};

START_TEST(lengths_round_tiles_and_splits_match_the_reference) { verify_lengths(&chosen); }
END_TEST
START_TEST(bound_and_batch_of_a_call_match_the_reference) { verify_bounds(&chosen); }
END_TEST
START_TEST(layouts_match_the_reference) { verify_layouts(&chosen); }
END_TEST
START_TEST(unaligned_rows_match_the_reference) { verify_unaligned(&chosen); }
END_TEST
START_TEST(queries_match_the_reference) { verify_queries(&chosen); }
END_TEST
START_TEST(dims_match_the_reference) { verify_dims(&chosen); }
END_TEST
START_TEST(types_and_partial_formats_match_the_reference) { verify_types(&chosen); }
END_TEST
START_TEST(row_blocks_match_the_reference) { verify_row_blocks(&chosen); }
END_TEST
START_TEST(head_ratios_match_the_reference) { verify_ratios(&chosen); }
END_TEST

START_TEST(wide_vectors_match_the_reference) { verify_lengths(&wide); }
END_TEST

START_TEST(reference_row_matches_the_reference)
{
    verify_lengths(&reference_row);
    verify_layouts(&reference_row);
    verify_queries(&reference_row);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        lengths_round_tiles_and_splits_match_the_reference,
        bound_and_batch_of_a_call_match_the_reference,
        layouts_match_the_reference,
        unaligned_rows_match_the_reference,
        queries_match_the_reference,
        dims_match_the_reference,
        types_and_partial_formats_match_the_reference,
        row_blocks_match_the_reference,
        head_ratios_match_the_reference,
        wide_vectors_match_the_reference,
        reference_row_matches_the_reference,
    };
    const int result = run_suite("decode_vector", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

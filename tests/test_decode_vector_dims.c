/* The vector family: what kernels are built for: dims, types and rows per block. */
#include "support/decode_cases.h"
#include "support/suite.h"

static const decode_family chosen = {.tuning = "family=decode_vector", .ratio = 2};

START_TEST(dims_match_the_reference) { verify_dims(&chosen); }
END_TEST
START_TEST(types_and_partial_formats_match_the_reference) { verify_types(&chosen); }
END_TEST
START_TEST(row_blocks_match_the_reference) { verify_row_blocks(&chosen); }
END_TEST
START_TEST(head_ratios_match_the_reference) { verify_ratios(&chosen); }
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        dims_match_the_reference,
        types_and_partial_formats_match_the_reference,
        row_blocks_match_the_reference,
        head_ratios_match_the_reference,
    };
    const int result = run_suite("decode_vector_dims", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

/* The lanes family: rows per block, lanes, unrolling and work-group sizes. */
#include "support/decode_cases.h"
#include "support/suite.h"

static const decode_family lanes = {"family=decode_lanes wg=32 lanes=8", 1};

START_TEST(row_blocks_match_the_reference) { verify_row_blocks(&lanes); }
END_TEST
START_TEST(head_ratios_match_the_reference) { verify_ratios(&lanes); }
END_TEST

/* Work-groups of one lane group, and of many; sums that fill the lanes, and that do not. */
START_TEST(lanes_unrolling_and_work_groups_match_the_reference)
{
    static const char *const tunings[] = {
        "family=decode_lanes exchange=local wg=8 lanes=8 unroll=1 parts=1",
        "family=decode_lanes exchange=local wg=64 lanes=8 unroll=4",
        "family=decode_lanes exchange=local wg=16 lanes=16 unroll=8 parts=1",
        "family=decode_lanes exchange=local wg=256 lanes=32 unroll=2 parts=4",
        "family=decode_lanes exchange=local wg=64 lanes=32 unroll=8 parts=2",
    };

    for (size_t i = 0; i < sizeof tunings / sizeof tunings[0]; i++) {
        const decode_family family = {tunings[i], 1};
        const attention_problem p = decode_case(&family);
        attention_verify(&p);
        verify_bounds(&family);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        row_blocks_match_the_reference,
        head_ratios_match_the_reference,
        lanes_unrolling_and_work_groups_match_the_reference,
    };
    const int result = run_suite("decode_lanes_rows", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

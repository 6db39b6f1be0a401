/* The lanes family: rows per block, parts, lanes, unrolling and work-group sizes. */
#include "support/decode_cases.h"
#include "support/suite.h"

START_TEST(row_blocks_and_head_ratios_match_the_reference)
{
    static const decode_family lanes = {.tuning = "family=decode_lanes wg=32 lanes=8 parts=1", .choice = true};

    verify_row_blocks(&lanes);
    verify_ratios(&lanes);
}
END_TEST

/* Work-groups of one lane group, and of many; sums that fill the lanes, and that do not; parts that end past the block.
 * The lengths of the common case include some below the number of work-items. */
START_TEST(parts_lanes_unrolling_and_work_groups_match_the_reference)
{
    static const decode_family variants[] = {
        {.tuning = "family=decode_lanes exchange=local wg=8 lanes=8 parts=1", .ratio = 2},
        {.tuning = "family=decode_lanes exchange=local wg=64 lanes=8 unroll=4 parts=1", .ratio = 1},
        {.tuning = "family=decode_lanes exchange=local wg=256 lanes=32 unroll=2 parts=1", .ratio = 1},
        {.tuning = "family=decode_lanes exchange=local wg=64 lanes=8 parts=4", .ratio = 7},
    };

    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        const attention_problem p = decode_case(&variants[i]);
        attention_verify(&p);
        verify_bounds(&variants[i]);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        row_blocks_and_head_ratios_match_the_reference,
        parts_lanes_unrolling_and_work_groups_match_the_reference,
    };
    const int result = run_suite("decode_lanes_rows", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

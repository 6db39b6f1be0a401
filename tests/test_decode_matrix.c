/* The matrix family; where there are no matrix units in the emulation by local memory, with two warps, so that they meet.
 * A program takes a CPU's compiler many seconds: each serves several cases. */
#include "run/context.h"
#include "support/option_cases.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

static const decode_family matrix = {.tuning = "family=decode_matrix", .ratio = 2, .choice = true};

START_TEST(lengths_round_tiles_and_splits_match_the_reference) { verify_lengths(&matrix); }
END_TEST

/* Two blocks of eight rows, the second not full; masks that differ from row to row. */
START_TEST(two_blocks_of_rows_match_the_reference) { verify_masked_queries(&matrix, 5); }
END_TEST

/* More warps than a merge takes states at once, and more rows than warps. */
START_TEST(ten_warps_fold_into_rows_that_match_the_reference)
{
    static const decode_family ten_warps = {.tuning = "family=decode_matrix wg=320 split_tile=256", .ratio = 12};
    attention_problem p = decode_case(&ten_warps);

    if (test_session_get()->context->caps.ptx) /* NVIDIA's compiler makes kernels for 256 work-items */
        return;
    p.attention.split_policy = CLFD_SPLIT_COUNT;
    p.attention.split_size = 1;
    attention_verify(&p);
}
END_TEST

/* Three quads of dims a lane, and as many splits as a merge takes at once: of 1023 keys too. */
START_TEST(dims_above_128_in_sixteen_splits_match_the_reference)
{
    static const decode_family four_rows = {.tuning = "family=decode_matrix", .ratio = 4};
    static const int32_t lens[] = {1100, 1023, 33};
    attention_problem p = decode_case(&four_rows);

    p.attention.max_batch = 3;
    p.attention.head_dim = 256;
    p.attention.head_dim_v = 192;
    p.attention.max_kv_len = 1100;
    p.attention.split_policy = CLFD_SPLIT_COUNT;
    p.attention.split_size = 16;
    p.kv_lens = lens;
    attention_verify(&p);
}
END_TEST

/* Splits of so many tiles that they take them by runs, and what is too little for a run of each. */
START_TEST(runs_of_tiles_match_the_reference)
{
    static const int32_t lens[] = {8191, 8192, 8193, 9217, 10300, 12000, 4095, 4096, 4097, 4641, 5120, 5600, 6000, 31};
    attention_problem p = decode_case(&matrix);

    p.attention.max_batch = sizeof lens / sizeof lens[0];
    p.attention.max_kv_len = 12000;
    p.attention.split_policy = CLFD_SPLIT_COUNT;
    p.attention.split_size = 2; /* 8192 tokens of four warps, 4096 of two */
    p.kv_lens = lens;
    attention_verify(&p);
}
END_TEST

START_TEST(scores_far_beyond_the_digits_of_a_float_keep_their_weights_in_range) { verify_coarse_scores(&matrix); }
END_TEST

START_TEST(pages_match_the_reference) { verify_pages(&matrix); }
END_TEST

/* A visible NaN or infinity of V belongs to its row and dim; a hidden one to none. */
START_TEST(poison_of_hidden_keys_changes_no_bit)
{
    attention_problem p = decode_case(&matrix);

    p.attention.q_len = 3;
    p.attention.causal = 1;
    expect_poison_unused(&p);
}
END_TEST

/* A window that begins behind the last key, for positions at the ends of the range, leaves every warp without tokens. */
START_TEST(windows_of_far_positions_see_nothing)
{
    static const int32_t positions[] = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MIN, INT32_MAX};
    attention_problem p = decode_case(&matrix);

    p.attention.window = 1;
    p.attention.query_positions = 1;
    p.query_positions = positions;
    attention_verify(&p);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        lengths_round_tiles_and_splits_match_the_reference,
        runs_of_tiles_match_the_reference,
        scores_far_beyond_the_digits_of_a_float_keep_their_weights_in_range,
        two_blocks_of_rows_match_the_reference,
        ten_warps_fold_into_rows_that_match_the_reference,
        dims_above_128_in_sixteen_splits_match_the_reference,
        pages_match_the_reference,
        poison_of_hidden_keys_changes_no_bit,
        windows_of_far_positions_see_nothing,
    };
    const int result = run_suite("decode_matrix", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

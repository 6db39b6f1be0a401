/* Warps that share tiles: in the emulation two sets of one warp, or one set of two, whose rows are more than one warp
 * has. A program takes a CPU's compiler many seconds: each serves several cases. */
#include "support/option_cases.h"
#include "support/suite.h"

#define SETS "family=decode_matrix wg=64 rows=32 parts=1"
#define PARTS "family=decode_matrix wg=64 rows=16 parts=2"

static const decode_family sets = {.tuning = SETS, .ratio = 9, .choice = true};
static const decode_family parts = {.tuning = PARTS, .ratio = 9, .choice = true};

START_TEST(lengths_round_tiles_and_splits_match_the_reference) { verify_lengths(&sets); }
END_TEST

START_TEST(lengths_of_divided_rows_match_the_reference) { verify_lengths(&parts); }
END_TEST

/* Rows of two sets, the second not full, and of a second pass; masks that differ from row to row. */
START_TEST(blocks_of_rows_match_the_reference) { verify_masked_queries(&sets, 4); }
END_TEST

START_TEST(scores_far_beyond_the_digits_of_a_float_keep_their_weights_in_range)
{
    verify_coarse_scores(&sets);
    verify_coarse_scores(&parts);
}
END_TEST

START_TEST(pages_match_the_reference) { verify_pages(&sets); }
END_TEST

/* A visible NaN or infinity of V belongs to its row and dim; a hidden one to none. */
START_TEST(poison_of_hidden_keys_changes_no_bit)
{
    attention_problem p = decode_case(&sets);

    p.attention.q_len = 3;
    p.attention.causal = 1;
    expect_poison_unused(&p);
}
END_TEST

/* Whatever is done with a score, and whichever keys a row may not see. */
START_TEST(options_match_the_reference)
{
    static const clfd_attention options[] = {
        {.causal = 1, .window = 60, .query_positions = 1, .alibi = 1, .softcap = 2.0f},
        {.mask = CLFD_MASK_BOOL, .bias_type = CLFD_TYPE_F16, .sinks = 1, .kv_start = 1},
        {.mask = CLFD_MASK_TREE, .paging = CLFD_PAGING_CSR, .page_size = 24},
    };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        attention_problem p = decode_case(&sets);
        p.attention.q_len = 3;
        set_options(&p.attention, &options[i]);
        attention_verify(&p);
    }
}
END_TEST

/* The rows of a batch that shares one K and V sequence end within a set, or leave sets without rows. */
START_TEST(shared_sequences_match_the_reference)
{
    static const uint32_t batches[] = {1, 2, 4, 5};
    static const int32_t length = 97;

    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        attention_problem p = decode_case(&sets);
        p.attention.shared_kv = 1;
        p.attention.sinks = 1;
        p.batch = batches[i];
        p.kv_lens = &length;
        p.seed = i;
        attention_verify(&p);
    }
}
END_TEST

/* V from K, with bf16, and dims that two warps divide; in passes of 16 rows, the last one not full. */
START_TEST(values_that_are_part_of_keys_match_the_reference)
{
    attention_problem p = decode_case(&parts);

    p.attention.head_dim = 576;
    p.attention.head_dim_v = 512;
    p.attention.v_from_k = 1;
    p.attention.q_type = CLFD_TYPE_BF16;
    p.attention.num_kv_heads = 1;
    p.attention.num_q_heads = 40;
    attention_verify(&p);
    p.attention.split_policy = CLFD_SPLIT_AUTO;
    p.attention.split_size = 0;
    attention_verify(&p);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        lengths_round_tiles_and_splits_match_the_reference,
        scores_far_beyond_the_digits_of_a_float_keep_their_weights_in_range,
        lengths_of_divided_rows_match_the_reference,
        blocks_of_rows_match_the_reference,
        pages_match_the_reference,
        poison_of_hidden_keys_changes_no_bit,
        options_match_the_reference,
        shared_sequences_match_the_reference,
        values_that_are_part_of_keys_match_the_reference,
    };
    const int result = run_suite("matrix_block", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

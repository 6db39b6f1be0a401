/* The merge of splits in the kernel that made them, which devices with NVIDIA's PTX have; elsewhere another kernel merges. Run
 * once more with kernels whose work-groups wait for nobody, so that the last one finds all left to it. */
#include "run/context.h"
#include "support/decode_cases.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

static const decode_family two_rows = {.tuning = "family=decode_matrix", .ratio = 2};

static bool merges_itself(void) { return test_session_get()->context->caps.fused_merge; }

static size_t bytes_of_out(const attention_call *call)
{
    return call->num_rows * call->complete.head_dim_v * sizeof(float);
}

/* Two problems in one workspace, again and again: what one leaves there is of the right size and form for the other. Of
 * splits that the last work-group merges, and of more, which several do. */
START_TEST(calls_in_one_workspace_take_no_state_of_each_other)
{
    static const uint32_t splits[] = {16, 40};
    const int turns = merges_itself() ? 100 : 1;

    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        attention_problem p = decode_case(&two_rows);
        attention_call *calls[2];
        float *first[2];

        p.attention.max_batch = 1;
        p.attention.max_kv_len = 2560;
        p.attention.split_policy = CLFD_SPLIT_COUNT;
        p.attention.split_size = splits[i];
        p.kv_lens = NULL;
        for (int c = 0; c < 2; c++) {
            p.seed = 10 * i + c;
            calls[c] = attention_open(&p);
            attention_run(calls[c]);
            attention_expect_reference(calls[c]);
            first[c] = malloc(bytes_of_out(calls[c]));
            ck_assert_ptr_nonnull(first[c]);
            memcpy(first[c], calls[c]->out, bytes_of_out(calls[c]));
        }
        const clfd_buffer own = calls[1]->buffers.workspace;
        calls[1]->buffers.workspace = calls[0]->buffers.workspace;
        for (int turn = 0; turn < turns; turn++) {
            for (int c = 0; c < 2; c++)
                ck_assert_int_eq(
                    clfd_enqueue_decode(calls[c]->plan, test_session_get()->queue, &calls[c]->buffers, 0, NULL, NULL),
                    CLFD_SUCCESS);
            for (int c = 0; c < 2; c++) {
                attention_read(calls[c]);
                ck_assert_msg(memcmp(calls[c]->out, first[c], bytes_of_out(calls[c])) == 0,
                              "%u splits, turn %d, call %d", splits[i], turn, c);
            }
        }
        calls[1]->buffers.workspace = own;
        for (int c = 0; c < 2; c++) {
            free(first[c]);
            attention_close(calls[c]);
        }
    }
}
END_TEST

/* Rows that do not fill the warps or the block, dims that are no power of two, and sequences of fewer splits than others: each
 * has slices of its own shape. */
START_TEST(many_splits_match_the_reference)
{
    static const struct {
        uint32_t splits, ratio, dim, q_len;
        clfd_partial partial;
    } cases[] = {
        {17, 8, 128, 1, CLFD_PARTIAL_LSE},   {33, 3, 80, 1, CLFD_PARTIAL_LSE}, {64, 8, 128, 1, CLFD_PARTIAL_MLO},
        {128, 4, 128, 1, CLFD_PARTIAL_LSE},  {40, 6, 64, 2, CLFD_PARTIAL_LSE}, {24, 16, 256, 1, CLFD_PARTIAL_LSE},
        {128, 16, 128, 1, CLFD_PARTIAL_LSE},
    };

    if (!merges_itself()) /* what merges there has its own tests */
        return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const decode_family family = {.tuning = "family=decode_matrix", .ratio = cases[i].ratio};
        const uint32_t longest = cases[i].splits * 64 + 5;
        const int32_t lens[] = {(int32_t)longest, 20 * 64 + 3, (int32_t)longest - 64, 40};
        attention_problem p = decode_case(&family);

        p.attention.max_batch = 4;
        p.attention.head_dim = p.attention.head_dim_v = cases[i].dim;
        p.attention.q_len = cases[i].q_len;
        p.attention.max_kv_len = longest;
        p.attention.partial = cases[i].partial;
        p.attention.split_policy = CLFD_SPLIT_COUNT;
        p.attention.split_size = cases[i].splits;
        p.kv_lens = lens;
        p.seed = i;
        attention_verify(&p);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        calls_in_one_workspace_take_no_state_of_each_other,
        many_splits_match_the_reference,
    };
    const int result = run_suite("matrix_merge", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

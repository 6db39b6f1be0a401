/* How sequences are cut (cl/split.cl), and what the cuts may not change: bits depend neither on the capacity nor, under
 * TOKENS, on anything beside the row; a direct write equals a merge of one. */
#include "support/decode_cases.h"
#include "support/suite.h"
#include <string.h>

START_TEST(under_tokens_a_row_does_not_depend_on_its_batch)
{
    static const uint32_t batches[] = {2, 7, 64};
    static const int32_t length = 131;

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        attention_problem p = decode_case(&decode_forms[f]);
        p.attention.max_batch = 1;
        p.kv_lens = &length;
        attention_call *const alone = attention_open(&p);
        attention_run(alone);
        for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
            const uint32_t place = batches[i] - 1 - (uint32_t)i;
            int32_t lens[64];
            uint32_t identities[64];
            for (uint32_t b = 0; b < batches[i]; b++) {
                lens[b] = b == place ? length : (int32_t)(b * 37 % 200);
                identities[b] = b == place ? 0 : b + 1;
            }
            p.attention.max_batch = batches[i];
            p.kv_lens = lens;
            p.identities = identities;
            attention_call *const together = attention_open(&p);
            attention_run(together);
            attention_expect_reference(together);
            EXPECT(attention_same_sequence(together, place, alone, 0), "a batch of %u changes a row in %s", batches[i],
                   clfd_plan_describe(together->plan));
            attention_close(together);
        }
        attention_close(alone);
    }
}
END_TEST

/* The same cache with more room behind it, pages apart, elsewhere in its buffer, and under a bound. */
START_TEST(capacity_and_placement_change_no_bit)
{
    static const struct {
        clfd_split_policy policy;
        uint32_t size;
    } policies[] = {{CLFD_SPLIT_COUNT, 1},
                    {CLFD_SPLIT_COUNT, 3},
                    {CLFD_SPLIT_COUNT, 64},
                    {CLFD_SPLIT_TOKENS, 32},
                    {CLFD_SPLIT_TOKENS, 200}};
    static const struct {
        uint32_t capacity, bound;
        clfd_layout layout;
        size_t kv_offset;
    } variants[] = {
        {131, 0, 0, 0}, {4000, 0, 0, 0}, {200, 131, 0, 0}, {4000, 150, 0, 0}, {200, 0, CLFD_LAYOUT_BHSD, 32}};
    static const int32_t lens[] = {131, 3, 0, 64, 100};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
            attention_problem p = decode_case(&decode_forms[f]);
            p.attention.split_policy = policies[i].policy;
            p.attention.split_size = policies[i].size;
            p.kv_lens = lens;
            attention_call *const first = attention_open(&p);
            attention_run(first);
            attention_expect_reference(first);
            for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
                p.attention.max_kv_len = variants[v].capacity;
                p.attention.kv_layout = variants[v].layout;
                p.kv_len_bound = variants[v].bound;
                p.kv_offset = variants[v].kv_offset;
                attention_call *const other = attention_open(&p);
                attention_run(other);
                EXPECT(attention_same_bits(other, first), "capacity %u with bound %u changes a bit in %s",
                       variants[v].capacity, variants[v].bound, clfd_plan_describe(other->plan));
                attention_close(other);
            }
            attention_close(first);
        }
}
END_TEST

/* The plan for sequences of one split writes out itself; the other one merges the one split that is there. */
START_TEST(direct_write_equals_a_merge_of_one)
{
    enum { TOKENS = 50 };
    static const clfd_type types[] = {CLFD_TYPE_F32, CLFD_TYPE_F16, CLFD_TYPE_BF16};
    static const int32_t lens[] = {TOKENS, 0, 1, 17, TOKENS - 1};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < 4; i += f == 0 ? 1 : 3) {
            attention_problem p = decode_case(&decode_forms[f]);
            p.attention.out_type = types[i % 3];
            p.attention.partial = i == 3 ? CLFD_PARTIAL_MLO : CLFD_PARTIAL_LSE;
            p.attention.split_size = p.attention.max_kv_len = TOKENS;
            p.kv_lens = lens;
            attention_call *const direct = attention_open(&p);
            p.attention.max_kv_len = 7 * TOKENS;
            attention_call *const merged = attention_open(&p);
            attention_run(direct);
            attention_run(merged);
            ck_assert_ptr_nonnull(strstr(clfd_plan_describe(direct->plan), " splits1 "));
            ck_assert_ptr_nonnull(strstr(clfd_plan_describe(merged->plan), " splits7 "));
            attention_expect_reference(direct);
            EXPECT(attention_same_bits(direct, merged), "a merge of one changes a bit in %s",
                   clfd_plan_describe(merged->plan));
            attention_close(direct);
            attention_close(merged);
        }
}
END_TEST

/* 64 tiles of 64 tokens in 12 splits: rounding up would give 6 tiles each, and nothing to the last one. */
START_TEST(tiles_that_do_not_divide_into_splits_match_the_reference)
{
    static const uint32_t splits[] = {0, 1, 12, 13, 63, 64, 65, 10000};
    static const int32_t lens[] = {64 * 64, 64 * 64 - 1, 64 * 63 + 1, 1, 0};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
            attention_problem p = decode_case(&decode_forms[f]);
            p.attention.max_kv_len = 64 * 64;
            p.attention.split_policy = CLFD_SPLIT_COUNT;
            p.attention.split_size = splits[i];
            p.kv_lens = lens;
            p.seed = i;
            attention_verify(&p);
        }
}
END_TEST

START_TEST(same_call_gives_the_same_bits_every_time)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (clfd_split_policy policy = CLFD_SPLIT_AUTO; policy <= CLFD_SPLIT_TOKENS; policy++) {
            attention_problem p = decode_case(&decode_forms[f]);
            p.attention.split_policy = policy;
            p.attention.split_size = policy == CLFD_SPLIT_AUTO ? 0 : 5;
            attention_call *const first = attention_open(&p), *const again = attention_open(&p);
            attention_run(first);
            for (int i = 0; i < 10; i++) {
                attention_run(again);
                ck_assert(attention_same_bits(first, again));
            }
            attention_close(first);
            attention_close(again);
        }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        under_tokens_a_row_does_not_depend_on_its_batch,
        capacity_and_placement_change_no_bit,
        direct_write_equals_a_merge_of_one,
        tiles_that_do_not_divide_into_splits_match_the_reference,
        same_call_gives_the_same_bits_every_time,
    };
    const int result = run_suite("split", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

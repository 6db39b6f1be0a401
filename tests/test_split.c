/* How sequences are cut (cl/split.cl), and what the cuts may not change: bits depend neither on the capacity nor, under
 * TOKENS, on anything beside the row; a direct write equals a merge of one. */
#include "support/option_cases.h"
#include "support/suite.h"
#include <string.h>

/* A sequence alone, and in batches that give it a place and other pages. */
static void expect_batch_does_not_matter(const attention_problem *problem, const uint32_t *batches, size_t count)
{
    static const int32_t length = 131;

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        attention_problem p = in_form(problem, f);
        p.attention.max_batch = 1;
        p.kv_lens = &length;
        attention_call *const alone = attention_open(&p);
        attention_run(alone);
        for (size_t i = 0; i < count; i++) {
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
            p.page_seed = i;
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

START_TEST(under_tokens_a_row_does_not_depend_on_its_batch)
{
    static const uint32_t batches[] = {2, 7, 64};
    const attention_problem p = decode_case(&decode_forms[0]);

    expect_batch_does_not_matter(&p, batches, sizeof batches / sizeof batches[0]);
}
END_TEST

START_TEST(under_tokens_options_and_pages_do_not_make_a_row_depend_on_its_batch)
{
    static const uint32_t batches[] = {7, 64};
    static const clfd_attention options[] = {
        {.window = 40, .kv_start = 1, .mask = CLFD_MASK_BOOL, .bias_type = CLFD_TYPE_F32, .sinks = 1},
        {.paging = CLFD_PAGING_TABLE, .page_size = 16, .k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_INT4, .causal = 1},
    };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const attention_problem p = option_case(options[i]);
        expect_batch_does_not_matter(&p, batches, sizeof batches / sizeof batches[0]);
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

/* Options that hide keys at either end, whose strides and block tables grow with the capacity. */
START_TEST(capacity_changes_no_bit_beside_options)
{
    static const clfd_attention options[] = {
        {.window = 70, .kv_start = 1, .mask = CLFD_MASK_BOOL, .sinks = 1},
        {.paging = CLFD_PAGING_TABLE, .page_size = 48, .bias_type = CLFD_TYPE_F16, .query_positions = 1, .causal = 1},
    };
    static const struct {
        clfd_split_policy policy;
        uint32_t size;
    } policies[] = {{CLFD_SPLIT_COUNT, 3}, {CLFD_SPLIT_TOKENS, 24}};
    static const uint32_t capacities[] = {131, 200, 3000};
    static const int32_t lens[] = {131, 3, 0, 64, 100};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < sizeof options / sizeof options[0] * 2; i++) {
            const attention_problem all = option_case(options[i / 2]);
            attention_problem p = in_form(&all, f);
            attention_call *calls[3];
            p.attention.split_policy = policies[i % 2].policy;
            p.attention.split_size = policies[i % 2].size;
            p.attention.num_pages = p.attention.paging != CLFD_PAGING_NONE ? 20 : 0;
            p.kv_lens = lens;
            for (size_t c = 0; c < 3; c++) {
                p.attention.max_kv_len = capacities[c];
                calls[c] = attention_open(&p);
                attention_run(calls[c]);
                EXPECT(attention_same_bits(calls[c], calls[0]), "capacity %u changes a bit in %s", capacities[c],
                       clfd_plan_describe(calls[c]->plan));
            }
            attention_expect_reference(calls[2]);
            for (size_t c = 0; c < 3; c++)
                attention_close(calls[c]);
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
        under_tokens_options_and_pages_do_not_make_a_row_depend_on_its_batch,
        capacity_and_placement_change_no_bit,
        capacity_changes_no_bit_beside_options,
        direct_write_equals_a_merge_of_one,
        tiles_that_do_not_divide_into_splits_match_the_reference,
        same_call_gives_the_same_bits_every_time,
    };
    const int result = run_suite("split", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

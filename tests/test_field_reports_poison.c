/* FIELD_REPORTS.md, "Poison": the report stands beside the test. */
#include "support/field_report.h"
#include "support/suite.h"
#include <math.h>

/* 22 [flash-attention#2374] */
START_TEST(nan_in_the_tails_reached_the_result)
{
    static const int32_t lens[] = {32, 64, 96, 48};
    static const float poisons[] = {NAN, INFINITY, -INFINITY};

    for (size_t i = 0; i < 3; i++) {
        attention_problem p = report_problem(8, 8, 64, F16, 128);
        p.attention.max_batch = 4;
        p.kv_lens = lens;
        p.poison = poisons[i];
        attention_verify(&p);
    }
}
END_TEST

/* 23 [flashinfer#941]: 13 keys in pages of 4; slots 13, 14 and 15 hold NaN, then infinities. */
START_TEST(slots_behind_the_last_key_of_a_page_were_read)
{
    static const int32_t length = 13;
    static const float poisons[] = {NAN, INFINITY, -INFINITY};

    for (size_t i = 0; i < 3; i++) {
        attention_problem p = report_problem(4, 2, 64, F16, 16);
        key_place place;
        p.kv_lens = &length;
        report_pages(&p, CLFD_PAGING_TABLE, 4);
        attention_call *const call = attention_open(&p);
        for (uint32_t slot = 13; slot < 16; slot++)
            for (int tensor = ATTENTION_K; tensor <= ATTENTION_V; tensor++) {
                ck_assert(attention_find_key(call, 0, slot, &place));
                image_put_row(&call->images[tensor], place.batch, place.token, 0, poisons[i]);
                image_put_row(&call->images[tensor], place.batch, place.token, 1, poisons[i]);
            }
        attention_run(call);
        attention_expect_reference(call);
        for (size_t d = 0; d < call->num_rows * 64; d++)
            ck_assert(isfinite(call->out[d]));
        attention_close(call);
    }
}
END_TEST

static void run_with_unused_entries(attention_call *call, int32_t entry)
{
    for (size_t i = 0; i < call->indices[ATTENTION_BLOCK_TABLE].count; i++)
        if (call->indices[ATTENTION_BLOCK_TABLE].values[i] == call->problem.unused_entry)
            call->indices[ATTENTION_BLOCK_TABLE].values[i] = entry;
    call->problem.unused_entry = entry;
    attention_run(call);
    ck_assert_uint_eq(call->status, 0);
}

/* 24 [onnxruntime#32391] */
START_TEST(entries_of_unused_pages_were_looked_up)
{
    static const int32_t lens[] = {40, 0, 100};
    attention_problem p = report_problem(4, 2, 64, F16, 128);

    p.attention.max_batch = 3;
    p.kv_lens = lens;
    p.unused_entry = -1;
    report_pages(&p, CLFD_PAGING_TABLE, 16);
    attention_call *const first = attention_open(&p), *const second = attention_open(&p);
    run_with_unused_entries(first, -1);
    run_with_unused_entries(second, 0x7fffffff);
    ck_assert(attention_same_bits(first, second));
    attention_expect_reference(second);
    attention_close(first);
    attention_close(second);
}
END_TEST

/* The other half of 24: a used entry out of range hides its keys and says so. Page 0 holds what would be seen if it were
 * taken instead. */
START_TEST(used_entry_out_of_range_silently_became_page_0)
{
    static const int32_t wrong[] = {-1, 20, 0x7fffffff};

    for (size_t i = 0; i < 3; i++) {
        attention_problem p = report_problem(2, 1, 64, F16, 64);
        p.attention.num_pages = 20;
        report_pages(&p, CLFD_PAGING_TABLE, 16);
        attention_call *const call = attention_open(&p);
        for (uint32_t slot = 0; slot < 16; slot++)
            image_put_row(&call->images[ATTENTION_V], 0, slot, 0, 1000.0f);
        for (uint32_t j = 0; j < 64; j += 16)
            if (*attention_page_of(call, 0, j) == 0) /* not among the pages that are seen */
                *attention_page_of(call, 0, j) = wrong[i];
        *attention_page_of(call, 0, 32) = wrong[i];
        attention_run(call);
        attention_expect_reference(call);
        ck_assert_uint_eq(call->status, CLFD_FLAG_PAGE);
        for (uint32_t d = 0; d < 64; d++)
            ck_assert(fabsf(attention_out(call, 0, 0, 0)[d]) < 10.0f);
        attention_close(call);
    }
}
END_TEST

/* 25 [vllm#57614] */
START_TEST(page_sizes_disagreed)
{
    static const uint32_t page_sizes[] = {1, 16, 32, 256};
    static const int32_t lens[] = {16, 17, 300};
    attention_call *calls[4];

    for (size_t i = 0; i < 4; i++) {
        attention_problem p = report_problem(32, 8, 64, BF16, 300);
        p.attention.max_batch = 3;
        p.kv_lens = lens;
        report_split(&p, CLFD_SPLIT_TOKENS, 64);
        report_pages(&p, CLFD_PAGING_TABLE, page_sizes[i]);
        calls[i] = attention_open(&p);
        attention_run(calls[i]);
        attention_expect_reference(calls[i]);
        ck_assert(attention_same_bits(calls[i], calls[0]));
    }
    for (size_t i = 0; i < 4; i++)
        attention_close(calls[i]);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        nan_in_the_tails_reached_the_result,
        slots_behind_the_last_key_of_a_page_were_read,
        entries_of_unused_pages_were_looked_up,
        used_entry_out_of_range_silently_became_page_0,
        page_sizes_disagreed,
    };
    const int result = run_suite("field_reports_poison", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

/* FIELD_REPORTS.md, "Tiles, dims, ratios": the report stands beside the test. */
#include "support/compare.h"
#include "support/field_report.h"
#include "support/suite.h"
#include <math.h>

/* 18 [flashinfer#3716]: q = 0 makes out the mean and lse the logarithm of the length. */
START_TEST(partial_tile_was_miscounted)
{
    static const int32_t lens[] = {1, 15, 16, 17, 255, 256, 257};
    enum { BATCH = sizeof lens / sizeof lens[0] };
    attention_problem p = report_problem(2, 2, 64, F16, 257);

    p.attention.max_batch = BATCH;
    p.kv_lens = lens;
    report_split(&p, CLFD_SPLIT_TOKENS, 64);
    attention_call *const call = attention_open(&p);
    for (uint32_t b = 0; b < BATCH; b++)
        for (uint32_t h = 0; h < 2; h++)
            image_put_row(&call->images[ATTENTION_Q], b, 0, h, 0.0f);
    attention_run(call);
    for (uint32_t b = 0; b < BATCH; b++)
        for (uint32_t h = 0; h < 2; h++) {
            double mean = 0.0;
            for (uint32_t j = 0; j < (uint32_t)lens[b]; j++)
                mean += (double)image_get(&call->images[ATTENTION_V], b, j, h, 9) / lens[b];
            ASSERT_VALUE(attention_out(call, b, 0, h)[9], mean, TOLERANCE_OUT_F32);
            ASSERT_VALUE(call->lse[attention_row(call, b, 0, h)], log(lens[b]), TOLERANCE_LSE);
        }
    attention_close(call);
}
END_TEST

/* The same in pages of 16, whose last one may hold a single key. */
START_TEST(partial_page_was_miscounted)
{
    static const int32_t lens[] = {1, 15, 16, 17, 255, 256, 257};
    enum { BATCH = sizeof lens / sizeof lens[0] };
    attention_problem p = report_problem(2, 2, 64, F16, 257);
    key_place place;

    p.attention.max_batch = BATCH;
    p.kv_lens = lens;
    report_pages(&p, CLFD_PAGING_TABLE, 16);
    attention_call *const call = attention_open(&p);
    for (uint32_t b = 0; b < BATCH; b++)
        for (uint32_t h = 0; h < 2; h++)
            image_put_row(&call->images[ATTENTION_Q], b, 0, h, 0.0f);
    attention_run(call);
    for (uint32_t b = 0; b < BATCH; b++)
        for (uint32_t h = 0; h < 2; h++) {
            double mean = 0.0;
            for (uint32_t j = 0; j < (uint32_t)lens[b]; j++) {
                ck_assert(attention_find_key(call, b, j, &place));
                mean += (double)image_get(&call->images[ATTENTION_V], place.batch, place.token, h, 9) / lens[b];
            }
            ASSERT_VALUE(attention_out(call, b, 0, h)[9], mean, TOLERANCE_OUT_F32);
            ASSERT_VALUE(call->lse[attention_row(call, b, 0, h)], log(lens[b]), TOLERANCE_LSE);
        }
    attention_close(call);
}
END_TEST

/* 19 [pytorch#159247] */
START_TEST(tail_of_the_capacity_was_read)
{
    static const int32_t length = 64;
    attention_problem p = report_problem(4, 2, 64, F16, 128);

    p.kv_lens = &length;
    attention_verify(&p);
}
END_TEST

/* 20 [sparkinfer#425] */
START_TEST(dims_beyond_128_were_mixed_up)
{
    for (uint32_t ratio = 4; ratio <= 8; ratio += 4) {
        const attention_problem p = report_problem(ratio, 1, 256, F16, 40);
        attention_call *const call = attention_open(&p);
        for (uint32_t j = 0; j < 40; j++)
            for (uint32_t d = 0; d < 256; d++)
                image_put(&call->images[ATTENTION_V], 0, j, 0, d, (float)d);
        attention_run(call);
        for (uint32_t h = 0; h < ratio; h++)
            for (uint32_t d = 0; d < 256; d++)
                EXPECT(fabsf(attention_out(call, 0, 0, h)[d] - (float)d) <= 1e-6f * 256.0f, "out[%u] is %.9g", d,
                       attention_out(call, 0, 0, h)[d]);
        attention_close(call);
    }
}
END_TEST

/* 21 [flashinfer#996, pytorch#151359] */
START_TEST(ratios_that_are_no_power_of_two_were_wrong)
{
    static const uint32_t ratios[] = {5, 6, 7, 16, 71};

    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        attention_problem p = report_problem(2 * ratios[i], 2, 64, F16, 70);
        attention_verify(&p);
    }
    const attention_problem long_one = report_problem(12, 2, 16, F16, 4096);
    attention_verify(&long_one);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        partial_tile_was_miscounted,
        partial_page_was_miscounted,
        tail_of_the_capacity_was_read,
        dims_beyond_128_were_mixed_up,
        ratios_that_are_no_power_of_two_were_wrong,
    };
    const int result = run_suite("field_reports_tiles", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

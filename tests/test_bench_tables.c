/* The tables that clfd bench draws: valid, shuffled, the same on every run. */
#include "bench.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

static bench_problem parse(const char *text)
{
    bench_problem problem;
    tool_fault fault = {.exit_code = EXIT_CODE_OK};

    ck_assert_msg(problem_parse(text, &problem, &fault), "%s", fault.sentence);
    return problem;
}

static bench_part make(const char *text)
{
    const bench_problem problem = parse(text);
    bench_part part = {.visible = 0};
    tool_fault fault = {.exit_code = EXIT_CODE_OK};

    ck_assert_msg(bench_make_tables(&problem, false, &part, &fault), "%s", fault.sentence);
    return part;
}

static void drop(bench_part *part)
{
    for (int t = 0; t < BENCH_TABLES; t++)
        free(part->tables[t].data);
}

static const int32_t *integers(const bench_part *part, bench_table table) { return part->tables[table].data; }

START_TEST(lengths_lie_between_the_bounds_in_every_power_of_two)
{
    bench_part part = make("b4096 hq1 d8 kv4096 ragged=16..4096");
    const int32_t *const lengths = integers(&part, BENCH_KV_LENS);
    uint32_t counts[13] = {0};
    uint64_t sum = 0;

    for (int b = 0; b < 4096; b++) {
        ck_assert(lengths[b] >= 16 && lengths[b] <= 4096);
        for (int power = 4; power < 12; power++)
            counts[power] += lengths[b] >> power == 1;
        sum += (uint64_t)lengths[b];
    }
    /* 8 powers of two, each with 512 of 4096 lengths; the standard deviation is 21. */
    for (int power = 4; power < 12; power++)
        ck_assert_msg(counts[power] > 400 && counts[power] < 624, "%u lengths from 2^%d on", counts[power], power);
    ck_assert_uint_eq(part.visible, sum);
    drop(&part);
}
END_TEST

START_TEST(length_zero_is_drawn_where_the_bounds_allow_it)
{
    bench_part part = make("b256 hq1 d8 kv7 ragged=0..7"), none = make("b2 hq1 d8 kv7 ragged=0..0");
    uint32_t counts[8] = {0};

    for (int b = 0; b < 256; b++) {
        ck_assert(integers(&part, BENCH_KV_LENS)[b] >= 0 && integers(&part, BENCH_KV_LENS)[b] <= 7);
        counts[integers(&part, BENCH_KV_LENS)[b]]++;
    }
    for (int length = 0; length < 7; length++)
        ck_assert_msg(counts[length] > 0, "no length is %d", length);
    ck_assert_uint_eq(none.visible, 0);
    drop(&part);
    drop(&none);
}
END_TEST

START_TEST(every_run_draws_the_same)
{
    static const char text[] = "b7 hq4 d8 kv500 ragged=1..500 page=16 csr cache_rows=9 kv_start positions sinks alibi";
    bench_part first = make(text), second = make(text);

    for (int t = 0; t < BENCH_TABLES; t++) {
        ck_assert_msg(first.tables[t].data != NULL, "table %d is missing", t);
        ck_assert_uint_eq(first.tables[t].count, second.tables[t].count);
        ck_assert_mem_eq(first.tables[t].data, second.tables[t].data, first.tables[t].count * sizeof(int32_t));
    }
    drop(&first);
    drop(&second);
}
END_TEST

START_TEST(tables_without_their_option_are_absent)
{
    bench_part part = make("b2 hq4 d8 kv50");

    for (int t = 0; t < BENCH_TABLES; t++)
        ck_assert_ptr_null(part.tables[t].data);
    ck_assert_uint_eq(part.visible, 100);
    drop(&part);
}
END_TEST

/* The pages of each sequence are in the pool, none twice, and not in ascending order. */
START_TEST(pages_are_in_the_pool_once_each)
{
    static const char *const texts[] = {
        "b5 hq1 d8 kv300 ragged=1..300 page=7", "b5 hq1 d8 kv300 ragged=1..300 page=7 csr",
        "b5 hq1 d8 kv300 ragged=1..300 page=7 cache_rows=8", "b5 hq1 d8 kv300 ragged=1..300 page=7 csr cache_rows=8"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bench_part part = make(texts[i]);
        const clfd_attention *const a = &part.attention;
        const int32_t *const rows = integers(&part, BENCH_CACHE_BATCH_IDX);
        const int32_t *const table = integers(&part, BENCH_BLOCK_TABLE);
        const int32_t *const indptr = integers(&part, BENCH_PAGE_INDPTR);
        bool *const seen = calloc(a->num_pages, sizeof seen[0]), ascending = true;
        ck_assert_ptr_nonnull(seen);
        for (int s = 0; s < 5; s++) {
            const int32_t row = rows != NULL ? rows[s] : s;
            const int32_t pages = (integers(&part, BENCH_KV_LENS)[s] + 6) / 7;
            const int32_t start = indptr != NULL ? indptr[row] : row * 43;
            if (indptr != NULL)
                ck_assert_int_eq(indptr[row + 1] - start, pages);
            for (int p = 0; p < pages; p++) {
                ck_assert(table[start + p] >= 0 && (uint32_t)table[start + p] < a->num_pages);
                ck_assert(!seen[table[start + p]]);
                seen[table[start + p]] = true;
                ascending = ascending && (p == 0 || table[start + p] > table[start + p - 1]);
            }
        }
        ck_assert(!ascending);
        free(seen);
        drop(&part);
    }
}
END_TEST

START_TEST(cache_rows_are_distinct)
{
    bench_part part = make("b5 hq1 d8 kv3 cache_rows=8");
    bool seen[8] = {false};

    ck_assert_uint_eq(part.tables[BENCH_CACHE_BATCH_IDX].count, 5);
    for (int s = 0; s < 5; s++) {
        const int32_t row = integers(&part, BENCH_CACHE_BATCH_IDX)[s];
        ck_assert(row >= 0 && row < 8 && !seen[row]);
        seen[row] = true;
    }
    drop(&part);
}
END_TEST

/* What a window, a padding or a shared K and V leave of the tokens. */
START_TEST(only_visible_tokens_count)
{
    static const struct {
        const char *text;
        uint64_t visible;
    } cases[] = {
        {"b3 hq1 d8 kv1000 window=64 causal", 3 * 64}, {"b3 q4 hq1 d8 kv1000 window=64 causal", 3 * 67},
        {"b3 hq1 d8 kv50 window=64 causal", 3 * 50},   {"b3 hq1 d8 kv1000 shared_kv", 1000},
        {"b3 hq1 d8 kv1000 mask", 3 * 1000},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench_part part = make(cases[i].text);
        ck_assert_msg(part.visible == cases[i].visible, "%s: %u tokens", cases[i].text, (unsigned)part.visible);
        drop(&part);
    }
    bench_part padded = make("b3 hq1 d8 kv1000 kv_start");
    uint64_t expected = 0;
    for (int s = 0; s < 3; s++)
        expected += 1000 - (uint64_t)integers(&padded, BENCH_KV_START)[s];
    ck_assert_uint_eq(padded.visible, expected);
    ck_assert_uint_lt(padded.visible, 3000);
    drop(&padded);
}
END_TEST

START_TEST(prefix_has_no_lengths_and_one_sequence)
{
    const bench_problem problem = parse("b4 hq2 d8 kv100 ragged=1..100 page=16 prefix=1000");
    bench_part part = {.visible = 0};
    tool_fault fault = {.exit_code = EXIT_CODE_OK};

    ck_assert(bench_make_tables(&problem, true, &part, &fault));
    ck_assert_uint_eq(part.visible, 1000);
    ck_assert_ptr_null(part.tables[BENCH_KV_LENS].data);
    ck_assert_uint_eq(part.tables[BENCH_BLOCK_TABLE].count, 63);
    ck_assert_uint_eq(part.attention.shared_kv, 1);
    drop(&part);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        lengths_lie_between_the_bounds_in_every_power_of_two,
        length_zero_is_drawn_where_the_bounds_allow_it,
        every_run_draws_the_same,
        tables_without_their_option_are_absent,
        pages_are_in_the_pool_once_each,
        cache_rows_are_distinct,
        only_visible_tokens_count,
        prefix_has_no_lengths_and_one_sequence,
    };
    return run_suite("bench_tables", tests, sizeof tests / sizeof tests[0]);
}

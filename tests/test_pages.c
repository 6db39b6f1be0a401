/* Paged caches as decode reads them (cl/pages.cl, cl/kv.cl): pages of any size in any order, in a table or in CSR form;
 * entries that nothing needs, and those that are needed and wrong. */
#include "support/compare.h"
#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { D = 64, HKV = 2 };

static const uint32_t page_sizes[] = {1, 3, 16, 48, 256};

static attention_problem paged_case(clfd_paging paging, uint32_t page_size)
{
    return option_case((clfd_attention){.paging = paging, .page_size = page_size});
}

START_TEST(pages_of_any_size_match_the_reference)
{
    for (int paging = CLFD_PAGING_TABLE; paging <= CLFD_PAGING_CSR; paging++)
        for (size_t i = 0; i < COUNT(page_sizes); i++) {
            attention_problem p = paged_case((clfd_paging)paging, page_sizes[i]);
            p.page_seed = i;
            verify_forms_and_splits(&p);
        }
}
END_TEST

START_TEST(layouts_of_pages_match_the_reference)
{
    enum { PAGE = 16 };
    static const struct {
        clfd_layout layout;
        clfd_strides k, v;
        int64_t table_stride;
        size_t kv_offset;
    } layouts[] = {
        {.layout = CLFD_LAYOUT_BHSD},
        /* K and V halves of a page, and K and V in turn: the other half is poison. */
        {.k = {.batch = 2 * PAGE * HKV * D}, .v = {.batch = 2 * PAGE * HKV * D}},
        {.k = {.token = 2 * HKV * D}, .v = {.token = 2 * HKV * D}, .kv_offset = 2 * HKV * D},
        /* Pages side by side within a token; rows apart. */
        {.k = {.batch = HKV * D, .token = 70 * HKV * D}, .v = {.head = 72, .token = 152, .batch = PAGE * 152 + 8}},
        {.table_stride = 77},
    };

    for (size_t i = 0; i < COUNT(layouts); i++) {
        attention_problem p = paged_case(CLFD_PAGING_TABLE, PAGE);
        p.attention.kv_layout = layouts[i].layout;
        p.attention.k_strides = layouts[i].k;
        p.attention.v_strides = layouts[i].v;
        p.attention.block_table_stride = layouts[i].table_stride;
        p.attention.num_pages = 70;
        p.kv_offset = layouts[i].kv_offset;
        verify_forms(&p);
    }
}
END_TEST

START_TEST(v_from_paged_k_matches_the_reference)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f += NUM_DECODE_FORMS - 1) {
        const attention_problem all = option_case(
            (clfd_attention){.paging = CLFD_PAGING_TABLE, .page_size = 16, .v_from_k = 1, .head_dim_v = 32});
        const attention_problem p = in_form(&all, f);
        attention_verify(&p);
    }
}
END_TEST

/* Runs the problem and requires the same bits as an earlier call. */
static void expect_same(const attention_problem *problem, const attention_call *first, const char *change)
{
    attention_call *const call = attention_open(problem);

    attention_run(call);
    attention_expect_reference(call);
    EXPECT(attention_same_bits(call, first), "%s change a bit in %s", change, clfd_plan_describe(call->plan));
    attention_close(call);
}

/* Under TOKENS and COUNT nothing of the placement counts: not the order of the pages, not their size, not whether there
 * are any. */
START_TEST(pages_and_their_order_change_no_bit)
{
    static const clfd_split_policy policies[] = {CLFD_SPLIT_TOKENS, CLFD_SPLIT_COUNT};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t k = 0; k < COUNT(policies); k++) {
            const attention_problem all = option_case((clfd_attention){.split_policy = policies[k], .split_size = 20});
            attention_problem p = in_form(&all, f);
            attention_call *const first = attention_open(&p);
            attention_run(first);
            for (size_t i = 0; i < COUNT(page_sizes); i++)
                for (int paging = CLFD_PAGING_TABLE; paging <= CLFD_PAGING_CSR; paging++) {
                    p.attention.paging = (clfd_paging)paging;
                    p.attention.page_size = page_sizes[i];
                    p.page_seed++;
                    expect_same(&p, first, "pages");
                }
            attention_close(first);
        }
}
END_TEST

/* Two sequences with the same keys in pages of their own, then in the same pages, then half in those and half in copies. */
START_TEST(shared_and_duplicated_pages_change_no_bit)
{
    enum { PAGE = 16 };
    static const int32_t lens[] = {97, 97};
    static const uint32_t identities[] = {7, 7};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem all = paged_case(CLFD_PAGING_TABLE, PAGE);
        attention_problem p = in_form(&all, f);
        p.attention.max_batch = 2;
        p.attention.num_pages = 40;
        p.kv_lens = lens;
        p.identities = identities;
        attention_call *const apart = attention_open(&p), *const together = attention_open(&p);
        attention_run(apart);
        ck_assert(attention_same_sequence(apart, 0, apart, 1));
        for (uint32_t j = 0; j < 97; j += PAGE)
            *attention_page_of(together, 1, j) = *attention_page_of(together, 0, j);
        attention_run(together);
        attention_expect_reference(together);
        EXPECT(attention_same_bits(together, apart), "shared pages change a bit in %s",
               clfd_plan_describe(together->plan));
        for (uint32_t j = 0; j < 97; j += 2 * PAGE) {
            const int32_t copy = *attention_page_of(apart, 1, j);
            attention_copy_page(together, (uint32_t)*attention_page_of(together, 0, j), (uint32_t)copy);
            *attention_page_of(together, 1, j) = copy;
        }
        attention_run(together);
        EXPECT(attention_same_bits(together, apart), "duplicated pages change a bit in %s",
               clfd_plan_describe(together->plan));
        attention_close(apart);
        attention_close(together);
    }
}
END_TEST

/* ---- What nothing needs ------------------------------------------------------------------------------------------ */

START_TEST(unused_entries_change_no_bit_and_set_no_flag)
{
    static const int32_t entries[] = {INT32_MAX, INT32_MIN, 1, 70};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (int paging = CLFD_PAGING_TABLE; paging <= CLFD_PAGING_CSR; paging++) {
            const attention_problem all = paged_case((clfd_paging)paging, 16);
            attention_problem p = in_form(&all, f);
            attention_call *const first = attention_open(&p);
            attention_run(first);
            ck_assert_uint_eq(first->status, 0);
            for (size_t i = 0; i < COUNT(entries); i++) {
                p.unused_entry = entries[i];
                expect_same(&p, first, "unused entries");
            }
            attention_close(first);
        }
}
END_TEST

/* A page whose keys are all behind the window, or before the start, is not looked up: its entry is -1 here, and no flag
 * is set. */
START_TEST(pages_outside_window_and_start_are_not_looked_up)
{
    static const clfd_attention options[] = {{.window = 20}, {.window = 20, .kv_start = 1, .causal = 1}};
    static const int32_t starts[5] = {0, 0, 20, 90, 120};

    for (size_t i = 0; i < COUNT(options); i++) {
        attention_problem p = paged_case(CLFD_PAGING_TABLE, 3);
        set_options(&p.attention, &options[i]);
        p.kv_start = starts;
        verify_forms_and_splits(&p);
        p.attention.split_policy = CLFD_SPLIT_AUTO;
        p.attention.split_size = 0;
        verify_forms(&p);
    }
}
END_TEST

/* Slots of the last page that hold no key, pages that nobody has. */
START_TEST(unused_slots_and_pages_change_no_bit)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (uint32_t page_size = 3; page_size <= 48; page_size += 45) {
            const attention_problem all = paged_case(CLFD_PAGING_CSR, page_size), p = in_form(&all, f);
            expect_poison_unused(&p);
        }
}
END_TEST

/* ---- What is needed and not there -------------------------------------------------------------------------------- */

START_TEST(keys_of_a_page_that_there_is_not_are_hidden_and_reported)
{
    static const int32_t wrong[] = {-1, INT32_MIN, INT32_MAX, 70, 71};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < COUNT(wrong); i++) {
            const attention_problem all = paged_case(i % 2 == 0 ? CLFD_PAGING_TABLE : CLFD_PAGING_CSR, 16);
            attention_problem p = in_form(&all, f);
            p.attention.num_pages = 70;
            attention_call *const call = attention_open(&p);
            *attention_page_of(call, 4, 16) = wrong[i];
            *attention_page_of(call, 3, 96) = wrong[i]; /* the last page, of one key */
            attention_run(call);
            attention_expect_reference(call);
            ck_assert_uint_eq(call->status, CLFD_FLAG_PAGE);
            attention_close(call);
        }
}
END_TEST

/* Nothing silently reads page 0 instead: what lies there is not in the result. */
START_TEST(a_sequence_of_wrong_pages_alone_is_empty)
{
    static const float nothing[D];

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem all = paged_case(CLFD_PAGING_TABLE, 16), p = in_form(&all, f);
        attention_call *const call = attention_open(&p);
        for (uint32_t j = 0; j < 97; j += 16)
            *attention_page_of(call, 3, j) = j % 32 == 0 ? -1 : INT32_MAX;
        attention_run(call);
        attention_expect_reference(call);
        for (uint32_t h = 0; h < 4; h++) {
            ck_assert_int_eq(memcmp(attention_out(call, 3, 1, h), nothing, sizeof nothing), 0);
            ck_assert(call->lse[attention_row(call, 3, 1, h)] == -INFINITY);
        }
        ck_assert_uint_eq(call->status, CLFD_FLAG_PAGE);
        attention_close(call);
    }
}
END_TEST

/* Rows that end too early, before they begin, or beyond the array; and one that begins outside. */
START_TEST(keys_beyond_a_csr_row_are_hidden_and_reported)
{
    static const struct {
        size_t at;
        int32_t change;
    } changes[] = {{5, -1}, {5, -1000}, {5, 1000}, {4, 1000}, {4, -1000}, {3, INT32_MIN / 2}, {3, INT32_MAX / 2}};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t i = 0; i < COUNT(changes); i++) {
            const attention_problem all = paged_case(CLFD_PAGING_CSR, 16), p = in_form(&all, f);
            attention_call *const call = attention_open(&p);
            call->indices[ATTENTION_PAGE_INDPTR].values[changes[i].at] += changes[i].change;
            attention_run(call);
            attention_expect_reference(call);
            ck_assert(call->status == CLFD_FLAG_PAGE || changes[i].at == 5);
            attention_close(call);
        }
}
END_TEST

/* The entries end where num_page_indices says, whatever the rows claim. */
START_TEST(entries_beyond_num_page_indices_are_not_used)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem all = paged_case(CLFD_PAGING_CSR, 16), p = in_form(&all, f);
        attention_call *const call = attention_open(&p);
        call->indices[ATTENTION_BLOCK_TABLE].count -= 3;
        attention_run(call);
        attention_expect_reference(call);
        ck_assert_uint_eq(call->status, CLFD_FLAG_PAGE);
        attention_close(call);
    }
}
END_TEST

/* Between windows of positions apart, and before every window over a shared sequence. */
START_TEST(pages_between_windows_set_no_flag)
{
    enum { LEN = 130, PAGE = 16 };
    static const int32_t lens[] = {LEN, LEN}, positions[] = {36, 100, 105, 40, 104, 40};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (uint32_t shared = 0; shared <= 1; shared++) {
            const attention_problem all = option_case(
                (clfd_attention){.max_batch = 2, .causal = 1, .window = 5, .query_positions = 1, .shared_kv = shared});
            attention_problem p = in_form(&all, f);
            p.attention.paging = CLFD_PAGING_TABLE;
            p.attention.page_size = PAGE;
            p.attention.max_batch = 2;
            p.kv_lens = lens;
            p.query_positions = positions;
            attention_call *const call = attention_open(&p);
            attention_run(call);
            attention_expect_reference(call);
            ck_assert_uint_eq(call->status, 0);
            *attention_page_of(call, 0, 100) = -1;
            attention_run(call);
            attention_expect_reference(call);
            ck_assert_uint_eq(call->status, CLFD_FLAG_PAGE);
            attention_close(call);
        }
}
END_TEST

/* The tiles prefetched past these are not looked up: before the table lie entries that would set a flag. */
START_TEST(the_last_tokens_that_an_int_counts_have_pages)
{
    enum { ENTRIES = 1 << 11, BEFORE = 2 * ENTRIES, VISIBLE = 40 };
    static const int32_t start = INT32_MAX - VISIBLE;
    static int32_t entries[BEFORE + ENTRIES];
    test_session *const session = test_session_get();
    float lse;
    uint32_t flags;

    for (size_t i = 0; i < BEFORE; i++)
        entries[i] = -1;
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const clfd_attention attention = {.struct_size = sizeof attention,
                                          .num_q_heads = 1,
                                          .head_dim = 16,
                                          .max_kv_len = INT32_MAX,
                                          .kv_start = 1,
                                          .paging = CLFD_PAGING_TABLE,
                                          .page_size = 1 << 20,
                                          .num_pages = 1,
                                          .k_strides.token = CLFD_STRIDE_BROADCAST,
                                          .v_strides.token = CLFD_STRIDE_BROADCAST,
                                          .tuning = decode_forms[f].tuning};
        clfd_plan *plan = NULL;
        ck_assert_int_eq(clfd_plan_create(session->context, &attention, &plan), CLFD_SUCCESS);
        const cl_mem row = test_buffer_create(CL_MEM_READ_ONLY, 64, 0), out = test_buffer_create(0, 64, 0xff);
        const cl_mem results = test_buffer_create(0, 8, 0), begin = test_buffer_create_from(0, &start, sizeof start);
        const cl_mem table = test_buffer_create_from(CL_MEM_READ_ONLY, entries, sizeof entries);
        const cl_mem workspace = test_buffer_create(0, clfd_plan_workspace_bytes(plan), 0);
        const clfd_buffers buffers = {.struct_size = sizeof buffers,
                                      .batch = 1,
                                      .q = test_buffer(row, 0),
                                      .k = test_buffer(row, 0),
                                      .v = test_buffer(row, 0),
                                      .kv_start = test_buffer(begin, 0),
                                      .block_table = test_buffer(table, BEFORE * sizeof entries[0]),
                                      .out = test_buffer(out, 0),
                                      .lse = test_buffer(results, 0),
                                      .status = test_buffer(results, sizeof lse),
                                      .workspace = test_buffer(workspace, 0)};
        const cl_mem mems[] = {row, out, results, begin, table, workspace};
        ck_assert_int_eq(clfd_enqueue_decode(plan, session->queue, &buffers, 0, NULL, NULL), CLFD_SUCCESS);
        test_buffer_read(results, 0, &lse, sizeof lse);
        test_buffer_read(results, sizeof lse, &flags, sizeof flags);
        EXPECT(flags == 0, "flags are %u of %s", flags, clfd_plan_describe(plan));
        ASSERT_VALUE(lse, log(VISIBLE), TOLERANCE_STATE);
        for (size_t i = 0; i < COUNT(mems); i++)
            clReleaseMemObject(mems[i]);
        clfd_plan_release(plan);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        pages_of_any_size_match_the_reference,
        layouts_of_pages_match_the_reference,
        v_from_paged_k_matches_the_reference,
        pages_and_their_order_change_no_bit,
        shared_and_duplicated_pages_change_no_bit,
        unused_entries_change_no_bit_and_set_no_flag,
        pages_outside_window_and_start_are_not_looked_up,
        unused_slots_and_pages_change_no_bit,
        keys_of_a_page_that_there_is_not_are_hidden_and_reported,
        a_sequence_of_wrong_pages_alone_is_empty,
        keys_beyond_a_csr_row_are_hidden_and_reported,
        entries_beyond_num_page_indices_are_not_used,
        the_last_tokens_that_an_int_counts_have_pages,
        pages_between_windows_set_no_flag,
    };
    const int result = run_suite("pages", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

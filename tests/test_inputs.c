/* What a decode kernel reads of its inputs (cl/inputs.cl): nothing outside of them, whatever lengths, positions, block
 * tables and cache rows hold. Each input lies flush against a page of memory that faults, once on either side. That is
 * seen on devices that use the memory of the host where it is, such as PoCL's CPU; elsewhere the results alone are. */
#include "support/option_cases.h"
#include "support/suite.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* ---- Memory between pages that fault ----------------------------------------------------------------------------- */

enum { MAX_REGIONS = 32 };

static struct region {
    char *base;
    size_t bytes; /* without the pages that fault */
} regions[MAX_REGIONS];
static size_t num_regions;

/* A copy of the data that begins, or ends, where the memory does. */
static cl_mem create_guarded(const void *data, size_t bytes, bool at_end)
{
    test_session *const session = test_session_get();
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
    void *memory;
    cl_int status;

    ck_assert(num_regions < MAX_REGIONS);
    ck_assert_int_eq(posix_memalign(&memory, page, room + 2 * page), 0);
    struct region *const r = &regions[num_regions++];
    *r = (struct region){memory, room};
    ck_assert_int_eq(mprotect(r->base, page, PROT_NONE), 0);
    ck_assert_int_eq(mprotect(r->base + page + room, page, PROT_NONE), 0);
    char *const at = r->base + page + (at_end ? room - bytes : 0);
    memcpy(at, data, bytes);
    const cl_mem mem = clCreateBuffer(session->cl, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, bytes, at, &status);
    ck_assert_int_eq(status, CL_SUCCESS);
    return mem;
}

static cl_mem create_at_start(const void *data, size_t bytes) { return create_guarded(data, bytes, false); }

static cl_mem create_at_end(const void *data, size_t bytes) { return create_guarded(data, bytes, true); }

static void free_regions(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    while (num_regions > 0) {
        struct region *const r = &regions[--num_regions];
        mprotect(r->base, page, PROT_READ | PROT_WRITE);
        mprotect(r->base + page + r->bytes, page, PROT_READ | PROT_WRITE);
        free(r->base);
    }
}

/* What runs while a fault may come. */
static const char *running = "";

static void report_fault(int signal)
{
    static const char message[] = "a kernel reads outside of its inputs: ";

    (void)signal;
    if (write(STDERR_FILENO, message, sizeof message - 1) < 0 || write(STDERR_FILENO, running, strlen(running)) < 0)
        _exit(2);
    _exit(EXIT_FAILURE);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* Runs a call that was changed as wanted between guards, and closes it. */
static void run_guarded(attention_call *call)
{
    running = clfd_plan_describe(call->plan);
    for (int side = 0; side < 2; side++) {
        call->create_input = side == 0 ? create_at_start : create_at_end;
        attention_run(call);
        attention_expect_reference(call);
    }
    attention_close(call);
    free_regions();
}

static void verify_guarded(const attention_problem *problem)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem p = in_form(problem, f);
        run_guarded(attention_open(&p));
    }
}

/* From none to beyond what there is room for. */
static const int32_t wild_lens[] = {200, INT32_MAX, 1, -7, 201};

START_TEST(keys_past_the_last_one_are_not_read)
{
    attention_problem p = option_case((clfd_attention){0});

    p.kv_lens = wild_lens;
    verify_guarded(&p);
    p.kv_len_bound = 33;
    verify_guarded(&p);
    p.attention.split_policy = CLFD_SPLIT_AUTO;
    p.attention.split_size = 0;
    verify_guarded(&p);
}
END_TEST

START_TEST(bias_mask_slopes_and_sinks_are_read_where_keys_and_heads_are)
{
    attention_problem p = option_case((clfd_attention){
        .bias_type = CLFD_TYPE_F16, .mask = CLFD_MASK_BOOL, .alibi = 1, .sinks = 1, .causal = 1, .window = 9});

    p.kv_lens = wild_lens;
    verify_guarded(&p);
    p.attention.bias_strides = (clfd_score_strides){.head = 1};
    p.attention.mask_strides = (clfd_score_strides){.key = 1};
    verify_guarded(&p);
}
END_TEST

START_TEST(positions_and_starts_of_any_value_lead_nowhere_else)
{
    static const int32_t positions[5][3] = {
        {INT32_MAX, INT32_MIN, 0}, {INT32_MIN, -1, 1}, {0, 1, INT32_MAX}, {5, 6, 7}, {300, 250, 100}};
    static const int32_t starts[5] = {INT32_MAX, INT32_MIN, 1, 0, 199};
    attention_problem p =
        option_case((clfd_attention){.query_positions = 1, .kv_start = 1, .window = 20, .mask = CLFD_MASK_TREE});

    p.kv_lens = wild_lens;
    p.query_positions = positions[0];
    p.kv_start = starts;
    verify_guarded(&p);
}
END_TEST

START_TEST(cache_rows_that_there_are_not_are_not_read)
{
    static const int32_t rows[] = {5, 0, -1, INT32_MAX, INT32_MIN};
    attention_problem p = option_case((clfd_attention){.cache_batch_idx = 1, .num_cache_rows = 6, .alibi = 1});

    p.kv_lens = wild_lens;
    p.cache_batch_idx = rows;
    verify_guarded(&p);
}
END_TEST

START_TEST(page_ids_and_rows_of_the_table_lead_nowhere_else)
{
    static const int32_t wrong[] = {-1, INT32_MIN, INT32_MAX, 70, 1 << 30};
    static const struct {
        clfd_paging paging;
        uint32_t page_size;
    } pagings[] = {{CLFD_PAGING_TABLE, 16}, {CLFD_PAGING_CSR, 3}};

    for (size_t k = 0; k < COUNT(pagings); k++)
        for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
            const attention_problem all = option_case((clfd_attention){.paging = pagings[k].paging,
                                                                       .page_size = pagings[k].page_size,
                                                                       .num_pages = k == 0 ? 70 : 400,
                                                                       .k_type = CLFD_TYPE_INT8,
                                                                       .k_quant = {.group = 16, .zeros = 1},
                                                                       .v_type = CLFD_TYPE_Q8_0});
            attention_problem p = in_form(&all, f);
            p.kv_lens = wild_lens;
            attention_call *const call = attention_open(&p);
            for (size_t i = 0; i < COUNT(wrong); i++)
                *attention_page_of(call, i % 2 == 0 ? 0 : 4, 48 + 16 * (uint32_t)i) = wrong[i];
            run_guarded(call);
        }
}
END_TEST

START_TEST(csr_rows_of_any_bounds_lead_nowhere_else)
{
    static const int32_t bounds[][6] = {
        {0, INT32_MAX, 5, 5, 5, 5},
        {INT32_MIN, INT32_MAX, -1, INT32_MAX, INT32_MIN, 3},
        {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX},
        {1, 2, 1, 0, 340, 400},
    };

    for (size_t i = 0; i < COUNT(bounds); i++)
        for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
            const attention_problem all = option_case((clfd_attention){.paging = CLFD_PAGING_CSR,
                                                                       .page_size = 3,
                                                                       .num_pages = 400,
                                                                       .k_type = CLFD_TYPE_INT8,
                                                                       .k_quant = {.group = 16, .zeros = 1},
                                                                       .v_type = CLFD_TYPE_Q8_0});
            attention_problem p = in_form(&all, f);
            p.kv_lens = wild_lens;
            attention_call *const call = attention_open(&p);
            memcpy(call->indices[ATTENTION_PAGE_INDPTR].values, bounds[i], sizeof bounds[i]);
            run_guarded(call);
        }
}
END_TEST

START_TEST(a_shared_cache_ends_where_its_one_sequence_does)
{
    static const int32_t length = INT32_MAX;
    attention_problem p =
        option_case((clfd_attention){.shared_kv = 1, .k_type = CLFD_TYPE_INT4, .v_type = CLFD_TYPE_FP8_E4M3});

    p.kv_lens = &length;
    verify_guarded(&p);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        keys_past_the_last_one_are_not_read,
        bias_mask_slopes_and_sinks_are_read_where_keys_and_heads_are,
        positions_and_starts_of_any_value_lead_nowhere_else,
        cache_rows_that_there_are_not_are_not_read,
        page_ids_and_rows_of_the_table_lead_nowhere_else,
        csr_rows_of_any_bounds_lead_nowhere_else,
        a_shared_cache_ends_where_its_one_sequence_does,
    };
    struct sigaction action = {.sa_handler = report_fault};

    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    const int result = run_suite("inputs", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

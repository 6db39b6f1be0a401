/* test_allocation.c - enqueueing allocates nothing. The program is linked with --wrap for the allocator, so that every
 * call of it from the library's own objects is counted, and none from the driver's. */
#include "support/append_case.h"
#include "support/attention.h"
#include "support/suite.h"
#include <clfd/clfd.h>
#include <stdio.h>
#include <unistd.h>

enum { NUM_CALLS = 100000, WARM_CALLS = 5000, BATCH_OF_CALLS = 500 };

/* What the driver itself may keep per 100,000 calls, for its caches: far below one small object a call. */
#define MAX_GROWTH_BYTES ((size_t)2 << 20)

/* The address sanitizer keeps what is freed, the driver's memory among it. */
#if defined(__SANITIZE_ADDRESS__)
#define FREED_IS_KEPT 1
#else
#define FREED_IS_KEPT 0
#endif

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static unsigned long allocations;

void *__wrap_malloc(size_t bytes)
{
    allocations++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    allocations++;
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    allocations++;
    return __real_realloc(memory, bytes);
}

/* Memory of this process that is in use, in bytes. */
static size_t resident_bytes(void)
{
    unsigned long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%lu %lu", &total, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static const attention_problem small = {
    .attention =
        {.num_q_heads = 1, .head_dim = 8, .max_kv_len = 64, .split_policy = CLFD_SPLIT_TOKENS, .split_size = 32},
};

/* Check allocates too, so nothing of it stands between the calls. */
static void decode(const attention_call *call, unsigned count)
{
    const test_session *session = test_session_get();
    clfd_status status = CLFD_SUCCESS;

    for (unsigned i = 0; i < count && status == CLFD_SUCCESS; i++)
        status = clfd_enqueue_decode(call->plan, session->queue, &call->buffers, 0, NULL, NULL);
    if (status == CLFD_SUCCESS)
        status = clFinish(session->queue);
    if (status != CLFD_SUCCESS)
        ck_abort_msg("a call failed: %s", clfd_status_string(status));
}

START_TEST(the_count_sees_the_library_allocate)
{
    clfd_plan *plan = NULL;
    clfd_attention attention = small.attention;
    const unsigned long before = allocations;

    attention.struct_size = sizeof attention;
    ck_assert_int_eq(clfd_plan_create(test_session_get()->context, &attention, &plan), CLFD_SUCCESS);
    ck_assert_uint_gt(allocations, before);
    clfd_plan_release(plan);
}
END_TEST

START_TEST(enqueueing_100000_times_allocates_nothing_and_memory_stays_flat)
{
    attention_call *call = attention_open(&small);
    size_t resident;
    unsigned long before, after;

    attention_upload(call);
    decode(call, WARM_CALLS);
    resident = resident_bytes();
    before = allocations;
    for (unsigned done = 0; done < NUM_CALLS; done += BATCH_OF_CALLS)
        decode(call, BATCH_OF_CALLS);
    after = allocations;
    ck_assert_uint_eq(after, before);
    ck_assert(FREED_IS_KEPT || resident_bytes() <= resident + MAX_GROWTH_BYTES);
    attention_read(call);
    attention_expect_reference(call);
    attention_close(call);
}
END_TEST

START_TEST(appending_allocates_nothing)
{
    static const append_problem problem = {.attention = {.num_q_heads = 1, .head_dim = 8, .max_kv_len = 64}};
    append_call *call = append_open(&problem);
    const test_session *session = test_session_get();
    clfd_status status = CLFD_SUCCESS;
    unsigned long before = 0, after;

    append_upload(call);
    for (unsigned i = 0; i < 2 * WARM_CALLS && status == CLFD_SUCCESS; i++) {
        if (i == WARM_CALLS)
            before = allocations;
        status = clfd_enqueue_append(call->plan, session->queue, &call->buffers, 0, NULL, NULL);
    }
    after = allocations;
    ck_assert_int_eq(status, CLFD_SUCCESS);
    ck_assert_int_eq(clFinish(session->queue), CL_SUCCESS);
    ck_assert_uint_eq(after, before);
    append_close(call);
}
END_TEST

START_TEST(refusals_of_a_call_allocate_nothing)
{
    attention_call *call = attention_open(&small);
    const test_session *session = test_session_get();
    clfd_buffers buffers;
    unsigned long before, after;
    clfd_status status;

    attention_upload(call);
    buffers = call->buffers;
    buffers.k.offset += 1;
    before = allocations;
    status = clfd_enqueue_decode(call->plan, session->queue, &buffers, 0, NULL, NULL);
    after = allocations;
    ck_assert_int_eq(status, CLFD_ERROR_BUFFER_SIZE);
    ck_assert_uint_eq(after, before);
    attention_close(call);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_count_sees_the_library_allocate,
        enqueueing_100000_times_allocates_nothing_and_memory_stays_flat,
        appending_allocates_nothing,
        refusals_of_a_call_allocate_nothing,
    };
    const int result = run_suite("allocation", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

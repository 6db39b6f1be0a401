/* Enqueueing decodes: events and wait lists, queues in and out of order, several calls in flight, measuring, and what may
 * change between two calls of one plan. */
#include "support/decode_cases.h"
#include "support/suite.h"
#include <math.h>
#include <pthread.h>
#include <string.h>

static const decode_family chosen = {.ratio = 2};

/* Splits of 32 tokens, so that a merge follows; or one split, and a direct write. */
static attention_problem make_problem(bool direct)
{
    attention_problem p = decode_case(&chosen);

    if (direct)
        p.attention.split_size = p.attention.max_kv_len;
    return p;
}

static attention_call *open_uploaded(const attention_problem *problem)
{
    attention_call *const call = attention_open(problem);

    attention_upload(call);
    ck_assert_int_eq(clFinish(test_session_get()->queue), CL_SUCCESS);
    return call;
}

static void enqueue(const attention_call *call, cl_command_queue queue, cl_uint num_wait, const cl_event *wait,
                    cl_event *event)
{
    ck_assert_int_eq(clfd_enqueue_decode(call->plan, queue, &call->buffers, num_wait, wait, event), CLFD_SUCCESS);
}

static cl_command_queue create_out_of_order_queue(void)
{
    test_session *const session = test_session_get();
    cl_int error;
    cl_command_queue queue =
        clCreateCommandQueue(session->cl, session->device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);

    ck_assert_int_eq(error, CL_SUCCESS);
    return queue;
}

static cl_int state_of(cl_event event)
{
    cl_int state = CL_COMPLETE;

    ck_assert_int_eq(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL), CL_SUCCESS);
    return state;
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

/* Nothing else is waited for: the outputs are read through another queue. */
START_TEST(event_completes_when_out_and_lse_are_written)
{
    for (int variant = 0; variant < 4; variant++) {
        const attention_problem p = make_problem(variant % 2 == 0);
        attention_call *const call = open_uploaded(&p);
        cl_command_queue queue =
            variant / 2 == 0 ? create_out_of_order_queue()
                             : clCreateCommandQueue(test_session_get()->cl, test_session_get()->device, 0, NULL);
        cl_event event = NULL;
        enqueue(call, queue, 0, NULL, &event);
        ck_assert_ptr_nonnull(event);
        ck_assert_int_eq(clWaitForEvents(1, &event), CL_SUCCESS);
        attention_read(call);
        attention_expect_reference(call);
        clReleaseEvent(event);
        clReleaseCommandQueue(queue);
        attention_close(call);
    }
}
END_TEST

START_TEST(decode_waits_for_its_wait_list)
{
    for (int variant = 0; variant < 6; variant++) {
        const attention_problem p = make_problem(variant % 2 == 0);
        attention_call *const call = open_uploaded(&p);
        cl_command_queue queue = create_out_of_order_queue();
        const cl_event waited[2] = {clCreateUserEvent(test_session_get()->cl, NULL),
                                    clCreateUserEvent(test_session_get()->cl, NULL)};
        cl_event done;
        if (variant / 2 == 2)
            call->buffers.batch = 0;
        enqueue(call, queue, 2, waited, &done);
        ck_assert_int_eq(clFlush(queue), CL_SUCCESS);
        ck_assert_int_eq(clSetUserEventStatus(waited[variant / 2 % 2], CL_COMPLETE), CL_SUCCESS);
        ck_assert_int_gt(state_of(done), CL_COMPLETE);
        attention_read(call);
        for (size_t i = 0; i < call->num_rows; i++)
            ck_assert(isnan(call->lse[i])); /* what it was filled with */
        ck_assert_int_eq(clSetUserEventStatus(waited[1 - variant / 2 % 2], CL_COMPLETE), CL_SUCCESS);
        ck_assert_int_eq(clWaitForEvents(1, &done), CL_SUCCESS);
        attention_read(call);
        if (call->buffers.batch != 0)
            attention_expect_reference(call);
        clReleaseEvent(waited[0]);
        clReleaseEvent(waited[1]);
        clReleaseEvent(done);
        clReleaseCommandQueue(queue);
        attention_close(call);
    }
}
END_TEST

START_TEST(profiled_decode_has_one_event_per_launch)
{
    for (int variant = 0; variant < 3; variant++) {
        const attention_problem p = make_problem(variant == 0);
        attention_call *const call = open_uploaded(&p);
        cl_event events[CLFD_MAX_LAUNCHES] = {NULL, NULL};
        cl_uint count = 99;
        cl_ulong times[4];
        call->buffers.batch = variant == 2 ? 0 : call->batch;
        ck_assert_int_eq(clfd_enqueue_decode_profiled(call->plan, test_session_get()->queue, &call->buffers, 0, NULL,
                                                      events, &count),
                         CLFD_SUCCESS);
        ck_assert_uint_eq(count, variant == 1 ? 2 : 1);
        ck_assert_int_eq(clWaitForEvents(count, events), CL_SUCCESS);
        for (cl_uint i = 0; i < count; i++) {
            ck_assert_int_eq(
                clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_START, sizeof times[0], &times[2 * i], NULL),
                CL_SUCCESS);
            ck_assert_int_eq(
                clGetEventProfilingInfo(events[i], CL_PROFILING_COMMAND_END, sizeof times[0], &times[2 * i + 1], NULL),
                CL_SUCCESS);
            ck_assert_uint_le(times[2 * i], times[2 * i + 1]);
            clReleaseEvent(events[i]);
        }
        if (count == 2)
            ck_assert_uint_le(times[1], times[2]); /* the merge begins when the splits are done */
        if (variant != 2) {
            attention_read(call);
            attention_expect_reference(call);
        }
        attention_close(call);
    }
}
END_TEST

/* ---- Several calls ----------------------------------------------------------------------------------------------- */

enum { NUM_CALLS = 8, NUM_TURNS = 20 };

/* Calls with buffers of their own, all of one plan's programs, in one queue without an order. */
START_TEST(calls_in_an_out_of_order_queue_do_not_disturb_each_other)
{
    cl_command_queue queue = create_out_of_order_queue();
    attention_call *calls[NUM_CALLS];

    for (int i = 0; i < NUM_CALLS; i++) {
        attention_problem p = make_problem(i % 4 == 3);
        p.seed = (uint64_t)i;
        calls[i] = open_uploaded(&p);
    }
    for (int turn = 0; turn < NUM_TURNS; turn++) {
        for (int i = 0; i < NUM_CALLS; i++)
            enqueue(calls[i], queue, 0, NULL, NULL);
        ck_assert_int_eq(clFinish(queue), CL_SUCCESS);
    }
    for (int i = 0; i < NUM_CALLS; i++) {
        attention_read(calls[i]);
        attention_expect_reference(calls[i]);
        attention_close(calls[i]);
    }
    clReleaseCommandQueue(queue);
}
END_TEST

/* One thread with buffers and a queue of its own on a plan that all share. */
typedef struct worker {
    pthread_t thread;
    attention_call *call;
    clfd_plan *plan;
    cl_command_queue queue;
    clfd_status status;
} worker;

static void *work(void *argument)
{
    worker *const w = argument;

    for (int turn = 0; turn < NUM_TURNS && w->status == CLFD_SUCCESS; turn++) {
        w->status = clfd_enqueue_decode(w->plan, w->queue, &w->call->buffers, 0, NULL, NULL);
        if (w->status == CLFD_SUCCESS && turn % 4 == 3)
            w->status = clFinish(w->queue);
    }
    return NULL;
}

START_TEST(threads_share_a_plan_with_workspaces_of_their_own)
{
    enum { NUM_THREADS = 4 };
    test_session *const session = test_session_get();
    worker workers[NUM_THREADS];

    for (int i = 0; i < NUM_THREADS; i++) {
        attention_problem p = make_problem(false);
        p.seed = (uint64_t)i;
        workers[i] = (worker){.call = open_uploaded(&p), .status = CLFD_SUCCESS};
        workers[i].plan = workers[0].call->plan;
        workers[i].queue =
            i % 2 == 0 ? create_out_of_order_queue() : clCreateCommandQueue(session->cl, session->device, 0, NULL);
        ck_assert_ptr_nonnull(workers[i].queue);
    }
    for (int i = 0; i < NUM_THREADS; i++)
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (int i = 0; i < NUM_THREADS; i++)
        ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
    for (int i = 0; i < NUM_THREADS; i++) {
        ck_assert_int_eq(workers[i].status, CLFD_SUCCESS);
        ck_assert_int_eq(clFinish(workers[i].queue), CL_SUCCESS);
        attention_read(workers[i].call);
        attention_expect_reference(workers[i].call);
        clReleaseCommandQueue(workers[i].queue);
    }
    for (int i = 0; i < NUM_THREADS; i++)
        attention_close(workers[i].call);
}
END_TEST

/* ---- Between calls ----------------------------------------------------------------------------------------------- */

START_TEST(lengths_are_read_on_the_device_at_every_call)
{
    enum { BATCH = 5 };
    static const int32_t lens[BATCH] = {200, 200, 200, 200, 200};
    static const int32_t later[][BATCH] = {
        {1, 2, 3, 4, 5}, {0, 0, 0, 0, 0}, {200, 31, 32, 33, 64}, {100, 0, -1, 999, 1}};
    attention_problem p = make_problem(false);

    p.kv_lens = lens;
    attention_call *const call = open_uploaded(&p);
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        memcpy(call->indices[ATTENTION_KV_LENS].values, later[i], sizeof later[i]);
        ck_assert_int_eq(clEnqueueWriteBuffer(test_session_get()->queue, call->buffers.kv_lens.mem, CL_TRUE,
                                              call->buffers.kv_lens.offset, sizeof later[i], later[i], 0, NULL, NULL),
                         CL_SUCCESS);
        enqueue(call, test_session_get()->queue, 0, NULL, NULL);
        attention_read(call);
        attention_expect_reference(call);
    }
    attention_close(call);
}
END_TEST

/* The workspace of the larger plan, initialised once, serves both in turn. */
START_TEST(plans_share_a_workspace_in_sequence)
{
    attention_problem small = make_problem(false), large = make_problem(false);

    small.attention.max_kv_len = 130;
    large.attention.partial = CLFD_PARTIAL_MLO;
    attention_call *const a = open_uploaded(&small), *const b = open_uploaded(&large);
    const clfd_buffer own = a->buffers.workspace;
    ck_assert_uint_le(clfd_plan_workspace_bytes(a->plan), clfd_plan_workspace_bytes(b->plan));
    for (int turn = 0; turn < 3; turn++) {
        a->buffers.workspace = b->buffers.workspace;
        enqueue(a, test_session_get()->queue, 0, NULL, NULL);
        enqueue(b, test_session_get()->queue, 0, NULL, NULL);
        a->buffers.workspace = own;
        attention_read(a);
        attention_expect_reference(a);
        attention_read(b);
        attention_expect_reference(b);
    }
    attention_close(a);
    attention_close(b);
}
END_TEST

/* Bounds switch between a direct write and a merge on one plan. */
START_TEST(batch_and_bound_may_differ_from_call_to_call)
{
    static const struct {
        uint32_t batch, bound;
    } calls[] = {{5, 0}, {2, 20}, {5, 32}, {1, 33}, {3, 200}, {5, 1}};

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        attention_problem p = make_problem(false);
        p.batch = calls[i].batch;
        p.kv_len_bound = calls[i].bound;
        static clfd_plan *plan;
        attention_call *const call = open_uploaded(&p);
        clfd_plan *const own = call->plan;
        if (i == 0)
            clfd_plan_retain(plan = call->plan);
        call->plan = plan;
        enqueue(call, test_session_get()->queue, 0, NULL, NULL);
        attention_read(call);
        attention_expect_reference(call);
        call->plan = own;
        attention_close(call);
        if (i + 1 == sizeof calls / sizeof calls[0])
            clfd_plan_release(plan);
    }
}
END_TEST

START_TEST(plan_may_be_released_while_its_work_is_queued)
{
    const attention_problem p = make_problem(false);
    attention_call *const call = open_uploaded(&p), *const again = attention_open(&p);
    const cl_event start = clCreateUserEvent(test_session_get()->cl, NULL);

    enqueue(call, test_session_get()->queue, 1, &start, NULL);
    clfd_plan_release(call->plan);
    call->plan = again->plan;
    clfd_plan_retain(again->plan);
    ck_assert_int_eq(clSetUserEventStatus(start, CL_COMPLETE), CL_SUCCESS);
    attention_read(call);
    attention_expect_reference(call);
    clReleaseEvent(start);
    attention_close(call);
    attention_close(again);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        event_completes_when_out_and_lse_are_written,
        decode_waits_for_its_wait_list,
        profiled_decode_has_one_event_per_launch,
        calls_in_an_out_of_order_queue_do_not_disturb_each_other,
        threads_share_a_plan_with_workspaces_of_their_own,
        lengths_are_read_on_the_device_at_every_call,
        plans_share_a_workspace_in_sequence,
        batch_and_bound_may_differ_from_call_to_call,
        plan_may_be_released_while_its_work_is_queued,
    };
    const int result = run_suite("decode", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

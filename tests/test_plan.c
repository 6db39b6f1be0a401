#include "program/embedded.h"
#include "support/compare.h"
#include "support/folder.h"
#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { HEADS = 2, KV_LEN = 40, MAX_DIM = 128, POISON = 0xA5 };

static test_session *session;

static void set_up(void)
{
    session = test_session_get();
    memset(&session->heard, 0, sizeof session->heard);
}

/* Two splits of two heads, so that the merge runs too. */
static clfd_attention describe_attention(uint32_t dim)
{
    return (clfd_attention){
        .struct_size = sizeof(clfd_attention),
        .num_q_heads = HEADS,
        .head_dim = dim,
        .max_kv_len = KV_LEN,
        .split_policy = CLFD_SPLIT_TOKENS,
        .split_size = KV_LEN / 2,
    };
}

static clfd_plan *create(clfd_context *context, const clfd_attention *attention)
{
    clfd_plan *plan = NULL;

    ck_assert_msg(clfd_plan_create(context, attention, &plan) == CLFD_SUCCESS, "%s",
                  session->heard.last[CLFD_LOG_ERROR]);
    return plan;
}

/* ---- One decode with a known answer ---------------------------------------------------------------------------------- */

/* With q = 0 every key weighs the same: V[j][d] = d comes back as d, and LSE is the logarithm of the length. */
typedef struct known_call {
    cl_command_queue queue;
    uint32_t dim;
    clfd_buffers buffers;
} known_call;

static clfd_buffer fill(cl_context cl, cl_command_queue queue, const void *data, size_t bytes)
{
    const clfd_buffer buffer = {.kind = CLFD_BUFFER_MEM,
                                .mem = clCreateBuffer(cl, CL_MEM_READ_WRITE, bytes, NULL, NULL)};

    EXPECT(buffer.mem != NULL, "no buffer of %zu bytes", bytes);
    EXPECT(clEnqueueWriteBuffer(queue, buffer.mem, CL_TRUE, 0, bytes, data, 0, NULL, NULL) == CL_SUCCESS,
           "cannot write %zu bytes", bytes);
    return buffer;
}

static void open_call(known_call *call, cl_context cl, cl_command_queue queue, const clfd_plan *plan, uint32_t dim)
{
    static const float zeros[HEADS * MAX_DIM];
    const size_t workspace_bytes = clfd_plan_workspace_bytes(plan);
    float *const v = malloc((size_t)KV_LEN * HEADS * dim * sizeof *v);
    void *const poison = malloc(workspace_bytes);

    EXPECT(v != NULL && poison != NULL, "no memory");
    for (uint32_t i = 0; i < KV_LEN * HEADS * dim; i++)
        v[i] = (float)(i % dim);
    memset(poison, POISON, workspace_bytes);
    *call = (known_call){queue, dim, {.struct_size = sizeof call->buffers, .batch = 1}};
    call->buffers.q = fill(cl, queue, zeros, HEADS * dim * sizeof(float));
    call->buffers.k = fill(cl, queue, v, (size_t)KV_LEN * HEADS * dim * sizeof *v);
    call->buffers.v = fill(cl, queue, v, (size_t)KV_LEN * HEADS * dim * sizeof *v);
    call->buffers.out = fill(cl, queue, poison, HEADS * dim * sizeof(float));
    call->buffers.lse = fill(cl, queue, poison, HEADS * sizeof(float));
    call->buffers.workspace = fill(cl, queue, poison, workspace_bytes);
    free(v);
    free(poison);
}

static void close_call(known_call *call)
{
    const clfd_buffer *const all[] = {&call->buffers.q,   &call->buffers.k,   &call->buffers.v,
                                      &call->buffers.out, &call->buffers.lse, &call->buffers.workspace};

    for (size_t i = 0; i < COUNT(all); i++)
        EXPECT(clReleaseMemObject(all[i]->mem) == CL_SUCCESS, "a buffer is gone");
}

/* Whether the call gives its known answer. Runs in any thread: it asserts nothing. */
static bool answers(clfd_plan *plan, const known_call *call)
{
    float out[HEADS * MAX_DIM], lse[HEADS];
    const clfd_buffers *const b = &call->buffers;

    if (clfd_enqueue_workspace_init(plan, call->queue, &b->workspace, 0, NULL, NULL) != CLFD_SUCCESS ||
        clfd_enqueue_decode(plan, call->queue, b, 0, NULL, NULL) != CLFD_SUCCESS ||
        clEnqueueReadBuffer(call->queue, b->out.mem, CL_TRUE, 0, HEADS * call->dim * sizeof(float), out, 0, NULL,
                            NULL) != CL_SUCCESS ||
        clEnqueueReadBuffer(call->queue, b->lse.mem, CL_TRUE, 0, sizeof lse, lse, 0, NULL, NULL) != CL_SUCCESS)
        return false;
    for (uint32_t i = 0; i < HEADS * call->dim; i++)
        if (!compare_value((double)out[i], i % call->dim, TOLERANCE_OUT_F32))
            return false;
    return compare_value((double)lse[0], log(KV_LEN), TOLERANCE_LSE) &&
           compare_value((double)lse[1], log(KV_LEN), TOLERANCE_LSE);
}

static void expect_answer(clfd_plan *plan, uint32_t dim)
{
    known_call call;

    open_call(&call, session->cl, session->queue, plan, dim);
    ck_assert_msg(answers(plan, &call), "%s: %s", clfd_plan_describe(plan), session->heard.last[CLFD_LOG_ERROR]);
    close_call(&call);
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

START_TEST(a_plan_describes_itself_tells_its_workspace_and_runs)
{
    const clfd_attention a = describe_attention(64);
    clfd_plan *const plan = create(session->context, &a);

    ck_assert_ptr_nonnull(strstr(clfd_plan_describe(plan), " f32 d64 g1 q1 "));
    ck_assert_ptr_nonnull(strstr(clfd_plan_describe(plan), " splits2 "));
    /* The control region, and for two splits of two heads 64 floats of o and one of S, which end on 64 bytes, as
     * does the list of how many splits each sequence has. */
    ck_assert_uint_eq(clfd_plan_workspace_bytes(plan), 131072 + 4 * 64 * 4 + 64 + 64);
    expect_answer(plan, 64);
    clfd_plan_release(plan);
}
END_TEST

START_TEST(the_last_of_several_references_ends_a_plan)
{
    const clfd_attention a = describe_attention(64);
    clfd_plan *const plan = create(session->context, &a);

    clfd_plan_retain(plan);
    clfd_plan_retain(plan);
    clfd_plan_release(plan);
    clfd_plan_release(plan);
    expect_answer(plan, 64);
    clfd_plan_release(plan);
}
END_TEST

START_TEST(nothing_is_asked_of_no_plan)
{
    clfd_plan_retain(NULL);
    clfd_plan_release(NULL);
    ck_assert_uint_eq(clfd_plan_workspace_bytes(NULL), 0);
    ck_assert_ptr_null(clfd_plan_describe(NULL));
    ck_assert_int_eq(clfd_plan_warmup(NULL, session->queue), CLFD_ERROR_NULL_ARGUMENT);
}
END_TEST

START_TEST(a_plan_is_written_only_on_success)
{
    clfd_attention a = describe_attention(64);
    clfd_plan *const mark = (clfd_plan *)&a;
    clfd_plan *plan = mark;

    ck_assert_int_eq(clfd_plan_create(NULL, &a, &plan), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_plan_create(session->context, &a, NULL), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_plan_create(session->context, NULL, &plan), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 2);
    a.head_dim = 65;
    ck_assert_int_eq(clfd_plan_create(session->context, &a, &plan), CLFD_ERROR_HEAD_DIM);
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 3);
    a = describe_attention(64);
    a.tuning = "no_such_key=1";
    ck_assert_int_eq(clfd_plan_create(session->context, &a, &plan), CLFD_ERROR_TUNING);
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 4);
    a = describe_attention(64);
    a.split_size = 1;
    a.max_kv_len = 0x7fffffff;
    ck_assert_int_eq(clfd_plan_create(session->context, &a, &plan), CLFD_ERROR_OVERFLOW);
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 5);
    ck_assert_ptr_eq(plan, mark);
}
END_TEST

START_TEST(a_plan_keeps_nothing_of_its_descriptor)
{
    char tuning[] = "min_split=300", described[512];
    clfd_attention a = describe_attention(64);

    a.tuning = tuning;
    clfd_plan *const plan = create(session->context, &a);
    snprintf(described, sizeof described, "%s", clfd_plan_describe(plan));
    ck_assert_ptr_nonnull(strstr(described, "min_split=300"));
    memset(tuning, 'x', sizeof tuning - 1);
    memset(&a, POISON, sizeof a);
    ck_assert_str_eq(clfd_plan_describe(plan), described);
    expect_answer(plan, 64);
    clfd_plan_release(plan);
}
END_TEST

static clfd_context *create_context(cl_context cl)
{
    const clfd_context_options options = {.struct_size = sizeof options, .logger = test_logger(&session->heard)};
    clfd_context *context = NULL;

    ck_assert_msg(clfd_context_create(cl, session->device, &options, &context) == CLFD_SUCCESS, "%s",
                  session->heard.last[CLFD_LOG_ERROR]);
    return context;
}

START_TEST(a_plan_outlives_the_callers_reference_of_its_context)
{
    const clfd_attention a = describe_attention(64);
    clfd_context *const context = create_context(session->cl);
    clfd_plan *const plan = create(context, &a);

    clfd_context_release(context);
    expect_answer(plan, 64);
    clfd_plan_release(plan);
}
END_TEST

START_TEST(a_plan_warms_up_with_and_without_a_merge)
{
    clfd_attention a = describe_attention(64);
    clfd_plan *plan = create(session->context, &a);

    ck_assert_int_eq(clfd_plan_warmup(plan, NULL), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_plan_warmup(plan, session->queue), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_plan_warmup(plan, session->queue), CLFD_SUCCESS);
    expect_answer(plan, 64);
    clfd_plan_release(plan);
    a.split_size = KV_LEN;
    plan = create(session->context, &a);
    ck_assert_int_eq(clfd_plan_warmup(plan, session->queue), CLFD_SUCCESS);
    expect_answer(plan, 64);
    clfd_plan_release(plan);
}
END_TEST

/* A warm-up has scratch memory for everything: nothing of the caller's is there yet. */
START_TEST(plans_with_options_warm_up_and_then_run)
{
    static const clfd_attention options[] = {
        {.alibi = 1, .bias_type = CLFD_TYPE_F32, .mask = CLFD_MASK_TREE, .sinks = 1, .window = 20},
        {.query_positions = 1, .kv_start = 1, .cache_batch_idx = 1, .paging = CLFD_PAGING_CSR, .page_size = 16},
        {.k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_FP8_E4M3, .k_quant = {.zeros = 1}},
        {.shared_kv = 1, .mask = CLFD_MASK_BOOL},
    };
    static const int32_t lens[] = {33, 0, 50, 1, 97};

    for (size_t i = 0; i < COUNT(options); i++) {
        attention_problem p = option_case(options[i]);
        p.kv_lens = lens;
        if (i == 2) { /* two decode kernels */
            p.attention.split_policy = CLFD_SPLIT_AUTO;
            p.attention.split_size = 0;
        }
        attention_call *const call = attention_open(&p);
        ck_assert_int_eq(clfd_plan_warmup(call->plan, session->queue), CLFD_SUCCESS);
        ck_assert_int_eq(clfd_plan_warmup(call->plan, session->queue), CLFD_SUCCESS);
        attention_run(call);
        attention_expect_reference(call);
        attention_close(call);
    }
}
END_TEST

/* ---- Many -------------------------------------------------------------------------------------------------------- */

START_TEST(a_hundred_plans_come_and_go_with_one_build)
{
    const clfd_attention a = describe_attention(64);
    int builds;

    clfd_plan_release(create(session->context, &a));
    builds = session->heard.count[CLFD_LOG_INFO];
    for (int i = 0; i < 100; i++) {
        clfd_plan *const plan = create(session->context, &a);
        expect_answer(plan, 64);
        clfd_plan_release(plan);
    }
    ck_assert_int_eq(session->heard.count[CLFD_LOG_INFO], builds);
}
END_TEST

START_TEST(plans_of_two_dims_live_on_one_context)
{
    const clfd_attention narrow = describe_attention(64), wide = describe_attention(128);
    clfd_plan *const first = create(session->context, &narrow), *const second = create(session->context, &wide);

    for (int i = 0; i < 2; i++) {
        expect_answer(first, 64);
        expect_answer(second, 128);
    }
    clfd_plan_release(first);
    expect_answer(second, 128);
    clfd_plan_release(second);
}
END_TEST

START_TEST(two_contexts_work_in_turn)
{
    const clfd_attention a = describe_attention(64);
    const cl_context other = clCreateContext(NULL, 1, &session->device, NULL, NULL, NULL);
    const cl_command_queue queue = clCreateCommandQueue(other, session->device, 0, NULL);
    clfd_context *const context = create_context(other);
    clfd_plan *const here = create(session->context, &a), *const there = create(context, &a);
    known_call call;

    open_call(&call, other, queue, there, 64);
    for (int i = 0; i < 5; i++) {
        expect_answer(here, 64);
        ck_assert(answers(there, &call));
    }
    close_call(&call);
    clfd_plan_release(there);
    clfd_context_release(context);
    expect_answer(here, 64);
    clfd_plan_release(here);
    ck_assert_int_eq(clReleaseCommandQueue(queue), CL_SUCCESS);
    ck_assert_int_eq(clReleaseContext(other), CL_SUCCESS);
}
END_TEST

/* A thread that decodes with a shared plan, a queue and a workspace of its own. */
typedef struct decoding_thread {
    pthread_t thread;
    clfd_plan *plan;
    known_call call;
    int right;
} decoding_thread;

enum { NUM_THREADS = 4, CALLS_PER_THREAD = 25 };

static void *decode_often(void *argument)
{
    decoding_thread *const self = argument;

    clfd_plan_retain(self->plan);
    for (int i = 0; i < CALLS_PER_THREAD; i++)
        self->right += answers(self->plan, &self->call);
    clfd_plan_release(self->plan);
    return NULL;
}

START_TEST(threads_share_a_plan)
{
    const clfd_attention a = describe_attention(64);
    clfd_plan *const plan = create(session->context, &a);
    decoding_thread threads[NUM_THREADS];

    for (int i = 0; i < NUM_THREADS; i++) {
        const cl_command_queue queue = clCreateCommandQueue(session->cl, session->device, 0, NULL);
        threads[i] = (decoding_thread){.plan = plan};
        open_call(&threads[i].call, session->cl, queue, plan, 64);
    }
    for (int i = 0; i < NUM_THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i].thread, NULL, decode_often, &threads[i]), 0);
    for (int i = 0; i < NUM_THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i].thread, NULL), 0);
        ck_assert_int_eq(threads[i].right, CALLS_PER_THREAD);
        close_call(&threads[i].call);
        ck_assert_int_eq(clReleaseCommandQueue(threads[i].call.queue), CL_SUCCESS);
    }
    clfd_plan_release(plan);
}
END_TEST

/* ---- Tuning rows that do not work out ---------------------------------------------------------------------------------- */

/* A context whose kernels come from a folder: the shipped ones, but every decode kernel begins with `first_line`. */
static clfd_context *create_sabotaged(char folder[64], const char *first_line)
{
    clfd_context *context;

    test_folder_create(folder);
    for (const struct clfd_embedded *kernel = clfd_kernels; kernel->name != NULL; kernel++) {
        const bool decode =
            strcmp(kernel->name, "decode_vector.cl") == 0 || strcmp(kernel->name, "decode_lanes.cl") == 0;
        const size_t bytes = kernel->bytes + strlen(first_line) + 2;
        char *const text = malloc(bytes);
        ck_assert_ptr_nonnull(text);
        snprintf(text, bytes, "%s\n%s", decode ? first_line : "", kernel->text);
        test_folder_write(folder, kernel->name, text);
        free(text);
    }
    ck_assert_int_eq(setenv("CLFD_KERNEL_DIR", folder, 1), 0);
    context = create_context(session->cl);
    ck_assert_int_eq(unsetenv("CLFD_KERNEL_DIR"), 0);
    return context;
}

/* All but the reference row, whose tile is 1, are refused by the compiler. */
START_TEST(a_row_that_does_not_build_gives_way_to_the_next_with_a_warning)
{
    char folder[64];
    const clfd_attention a = describe_attention(64);
    clfd_context *const context = create_sabotaged(folder, "#if !defined(VECTOR_TILE) || VECTOR_TILE > 1\n"
                                                           "#error sabotage\n"
                                                           "#endif");
    clfd_plan *const plan = create(context, &a);

    ck_assert_ptr_nonnull(strstr(clfd_plan_describe(plan), "decode_vector"));
    ck_assert_ptr_nonnull(strstr(clfd_plan_describe(plan), " tile=1 "));
    ck_assert_int_ge(session->heard.count[CLFD_LOG_WARNING], 2); /* what the compiler said, and what follows from it */
    ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_WARNING], "is refused: CL_BUILD_PROGRAM_FAILURE"));
    ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_WARNING], "trying the next"));
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 0);
    expect_answer(plan, 64);
    clfd_plan_release(plan);
    clfd_context_release(context);
    test_folder_remove(folder);
}
END_TEST

START_TEST(a_plan_fails_with_the_last_rows_status_where_no_row_builds)
{
    char folder[64];
    const clfd_attention a = describe_attention(64);
    clfd_context *const context = create_sabotaged(folder, "#error sabotage");
    clfd_plan *plan = NULL;

    ck_assert_int_eq(clfd_plan_create(context, &a, &plan), CL_BUILD_PROGRAM_FAILURE);
    ck_assert_ptr_null(plan);
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_ERROR], "decode_vector does not build"));
    ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_ERROR], "sabotage"));
    clfd_context_release(context);
    test_folder_remove(folder);
}
END_TEST

/* An override is the only row: its failure is the plan's. */
START_TEST(an_override_that_does_not_build_has_no_next_row)
{
    char folder[64];
    clfd_attention a = describe_attention(64);
    clfd_context *const context = create_sabotaged(folder, "#if VECTOR_TILE == 32\n#error sabotage\n#endif");
    clfd_plan *plan = NULL;

    a.tuning = "family=decode_vector tile=32";
    ck_assert_int_eq(clfd_plan_create(context, &a, &plan), CL_BUILD_PROGRAM_FAILURE);
    ck_assert_ptr_null(plan);
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_int_eq(session->heard.count[CLFD_LOG_WARNING], 0);
    clfd_context_release(context);
    test_folder_remove(folder);
}
END_TEST

/* A merge that does not build ends the plan too, and leaves no kernel behind (seen by the address sanitizer). */
START_TEST(a_merge_that_does_not_build_fails_the_plan)
{
    char folder[64];
    clfd_attention a = describe_attention(64);
    clfd_context *const context = create_sabotaged(folder, "");
    clfd_plan *plan = NULL;

    test_folder_write(folder, "merge.cl", "#error no merge today\n");
    ck_assert_int_eq(clfd_plan_create(context, &a, &plan), CL_BUILD_PROGRAM_FAILURE);
    ck_assert_ptr_null(plan);
    ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_ERROR], "no merge today"));
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 1);
    a.split_size = KV_LEN; /* which needs none */
    plan = create(context, &a);
    expect_answer(plan, 64);
    clfd_plan_release(plan);
    clfd_context_release(context);
    test_folder_remove(folder);
}
END_TEST

/* What a plan accepts must run. */
START_TEST(every_work_group_that_a_plan_accepts_runs)
{
    static const char *const tunings[] = {"family=decode_vector wg=1", "family=decode_vector wg=4",
                                          "family=decode_lanes exchange=local wg=32 lanes=8 parts=2"};

    for (size_t i = 0; i < COUNT(tunings); i++) {
        clfd_attention a = describe_attention(64);
        clfd_plan *plan = NULL;
        a.tuning = tunings[i];
        session->heard.count[CLFD_LOG_ERROR] = 0;
        if (clfd_plan_create(session->context, &a, &plan) == CLFD_SUCCESS)
            expect_answer(plan, 64);
        else
            ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 1);
        clfd_plan_release(plan);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_plan_describes_itself_tells_its_workspace_and_runs,
        the_last_of_several_references_ends_a_plan,
        nothing_is_asked_of_no_plan,
        a_plan_is_written_only_on_success,
        a_plan_keeps_nothing_of_its_descriptor,
        a_plan_outlives_the_callers_reference_of_its_context,
        a_plan_warms_up_with_and_without_a_merge,
        plans_with_options_warm_up_and_then_run,
        a_hundred_plans_come_and_go_with_one_build,
        plans_of_two_dims_live_on_one_context,
        two_contexts_work_in_turn,
        threads_share_a_plan,
        a_row_that_does_not_build_gives_way_to_the_next_with_a_warning,
        a_plan_fails_with_the_last_rows_status_where_no_row_builds,
        an_override_that_does_not_build_has_no_next_row,
        a_merge_that_does_not_build_fails_the_plan,
        every_work_group_that_a_plan_accepts_runs,
    };
    const int failed = run_suite_around("plan", tests, COUNT(tests), set_up, NULL);

    test_session_close();
    return failed;
}

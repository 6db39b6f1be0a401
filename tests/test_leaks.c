/* test_leaks.c - whatever the library is asked for, in the end it holds no OpenCL object. The program runs under the
 * layer layer_count, which sees what an address sanitizer does not: references of objects that the driver owns. */
#include "support/device.h"
#include "support/layer_count.h"
#include "support/suite.h"
#include <clfd/clfd.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_HEADS = 2, MAX_KV_LEN = 64, NUM_BUFFERS = 6 };

static const char *const kind_names[LAYER_NUM_KINDS] = {
    [LAYER_CONTEXT] = "contexts", [LAYER_QUEUE] = "queues",   [LAYER_MEM] = "buffers",
    [LAYER_PROGRAM] = "programs", [LAYER_KERNEL] = "kernels", [LAYER_EVENT] = "events",
};

static layer_count_read_function read_counts;

/* Finds the layer, which the loader has opened at the first OpenCL call. */
static void set_up(void)
{
    const char *path = getenv("OPENCL_LAYERS");
    void *module, *symbol;

    test_device();
    ck_assert_msg(path != NULL, "this test runs with OPENCL_LAYERS=<path of layer_count>");
    module = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    ck_assert_msg(module != NULL, "the loader has not opened the layer %s", path);
    symbol = dlsym(module, LAYER_COUNT_READ);
    ck_assert_ptr_nonnull(symbol);
    memcpy(&read_counts, &symbol, sizeof symbol);
    dlclose(module);
}

static long live(layer_kind kind)
{
    layer_count counts[LAYER_NUM_KINDS];

    read_counts(counts);
    return counts[kind].created + counts[kind].retained - counts[kind].released;
}

static void expect_nothing_live(void)
{
    for (int kind = 0; kind < LAYER_NUM_KINDS; kind++)
        ck_assert_msg(live(kind) == 0, "%ld references of %s are left", live(kind), kind_names[kind]);
}

/* Everything around one plan. */
typedef struct setting {
    test_rig rig;
    clfd_plan *plan;
    clfd_buffers buffers;
} setting;

static clfd_buffer make_buffer(cl_context cl, size_t bytes)
{
    clfd_buffer buffer = {.kind = CLFD_BUFFER_MEM};

    buffer.mem = clCreateBuffer(cl, CL_MEM_READ_WRITE, bytes, NULL, NULL);
    ck_assert_ptr_nonnull(buffer.mem);
    return buffer;
}

static clfd_attention describe(uint32_t head_dim)
{
    return (clfd_attention){.struct_size = sizeof(clfd_attention),
                            .num_q_heads = NUM_HEADS,
                            .head_dim = head_dim,
                            .max_kv_len = MAX_KV_LEN,
                            .split_policy = CLFD_SPLIT_TOKENS,
                            .split_size = MAX_KV_LEN / 4};
}

/* A plan of four splits, so that the merge runs too, with buffers for it. */
static void open_plan(setting *opened, uint32_t head_dim)
{
    const clfd_attention attention = describe(head_dim);
    const size_t row_bytes = NUM_HEADS * head_dim * sizeof(float);
    clfd_buffers *b = &opened->buffers;

    ck_assert_int_eq(clfd_plan_create(opened->rig.clfd, &attention, &opened->plan), CLFD_SUCCESS);
    *b = (clfd_buffers){.struct_size = sizeof *b, .batch = 1};
    b->q = make_buffer(opened->rig.context, row_bytes);
    b->k = make_buffer(opened->rig.context, MAX_KV_LEN * row_bytes);
    b->v = make_buffer(opened->rig.context, MAX_KV_LEN * row_bytes);
    b->out = make_buffer(opened->rig.context, row_bytes);
    b->lse = make_buffer(opened->rig.context, NUM_HEADS * sizeof(float));
    b->workspace = make_buffer(opened->rig.context, clfd_plan_workspace_bytes(opened->plan));
}

static void close_plan(setting *opened)
{
    const clfd_buffers *b = &opened->buffers;
    cl_mem mems[NUM_BUFFERS] = {b->q.mem, b->k.mem, b->v.mem, b->out.mem, b->lse.mem, b->workspace.mem};

    clfd_plan_release(opened->plan);
    for (size_t i = 0; i < NUM_BUFFERS; i++)
        ck_assert_int_eq(clReleaseMemObject(mems[i]), CL_SUCCESS);
}

static void decode(const setting *opened)
{
    ck_assert_int_eq(
        clfd_enqueue_workspace_init(opened->plan, opened->rig.queue, &opened->buffers.workspace, 0, NULL, NULL),
        CLFD_SUCCESS);
    ck_assert_int_eq(clfd_enqueue_decode(opened->plan, opened->rig.queue, &opened->buffers, 0, NULL, NULL),
                     CLFD_SUCCESS);
    ck_assert_int_eq(clFinish(opened->rig.queue), CL_SUCCESS);
}

/* The layer itself: a reference that is held is seen, and so is its release. */
START_TEST(layer_counts_what_a_program_holds)
{
    cl_device_id device = test_device();
    cl_context cl = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_event event = clCreateUserEvent(cl, NULL);

    ck_assert_int_eq(live(LAYER_CONTEXT), 1);
    ck_assert_int_eq(live(LAYER_EVENT), 1);
    ck_assert_int_eq(clRetainEvent(event), CL_SUCCESS);
    ck_assert_int_eq(live(LAYER_EVENT), 2);
    ck_assert_int_eq(clReleaseEvent(event), CL_SUCCESS);
    ck_assert_int_eq(clReleaseEvent(event), CL_SUCCESS);
    ck_assert_int_eq(clReleaseContext(cl), CL_SUCCESS);
    expect_nothing_live();
}
END_TEST

/* Every enqueue, with and without an event for the caller. */
START_TEST(decode_leaves_no_reference)
{
    cl_event event, events[CLFD_MAX_LAUNCHES];
    cl_uint num_events = 0;
    setting opened;

    test_rig_open(&opened.rig);
    open_plan(&opened, 64);
    ck_assert_int_eq(clfd_plan_warmup(opened.plan, opened.rig.queue), CLFD_SUCCESS);
    decode(&opened);
    ck_assert_int_eq(live(LAYER_EVENT), 0);
    ck_assert_int_eq(clfd_enqueue_decode(opened.plan, opened.rig.queue, &opened.buffers, 0, NULL, &event),
                     CLFD_SUCCESS);
    ck_assert_int_eq(
        clfd_enqueue_decode_profiled(opened.plan, opened.rig.queue, &opened.buffers, 1, &event, events, &num_events),
        CLFD_SUCCESS);
    ck_assert_uint_eq(num_events, 2);
    ck_assert_int_eq(live(LAYER_EVENT), 3);
    opened.buffers.batch = 0;
    ck_assert_int_eq(clfd_enqueue_decode(opened.plan, opened.rig.queue, &opened.buffers, 0, NULL, NULL), CLFD_SUCCESS);
    ck_assert_int_eq(live(LAYER_EVENT), 3);
    ck_assert_int_eq(clReleaseEvent(event), CL_SUCCESS);
    ck_assert_int_eq(clReleaseEvent(events[0]), CL_SUCCESS);
    ck_assert_int_eq(clReleaseEvent(events[1]), CL_SUCCESS);
    close_plan(&opened);
    test_rig_close(&opened.rig);
    expect_nothing_live();
}
END_TEST

START_TEST(merge_leaves_no_reference)
{
    const clfd_merge merge = {.struct_size = sizeof merge, .max_rows = 1, .head_dim_v = 8};
    clfd_state_buffers states = {.o = {0}}, merged = {.o = {0}};
    clfd_merge_plan *plan = NULL;
    setting opened;

    test_rig_open(&opened.rig);
    states.o = make_buffer(opened.rig.context, 2 * 8 * sizeof(float));
    states.lse = make_buffer(opened.rig.context, 2 * sizeof(float));
    merged.o = make_buffer(opened.rig.context, 8 * sizeof(float));
    merged.lse = make_buffer(opened.rig.context, sizeof(float));
    ck_assert_int_eq(clfd_merge_plan_create(opened.rig.clfd, &merge, &plan), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_enqueue_merge(plan, opened.rig.queue, 1, &states, &merged, 0, NULL, NULL), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_enqueue_merge_pair(plan, opened.rig.queue, 1, &merged, &states, &merged, 0, NULL, NULL),
                     CLFD_SUCCESS);
    ck_assert_int_eq(clFinish(opened.rig.queue), CL_SUCCESS);
    clfd_merge_plan_release(plan);
    ck_assert_int_eq(clReleaseMemObject(states.o.mem), CL_SUCCESS);
    ck_assert_int_eq(clReleaseMemObject(states.lse.mem), CL_SUCCESS);
    ck_assert_int_eq(clReleaseMemObject(merged.o.mem), CL_SUCCESS);
    ck_assert_int_eq(clReleaseMemObject(merged.lse.mem), CL_SUCCESS);
    test_rig_close(&opened.rig);
    expect_nothing_live();
}
END_TEST

START_TEST(append_leaves_no_reference)
{
    const clfd_attention cache = describe(8);
    const clfd_append append = {.struct_size = sizeof append, .attention = &cache};
    const size_t row_bytes = NUM_HEADS * 8 * sizeof(float);
    clfd_append_buffers b = {.struct_size = sizeof b, .batch = 1};
    clfd_append_plan *plan = NULL;
    cl_event event;
    setting opened;

    test_rig_open(&opened.rig);
    b.new_k = make_buffer(opened.rig.context, row_bytes);
    b.k = make_buffer(opened.rig.context, MAX_KV_LEN * row_bytes);
    b.v = make_buffer(opened.rig.context, MAX_KV_LEN * row_bytes);
    b.new_v = b.new_k;
    ck_assert_int_eq(clfd_append_plan_create(opened.rig.clfd, &append, &plan), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_enqueue_append(plan, opened.rig.queue, &b, 0, NULL, &event), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_enqueue_append(plan, opened.rig.queue, &b, 1, &event, NULL), CLFD_SUCCESS);
    b.k.offset = 16;
    ck_assert_int_eq(clfd_enqueue_append(plan, opened.rig.queue, &b, 0, NULL, NULL), CLFD_ERROR_BUFFER_SIZE);
    ck_assert_int_eq(clReleaseEvent(event), CL_SUCCESS);
    ck_assert_int_eq(clFinish(opened.rig.queue), CL_SUCCESS);
    clfd_append_plan_release(plan);
    ck_assert_int_eq(clReleaseMemObject(b.new_k.mem), CL_SUCCESS);
    ck_assert_int_eq(clReleaseMemObject(b.k.mem), CL_SUCCESS);
    ck_assert_int_eq(clReleaseMemObject(b.v.mem), CL_SUCCESS);
    test_rig_close(&opened.rig);
    expect_nothing_live();
}
END_TEST

/* What is refused, early or late, takes nothing with it. */
START_TEST(refusals_leave_no_reference)
{
    clfd_attention wrong = describe(64);
    clfd_plan *plan = NULL;
    cl_event event = NULL;
    setting opened;

    test_rig_open(&opened.rig);
    wrong.num_kv_heads = NUM_HEADS + 1;
    ck_assert_int_eq(clfd_plan_create(opened.rig.clfd, &wrong, &plan), CLFD_ERROR_HEAD_RATIO);
    wrong = describe(64);
    wrong.tuning = "no_such_word=1";
    ck_assert_int_eq(clfd_plan_create(opened.rig.clfd, &wrong, &plan), CLFD_ERROR_TUNING);
    open_plan(&opened, 64);
    opened.buffers.k.offset = 16;
    ck_assert_int_eq(clfd_enqueue_decode(opened.plan, opened.rig.queue, &opened.buffers, 0, NULL, &event),
                     CLFD_ERROR_BUFFER_SIZE);
    ck_assert_ptr_null(event);
    close_plan(&opened);
    test_rig_close(&opened.rig);
    expect_nothing_live();
}
END_TEST

START_TEST(a_hundred_plans_come_and_go)
{
    setting opened;

    test_rig_open(&opened.rig);
    for (int i = 0; i < 100; i++) {
        open_plan(&opened, 64);
        decode(&opened);
        close_plan(&opened);
        ck_assert_int_eq(live(LAYER_PROGRAM), 2);
        ck_assert_int_eq(live(LAYER_KERNEL), 0);
        ck_assert_int_eq(live(LAYER_MEM), 0);
    }
    test_rig_close(&opened.rig);
    expect_nothing_live();
}
END_TEST

START_TEST(five_contexts_come_and_go)
{
    for (int i = 0; i < 5; i++) {
        setting opened;

        test_rig_open(&opened.rig);
        open_plan(&opened, 64);
        decode(&opened);
        close_plan(&opened);
        test_rig_close(&opened.rig);
        expect_nothing_live();
    }
}
END_TEST

/* Each context keeps its programs as long as it lives; plans share them and keep it alive. */
START_TEST(alternating_contexts_and_dims_leave_no_reference)
{
    setting opened[2];

    test_rig_open(&opened[0].rig);
    test_rig_open(&opened[1].rig);
    for (int i = 0; i < 8; i++) {
        setting *turn = &opened[i % 2];
        open_plan(turn, i / 2 % 2 == 0 ? 64 : 128);
        decode(turn);
        close_plan(turn);
        /* A merge kernel and a decode kernel, for each of the dims so far. */
        ck_assert_int_eq(live(LAYER_PROGRAM), 2 * (i < 4 ? i + 1 : 4));
        ck_assert_int_eq(live(LAYER_KERNEL), 0);
    }
    test_rig_close(&opened[0].rig);
    open_plan(&opened[1], 64);
    decode(&opened[1]);
    close_plan(&opened[1]);
    test_rig_close(&opened[1].rig);
    expect_nothing_live();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        layer_counts_what_a_program_holds, decode_leaves_no_reference,
        merge_leaves_no_reference,         append_leaves_no_reference,
        refusals_leave_no_reference,       a_hundred_plans_come_and_go,
        five_contexts_come_and_go,         alternating_contexts_and_dims_leave_no_reference,
    };

    return run_suite_around("leaks", tests, sizeof tests / sizeof tests[0], set_up, NULL);
}

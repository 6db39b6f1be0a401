/* The rules of the buffers, the queue and the wait list of a decode and of a workspace's initialisation. After every
 * refusal nothing that the call would have written has changed. Those of a merge: test_buffers_merge.c. */
#include "run/buffers.h"
#include "support/session.h"
#include "support/suite.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum {
    BATCH = 2,
    Q_HEADS = 4,
    KV_HEADS = 2,
    DIM = 64,
    DIM_V = 32,
    KV_LEN = 128,
    POISON = 0xA5,
    NUM_TENSORS = 7,
    WORKSPACE = 6,
    MAX_BYTES = 256 << 10
};

/* The tensors of a call: name, place, size at BATCH and KV_LEN (of the workspace: asked of the plan), alignment of the
 * offset. */
static const struct tensor {
    const char *name;
    size_t place, bytes, alignment;
    bool required, written;
} tensors[NUM_TENSORS] = {
    {"q", offsetof(clfd_buffers, q), BATCH *Q_HEADS *DIM * 4, 16, true, false},
    {"k", offsetof(clfd_buffers, k), BATCH *KV_LEN *KV_HEADS *DIM * 4, 16, true, false},
    {"v", offsetof(clfd_buffers, v), BATCH *KV_LEN *KV_HEADS *DIM_V * 4, 16, true, false},
    {"kv_lens", offsetof(clfd_buffers, kv_lens), BATCH * 4, 4, false, false},
    {"out", offsetof(clfd_buffers, out), BATCH *Q_HEADS *DIM_V * 4, 16, true, true},
    {"lse", offsetof(clfd_buffers, lse), BATCH *Q_HEADS * 4, 4, false, true},
    {"workspace", offsetof(clfd_buffers, workspace), 0, 64, true, true},
};

static const clfd_attention described = {
    .struct_size = sizeof(clfd_attention),
    .max_batch = BATCH,
    .num_q_heads = Q_HEADS,
    .num_kv_heads = KV_HEADS,
    .head_dim = DIM,
    .head_dim_v = DIM_V,
    .max_kv_len = KV_LEN,
    .split_policy = CLFD_SPLIT_COUNT,
    .split_size = 2,
};

static test_session *session;
static clfd_plan *plan;
static clfd_buffers buffers;          /* those of a whole call; a test spoils one */
static cl_mem whole[NUM_TENSORS];     /* exactly as large as must be */
static cl_mem extra[NUM_TENSORS + 4]; /* what a test made besides; released with the rest */
static size_t num_extra;

static size_t tensor_bytes(size_t t) { return t == WORKSPACE ? clfd_plan_workspace_bytes(plan) : tensors[t].bytes; }

static clfd_buffer *place_of(size_t t) { return (clfd_buffer *)((char *)&buffers + tensors[t].place); }

static cl_mem keep(cl_mem mem)
{
    ck_assert_uint_lt(num_extra, COUNT(extra));
    return extra[num_extra++] = mem;
}

static void release_extra(void)
{
    while (num_extra > 0)
        ck_assert_int_eq(clReleaseMemObject(extra[--num_extra]), CL_SUCCESS);
}

/* A whole call again, with poison in all that it writes. */
static void restore(void)
{
    const unsigned char poison = POISON;

    release_extra();
    for (size_t t = 0; t < NUM_TENSORS; t++)
        if (tensors[t].written)
            ck_assert_int_eq(
                clEnqueueFillBuffer(session->queue, whole[t], &poison, 1, 0, tensor_bytes(t), 0, NULL, NULL),
                CL_SUCCESS);
    buffers = (clfd_buffers){.struct_size = sizeof buffers, .batch = BATCH};
    for (size_t t = 0; t < NUM_TENSORS; t++)
        *place_of(t) = test_buffer(whole[t], 0);
}

static void set_up(void)
{
    session = test_session_get();
    ck_assert_msg(clfd_plan_create(session->context, &described, &plan) == CLFD_SUCCESS, "%s",
                  session->heard.last[CLFD_LOG_ERROR]);
    for (size_t t = 0; t < NUM_TENSORS; t++)
        whole[t] = test_buffer_create(CL_MEM_READ_WRITE, tensor_bytes(t), 0);
    restore();
    session->heard.count[CLFD_LOG_ERROR] = 0;
}

static void tear_down(void)
{
    release_extra();
    for (size_t t = 0; t < NUM_TENSORS; t++)
        ck_assert_int_eq(clReleaseMemObject(whole[t]), CL_SUCCESS);
    clfd_plan_release(plan);
}

/* ---- What a call must and must not have done ---------------------------------------------------------------------- */

/* Every byte of the buffer from `offset` on still holds what set_up put there. */
static void expect_poison(cl_mem mem, size_t offset, size_t bytes, const char *name)
{
    static unsigned char content[MAX_BYTES];

    ck_assert_uint_le(bytes, sizeof content);
    test_buffer_read(mem, offset, content, bytes);
    for (size_t i = 0; i < bytes; i++)
        EXPECT(content[i] == POISON, "byte %zu of %s has changed", offset + i, name);
}

static void expect_untouched(void)
{
    for (size_t t = 0; t < NUM_TENSORS; t++)
        if (tensors[t].written)
            expect_poison(whole[t], 0, tensor_bytes(t), tensors[t].name);
}

static void expect_one_sentence(const char *value, const char *rule)
{
    const char *const said = session->heard.last[CLFD_LOG_ERROR];

    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_msg(strstr(said, value) != NULL, "\"%s\" lacks \"%s\"", said, value);
    ck_assert_msg(strstr(said, rule) != NULL, "\"%s\" lacks \"%s\"", said, rule);
    session->heard.count[CLFD_LOG_ERROR] = 0;
}

/* The call with `buffers` is refused, for both entry points alike. */
static void expect_refused(clfd_status expected, const char *value, const char *rule)
{
    cl_event event = NULL, events[CLFD_MAX_LAUNCHES] = {NULL, NULL};
    cl_uint num_events = 77;
    clfd_status status = clfd_enqueue_decode(plan, session->queue, &buffers, 0, NULL, &event);

    ck_assert_msg(status == expected, "%s: %s instead of %s", value, clfd_status_string(status),
                  clfd_status_string(expected));
    expect_one_sentence(value, rule);
    ck_assert_ptr_null(event);
    status = clfd_enqueue_decode_profiled(plan, session->queue, &buffers, 0, NULL, events, &num_events);
    ck_assert_int_eq(status, expected);
    ck_assert_uint_eq(num_events, 77);
    expect_one_sentence(value, rule);
    expect_untouched();
}

static void initialise_workspace(void)
{
    ck_assert_msg(clfd_enqueue_workspace_init(plan, session->queue, &buffers.workspace, 0, NULL, NULL) == CLFD_SUCCESS,
                  "%s", session->heard.last[CLFD_LOG_ERROR]);
}

static void expect_accepted(void)
{
    initialise_workspace();
    ck_assert_msg(clfd_enqueue_decode(plan, session->queue, &buffers, 0, NULL, NULL) == CLFD_SUCCESS, "%s",
                  session->heard.last[CLFD_LOG_ERROR]);
    ck_assert_int_eq(clFinish(session->queue), CL_SUCCESS);
}

/* With keys and values of zero, out is zero: every byte of it has been written. */
START_TEST(a_whole_call_is_accepted_and_writes_its_outputs)
{
    unsigned char content[BATCH * Q_HEADS * DIM_V * 4];
    const int32_t lens[BATCH] = {KV_LEN, 3};

    buffers.kv_lens = test_buffer(keep(test_buffer_create_from(CL_MEM_READ_ONLY, lens, sizeof lens)), 0);
    expect_accepted();
    test_buffer_read(buffers.out.mem, 0, content, sizeof content);
    for (size_t i = 0; i < sizeof content; i++)
        EXPECT(content[i] == 0, "byte %zu of out is %u", i, content[i]);
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 0);
}
END_TEST

/* ---- Kind and presence --------------------------------------------------------------------------------------------- */

START_TEST(a_kind_that_is_unknown_or_not_implemented_is_refused)
{
    for (size_t t = 0; t < NUM_TENSORS; t++)
        for (int kind = CLFD_BUFFER_SVM; kind <= CLFD_BUFFER_SVM + 1; kind++) {
            restore();
            place_of(t)->kind = (clfd_buffer_kind)kind;
            expect_refused(CLFD_ERROR_BUFFER_KIND, tensors[t].name, "only CLFD_BUFFER_MEM (1) is implemented");
        }
}
END_TEST

START_TEST(an_image_is_no_buffer)
{
    const cl_image_format format = {CL_RGBA, CL_FLOAT};
    const cl_image_desc shape = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 64, .image_height = 64};
    cl_int status;

    buffers.q.mem = keep(clCreateImage(session->cl, CL_MEM_READ_WRITE, &format, &shape, NULL, &status));
    ck_assert_int_eq(status, CL_SUCCESS);
    expect_refused(CLFD_ERROR_BUFFER_KIND, "q is an image", "must be a buffer");
}
END_TEST

START_TEST(a_required_buffer_must_be_there_and_others_may_be_absent)
{
    for (size_t t = 0; t < NUM_TENSORS; t++) {
        restore();
        if (tensors[t].required) {
            *place_of(t) = (clfd_buffer){.kind = CLFD_BUFFER_NONE};
            expect_refused(CLFD_ERROR_BUFFER_MISSING, tensors[t].name, "it is required");
        }
        *place_of(t) = (clfd_buffer){.kind = CLFD_BUFFER_MEM, .mem = NULL};
        expect_refused(CLFD_ERROR_BUFFER_MISSING, tensors[t].name, "mem NULL");
    }
    restore();
    buffers.kv_lens = buffers.lse = (clfd_buffer){.kind = CLFD_BUFFER_NONE};
    expect_accepted();
    expect_poison(whole[5], 0, tensor_bytes(5), "lse");
}
END_TEST

START_TEST(a_v_beside_v_from_k_is_unexpected)
{
    clfd_attention a = described;

    a.v_from_k = 1;
    clfd_plan_release(plan);
    ck_assert_int_eq(clfd_plan_create(session->context, &a, &plan), CLFD_SUCCESS);
    expect_refused(CLFD_ERROR_BUFFER_UNEXPECTED, "v has kind 1", "no option of the plan asks for it");
    buffers.v = (clfd_buffer){.kind = CLFD_BUFFER_NONE};
    expect_accepted();
}
END_TEST

/* ---- Size ---------------------------------------------------------------------------------------------------------- */

static clfd_status small_status(size_t t)
{
    return t == WORKSPACE ? CLFD_ERROR_WORKSPACE_SIZE : CLFD_ERROR_BUFFER_SIZE;
}

START_TEST(a_buffer_one_byte_short_is_refused)
{
    for (size_t t = 0; t < NUM_TENSORS; t++) {
        char rule[128];
        restore();
        place_of(t)->mem = keep(test_buffer_create(CL_MEM_READ_WRITE, tensor_bytes(t) - 1, POISON));
        snprintf(rule, sizeof rule, "needs %zu bytes from offset 0; the buffer has %zu", tensor_bytes(t),
                 tensor_bytes(t) - 1);
        expect_refused(small_status(t), tensors[t].name, rule);
        if (tensors[t].written)
            expect_poison(place_of(t)->mem, 0, tensor_bytes(t) - 1, tensors[t].name);
    }
}
END_TEST

START_TEST(an_offset_counts_and_does_not_wrap)
{
    for (size_t t = 0; t < NUM_TENSORS; t++) {
        const size_t step = tensors[t].alignment;
        const size_t offsets[] = {step, tensor_bytes(t) / step * step, tensor_bytes(t) + 64 * step,
                                  SIZE_MAX - (step - 1), SIZE_MAX / 2 + 1};
        for (size_t i = 0; i < COUNT(offsets); i++) {
            restore();
            place_of(t)->offset = offsets[i];
            expect_refused(small_status(t), tensors[t].name, "from offset");
        }
    }
}
END_TEST

START_TEST(batch_and_bound_shrink_what_must_be_there)
{
    const size_t one = tensors[1].bytes / BATCH, half = one / 2;

    buffers.k = test_buffer(keep(test_buffer_create(CL_MEM_READ_ONLY, one + half, 0)), 0);
    expect_refused(CLFD_ERROR_BUFFER_SIZE, "k needs", "from offset 0");
    /* Two sequences of half the length: the second starts where it always does. */
    buffers.kv_len_bound = KV_LEN / 2;
    expect_accepted();
    buffers.kv_len_bound = KV_LEN / 2 + 1;
    ck_assert_int_eq(clfd_enqueue_decode(plan, session->queue, &buffers, 0, NULL, NULL), CLFD_ERROR_BUFFER_SIZE);
    buffers.kv_len_bound = KV_LEN * 100; /* no more than max_kv_len */
    ck_assert_int_eq(clfd_enqueue_decode(plan, session->queue, &buffers, 0, NULL, NULL), CLFD_ERROR_BUFFER_SIZE);
    buffers.kv_len_bound = 0;
    buffers.batch = 1;
    expect_accepted();
}
END_TEST

/* ---- Alignment ----------------------------------------------------------------------------------------------------- */

/* A buffer with room for the tensor at any offset up to 64. */
static cl_mem create_roomy(size_t t) { return keep(test_buffer_create(CL_MEM_READ_WRITE, tensor_bytes(t) + 64, 0)); }

START_TEST(a_base_that_breaks_its_promise_is_refused)
{
    for (size_t t = 0; t < NUM_TENSORS; t++) {
        restore();
        place_of(t)->mem = create_roomy(t);
        for (size_t offset = 1; offset < tensors[t].alignment; offset++) {
            char rule[128];
            place_of(t)->offset = offset;
            snprintf(rule, sizeof rule, "starts at offset %zu; it must be a multiple of %zu", offset,
                     tensors[t].alignment);
            expect_refused(CLFD_ERROR_BUFFER_ALIGNMENT, tensors[t].name, rule);
        }
        place_of(t)->offset = tensors[t].alignment;
        expect_accepted();
        restore();
    }
}
END_TEST

START_TEST(a_promise_of_one_element_takes_every_element)
{
    clfd_attention a = described;

    a.q_type = CLFD_TYPE_F16;
    a.q_alignment = a.k_alignment = a.v_alignment = a.out_alignment = 2;
    clfd_plan_release(plan);
    ck_assert_int_eq(clfd_plan_create(session->context, &a, &plan), CLFD_SUCCESS);
    for (size_t t = 0; t < NUM_TENSORS; t++)
        if (tensors[t].alignment == 16)
            *place_of(t) = test_buffer(create_roomy(t), 2);
    expect_accepted();
    buffers.k.offset = 3;
    ck_assert_int_eq(clfd_enqueue_decode(plan, session->queue, &buffers, 0, NULL, NULL), CLFD_ERROR_BUFFER_ALIGNMENT);
    expect_one_sentence("k starts at offset 3", "a multiple of 2");
}
END_TEST

START_TEST(the_promise_holds_for_a_host_pointer_and_its_offset_together)
{
    static _Alignas(64) unsigned char memory[BATCH * Q_HEADS * DIM * 4 + 64];
    cl_int status;

    buffers.q.mem = keep(
        clCreateBuffer(session->cl, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, sizeof memory - 4, memory + 4, &status));
    ck_assert_int_eq(status, CL_SUCCESS);
    expect_refused(CLFD_ERROR_BUFFER_ALIGNMENT, "q starts at offset 0 of an unaligned host pointer", "multiple of 16");
    buffers.q.offset = 16;
    expect_refused(CLFD_ERROR_BUFFER_ALIGNMENT, "q starts at offset 16 of an unaligned host pointer", "multiple of 16");
    buffers.q.offset = 12;
    expect_accepted();
}
END_TEST

/* The sum may be aligned where neither part is whole elements: no index of an element gives that address. */
START_TEST(an_offset_is_whole_elements_even_where_the_promise_holds)
{
    static _Alignas(64) unsigned char memory[BATCH * Q_HEADS * DIM * 4 + 64];
    cl_int status;

    buffers.q.mem = keep(
        clCreateBuffer(session->cl, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, sizeof memory - 2, memory + 2, &status));
    ck_assert_int_eq(status, CL_SUCCESS);
    buffers.q.offset = 14;
    expect_refused(CLFD_ERROR_BUFFER_ALIGNMENT, "q has offset 14", "whole elements of 4 bytes");
}
END_TEST

/* ---- Overlap ------------------------------------------------------------------------------------------------------- */

START_TEST(a_written_buffer_overlaps_no_other)
{
    for (size_t w = 0; w < NUM_TENSORS; w++)
        for (size_t t = 0; t < NUM_TENSORS; t++) {
            const size_t larger = tensor_bytes(w) > tensor_bytes(t) ? tensor_bytes(w) : tensor_bytes(t);
            if (w == t || !tensors[w].written)
                continue;
            restore();
            place_of(w)->mem = place_of(t)->mem = keep(test_buffer_create(CL_MEM_READ_WRITE, larger, POISON));
            expect_refused(CLFD_ERROR_BUFFER_OVERLAP, tensors[t].name, "is written and overlaps");
            ck_assert_ptr_nonnull(strstr(session->heard.last[CLFD_LOG_ERROR], tensors[w].name));
            expect_poison(place_of(t)->mem, 0, larger, tensors[t].name);
        }
}
END_TEST

START_TEST(ranges_of_one_buffer_may_touch_but_not_share_a_byte)
{
    const size_t out_bytes = tensor_bytes(4), lse_bytes = tensor_bytes(5);
    const cl_mem both = keep(test_buffer_create(CL_MEM_READ_WRITE, out_bytes + lse_bytes, POISON));

    buffers.out = test_buffer(both, 0);
    buffers.lse = test_buffer(both, out_bytes - 4);
    expect_refused(CLFD_ERROR_BUFFER_OVERLAP, "out", "overlaps lse");
    buffers.lse.offset = out_bytes;
    expect_accepted();
}
END_TEST

START_TEST(what_is_only_read_may_share_memory)
{
    buffers.q = buffers.v = buffers.k;
    expect_accepted();
}
END_TEST

static cl_mem create_part(cl_mem parent, size_t origin, size_t bytes)
{
    const cl_buffer_region region = {origin, bytes};
    cl_int status;
    const cl_mem part = clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status);

    ck_assert_int_eq(status, CL_SUCCESS);
    return part;
}

START_TEST(sub_buffers_are_compared_in_their_parent)
{
    enum { ORIGIN = 512 }; /* a multiple of every device's base alignment */
    const size_t out_bytes = tensor_bytes(4), lse_bytes = tensor_bytes(5);
    const cl_mem parent = test_buffer_create(CL_MEM_READ_WRITE, out_bytes + 2 * ORIGIN, POISON);
    const cl_mem first = create_part(parent, 0, out_bytes), inside = create_part(parent, ORIGIN, lse_bytes),
                 behind = create_part(parent, (out_bytes + ORIGIN - 1) / ORIGIN * ORIGIN, lse_bytes);

    ck_assert_uint_gt(out_bytes, ORIGIN);
    buffers.out = test_buffer(first, 0);
    buffers.lse = test_buffer(inside, 0);
    expect_refused(CLFD_ERROR_BUFFER_OVERLAP, "out", "overlaps lse");
    buffers.lse = test_buffer(parent, out_bytes - lse_bytes);
    expect_refused(CLFD_ERROR_BUFFER_OVERLAP, "out", "overlaps lse");
    buffers.kv_lens = test_buffer(inside, 0);
    buffers.lse = test_buffer(whole[5], 0);
    expect_refused(CLFD_ERROR_BUFFER_OVERLAP, "out", "overlaps kv_lens");
    buffers.kv_lens = test_buffer(whole[3], 0);
    buffers.lse = test_buffer(behind, 0);
    expect_accepted();
    buffers.lse = test_buffer(whole[5], 0);
    buffers.out = test_buffer(first, 16); /* a sub-buffer ends where it ends, not where its parent does */
    ck_assert_int_eq(clfd_enqueue_decode(plan, session->queue, &buffers, 0, NULL, NULL), CLFD_ERROR_BUFFER_SIZE);
    keep(parent);
    keep(first);
    keep(inside);
    keep(behind);
}
END_TEST

/* ---- Access -------------------------------------------------------------------------------------------------------- */

START_TEST(what_kernels_write_must_be_writable_and_what_they_read_readable)
{
    for (size_t t = 0; t < NUM_TENSORS; t++) {
        const cl_mem_flags flags = tensors[t].written ? CL_MEM_READ_ONLY : CL_MEM_WRITE_ONLY;
        restore();
        place_of(t)->mem = keep(test_buffer_create(flags, tensor_bytes(t), POISON));
        expect_refused(CLFD_ERROR_BUFFER_ACCESS, tensors[t].name,
                       tensors[t].written ? "CL_MEM_READ_ONLY; kernels must write it"
                                          : "CL_MEM_WRITE_ONLY; kernels must read it");
    }
    restore();
    buffers.workspace.mem = keep(test_buffer_create(CL_MEM_WRITE_ONLY, tensor_bytes(WORKSPACE), POISON));
    expect_refused(CLFD_ERROR_BUFFER_ACCESS, "workspace", "CL_MEM_WRITE_ONLY; kernels must read it");
}
END_TEST

START_TEST(one_sided_access_is_enough_for_what_is_used_one_way)
{
    for (size_t t = 0; t < WORKSPACE; t++)
        place_of(t)->mem =
            keep(test_buffer_create(tensors[t].written ? CL_MEM_WRITE_ONLY : CL_MEM_READ_ONLY, tensor_bytes(t), 0));
    expect_accepted();
}
END_TEST

/* ---- Context, queue, wait list --------------------------------------------------------------------------------------- */

START_TEST(buffers_and_queues_of_another_context_are_refused)
{
    const cl_context other = clCreateContext(NULL, 1, &session->device, NULL, NULL, NULL);
    const cl_command_queue queue = clCreateCommandQueue(other, session->device, 0, NULL);
    cl_event event = NULL;

    for (size_t t = 0; t < NUM_TENSORS; t++) {
        restore();
        place_of(t)->mem = keep(clCreateBuffer(other, CL_MEM_READ_WRITE, tensor_bytes(t), NULL, NULL));
        expect_refused(CLFD_ERROR_BUFFER_CONTEXT, tensors[t].name, "of another cl_context");
    }
    restore();
    ck_assert_int_eq(clfd_enqueue_decode(plan, queue, &buffers, 0, NULL, &event), CLFD_ERROR_QUEUE_CONTEXT);
    expect_one_sentence("queue", "of another cl_context");
    ck_assert_int_eq(clfd_enqueue_workspace_init(plan, queue, &buffers.workspace, 0, NULL, &event),
                     CLFD_ERROR_QUEUE_CONTEXT);
    expect_one_sentence("queue", "of another cl_context");
    ck_assert_int_eq(clfd_plan_warmup(plan, queue), CLFD_ERROR_QUEUE_CONTEXT);
    expect_one_sentence("queue", "of another cl_context");
    ck_assert_ptr_null(event);
    expect_untouched();
    ck_assert_int_eq(clReleaseCommandQueue(queue), CL_SUCCESS);
    ck_assert_int_eq(clReleaseContext(other), CL_SUCCESS);
}
END_TEST

/* A context whose device is another than the queue's: only its two handles are looked at. */
START_TEST(a_queue_of_another_device_is_refused)
{
    const clfd_context elsewhere = {
        .cl = session->cl, .device = (cl_device_id)&buffers, .logger = test_logger(&session->heard)};
    bool out_of_order;

    ck_assert_int_eq(clfd_check_queue(&elsewhere, session->queue, 0, NULL, &out_of_order), CLFD_ERROR_QUEUE_DEVICE);
    expect_one_sentence("queue", "of another device");
}
END_TEST

START_TEST(the_order_of_a_queue_is_told)
{
    cl_command_queue_properties properties;
    bool out_of_order = true;

    ck_assert_int_eq(clfd_check_queue(session->context, session->queue, 0, NULL, &out_of_order), CLFD_SUCCESS);
    ck_assert(!out_of_order);
    ck_assert_int_eq(clGetDeviceInfo(session->device, CL_DEVICE_QUEUE_PROPERTIES, sizeof properties, &properties, NULL),
                     CL_SUCCESS);
    if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0)
        return;
    const cl_command_queue unordered =
        clCreateCommandQueue(session->cl, session->device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, NULL);
    ck_assert_int_eq(clfd_check_queue(session->context, unordered, 0, NULL, &out_of_order), CLFD_SUCCESS);
    ck_assert(out_of_order);
    ck_assert_int_eq(clReleaseCommandQueue(unordered), CL_SUCCESS);
}
END_TEST

START_TEST(a_wait_list_and_its_length_must_agree)
{
    const cl_event event = clCreateUserEvent(session->cl, NULL);

    ck_assert_int_eq(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
    ck_assert_int_eq(clfd_enqueue_decode(plan, session->queue, &buffers, 1, NULL, NULL), CLFD_ERROR_WAIT_LIST);
    expect_one_sentence("num_wait is 1 and wait is NULL", "both or neither");
    ck_assert_int_eq(clfd_enqueue_decode(plan, session->queue, &buffers, 0, &event, NULL), CLFD_ERROR_WAIT_LIST);
    expect_one_sentence("num_wait is 0 and wait is not NULL", "both or neither");
    ck_assert_int_eq(clfd_enqueue_workspace_init(plan, session->queue, &buffers.workspace, 2, NULL, NULL),
                     CLFD_ERROR_WAIT_LIST);
    expect_one_sentence("num_wait is 2 and wait is NULL", "both or neither");
    expect_untouched();
    ck_assert_int_eq(clReleaseEvent(event), CL_SUCCESS);
}
END_TEST

static void expect_bad_event(const cl_event wait[2], const char *value, const char *rule)
{
    cl_event event = NULL;

    for (uint32_t batch = 0; batch <= BATCH; batch++) {
        buffers.batch = batch;
        ck_assert_int_eq(clfd_enqueue_decode(plan, session->queue, &buffers, 2, wait, &event), CLFD_ERROR_WAIT_LIST);
        expect_one_sentence(value, rule);
    }
    ck_assert_int_eq(clfd_enqueue_workspace_init(plan, session->queue, &buffers.workspace, 2, wait, &event),
                     CLFD_ERROR_WAIT_LIST);
    expect_one_sentence(value, rule);
    ck_assert_ptr_null(event);
    expect_untouched();
}

START_TEST(a_wait_list_holds_events_of_the_context)
{
    const cl_context other = clCreateContext(NULL, 1, &session->device, NULL, NULL, NULL);
    const cl_event own = clCreateUserEvent(session->cl, NULL), foreign = clCreateUserEvent(other, NULL);
    const cl_event with_null[2] = {own, NULL}, with_foreign[2] = {own, foreign};

    ck_assert_int_eq(clSetUserEventStatus(own, CL_COMPLETE), CL_SUCCESS);
    ck_assert_int_eq(clSetUserEventStatus(foreign, CL_COMPLETE), CL_SUCCESS);
    expect_bad_event(with_null, "wait[1] is NULL", "num_wait is 2");
    expect_bad_event(with_foreign, "wait[1]", "of another cl_context");
    ck_assert_int_eq(clReleaseEvent(own), CL_SUCCESS);
    ck_assert_int_eq(clReleaseEvent(foreign), CL_SUCCESS);
    ck_assert_int_eq(clReleaseContext(other), CL_SUCCESS);
}
END_TEST

/* ---- The call itself ------------------------------------------------------------------------------------------------- */

START_TEST(a_batch_above_max_batch_is_refused)
{
    buffers.batch = BATCH + 1;
    expect_refused(CLFD_ERROR_BATCH_RANGE, "batch is 3", "the plan's max_batch is 2");
    buffers.batch = UINT32_MAX;
    expect_refused(CLFD_ERROR_BATCH_RANGE, "batch is 4294967295", "the plan's max_batch is 2");
}
END_TEST

START_TEST(a_batch_of_none_needs_no_buffer_and_completes_its_event)
{
    const cl_event gate = clCreateUserEvent(session->cl, NULL);
    cl_event event = NULL;
    cl_int state = -1;

    buffers = (clfd_buffers){.struct_size = sizeof buffers};
    ck_assert_int_eq(clfd_enqueue_decode(plan, session->queue, &buffers, 1, &gate, &event), CLFD_SUCCESS);
    ck_assert_int_eq(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL), CL_SUCCESS);
    ck_assert_int_ne(state, CL_COMPLETE);
    ck_assert_int_eq(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    ck_assert_int_eq(clWaitForEvents(1, &event), CL_SUCCESS);
    ck_assert_int_eq(clReleaseEvent(event), CL_SUCCESS);
    ck_assert_int_eq(clReleaseEvent(gate), CL_SUCCESS);
    expect_untouched();
}
END_TEST

START_TEST(structs_of_other_versions_follow_the_rule_of_struct_size)
{
    struct {
        clfd_buffers known;
        char unknown[8];
    } newer = {.known = buffers, .unknown = {0, 0, 0, 1}};

    buffers.struct_size = 0;
    expect_refused(CLFD_ERROR_STRUCT_SIZE, "clfd_buffers.struct_size is 0", "sizeof(clfd_buffers)");
    newer.known.struct_size = sizeof newer;
    ck_assert_int_eq(clfd_enqueue_decode(plan, session->queue, &newer.known, 0, NULL, NULL), CLFD_ERROR_STRUCT_SIZE);
    expect_one_sentence("clfd_buffers.struct_size", "newer version");
    expect_untouched();
    restore();
    buffers.struct_size = offsetof(clfd_buffers, workspace); /* the workspace is not given then */
    expect_refused(CLFD_ERROR_BUFFER_MISSING, "workspace", "it is required");
}
END_TEST

START_TEST(null_arguments_are_refused)
{
    cl_event events[CLFD_MAX_LAUNCHES];
    cl_uint num_events;

    ck_assert_int_eq(clfd_enqueue_decode(NULL, session->queue, &buffers, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_enqueue_decode_profiled(NULL, session->queue, &buffers, 0, NULL, events, &num_events),
                     CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_enqueue_workspace_init(NULL, session->queue, &buffers.workspace, 0, NULL, NULL),
                     CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_enqueue_decode(plan, NULL, &buffers, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT);
    expect_one_sentence("queue", "is NULL");
    ck_assert_int_eq(clfd_enqueue_decode(plan, session->queue, NULL, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT);
    expect_one_sentence("clfd_buffers", "is NULL");
    ck_assert_int_eq(clfd_enqueue_decode_profiled(plan, session->queue, &buffers, 0, NULL, NULL, &num_events),
                     CLFD_ERROR_NULL_ARGUMENT);
    expect_one_sentence("events", "is NULL");
    ck_assert_int_eq(clfd_enqueue_decode_profiled(plan, session->queue, &buffers, 0, NULL, events, NULL),
                     CLFD_ERROR_NULL_ARGUMENT);
    expect_one_sentence("num_events", "is NULL");
    ck_assert_int_eq(clfd_enqueue_workspace_init(plan, session->queue, NULL, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT);
    expect_one_sentence("workspace", "is NULL");
    expect_untouched();
}
END_TEST

/* ---- Workspace ------------------------------------------------------------------------------------------------------- */

START_TEST(initialising_a_workspace_zeroes_its_control_region_and_nothing_else)
{
    enum { OFFSET = 64, CONTROL = 131072 };
    static unsigned char content[CONTROL];
    const size_t bytes = tensor_bytes(WORKSPACE);

    buffers.workspace = test_buffer(keep(test_buffer_create(CL_MEM_READ_WRITE, bytes + OFFSET, POISON)), OFFSET);
    initialise_workspace();
    test_buffer_read(buffers.workspace.mem, OFFSET, content, CONTROL);
    for (size_t i = 0; i < CONTROL; i++)
        EXPECT(content[i] == 0, "byte %zu of the control region is %u", i, content[i]);
    expect_poison(buffers.workspace.mem, 0, OFFSET, "workspace");
    expect_poison(buffers.workspace.mem, OFFSET + CONTROL, bytes - CONTROL, "workspace");
}
END_TEST

static void expect_init_refused(clfd_buffer workspace, clfd_status expected, const char *rule)
{
    const clfd_status status = clfd_enqueue_workspace_init(plan, session->queue, &workspace, 0, NULL, NULL);

    ck_assert_msg(status == expected, "%s: %s", rule, clfd_status_string(status));
    expect_one_sentence("workspace", rule);
    expect_untouched();
}

START_TEST(a_workspace_is_checked_when_it_is_initialised)
{
    const size_t bytes = tensor_bytes(WORKSPACE);
    const cl_context other = clCreateContext(NULL, 1, &session->device, NULL, NULL, NULL);
    const cl_mem foreign = keep(clCreateBuffer(other, CL_MEM_READ_WRITE, bytes, NULL, NULL));
    const cl_mem small = keep(test_buffer_create(CL_MEM_READ_WRITE, bytes - 1, POISON));
    const cl_mem constant = keep(test_buffer_create(CL_MEM_READ_ONLY, bytes, POISON));

    expect_init_refused((clfd_buffer){.kind = CLFD_BUFFER_NONE}, CLFD_ERROR_BUFFER_MISSING, "it is required");
    expect_init_refused((clfd_buffer){.kind = CLFD_BUFFER_SVM}, CLFD_ERROR_BUFFER_KIND, "is implemented");
    expect_init_refused((clfd_buffer){.kind = CLFD_BUFFER_MEM}, CLFD_ERROR_BUFFER_MISSING, "mem NULL");
    expect_init_refused(test_buffer(small, 0), CLFD_ERROR_WORKSPACE_SIZE, "from offset 0");
    expect_init_refused(test_buffer(whole[WORKSPACE], 64), CLFD_ERROR_WORKSPACE_SIZE, "from offset 64");
    expect_init_refused(test_buffer(create_roomy(WORKSPACE), 32), CLFD_ERROR_BUFFER_ALIGNMENT, "a multiple of 64");
    expect_init_refused(test_buffer(foreign, 0), CLFD_ERROR_BUFFER_CONTEXT, "of another cl_context");
    expect_init_refused(test_buffer(constant, 0), CLFD_ERROR_BUFFER_ACCESS, "kernels must write it");
    expect_poison(small, 0, bytes - 1, "workspace");
    release_extra();
    ck_assert_int_eq(clReleaseContext(other), CL_SUCCESS);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_whole_call_is_accepted_and_writes_its_outputs,
        a_kind_that_is_unknown_or_not_implemented_is_refused,
        an_image_is_no_buffer,
        a_required_buffer_must_be_there_and_others_may_be_absent,
        a_v_beside_v_from_k_is_unexpected,
        a_buffer_one_byte_short_is_refused,
        an_offset_counts_and_does_not_wrap,
        batch_and_bound_shrink_what_must_be_there,
        a_base_that_breaks_its_promise_is_refused,
        a_promise_of_one_element_takes_every_element,
        the_promise_holds_for_a_host_pointer_and_its_offset_together,
        an_offset_is_whole_elements_even_where_the_promise_holds,
        a_written_buffer_overlaps_no_other,
        ranges_of_one_buffer_may_touch_but_not_share_a_byte,
        what_is_only_read_may_share_memory,
        sub_buffers_are_compared_in_their_parent,
        what_kernels_write_must_be_writable_and_what_they_read_readable,
        one_sided_access_is_enough_for_what_is_used_one_way,
        buffers_and_queues_of_another_context_are_refused,
        a_queue_of_another_device_is_refused,
        the_order_of_a_queue_is_told,
        a_wait_list_and_its_length_must_agree,
        a_batch_above_max_batch_is_refused,
        a_batch_of_none_needs_no_buffer_and_completes_its_event,
        a_wait_list_holds_events_of_the_context,
        structs_of_other_versions_follow_the_rule_of_struct_size,
        null_arguments_are_refused,
        initialising_a_workspace_zeroes_its_control_region_and_nothing_else,
        a_workspace_is_checked_when_it_is_initialised,
    };
    const int failed = run_suite_around("buffers", tests, COUNT(tests), set_up, tear_down);

    test_session_close();
    return failed;
}

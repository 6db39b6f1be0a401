/* The rules of the buffers of the two merges of states. After every refusal what the call would have written has not
 * changed. */
#include "support/session.h"
#include "support/suite.h"
#include <clfd/state.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { ROWS = 3, STATES = 2, DIM = 64, POISON = 0xA5, ALL = STATES * ROWS, MAX_BYTES = ALL * DIM * 4 };

/* The arrays of a state, and which partial format has them. */
typedef enum part { PART_O, PART_LSE, PART_M, PART_L, NUM_PARTS } part;
static const struct {
    const char *name;
    size_t place;
    uint32_t floats; /* of one state */
    bool lse, mlo;
} parts[NUM_PARTS] = {
    {"o", offsetof(clfd_state_buffers, o), DIM, true, true},
    {"lse", offsetof(clfd_state_buffers, lse), 1, true, false},
    {"m", offsetof(clfd_state_buffers, m), 1, false, true},
    {"l", offsetof(clfd_state_buffers, l), 1, false, true},
};

static test_session *session;
static clfd_merge_plan *plans[CLFD_PARTIAL_MLO + 1];
static clfd_partial partial; /* of the running case */
static clfd_state_buffers a, b, merged;
static cl_mem made[64];
static size_t num_made;

static cl_mem keep(cl_mem mem)
{
    ck_assert_uint_lt(num_made, COUNT(made));
    return made[num_made++] = mem;
}

static cl_mem create(size_t bytes) { return keep(test_buffer_create(CL_MEM_READ_WRITE, bytes, POISON)); }

static bool has(part p) { return partial == CLFD_PARTIAL_MLO ? parts[p].mlo : parts[p].lse; }

static clfd_buffer *place_of(clfd_state_buffers *state, part p)
{
    return (clfd_buffer *)((char *)state + parts[p].place);
}

/* Bytes of an array of `count` states. */
static size_t part_bytes(part p, size_t count) { return count * parts[p].floats * sizeof(float); }

static clfd_state_buffers create_state(size_t count)
{
    clfd_state_buffers state;

    memset(&state, 0, sizeof state);
    for (part p = PART_O; p < NUM_PARTS; p++)
        if (has(p))
            *place_of(&state, p) = test_buffer(create(part_bytes(p, count)), 0);
    return state;
}

static void release_made(void)
{
    while (num_made > 0)
        ck_assert_int_eq(clReleaseMemObject(made[--num_made]), CL_SUCCESS);
}

/* Whole calls again: a has the states of clfd_enqueue_merge, of which clfd_enqueue_merge_pair takes the first ROWS. */
static void restore(clfd_partial format)
{
    release_made();
    partial = format;
    a = create_state(ALL);
    b = create_state(ROWS);
    merged = create_state(ROWS);
}

static clfd_merge_plan *create_plan(clfd_partial format, uint32_t num_states, clfd_type out_type)
{
    const clfd_merge merge = {
        .struct_size = sizeof merge,
        .max_rows = ROWS,
        .num_states = num_states,
        .head_dim_v = DIM,
        .partial = format,
        .out_type = out_type,
    };
    clfd_merge_plan *plan = NULL;

    ck_assert_msg(clfd_merge_plan_create(session->context, &merge, &plan) == CLFD_SUCCESS, "%s",
                  session->heard.last[CLFD_LOG_ERROR]);
    return plan;
}

static void set_up(void)
{
    session = test_session_get();
    for (clfd_partial format = CLFD_PARTIAL_LSE; format <= CLFD_PARTIAL_MLO; format++)
        plans[format] = create_plan(format, STATES, CLFD_TYPE_F32);
    restore(CLFD_PARTIAL_LSE);
    session->heard.count[CLFD_LOG_ERROR] = 0;
}

static void tear_down(void)
{
    release_made();
    clfd_merge_plan_release(plans[CLFD_PARTIAL_LSE]);
    clfd_merge_plan_release(plans[CLFD_PARTIAL_MLO]);
}

/* ---- What a call must and must not have done ---------------------------------------------------------------------- */

static clfd_status merge_rows(uint32_t rows)
{
    return clfd_enqueue_merge(plans[partial], session->queue, rows, &a, &merged, 0, NULL, NULL);
}

static clfd_status merge_pairs(uint32_t rows)
{
    return clfd_enqueue_merge_pair(plans[partial], session->queue, rows, &a, &b, &merged, 0, NULL, NULL);
}

static void expect_poison(cl_mem mem)
{
    static unsigned char content[MAX_BYTES];
    size_t bytes = 0;

    ck_assert_int_eq(clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof bytes, &bytes, NULL), CL_SUCCESS);
    ck_assert_uint_le(bytes, sizeof content);
    test_buffer_read(mem, 0, content, bytes);
    for (size_t i = 0; i < bytes; i++)
        EXPECT(content[i] == POISON, "byte %zu has changed", i);
}

static void expect_refused(clfd_status status, clfd_status expected, const char *value, const char *rule)
{
    const char *const said = session->heard.last[CLFD_LOG_ERROR];

    ck_assert_msg(status == expected, "%s (%s): %s instead of %s", value, rule, clfd_status_string(status),
                  clfd_status_string(expected));
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_msg(strstr(said, value) != NULL, "\"%s\" lacks \"%s\"", said, value);
    ck_assert_msg(strstr(said, rule) != NULL, "\"%s\" lacks \"%s\"", said, rule);
    session->heard.count[CLFD_LOG_ERROR] = 0;
    for (size_t i = 0; i < num_made; i++)
        expect_poison(made[i]);
}

static void expect_accepted(clfd_status status)
{
    ck_assert_msg(status == CLFD_SUCCESS, "%s", session->heard.last[CLFD_LOG_ERROR]);
    ck_assert_int_eq(session->heard.count[CLFD_LOG_ERROR], 0);
    ck_assert_int_eq(clFinish(session->queue), CL_SUCCESS);
}

/* One operand of a call, by the name that sentences give it. */
typedef struct operand {
    const char *name;
    clfd_state_buffers *state;
    clfd_status (*call)(uint32_t rows);
    size_t count; /* states that the call touches */
    bool written, stats_required;
    size_t o_alignment;
} operand;

static const operand operands[] = {
    {"states", &a, merge_rows, ALL, false, true, 16},       {"merged", &merged, merge_rows, ROWS, true, false, 4},
    {"a", &a, merge_pairs, ROWS, false, true, 16},          {"b", &b, merge_pairs, ROWS, false, true, 16},
    {"merged", &merged, merge_pairs, ROWS, true, true, 16},
};

/* Runs `check` for every array of every operand of both merges in both formats, on whole calls. */
static void for_each_array(void (*check)(const operand *o, part p, const char *name))
{
    for (clfd_partial format = CLFD_PARTIAL_LSE; format <= CLFD_PARTIAL_MLO; format++)
        for (size_t i = 0; i < COUNT(operands); i++)
            for (part p = PART_O; p < NUM_PARTS; p++) {
                char name[32];
                restore(format);
                snprintf(name, sizeof name, "%s.%s", operands[i].name, parts[p].name);
                check(&operands[i], p, name);
            }
}

START_TEST(whole_calls_are_accepted)
{
    for (clfd_partial format = CLFD_PARTIAL_LSE; format <= CLFD_PARTIAL_MLO; format++) {
        restore(format);
        expect_accepted(merge_rows(ROWS));
        expect_accepted(merge_pairs(ROWS));
    }
}
END_TEST

/* ---- Kind and presence --------------------------------------------------------------------------------------------- */

static void check_kind(const operand *o, part p, const char *name)
{
    if (!has(p))
        return;
    place_of(o->state, p)->kind = CLFD_BUFFER_SVM;
    expect_refused(o->call(ROWS), CLFD_ERROR_BUFFER_KIND, name, "is implemented");
    *place_of(o->state, p) = (clfd_buffer){.kind = CLFD_BUFFER_MEM};
    expect_refused(o->call(ROWS), CLFD_ERROR_BUFFER_MISSING, name, "mem NULL");
}

START_TEST(a_kind_that_is_not_implemented_or_a_null_mem_is_refused) { for_each_array(check_kind); }
END_TEST

static void check_presence(const operand *o, part p, const char *name)
{
    const bool required = p == PART_O || o->stats_required;

    if (!has(p)) {
        *place_of(o->state, p) = test_buffer(create(part_bytes(p, ALL)), 0);
        expect_refused(o->call(ROWS), CLFD_ERROR_BUFFER_UNEXPECTED, name,
                       partial == CLFD_PARTIAL_MLO ? "the MLO format" : "the LSE format");
        return;
    }
    *place_of(o->state, p) = (clfd_buffer){.kind = CLFD_BUFFER_NONE};
    if (required)
        expect_refused(o->call(ROWS), CLFD_ERROR_BUFFER_MISSING, name, "it is required");
    else
        expect_accepted(o->call(ROWS));
}

START_TEST(a_state_has_the_arrays_of_its_format_and_no_other) { for_each_array(check_presence); }
END_TEST

/* ---- Size, alignment, access, context ---------------------------------------------------------------------------------- */

static void check_size(const operand *o, part p, const char *name)
{
    const size_t needed = part_bytes(p, o->count);
    char rule[128];

    if (!has(p))
        return;
    place_of(o->state, p)->mem = create(needed - 1);
    snprintf(rule, sizeof rule, "needs %zu bytes from offset 0; the buffer has %zu", needed, needed - 1);
    expect_refused(o->call(ROWS), CLFD_ERROR_BUFFER_SIZE, name, rule);
    place_of(o->state, p)->offset = SIZE_MAX - 15;
    expect_refused(o->call(ROWS), CLFD_ERROR_BUFFER_SIZE, name, "from offset");
    place_of(o->state, p)->offset = 0;
    expect_accepted(o->call(ROWS - 1)); /* fewer rows, fewer bytes */
}

START_TEST(an_array_one_byte_short_or_an_offset_past_its_end_is_refused) { for_each_array(check_size); }
END_TEST

static void check_alignment(const operand *o, part p, const char *name)
{
    const size_t alignment = p == PART_O ? o->o_alignment : 4;
    char rule[64];

    if (!has(p))
        return;
    *place_of(o->state, p) = test_buffer(create(part_bytes(p, ALL)), alignment / 2);
    snprintf(rule, sizeof rule, "a multiple of %zu", alignment);
    expect_refused(o->call(ROWS - 1), CLFD_ERROR_BUFFER_ALIGNMENT, name, rule);
    place_of(o->state, p)->offset = parts[p].floats == 1 ? 4 : alignment;
    expect_accepted(o->call(ROWS - 1));
}

START_TEST(an_unaligned_array_is_refused) { for_each_array(check_alignment); }
END_TEST

static void check_access(const operand *o, part p, const char *name)
{
    const cl_mem_flags flags = o->written ? CL_MEM_READ_ONLY : CL_MEM_WRITE_ONLY;

    if (!has(p))
        return;
    place_of(o->state, p)->mem = keep(test_buffer_create(flags, part_bytes(p, ALL), POISON));
    expect_refused(o->call(ROWS), CLFD_ERROR_BUFFER_ACCESS, name,
                   o->written ? "kernels must write it" : "kernels must read it");
}

START_TEST(an_array_that_kernels_may_not_use_is_refused) { for_each_array(check_access); }
END_TEST

static void check_context(const operand *o, part p, const char *name)
{
    const cl_context other = clCreateContext(NULL, 1, &session->device, NULL, NULL, NULL);
    const cl_mem mem = clCreateBuffer(other, CL_MEM_READ_WRITE, part_bytes(p, ALL), NULL, NULL);

    if (has(p)) {
        place_of(o->state, p)->mem = mem;
        expect_refused(o->call(ROWS), CLFD_ERROR_BUFFER_CONTEXT, name, "of another cl_context");
    }
    ck_assert_int_eq(clReleaseMemObject(mem), CL_SUCCESS);
    ck_assert_int_eq(clReleaseContext(other), CL_SUCCESS);
}

START_TEST(an_array_of_another_context_is_refused) { for_each_array(check_context); }
END_TEST

/* ---- Overlap ------------------------------------------------------------------------------------------------------- */

/* One buffer is the o of the inputs and part of it the o of the result. */
START_TEST(the_result_of_a_merge_of_many_overlaps_nothing)
{
    merged.o = a.o;
    expect_refused(merge_rows(ROWS), CLFD_ERROR_BUFFER_OVERLAP, "merged.o", "overlaps states.o");
    restore(CLFD_PARTIAL_LSE);
    merged.lse = a.lse;
    expect_refused(merge_rows(ROWS), CLFD_ERROR_BUFFER_OVERLAP, "merged.lse", "overlaps states.lse");
    restore(CLFD_PARTIAL_LSE);
    merged.lse = test_buffer(merged.o.mem, part_bytes(PART_O, ROWS) - 12);
    expect_refused(merge_rows(ROWS), CLFD_ERROR_BUFFER_OVERLAP, "merged.o", "overlaps merged.lse");
    restore(CLFD_PARTIAL_MLO);
    merged.l = merged.m;
    expect_refused(merge_rows(ROWS), CLFD_ERROR_BUFFER_OVERLAP, "merged.m", "overlaps merged.l");
    /* Of one state per row, the result has the size of the inputs: still no alias is allowed. */
    clfd_merge_plan *const one = create_plan(CLFD_PARTIAL_LSE, 1, CLFD_TYPE_F32);
    restore(CLFD_PARTIAL_LSE);
    merged = b;
    expect_refused(clfd_enqueue_merge(one, session->queue, ROWS, &b, &merged, 0, NULL, NULL), CLFD_ERROR_BUFFER_OVERLAP,
                   "merged.o", "overlaps states.o");
    clfd_merge_plan_release(one);
}
END_TEST

START_TEST(an_accumulator_may_be_exactly_one_of_its_operands)
{
    for (clfd_partial format = CLFD_PARTIAL_LSE; format <= CLFD_PARTIAL_MLO; format++) {
        restore(format);
        merged = a;
        expect_accepted(merge_pairs(ROWS));
        restore(format);
        merged = b;
        expect_accepted(merge_pairs(ROWS));
        restore(format);
        merged = a = b; /* a (+) a */
        expect_accepted(merge_pairs(ROWS));
    }
}
END_TEST

START_TEST(an_accumulator_that_is_not_exactly_an_operand_is_refused)
{
    const size_t row = DIM * sizeof(float);

    merged.o.mem = a.o.mem;
    merged.o.offset = row; /* the operand, one row further */
    expect_refused(merge_pairs(ROWS), CLFD_ERROR_BUFFER_OVERLAP, "merged.o", "overlaps a.o");
    restore(CLFD_PARTIAL_LSE);
    merged.lse = test_buffer(a.lse.mem, 4);
    expect_refused(merge_pairs(ROWS), CLFD_ERROR_BUFFER_OVERLAP, "merged.lse", "overlaps a.lse");
    restore(CLFD_PARTIAL_LSE);
    merged.lse = test_buffer(a.o.mem, 0);
    expect_refused(merge_pairs(ROWS), CLFD_ERROR_BUFFER_OVERLAP, "merged.lse", "overlaps a.o");
    restore(CLFD_PARTIAL_MLO);
    merged.m = merged.l;
    expect_refused(merge_pairs(ROWS), CLFD_ERROR_BUFFER_OVERLAP, "merged.m", "overlaps merged.l");
}
END_TEST

/* Two arrays of a state have one size, which does not make one the other. */
START_TEST(an_accumulators_array_may_not_be_another_array_of_an_operand)
{
    restore(CLFD_PARTIAL_MLO);
    merged.m = b.l;
    expect_refused(merge_pairs(ROWS), CLFD_ERROR_BUFFER_OVERLAP, "merged.m", "overlaps b.l");
    restore(CLFD_PARTIAL_MLO);
    merged.l = b.m;
    expect_refused(merge_pairs(ROWS), CLFD_ERROR_BUFFER_OVERLAP, "merged.l", "overlaps b.m");
}
END_TEST

/* ---- The call itself ------------------------------------------------------------------------------------------------- */

START_TEST(rows_above_max_rows_are_refused_and_none_is_a_marker)
{
    cl_event event = NULL;
    const clfd_state_buffers none = {0};

    expect_refused(merge_rows(ROWS + 1), CLFD_ERROR_NUM_STATES, "rows is 4", "max_rows is 3");
    expect_refused(merge_pairs(UINT32_MAX), CLFD_ERROR_NUM_STATES, "rows is 4294967295", "max_rows is 3");
    ck_assert_int_eq(clfd_enqueue_merge(plans[partial], session->queue, 0, &none, &none, 0, NULL, &event),
                     CLFD_SUCCESS);
    ck_assert_int_eq(clWaitForEvents(1, &event), CL_SUCCESS);
    ck_assert_int_eq(clReleaseEvent(event), CL_SUCCESS);
    ck_assert_int_eq(clfd_enqueue_merge_pair(plans[partial], session->queue, 0, &none, &none, &none, 0, NULL, &event),
                     CLFD_SUCCESS);
    ck_assert_int_eq(clWaitForEvents(1, &event), CL_SUCCESS);
    ck_assert_int_eq(clReleaseEvent(event), CL_SUCCESS);
}
END_TEST

START_TEST(a_pairwise_merge_needs_a_plan_of_two_states_into_f32)
{
    clfd_merge_plan *const of_three = create_plan(CLFD_PARTIAL_LSE, 3, CLFD_TYPE_F32);
    clfd_merge_plan *const of_f16 = create_plan(CLFD_PARTIAL_LSE, 2, CLFD_TYPE_F16);

    expect_refused(clfd_enqueue_merge_pair(of_three, session->queue, ROWS, &a, &b, &merged, 0, NULL, NULL),
                   CLFD_ERROR_NUM_STATES, "num_states 3 and out_type f32", "needs 2 and f32");
    expect_refused(clfd_enqueue_merge_pair(of_f16, session->queue, ROWS, &a, &b, &merged, 0, NULL, NULL),
                   CLFD_ERROR_NUM_STATES, "num_states 2 and out_type f16", "needs 2 and f32");
    clfd_merge_plan_release(of_three);
    clfd_merge_plan_release(of_f16);
}
END_TEST

START_TEST(null_arguments_and_bad_wait_lists_are_refused)
{
    clfd_merge_plan *const plan = plans[partial];
    const cl_command_queue queue = session->queue;

    ck_assert_int_eq(clfd_enqueue_merge(NULL, queue, ROWS, &a, &merged, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_int_eq(clfd_enqueue_merge_pair(NULL, queue, ROWS, &a, &b, &merged, 0, NULL, NULL),
                     CLFD_ERROR_NULL_ARGUMENT);
    expect_refused(clfd_enqueue_merge(plan, NULL, ROWS, &a, &merged, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT, "queue",
                   "is NULL");
    expect_refused(clfd_enqueue_merge(plan, queue, ROWS, NULL, &merged, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT,
                   "states", "is NULL");
    expect_refused(clfd_enqueue_merge(plan, queue, ROWS, &a, NULL, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT, "merged",
                   "is NULL");
    expect_refused(clfd_enqueue_merge_pair(plan, queue, ROWS, NULL, &b, &merged, 0, NULL, NULL),
                   CLFD_ERROR_NULL_ARGUMENT, " a ", "is NULL");
    expect_refused(clfd_enqueue_merge_pair(plan, queue, ROWS, &a, NULL, &merged, 0, NULL, NULL),
                   CLFD_ERROR_NULL_ARGUMENT, " b ", "is NULL");
    expect_refused(clfd_enqueue_merge_pair(plan, queue, ROWS, &a, &b, NULL, 0, NULL, NULL), CLFD_ERROR_NULL_ARGUMENT,
                   "merged", "is NULL");
    expect_refused(clfd_enqueue_merge(plan, queue, ROWS, &a, &merged, 1, NULL, NULL), CLFD_ERROR_WAIT_LIST,
                   "num_wait is 1", "both or neither");
    expect_refused(clfd_enqueue_merge_pair(plan, queue, ROWS, &a, &b, &merged, 1, NULL, NULL), CLFD_ERROR_WAIT_LIST,
                   "num_wait is 1", "both or neither");
}
END_TEST

START_TEST(a_queue_of_another_context_is_refused)
{
    const cl_context other = clCreateContext(NULL, 1, &session->device, NULL, NULL, NULL);
    const cl_command_queue queue = clCreateCommandQueue(other, session->device, 0, NULL);

    expect_refused(clfd_enqueue_merge(plans[partial], queue, ROWS, &a, &merged, 0, NULL, NULL),
                   CLFD_ERROR_QUEUE_CONTEXT, "queue", "of another cl_context");
    expect_refused(clfd_enqueue_merge_pair(plans[partial], queue, ROWS, &a, &b, &merged, 0, NULL, NULL),
                   CLFD_ERROR_QUEUE_CONTEXT, "queue", "of another cl_context");
    ck_assert_int_eq(clReleaseCommandQueue(queue), CL_SUCCESS);
    ck_assert_int_eq(clReleaseContext(other), CL_SUCCESS);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        whole_calls_are_accepted,
        a_kind_that_is_not_implemented_or_a_null_mem_is_refused,
        a_state_has_the_arrays_of_its_format_and_no_other,
        an_array_one_byte_short_or_an_offset_past_its_end_is_refused,
        an_unaligned_array_is_refused,
        an_array_that_kernels_may_not_use_is_refused,
        an_array_of_another_context_is_refused,
        the_result_of_a_merge_of_many_overlaps_nothing,
        an_accumulator_may_be_exactly_one_of_its_operands,
        an_accumulator_that_is_not_exactly_an_operand_is_refused,
        an_accumulators_array_may_not_be_another_array_of_an_operand,
        rows_above_max_rows_are_refused_and_none_is_a_marker,
        a_pairwise_merge_needs_a_plan_of_two_states_into_f32,
        null_arguments_and_bad_wait_lists_are_refused,
        a_queue_of_another_context_is_refused,
    };
    const int failed = run_suite_around("buffers_merge", tests, COUNT(tests), set_up, tear_down);

    test_session_close();
    return failed;
}

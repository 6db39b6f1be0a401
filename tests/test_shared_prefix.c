/* The worked example of clfd/state.h: one attention over a cache in two parts. All sequences of a batch begin with the same
 * prefix, whose keys and values lie in the cache once; each goes on with keys of its own. Three calls:
 *
 *     1. the prefix, with shared_kv: each of its keys is read once for the query rows of the whole batch
 *     2. the suffixes, an ordinary decode; it alone is causal, and it alone has the sinks
 *     3. clfd_enqueue_merge_pair joins the two states of each row, in place
 *
 * The result is compared with one attention over the concatenated keys. */
#include "support/compare.h"
#include "support/random.h"
#include "support/session.h"
#include "support/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 5,
    Q_LEN = 2,
    HEADS = 6,
    KV_HEADS = 2,
    DIM = 64,
    PREFIX = 150, /* keys at most */
    SUFFIX = 40,
    ROWS = BATCH * Q_LEN * HEADS,
    KEY = KV_HEADS * DIM /* elements of one token */
};

/* K and V of the prefix [token][kv_head][dim] and of the suffixes [batch][token][kv_head][dim], and what came out. */
typedef struct problem {
    float q[ROWS * DIM], sinks[HEADS];
    float prefix_k[PREFIX * KEY], prefix_v[PREFIX * KEY];
    float suffix_k[BATCH * SUFFIX * KEY], suffix_v[BATCH * SUFFIX * KEY];
    int32_t prefix_len, suffix_lens[BATCH];
    float out[ROWS * DIM], lse[ROWS];
} problem;

/* ---- The example ------------------------------------------------------------------------------------------------- */

/* What both parts have in common. Their outputs are states, so out is f32. */
static const clfd_attention both_parts = {
    .struct_size = sizeof(clfd_attention),
    .max_batch = BATCH,
    .q_len = Q_LEN,
    .num_q_heads = HEADS,
    .num_kv_heads = KV_HEADS,
    .head_dim = DIM,
    .out_type = CLFD_TYPE_F32,
};

/* The plans, made once, and the memory that every step uses again. */
typedef struct decoder {
    clfd_plan *prefix, *suffix;
    clfd_merge_plan *merge;
    clfd_buffer workspace;                  /* serves both decodes, one after the other */
    clfd_state_buffers prefix_state, state; /* of the prefix; of the suffix, and in the end of both */
} decoder;

static clfd_buffer device_floats(size_t count)
{
    return test_buffer(test_buffer_create(CL_MEM_READ_WRITE, count * sizeof(float), 0), 0);
}

static clfd_state_buffers create_state(void)
{
    return (clfd_state_buffers){.o = device_floats(ROWS * DIM), .lse = device_floats(ROWS)};
}

static void create_decoder(decoder *d, uint32_t max_prefix)
{
    test_session *const session = test_session_get();
    clfd_attention prefix = both_parts, suffix = both_parts;
    const clfd_merge merge = {.struct_size = sizeof merge, .max_rows = ROWS, .num_states = 2, .head_dim_v = DIM};

    prefix.shared_kv = 1;
    prefix.max_kv_len = max_prefix;
    suffix.max_kv_len = SUFFIX;
    suffix.causal = 1; /* the suffix holds all new tokens; the prefix is visible whole */
    suffix.sinks = 1;  /* at most one part carries sinks */
    ck_assert_int_eq(clfd_plan_create(session->context, &prefix, &d->prefix), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_plan_create(session->context, &suffix, &d->suffix), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_merge_plan_create(session->context, &merge, &d->merge), CLFD_SUCCESS);

    const size_t needed = clfd_plan_workspace_bytes(d->prefix), also = clfd_plan_workspace_bytes(d->suffix);
    d->workspace = test_buffer(test_buffer_create(CL_MEM_READ_WRITE, needed > also ? needed : also, 0xff), 0);
    ck_assert_int_eq(clfd_enqueue_workspace_init(d->prefix, session->queue, &d->workspace, 0, NULL, NULL), CL_SUCCESS);
    d->prefix_state = create_state();
    d->state = create_state();
}

/* One step. The calls follow each other in an in-order queue; elsewhere events would order them. */
static void decode_step(decoder *d, cl_command_queue queue, const clfd_buffers *prefix, const clfd_buffers *suffix)
{
    clfd_buffers first = *prefix, second = *suffix;

    first.out = d->prefix_state.o;
    first.lse = d->prefix_state.lse;
    first.workspace = d->workspace;
    ck_assert_int_eq(clfd_enqueue_decode(d->prefix, queue, &first, 0, NULL, NULL), CLFD_SUCCESS);

    second.out = d->state.o;
    second.lse = d->state.lse;
    second.workspace = d->workspace;
    ck_assert_int_eq(clfd_enqueue_decode(d->suffix, queue, &second, 0, NULL, NULL), CLFD_SUCCESS);

    /* rows = batch * q_len * num_q_heads, in the order of out and lse; the accumulator may be one of the two. */
    ck_assert_int_eq(
        clfd_enqueue_merge_pair(d->merge, queue, ROWS, &d->prefix_state, &d->state, &d->state, 0, NULL, NULL),
        CLFD_SUCCESS);
}

static void release_decoder(decoder *d)
{
    const clfd_buffer buffers[] = {d->workspace, d->prefix_state.o, d->prefix_state.lse, d->state.o, d->state.lse};

    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        clReleaseMemObject(buffers[i].mem);
    clfd_plan_release(d->prefix);
    clfd_plan_release(d->suffix);
    clfd_merge_plan_release(d->merge);
}

/* ---- Running and checking it ------------------------------------------------------------------------------------- */

static clfd_buffer upload(const void *data, size_t bytes)
{
    return test_buffer(test_buffer_create_from(CL_MEM_READ_ONLY, data, bytes), 0);
}

static void draw(problem *p, int32_t prefix_len, const int32_t *suffix_lens)
{
    random_source source = {(uint64_t)prefix_len + 1};

    random_fill_normal(&source, p->q, ROWS * DIM, 1.0f);
    random_fill_normal(&source, p->sinks, HEADS, 1.0f);
    random_fill_normal(&source, p->prefix_k, PREFIX * KEY, 1.0f);
    random_fill_normal(&source, p->prefix_v, PREFIX * KEY, 1.0f);
    random_fill_normal(&source, p->suffix_k, BATCH * SUFFIX * KEY, 1.0f);
    random_fill_normal(&source, p->suffix_v, BATCH * SUFFIX * KEY, 1.0f);
    p->prefix_len = prefix_len;
    memcpy(p->suffix_lens, suffix_lens, sizeof p->suffix_lens);
}

static void run(problem *p)
{
    test_session *const session = test_session_get();
    const clfd_buffer q = upload(p->q, sizeof p->q), sinks = upload(p->sinks, sizeof p->sinks);
    const clfd_buffers prefix = {.struct_size = sizeof prefix,
                                 .batch = BATCH,
                                 .q = q,
                                 .k = upload(p->prefix_k, sizeof p->prefix_k),
                                 .v = upload(p->prefix_v, sizeof p->prefix_v),
                                 .kv_lens = upload(&p->prefix_len, sizeof p->prefix_len)};
    const clfd_buffers suffix = {.struct_size = sizeof suffix,
                                 .batch = BATCH,
                                 .q = q,
                                 .k = upload(p->suffix_k, sizeof p->suffix_k),
                                 .v = upload(p->suffix_v, sizeof p->suffix_v),
                                 .kv_lens = upload(p->suffix_lens, sizeof p->suffix_lens),
                                 .sinks = sinks};
    const clfd_buffer all[] = {q, sinks, prefix.k, prefix.v, prefix.kv_lens, suffix.k, suffix.v, suffix.kv_lens};
    decoder d;

    create_decoder(&d, PREFIX);
    decode_step(&d, session->queue, &prefix, &suffix);
    test_buffer_read(d.state.o.mem, 0, p->out, sizeof p->out);
    test_buffer_read(d.state.lse.mem, 0, p->lse, sizeof p->lse);
    release_decoder(&d);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        clReleaseMemObject(all[i].mem);
}

/* Each sequence's keys in one piece: the prefix, then its own. */
static float *concatenate(const problem *p, const float *prefix, const float *suffix)
{
    const size_t whole = (PREFIX + SUFFIX) * KEY, before = (size_t)p->prefix_len * KEY;
    float *const all = malloc(BATCH * whole * sizeof *all);

    ck_assert_ptr_nonnull(all);
    for (size_t b = 0; b < BATCH; b++) {
        memcpy(all + b * whole, prefix, before * sizeof *all);
        memcpy(all + b * whole + before, suffix + b * SUFFIX * KEY, SUFFIX * KEY * sizeof *all);
    }
    return all;
}

static void expect_one_attention(const problem *p)
{
    clfd_attention attention = both_parts;
    float *const k = concatenate(p, p->prefix_k, p->suffix_k), *const v = concatenate(p, p->prefix_v, p->suffix_v);
    double *const out = malloc(ROWS * DIM * sizeof *out), lse[ROWS];
    int32_t lens[BATCH];

    for (int b = 0; b < BATCH; b++)
        lens[b] = p->prefix_len + p->suffix_lens[b];
    attention.max_kv_len = PREFIX + SUFFIX;
    attention.causal = 1;
    attention.sinks = 1;
    const clfd_host_tensors tensors = {.struct_size = sizeof tensors,
                                       .batch = BATCH,
                                       .q = p->q,
                                       .k = k,
                                       .v = v,
                                       .kv_lens = lens,
                                       .sinks = p->sinks,
                                       .out = out,
                                       .lse = lse};
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(clfd_reference_attention(&attention, &tensors, NULL), CLFD_SUCCESS);
    ASSERT_FLOATS(p->out, out, ROWS * DIM, TOLERANCE_OUT_F32);
    ASSERT_FLOATS(p->lse, lse, ROWS, TOLERANCE_LSE);
    free(k);
    free(v);
    free(out);
}

static problem p;

START_TEST(prefix_and_suffix_merged_equal_one_attention_over_both)
{
    static const int32_t suffix_lens[BATCH] = {2, 17, SUFFIX, 3, 33};

    draw(&p, PREFIX, suffix_lens);
    run(&p);
    expect_one_attention(&p);
}
END_TEST

START_TEST(a_prefix_of_any_length_merges)
{
    static const int32_t prefix_lens[] = {0, 1, 64, 149};
    static const int32_t suffix_lens[BATCH] = {2, 3, 4, 5, 6};

    for (size_t i = 0; i < sizeof prefix_lens / sizeof prefix_lens[0]; i++) {
        draw(&p, prefix_lens[i], suffix_lens);
        run(&p);
        expect_one_attention(&p);
    }
}
END_TEST

/* With nothing in either part a row is its sink. */
START_TEST(two_empty_parts_leave_the_sink)
{
    static const int32_t suffix_lens[BATCH] = {0};

    draw(&p, 0, suffix_lens);
    run(&p);
    for (int row = 0; row < ROWS; row++)
        ck_assert(p.lse[row] == p.sinks[row % HEADS] && p.out[row * DIM + 7] == 0.0f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        prefix_and_suffix_merged_equal_one_attention_over_both,
        a_prefix_of_any_length_merges,
        two_empty_parts_leave_the_sink,
    };
    const int result = run_suite("shared_prefix", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

/* test_paths.c - one small problem for each path through the kernels: families, types, partial formats, split policies,
 * direct writes and merges, rows of every kind. Small enough for a simulator: tools/ci/oclgrind.sh runs this program
 * under Oclgrind, which reports races and uninitialised reads. */
#include "plan/schedule.h"
#include "support/compare.h"
#include "support/device.h"
#include "support/random.h"
#include "support/suite.h"
#include <clfd/clfd.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define F32 CLFD_TYPE_F32
#define F16 CLFD_TYPE_F16
#define BF16 CLFD_TYPE_BF16

enum { BATCH = 4, MAX_KV_LEN = 40 };

/* Nothing, one key, an odd length, all there is. */
static const int32_t kv_lens[BATCH] = {0, 1, 23, MAX_KV_LEN};

static const char *const tunings[] = {
    "family=decode_vector width=8 tile=4",
    "family=decode_lanes exchange=local wg=32 lanes=8 unroll=2 rows=4 parts=2",
};

/* clang-format off */
static const clfd_attention problems[] = {
    {.num_q_heads = 2, .head_dim = 16, .split_policy = CLFD_SPLIT_COUNT, .split_size = 1},
    {.num_q_heads = 6, .num_kv_heads = 2, .head_dim = 24, .head_dim_v = 8, .partial = CLFD_PARTIAL_MLO,
     .split_policy = CLFD_SPLIT_TOKENS, .split_size = 7},
    {.num_q_heads = 5, .num_kv_heads = 1, .head_dim = 16, .q_type = F16, .q_len = 3, .causal = 1,
     .split_policy = CLFD_SPLIT_TOKENS, .split_size = 16},
    {.num_q_heads = 8, .num_kv_heads = 2, .head_dim = 72, .head_dim_v = 64, .v_from_k = 1, .q_type = F32, .k_type = BF16,
     .out_type = BF16, .k_alignment = 2, .kv_layout = CLFD_LAYOUT_BHSD},
};
/* clang-format on */

static test_rig rig;
static random_source source;

static void set_up(void)
{
    test_rig_open(&rig);
    source = (random_source){.state = 1};
}

static void tear_down(void) { test_rig_close(&rig); }

/* A buffer of `bytes` bytes: the first `num_zeros` are 0, the others 0xFF, which is NaN in every type; or a copy of
 * `data`. Always written from end to end: Oclgrind takes what the last write from the host left out for uninitialised,
 * even after a kernel wrote it. */
static clfd_buffer make_buffer(const void *data, size_t bytes, size_t num_zeros)
{
    clfd_buffer buffer = {.kind = CLFD_BUFFER_MEM};
    char *content = malloc(bytes);

    ck_assert_ptr_nonnull(content);
    memset(content, 0xFF, bytes);
    memset(content, 0, num_zeros);
    if (data != NULL)
        memcpy(content, data, bytes);
    buffer.mem = clCreateBuffer(rig.context, CL_MEM_READ_WRITE, bytes, NULL, NULL);
    ck_assert_ptr_nonnull(buffer.mem);
    ck_assert_int_eq(clEnqueueWriteBuffer(rig.queue, buffer.mem, CL_TRUE, 0, bytes, content, 0, NULL, NULL),
                     CL_SUCCESS);
    free(content);
    return buffer;
}

static clfd_buffer copy_to_buffer(const void *data, size_t bytes) { return make_buffer(data, bytes, 0); }
static clfd_buffer make_output(size_t bytes) { return make_buffer(NULL, bytes, 0); }

/* What clfd_enqueue_workspace_init leaves of a workspace full of NaN. */
static clfd_buffer make_workspace(size_t bytes) { return make_buffer(NULL, bytes, CLFD_CONTROL_BYTES); }

static void read_buffer(const clfd_buffer *buffer, void *data, size_t bytes)
{
    ck_assert_int_eq(clEnqueueReadBuffer(rig.queue, buffer->mem, CL_TRUE, 0, bytes, data, 0, NULL, NULL), CL_SUCCESS);
}

static void release_buffer(clfd_buffer *buffer)
{
    if (buffer->kind != CLFD_BUFFER_NONE)
        ck_assert_int_eq(clReleaseMemObject(buffer->mem), CL_SUCCESS);
}

/* `count` normal numbers of a type, malloc'ed. */
static void *make_random(clfd_type type, size_t count)
{
    float *numbers = malloc(count * sizeof *numbers);
    void *converted = malloc(count * clfd_type_size(type));

    ck_assert(numbers != NULL && converted != NULL);
    random_fill_normal(&source, numbers, count, 1.0f);
    ck_assert_int_eq(clfd_convert_from_float(type, numbers, converted, count), CLFD_SUCCESS);
    free(numbers);
    return converted;
}

static compare_tolerance out_tolerance(clfd_type type)
{
    return type == F32 ? TOLERANCE_OUT_F32 : type == F16 ? TOLERANCE_OUT_F16 : TOLERANCE_OUT_BF16;
}

/* The descriptor with every default that this program needs to know. */
static clfd_attention complete(const clfd_attention *problem)
{
    clfd_attention a = *problem;

    a.struct_size = sizeof a;
    a.max_batch = BATCH;
    a.max_kv_len = MAX_KV_LEN;
    a.q_len = a.q_len != 0 ? a.q_len : 1;
    a.num_kv_heads = a.num_kv_heads != 0 ? a.num_kv_heads : a.num_q_heads;
    a.head_dim_v = a.head_dim_v != 0 ? a.head_dim_v : a.head_dim;
    a.q_type = a.q_type != CLFD_TYPE_DEFAULT ? a.q_type : F32;
    a.k_type = a.k_type != CLFD_TYPE_DEFAULT ? a.k_type : a.q_type;
    a.out_type = a.out_type != CLFD_TYPE_DEFAULT ? a.out_type : a.q_type;
    return a;
}

/* Plans and decodes, with the tensors of `host`, and compares what comes out with host->out and host->lse. */
static void expect_decode(const clfd_attention *a, const clfd_host_tensors *host, size_t q_count, size_t k_count,
                          size_t v_count, size_t num_rows)
{
    const size_t out_count = num_rows * a->head_dim_v, out_bytes = out_count * clfd_type_size(a->out_type);
    float *out = malloc(out_count * sizeof *out), *lse = malloc(num_rows * sizeof *lse);
    void *raw = malloc(out_bytes);
    clfd_buffers b = {.struct_size = sizeof b, .batch = BATCH};
    clfd_plan *plan = NULL;

    ck_assert(out != NULL && lse != NULL && raw != NULL);
    ck_assert_int_eq(clfd_plan_create(rig.clfd, a, &plan), CLFD_SUCCESS);
    b.q = copy_to_buffer(host->q, q_count * clfd_type_size(a->q_type));
    b.k = copy_to_buffer(host->k, k_count * clfd_type_size(a->k_type));
    if (!a->v_from_k)
        b.v = copy_to_buffer(host->v, v_count * clfd_type_size(a->k_type));
    b.kv_lens = copy_to_buffer(kv_lens, sizeof kv_lens);
    b.out = make_output(out_bytes);
    b.lse = make_output(num_rows * sizeof *lse);
    b.workspace = make_workspace(clfd_plan_workspace_bytes(plan));
    ck_assert_int_eq(clfd_enqueue_decode(plan, rig.queue, &b, 0, NULL, NULL), CLFD_SUCCESS);
    read_buffer(&b.out, raw, out_bytes);
    read_buffer(&b.lse, lse, num_rows * sizeof *lse);
    ck_assert_int_eq(clfd_convert_to_float(a->out_type, raw, out, out_count), CLFD_SUCCESS);
    ASSERT_FLOATS(out, host->out, out_count, out_tolerance(a->out_type));
    ASSERT_FLOATS(lse, host->lse, num_rows, TOLERANCE_LSE);
    clfd_buffer *const buffers[] = {&b.q, &b.k, &b.v, &b.kv_lens, &b.out, &b.lse, &b.workspace};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        release_buffer(buffers[i]);
    clfd_plan_release(plan);
    free(raw);
    free(lse);
    free(out);
}

static void expect_reference(const clfd_attention *a)
{
    const size_t num_rows = (size_t)BATCH * a->q_len * a->num_q_heads, q_count = num_rows * a->head_dim;
    const size_t num_keys = (size_t)BATCH * MAX_KV_LEN * a->num_kv_heads;
    const size_t k_count = num_keys * a->head_dim, v_count = num_keys * a->head_dim_v;
    void *q = make_random(a->q_type, q_count), *k = make_random(a->k_type, k_count);
    void *v = a->v_from_k ? NULL : make_random(a->k_type, v_count);
    const clfd_host_tensors host = {
        .struct_size = sizeof host,
        .batch = BATCH,
        .q = q,
        .k = k,
        .v = v,
        .kv_lens = kv_lens,
        .out = malloc(num_rows * a->head_dim_v * sizeof(double)),
        .lse = malloc(num_rows * sizeof(double)),
    };

    ck_assert(host.out != NULL && host.lse != NULL);
    ck_assert_int_eq(clfd_reference_attention(a, &host, NULL), CLFD_SUCCESS);
    expect_decode(a, &host, q_count, k_count, v_count, num_rows);
    free(host.lse);
    free(host.out);
    free(v);
    free(k);
    free(q);
}

START_TEST(every_decode_path_matches_the_reference)
{
    for (size_t t = 0; t < sizeof tunings / sizeof tunings[0]; t++)
        for (size_t p = 0; p < sizeof problems / sizeof problems[0]; p++) {
            clfd_attention a = complete(&problems[p]);
            a.tuning = tunings[t];
            expect_reference(&a);
        }
}
END_TEST

enum { NUM_ROWS = 3, NUM_STATES = 4, DIM = 16 };

/* States on the host and on the device. */
typedef struct state_set {
    float o[NUM_ROWS * NUM_STATES][DIM], lse[NUM_ROWS * NUM_STATES], l[NUM_ROWS * NUM_STATES];
    clfd_state_buffers device;
} state_set;

/* `count` random states, every third one empty, in a partial format. With l = 1, m is S. */
static void make_states(state_set *states, size_t count, clfd_partial partial)
{
    memset(states, 0, sizeof *states);
    random_fill_normal(&source, states->o[0], count * DIM, 1.0f);
    random_fill_normal(&source, states->lse, count, 3.0f);
    for (size_t i = 0; i < count; i++) {
        states->lse[i] = i % 3 == 0 ? -INFINITY : states->lse[i];
        states->l[i] = i % 3 == 0 ? 0.0f : 1.0f;
    }
    states->device.o = copy_to_buffer(states->o, count * sizeof states->o[0]);
    if (partial == CLFD_PARTIAL_LSE) {
        states->device.lse = copy_to_buffer(states->lse, count * sizeof(float));
    } else {
        states->device.m = copy_to_buffer(states->lse, count * sizeof(float));
        states->device.l = copy_to_buffer(states->l, count * sizeof(float));
    }
}

static void release_states(state_set *states)
{
    release_buffer(&states->device.o);
    release_buffer(&states->device.lse);
    release_buffer(&states->device.m);
    release_buffer(&states->device.l);
}

static clfd_merge_plan *plan_merge(uint32_t num_states, clfd_partial partial)
{
    const clfd_merge merge = {.struct_size = sizeof merge,
                              .max_rows = NUM_ROWS,
                              .num_states = num_states,
                              .head_dim_v = DIM,
                              .partial = partial};
    clfd_merge_plan *plan = NULL;

    ck_assert_int_eq(clfd_merge_plan_create(rig.clfd, &merge, &plan), CLFD_SUCCESS);
    return plan;
}

static void expect_rows(const clfd_buffer *o, float expected[NUM_ROWS][DIM])
{
    float merged[NUM_ROWS][DIM];
    double wanted[NUM_ROWS][DIM];

    for (int r = 0; r < NUM_ROWS; r++)
        for (int d = 0; d < DIM; d++)
            wanted[r][d] = (double)expected[r][d];
    read_buffer(o, merged, sizeof merged);
    ASSERT_FLOATS(merged[0], wanted[0], NUM_ROWS * DIM, TOLERANCE_STATE);
}

START_TEST(merge_of_many_states_matches_the_host)
{
    for (clfd_partial partial = CLFD_PARTIAL_LSE; partial <= CLFD_PARTIAL_MLO; partial++) {
        clfd_merge_plan *plan = plan_merge(NUM_STATES, partial);
        clfd_state_buffers merged = {.o = make_output(sizeof(float[NUM_ROWS][DIM]))};
        float expected[NUM_ROWS][DIM], lse;
        state_set states;

        make_states(&states, NUM_ROWS * NUM_STATES, partial);
        for (int r = 0; r < NUM_ROWS; r++)
            clfd_merge_lse(NUM_STATES, states.o[r * NUM_STATES], DIM, &states.lse[r * NUM_STATES], DIM, expected[r],
                           &lse);
        ck_assert_int_eq(clfd_enqueue_merge(plan, rig.queue, NUM_ROWS, &states.device, &merged, 0, NULL, NULL),
                         CLFD_SUCCESS);
        expect_rows(&merged.o, expected);
        release_buffer(&merged.o);
        release_states(&states);
        clfd_merge_plan_release(plan);
    }
}
END_TEST

START_TEST(pairwise_merge_into_its_first_operand_matches_the_host)
{
    for (clfd_partial partial = CLFD_PARTIAL_LSE; partial <= CLFD_PARTIAL_MLO; partial++) {
        clfd_merge_plan *plan = plan_merge(2, partial);
        float expected[NUM_ROWS][DIM], lse;
        state_set a, b;

        make_states(&a, NUM_ROWS, partial);
        make_states(&b, NUM_ROWS, partial);
        for (int r = 0; r < NUM_ROWS; r++)
            clfd_merge_pair_lse(a.o[r], a.lse[r], b.o[r], b.lse[r], DIM, expected[r], &lse);
        ck_assert_int_eq(
            clfd_enqueue_merge_pair(plan, rig.queue, NUM_ROWS, &a.device, &b.device, &a.device, 0, NULL, NULL),
            CLFD_SUCCESS);
        expect_rows(&a.device.o, expected);
        release_states(&a);
        release_states(&b);
        clfd_merge_plan_release(plan);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_decode_path_matches_the_reference,
        merge_of_many_states_matches_the_host,
        pairwise_merge_into_its_first_operand_matches_the_host,
    };

    return run_suite_around("paths", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
}

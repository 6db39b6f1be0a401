/* test_paths.c - one small problem for each path through the kernels: families, types, partial formats, split policies,
 * the balanced schedule, direct writes and merges, options, pages, shared K and V, rows of every kind. Small enough for a
 * simulator: tools/ci/oclgrind.sh runs this program under Oclgrind, which reports races and uninitialised reads. */
#include "support/append_case.h"
#include "support/attention.h"
#include "support/compare.h"
#include "support/random.h"
#include "support/suite.h"
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
    "family=decode_vector width=8 tile=1 min_split=8 split_tile=8",
    "family=decode_vector width=8 tile=8 heads=2 min_split=8 split_tile=8",
    "family=decode_lanes exchange=local wg=32 lanes=8 unroll=2 rows=4 parts=2 min_split=8 split_tile=8",
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
    /* AUTO with lengths: balanced. */
    {.num_q_heads = 2, .num_kv_heads = 1, .head_dim = 16, .q_type = F16, .k_type = CLFD_TYPE_INT8,
     .v_type = CLFD_TYPE_INT4, .k_quant = {.group = 8, .zeros = 1}, .v_quant = {.scale_type = F16}, .causal = 1,
     .window = 19, .softcap = 5.0f, .alibi = 1, .bias_type = F32, .mask = CLFD_MASK_BOOL, .kv_start = 1, .sinks = 1,
     .q_len = 2, .paging = CLFD_PAGING_TABLE, .page_size = 4},
    {.num_q_heads = 6, .num_kv_heads = 2, .head_dim = 8, .k_type = CLFD_TYPE_FP8_E5M2, .v_type = CLFD_TYPE_INT8,
     .v_quant = {.zeros = 1}, .partial = CLFD_PARTIAL_MLO},
    {.num_q_heads = 2, .num_kv_heads = 1, .head_dim = 16, .q_type = BF16, .k_type = CLFD_TYPE_FP8_E4M3,
     .v_type = CLFD_TYPE_FP8_E5M2, .k_quant = {.scale_type = F16, .strides = {.head = 1}}, .bias_type = F16,
     .mask = CLFD_MASK_TREE, .query_positions = 1, .cache_batch_idx = 1, .num_cache_rows = 5, .q_len = 3,
     .paging = CLFD_PAGING_CSR, .page_size = 3, .split_policy = CLFD_SPLIT_TOKENS, .split_size = 9},
    {.num_q_heads = 3, .num_kv_heads = 1, .head_dim = 32, .q_type = F16, .k_type = CLFD_TYPE_Q8_0,
     .v_type = CLFD_TYPE_Q4_0, .window = 9, .alibi = 1, .sinks = 1, .query_positions = 1, .shared_kv = 1,
     .split_policy = CLFD_SPLIT_COUNT, .split_size = 3},
    {.num_q_heads = 2, .num_kv_heads = 1, .head_dim = 64, .head_dim_v = 32, .v_from_k = 1, .q_type = F32,
     .k_type = CLFD_TYPE_Q4_0, .paging = CLFD_PAGING_TABLE, .page_size = 1, .split_policy = CLFD_SPLIT_COUNT,
     .split_size = 2},
};

/* What the matrix family can compute: 16-bit types, dims of 16, codes in groups of 32 dims. */
static const clfd_attention matrix_problems[] = {
    {.num_q_heads = 10, .num_kv_heads = 2, .head_dim = 32, .head_dim_v = 16, .q_type = F16, .out_type = F32, .q_len = 2,
     .causal = 1, .split_policy = CLFD_SPLIT_COUNT, .split_size = 2},
    {.num_q_heads = 2, .num_kv_heads = 1, .head_dim = 64, .q_type = F16, .k_type = CLFD_TYPE_INT8,
     .v_type = CLFD_TYPE_INT4, .k_quant = {.group = 32}, .out_type = F32, .paging = CLFD_PAGING_TABLE, .page_size = 4},
    {.num_q_heads = 2, .num_kv_heads = 1, .head_dim = 64, .q_type = F16, .k_type = CLFD_TYPE_Q4_0,
     .v_type = CLFD_TYPE_Q8_0, .out_type = F32, .split_policy = CLFD_SPLIT_TOKENS, .split_size = 33},
};
/* clang-format on */

/* Writes a buffer's content over itself. Oclgrind takes what the last write from the host left out for uninitialised,
 * even after a kernel wrote it, and the initialisation of a workspace is such a write. */
static void touch_all(cl_mem buffer)
{
    cl_command_queue queue = test_session_get()->queue;
    size_t bytes;
    void *content;

    ck_assert_int_eq(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof bytes, &bytes, NULL), CL_SUCCESS);
    content = malloc(bytes);
    ck_assert_ptr_nonnull(content);
    test_buffer_read(buffer, 0, content, bytes);
    ck_assert_int_eq(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, bytes, content, 0, NULL, NULL), CL_SUCCESS);
    free(content);
}

static void verify_path(const clfd_attention *attention, const char *tuning)
{
    const bool shared = attention->shared_kv != 0, balanced = attention->split_policy == CLFD_SPLIT_AUTO;
    attention_problem problem = {.attention = *attention, .kv_lens = shared ? &kv_lens[2] : kv_lens};
    attention_call *call;

    problem.attention.tuning = tuning;
    problem.attention.max_batch = BATCH;
    problem.attention.max_kv_len = MAX_KV_LEN;
    call = attention_open(&problem);
    ck_assert(!balanced || strstr(clfd_plan_describe(call->plan), " balanced") != NULL);
    attention_upload(call);
    touch_all(call->buffers.workspace.mem);
    ck_assert_int_eq(clfd_enqueue_decode(call->plan, test_session_get()->queue, &call->buffers, 0, NULL, NULL),
                     CLFD_SUCCESS);
    attention_read(call);
    attention_expect_reference(call);
    attention_close(call);
}

START_TEST(every_decode_path_matches_the_reference)
{
    for (size_t t = 0; t < sizeof tunings / sizeof tunings[0]; t++)
        for (size_t p = 0; p < sizeof problems / sizeof problems[0]; p++)
            verify_path(&problems[p], tunings[t]);
}
END_TEST

/* The emulation of matrix units: rings that wrap, tiles without tokens, both operand forms, two blocks of rows. */
START_TEST(every_path_of_the_matrix_family_matches_the_reference)
{
    static const char tuning[] = "family=decode_matrix exchange=local wg=64 slots=2 min_split=8 split_tile=32";

    for (size_t p = 0; p < sizeof matrix_problems / sizeof matrix_problems[0]; p++)
        verify_path(&matrix_problems[p], tuning);
}
END_TEST

enum { NUM_ROWS = 3, NUM_STATES = 4, DIM = 16 };

/* States on the host and on the device. */
typedef struct state_set {
    float o[NUM_ROWS * NUM_STATES][DIM], lse[NUM_ROWS * NUM_STATES], l[NUM_ROWS * NUM_STATES];
    clfd_state_buffers device;
} state_set;

static clfd_buffer upload(const void *data, size_t bytes)
{
    return test_buffer(test_buffer_create_from(CL_MEM_READ_WRITE, data, bytes), 0);
}

static void release_buffer(clfd_buffer *buffer)
{
    if (buffer->kind != CLFD_BUFFER_NONE)
        ck_assert_int_eq(clReleaseMemObject(buffer->mem), CL_SUCCESS);
}

/* `count` random states, every third one empty, in a partial format. With l = 1, m is S. */
static void make_states(state_set *states, size_t count, clfd_partial partial, uint64_t seed)
{
    random_source source = {.state = seed};

    memset(states, 0, sizeof *states);
    random_fill_normal(&source, states->o[0], count * DIM, 1.0f);
    random_fill_normal(&source, states->lse, count, 3.0f);
    for (size_t i = 0; i < count; i++) {
        states->lse[i] = i % 3 == 0 ? -INFINITY : states->lse[i];
        states->l[i] = i % 3 == 0 ? 0.0f : 1.0f;
    }
    states->device.o = upload(states->o, count * sizeof states->o[0]);
    if (partial == CLFD_PARTIAL_LSE) {
        states->device.lse = upload(states->lse, count * sizeof(float));
    } else {
        states->device.m = upload(states->lse, count * sizeof(float));
        states->device.l = upload(states->l, count * sizeof(float));
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

    ck_assert_int_eq(clfd_merge_plan_create(test_session_get()->context, &merge, &plan), CLFD_SUCCESS);
    return plan;
}

static void expect_rows(const clfd_buffer *o, float expected[NUM_ROWS][DIM])
{
    float merged[NUM_ROWS][DIM];
    double wanted[NUM_ROWS][DIM];

    for (int r = 0; r < NUM_ROWS; r++)
        for (int d = 0; d < DIM; d++)
            wanted[r][d] = (double)expected[r][d];
    test_buffer_read(o->mem, 0, merged, sizeof merged);
    ASSERT_FLOATS(merged[0], wanted[0], NUM_ROWS * DIM, TOLERANCE_STATE);
}

START_TEST(merge_of_many_states_matches_the_host)
{
    for (clfd_partial partial = CLFD_PARTIAL_LSE; partial <= CLFD_PARTIAL_MLO; partial++) {
        clfd_merge_plan *plan = plan_merge(NUM_STATES, partial);
        clfd_state_buffers merged = {
            .o = test_buffer(test_buffer_create(CL_MEM_READ_WRITE, sizeof(float[NUM_ROWS][DIM]), 0xFF), 0)};
        float expected[NUM_ROWS][DIM], lse;
        state_set states;

        make_states(&states, NUM_ROWS * NUM_STATES, partial, 1);
        for (int r = 0; r < NUM_ROWS; r++)
            clfd_merge_lse(NUM_STATES, states.o[r * NUM_STATES], DIM, &states.lse[r * NUM_STATES], DIM, expected[r],
                           &lse);
        ck_assert_int_eq(
            clfd_enqueue_merge(plan, test_session_get()->queue, NUM_ROWS, &states.device, &merged, 0, NULL, NULL),
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

        make_states(&a, NUM_ROWS, partial, 1);
        make_states(&b, NUM_ROWS, partial, 2);
        for (int r = 0; r < NUM_ROWS; r++)
            clfd_merge_pair_lse(a.o[r], a.lse[r], b.o[r], b.lse[r], DIM, expected[r], &lse);
        ck_assert_int_eq(clfd_enqueue_merge_pair(plan, test_session_get()->queue, NUM_ROWS, &a.device, &b.device,
                                                 &a.device, 0, NULL, NULL),
                         CLFD_SUCCESS);
        expect_rows(&a.device.o, expected);
        release_states(&a);
        release_states(&b);
        clfd_merge_plan_release(plan);
    }
}
END_TEST

/* Every type of the cache; table, CSR and rows of the cache; both styles of rope; lengths past the capacity. */
START_TEST(every_append_path_matches_the_loop)
{
    static const int32_t lens[] = {3, 7}, counts[] = {1, 2}, table[] = {2, 0, 7, 1}, indptr[] = {0, 2, 4},
                         rows[] = {1, 0};
    static const clfd_type types[][2] = {
        {F32, F32},
        {F16, F16},
        {BF16, BF16},
        {CLFD_TYPE_INT8, CLFD_TYPE_INT4},
        {CLFD_TYPE_FP8_E4M3, CLFD_TYPE_FP8_E5M2},
        {CLFD_TYPE_Q8_0, CLFD_TYPE_Q4_0},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        append_problem p = {.attention = {.max_batch = 2,
                                          .q_len = 2,
                                          .num_q_heads = 2,
                                          .num_kv_heads = 1,
                                          .head_dim = 32,
                                          .q_type = i % 2 == 0 ? F32 : F16,
                                          .k_type = types[i][0],
                                          .v_type = types[i][1],
                                          .k_quant = {.zeros = types[i][0] == CLFD_TYPE_INT8},
                                          .max_kv_len = 8,
                                          .paging = (clfd_paging)(i % 3)},
                            .append = {.ragged = 1, .rope = i < 3 ? CLFD_ROPE_NEOX : CLFD_ROPE_GPTJ, .rope_q = 1},
                            .kv_lens = lens,
                            .new_lens = counts};
        if (p.attention.paging == CLFD_PAGING_NONE) {
            p.attention.cache_batch_idx = 1;
            p.cache_batch_idx = rows;
        } else {
            p.attention.page_size = p.attention.paging == CLFD_PAGING_TABLE ? 4 : 5;
            p.attention.num_pages = 4;
            p.block_table = table;
        }
        if (p.attention.paging == CLFD_PAGING_CSR) {
            p.page_indptr = indptr;
            p.num_page_indices = 4;
        }
        append_verify(&p);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_decode_path_matches_the_reference,
        every_path_of_the_matrix_family_matches_the_reference,
        every_append_path_matches_the_loop,
        merge_of_many_states_matches_the_host,
        pairwise_merge_into_its_first_operand_matches_the_host,
    };
    const int result = run_suite("paths", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

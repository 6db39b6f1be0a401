/* Decode loops without a host round trip: append writes the lengths that the decode behind it reads, and that the append
 * of the next token starts from. Nothing is read, and nothing waited for, before the last step is enqueued. */
#include "support/compare.h"
#include "support/random.h"
#include "support/session.h"
#include "support/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { STEPS = 20, BATCH = 3, Q_HEADS = 4, KV_HEADS = 2, DIM = 64, MAX_KV_LEN = 48, PAGE = 16 };
enum { PAGES = BATCH * MAX_KV_LEN / PAGE, Q_ROW = Q_HEADS * DIM, KV_ROW = KV_HEADS * DIM, CACHE = 64 << 10 };

/* What the sequences have before; the second one ends after ten steps. */
static const int32_t lens[BATCH] = {20, 0, 7};
static int32_t new_count(int step, int b) { return b != 1 || step < 10; }

static const int32_t table[PAGES] = {7, 2, 5, 0, 8, 3, 6, 1, 4};

typedef enum list { CACHE_K, CACHE_V, K_SCALE, V_SCALE, K_ZERO, NEW_K, NEW_V, Q, OUT, LSE, NUM_LISTS } list;

/* A loop's memory: per step, new rows, q, out and lse; two lists of lengths, for even and odd steps. */
typedef struct loop {
    clfd_attention attention;
    clfd_append append;
    clfd_plan *decode_plan;
    clfd_append_plan *append_plan;
    cl_mem mems[NUM_LISTS], lengths[2], new_lens, cos, sin, block_table, status, workspace;
} loop;

static const size_t list_bytes[NUM_LISTS] = {
    [CACHE_K] = CACHE,
    [CACHE_V] = CACHE,
    [K_SCALE] = CACHE,
    [V_SCALE] = CACHE,
    [K_ZERO] = CACHE,
    [NEW_K] = STEPS * BATCH * KV_ROW * 4,
    [Q] = STEPS * BATCH * Q_ROW * 4,
    [NEW_V] = STEPS * BATCH * KV_ROW * 4,
    [OUT] = STEPS * BATCH * Q_ROW * 4,
    [LSE] = STEPS * BATCH * Q_HEADS * 4,
};

static cl_mem draw(size_t bytes, float scale, uint64_t seed)
{
    random_source source = {seed};
    float *const values = malloc(bytes);

    ck_assert_ptr_nonnull(values);
    random_fill_normal(&source, values, bytes / sizeof *values, scale);
    const cl_mem mem = test_buffer_create_from(CL_MEM_READ_WRITE, values, bytes);
    free(values);
    return mem;
}

static void open_loop(loop *l)
{
    test_session *const s = test_session_get();
    float cosines[MAX_KV_LEN * DIM / 2], sines[MAX_KV_LEN * DIM / 2];
    int32_t counts[STEPS * BATCH];
    const uint32_t none = 0;

    l->append.attention = &l->attention;
    ck_assert_msg(clfd_plan_create(s->context, &l->attention, &l->decode_plan) == CLFD_SUCCESS &&
                      clfd_append_plan_create(s->context, &l->append, &l->append_plan) == CLFD_SUCCESS,
                  "%s", s->heard.last[CLFD_LOG_ERROR]);
    for (int p = 0; p < MAX_KV_LEN; p++)
        for (int i = 0; i < DIM / 2; i++) {
            cosines[p * DIM / 2 + i] = cosf((float)p * powf(1e4f, -2.0f * (float)i / DIM));
            sines[p * DIM / 2 + i] = sinf((float)p * powf(1e4f, -2.0f * (float)i / DIM));
        }
    for (int i = 0; i < STEPS * BATCH; i++)
        counts[i] = new_count(i / BATCH, i % BATCH);
    for (int i = 0; i < NUM_LISTS; i++)
        l->mems[i] = i >= NEW_K && i <= Q ? draw(list_bytes[i], 1.0f, (uint64_t)i)
                                          : test_buffer_create(CL_MEM_READ_WRITE, list_bytes[i], 0);
    l->lengths[0] = test_buffer_create_from(CL_MEM_READ_WRITE, lens, sizeof lens);
    l->lengths[1] = test_buffer_create(CL_MEM_READ_WRITE, sizeof lens, 0xff);
    l->new_lens = test_buffer_create_from(CL_MEM_READ_ONLY, counts, sizeof counts);
    l->cos = test_buffer_create_from(CL_MEM_READ_ONLY, cosines, sizeof cosines);
    l->sin = test_buffer_create_from(CL_MEM_READ_ONLY, sines, sizeof sines);
    l->block_table = test_buffer_create_from(CL_MEM_READ_ONLY, table, sizeof table);
    l->status = test_buffer_create_from(CL_MEM_READ_WRITE, &none, sizeof none);
    l->workspace = test_buffer_create(CL_MEM_READ_WRITE, clfd_plan_workspace_bytes(l->decode_plan), 0xff);
}

static void close_loop(loop *l)
{
    const cl_mem rest[] = {l->lengths[0], l->lengths[1],  l->new_lens, l->cos,
                           l->sin,        l->block_table, l->status,   l->workspace};

    for (size_t i = 0; i < COUNT(rest); i++)
        clReleaseMemObject(rest[i]);
    for (int i = 0; i < NUM_LISTS; i++)
        clReleaseMemObject(l->mems[i]);
    clfd_plan_release(l->decode_plan);
    clfd_append_plan_release(l->append_plan);
}

/* ---- The loop ---------------------------------------------------------------------------------------------------- */

/* A buffer that the caches of this loop have, else none. */
static clfd_buffer cache_buffer(const loop *l, list which, bool wanted)
{
    return wanted ? test_buffer(l->mems[which], 0) : (clfd_buffer){.kind = CLFD_BUFFER_NONE};
}

static void enqueue_step(loop *l, int step)
{
    const cl_command_queue queue = test_session_get()->queue;
    const bool quantised = l->attention.k_type == CLFD_TYPE_INT8, paged = l->attention.paging != CLFD_PAGING_NONE;
    const size_t s = (size_t)step, kv_bytes = BATCH * KV_ROW * sizeof(float), q_bytes = BATCH * Q_ROW * sizeof(float);
    const clfd_buffer before = test_buffer(l->lengths[step % 2], 0), after = test_buffer(l->lengths[1 - step % 2], 0);
    const clfd_append_buffers appended = {
        .struct_size = sizeof appended,
        .batch = BATCH,
        .new_k = test_buffer(l->mems[NEW_K], s * kv_bytes),
        .new_v = test_buffer(l->mems[NEW_V], s * kv_bytes),
        .k = test_buffer(l->mems[CACHE_K], 0),
        .v = test_buffer(l->mems[CACHE_V], 0),
        .k_scale = cache_buffer(l, K_SCALE, quantised),
        .k_zero = cache_buffer(l, K_ZERO, quantised),
        .v_scale = cache_buffer(l, V_SCALE, quantised),
        .block_table = paged ? test_buffer(l->block_table, 0) : (clfd_buffer){.kind = CLFD_BUFFER_NONE},
        .kv_lens = before,
        .kv_lens_out = after,
        .new_lens = test_buffer(l->new_lens, s * sizeof lens),
        .cos = test_buffer(l->cos, 0),
        .sin = test_buffer(l->sin, 0),
        .q = test_buffer(l->mems[Q], s * q_bytes),
        .status = test_buffer(l->status, 0),
    };
    const clfd_buffers decoded = {
        .struct_size = sizeof decoded,
        .batch = BATCH,
        .q = appended.q,
        .k = appended.k,
        .v = appended.v,
        .k_scale = appended.k_scale,
        .k_zero = appended.k_zero,
        .v_scale = appended.v_scale,
        .block_table = appended.block_table,
        .kv_lens = after,
        .out = test_buffer(l->mems[OUT], s * q_bytes),
        .lse = test_buffer(l->mems[LSE], s * BATCH * Q_HEADS * sizeof(float)),
        .status = appended.status,
        .workspace = test_buffer(l->workspace, 0),
    };

    ck_assert_msg(clfd_enqueue_append(l->append_plan, queue, &appended, 0, NULL, NULL) == CLFD_SUCCESS &&
                      clfd_enqueue_decode(l->decode_plan, queue, &decoded, 0, NULL, NULL) == CLFD_SUCCESS,
                  "%s", test_session_get()->heard.last[CLFD_LOG_ERROR]);
}

/* Every step's out against the reference on the cache as the last step left it: what a step sees must not have changed
 * since. Returns the lengths after the loop. */
static void expect_reference(const loop *l, int32_t *lengths)
{
    static unsigned char content[NUM_LISTS][CACHE > STEPS * BATCH * Q_ROW * 4 ? CACHE : STEPS * BATCH * Q_ROW * 4];
    static double out[BATCH * Q_ROW], lse[BATCH * Q_HEADS];
    const bool quantised = l->attention.k_type == CLFD_TYPE_INT8;

    for (int i = 0; i < NUM_LISTS; i++)
        test_buffer_read(l->mems[i], 0, content[i], list_bytes[i]);
    memcpy(lengths, lens, sizeof lens);
    for (int step = 0; step < STEPS; step++) {
        const size_t q_at = (size_t)step * BATCH * Q_ROW * sizeof(float);
        for (int b = 0; b < BATCH; b++)
            lengths[b] += new_count(step, b);
        const clfd_host_tensors tensors = {.struct_size = sizeof tensors,
                                           .batch = BATCH,
                                           .q = content[Q] + q_at,
                                           .k = content[CACHE_K],
                                           .v = content[CACHE_V],
                                           .k_scale = quantised ? content[K_SCALE] : NULL,
                                           .k_zero = quantised ? content[K_ZERO] : NULL,
                                           .v_scale = quantised ? content[V_SCALE] : NULL,
                                           .block_table = l->attention.paging != CLFD_PAGING_NONE ? table : NULL,
                                           .kv_lens = lengths,
                                           .out = out,
                                           .lse = lse};
        ck_assert_int_eq(clfd_reference_attention(&l->attention, &tensors, NULL), CLFD_SUCCESS);
        ASSERT_FLOATS((const float *)(content[OUT] + q_at), out, BATCH * Q_ROW, TOLERANCE_OUT_F32);
        ASSERT_FLOATS((const float *)content[LSE] + step * BATCH * Q_HEADS, lse, BATCH * Q_HEADS, TOLERANCE_LSE);
    }
}

START_TEST(a_decode_loop_needs_no_host)
{
    static const clfd_attention caches[] = {
        {.k_type = CLFD_TYPE_F16},
        {.k_type = CLFD_TYPE_BF16, .paging = CLFD_PAGING_TABLE, .page_size = PAGE, .num_pages = PAGES},
        {.k_type = CLFD_TYPE_INT8,
         .v_type = CLFD_TYPE_INT4,
         .k_quant = {.group = 32, .zeros = 1},
         .v_quant = {.group = 16, .scale_type = CLFD_TYPE_F16},
         .paging = CLFD_PAGING_TABLE,
         .page_size = PAGE,
         .num_pages = PAGES},
    };
    const cl_command_queue queue = test_session_get()->queue;

    for (size_t i = 0; i < COUNT(caches); i++) {
        loop l = {.attention = caches[i],
                  .append = {.struct_size = sizeof l.append, .ragged = 1, .rope = CLFD_ROPE_NEOX, .rope_q = 1}};
        int32_t expected[BATCH], actual[BATCH];
        uint32_t flags;
        l.attention.struct_size = sizeof l.attention;
        l.attention.max_batch = BATCH;
        l.attention.num_q_heads = Q_HEADS;
        l.attention.num_kv_heads = KV_HEADS;
        l.attention.head_dim = DIM;
        l.attention.max_kv_len = MAX_KV_LEN;
        open_loop(&l);
        const clfd_buffer workspace = test_buffer(l.workspace, 0);
        ck_assert_int_eq(clfd_enqueue_workspace_init(l.decode_plan, queue, &workspace, 0, NULL, NULL), CLFD_SUCCESS);
        for (int step = 0; step < STEPS; step++)
            enqueue_step(&l, step);
        expect_reference(&l, expected);
        test_buffer_read(l.lengths[STEPS % 2], 0, actual, sizeof actual);
        ck_assert_mem_eq(actual, expected, sizeof actual);
        test_buffer_read(l.status, 0, &flags, sizeof flags);
        ck_assert_uint_eq(flags, 0);
        close_loop(&l);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_decode_loop_needs_no_host};
    const int result = run_suite("append_decode", tests, COUNT(tests));

    test_session_close();
    return result;
}

#include "plan/schedule.h"
#include "support/attention.h"
#include "support/compare.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

static void expect_bytes(const unsigned char *data, size_t count, unsigned char value, const char *what)
{
    for (size_t i = 0; i < count; i++)
        EXPECT(data[i] == value, "byte %zu of %s is %02x; it must stay %02x", i, what, data[i], value);
}

/* Takes the elements of out from its image and leaves 0xFF in their places, as it must be everywhere else. */
static void take_out(attention_call *call)
{
    tensor_image *const image = &call->images[ATTENTION_OUT];
    const size_t row_bytes = image->dim * clfd_type_size(image->type);
    size_t row = 0;

    test_buffer_read(call->buffers.out.mem, 0, image->data, image->bytes);
    for (uint32_t b = 0; b < call->batch; b++)
        for (uint32_t i = 0; i < image->tokens; i++)
            for (uint32_t h = 0; h < image->heads; h++, row++) {
                unsigned char *const from = image_at(image, b, i, h, 0);
                clfd_convert_to_float(image->type, from, call->out + row * image->dim, image->dim);
                memset(from, 0xff, row_bytes);
            }
    expect_bytes(image->data, image->bytes, 0xff, "out, between and around its elements,");
}

/* Reads a guarded output, checks the guards and returns it with them. */
static unsigned char *read_guarded(const clfd_buffer *buffer, size_t bytes, const char *what)
{
    unsigned char *const data = malloc(bytes + 2 * ATTENTION_GUARD);

    ck_assert_ptr_nonnull(data);
    test_buffer_read(buffer->mem, 0, data, bytes + 2 * ATTENTION_GUARD);
    expect_bytes(data, ATTENTION_GUARD, 0xff, what);
    expect_bytes(data + ATTENTION_GUARD + bytes, ATTENTION_GUARD, 0xff, what);
    return data;
}

static void read_status(attention_call *call)
{
    uint32_t words[3];

    test_buffer_read(call->buffers.status.mem, 0, words, sizeof words);
    EXPECT(words[0] == 0 && words[2] == 0, "a word beside the status word is written");
    EXPECT((words[1] & ATTENTION_STATUS_BEFORE) != 0, "a bit of the status word is cleared");
    call->status = words[1] & ~ATTENTION_STATUS_BEFORE;
}

void attention_read(attention_call *call)
{
    unsigned char *data;

    take_out(call);
    if (!call->problem.no_lse) {
        data = read_guarded(&call->buffers.lse, call->num_rows * sizeof(float), "a guard of lse");
        memcpy(call->lse, data + ATTENTION_GUARD, call->num_rows * sizeof(float));
        free(data);
    }
    read_status(call);
    data = read_guarded(&call->buffers.workspace, clfd_plan_workspace_bytes(call->plan), "a guard of the workspace");
    expect_bytes(data + ATTENTION_GUARD, CLFD_CONTROL_BYTES, 0, "the control region");
    free(data);
}

static compare_tolerance out_tolerance(const attention_call *call)
{
    static const compare_tolerance by_type[] = {[CLFD_TYPE_F32] = TOLERANCE_OUT_F32,
                                                [CLFD_TYPE_F16] = TOLERANCE_OUT_F16,
                                                [CLFD_TYPE_BF16] = TOLERANCE_OUT_BF16};

    if (call->problem.hot)
        return TOLERANCE_OUT_HOT;
    return strstr(clfd_plan_describe(call->plan), " f16_weights") != NULL ? TOLERANCE_OUT_WEIGHTS
                                                                          : by_type[call->complete.out_type];
}

void attention_expect(const attention_call *call, const double *out, const double *lse)
{
    char message[COMPARE_MESSAGE_BYTES];

    EXPECT(compare_floats(call->out, out, call->num_rows * call->complete.head_dim_v, out_tolerance(call), message),
           "out of %s: %s", clfd_plan_describe(call->plan), message);
    EXPECT(call->problem.no_lse || compare_floats(call->lse, lse, call->num_rows, TOLERANCE_LSE, message),
           "lse of %s: %s", clfd_plan_describe(call->plan), message);
}

/* Where a tensor is, as the reference wants it; NULL where there is none. */
static const void *data_of(const attention_call *call, attention_tensor tensor)
{
    const tensor_image *const image = &call->images[tensor];
    return image->data != NULL ? image->data + image->offset : NULL;
}

void attention_expect_reference(attention_call *call)
{
    const index_array *const indices = call->indices;
    const clfd_host_tensors tensors = {
        .struct_size = sizeof tensors,
        .batch = call->batch,
        .kv_len_bound = call->problem.kv_len_bound,
        .num_page_indices =
            call->complete.paging == CLFD_PAGING_CSR ? (uint32_t)indices[ATTENTION_BLOCK_TABLE].count : 0,
        .q = data_of(call, ATTENTION_Q),
        .k = data_of(call, ATTENTION_K),
        .v = data_of(call, ATTENTION_V),
        .kv_lens = indices[ATTENTION_KV_LENS].values,
        .alibi = data_of(call, ATTENTION_ALIBI),
        .bias = data_of(call, ATTENTION_BIAS),
        .mask = data_of(call, ATTENTION_MASK),
        .sinks = data_of(call, ATTENTION_SINKS),
        .query_positions = indices[ATTENTION_POSITIONS].values,
        .kv_start = indices[ATTENTION_START].values,
        .cache_batch_idx = indices[ATTENTION_CACHE_ROWS].values,
        .block_table = indices[ATTENTION_BLOCK_TABLE].values,
        .page_indptr = indices[ATTENTION_PAGE_INDPTR].values,
        .k_scale = data_of(call, ATTENTION_K_SCALE),
        .v_scale = data_of(call, ATTENTION_V_SCALE),
        .k_zero = data_of(call, ATTENTION_K_ZERO),
        .v_zero = data_of(call, ATTENTION_V_ZERO),
        .out = call->expected_out,
        .lse = call->expected_lse,
        .status = &call->expected_status,
    };

    call->expected_status = 0;
    ck_assert_int_eq(clfd_reference_attention(&call->problem.attention, &tensors, NULL), CLFD_SUCCESS);
    attention_expect(call, call->expected_out, call->expected_lse);
    EXPECT(call->status == call->expected_status, "the status word of %s is %#x instead of %#x",
           clfd_plan_describe(call->plan), call->status, call->expected_status);
}

size_t attention_row(const attention_call *call, uint32_t batch, uint32_t query, uint32_t head)
{
    return ((size_t)batch * call->complete.q_len + query) * call->complete.num_q_heads + head;
}

const float *attention_out(const attention_call *call, uint32_t batch, uint32_t query, uint32_t head)
{
    return call->out + attention_row(call, batch, query, head) * call->complete.head_dim_v;
}

bool attention_same_bits(const attention_call *a, const attention_call *b)
{
    const size_t values = a->num_rows * a->complete.head_dim_v;

    ck_assert_uint_eq(a->num_rows, b->num_rows);
    ck_assert_uint_eq(a->complete.head_dim_v, b->complete.head_dim_v);
    return memcmp(a->out, b->out, values * sizeof *a->out) == 0 &&
           memcmp(a->lse, b->lse, a->num_rows * sizeof *a->lse) == 0;
}

bool attention_same_sequence(const attention_call *a, uint32_t a_batch, const attention_call *b, uint32_t b_batch)
{
    const size_t rows = (size_t)a->complete.q_len * a->complete.num_q_heads;

    return memcmp(attention_out(a, a_batch, 0, 0), attention_out(b, b_batch, 0, 0),
                  rows * a->complete.head_dim_v * sizeof(float)) == 0 &&
           memcmp(&a->lse[attention_row(a, a_batch, 0, 0)], &b->lse[attention_row(b, b_batch, 0, 0)],
                  rows * sizeof(float)) == 0;
}

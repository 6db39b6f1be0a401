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

void attention_read(attention_call *call)
{
    unsigned char *data;

    take_out(call);
    if (!call->problem.no_lse) {
        data = read_guarded(&call->buffers.lse, call->num_rows * sizeof(float), "a guard of lse");
        memcpy(call->lse, data + ATTENTION_GUARD, call->num_rows * sizeof(float));
        free(data);
    }
    data = read_guarded(&call->buffers.workspace, clfd_plan_workspace_bytes(call->plan), "a guard of the workspace");
    expect_bytes(data + ATTENTION_GUARD, CLFD_CONTROL_BYTES, 0, "the control region");
    free(data);
}

static compare_tolerance out_tolerance(const attention_call *call)
{
    static const compare_tolerance by_type[] = {[CLFD_TYPE_F32] = TOLERANCE_OUT_F32,
                                                [CLFD_TYPE_F16] = TOLERANCE_OUT_F16,
                                                [CLFD_TYPE_BF16] = TOLERANCE_OUT_BF16};

    return call->problem.hot ? TOLERANCE_OUT_HOT : by_type[call->complete.out_type];
}

void attention_expect(const attention_call *call, const double *out, const double *lse)
{
    char message[COMPARE_MESSAGE_BYTES];

    EXPECT(compare_floats(call->out, out, call->num_rows * call->complete.head_dim_v, out_tolerance(call), message),
           "out of %s: %s", clfd_plan_describe(call->plan), message);
    EXPECT(call->problem.no_lse || compare_floats(call->lse, lse, call->num_rows, TOLERANCE_LSE, message),
           "lse of %s: %s", clfd_plan_describe(call->plan), message);
}

void attention_expect_reference(attention_call *call)
{
    const tensor_image *const images = call->images;
    const clfd_host_tensors tensors = {
        .struct_size = sizeof tensors,
        .batch = call->batch,
        .kv_len_bound = call->problem.kv_len_bound,
        .q = images[ATTENTION_Q].data + images[ATTENTION_Q].offset,
        .k = images[ATTENTION_K].data + images[ATTENTION_K].offset,
        .v = call->complete.v_from_k ? NULL : images[ATTENTION_V].data + images[ATTENTION_V].offset,
        .kv_lens = call->problem.kv_lens,
        .out = call->expected_out,
        .lse = call->expected_lse,
    };

    ck_assert_int_eq(clfd_reference_attention(&call->problem.attention, &tensors, NULL), CLFD_SUCCESS);
    attention_expect(call, call->expected_out, call->expected_lse);
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

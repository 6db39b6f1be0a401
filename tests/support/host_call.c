#include "support/host_call.h"
#include "support/compare.h"
#include "support/random.h"
#include "support/suite.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

clfd_attention attention;
clfd_host_tensors tensors;
float q[MAX_VALUES], k[MAX_VALUES], v[MAX_VALUES];
double out[MAX_VALUES], lse[MAX_VALUES];
double kept_out[MAX_VALUES], kept_lse[MAX_VALUES];

size_t num_rows(void) { return (size_t)tensors.batch * attention.q_len * attention.num_q_heads; }

size_t num_out(void) { return num_rows() * attention.head_dim_v; }

size_t num_k(void)
{
    return (size_t)tensors.batch * attention.max_kv_len * attention.num_kv_heads * attention.head_dim;
}

size_t num_v(void) { return num_k() / attention.head_dim * attention.head_dim_v; }

void set_problem(uint32_t batch, uint32_t q_len, uint32_t num_q_heads, uint32_t num_kv_heads, uint32_t head_dim,
                 uint32_t head_dim_v, uint32_t kv_len)
{
    random_source source = {batch * 7919u + q_len * 104729u + num_q_heads * 31u + head_dim + kv_len};

    attention = (clfd_attention){.struct_size = sizeof attention,
                                 .max_batch = batch,
                                 .q_len = q_len,
                                 .num_q_heads = num_q_heads,
                                 .num_kv_heads = num_kv_heads,
                                 .head_dim = head_dim,
                                 .head_dim_v = head_dim_v,
                                 .max_kv_len = kv_len,
                                 .scale = 0.25f};
    tensors = (clfd_host_tensors){
        .struct_size = sizeof tensors, .batch = batch, .q = q, .k = k, .v = v, .out = out, .lse = lse};
    ck_assert_uint_le(num_k(), MAX_VALUES);
    ck_assert_uint_le(num_v(), MAX_VALUES);
    ck_assert_uint_le(num_out(), MAX_VALUES);
    random_fill_normal(&source, q, num_rows() * head_dim, 1.0f);
    random_fill_normal(&source, k, num_k(), 1.0f);
    random_fill_normal(&source, v, num_v(), 1.0f);
}

void set_counting_problem(uint32_t batch, uint32_t q_len, uint32_t num_q_heads, uint32_t kv_len)
{
    set_problem(batch, q_len, num_q_heads, 1, 8, 8, kv_len);
    fill(q, num_rows() * 8, 0.0f);
}

void fill(float *values, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        values[i] = value;
}

void run(void)
{
    memset(out, 0xff, sizeof out);
    memset(lse, 0xff, sizeof lse);
    ck_assert_int_eq(clfd_reference_attention(&attention, &tensors, NULL), CLFD_SUCCESS);
}

void keep(void)
{
    run();
    memcpy(kept_out, out, sizeof out);
    memcpy(kept_lse, lse, sizeof lse);
}

void assert_kept(void)
{
    run();
    ck_assert_mem_eq(out, kept_out, num_out() * sizeof *out);
    ck_assert_mem_eq(lse, kept_lse, num_rows() * sizeof *lse);
}

void assert_row(size_t row, double out_value, double lse_value)
{
    for (uint32_t d = 0; d < attention.head_dim_v; d++)
        EXPECT(compare_value(out[row * attention.head_dim_v + d], out_value, TOLERANCE_DOUBLE),
               "row %zu: out[%u] is %.17g instead of %.17g", row, d, out[row * attention.head_dim_v + d], out_value);
    EXPECT(compare_value(lse[row], lse_value, TOLERANCE_DOUBLE), "row %zu: lse is %.17g instead of %.17g", row,
           lse[row], lse_value);
}

void assert_count(size_t row, unsigned count)
{
    EXPECT(compare_value(lse[row], log(count), TOLERANCE_DOUBLE), "row %zu sees %.3f keys instead of %u", row,
           exp(lse[row]), count);
}

float *scatter(const float *dense, const clfd_strides *s, size_t batch, size_t tokens, size_t heads, size_t dim,
               size_t elements)
{
    float *scattered = malloc(elements * sizeof *scattered);

    ck_assert_ptr_nonnull(scattered);
    fill(scattered, elements, NAN);
    for (size_t i = 0; i < batch * tokens * heads; i++)
        memcpy(scattered + (i / heads / tokens) * (size_t)s->batch + (i / heads % tokens) * (size_t)s->token +
                   (i % heads) * (size_t)s->head,
               dense + i * dim, dim * sizeof *dense);
    return scattered;
}

/* append_compare.c - what an append wrote against what the loop wrote: byte for byte, but that one NaN is as good as another. */
#include "support/append_case.h"
#include "support/suite.h"
#include "type.h"
#include <math.h>
#include <string.h>

enum { MAX_DIM = 576 };

static bool same(float a, float b) { return (a == b && signbit(a) == signbit(b)) || (isnan(a) && isnan(b)); }

/* The codes of a GGML block as floats, its scale apart. */
static void read_block(clfd_type type, const unsigned char *block, float *scale, float codes[32])
{
    unsigned char of_scale_1[34];

    clfd_convert_to_float(CLFD_TYPE_F16, block, scale, 1);
    memcpy(of_scale_1, block, clfd_type_size(type));
    of_scale_1[0] = 0x00, of_scale_1[1] = 0x3c;
    clfd_dequantise_row(type, 32, 0, of_scale_1, NULL, NULL, codes);
}

/* One row, its codes as floats; where it matches it takes over the expected bytes, so that buffers can be compared whole. */
static bool row_matches(clfd_type type, uint32_t dim, unsigned char *actual, const unsigned char *expected)
{
    const size_t unit = clfd_type_size(type);
    float ones[MAX_DIM], a[MAX_DIM], e[MAX_DIM];
    bool matches = true;

    for (int i = 0; i < MAX_DIM; i++)
        ones[i] = 1.0f;
    if (clfd_type_elements(type) == 32) {
        for (size_t block = 0; block < dim / 32; block++) {
            float scale_a, scale_e;
            read_block(type, actual + block * unit, &scale_a, a + block * 32);
            read_block(type, expected + block * unit, &scale_e, e + block * 32);
            matches = same(scale_a, scale_e) && matches;
        }
    } else {
        clfd_dequantise_row(type, dim, 0, actual, ones, NULL, a);
        clfd_dequantise_row(type, dim, 0, expected, ones, NULL, e);
    }
    for (uint32_t d = 0; d < dim; d++)
        matches = same(a[d], e[d]) && matches;
    if (matches)
        memcpy(actual, expected, clfd_row_units(type, dim) * unit);
    return matches;
}

static void expect_row(append_call *call, append_tensor tensor, clfd_type type, uint32_t dim, size_t at,
                       const char *name)
{
    EXPECT(row_matches(type, dim, call->images[tensor].data + at, call->images[tensor].expected + at),
           "%s: a row of %s differs from the loop's, at byte %zu", clfd_append_plan_describe(call->plan), name, at);
}

/* Scales or zeros of a row. */
static void expect_scales(append_call *call, append_tensor tensor, const clfd_quant *quant, uint32_t dim, uint32_t page,
                          uint32_t within, uint32_t head, const char *name)
{
    const size_t bytes = clfd_type_size(quant->scale_type);

    if (call->images[tensor].bytes == 0)
        return;
    for (uint32_t g = 0; g < dim / quant->group; g++) {
        const size_t at = append_scale_at(call, tensor, page, within, head, g);
        unsigned char *const actual = call->images[tensor].data + at;
        const unsigned char *const expected = call->images[tensor].expected + at;
        float a, e;
        clfd_convert_to_float(quant->scale_type, actual, &a, 1);
        clfd_convert_to_float(quant->scale_type, expected, &e, 1);
        EXPECT(same(a, e), "%s: %s is %.9g, the loop's %.9g", clfd_append_plan_describe(call->plan), name, (double)a,
               (double)e);
        memcpy(actual, expected, bytes);
    }
}

static void expect_token(append_call *call, uint32_t page, uint32_t within)
{
    const clfd_attention *const a = &call->attention;
    const bool own_v = !a->v_from_k;

    for (uint32_t g = 0; g < a->num_kv_heads; g++) {
        expect_row(call, APPEND_K, a->k_type, a->head_dim, append_row_at(call, APPEND_K, page, within, g), "k");
        if (own_v)
            expect_row(call, APPEND_V, a->v_type, a->head_dim_v, append_row_at(call, APPEND_V, page, within, g), "v");
        if (clfd_type_is_grouped(a->k_type)) {
            expect_scales(call, APPEND_K_SCALE, &a->k_quant, a->head_dim, page, within, g, "k_scale");
            expect_scales(call, APPEND_K_ZERO, &a->k_quant, a->head_dim, page, within, g, "k_zero");
        }
        if (clfd_type_is_grouped(a->v_type) && own_v) {
            expect_scales(call, APPEND_V_SCALE, &a->v_quant, a->head_dim_v, page, within, g, "v_scale");
            expect_scales(call, APPEND_V_ZERO, &a->v_quant, a->head_dim_v, page, within, g, "v_zero");
        }
    }
}

static void expect_queries(append_call *call, uint32_t b, uint32_t t)
{
    const clfd_attention *const a = &call->attention;

    for (uint32_t h = 0; h < a->num_q_heads; h++)
        expect_row(call, APPEND_Q, a->q_type, a->head_dim, append_row_at(call, APPEND_Q, b, t, h), "q");
}

/* Everything: rows that were matched have taken over the expected bytes. */
static void expect_whole_buffers(const append_call *call)
{
    static const char *const names[APPEND_TENSORS] = {"new_k",  "new_v",  "k", "v",           "k_scale", "v_scale",
                                                      "k_zero", "v_zero", "q", "kv_lens_out", "status"};

    for (int i = 0; i < APPEND_TENSORS; i++) {
        const append_image *const image = &call->images[i];
        for (size_t at = 0; at < image->bytes; at++)
            EXPECT(image->data[at] == image->expected[at], "%s: byte %zu of %zu of %s is %02x, the loop leaves %02x",
                   clfd_append_plan_describe(call->plan), at, image->bytes, names[i], image->data[at],
                   image->expected[at]);
    }
}

void append_expect_loop(append_call *call)
{
    uint32_t page, within;

    for (uint32_t b = 0; b < call->batch; b++)
        for (uint32_t t = 0; t < append_count(call, b); t++) {
            if (call->append.rope_q)
                expect_queries(call, b, t);
            if (append_find_token(call, b, append_kv_len(call, b) + t, &page, &within) == 0)
                expect_token(call, page, within);
        }
    expect_whole_buffers(call);
}

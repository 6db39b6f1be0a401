/* append_compare.c - what an append wrote against what the loop wrote, byte for byte but for roundings of quotients. */
#include "support/append_case.h"
#include "support/suite.h"
#include "type.h"
#include <math.h>
#include <string.h>

enum { MAX_DIM = 576, MOST_INEXACT = 50 /* one element in so many */ };

/* Where neighbouring values of a plain type or of fp8 are this far apart at most, relatively. */
static double step_of(clfd_type type)
{
    static const double steps[] = {
        [CLFD_TYPE_F32] = 0x1p-22,     [CLFD_TYPE_F16] = 0x1p-10,     [CLFD_TYPE_BF16] = 0x1p-7,
        [CLFD_TYPE_FP8_E4M3] = 0x1p-3, [CLFD_TYPE_FP8_E5M2] = 0x1p-2, [CLFD_TYPE_Q4_0] = 0.0};
    return steps[type];
}

/* How far an element may be off: codes by one, values by a step. */
static double slack_of(clfd_type type, float expected)
{
    return clfd_type_is_grouped(type) || clfd_type_elements(type) > 2
               ? 1.0
               : step_of(type) * fabs((double)expected) + 0x1p-24;
}

/* A scale is a quotient, good to 2.5 ulp in OpenCL, or its f16. */
static bool scale_matches(clfd_type type, float actual, float expected)
{
    const double slack = type == CLFD_TYPE_F32 ? 0x1p-21 * fabs((double)expected) : slack_of(type, expected);

    return actual == expected || (isnan(actual) && isnan(expected)) || fabs((double)actual - (double)expected) <= slack;
}

/* Counts two elements, and says whether they match. */
static bool element_matches(append_call *call, float actual, float expected, double slack)
{
    const bool equal = actual == expected || (isnan(actual) && isnan(expected));

    call->compared++;
    call->inexact += !equal;
    return equal || fabs((double)actual - (double)expected) <= slack;
}

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
static bool row_matches(append_call *call, clfd_type type, uint32_t dim, unsigned char *actual,
                        const unsigned char *expected)
{
    const size_t unit = clfd_type_size(type), bytes = clfd_row_units(type, dim) * unit;
    float ones[MAX_DIM], a[MAX_DIM], e[MAX_DIM];
    bool matches = true;

    for (int i = 0; i < MAX_DIM; i++)
        ones[i] = 1.0f;
    if (clfd_type_elements(type) == 32) {
        for (size_t block = 0; block < dim / 32; block++) {
            float scale_a, scale_e;
            read_block(type, actual + block * unit, &scale_a, a + block * 32);
            read_block(type, expected + block * unit, &scale_e, e + block * 32);
            matches = scale_matches(CLFD_TYPE_F16, scale_a, scale_e) && matches;
        }
    } else {
        clfd_dequantise_row(type, dim, 0, actual, ones, NULL, a);
        clfd_dequantise_row(type, dim, 0, expected, ones, NULL, e);
    }
    for (uint32_t d = 0; d < dim; d++)
        matches = element_matches(call, a[d], e[d], slack_of(type, e[d])) && matches;
    if (matches)
        memcpy(actual, expected, bytes);
    return matches;
}

static void expect_row(append_call *call, append_tensor tensor, clfd_type type, uint32_t dim, size_t at,
                       const char *name)
{
    EXPECT(row_matches(call, type, dim, call->images[tensor].data + at, call->images[tensor].expected + at),
           "%s: a row of %s differs from the loop's, at byte %zu", clfd_append_plan_describe(call->plan), name, at);
}

/* Scales or zeros of a row; a zero is a code. */
static void expect_scales(append_call *call, append_tensor tensor, const clfd_quant *quant, uint32_t dim, uint32_t page,
                          uint32_t within, uint32_t head, const char *name)
{
    const size_t bytes = clfd_type_size(quant->scale_type);
    const bool zeros = tensor == APPEND_K_ZERO || tensor == APPEND_V_ZERO;

    if (call->images[tensor].bytes == 0)
        return;
    for (uint32_t g = 0; g < dim / quant->group; g++) {
        const size_t at = append_scale_at(call, tensor, page, within, head, g);
        unsigned char *const actual = call->images[tensor].data + at;
        const unsigned char *const expected = call->images[tensor].expected + at;
        float a, e;
        clfd_convert_to_float(quant->scale_type, actual, &a, 1);
        clfd_convert_to_float(quant->scale_type, expected, &e, 1);
        EXPECT(zeros ? element_matches(call, a, e, 1.0) : scale_matches(quant->scale_type, a, e),
               "%s: %s is %g, the loop's %g", clfd_append_plan_describe(call->plan), name, (double)a, (double)e);
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
    EXPECT(call->inexact * MOST_INEXACT <= call->compared, "%s: %zu of %zu elements are not the loop's",
           clfd_append_plan_describe(call->plan), call->inexact, call->compared);
}

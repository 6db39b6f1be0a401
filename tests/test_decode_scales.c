/* The scales and zeros of int8 and int4 as decode reads them: groups, types, strides, pages. */
#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

START_TEST(groups_zeros_and_scale_types_match_the_reference)
{
    static const struct {
        clfd_type k, v;
        clfd_quant k_quant, v_quant;
    } cases[] = {
        {CLFD_TYPE_INT8, CLFD_TYPE_INT4, {.group = 8, .zeros = 1}, {.group = 32, .scale_type = CLFD_TYPE_F16}},
        {CLFD_TYPE_INT4, CLFD_TYPE_INT8, {.group = 16, .scale_type = CLFD_TYPE_F16, .zeros = 1}, {.zeros = 1}},
        {CLFD_TYPE_INT4, CLFD_TYPE_INT4, {.group = 32}, {.group = 8, .zeros = 1}},
        {CLFD_TYPE_INT8, CLFD_TYPE_Q8_0, {.group = 16}, {0}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        attention_problem p = option_case((clfd_attention){.k_type = cases[i].k, .v_type = cases[i].v});
        p.attention.k_quant = cases[i].k_quant;
        p.attention.v_quant = cases[i].v_quant;
        p.seed = i;
        verify_forms_and_splits(&p);
    }
}
END_TEST

/* Rows whose runs of dims are no whole number of lanes or of groups of lanes. */
START_TEST(groups_of_odd_dims_match_the_reference)
{
    static const struct {
        uint32_t dim, dim_v, group, group_v;
    } cases[] = {{72, 40, 8, 8}, {96, 120, 24, 40}, {136, 8, 136, 8}};

    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t f = 0; f < NUM_DECODE_FORMS; f += NUM_DECODE_FORMS - 1) {
            const attention_problem all = option_case((clfd_attention){.head_dim = cases[i].dim,
                                                                       .head_dim_v = cases[i].dim_v,
                                                                       .k_type = CLFD_TYPE_INT4,
                                                                       .v_type = CLFD_TYPE_INT8,
                                                                       .k_quant = {.group = cases[i].group, .zeros = 1},
                                                                       .v_quant = {.group = cases[i].group_v}});
            const attention_problem p = in_form(&all, f);
            attention_verify(&p);
        }
}
END_TEST

/* Strides are numbers of the call: dense, apart, in another order, one scale for all tokens, for all heads, for all. */
START_TEST(scales_are_found_by_their_strides)
{
    enum { GROUPS = 4, HEADS = 2, TOKENS = 200 };
    static const struct {
        clfd_strides strides;
        int64_t group_stride;
    } layouts[] = {
        {{0}, 0},
        {{.token = 11, .head = 5, .batch = 11 * TOKENS + 3}, 0},
        {{.token = 24, .head = 12, .batch = 24 * TOKENS}, 3},
        {{.batch = 1, .head = 5, .token = 10}, 10 * TOKENS},
        {{.head = TOKENS, .token = 1, .batch = HEADS * GROUPS * TOKENS}, HEADS * TOKENS},
    };

    for (size_t i = 0; i < COUNT(layouts); i++)
        for (size_t k = 0; k < COUNT(layouts); k += i == 0 ? 1 : COUNT(layouts)) {
            attention_problem p =
                option_case((clfd_attention){.k_type = CLFD_TYPE_INT8,
                                             .v_type = CLFD_TYPE_INT4,
                                             .k_quant = {.group = 16, .zeros = 1},
                                             .v_quant = {.group = 16, .scale_type = CLFD_TYPE_F16, .zeros = 1}});
            p.attention.k_quant.strides = layouts[i].strides;
            p.attention.k_quant.group_stride = layouts[i].group_stride;
            p.attention.v_quant.strides = layouts[k].strides;
            p.attention.v_quant.group_stride = layouts[k].group_stride;
            p.seed = i;
            verify_forms(&p);
        }
}
END_TEST

/* The scale that was written last serves all that share it. */
START_TEST(scales_may_be_shared)
{
    static const clfd_strides shared[] = {
        {.token = CLFD_STRIDE_BROADCAST},
        {.head = CLFD_STRIDE_BROADCAST},
        {.batch = CLFD_STRIDE_BROADCAST, .token = CLFD_STRIDE_BROADCAST, .head = CLFD_STRIDE_BROADCAST},
    };

    for (size_t i = 0; i < COUNT(shared); i++) {
        attention_problem p =
            option_case((clfd_attention){.k_type = CLFD_TYPE_INT8,
                                         .v_type = CLFD_TYPE_INT4,
                                         .k_quant = {.group = 16, .zeros = 1},
                                         .v_quant = {.group = 16, .scale_type = CLFD_TYPE_F16, .zeros = 1}});
        p.attention.k_quant.strides = p.attention.v_quant.strides = shared[i];
        p.attention.scale = 0.01f;
        verify_forms(&p);
    }
}
END_TEST

START_TEST(scales_lie_in_pages)
{
    static const uint32_t page_sizes[] = {1, 16, 3, 48};
    static const clfd_attention types[] = {
        {.k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_INT4, .k_quant = {.group = 16, .zeros = 1}},
        {.k_type = CLFD_TYPE_Q4_0, .v_type = CLFD_TYPE_FP8_E4M3},
    };

    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t i = 0; i < COUNT(page_sizes); i++) {
            attention_problem p = option_case(types[t]);
            p.attention.paging = CLFD_PAGING_TABLE;
            p.attention.page_size = page_sizes[i];
            p.attention.kv_layout = i % 2 == 0 ? CLFD_LAYOUT_BSHD : CLFD_LAYOUT_BHSD;
            verify_forms(&p);
        }
}
END_TEST

/* Every element of such a row is infinite, of either sign, and the score of any query that has both is NaN: the key is not
 * hidden, as by a product of -inf. */
START_TEST(an_infinite_scale_of_a_key_spoils_the_rows_that_see_it)
{
    static const clfd_type types[] = {CLFD_TYPE_INT8, CLFD_TYPE_FP8_E4M3};

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (size_t t = 0; t < 2; t++)
            for (int sign = -1; sign <= 1; sign += 2) {
                const attention_problem all = option_case((clfd_attention){.k_type = types[t], .v_type = types[t]});
                const attention_problem p = in_form(&all, f);
                attention_call *const call = attention_open(&p);
                image_put(&call->images[ATTENTION_K_SCALE], t == 0 ? 4 : 0, t == 0 ? 77 : 0, 0, 0,
                          sign > 0 ? INFINITY : -INFINITY);
                attention_run(call);
                attention_expect_reference(call);
                attention_close(call);
            }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        groups_zeros_and_scale_types_match_the_reference,
        groups_of_odd_dims_match_the_reference,
        scales_are_found_by_their_strides,
        scales_may_be_shared,
        scales_lie_in_pages,
        an_infinite_scale_of_a_key_spoils_the_rows_that_see_it,
    };
    const int result = run_suite("decode_scales", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

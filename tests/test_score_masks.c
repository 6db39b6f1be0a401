/* The masks of cl/score.cl: which keys they hide, and that what they hide is not used. */
#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

START_TEST(masks_alone_and_beside_causal_and_a_start_match_the_reference)
{
    static const clfd_attention options[] = {
        {.mask = CLFD_MASK_BOOL},
        {.mask = CLFD_MASK_TREE},
        {.causal = 1, .mask = CLFD_MASK_TREE, .kv_start = 1},
    };

    for (size_t i = 0; i < COUNT(options); i++) {
        const attention_problem p = option_case(options[i]);
        verify_forms_and_splits(&p);
    }
}
END_TEST

START_TEST(a_bool_mask_is_found_by_its_strides)
{
    static const clfd_score_strides layouts[] = {
        {.query = 200, .key = 1},
        {.batch = 200, .key = 1},
        {.batch = 3, .query = 1},
        {.key = 1},
        {.batch = 1, .query = 5, .key = 15},
        {.batch = 1000, .query = 301, .key = 1},
    };

    for (size_t i = 0; i < COUNT(layouts); i++) {
        attention_problem p = option_case((clfd_attention){.mask = CLFD_MASK_BOOL, .mask_strides = layouts[i]});
        p.seed = i;
        verify_forms(&p);
    }
}
END_TEST

START_TEST(a_tree_mask_hides_new_keys_only)
{
    static const uint32_t q_lens[] = {1, 2, 16};
    static const int32_t lens[] = {0, 1, 2, 15, 16, 17, 33, 64, 131};

    for (size_t i = 0; i < COUNT(q_lens); i++) {
        attention_problem p =
            option_case((clfd_attention){.max_batch = COUNT(lens), .q_len = q_lens[i], .mask = CLFD_MASK_TREE});
        p.kv_lens = lens;
        p.seed = i;
        verify_forms(&p);
        p.attention.mask_strides = (clfd_score_strides){.batch = 40, .query = 2};
        verify_forms(&p);
        p.attention.mask_strides = (clfd_score_strides){.query = 1}; /* one tree for all sequences */
        verify_forms(&p);
    }
}
END_TEST

static void hide_row(attention_call *call, uint32_t batch, uint32_t query)
{
    for (uint32_t j = 0; j < attention_kv_len(call, batch); j++)
        *image_at(&call->images[ATTENTION_MASK], batch, query, 0, j) = 0;
}

START_TEST(a_row_whose_mask_hides_all_keys_is_empty)
{
    static const float nothing[64];
    const attention_problem all = option_case((clfd_attention){.mask = CLFD_MASK_BOOL});

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem p = in_form(&all, f);
        attention_call *const call = attention_open(&p);
        hide_row(call, 4, 1);
        attention_run(call);
        attention_expect_reference(call);
        for (uint32_t h = 0; h < 4; h++) {
            ck_assert_int_eq(memcmp(attention_out(call, 4, 1, h), nothing, sizeof nothing), 0);
            ck_assert(call->lse[attention_row(call, 4, 1, h)] == -INFINITY);
        }
        attention_close(call);
    }
}
END_TEST

/* A NaN in K or V spoils the rows that see the key; the row that does not, in the same block, keeps its bits. */
START_TEST(a_key_of_nan_is_not_used_by_rows_that_do_not_see_it)
{
    const attention_problem all = option_case((clfd_attention){.mask = CLFD_MASK_BOOL});

    for (size_t f = 0; f < NUM_DECODE_FORMS; f++)
        for (int tensor = ATTENTION_K; tensor <= ATTENTION_V; tensor++) {
            const attention_problem p = in_form(&all, f);
            attention_call *const call = attention_open(&p), *const clean = attention_open(&p);
            for (uint32_t i = 0; i < 3; i++)
                *image_at(&call->images[ATTENTION_MASK], 4, i, 0, 70) =
                    *image_at(&clean->images[ATTENTION_MASK], 4, i, 0, 70) = i != 1;
            for (uint32_t h = 0; h < 2; h++) {
                image_put_row(&clean->images[tensor], 4, 70, h, 0.5f);
                image_put_row(&call->images[tensor], 4, 70, h, NAN);
                image_put_row(&clean->images[ATTENTION_K + ATTENTION_V - tensor], 4, 70, h, 0.5f);
                image_put_row(&call->images[ATTENTION_K + ATTENTION_V - tensor], 4, 70, h, 0.5f);
            }
            attention_run(clean);
            attention_run(call);
            attention_expect_reference(call);
            for (uint32_t h = 0; h < 4; h++) {
                ck_assert(isnan(attention_out(call, 4, 0, h)[9]) && isnan(attention_out(call, 4, 2, h)[9]));
                EXPECT(memcmp(attention_out(call, 4, 1, h), attention_out(clean, 4, 1, h), 64 * sizeof(float)) == 0,
                       "a hidden NaN changes a row in %s", clfd_plan_describe(call->plan));
            }
            attention_close(call);
            attention_close(clean);
        }
}
END_TEST

START_TEST(keys_that_no_row_sees_change_no_bit)
{
    static const clfd_attention options[] = {{.mask = CLFD_MASK_BOOL},
                                             {.causal = 1, .mask = CLFD_MASK_TREE, .kv_start = 1}};

    for (size_t i = 0; i < COUNT(options); i++)
        for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
            const attention_problem all = option_case(options[i]), p = in_form(&all, f);
            expect_poison_unused(&p);
        }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        masks_alone_and_beside_causal_and_a_start_match_the_reference,
        a_bool_mask_is_found_by_its_strides,
        a_tree_mask_hides_new_keys_only,
        a_row_whose_mask_hides_all_keys_is_empty,
        a_key_of_nan_is_not_used_by_rows_that_do_not_see_it,
        keys_that_no_row_sees_change_no_bit,
    };
    const int result = run_suite("score_masks", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

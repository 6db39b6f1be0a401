#include "plan/alignment.h"
#include "support/descriptor.h"
#include "support/suite.h"

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* The class is that of the least aligned of base and strides; its bounds depend on the type. */
START_TEST(a_class_follows_from_the_promise_and_from_every_stride)
{
    static const struct {
        clfd_type type;
        clfd_strides strides;
        uint32_t promise, class;
    } cases[] = {
        {CLFD_TYPE_F16, {4096, 512, 64}, 16, 3},  {CLFD_TYPE_F16, {4096, 512, 68}, 16, 0},
        {CLFD_TYPE_F16, {4096, 512, 64}, 8, 0},   {CLFD_TYPE_F32, {4096, 512, 68}, 16, 3},
        {CLFD_TYPE_INT8, {4096, 512, 64}, 16, 3}, {CLFD_TYPE_INT8, {4096, 512, 72}, 16, 2},
        {CLFD_TYPE_INT8, {4096, 512, 68}, 16, 1}, {CLFD_TYPE_INT8, {4096, 512, 66}, 16, 0},
        {CLFD_TYPE_INT4, {4096, 512, 72}, 16, 2}, {CLFD_TYPE_FP8_E4M3, {4096, 512, 64}, 4, 1},
        {CLFD_TYPE_Q8_0, {4096, 512, 4}, 16, 3},  {CLFD_TYPE_Q8_0, {4096, 512, 2}, 16, 2},
        {CLFD_TYPE_Q8_0, {4096, 512, 1}, 16, 0},  {CLFD_TYPE_F16, {4096, 512, 64}, 4096, 3},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        ck_assert_msg(clfd_aligned_class(&cases[i].strides, cases[i].type, cases[i].promise) == cases[i].class,
                      "case %zu: class %u", i, clfd_aligned_class(&cases[i].strides, cases[i].type, cases[i].promise));
}
END_TEST

START_TEST(both_tensors_have_the_class_of_the_lesser)
{
    clfd_attention a = completed_settings((setting[MAX_SETTINGS]){ATTENTION(q_type, CLFD_TYPE_F16)});

    ck_assert_uint_eq(clfd_kv_aligned(&a), 1); /* of plain types there is no other above 0 */
    a.v_alignment = 2;
    ck_assert_uint_eq(clfd_kv_aligned(&a), 0);
    a.v_from_k = 1;
    ck_assert_uint_eq(clfd_kv_aligned(&a), 1);
}
END_TEST

/* Rows of four blocks: from head to head they change between one 8-byte half and the other, from token to token they must
 * not. */
START_TEST(rows_of_q8_0_go_by_pairs_where_all_of_a_head_lie_alike)
{
    static const clfd_strides side_by_side = {4096, 32, 4}, by_heads = {32768, 4, 4096};
    clfd_attention a = completed_settings((setting[MAX_SETTINGS]){ATTENTION(q_type, CLFD_TYPE_F16)});

    ck_assert(!clfd_kv_pairs(&a));
    a.k_type = a.v_type = CLFD_TYPE_Q8_0;
    a.k_strides = a.v_strides = side_by_side;
    ck_assert(clfd_kv_pairs(&a));
    a.v_strides = by_heads;
    ck_assert(!clfd_kv_pairs(&a));
    a.v_from_k = 1;
    ck_assert(clfd_kv_pairs(&a));
    a.v_from_k = 0;
    a.v_type = CLFD_TYPE_Q4_0; /* has no pairs */
    ck_assert(clfd_kv_pairs(&a));
    a.k_type = CLFD_TYPE_Q4_0;
    ck_assert(!clfd_kv_pairs(&a));
    a.v_type = CLFD_TYPE_Q8_0;
    ck_assert(!clfd_kv_pairs(&a));
}
END_TEST

/* Both tensors of q8_0: each head's rows lie in V as they lie in K. */
START_TEST(rows_of_q8_0_go_by_pairs_where_k_and_v_lie_alike)
{
    clfd_attention a = completed_settings((setting[MAX_SETTINGS]){ATTENTION(q_type, CLFD_TYPE_F16)});

    a.k_type = a.v_type = CLFD_TYPE_Q8_0;
    a.k_strides = a.v_strides = (clfd_strides){4096, 32, 4};
    a.v_strides.head = 8;
    ck_assert(!clfd_kv_pairs(&a));
    a.v_strides.head = 12;
    ck_assert(clfd_kv_pairs(&a));
    a.v_alignment = 8;
    ck_assert(!clfd_kv_pairs(&a));
    a.v_alignment = 16;
    a.v_strides.batch += 4;
    ck_assert(!clfd_kv_pairs(&a));
    a.k_strides.batch += 4; /* from sequence to sequence they change, from page to page they must not */
    ck_assert(clfd_kv_pairs(&a));
    a.paging = CLFD_PAGING_TABLE;
    ck_assert(!clfd_kv_pairs(&a));
}
END_TEST

START_TEST(rows_of_q_are_aligned_by_strides_and_promise)
{
    clfd_attention a = completed_settings((setting[MAX_SETTINGS]){ATTENTION(q_type, CLFD_TYPE_F16)});

    ck_assert(clfd_q_aligned(&a));
    a.q_alignment = 2;
    ck_assert(!clfd_q_aligned(&a));
    a.q_alignment = 4;
    ck_assert(clfd_q_aligned(&a));
    a.q_strides.head += 1;
    ck_assert(!clfd_q_aligned(&a));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_class_follows_from_the_promise_and_from_every_stride, both_tensors_have_the_class_of_the_lesser,
        rows_of_q8_0_go_by_pairs_where_all_of_a_head_lie_alike, rows_of_q8_0_go_by_pairs_where_k_and_v_lie_alike,
        rows_of_q_are_aligned_by_strides_and_promise,
    };
    return run_suite_around("alignment", tests, COUNT(tests), hear_nothing, NULL);
}

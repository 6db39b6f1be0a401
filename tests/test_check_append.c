/* The rules of a clfd_append: each refusal has its status and a sentence that names value and rule; what is accepted is
 * completed. */
#include "plan/append.h"
#include "support/descriptor.h"
#include "support/suite.h"
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define TWO_48 ((int64_t)1 << 48)

#define APPEND(member, value)                                                                                          \
    {                                                                                                                  \
        offsetof(clfd_append, member), sizeof((clfd_append *)0)->member, value                                         \
    }
#define NEOX APPEND(rope, CLFD_ROPE_NEOX)

/* Settings of the append and of its cache, 8 query heads over 2 KV heads of 64 dims, 3 queries, 100 keys. */
typedef struct append_case {
    setting append[MAX_SETTINGS], attention[MAX_SETTINGS];
    clfd_status status;
    const char *value, *rule;
} append_case;

static const append_case refusals[] = {
    {{APPEND(num_tokens, 65537)}, {{0}}, CLFD_ERROR_NUM_TOKENS, "num_tokens is 65537", "1 to 65536"},
    {{APPEND(ragged, 2)}, {{0}}, CLFD_ERROR_OPTION, "ragged is 2", "0 or 1"},
    {{APPEND(new_type, CLFD_TYPE_INT8)}, {{0}}, CLFD_ERROR_TYPE, "new_type is 4", "f32, f16 or bf16"},
    {{APPEND(new_type, 77)}, {{0}}, CLFD_ERROR_TYPE, "new_type is 77", "f32, f16 or bf16"},
    {{APPEND(new_k_strides.token, -1)}, {{0}}, CLFD_ERROR_STRIDE, "new_k_strides.token is -1", "0 to 2^48"},
    {{APPEND(new_v_strides.head, TWO_48 + 1)},
     {{0}},
     CLFD_ERROR_STRIDE,
     "new_v_strides.head is 281474976710657",
     "0 to 2^48"},
    {{APPEND(new_k_strides.batch, CLFD_STRIDE_BROADCAST)},
     {{0}},
     CLFD_ERROR_STRIDE,
     "new_k_strides.batch is CLFD_STRIDE_BROADCAST",
     "only K and V"},
    {{APPEND(new_k_strides.batch, TWO_48)},
     {ATTENTION(max_batch, 1 << 20)},
     CLFD_ERROR_OVERFLOW,
     "new_k_strides",
     "2^63 bytes"},
    {{APPEND(new_v_strides.head, 64)}, {ATTENTION(v_from_k, 1)}, CLFD_ERROR_V_FROM_K, "new_v_strides", "must be 0"},
    {{APPEND(rope, 3)}, {{0}}, CLFD_ERROR_ROPE, "rope is 3", "a clfd_rope"},
    {{APPEND(rope_q, 1)}, {{0}}, CLFD_ERROR_ROPE, "rope_q is 1", "without rope it must be 0"},
    {{APPEND(rotary_start, 2)}, {{0}}, CLFD_ERROR_ROPE, "rotary_start is 2", "without rope it must be 0"},
    {{APPEND(rotary_dim, 64)}, {{0}}, CLFD_ERROR_ROPE, "rotary_dim is 64", "without rope it must be 0"},
    {{APPEND(max_positions, 9)}, {{0}}, CLFD_ERROR_ROPE, "max_positions is 9", "without rope it must be 0"},
    {{APPEND(positions, 1)}, {{0}}, CLFD_ERROR_ROPE, "positions is 1", "without rope it must be 0"},
    {{NEOX, APPEND(rope_q, 2)}, {{0}}, CLFD_ERROR_OPTION, "rope_q is 2", "0 or 1"},
    {{NEOX, APPEND(positions, 2)}, {{0}}, CLFD_ERROR_OPTION, "positions is 2", "0 or 1"},
    {{NEOX, APPEND(rotary_start, 63)}, {{0}}, CLFD_ERROR_ROPE, "rotary_start is 63", "0 to 62"},
    {{NEOX, APPEND(rotary_start, 9)}, {{0}}, CLFD_ERROR_ROPE, "rotary_dim is 55", "even"},
    {{NEOX, APPEND(rotary_dim, 66)}, {{0}}, CLFD_ERROR_ROPE, "rotary_dim is 66", "at most 64"},
    {{NEOX, APPEND(rotary_dim, 62), APPEND(rotary_start, 4)}, {{0}}, CLFD_ERROR_ROPE, "rotary_dim is 62", "at most 60"},
    {{NEOX, APPEND(rotary_dim, 7)}, {{0}}, CLFD_ERROR_ROPE, "rotary_dim is 7", "even"},
    {{NEOX, APPEND(max_positions, 0x80000000)}, {{0}}, CLFD_ERROR_ROPE, "max_positions is 2147483648", "2147483647"},
    {{NEOX, APPEND(rope_q, 1), APPEND(num_tokens, 4)}, {{0}}, CLFD_ERROR_NUM_TOKENS, "num_tokens is 4", "q_len, 3"},
    {{NEOX, APPEND(rope_q, 1)}, {ATTENTION(shared_kv, 1)}, CLFD_ERROR_SHARED_KV, "rope_q is 1", "shared_kv"},
    {{NEOX, APPEND(rope_q, 1)},
     {ATTENTION(q_strides.token, 64)},
     CLFD_ERROR_STRIDE,
     "q_strides are [1536, 64, 64]",
     "overlap"},
    {{{0}}, {ATTENTION(k_strides.head, 63)}, CLFD_ERROR_STRIDE, "k_strides are [12800, 128, 63]", "overlap"},
    {{{0}},
     {ATTENTION(v_strides.batch, CLFD_STRIDE_BROADCAST)},
     CLFD_ERROR_STRIDE,
     "v_strides are [0, 128, 64]",
     "overlap"},
    {{{0}},
     {ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(k_quant.strides.token, 1)},
     CLFD_ERROR_STRIDE,
     "k_quant.strides are [200, 1, 1]",
     "overlap"},
    {{{0}},
     {ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(v_type, CLFD_TYPE_INT4), ATTENTION(v_quant.group, 16),
      ATTENTION(v_quant.group_stride, 2)},
     CLFD_ERROR_STRIDE,
     "v_quant.strides are [800, 8, 4]",
     "overlap"},
    {{APPEND(num_tokens, 65536)},
     {ATTENTION(max_batch, 1 << 16)},
     CLFD_ERROR_OVERFLOW,
     "max_batch 65536 times num_tokens 65536",
     "work-items"},
    {{{0}}, {ATTENTION(num_q_heads, 3)}, CLFD_ERROR_HEAD_RATIO, "num_q_heads is 3", "multiple"},
};

/* What a decode may have and an append too. */
static const append_case acceptances[] = {
    {.append = {APPEND(num_tokens, 65536)}},
    {.append = {APPEND(num_tokens, 100)}, .attention = {ATTENTION(shared_kv, 1)}},
    {.append = {NEOX, APPEND(rope_q, 1), APPEND(num_tokens, 3)}},
    {.append = {NEOX, APPEND(rotary_start, 62), APPEND(rotary_dim, 2)}},
    {.append = {NEOX, APPEND(rotary_dim, 2), APPEND(max_positions, 0x7fffffff), APPEND(positions, 1)}},
    {.append = {APPEND(new_k_strides.token, 1), APPEND(new_k_strides.head, 1)}},
    {.attention = {ATTENTION(q_strides.token, 64)}},
    {.attention = {ATTENTION(k_type, CLFD_TYPE_FP8_E4M3), ATTENTION(v_type, CLFD_TYPE_Q4_0)}},
    {.attention = {ATTENTION(k_strides.token, 256), ATTENTION(k_strides.batch, 25600)}},
    {.attention = {ATTENTION(causal, 1), ATTENTION(window, 5), ATTENTION(alibi, 1)}},
};

static clfd_status complete(const append_case *given, clfd_append *append, clfd_attention *attention)
{
    clfd_attention a = plain_attention;
    clfd_append p = {.struct_size = sizeof p, .attention = &a};

    apply_settings(&a, given->attention);
    apply_settings(&p, given->append);
    hear_nothing();
    return clfd_complete_append(&p, append, attention, &listener);
}

START_TEST(each_broken_rule_has_its_status_and_its_sentence)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const refusal expected = {.status = refusals[i].status, .value = refusals[i].value, .rule = refusals[i].rule};
        clfd_append append = {.struct_size = 12345};
        clfd_attention attention = {.struct_size = 54321};
        expect_sentence(complete(&refusals[i], &append, &attention), &expected);
        ck_assert_uint_eq(append.struct_size, 12345);
        ck_assert_uint_eq(attention.struct_size, 54321);
    }
}
END_TEST

START_TEST(what_breaks_no_rule_is_accepted_in_silence)
{
    for (size_t i = 0; i < COUNT(acceptances); i++) {
        clfd_append append;
        clfd_attention attention;
        ck_assert_msg(complete(&acceptances[i], &append, &attention) == CLFD_SUCCESS, "case %zu: %s", i,
                      heard.last[CLFD_LOG_ERROR]);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
        ck_assert_ptr_eq(append.attention, &attention);
    }
}
END_TEST

START_TEST(defaults_are_those_of_the_header)
{
    const append_case given = {.append = {NEOX, APPEND(rotary_start, 16)},
                               .attention = {ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(head_dim_v, 32)}};
    const append_case plain = {.status = 0};
    clfd_append p;
    clfd_attention a;

    ck_assert_int_eq(complete(&given, &p, &a), CLFD_SUCCESS);
    ck_assert_uint_eq(p.num_tokens, 3);
    ck_assert_uint_eq(p.new_type, CLFD_TYPE_F16);
    ck_assert_uint_eq(p.rotary_dim, 48);
    ck_assert_uint_eq(p.max_positions, 100);
    expect_strides(&p.new_k_strides, 3 * 2 * 64, 2 * 64, 64);
    expect_strides(&p.new_v_strides, 3 * 2 * 32, 2 * 32, 32);
    ck_assert_uint_eq(a.k_type, CLFD_TYPE_F16);
    ck_assert_int_eq(complete(&plain, &p, &a), CLFD_SUCCESS);
    ck_assert_uint_eq(p.new_type, CLFD_TYPE_F32);
    ck_assert_uint_eq(p.rotary_dim, 0);
    ck_assert_uint_eq(p.max_positions, 0);
}
END_TEST

START_TEST(a_missing_or_foreign_struct_is_refused)
{
    clfd_attention a = plain_attention;
    clfd_append p = {.struct_size = sizeof p};

    hear_nothing();
    ck_assert_int_eq(clfd_complete_append(NULL, &p, &a, &listener), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "clfd_append is NULL"));
    ck_assert_int_eq(clfd_complete_append(&p, &p, &a, &listener), CLFD_ERROR_NULL_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "clfd_attention is NULL"));
    p.struct_size = 0;
    ck_assert_int_eq(clfd_complete_append(&p, &p, &a, &listener), CLFD_ERROR_STRUCT_SIZE);
}
END_TEST

/* Pieces hold whole groups and blocks, and there are as many work-items as pieces. */
START_TEST(rows_are_cut_where_no_scale_is_shared)
{
    static const clfd_caps gpu = {.type = CL_DEVICE_TYPE_GPU, .max_work_group = 256},
                           narrow = {.type = CL_DEVICE_TYPE_GPU, .max_work_group = 17},
                           cpu = {.type = CL_DEVICE_TYPE_CPU, .max_work_group = 4096};
    const append_case given = {.append = {NEOX, APPEND(rope_q, 1), APPEND(rotary_dim, 20)},
                               .attention = {ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(v_type, CLFD_TYPE_Q8_0),
                                             ATTENTION(k_quant.group, 16), ATTENTION(head_dim_v, 96)}};
    const append_case plain = {.status = 0};
    clfd_append p;
    clfd_attention a;

    ck_assert_int_eq(complete(&given, &p, &a), CLFD_SUCCESS);
    clfd_append_pieces pieces = clfd_append_cut(&gpu, &p);
    ck_assert_uint_eq(pieces.k_dims, 16);
    ck_assert_uint_eq(pieces.v_dims, 32);
    ck_assert_uint_eq(pieces.q_pairs, 4);
    ck_assert_uint_eq(pieces.work_group, 64);
    ck_assert_uint_eq(clfd_append_items(&p, &pieces, 2), 2 * 3 * (2 * (4 + 3) + 8 * 3));
    ck_assert_uint_eq(clfd_append_cut(&narrow, &p).work_group, 16);
    pieces = clfd_append_cut(&cpu, &p);
    ck_assert_uint_eq(pieces.work_group, 1);
    ck_assert_uint_eq(pieces.q_pairs, 10);
    ck_assert_uint_eq(clfd_append_items(&p, &pieces, 2), 2 * 3 * (2 * (4 + 3) + 8));
    ck_assert_int_eq(complete(&plain, &p, &a), CLFD_SUCCESS);
    ck_assert_uint_eq(clfd_append_cut(&gpu, &p).k_dims, 8);
    ck_assert_uint_eq(clfd_append_cut(&cpu, &p).v_dims, 64);
    ck_assert_uint_eq(clfd_append_cut(&cpu, &p).q_pairs, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_broken_rule_has_its_status_and_its_sentence,
        what_breaks_no_rule_is_accepted_in_silence,
        defaults_are_those_of_the_header,
        a_missing_or_foreign_struct_is_refused,
        rows_are_cut_where_no_scale_is_shared,
    };

    return run_suite_around("check_append", tests, COUNT(tests), hear_nothing, NULL);
}

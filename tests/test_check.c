#include "plan/check.h"
#include "support/log.h"
#include "support/suite.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define TWO_48 ((int64_t)1 << 48)

/* One field of a descriptor and the value that a case gives it. Floats have cases of their own. */
typedef struct setting {
    size_t offset, bytes;
    int64_t value;
} setting;
#define ATTENTION(member, value)                                                                                       \
    {                                                                                                                  \
        offsetof(clfd_attention, member), sizeof((clfd_attention *)0)->member, value                                   \
    }
#define MERGE(member, value)                                                                                           \
    {                                                                                                                  \
        offsetof(clfd_merge, member), sizeof((clfd_merge *)0)->member, value                                           \
    }

enum { MAX_SETTINGS = 6 };

/* A descriptor that breaks a rule: its status, and what its sentence must say of the value and of the rule. */
typedef struct refusal {
    setting settings[MAX_SETTINGS];
    clfd_status status;
    const char *value, *rule;
} refusal;

typedef struct acceptance {
    setting settings[MAX_SETTINGS];
} acceptance;

static const clfd_attention plain = {
    .struct_size = sizeof(clfd_attention),
    .max_batch = 2,
    .q_len = 3,
    .num_q_heads = 8,
    .num_kv_heads = 2,
    .head_dim = 64,
    .max_kv_len = 100,
};

static const clfd_merge plain_merge = {.struct_size = sizeof(clfd_merge), .max_rows = 5, .head_dim_v = 64};

static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    memset(&heard, 0, sizeof heard);
    logger = test_logger(&heard);
}

static void apply(void *descriptor, const setting *settings)
{
    for (size_t i = 0; i < MAX_SETTINGS && settings[i].bytes > 0; i++) {
        const uint32_t narrow = (uint32_t)settings[i].value;
        const void *const from = settings[i].bytes == sizeof narrow ? (const void *)&narrow : &settings[i].value;
        memcpy((char *)descriptor + settings[i].offset, from, settings[i].bytes);
    }
}

static clfd_status complete(const setting *settings, clfd_attention *completed)
{
    clfd_attention a = plain;

    apply(&a, settings);
    return clfd_complete_attention(&a, completed, &logger);
}

static clfd_attention completed(const setting *settings)
{
    clfd_attention a;

    ck_assert_msg(complete(settings, &a) == CLFD_SUCCESS, "%s", heard.last[CLFD_LOG_ERROR]);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    return a;
}

/* The last call was refused with this status and one sentence. */
static void expect_sentence(clfd_status status, const refusal *expected)
{
    const char *const said = heard.last[CLFD_LOG_ERROR];

    ck_assert_msg(status == expected->status, "\"%s ... %s\": status %d instead of %d (%s)", expected->value,
                  expected->rule, (int)status, (int)expected->status, said);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_msg(strstr(said, expected->value) != NULL, "\"%s\" lacks \"%s\"", said, expected->value);
    ck_assert_msg(strstr(said, expected->rule) != NULL, "\"%s\" lacks \"%s\"", said, expected->rule);
}

static void expect_refusal(const refusal *expected)
{
    clfd_attention out, untouched;

    set_up();
    memset(&out, 0x5A, sizeof out);
    memcpy(&untouched, &out, sizeof out);
    expect_sentence(complete(expected->settings, &out), expected);
    ck_assert_mem_eq(&out, &untouched, sizeof out);
}

/* ---- Attention --------------------------------------------------------------------------------------------------- */

static const refusal refusals[] = {
    {{ATTENTION(max_batch, (1 << 24) + 1)}, CLFD_ERROR_BATCH, "max_batch is 16777217", "1 to 16777216"},
    {{ATTENTION(q_len, 17)}, CLFD_ERROR_Q_LEN, "q_len is 17", "1 to 16"},
    {{ATTENTION(num_q_heads, 0)}, CLFD_ERROR_HEADS, "num_q_heads is 0", "1 to 65536"},
    {{ATTENTION(num_q_heads, 65538)}, CLFD_ERROR_HEADS, "num_q_heads is 65538", "1 to 65536"},
    {{ATTENTION(num_kv_heads, 65537)}, CLFD_ERROR_HEADS, "num_kv_heads is 65537", "1 to 65536"},
    {{ATTENTION(num_q_heads, 0), ATTENTION(num_kv_heads, 0)}, CLFD_ERROR_HEADS, "num_q_heads is 0", "1 to 65536"},
    {{ATTENTION(num_q_heads, 3)}, CLFD_ERROR_HEAD_RATIO, "num_q_heads is 3 and num_kv_heads is 2", "multiple"},
    {{ATTENTION(num_q_heads, 33)}, CLFD_ERROR_HEAD_RATIO, "num_q_heads is 33 and num_kv_heads is 2", "multiple"},
    {{ATTENTION(num_q_heads, 1)}, CLFD_ERROR_HEAD_RATIO, "num_q_heads is 1 and num_kv_heads is 2", "multiple"},
    {{ATTENTION(head_dim, 0)}, CLFD_ERROR_HEAD_DIM, "head_dim is 0", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim, 7)}, CLFD_ERROR_HEAD_DIM, "head_dim is 7", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim, 12)}, CLFD_ERROR_HEAD_DIM, "head_dim is 12", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim, 584)}, CLFD_ERROR_HEAD_DIM, "head_dim is 584", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim_v, 4)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 4", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim_v, 65)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 65", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(head_dim_v, 584)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 584", "a multiple of 8 from 8 to 576"},
    {{ATTENTION(max_kv_len, 0)}, CLFD_ERROR_KV_LEN, "max_kv_len is 0", "1 to 2147483647"},
    {{ATTENTION(max_kv_len, 0x80000000)}, CLFD_ERROR_KV_LEN, "max_kv_len is 2147483648", "1 to 2147483647"},
    {{ATTENTION(expected_kv_len, 101)}, CLFD_ERROR_KV_LEN, "expected_kv_len is 101", "not exceed max_kv_len, 100"},
    {{ATTENTION(q_type, CLFD_TYPE_INT8)}, CLFD_ERROR_TYPE, "q_type is 4", "f32, f16 or bf16"},
    {{ATTENTION(q_type, -1)}, CLFD_ERROR_TYPE, "q_type is -1", "f32, f16 or bf16"},
    {{ATTENTION(out_type, CLFD_TYPE_Q8_0)}, CLFD_ERROR_TYPE, "out_type is 8", "f32, f16 or bf16"},
    {{ATTENTION(k_type, 10)}, CLFD_ERROR_TYPE, "k_type is 10", "a clfd_type"},
    {{ATTENTION(v_type, 77)}, CLFD_ERROR_TYPE, "v_type is 77", "a clfd_type"},
    {{ATTENTION(k_type, CLFD_TYPE_F16), ATTENTION(v_type, CLFD_TYPE_BF16)},
     CLFD_ERROR_TYPE,
     "v_type is bf16 and k_type is f16",
     "must be equal"},
    {{ATTENTION(causal, 2)}, CLFD_ERROR_OPTION, "causal is 2", "0 or 1"},
    {{ATTENTION(v_from_k, 2)}, CLFD_ERROR_OPTION, "v_from_k is 2", "0 or 1"},
    {{ATTENTION(kv_layout, 2)}, CLFD_ERROR_LAYOUT, "kv_layout is 2", "a clfd_layout"},
    {{ATTENTION(partial, 2)}, CLFD_ERROR_PARTIAL_FORMAT, "partial is 2", "a clfd_partial"},
    {{ATTENTION(split_policy, 3)}, CLFD_ERROR_SPLIT_POLICY, "split_policy is 3", "a clfd_split_policy"},
    {{ATTENTION(split_size, 1)}, CLFD_ERROR_SPLIT_POLICY, "split_size is 1", "under AUTO it must be 0"},
    {{ATTENTION(split_policy, CLFD_SPLIT_COUNT), ATTENTION(split_size, (1 << 20) + 1)},
     CLFD_ERROR_SPLIT_POLICY,
     "split_size is 1048577",
     "under COUNT it must be 0 to 1048576"},
    {{ATTENTION(split_policy, CLFD_SPLIT_TOKENS)},
     CLFD_ERROR_SPLIT_POLICY,
     "split_size is 0",
     "under TOKENS it must be 1 to 2147483647"},
    {{ATTENTION(split_policy, CLFD_SPLIT_TOKENS), ATTENTION(split_size, 0x80000000)},
     CLFD_ERROR_SPLIT_POLICY,
     "split_size is 2147483648",
     "under TOKENS it must be 1 to 2147483647"},
};

START_TEST(each_broken_rule_has_its_status_and_a_sentence_with_value_and_rule)
{
    for (size_t i = 0; i < COUNT(refusals); i++)
        expect_refusal(&refusals[i]);
}
END_TEST

static const refusal stride_refusals[] = {
    {{ATTENTION(q_strides.batch, -1)}, CLFD_ERROR_STRIDE, "q_strides.batch is -1", "0 to 2^48"},
    {{ATTENTION(k_strides.token, -64)}, CLFD_ERROR_STRIDE, "k_strides.token is -64", "0 to 2^48"},
    {{ATTENTION(v_strides.head, INT64_MIN + 1)}, CLFD_ERROR_STRIDE, "v_strides.head is -9223372036854775807", "2^48"},
    {{ATTENTION(out_strides.batch, TWO_48 + 1)}, CLFD_ERROR_STRIDE, "out_strides.batch is 281474976710657", "2^48"},
    {{ATTENTION(q_strides.head, CLFD_STRIDE_BROADCAST)},
     CLFD_ERROR_STRIDE,
     "q_strides.head is CLFD_STRIDE_BROADCAST",
     "only K and V may broadcast"},
    {{ATTENTION(out_strides.token, CLFD_STRIDE_BROADCAST)},
     CLFD_ERROR_STRIDE,
     "out_strides.token is CLFD_STRIDE_BROADCAST",
     "only K and V may broadcast"},
    /* A row of out is 64 elements, its heads are 512, its queries 1536. */
    {{ATTENTION(out_strides.head, 63)}, CLFD_ERROR_STRIDE, "out_strides are [1536, 512, 63]", "would overlap"},
    {{ATTENTION(out_strides.token, 511)}, CLFD_ERROR_STRIDE, "out_strides are [1536, 511, 64]", "would overlap"},
    {{ATTENTION(out_strides.batch, 1535)}, CLFD_ERROR_STRIDE, "out_strides are [1535, 512, 64]", "would overlap"},
    {{ATTENTION(out_strides.batch, 64), ATTENTION(out_strides.token, 127), ATTENTION(out_strides.head, 381)},
     CLFD_ERROR_STRIDE,
     "out_strides are [64, 127, 381]",
     "would overlap"},
};

START_TEST(strides_are_refused_where_they_are_negative_huge_or_overlap_what_is_written)
{
    for (size_t i = 0; i < COUNT(stride_refusals); i++)
        expect_refusal(&stride_refusals[i]);
}
END_TEST

static const refusal v_from_k_refusals[] = {
    {{ATTENTION(v_from_k, 1), ATTENTION(head_dim_v, 72)},
     CLFD_ERROR_V_FROM_K,
     "head_dim_v 72 and head_dim 64",
     "must fit into a row of K"},
    {{ATTENTION(v_from_k, 1), ATTENTION(v_strides.batch, 1)}, CLFD_ERROR_V_FROM_K, "v_strides", "the strides of K"},
    {{ATTENTION(v_from_k, 1), ATTENTION(v_strides.token, 128)}, CLFD_ERROR_V_FROM_K, "v_strides", "the strides of K"},
    {{ATTENTION(v_from_k, 1), ATTENTION(v_strides.head, CLFD_STRIDE_BROADCAST)},
     CLFD_ERROR_V_FROM_K,
     "v_strides",
     "the strides of K"},
    {{ATTENTION(v_from_k, 1), ATTENTION(v_type, CLFD_TYPE_F16)}, CLFD_ERROR_V_FROM_K, "v_type is f16", "must be equal"},
};

START_TEST(v_from_k_takes_no_dim_type_or_stride_of_its_own)
{
    for (size_t i = 0; i < COUNT(v_from_k_refusals); i++)
        expect_refusal(&v_from_k_refusals[i]);
}
END_TEST

static const refusal alignment_refusals[] = {
    {{ATTENTION(q_alignment, 3)}, CLFD_ERROR_ALIGNMENT_PROMISE, "q_alignment is 3", "a power of two"},
    {{ATTENTION(q_alignment, 2)}, CLFD_ERROR_ALIGNMENT_PROMISE, "q_alignment is 2", "from the element's 4 bytes"},
    {{ATTENTION(k_alignment, 24)}, CLFD_ERROR_ALIGNMENT_PROMISE, "k_alignment is 24", "a power of two"},
    {{ATTENTION(k_alignment, 1), ATTENTION(k_type, CLFD_TYPE_F16)},
     CLFD_ERROR_ALIGNMENT_PROMISE,
     "k_alignment is 1",
     "from the element's 2 bytes"},
    {{ATTENTION(v_alignment, 8192)}, CLFD_ERROR_ALIGNMENT_PROMISE, "v_alignment is 8192", "to 4096"},
    {{ATTENTION(out_alignment, 1), ATTENTION(out_type, CLFD_TYPE_BF16)},
     CLFD_ERROR_ALIGNMENT_PROMISE,
     "out_alignment is 1",
     "from the element's 2 bytes"},
};

START_TEST(an_alignment_promise_is_a_power_of_two_from_the_element_to_a_page)
{
    for (size_t i = 0; i < COUNT(alignment_refusals); i++)
        expect_refusal(&alignment_refusals[i]);
}
END_TEST

static const acceptance acceptances[] = {
    {{ATTENTION(max_batch, 1 << 24)}},
    {{ATTENTION(q_len, 16)}},
    {{ATTENTION(num_q_heads, 65536)}},
    {{ATTENTION(num_q_heads, 65536), ATTENTION(num_kv_heads, 65536)}},
    {{ATTENTION(num_q_heads, 2)}},
    {{ATTENTION(num_q_heads, 142)}},
    {{ATTENTION(head_dim, 8)}},
    {{ATTENTION(head_dim, 576), ATTENTION(head_dim_v, 512)}},
    {{ATTENTION(head_dim_v, 8)}},
    {{ATTENTION(head_dim_v, 576)}},
    {{ATTENTION(max_kv_len, 1)}},
    {{ATTENTION(max_kv_len, 0x7fffffff)}},
    {{ATTENTION(expected_kv_len, 100)}},
    {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(k_type, CLFD_TYPE_BF16), ATTENTION(out_type, CLFD_TYPE_F32)}},
    {{ATTENTION(k_type, CLFD_TYPE_BF16), ATTENTION(v_type, CLFD_TYPE_BF16)}},
    {{ATTENTION(causal, 1)}},
    {{ATTENTION(v_from_k, 1), ATTENTION(head_dim_v, 64)}},
    {{ATTENTION(kv_layout, CLFD_LAYOUT_BHSD)}},
    {{ATTENTION(partial, CLFD_PARTIAL_MLO)}},
    {{ATTENTION(split_policy, CLFD_SPLIT_COUNT), ATTENTION(split_size, 1 << 20)}},
    {{ATTENTION(split_policy, CLFD_SPLIT_TOKENS), ATTENTION(split_size, 1)}},
    {{ATTENTION(split_policy, CLFD_SPLIT_TOKENS), ATTENTION(split_size, 0x7fffffff)}},
    {{ATTENTION(k_strides.batch, TWO_48)}},
    {{ATTENTION(k_strides.token, 1), ATTENTION(v_strides.head, 1)}},
    {{ATTENTION(q_strides.head, 1)}},
    /* The axes of out in every order, packed without a gap; and a stride that no step is taken with. */
    {{ATTENTION(out_strides.batch, 512), ATTENTION(out_strides.token, 1024)}},
    {{ATTENTION(out_strides.batch, 64), ATTENTION(out_strides.token, 128), ATTENTION(out_strides.head, 384)}},
    {{ATTENTION(out_strides.head, 65), ATTENTION(out_strides.token, 519), ATTENTION(out_strides.batch, 1557)}},
    {{ATTENTION(max_batch, 1), ATTENTION(out_strides.batch, 1)}},
    {{ATTENTION(q_len, 1), ATTENTION(out_strides.token, 1)}},
    {{ATTENTION(q_alignment, 4), ATTENTION(k_alignment, 4096), ATTENTION(out_alignment, 4)}},
    {{ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(q_alignment, 2), ATTENTION(k_alignment, 2), ATTENTION(v_alignment, 2),
      ATTENTION(out_alignment, 2)}},
};

START_TEST(the_last_legal_value_of_each_rule_is_accepted)
{
    for (size_t i = 0; i < COUNT(acceptances); i++) {
        clfd_attention a;
        set_up();
        ck_assert_msg(complete(acceptances[i].settings, &a) == CLFD_SUCCESS, "case %zu: %s", i,
                      heard.last[CLFD_LOG_ERROR]);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    }
}
END_TEST

START_TEST(scale_must_be_finite)
{
    static const struct {
        float scale;
        const char *name;
    } cases[] = {{INFINITY, "scale is inf"}, {-INFINITY, "scale is -inf"}, {NAN, "nan"}};
    clfd_attention a = plain, out;

    for (size_t i = 0; i < COUNT(cases); i++) {
        const refusal expected = {{{0}}, CLFD_ERROR_SCALE, cases[i].name, "must be finite"};
        set_up();
        a.scale = cases[i].scale;
        expect_sentence(clfd_complete_attention(&a, &out, &logger), &expected);
    }
    set_up();
    a.scale = -3.0e38f;
    ck_assert_int_eq(clfd_complete_attention(&a, &out, &logger), CLFD_SUCCESS);
    ck_assert(out.scale == -3.0e38f);
}
END_TEST

static void expect_strides(const clfd_strides *actual, int64_t batch, int64_t token, int64_t head)
{
    ck_assert_int_eq(actual->batch, batch);
    ck_assert_int_eq(actual->token, token);
    ck_assert_int_eq(actual->head, head);
}

START_TEST(zero_fields_become_their_defaults)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(max_batch, 0), ATTENTION(q_len, 0), ATTENTION(num_kv_heads, 0)};
    const clfd_attention a = completed(settings);

    ck_assert_uint_eq(a.struct_size, sizeof a);
    ck_assert_uint_eq(a.max_batch, 1);
    ck_assert_uint_eq(a.q_len, 1);
    ck_assert_uint_eq(a.num_kv_heads, 8);
    ck_assert_uint_eq(a.head_dim_v, 64);
    ck_assert_uint_eq(a.expected_kv_len, 100);
    ck_assert_int_eq(a.q_type, CLFD_TYPE_F32);
    ck_assert_int_eq(a.k_type, CLFD_TYPE_F32);
    ck_assert_int_eq(a.v_type, CLFD_TYPE_F32);
    ck_assert_int_eq(a.out_type, CLFD_TYPE_F32);
    ck_assert(a.scale == 0.125f);
    ck_assert_uint_eq(a.q_alignment, 16);
    ck_assert_uint_eq(a.k_alignment, 16);
    ck_assert_uint_eq(a.v_alignment, 16);
    ck_assert_uint_eq(a.out_alignment, 16);
    ck_assert_int_eq(a.split_policy, CLFD_SPLIT_AUTO);
}
END_TEST

START_TEST(a_type_that_is_not_given_is_the_one_that_the_field_names)
{
    const setting of_q[MAX_SETTINGS] = {ATTENTION(q_type, CLFD_TYPE_F16)};
    const setting of_k[MAX_SETTINGS] = {ATTENTION(q_type, CLFD_TYPE_F16), ATTENTION(k_type, CLFD_TYPE_BF16)};
    clfd_attention a = completed(of_q);

    ck_assert_int_eq(a.k_type, CLFD_TYPE_F16);
    ck_assert_int_eq(a.v_type, CLFD_TYPE_F16);
    ck_assert_int_eq(a.out_type, CLFD_TYPE_F16);
    a = completed(of_k);
    ck_assert_int_eq(a.v_type, CLFD_TYPE_BF16);
    ck_assert_int_eq(a.out_type, CLFD_TYPE_F16);
}
END_TEST

START_TEST(default_strides_are_those_of_the_layout)
{
    const setting token_major[MAX_SETTINGS] = {ATTENTION(head_dim_v, 32)};
    const setting head_major[MAX_SETTINGS] = {ATTENTION(head_dim_v, 32), ATTENTION(kv_layout, CLFD_LAYOUT_BHSD)};
    clfd_attention a = completed(token_major);

    expect_strides(&a.q_strides, 3 * 8 * 64, 8 * 64, 64);
    expect_strides(&a.k_strides, 100 * 2 * 64, 2 * 64, 64);
    expect_strides(&a.v_strides, 100 * 2 * 32, 2 * 32, 32);
    expect_strides(&a.out_strides, 3 * 8 * 32, 8 * 32, 32);
    a = completed(head_major);
    expect_strides(&a.q_strides, 3 * 8 * 64, 8 * 64, 64);
    expect_strides(&a.k_strides, 2 * 100 * 64, 64, 100 * 64);
    expect_strides(&a.v_strides, 2 * 100 * 32, 32, 100 * 32);
    expect_strides(&a.out_strides, 3 * 8 * 32, 8 * 32, 32);
}
END_TEST

START_TEST(a_stride_overrides_one_default_and_broadcast_is_a_true_zero)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(k_strides.token, 129),
                                            ATTENTION(k_strides.batch, CLFD_STRIDE_BROADCAST),
                                            ATTENTION(v_strides.head, CLFD_STRIDE_BROADCAST)};
    const clfd_attention a = completed(settings);

    expect_strides(&a.k_strides, 0, 129, 64);
    expect_strides(&a.v_strides, 100 * 2 * 64, 2 * 64, 0);
}
END_TEST

START_TEST(v_from_k_gives_v_the_strides_of_k)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(v_from_k, 1), ATTENTION(head_dim_v, 32),
                                            ATTENTION(k_strides.token, 192),
                                            ATTENTION(k_strides.batch, CLFD_STRIDE_BROADCAST)};
    const clfd_attention a = completed(settings);

    expect_strides(&a.k_strides, 0, 192, 64);
    expect_strides(&a.v_strides, 0, 192, 64);
    ck_assert_uint_eq(a.head_dim_v, 32);
}
END_TEST

START_TEST(count_without_a_size_is_auto)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(split_policy, CLFD_SPLIT_COUNT)};

    ck_assert_int_eq(completed(settings).split_policy, CLFD_SPLIT_AUTO);
}
END_TEST

/* A complete descriptor is complete: the second time nothing changes. */
START_TEST(completing_twice_is_completing_once)
{
    const setting settings[MAX_SETTINGS] = {ATTENTION(kv_layout, CLFD_LAYOUT_BHSD), ATTENTION(q_type, CLFD_TYPE_F16)};
    const clfd_attention once = completed(settings);
    clfd_attention twice;

    memset(&twice, 0, sizeof twice);
    ck_assert_int_eq(clfd_complete_attention(&once, &twice, &logger), CLFD_SUCCESS);
    ck_assert_uint_eq(twice.max_kv_len, once.max_kv_len);
    ck_assert(twice.scale == once.scale);
    expect_strides(&twice.k_strides, once.k_strides.batch, once.k_strides.token, once.k_strides.head);
    expect_strides(&twice.out_strides, once.out_strides.batch, once.out_strides.token, once.out_strides.head);
}
END_TEST

/* ---- Extents ----------------------------------------------------------------------------------------------------- */

START_TEST(an_extent_ends_after_the_furthest_element)
{
    const clfd_strides strides = {1000, 100, 10};
    const clfd_strides broadcast = {0, 100, 0};
    uint64_t elements = 7;

    ck_assert(clfd_tensor_extent(&strides, 3, 4, 5, 8, &elements));
    ck_assert_uint_eq(elements, 2 * 1000 + 3 * 100 + 4 * 10 + 8);
    ck_assert(clfd_tensor_extent(&broadcast, 3, 4, 5, 8, &elements));
    ck_assert_uint_eq(elements, 3 * 100 + 8);
    ck_assert(clfd_tensor_extent(&strides, 1, 1, 1, 8, &elements));
    ck_assert_uint_eq(elements, 8);
}
END_TEST

START_TEST(an_extent_without_rows_is_empty)
{
    const clfd_strides strides = {INT64_MAX, INT64_MAX, INT64_MAX};
    uint64_t elements;

    for (int axis = 0; axis < 4; axis++) {
        elements = 7;
        ck_assert(clfd_tensor_extent(&strides, axis != 0 ? 9 : 0, axis != 1 ? 9 : 0, axis != 2 ? 9 : 0,
                                     axis != 3 ? 9 : 0, &elements));
        ck_assert_uint_eq(elements, 0);
    }
}
END_TEST

START_TEST(an_extent_beyond_63_bits_is_told)
{
    const clfd_strides half = {INT64_MAX / 2, INT64_MAX / 2, 1};
    uint64_t elements;

    ck_assert(clfd_tensor_extent(&half, 2, 2, 1, 1, &elements));
    ck_assert_uint_eq(elements, INT64_MAX);
    ck_assert(!clfd_tensor_extent(&half, 2, 2, 1, 2, &elements));
    ck_assert(!clfd_tensor_extent(&half, 2, 2, 3, 1, &elements));
    ck_assert(!clfd_tensor_extent(&half, 4, 1, 1, 1, &elements));
    ck_assert(!clfd_tensor_extent(&half, UINT64_MAX, 1, 1, 1, &elements));
}
END_TEST

/* With (2^14 + 1) sequences 2^48 elements apart, K ends shortly after element 2^62: 4 bytes each would wrap to a small
 * number, which any buffer holds. */
static const refusal extent_refusals[] = {
    {{ATTENTION(max_batch, 1 << 24), ATTENTION(k_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "max_batch 16777216",
     "2^63"},
    {{ATTENTION(max_batch, (1 << 14) + 1), ATTENTION(k_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "max_batch 16385",
     "2^63"},
    {{ATTENTION(max_batch, (1 << 14) + 1), ATTENTION(v_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "max_batch 16385",
     "2^63"},
    {{ATTENTION(max_batch, (1 << 14) + 1), ATTENTION(q_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "max_batch 16385",
     "2^63"},
    {{ATTENTION(max_batch, (1 << 14) + 1), ATTENTION(out_strides.batch, TWO_48)},
     CLFD_ERROR_OVERFLOW,
     "max_batch 16385",
     "2^63"},
    {{ATTENTION(max_batch, 1 << 24), ATTENTION(max_kv_len, 0x7fffffff), ATTENTION(num_q_heads, 65536),
      ATTENTION(num_kv_heads, 65536)},
     CLFD_ERROR_OVERFLOW,
     "max_kv_len 2147483647",
     "2^63"},
};

START_TEST(a_tensor_whose_bytes_do_not_fit_in_63_bits_is_refused)
{
    const setting last[MAX_SETTINGS] = {ATTENTION(max_batch, 1 << 13), ATTENTION(k_strides.batch, TWO_48)};

    for (size_t i = 0; i < COUNT(extent_refusals); i++)
        expect_refusal(&extent_refusals[i]);
    set_up();
    completed(last);
}
END_TEST

/* ---- Merge ------------------------------------------------------------------------------------------------------- */

static const refusal merge_refusals[] = {
    {{MERGE(max_rows, 0)}, CLFD_ERROR_NUM_STATES, "max_rows is 0", "1 to 1073741824"},
    {{MERGE(max_rows, (1 << 30) + 1)}, CLFD_ERROR_NUM_STATES, "max_rows is 1073741825", "1 to 1073741824"},
    {{MERGE(num_states, (1 << 20) + 1)}, CLFD_ERROR_NUM_STATES, "num_states is 1048577", "1 to 1048576"},
    {{MERGE(head_dim_v, 0)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 0", "a multiple of 8 from 8 to 576"},
    {{MERGE(head_dim_v, 4)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 4", "a multiple of 8 from 8 to 576"},
    {{MERGE(head_dim_v, 66)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 66", "a multiple of 8 from 8 to 576"},
    {{MERGE(head_dim_v, 584)}, CLFD_ERROR_HEAD_DIM, "head_dim_v is 584", "a multiple of 8 from 8 to 576"},
    {{MERGE(partial, 2)}, CLFD_ERROR_PARTIAL_FORMAT, "partial is 2", "a clfd_partial"},
    {{MERGE(out_type, 4)}, CLFD_ERROR_TYPE, "out_type is 4", "a clfd_type"},
};

START_TEST(each_broken_rule_of_a_merge_has_its_status_and_a_sentence)
{
    for (size_t i = 0; i < COUNT(merge_refusals); i++) {
        clfd_merge m = plain_merge, out, untouched;
        set_up();
        memset(&out, 0x5A, sizeof out);
        memcpy(&untouched, &out, sizeof out);
        apply(&m, merge_refusals[i].settings);
        expect_sentence(clfd_complete_merge(&m, &out, &logger), &merge_refusals[i]);
        ck_assert_mem_eq(&out, &untouched, sizeof out);
    }
}
END_TEST

static const acceptance merge_acceptances[] = {
    {{MERGE(max_rows, 1)}},
    {{MERGE(max_rows, 1 << 30)}},
    {{MERGE(num_states, 1)}},
    {{MERGE(num_states, 1 << 20)}},
    {{MERGE(head_dim_v, 8)}},
    {{MERGE(head_dim_v, 576)}},
    {{MERGE(partial, CLFD_PARTIAL_MLO)}},
    {{MERGE(out_type, CLFD_TYPE_BF16)}},
};

START_TEST(the_last_legal_value_of_each_rule_of_a_merge_is_accepted)
{
    for (size_t i = 0; i < COUNT(merge_acceptances); i++) {
        clfd_merge m = plain_merge, out;
        set_up();
        apply(&m, merge_acceptances[i].settings);
        ck_assert_msg(clfd_complete_merge(&m, &out, &logger) == CLFD_SUCCESS, "case %zu: %s", i,
                      heard.last[CLFD_LOG_ERROR]);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    }
}
END_TEST

START_TEST(a_merge_is_of_two_states_into_f32_unless_told)
{
    clfd_merge out;

    ck_assert_int_eq(clfd_complete_merge(&plain_merge, &out, &logger), CLFD_SUCCESS);
    ck_assert_uint_eq(out.num_states, 2);
    ck_assert_int_eq(out.out_type, CLFD_TYPE_F32);
    ck_assert_int_eq(out.partial, CLFD_PARTIAL_LSE);
}
END_TEST

/* ---- Callers of other versions ----------------------------------------------------------------------------------- */

START_TEST(a_shorter_descriptor_is_extended_by_defaults)
{
    clfd_attention a = plain, out;

    a.struct_size = offsetof(clfd_attention, causal);
    a.causal = 9; /* past the end of what the caller has */
    a.split_policy = (clfd_split_policy)9;
    ck_assert_int_eq(clfd_complete_attention(&a, &out, &logger), CLFD_SUCCESS);
    ck_assert_uint_eq(out.struct_size, sizeof out);
    ck_assert_uint_eq(out.max_kv_len, 100);
    ck_assert_uint_eq(out.causal, 0);
    ck_assert_int_eq(out.split_policy, CLFD_SPLIT_AUTO);
}
END_TEST

START_TEST(a_longer_descriptor_must_end_in_zeros)
{
    struct {
        clfd_attention known;
        char unknown[24];
    } newer = {.known = plain};
    const refusal expected = {{{0}}, CLFD_ERROR_STRUCT_SIZE, "clfd_attention.struct_size is", "newer version"};
    clfd_attention out;

    newer.known.struct_size = sizeof newer;
    ck_assert_int_eq(clfd_complete_attention(&newer.known, &out, &logger), CLFD_SUCCESS);
    ck_assert_uint_eq(out.struct_size, sizeof out);
    newer.unknown[sizeof newer.unknown - 1] = 1;
    expect_sentence(clfd_complete_attention(&newer.known, &out, &logger), &expected);
    newer.known.struct_size--; /* the last byte is not the caller's any more */
    ck_assert_int_eq(clfd_complete_attention(&newer.known, &out, &logger), CLFD_SUCCESS);
}
END_TEST

START_TEST(a_descriptor_without_a_size_and_no_descriptor_are_refused)
{
    const refusal no_size = {
        {{0}}, CLFD_ERROR_STRUCT_SIZE, "clfd_attention.struct_size is 0", "sizeof(clfd_attention)"};
    const refusal nothing = {{{0}}, CLFD_ERROR_NULL_ARGUMENT, "clfd_attention", "is NULL"};
    const refusal no_merge_size = {{{0}}, CLFD_ERROR_STRUCT_SIZE, "clfd_merge.struct_size is 0", "sizeof(clfd_merge)"};
    clfd_attention a = plain, out;
    clfd_merge m = plain_merge, merge_out;

    a.struct_size = 0;
    expect_sentence(clfd_complete_attention(&a, &out, &logger), &no_size);
    set_up();
    expect_sentence(clfd_complete_attention(NULL, &out, &logger), &nothing);
    set_up();
    m.struct_size = 0;
    expect_sentence(clfd_complete_merge(&m, &merge_out, &logger), &no_merge_size);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_broken_rule_has_its_status_and_a_sentence_with_value_and_rule,
        strides_are_refused_where_they_are_negative_huge_or_overlap_what_is_written,
        v_from_k_takes_no_dim_type_or_stride_of_its_own,
        an_alignment_promise_is_a_power_of_two_from_the_element_to_a_page,
        the_last_legal_value_of_each_rule_is_accepted,
        scale_must_be_finite,
        zero_fields_become_their_defaults,
        a_type_that_is_not_given_is_the_one_that_the_field_names,
        default_strides_are_those_of_the_layout,
        a_stride_overrides_one_default_and_broadcast_is_a_true_zero,
        v_from_k_gives_v_the_strides_of_k,
        count_without_a_size_is_auto,
        completing_twice_is_completing_once,
        an_extent_ends_after_the_furthest_element,
        an_extent_without_rows_is_empty,
        an_extent_beyond_63_bits_is_told,
        a_tensor_whose_bytes_do_not_fit_in_63_bits_is_refused,
        each_broken_rule_of_a_merge_has_its_status_and_a_sentence,
        the_last_legal_value_of_each_rule_of_a_merge_is_accepted,
        a_merge_is_of_two_states_into_f32_unless_told,
        a_shorter_descriptor_is_extended_by_defaults,
        a_longer_descriptor_must_end_in_zeros,
        a_descriptor_without_a_size_and_no_descriptor_are_refused,
    };
    return run_suite_around("check", tests, COUNT(tests), set_up, NULL);
}

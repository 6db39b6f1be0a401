/* What the reference requires of its pointers: those that the options ask for, and no others. */
#include "support/descriptor.h"
#include "support/suite.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* Large enough, and zero, for anything that a call of the plain descriptor may read. */
static double memory[1 << 16];

/* Each pointer of clfd_host_tensors that an option asks for, and that option. */
static const struct demand {
    size_t offset;
    const char *name;
    setting settings[MAX_SETTINGS];
} demands[] = {
#define DEMAND(member, ...)                                                                                            \
    {                                                                                                                  \
        offsetof(clfd_host_tensors, member), #member, { __VA_ARGS__ }                                                  \
    }
    DEMAND(alibi, ATTENTION(alibi, 1)),
    DEMAND(bias, ATTENTION(bias_type, CLFD_TYPE_F16)),
    DEMAND(mask, ATTENTION(mask, CLFD_MASK_BOOL)),
    DEMAND(mask, ATTENTION(mask, CLFD_MASK_TREE)),
    DEMAND(sinks, ATTENTION(sinks, 1)),
    DEMAND(query_positions, ATTENTION(query_positions, 1)),
    DEMAND(kv_start, ATTENTION(kv_start, 1)),
    DEMAND(cache_batch_idx, ATTENTION(cache_batch_idx, 1)),
    DEMAND(block_table, ATTENTION(paging, CLFD_PAGING_TABLE), ATTENTION(page_size, 16), ATTENTION(num_pages, 1)),
    DEMAND(k_scale, ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(v_type, CLFD_TYPE_Q8_0)),
    DEMAND(v_scale, ATTENTION(k_type, CLFD_TYPE_Q4_0), ATTENTION(v_type, CLFD_TYPE_FP8_E5M2)),
};

static clfd_host_tensors plain_tensors(void)
{
    return (clfd_host_tensors){.struct_size = sizeof(clfd_host_tensors),
                               .batch = 2,
                               .q = memory,
                               .k = memory,
                               .v = memory,
                               .out = memory + (1 << 15)};
}

static void set_pointer(clfd_host_tensors *tensors, size_t offset, const void *pointer)
{
    memcpy((char *)tensors + offset, &pointer, sizeof pointer);
}

static clfd_status call(const setting *settings, const clfd_host_tensors *tensors)
{
    clfd_attention a = plain_attention;

    hear_nothing();
    apply_settings(&a, settings);
    return clfd_reference_attention(&a, tensors, &listener);
}

static void expect_said(clfd_status status, clfd_status expected, const char *name, const char *rule)
{
    char field[64];
    const refusal sentence = {{{0}}, expected, field, rule};

    snprintf(field, sizeof field, "clfd_host_tensors.%s is", name);
    expect_sentence(status, &sentence);
}

START_TEST(a_tensor_that_an_option_asks_for_is_required_and_otherwise_refused)
{
    static const setting none[MAX_SETTINGS] = {{0}};

    for (size_t i = 0; i < COUNT(demands); i++) {
        clfd_host_tensors t = plain_tensors();
        expect_said(call(demands[i].settings, &t), CLFD_ERROR_NULL_ARGUMENT, demands[i].name, "is NULL");
        set_pointer(&t, demands[i].offset, memory);
        ck_assert_msg(call(demands[i].settings, &t) == CLFD_SUCCESS, "%s", heard.last[CLFD_LOG_ERROR]);
        expect_said(call(none, &t), CLFD_ERROR_BUFFER_UNEXPECTED, demands[i].name, "no use for it");
        t.batch = 0;
        expect_said(call(none, &t), CLFD_ERROR_BUFFER_UNEXPECTED, demands[i].name, "no use for it");
        set_pointer(&t, demands[i].offset, NULL);
        ck_assert_int_eq(call(demands[i].settings, &t), CLFD_SUCCESS); /* of no sequence nothing is needed */
    }
}
END_TEST

START_TEST(csr_needs_both_its_arrays_and_their_size_is_its_own)
{
    static const setting csr[MAX_SETTINGS] = {ATTENTION(paging, CLFD_PAGING_CSR), ATTENTION(page_size, 16),
                                              ATTENTION(num_pages, 1)};
    static const setting none[MAX_SETTINGS] = {{0}};
    clfd_host_tensors t = plain_tensors();

    t.num_page_indices = 5;
    expect_said(call(none, &t), CLFD_ERROR_BUFFER_UNEXPECTED, "num_page_indices", "5; without CLFD_PAGING_CSR");
    expect_said(call(csr, &t), CLFD_ERROR_NULL_ARGUMENT, "block_table", "is NULL");
    set_pointer(&t, offsetof(clfd_host_tensors, block_table), memory);
    expect_said(call(csr, &t), CLFD_ERROR_NULL_ARGUMENT, "page_indptr", "is NULL");
    set_pointer(&t, offsetof(clfd_host_tensors, page_indptr), memory);
    ck_assert_int_eq(call(csr, &t), CLFD_SUCCESS);
    set_pointer(&t, offsetof(clfd_host_tensors, block_table), NULL);
    t.num_page_indices = 0;
    t.block_table = NULL;
    t.page_indptr = (const int32_t *)memory;
    expect_said(call(none, &t), CLFD_ERROR_BUFFER_UNEXPECTED, "page_indptr", "no use for it");
}
END_TEST

START_TEST(zeros_go_with_their_scales)
{
    static const setting both[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(k_quant.zeros, 1),
                                               ATTENTION(v_quant.zeros, 1)};
    static const setting none[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_INT8)};
    clfd_host_tensors t = plain_tensors();

    t.k_scale = t.v_scale = t.k_zero = memory;
    expect_said(call(both, &t), CLFD_ERROR_NULL_ARGUMENT, "v_zero", "is NULL");
    expect_said(call(none, &t), CLFD_ERROR_BUFFER_UNEXPECTED, "k_zero", "no use for it");
    t.k_zero = NULL;
    t.v_zero = memory;
    expect_said(call(both, &t), CLFD_ERROR_NULL_ARGUMENT, "k_zero", "is NULL");
    expect_said(call(none, &t), CLFD_ERROR_BUFFER_UNEXPECTED, "v_zero", "no use for it");
    t.k_zero = memory;
    ck_assert_int_eq(call(both, &t), CLFD_SUCCESS);
}
END_TEST

START_TEST(v_from_k_has_no_v_and_no_scales_of_its_own)
{
    static const setting settings[MAX_SETTINGS] = {ATTENTION(k_type, CLFD_TYPE_INT8), ATTENTION(k_quant.zeros, 1),
                                                   ATTENTION(v_from_k, 1)};
    clfd_host_tensors t = plain_tensors();

    t.k_scale = t.k_zero = memory;
    expect_said(call(settings, &t), CLFD_ERROR_BUFFER_UNEXPECTED, "v", "no use for it");
    t.v = NULL;
    ck_assert_int_eq(call(settings, &t), CLFD_SUCCESS);
    t.v_scale = memory;
    expect_said(call(settings, &t), CLFD_ERROR_BUFFER_UNEXPECTED, "v_scale", "no use for it");
    t.v_scale = NULL;
    t.v_zero = memory;
    expect_said(call(settings, &t), CLFD_ERROR_BUFFER_UNEXPECTED, "v_zero", "no use for it");
}
END_TEST

START_TEST(a_refused_call_leaves_the_status_word_alone)
{
    static const setting settings[MAX_SETTINGS] = {ATTENTION(cache_batch_idx, 1), ATTENTION(sinks, 1)};
    static const int32_t bad[2] = {-1, -1};
    clfd_host_tensors t = plain_tensors();
    uint32_t status = 0;

    t.cache_batch_idx = bad;
    t.status = &status;
    expect_said(call(settings, &t), CLFD_ERROR_NULL_ARGUMENT, "sinks", "is NULL");
    ck_assert_uint_eq(status, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_tensor_that_an_option_asks_for_is_required_and_otherwise_refused,
        csr_needs_both_its_arrays_and_their_size_is_its_own,
        zeros_go_with_their_scales,
        v_from_k_has_no_v_and_no_scales_of_its_own,
        a_refused_call_leaves_the_status_word_alone,
    };
    return run_suite("reference_check", tests, COUNT(tests));
}

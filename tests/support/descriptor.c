#include "support/descriptor.h"
#include "plan/check.h"
#include "support/suite.h"
#include <string.h>

const clfd_attention plain_attention = {
    .struct_size = sizeof(clfd_attention),
    .max_batch = 2,
    .q_len = 3,
    .num_q_heads = 8,
    .num_kv_heads = 2,
    .head_dim = 64,
    .max_kv_len = 100,
};

test_log heard;
clfd_logger listener;

void hear_nothing(void)
{
    memset(&heard, 0, sizeof heard);
    listener = test_logger(&heard);
}

void apply_settings(void *descriptor, const setting *settings)
{
    for (size_t i = 0; i < MAX_SETTINGS && settings[i].bytes > 0; i++) {
        const uint32_t narrow = (uint32_t)settings[i].value;
        const void *const from = settings[i].bytes == sizeof narrow ? (const void *)&narrow : &settings[i].value;
        memcpy((char *)descriptor + settings[i].offset, from, settings[i].bytes);
    }
}

clfd_status complete_settings(const setting *settings, clfd_attention *complete)
{
    clfd_attention a = plain_attention;

    apply_settings(&a, settings);
    return clfd_complete_attention(&a, complete, &listener);
}

clfd_attention completed_settings(const setting *settings)
{
    clfd_attention a;

    hear_nothing();
    ck_assert_msg(complete_settings(settings, &a) == CLFD_SUCCESS, "%s", heard.last[CLFD_LOG_ERROR]);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    return a;
}

void expect_sentence(clfd_status status, const refusal *expected)
{
    const char *const said = heard.last[CLFD_LOG_ERROR];

    ck_assert_msg(status == expected->status, "\"%s ... %s\": status %d instead of %d (%s)", expected->value,
                  expected->rule, (int)status, (int)expected->status, said);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_msg(strstr(said, expected->value) != NULL, "\"%s\" lacks \"%s\"", said, expected->value);
    ck_assert_msg(strstr(said, expected->rule) != NULL, "\"%s\" lacks \"%s\"", said, expected->rule);
}

void expect_refusals(const refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        clfd_attention out, untouched;
        hear_nothing();
        memset(&out, 0x5A, sizeof out);
        memcpy(&untouched, &out, sizeof out);
        expect_sentence(complete_settings(refusals[i].settings, &out), &refusals[i]);
        ck_assert_mem_eq(&out, &untouched, sizeof out);
    }
}

void expect_acceptances(const acceptance *acceptances, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        clfd_attention a;
        hear_nothing();
        ck_assert_msg(complete_settings(acceptances[i].settings, &a) == CLFD_SUCCESS, "case %zu: %s", i,
                      heard.last[CLFD_LOG_ERROR]);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    }
}

void expect_strides(const clfd_strides *actual, int64_t batch, int64_t token, int64_t head)
{
    ck_assert_int_eq(actual->batch, batch);
    ck_assert_int_eq(actual->token, token);
    ck_assert_int_eq(actual->head, head);
}

void expect_score_strides(const clfd_score_strides *actual, int64_t batch, int64_t head, int64_t query, int64_t key)
{
    ck_assert_int_eq(actual->batch, batch);
    ck_assert_int_eq(actual->head, head);
    ck_assert_int_eq(actual->query, query);
    ck_assert_int_eq(actual->key, key);
}

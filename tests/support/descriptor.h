/* descriptor.h - tables of descriptors that a rule accepts or refuses, for the tests of src/plan/check*.c. */
#ifndef SUPPORT_DESCRIPTOR_H
#define SUPPORT_DESCRIPTOR_H

#include "support/log.h"
#include <clfd/clfd.h>
#include <stddef.h>
#include <stdint.h>

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

enum { MAX_SETTINGS = 9 };

/* A descriptor that breaks a rule: its status, and what its sentence must say of the value and of the rule. */
typedef struct refusal {
    setting settings[MAX_SETTINGS];
    clfd_status status;
    const char *value, *rule;
} refusal;

typedef struct acceptance {
    setting settings[MAX_SETTINGS];
} acceptance;

/* What the settings are applied to: 2 sequences of 3 queries, 8 query heads over 2 KV heads of 64 dims, 100 keys. */
extern const clfd_attention plain_attention;

/* What the last call said; cleared by hear_nothing, which is also a set-up for run_suite_around. */
extern test_log heard;
extern clfd_logger listener;
void hear_nothing(void);

/* Writes the settings into a descriptor. */
void apply_settings(void *descriptor, const setting *settings);

/* clfd_complete_attention on plain_attention with the settings. */
clfd_status complete_settings(const setting *settings, clfd_attention *complete);

/* The same where it must succeed, in silence. */
clfd_attention completed_settings(const setting *settings);

/* A call was refused with this status and one sentence. */
void expect_sentence(clfd_status status, const refusal *expected);

/* Each is refused as it says, and its result is left alone; each is accepted in silence. */
void expect_refusals(const refusal *refusals, size_t count);
void expect_acceptances(const acceptance *acceptances, size_t count);

void expect_strides(const clfd_strides *actual, int64_t batch, int64_t token, int64_t head);
void expect_score_strides(const clfd_score_strides *actual, int64_t batch, int64_t head, int64_t query, int64_t key);

#endif

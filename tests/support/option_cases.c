#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

/* Field by field is word by word: every field has one word, or two that are both set or both 0 in the base. */
void set_options(clfd_attention *attention, const clfd_attention *set)
{
    enum { WORDS = sizeof *set / sizeof(uint32_t) };
    uint32_t from[WORDS], to[WORDS];

    memcpy(from, set, sizeof from);
    memcpy(to, attention, sizeof to);
    for (size_t i = 0; i < WORDS; i++)
        if (from[i] != 0)
            to[i] = from[i];
    memcpy(attention, to, sizeof to);
}

attention_problem option_case(clfd_attention set)
{
    attention_problem p = decode_case(&decode_forms[0]);

    p.attention.q_len = 3;
    set_options(&p.attention, &set);
    return p;
}

attention_problem in_form(const attention_problem *problem, size_t form)
{
    attention_problem p = *problem;

    p.attention.tuning = decode_forms[form].tuning;
    return p;
}

void verify_forms(const attention_problem *problem)
{
    for (size_t f = 0; f < NUM_DECODE_FORMS; f++) {
        const attention_problem p = in_form(problem, f);
        attention_verify(&p);
    }
}

void verify_forms_and_splits(const attention_problem *problem)
{
    attention_problem p = *problem;

    verify_forms(&p);
    p.attention.split_policy = CLFD_SPLIT_COUNT;
    p.attention.split_size = 3;
    verify_forms(&p);
    p.attention.split_size = 1;
    verify_forms(&p);
}

/* What other people's caches were seen to hold, and the greatest number of f16. */
static const float poisons[] = {INFINITY, -INFINITY, 65504.0f, -65504.0f, 1e-7f};
#define NUM_POISONS (sizeof poisons / sizeof poisons[0])

void expect_poison_unused(const attention_problem *problem)
{
    attention_call *const nan_call = attention_open(problem);

    attention_run(nan_call);
    attention_expect_reference(nan_call);
    for (size_t i = 0; i < NUM_POISONS; i++) {
        attention_problem p = *problem;
        p.poison = poisons[i];
        attention_call *const call = attention_open(&p);
        attention_run(call);
        EXPECT(attention_same_bits(call, nan_call), "%g instead of NaN in unused memory changes a bit in %s",
               (double)poisons[i], clfd_plan_describe(call->plan));
        attention_close(call);
    }
    attention_close(nan_call);
}

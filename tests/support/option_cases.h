/* option_cases.h - problems with options, on every form of the decode kernels. */
#ifndef TEST_SUPPORT_OPTION_CASES_H
#define TEST_SUPPORT_OPTION_CASES_H

#include "support/decode_cases.h"

/* decode_case of the first form with three queries, and every field that is not 0 in `set`. */
attention_problem option_case(clfd_attention set);

/* Gives an attention every field that is not 0 in `set`. */
void set_options(clfd_attention *attention, const clfd_attention *set);

/* The problem with the tuning of a form. */
attention_problem in_form(const attention_problem *problem, size_t form);

/* attention_verify in every form; the same with several splits and with one, which is written directly. */
void verify_forms(const attention_problem *problem);
void verify_forms_and_splits(const attention_problem *problem);

/* Requires the same bits whatever unused memory holds, in one form. */
void expect_poison_unused(const attention_problem *problem);

#endif

/* problem_list.h - the problems that the words of a command line name. */
#ifndef TOOLS_PROBLEM_LIST_H
#define TOOLS_PROBLEM_LIST_H

#include "options.h"
#include "problem.h"

typedef struct problem_list {
    bench_problem *problems; /* malloc'ed */
    size_t count;
} problem_list;

/* Parses one problem and appends it. */
bool problem_list_add(problem_list *list, const char *text, tool_fault *fault);

/* Arguments with blanks are problems; the words between them are joined, each run up to the next b. */
bool problem_list_parse(const option_words *words, problem_list *list, tool_fault *fault);

#endif

#include "problem_list.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool problem_list_add(problem_list *list, const char *text, tool_fault *fault)
{
    bench_problem *longer = realloc(list->problems, (list->count + 1) * sizeof longer[0]);

    if (longer == NULL)
        return fault_failed(fault, "no memory for %zu problems", list->count + 1);
    list->problems = longer;
    return problem_parse(text, &list->problems[list->count++], fault);
}

/* The word `b16`. */
static bool starts_problem(const char *word) { return word[0] == 'b' && word[1] >= '0' && word[1] <= '9'; }

bool problem_list_parse(const option_words *words, problem_list *list, tool_fault *fault)
{
    char text[1024];

    for (size_t i = 0; i < words->count;) {
        size_t used = 0;
        if (strpbrk(words->words[i], " \t") != NULL) {
            if (!problem_list_add(list, words->words[i++], fault))
                return false;
            continue;
        }
        do {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s ", words->words[i++]);
            if (used >= sizeof text)
                return fault_usage(fault, "a problem is longer than %zu characters", sizeof text - 1);
        } while (i < words->count && strpbrk(words->words[i], " \t") == NULL && !starts_problem(words->words[i]));
        if (!problem_list_add(list, text, fault))
            return false;
    }
    return true;
}

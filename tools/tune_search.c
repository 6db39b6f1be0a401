#include "plan/words.h"
#include "tune.h"
#include <stdio.h>
#include <stdlib.h>

/* Values in a row that lose before a direction is given up. */
#define PATIENCE 2

/* A search under way. */
typedef struct search {
    const tune_judge *judge;
    clfd_tuning best;
    clfd_tuning *seen; /* malloc'ed */
    size_t num_seen;   /* the first of all included */
    uint32_t max_rows;
    tool_fault *fault;
} search;

/* LOST at once for a row that has challenged before, or comes too late. */
static tune_verdict challenge(search *s, const clfd_tuning *row)
{
    clfd_tuning *longer;
    tune_verdict verdict;

    if (s->num_seen > s->max_rows || clfd_tuning_listed(s->seen, s->num_seen, row))
        return TUNE_LOST;
    longer = realloc(s->seen, (s->num_seen + 1) * sizeof longer[0]);
    if (longer == NULL) {
        fault_failed(s->fault, "no memory for %zu rows", s->num_seen + 1);
        return TUNE_STOPPED;
    }
    s->seen = longer;
    s->seen[s->num_seen++] = *row;
    verdict = s->judge->challenge(s->judge->user, row, s->fault);
    if (verdict == TUNE_WON)
        s->best = *row;
    return verdict;
}

/* How a number is changed: by factors of 2, or one by one where it has few values; and to 0 at once where that turns
 * something off. */
typedef enum stride { DOUBLE, HALVE, INCREASE, DECREASE, TURN_OFF, NUM_STRIDES } stride;
#define FEW_VALUES 16u

/* The next value of a number; a factor of 2 ends at the end of the range. False where there is none. */
static bool step(const clfd_field *field, stride how, uint32_t *value)
{
    const bool few = !field->power_of_two && field->max - field->min < FEW_VALUES;
    const uint32_t from = *value;

    switch (how) {
    case DOUBLE:
        *value = from == 0 ? 1 : from <= field->max / 2 ? 2 * from : field->power_of_two ? from : field->max;
        break;
    case HALVE:
        *value = from / 2 >= field->min ? from / 2 : field->power_of_two ? from : field->min;
        break;
    case INCREASE:
        *value += few && from < field->max;
        break;
    case DECREASE:
        *value -= few && from > field->min;
        break;
    default:
        *value = field->min == 0 ? 0 : from;
    }
    return *value != from;
}

/* Moves one number of a row in one direction. */
static bool walk(search *s, const clfd_tuning *from, const clfd_field *field, stride how, bool *changed)
{
    uint32_t value = field->value;

    for (int lost = 0; lost < PATIENCE && step(field, how, &value);) {
        clfd_tuning row = *from;
        char word[64];
        snprintf(word, sizeof word, "%s=%u", field->name, value);
        if (clfd_words_apply(word, &row, NULL) != CLFD_SUCCESS)
            return true;
        const tune_verdict verdict = challenge(s, &row);
        if (verdict == TUNE_STOPPED)
            return false;
        lost = verdict == TUNE_WON ? 0 : lost + 1;
        *changed |= verdict == TUNE_WON;
    }
    return true;
}

/* Moves each number of a row, which may be the best: then on from what wins. */
static bool descend(search *s, const clfd_tuning *from, bool *changed)
{
    clfd_field field;

    for (size_t i = 0; clfd_words_field(from, i, &field); i++)
        for (int how = 0; how < NUM_STRIDES; how++)
            if (clfd_words_field(from, i, &field) && !walk(s, from, &field, (stride)how, changed))
                return false;
    return true;
}

bool tune_search(const clfd_tuning *starts, size_t num_starts, const tune_limits *limits, const tune_judge *judge,
                 clfd_tuning *best, tool_fault *fault)
{
    search s = {.judge = judge, .max_rows = limits->max_rows, .best = starts[0], .fault = fault};
    bool good = (s.seen = malloc(sizeof s.seen[0])) != NULL || fault_failed(fault, "no memory for a row"),
         changed = true;

    if (good)
        s.seen[s.num_seen++] = starts[0];
    for (size_t i = 1; i < num_starts && good; i++)
        good = challenge(&s, &starts[i]) != TUNE_STOPPED;
    for (uint32_t round = 0; round < limits->rounds && changed && good; round++) {
        changed = false;
        good = descend(&s, &s.best, &changed);
        /* Two numbers that pay only together: another start may have one of them. The last one is the row that runs
         * anywhere, near to nothing. */
        for (size_t i = 0; round == 0 && i + 1 < num_starts && good; i++)
            good = descend(&s, &starts[i], &changed);
    }
    *best = s.best;
    free(s.seen);
    return good;
}

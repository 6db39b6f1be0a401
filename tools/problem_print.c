#include "problem_words.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text that grows. */
struct line {
    char *text;
    size_t used;
};

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
add(struct line *line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    line->used += (size_t)vsnprintf(line->text + line->used, PROBLEM_BYTES - line->used, format, arguments);
    va_end(arguments);
}

/* The fewest digits that parse back to the same number. */
static void add_real(struct line *line, const char *name, float value)
{
    char digits[32];

    for (int precision = 6; precision <= 9; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
        if (strtof(digits, NULL) == value)
            break;
    }
    add(line, " %s%s", name, digits);
}

/* Of K and V their common word is printed, or one for each; a type that is the problem's is no word. */
static bool is_type_printed(const bench_problem *problem, const problem_word *word, clfd_type type)
{
    const bool single =
        word->offset == offsetof(bench_problem, k_type) || word->offset == offsetof(bench_problem, v_type);

    if (word->offset == offsetof(bench_problem, bias_type))
        return type != CLFD_TYPE_DEFAULT && type != (clfd_type)word->value;
    return type != CLFD_TYPE_DEFAULT && type != problem->type && !(single && problem->kv_type != CLFD_TYPE_DEFAULT);
}

static void add_word(struct line *line, const bench_problem *problem, const problem_word *word)
{
    uint32_t value;
    float real;

    memcpy(&value, (const char *)problem + word->offset, sizeof value);
    memcpy(&real, &value, sizeof real);
    switch (word->kind) {
    case WORD_NUMBER:
    case WORD_VALUE:
        if (value != 0)
            add(line, " %s%u", word->name, value);
        break;
    case WORD_REAL:
        if (real != 0.0f)
            add_real(line, word->name, real);
        break;
    case WORD_SET:
        if (value == word->value)
            add(line, " %s", word->name);
        break;
    case WORD_TYPE:
        if (is_type_printed(problem, word, (clfd_type)value))
            add(line, " %s%s", word->name, clfd_type_name((clfd_type)value));
        break;
    case WORD_PARTIAL:
        if (value != CLFD_PARTIAL_LSE)
            add(line, " %s%s", word->name, problem_partials[value]);
        break;
    case WORD_RANGE:
        if (value != 0)
            add(line, " %s%u..%u", word->name, problem->ragged_low, problem->ragged_high);
        break;
    }
}

const char *problem_print(const bench_problem *problem, char text[PROBLEM_BYTES])
{
    struct line line = {text, 0};

    add(&line, "b%u q%u hq%u hkv%u d%u", problem->batch, problem->q_len, problem->num_q_heads, problem->num_kv_heads,
        problem->head_dim);
    if (problem->head_dim_v != problem->head_dim)
        add(&line, " dv%u", problem->head_dim_v);
    add(&line, " kv%u %s", problem->kv_len, clfd_type_name(problem->type));
    for (size_t i = NUM_SIZE_WORDS; i < NUM_PROBLEM_WORDS; i++)
        add_word(&line, problem, &problem_words[i]);
    return text;
}

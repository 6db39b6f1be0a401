#include "options.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPTIONS 64
#define HELP_COLUMN 28

static void print_help(const option_set *set)
{
    printf("usage: %s\n\n%s\n\noptions:\n", set->usage, set->description);
    for (const option_row *o = set->options; o->name != NULL; o++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", o->name, o->argument != NULL ? " " : "",
                 o->argument != NULL ? o->argument : "");
        printf("  %-*s%s%s\n", HELP_COLUMN, left, strlen(left) >= HELP_COLUMN ? " " : "", o->help);
    }
    printf("  %-*s%s\n", HELP_COLUMN, "--help", "print this text");
}

/* The option that `argument` names, up to an '='; NULL where there is none. */
static const option_row *find_option(const option_set *set, const char *argument)
{
    const size_t length = strcspn(argument, "=");

    for (const option_row *o = set->options; o->name != NULL; o++)
        if (strlen(o->name) == length && strncmp(o->name, argument, length) == 0)
            return o;
    return NULL;
}

bool options_count(const char *what, const char *text, uint64_t minimum, uint64_t maximum, uint64_t *value,
                   tool_fault *fault)
{
    const uint64_t limit = maximum == 0 ? UINT64_MAX : maximum;
    uint64_t number = 0;
    const char *c = text;

    for (; *c >= '0' && *c <= '9'; c++) {
        const uint64_t digit = (uint64_t)(*c - '0');
        if (number > (UINT64_MAX - digit) / 10)
            return fault_usage(fault, "%s is %s; it must be at most %" PRIu64, what, text, limit);
        number = number * 10 + digit;
    }
    if (c == text || *c != '\0')
        return fault_usage(fault, "%s is '%s'; it must be a whole number", what, text);
    if (number < minimum || number > limit)
        return fault_usage(fault, "%s is %s; it must be %" PRIu64 " to %" PRIu64, what, text, minimum, limit);
    *value = number;
    return true;
}

static bool parse_number(const option_row *o, const char *text, double *value, tool_fault *fault)
{
    char *end;
    const double number = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(number))
        return fault_usage(fault, "%s is '%s'; it must be a finite number", o->name, text);
    *value = number;
    return true;
}

static bool parse_choice(const option_row *o, const char *text, unsigned *value, tool_fault *fault)
{
    const size_t length = strlen(text);
    const char *word = o->argument;

    for (unsigned index = 1; *word != '\0'; index++) {
        const size_t word_length = strcspn(word, "|");
        if (word_length == length && memcmp(word, text, length) == 0) {
            *value = index;
            return true;
        }
        word += word_length + (word[word_length] == '|');
    }
    return fault_usage(fault, "%s is '%s'; it must be one of %s", o->name, text, o->argument);
}

static bool store(const option_row *o, const char *text, void *values, tool_fault *fault)
{
    void *field = (char *)values + o->offset;

    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return true;
    case OPTION_TEXT:
        *(const char **)field = text;
        return true;
    case OPTION_COUNT:
        return options_count(o->name, text, o->minimum, o->maximum, field, fault);
    case OPTION_NUMBER:
        return parse_number(o, text, field, fault);
    case OPTION_CHOICE:
        break;
    }
    return parse_choice(o, text, field, fault);
}

/* Parses the option at argv[*index] and moves *index to its last argument. */
static bool parse_option(const option_set *set, int argc, char **argv, int *index, bool given[MAX_OPTIONS],
                         void *values, tool_fault *fault)
{
    const char *argument = argv[*index], *text = strchr(argument, '=');
    const option_row *o = find_option(set, argument);

    if (o == NULL)
        return fault_usage(fault, "there is no option %.*s; --help lists those there are", (int)strcspn(argument, "="),
                           argument);
    if (given[o - set->options])
        return fault_usage(fault, "%s is given twice", o->name);
    given[o - set->options] = true;
    if (text != NULL)
        text++;
    if (o->kind == OPTION_FLAG) {
        if (text != NULL)
            return fault_usage(fault, "%s takes no value, but '%s' is given", o->name, text);
    } else if (text == NULL) {
        /* A following option is no value: `--out --lse x` lacks one. */
        if (*index + 1 >= argc || strncmp(argv[*index + 1], "--", 2) == 0)
            return fault_usage(fault, "%s needs a value: %s", o->name, o->argument);
        text = argv[++*index];
    }
    return store(o, text, values, fault);
}

bool options_parse(const option_set *set, int argc, char **argv, void *values, option_words *words, bool *help,
                   tool_fault *fault)
{
    bool given[MAX_OPTIONS] = {false}, only_words = false;

    *help = false;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(set);
            *help = true;
            return true;
        }
    if (words != NULL && (words->words = calloc((size_t)argc + 1, sizeof words->words[0])) == NULL)
        return fault_failed(fault, "no memory for %d arguments", argc);
    for (int i = 0; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!parse_option(set, argc, argv, &i, given, values, fault))
                return false;
        } else if (!set->takes_words) {
            return fault_usage(fault, "'%s' is no option, and nothing else is taken here", argv[i]);
        } else {
            words->words[words->count++] = argv[i];
        }
    }
    return true;
}

/* options.h - one parser for the options of every verb, driven by a table that also yields --help. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include "fault.h"
#include <stddef.h>
#include <stdint.h>

/* What an option's value is, and the type of the field it is stored in. */
typedef enum option_kind {
    OPTION_FLAG,   /* no value; bool */
    OPTION_TEXT,   /* const char *, pointing into argv */
    OPTION_COUNT,  /* uint64_t, decimal, minimum to maximum */
    OPTION_NUMBER, /* double, finite */
    OPTION_CHOICE  /* unsigned: 1 for the first word of `argument`, 2 for the second, ...; 0 where it is not given */
} option_kind;

typedef struct option_row {
    const char *name; /* with the dashes */
    option_kind kind;
    const char *argument;      /* what --help prints for the value: "FILE"; CHOICE: the words, "lse|mlo" */
    const char *help;          /* one line */
    size_t offset;             /* of the field in the struct of values */
    uint64_t minimum, maximum; /* COUNT; maximum 0: none */
} option_row;

/* What one verb takes. */
typedef struct option_set {
    const char *usage;         /* "clfd run --q FILE ... [options]" */
    const char *description;   /* printed after the usage by --help */
    const option_row *options; /* ends with a NULL name */
    bool takes_words;          /* arguments that are no options are allowed */
} option_set;

/* The words left over by the options, pointing into argv. */
typedef struct option_words {
    char **words; /* malloc'ed; the caller frees it */
    size_t count;
} option_words;

/* Parses argv[0..argc), which excludes the program and the verb: --name VALUE, --name=VALUE, --flag, and `--` before
 * words. values is the verb's struct, filled with its defaults beforehand. words may be NULL where the set takes none.
 * With --help the text is printed on stdout, *help is set and nothing else is looked at. Refused with exit code USAGE:
 * an unknown option, a value that is missing, malformed or out of range, an option given twice, a word
 * where none is taken. */
bool options_parse(const option_set *set, int argc, char **argv, void *values, option_words *words, bool *help,
                   tool_fault *fault);

/* Parses a whole decimal number of `what` in [minimum, maximum] (maximum 0: none). No sign, no blanks. */
bool options_count(const char *what, const char *text, uint64_t minimum, uint64_t maximum, uint64_t *value,
                   tool_fault *fault);

#endif

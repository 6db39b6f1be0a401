/* problem_words.h - the table of words that both parsing and printing of a problem go through. */
#ifndef TOOLS_PROBLEM_WORDS_H
#define TOOLS_PROBLEM_WORDS_H

#include "problem.h"
#include <stddef.h>

typedef enum word_kind {
    WORD_NUMBER,  /* b16: the name, then a number */
    WORD_VALUE,   /* splits=8 */
    WORD_REAL,    /* softcap=50 */
    WORD_SET,     /* causal: sets the field to the word's value */
    WORD_TYPE,    /* kvtype=f16 */
    WORD_PARTIAL, /* partial=mlo */
    WORD_RANGE    /* ragged=0..8192 */
} word_kind;

typedef struct problem_word {
    const char *name;
    word_kind kind;
    size_t offset;  /* of the field; words of one field exclude each other */
    uint32_t value; /* NUMBER, VALUE: the least; SET: what the field becomes; TYPE: what printing leaves out */
} problem_word;

/* In printing order. */
#define NUM_PROBLEM_WORDS 35
extern const problem_word problem_words[NUM_PROBLEM_WORDS];

/* The sizes come first, and are printed always or by a rule of their own. */
#define NUM_SIZE_WORDS 7

extern const char *const problem_partials[2];

#endif

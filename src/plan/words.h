/* words.h - the words of a tuning row, "key=value ...": what describe prints is what an override takes. Pure functions. */
#ifndef CLFD_WORDS_H
#define CLFD_WORDS_H

#include "plan/tuning.h"

/* "key=value ..." of the row. Returns what snprintf would. */
int clfd_tuning_print(const clfd_tuning *tuning, char *text, size_t bytes);

/* A number of a row, and the values that a kernel can be built with: what a tuner sweeps. */
typedef struct clfd_field {
    const char *name; /* the key of its word */
    uint32_t min, max;
    bool power_of_two;
    uint32_t value; /* in the row */
} clfd_field;

/* Number `index` of those that the row's family has, in the order of printing. False behind the last. */
bool clfd_words_field(const clfd_tuning *tuning, size_t index, clfd_field *field);

/* What an override asks for by family= and exchange=, or by a key that only one family has, and what chooses the row
 * that its other words change; -1 where it does not say. */
typedef struct clfd_wish {
    int64_t family, exchange;
} clfd_wish;

/* CLFD_ERROR_TUNING for a family or an exchange that there is not. */
clfd_status clfd_words_read_wish(const char *text, clfd_wish *wanted, const clfd_logger *logger);

/* Replaces the fields of a row that the text names. CLFD_ERROR_TUNING for a malformed word, a field that the row's
 * family has not, or a value that no kernel can be built with. */
clfd_status clfd_words_apply(const char *text, clfd_tuning *tuning, const clfd_logger *logger);

#endif

/* text.h - what names, SPECs and lists of words need of text. Pure functions; case is that of ASCII. */
#ifndef CLFD_TEXT_H
#define CLFD_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of somebody else's text, without blanks at its ends. */
typedef struct clfd_slice {
    const char *text;
    size_t length;
} clfd_slice;

/* The two arguments of "%.*s", cut so that a long text leaves room for the rule that it broke. */
#define CLFD_SLICE_ARGUMENTS(slice) (int)((slice).length < 80 ? (slice).length : 80), (slice).text

/* The whole of a text. */
clfd_slice clfd_slice_of(const char *text);

/* Cuts the first item off a list: *rest becomes what follows the separator. False where that was the last item, and
 * *rest is then left alone. */
bool clfd_slice_cut(clfd_slice *rest, char separator, clfd_slice *item);

/* Equal to `word`, in any case. */
bool clfd_slice_is(clfd_slice slice, const char *word);

/* Starts with `prefix`, in this very case; *rest is what follows it. */
bool clfd_slice_after(clfd_slice slice, const char *prefix, clfd_slice *rest);

/* A number of decimal digits and nothing else. False where it is not, or does not fit. */
bool clfd_slice_number(clfd_slice slice, uint64_t *value);

/* `fragment` stands somewhere in `text`, in any case. An empty fragment stands everywhere. */
bool clfd_text_contains(const char *text, clfd_slice fragment);

/* `word` is one of the words of a list separated by blanks, in this very case. */
bool clfd_text_has_word(const char *list, const char *word);

#endif

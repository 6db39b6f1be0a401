#include "device/text.h"
#include <string.h>

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* Not tolower(), whose answer depends on the application's locale. */
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool equal_in_any_case(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (lower(a[i]) != lower(b[i]))
            return false;
    return true;
}

static clfd_slice trim(const char *text, size_t length)
{
    while (length > 0 && is_blank(text[0])) {
        text++;
        length--;
    }
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    return (clfd_slice){text, length};
}

clfd_slice clfd_slice_of(const char *text) { return trim(text, strlen(text)); }

bool clfd_slice_cut(clfd_slice *rest, char separator, clfd_slice *item)
{
    const char *found = rest->length > 0 ? memchr(rest->text, separator, rest->length) : NULL;
    const size_t length = found != NULL ? (size_t)(found - rest->text) : rest->length;

    *item = trim(rest->text, length);
    if (found != NULL)
        *rest = trim(found + 1, rest->length - length - 1);
    return found != NULL;
}

bool clfd_slice_is(clfd_slice slice, const char *word)
{
    return slice.length == strlen(word) && equal_in_any_case(slice.text, word, slice.length);
}

bool clfd_slice_after(clfd_slice slice, const char *prefix, clfd_slice *rest)
{
    const size_t length = strlen(prefix);

    if (slice.length < length || memcmp(slice.text, prefix, length) != 0)
        return false;
    *rest = trim(slice.text + length, slice.length - length);
    return true;
}

bool clfd_slice_number(clfd_slice slice, uint64_t *value)
{
    uint64_t number = 0;

    if (slice.length == 0)
        return false;
    for (size_t i = 0; i < slice.length; i++) {
        const unsigned digit = (unsigned)slice.text[i] - '0';
        if (digit > 9 || number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *value = number;
    return true;
}

bool clfd_text_contains(const char *text, clfd_slice fragment)
{
    const size_t length = strlen(text);

    for (size_t start = 0; start + fragment.length <= length; start++)
        if (equal_in_any_case(text + start, fragment.text, fragment.length))
            return true;
    return false;
}

bool clfd_text_has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);

    for (const char *found = strstr(list, word); found != NULL; found = strstr(found + 1, word))
        if ((found == list || is_blank(found[-1])) && (found[length] == '\0' || is_blank(found[length])))
            return true;
    return false;
}

#include "npy_header.h"
#include <string.h>

/* Where the parser stands. */
typedef struct header_cursor {
    const char *at;
    const char *path;
    tool_fault *fault;
} header_cursor;

static bool malformed(header_cursor *cursor, const char *rule)
{
    return fault_failed(cursor->fault, "%s has a malformed .npy header at '%.20s': %s", cursor->path, cursor->at, rule);
}

static void skip_blanks(header_cursor *cursor) { cursor->at += strspn(cursor->at, " \t\r\n"); }

/* Consumes `word` after blanks, where it comes next. */
static bool accept(header_cursor *cursor, const char *word)
{
    skip_blanks(cursor);
    if (strncmp(cursor->at, word, strlen(word)) != 0)
        return false;
    cursor->at += strlen(word);
    return true;
}

/* A quoted string without escapes, into text[0..bytes). */
static bool parse_string(header_cursor *cursor, char *text, size_t bytes)
{
    char quote;
    size_t length;

    skip_blanks(cursor);
    quote = *cursor->at;
    if (quote != '\'' && quote != '"')
        return malformed(cursor, "a quoted string must come here");
    length = strcspn(cursor->at + 1, "'\"\\");
    if (cursor->at[1 + length] != quote || length >= bytes)
        return malformed(cursor, "the string does not end, or is none of those that may come here");
    memcpy(text, cursor->at + 1, length);
    text[length] = '\0';
    cursor->at += length + 2;
    return true;
}

static const struct {
    char kind;
    uint32_t item_bytes;
} element_types[] = {{'f', 2}, {'f', 4}, {'f', 8}, {'i', 1}, {'i', 2}, {'i', 4},
                     {'i', 8}, {'u', 1}, {'u', 2}, {'u', 4}, {'u', 8}, {'b', 1}};

static bool parse_descr(header_cursor *cursor, npy_array *array)
{
    char text[16];

    skip_blanks(cursor);
    if (*cursor->at == '[')
        return fault_failed(cursor->fault, "%s holds structured elements; they must be plain numbers", cursor->path);
    if (!parse_string(cursor, text, sizeof text))
        return false;
    if (text[0] == '>')
        return fault_failed(cursor->fault, "%s holds big-endian elements '%s'; they must be little-endian",
                            cursor->path, text);
    for (size_t i = 0; i < sizeof element_types / sizeof element_types[0]; i++)
        if (text[0] == (element_types[i].item_bytes == 1 ? '|' : '<') && text[1] == element_types[i].kind &&
            text[2] == (char)('0' + element_types[i].item_bytes) && text[3] == '\0') {
            array->kind = element_types[i].kind;
            array->item_bytes = element_types[i].item_bytes;
            return true;
        }
    return fault_failed(cursor->fault, "%s holds elements '%s'; they must be f2 f4 f8, i1 i2 i4 i8, u1 u2 u4 u8 or b1",
                        cursor->path, text);
}

static bool parse_order(header_cursor *cursor, npy_array *array)
{
    (void)array;
    if (accept(cursor, "False"))
        return true;
    if (accept(cursor, "True"))
        return fault_failed(cursor->fault, "%s is in Fortran order; it must be in C order", cursor->path);
    return malformed(cursor, "True or False must come here");
}

static bool parse_dim(header_cursor *cursor, npy_array *array)
{
    uint64_t value = 0;

    if (array->num_dims == NPY_MAX_DIMS)
        return fault_failed(cursor->fault, "%s has more than %d dimensions", cursor->path, NPY_MAX_DIMS);
    skip_blanks(cursor);
    if (*cursor->at < '0' || *cursor->at > '9')
        return malformed(cursor, "a dimension must be a whole number");
    for (; *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++) {
        const uint64_t digit = (uint64_t)(*cursor->at - '0');
        if (value > (INT64_MAX - digit) / 10)
            return malformed(cursor, "a dimension must fit in 63 bits");
        value = value * 10 + digit;
    }
    array->shape[array->num_dims++] = value;
    return true;
}

static bool parse_shape(header_cursor *cursor, npy_array *array)
{
    bool comma = true;

    if (!accept(cursor, "("))
        return malformed(cursor, "the shape must be a tuple");
    while (!accept(cursor, ")")) {
        if (!comma)
            return malformed(cursor, "a comma or a closing parenthesis must come here");
        if (!parse_dim(cursor, array))
            return false;
        comma = accept(cursor, ",");
    }
    if (array->num_dims == 1 && !comma)
        return malformed(cursor, "a tuple of one dimension needs a comma");
    return true;
}

static const struct {
    const char *name;
    bool (*parse)(header_cursor *cursor, npy_array *array);
} keys[] = {{"descr", parse_descr}, {"fortran_order", parse_order}, {"shape", parse_shape}};

#define NUM_KEYS (sizeof keys / sizeof keys[0])

static bool parse_pair(header_cursor *cursor, npy_array *array, bool seen[NUM_KEYS])
{
    char name[32];

    if (!parse_string(cursor, name, sizeof name))
        return false;
    for (size_t i = 0; i < NUM_KEYS; i++)
        if (strcmp(name, keys[i].name) == 0) {
            if (seen[i])
                return malformed(cursor, "a key is there twice");
            seen[i] = true;
            if (!accept(cursor, ":"))
                return malformed(cursor, "a colon must come here");
            return keys[i].parse(cursor, array);
        }
    return malformed(cursor, "the keys must be descr, fortran_order and shape");
}

bool npy_parse_header(const char *text, const char *path, npy_array *array, tool_fault *fault)
{
    header_cursor cursor = {text, path, fault};
    bool seen[NUM_KEYS] = {false}, comma = true;

    if (!accept(&cursor, "{"))
        return malformed(&cursor, "it must be a dictionary");
    while (!accept(&cursor, "}")) {
        if (!comma)
            return malformed(&cursor, "a comma or a closing brace must come here");
        if (!parse_pair(&cursor, array, seen))
            return false;
        comma = accept(&cursor, ",");
    }
    skip_blanks(&cursor);
    if (*cursor.at != '\0')
        return malformed(&cursor, "nothing may follow the dictionary");
    for (size_t i = 0; i < NUM_KEYS; i++)
        if (!seen[i])
            return fault_failed(fault, "%s has an .npy header without '%s'", path, keys[i].name);
    return true;
}

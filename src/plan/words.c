#include "plan/words.h"
#include "device/text.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES CLFD_FAMILY_LANES
#define VECTOR CLFD_FAMILY_VECTOR
#define MATRIX CLFD_FAMILY_MATRIX

static const char *const family_names[CLFD_NUM_FAMILIES] = {
    [CLFD_FAMILY_VECTOR] = "decode_vector",
    [CLFD_FAMILY_LANES] = "decode_lanes",
    [CLFD_FAMILY_MATRIX] = "decode_matrix",
};

static const char *const exchange_names[] = {
    [CLFD_EXCHANGE_LOCAL] = "local",
    [CLFD_EXCHANGE_SUB_GROUP] = "sub_group",
    [CLFD_EXCHANGE_PTX] = "ptx",
};
#define NUM_EXCHANGES (sizeof exchange_names / sizeof exchange_names[0])

/* The numbers of a row: the name that an override and describe use, and the values that a kernel can be built with. */
static const struct field {
    const char *name;
    size_t offset;
    uint32_t min, max;
    bool power_of_two;
    unsigned families; /* bit per family that has the field */
} fields[] = {
#define EVERY ((1u << CLFD_NUM_FAMILIES) - 1)
#define FIELD(name, member, min, max, power, families)                                                                 \
    {                                                                                                                  \
        name, offsetof(clfd_tuning, member), min, max, power, families                                                 \
    }
    FIELD("wg", work_group, 1, 1024, true, 1u << VECTOR | 1u << LANES),
    FIELD("wg", work_group, 32, 512, false, 1u << MATRIX),
    FIELD("lanes", lanes, 4, 32, true, 1u << LANES),
    FIELD("unroll", unroll, 1, 8, true, 1u << LANES),
    FIELD("ahead", ahead, 0, 2, false, 1u << LANES),
    FIELD("parts", parts, 1, 8, true, 1u << LANES),
    FIELD("parts", parts, 0, 4, true, 1u << MATRIX),
    FIELD("width", width, 8, 16, true, 1u << VECTOR),
    FIELD("tile", tile, 1, 256, true, 1u << VECTOR),
    FIELD("prefetch", prefetch, 0, 64, false, 1u << VECTOR),
    FIELD("heads", heads, 1, 64, false, 1u << VECTOR),
    FIELD("slots", slots, 2, 8, false, 1u << MATRIX),
    FIELD("rows", rows, 1, 8, false, 1u << VECTOR | 1u << LANES),
    FIELD("rows", rows, 1, 256, false, 1u << MATRIX),
    FIELD("groups", groups_per_unit, 1, 64, false, EVERY),
    FIELD("min_split", min_split, 1, 1u << 20, false, EVERY),
    FIELD("split_tile", split_tile, 1, 1u << 20, true, EVERY),
#undef FIELD
#undef EVERY
};
#define NUM_FIELDS (sizeof fields / sizeof fields[0])

static uint32_t get_field(const clfd_tuning *tuning, const struct field *field)
{
    uint32_t value;

    memcpy(&value, (const char *)tuning + field->offset, sizeof value);
    return value;
}

static void set_field(clfd_tuning *tuning, const struct field *field, uint32_t value)
{
    memcpy((char *)tuning + field->offset, &value, sizeof value);
}

bool clfd_words_field(const clfd_tuning *tuning, size_t index, clfd_field *field)
{
    for (size_t i = 0; i < NUM_FIELDS; i++)
        if ((fields[i].families >> tuning->family & 1u) != 0 && index-- == 0) {
            *field = (clfd_field){.name = fields[i].name,
                                  .min = fields[i].min,
                                  .max = fields[i].max,
                                  .power_of_two = fields[i].power_of_two,
                                  .value = get_field(tuning, &fields[i])};
            return true;
        }
    return false;
}

const char *clfd_family_name(clfd_family family) { return family_names[family]; }

int clfd_tuning_print(const clfd_tuning *tuning, char *text, size_t bytes)
{
    int length = 0;

    for (size_t i = 0; i < NUM_FIELDS; i++) {
        const size_t used = (size_t)length < bytes ? (size_t)length : bytes;
        if ((fields[i].families >> tuning->family & 1u) != 0)
            length += snprintf(text + used, bytes - used, "%s%s=%u", length > 0 ? " " : "", fields[i].name,
                               get_field(tuning, &fields[i]));
    }
    if (tuning->family != CLFD_FAMILY_VECTOR) {
        const size_t used = (size_t)length < bytes ? (size_t)length : bytes;
        length += snprintf(text + used, bytes - used, " exchange=%s", exchange_names[tuning->exchange]);
    }
    return length;
}

/* A word of an override, "key=value", whole and cut in two. */
typedef struct word {
    clfd_slice whole;
    char key[32], value[32];
} word;

/* Reads the next word of *text. False at the end; a word of another form has an empty key. */
static bool next_word(const char **text, word *w)
{
    const char *begin = *text + strspn(*text, " ");
    const size_t length = strcspn(begin, " ");
    const char *equals = memchr(begin, '=', length);

    *text = begin + length;
    if (length == 0)
        return false;
    memset(w, 0, sizeof *w);
    w->whole = (clfd_slice){begin, length};
    if (equals != NULL && (size_t)(equals - begin) < sizeof w->key &&
        length - (size_t)(equals - begin) <= sizeof w->value) {
        memcpy(w->key, begin, (size_t)(equals - begin));
        memcpy(w->value, equals + 1, length - (size_t)(equals - begin) - 1);
    }
    return true;
}

static bool find_name(const char *const *names, size_t count, const char *value, uint32_t *index)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], value) == 0) {
            *index = (uint32_t)i;
            return true;
        }
    return false;
}

/* The family that alone has a key, or -1. */
static int64_t family_of_key(const char *key)
{
    unsigned families = 0;

    for (size_t i = 0; i < NUM_FIELDS; i++)
        if (strcmp(fields[i].name, key) == 0)
            families |= fields[i].families;
    return families == 1u << LANES ? LANES : families == 1u << MATRIX ? MATRIX : families == 1u << VECTOR ? VECTOR : -1;
}

/* Whether a key stands in the text before `end`. */
static bool stands_before(const char *text, const char *end, const char *key)
{
    word w;

    for (const char *at = text; next_word(&at, &w) && w.whole.text < end;)
        if (strcmp(w.key, key) == 0)
            return true;
    return false;
}

clfd_status clfd_words_read_wish(const char *text, clfd_wish *wanted, const clfd_logger *logger)
{
    word w;
    uint32_t index;
    int64_t implied = -1;

    wanted->family = wanted->exchange = -1;
    for (const char *at = text; next_word(&at, &w);) {
        if (w.key[0] != '\0' && stands_before(text, w.whole.text, w.key))
            return clfd_fail(logger, CLFD_ERROR_TUNING, "tuning is \"%s\"; %s may stand there once", text, w.key);
        if (strcmp(w.key, "family") == 0) {
            if (!find_name(family_names, CLFD_NUM_FAMILIES, w.value, &index))
                return clfd_fail(logger, CLFD_ERROR_TUNING,
                                 "tuning family is \"%s\"; it must be decode_vector, decode_lanes or decode_matrix",
                                 w.value);
            wanted->family = index;
        } else if (strcmp(w.key, "exchange") == 0) {
            if (!find_name(exchange_names, NUM_EXCHANGES, w.value, &index))
                return clfd_fail(logger, CLFD_ERROR_TUNING,
                                 "tuning exchange is \"%s\"; it must be local, sub_group or ptx", w.value);
            wanted->exchange = index;
        } else if (wanted->family < 0) {
            implied = implied < 0 ? family_of_key(w.key) : implied;
        }
    }
    if (wanted->family < 0)
        wanted->family = implied;
    return CLFD_SUCCESS;
}

/* The field of a row's family that a word names; another family's where that has none, or NULL. */
static const struct field *find_field(const char *name, clfd_family family)
{
    const struct field *found = NULL;

    for (size_t i = 0; i < NUM_FIELDS; i++) {
        if (strcmp(name, fields[i].name) != 0)
            continue;
        found = &fields[i];
        if ((found->families >> family & 1u) != 0)
            return found;
    }
    return found;
}

static clfd_status apply_word(const word *w, clfd_tuning *tuning, const clfd_logger *logger)
{
    const struct field *const field = find_field(w->key, tuning->family);
    char *end;

    if (strcmp(w->key, "family") == 0 || strcmp(w->key, "exchange") == 0)
        return CLFD_SUCCESS;
    if (field == NULL)
        return clfd_fail(logger, CLFD_ERROR_TUNING, "tuning has the word \"%.*s\"; it is no key=value of a tuning row",
                         CLFD_SLICE_ARGUMENTS(w->whole));
    if ((field->families >> tuning->family & 1u) == 0)
        return clfd_fail(logger, CLFD_ERROR_TUNING, "tuning %s=%s; %s has no %s", w->key, w->value,
                         family_names[tuning->family], w->key);
    const unsigned long value = strtoul(w->value, &end, 10);
    if (w->value[0] < '0' || w->value[0] > '9' || *end != '\0' || value < field->min || value > field->max ||
        (field->power_of_two && (value & (value - 1)) != 0))
        return clfd_fail(logger, CLFD_ERROR_TUNING, "tuning %s=%s; it must be %s from %u to %u", w->key, w->value,
                         field->power_of_two ? "a power of two" : "a number", field->min, field->max);
    set_field(tuning, field, (uint32_t)value);
    return CLFD_SUCCESS;
}

clfd_status clfd_words_apply(const char *text, clfd_tuning *tuning, const clfd_logger *logger)
{
    word w;

    for (const char *at = text; next_word(&at, &w);) {
        const clfd_status status = apply_word(&w, tuning, logger);
        if (status != CLFD_SUCCESS)
            return status;
    }
    return CLFD_SUCCESS;
}

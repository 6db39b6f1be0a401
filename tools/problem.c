#include "problem.h"
#include "options.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef enum word_kind {
    WORD_NUMBER,  /* b16: the name, then a number */
    WORD_VALUE,   /* splits=8 */
    WORD_FLAG,    /* causal */
    WORD_TYPE,    /* kvtype=f16 */
    WORD_PARTIAL, /* partial=mlo */
    WORD_RANGE,   /* ragged=0..8192 */
    WORD_LATER    /* known, refused */
} word_kind;

#define FIELD(name) offsetof(bench_problem, name)
#define MAX_NUMBER 0x7fffffffu

/* In printing order; the sentence of a later word is its `later`. */
static const struct word {
    const char *name;
    word_kind kind;
    size_t offset;
    uint32_t minimum;
    const char *later;
} words[] = {
    /* Sizes. */
    {"b", WORD_NUMBER, FIELD(batch), 1, NULL},
    {"q", WORD_NUMBER, FIELD(q_len), 1, NULL},
    {"hq", WORD_NUMBER, FIELD(num_q_heads), 1, NULL},
    {"hkv", WORD_NUMBER, FIELD(num_kv_heads), 1, NULL},
    {"d", WORD_NUMBER, FIELD(head_dim), 1, NULL},
    {"dv", WORD_NUMBER, FIELD(head_dim_v), 1, NULL},
    {"kv", WORD_NUMBER, FIELD(kv_len), 1, NULL},
    /* Types and options. */
    {"kvtype=", WORD_TYPE, FIELD(kv_type), 0, NULL},
    {"out=", WORD_TYPE, FIELD(out_type), 0, NULL},
    {"causal", WORD_FLAG, FIELD(causal), 0, NULL},
    {"v_from_k", WORD_FLAG, FIELD(v_from_k), 0, NULL},
    {"partial=", WORD_PARTIAL, FIELD(partial), 0, NULL},
    {"splits=", WORD_VALUE, FIELD(num_splits), 0, NULL},
    {"tokens=", WORD_VALUE, FIELD(split_tokens), 1, NULL},
    {"ragged=", WORD_RANGE, FIELD(ragged), 0, NULL},
    /* Later. */
    {"page=", WORD_LATER, 0, 0, "paged K and V"},
    {"window=", WORD_LATER, 0, 0, "a sliding window"},
    {"softcap=", WORD_LATER, 0, 0, "softcap"},
    {"sinks", WORD_LATER, 0, 0, "attention sinks"},
    {"alibi", WORD_LATER, 0, 0, "ALiBi"},
    {"bias", WORD_LATER, 0, 0, "a score bias"},
    {"mask", WORD_LATER, 0, 0, "a mask"},
};

#define NUM_WORDS (sizeof words / sizeof words[0])

static const char *const later_types[] = {"q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "int8", "int4", "fp8"};

static const char *const partial_names[] = {[CLFD_PARTIAL_LSE] = "lse", [CLFD_PARTIAL_MLO] = "mlo"};

static void *field_of(bench_problem *problem, const struct word *word) { return (char *)problem + word->offset; }

static uint32_t value_of(const bench_problem *problem, const struct word *word)
{
    uint32_t value;

    memcpy(&value, (const char *)problem + word->offset, sizeof value);
    return value;
}

/* The type of that name; DEFAULT where there is none. */
static clfd_type find_type(const char *name)
{
    for (clfd_type type = CLFD_TYPE_F32; clfd_type_name(type) != NULL; type++)
        if (strcmp(clfd_type_name(type), name) == 0)
            return type;
    return CLFD_TYPE_DEFAULT;
}

static bool parse_type(const char *text, const char *name, clfd_type *type, tool_fault *fault)
{
    for (size_t i = 0; i < sizeof later_types / sizeof later_types[0]; i++)
        if (strcmp(name, later_types[i]) == 0)
            return fault_usage(fault, "%s is not implemented yet: quantised K and V come later", text);
    *type = find_type(name);
    if (*type == CLFD_TYPE_DEFAULT)
        return fault_usage(fault, "%s is malformed; the type must be f32, f16 or bf16", text);
    return true;
}

static bool parse_partial(const char *text, const char *name, clfd_partial *partial, tool_fault *fault)
{
    for (size_t i = 0; i < sizeof partial_names / sizeof partial_names[0]; i++)
        if (strcmp(name, partial_names[i]) == 0) {
            *partial = (clfd_partial)i;
            return true;
        }
    return fault_usage(fault, "%s is malformed; the format must be lse or mlo", text);
}

static bool parse_value(const char *text, const char *digits, uint32_t minimum, uint32_t *value, tool_fault *fault)
{
    uint64_t number;

    if (!options_count(text, digits, minimum, MAX_NUMBER, &number, fault))
        return false;
    *value = (uint32_t)number;
    return true;
}

static bool parse_range(const char *text, const char *range, bench_problem *problem, tool_fault *fault)
{
    char low[16];
    const char *dots = strstr(range, "..");

    if (dots == NULL || (size_t)(dots - range) >= sizeof low)
        return fault_usage(fault, "%s is malformed; it must be ragged=LO..HI", text);
    memcpy(low, range, (size_t)(dots - range));
    low[dots - range] = '\0';
    problem->ragged = 1;
    return parse_value(text, low, 0, &problem->ragged_low, fault) &&
           parse_value(text, dots + 2, 0, &problem->ragged_high, fault);
}

/* The row of the table that a word belongs to; NULL where there is none. A name that a number follows must be followed
 * by a digit, so that `d128` is no `dv`. */
static const struct word *find_word(const char *text)
{
    for (size_t i = 0; i < NUM_WORDS; i++) {
        const size_t length = strlen(words[i].name);
        const bool valued = words[i].name[length - 1] == '=';
        if (strncmp(text, words[i].name, length) != 0)
            continue;
        if (words[i].kind == WORD_NUMBER ? text[length] >= '0' && text[length] <= '9' : valued || text[length] == '\0')
            return &words[i];
    }
    return NULL;
}

static bool parse_word(const char *text, bench_problem *problem, bool seen[NUM_WORDS + 1], tool_fault *fault)
{
    const clfd_type type = find_type(text);
    const struct word *word = find_word(text);
    const size_t index = type != CLFD_TYPE_DEFAULT ? NUM_WORDS : (size_t)(word - words);
    const char *rest;

    if (type == CLFD_TYPE_DEFAULT && word == NULL)
        return fault_usage(fault, "'%s' is no word of a problem; see clfd bench --help", text);
    if (seen[index])
        return fault_usage(fault, "'%s' gives a second time what a problem gives once", text);
    seen[index] = true;
    if (type != CLFD_TYPE_DEFAULT) {
        problem->type = type;
        return true;
    }
    rest = text + strlen(word->name);
    switch (word->kind) {
    case WORD_NUMBER:
    case WORD_VALUE:
        return parse_value(text, rest, word->minimum, field_of(problem, word), fault);
    case WORD_FLAG:
        *(uint32_t *)field_of(problem, word) = 1;
        return true;
    case WORD_TYPE:
        return parse_type(text, rest, field_of(problem, word), fault);
    case WORD_PARTIAL:
        return parse_partial(text, rest, field_of(problem, word), fault);
    case WORD_RANGE:
        return parse_range(text, rest, problem, fault);
    case WORD_LATER:
        break;
    }
    return fault_usage(fault, "'%s' is not implemented yet: %s will come later", text, word->later);
}

/* Fills in the defaults and checks what involves several words. */
static bool complete(bench_problem *problem, tool_fault *fault)
{
    if (problem->num_q_heads == 0 || problem->head_dim == 0 || problem->kv_len == 0)
        return fault_usage(fault, "the problem lacks %s; hq, d and kv are required",
                           problem->num_q_heads == 0 ? "hq"
                           : problem->head_dim == 0  ? "d"
                                                     : "kv");
    if (problem->num_kv_heads == 0)
        problem->num_kv_heads = problem->num_q_heads;
    if (problem->head_dim_v == 0)
        problem->head_dim_v = problem->head_dim;
    if (problem->kv_type == CLFD_TYPE_DEFAULT)
        problem->kv_type = problem->type;
    if (problem->out_type == CLFD_TYPE_DEFAULT)
        problem->out_type = problem->type;
    if (problem->num_splits > 0 && problem->split_tokens > 0)
        return fault_usage(fault, "splits=%u and tokens=%u exclude each other", problem->num_splits,
                           problem->split_tokens);
    if (problem->ragged && (problem->ragged_low > problem->ragged_high || problem->ragged_high > problem->kv_len))
        return fault_usage(fault, "ragged=%u..%u must be LO..HI with LO <= HI <= kv, which is %u", problem->ragged_low,
                           problem->ragged_high, problem->kv_len);
    return true;
}

bool problem_parse(const char *text, bench_problem *result, tool_fault *fault)
{
    bench_problem parsed = {.batch = 1, .q_len = 1, .type = CLFD_TYPE_F32};
    bool seen[NUM_WORDS + 1] = {false};
    char word[64];

    for (const char *at = text + strspn(text, " \t\n"); *at != '\0'; at += strspn(at, " \t\n")) {
        const size_t length = strcspn(at, " \t\n");
        if (length >= sizeof word)
            return fault_usage(fault, "'%.60s...' is no word of a problem; see clfd bench --help", at);
        memcpy(word, at, length);
        word[length] = '\0';
        at += length;
        if (!parse_word(word, &parsed, seen, fault))
            return false;
    }
    if (!complete(&parsed, fault))
        return false;
    *result = parsed;
    return true;
}

const char *problem_print(const bench_problem *problem, char text[PROBLEM_BYTES])
{
    size_t used = (size_t)snprintf(text, PROBLEM_BYTES, "b%u q%u hq%u hkv%u d%u", problem->batch, problem->q_len,
                                   problem->num_q_heads, problem->num_kv_heads, problem->head_dim);

    if (problem->head_dim_v != problem->head_dim)
        used += (size_t)snprintf(text + used, PROBLEM_BYTES - used, " dv%u", problem->head_dim_v);
    used +=
        (size_t)snprintf(text + used, PROBLEM_BYTES - used, " kv%u %s", problem->kv_len, clfd_type_name(problem->type));
    for (size_t i = 0; i < NUM_WORDS; i++) {
        const uint32_t value = value_of(problem, &words[i]);
        const size_t room = PROBLEM_BYTES - used;
        if (words[i].kind == WORD_TYPE && value != (uint32_t)problem->type)
            used += (size_t)snprintf(text + used, room, " %s%s", words[i].name, clfd_type_name((clfd_type)value));
        else if (words[i].kind == WORD_FLAG && value != 0)
            used += (size_t)snprintf(text + used, room, " %s", words[i].name);
        else if (words[i].kind == WORD_PARTIAL && value != CLFD_PARTIAL_LSE)
            used += (size_t)snprintf(text + used, room, " %s%s", words[i].name, partial_names[value]);
        else if (words[i].kind == WORD_VALUE && value != 0)
            used += (size_t)snprintf(text + used, room, " %s%u", words[i].name, value);
        else if (words[i].kind == WORD_RANGE && value != 0)
            used += (size_t)snprintf(text + used, room, " %s%u..%u", words[i].name, problem->ragged_low,
                                     problem->ragged_high);
    }
    return text;
}

clfd_attention problem_attention(const bench_problem *problem)
{
    return (clfd_attention){
        .struct_size = sizeof(clfd_attention),
        .max_batch = problem->batch,
        .q_len = problem->q_len,
        .num_q_heads = problem->num_q_heads,
        .num_kv_heads = problem->num_kv_heads,
        .head_dim = problem->head_dim,
        .head_dim_v = problem->head_dim_v,
        .q_type = problem->type,
        .k_type = problem->kv_type,
        .v_type = problem->kv_type,
        .out_type = problem->out_type,
        .max_kv_len = problem->kv_len,
        .causal = problem->causal,
        .v_from_k = problem->v_from_k,
        .partial = problem->partial,
        .split_policy = problem->num_splits > 0     ? CLFD_SPLIT_COUNT
                        : problem->split_tokens > 0 ? CLFD_SPLIT_TOKENS
                                                    : CLFD_SPLIT_AUTO,
        .split_size = problem->num_splits > 0 ? problem->num_splits : problem->split_tokens,
    };
}

#include "options.h"
#include "problem_words.h"
#include "type_names.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER 0x7fffffffu

static void *field_of(bench_problem *problem, const problem_word *word) { return (char *)problem + word->offset; }

static bool is_plain(clfd_type type) { return type >= CLFD_TYPE_F32 && type <= CLFD_TYPE_BF16; }

static bool is_grouped(clfd_type type) { return type == CLFD_TYPE_INT8 || type == CLFD_TYPE_INT4; }

static bool parse_type(const char *text, const char *name, clfd_type *type, tool_fault *fault)
{
    *type = type_find(name, strlen(name));
    if (*type == CLFD_TYPE_DEFAULT)
        return fault_usage(fault, "%s is malformed; the type must be " TYPE_NAMES, text);
    return true;
}

static bool parse_partial(const char *text, const char *name, clfd_partial *partial, tool_fault *fault)
{
    for (size_t i = 0; i < sizeof problem_partials / sizeof problem_partials[0]; i++)
        if (strcmp(name, problem_partials[i]) == 0) {
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

static bool parse_real(const char *text, const char *digits, float *value, tool_fault *fault)
{
    char *end;

    *value = strtof(digits, &end);
    if (end == digits || *end != '\0' || !(*value > 0.0f) || !isfinite(*value))
        return fault_usage(fault, "%s is malformed; the number must be positive and finite", text);
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
static const problem_word *find_word(const char *text)
{
    for (size_t i = 0; i < NUM_PROBLEM_WORDS; i++) {
        const problem_word *word = &problem_words[i];
        const size_t length = strlen(word->name);
        const bool valued = word->name[length - 1] == '=';
        if (strncmp(text, word->name, length) != 0)
            continue;
        if (word->kind == WORD_NUMBER ? text[length] >= '0' && text[length] <= '9' : valued || text[length] == '\0')
            return word;
    }
    return NULL;
}

static bool store_word(const char *text, const problem_word *word, bench_problem *problem, tool_fault *fault)
{
    const char *rest = text + strlen(word->name);
    void *field = field_of(problem, word);

    switch (word->kind) {
    case WORD_NUMBER:
    case WORD_VALUE:
        return parse_value(text, rest, word->value, field, fault);
    case WORD_REAL:
        return parse_real(text, rest, field, fault);
    case WORD_SET:
        memcpy(field, &word->value, sizeof word->value);
        return true;
    case WORD_TYPE:
        return parse_type(text, rest, field, fault);
    case WORD_PARTIAL:
        return parse_partial(text, rest, field, fault);
    case WORD_RANGE:
        break;
    }
    return parse_range(text, rest, problem, fault);
}

/* seen[offset]: a word of the field at this offset stood before. */
static bool parse_word(const char *text, bench_problem *problem, bool seen[sizeof(bench_problem)], tool_fault *fault)
{
    const clfd_type type = type_find(text, strlen(text));
    const problem_word *word = find_word(text);
    const size_t offset = is_plain(type) ? offsetof(bench_problem, type) : word != NULL ? word->offset : 0;

    if (!is_plain(type) && word == NULL)
        return fault_usage(fault, "'%s' is no word of a problem; see clfd bench --help", text);
    if (seen[offset])
        return fault_usage(fault, "'%s' gives a second time what a problem gives once", text);
    seen[offset] = true;
    if (!is_plain(type))
        return store_word(text, word, problem, fault);
    problem->type = type;
    return true;
}

static bool complete_types(bench_problem *problem, tool_fault *fault)
{
    const clfd_type both = problem->kv_type;

    if (both != CLFD_TYPE_DEFAULT && (problem->k_type != CLFD_TYPE_DEFAULT || problem->v_type != CLFD_TYPE_DEFAULT))
        return fault_usage(fault, "kvtype=%s and ktype= or vtype= exclude each other", clfd_type_name(both));
    if (problem->k_type == CLFD_TYPE_DEFAULT)
        problem->k_type = both != CLFD_TYPE_DEFAULT ? both : problem->type;
    if (problem->v_type == CLFD_TYPE_DEFAULT)
        problem->v_type = both != CLFD_TYPE_DEFAULT ? both : problem->type;
    problem->kv_type = problem->k_type == problem->v_type ? problem->k_type : CLFD_TYPE_DEFAULT;
    if (problem->out_type == CLFD_TYPE_DEFAULT)
        problem->out_type = problem->type;
    if (!is_plain(problem->out_type))
        return fault_usage(fault, "out=%s must be f32, f16 or bf16", clfd_type_name(problem->out_type));
    if (problem->bias_type > CLFD_TYPE_F16)
        return fault_usage(fault, "bias=%s must be f32 or f16", clfd_type_name(problem->bias_type));
    if ((problem->quant_group > 0 || problem->quant_zeros) && !is_grouped(problem->k_type) &&
        !is_grouped(problem->v_type))
        return fault_usage(fault, "kvgroup= and kvzeros are of the types int8 and int4");
    return true;
}

/* What involves several words. */
static bool check_words(const bench_problem *p, tool_fault *fault)
{
    const struct {
        bool is_given;
        const char *name;
    } apart[] = {
        {p->window > 0, "window"},           {p->alibi, "alibi"},         {p->bias_type != 0, "bias"},
        {p->mask == CLFD_MASK_BOOL, "mask"}, {p->positions, "positions"}, {p->kv_start, "kv_start"},
        {p->cache_rows > 0, "cache_rows"},   {p->shared_kv, "shared_kv"},
    };

    if (p->num_splits > 0 && p->split_tokens > 0)
        return fault_usage(fault, "splits=%u and tokens=%u exclude each other", p->num_splits, p->split_tokens);
    if (p->ragged && (p->ragged_low > p->ragged_high || p->ragged_high > p->kv_len))
        return fault_usage(fault, "ragged=%u..%u must be LO..HI with LO <= HI <= kv, which is %u", p->ragged_low,
                           p->ragged_high, p->kv_len);
    if (p->csr && p->page_size == 0)
        return fault_usage(fault, "csr is given without page=");
    if (p->cache_rows > 0 && p->cache_rows < (p->shared_kv ? 1 : p->batch))
        return fault_usage(fault, "cache_rows=%u must be at least b, which is %u", p->cache_rows, p->batch);
    if (p->prefix > 0 && p->out_type != p->type && p->out_type != CLFD_TYPE_F32)
        return fault_usage(fault, "out=%s and prefix=%u exclude each other; parts give f32",
                           clfd_type_name(p->out_type), p->prefix);
    for (size_t i = 0; i < sizeof apart / sizeof apart[0] && p->prefix > 0; i++)
        if (apart[i].is_given)
            return fault_usage(fault, "prefix=%u and %s exclude each other", p->prefix, apart[i].name);
    return true;
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
    return complete_types(problem, fault) && check_words(problem, fault);
}

bool problem_parse(const char *text, bench_problem *result, tool_fault *fault)
{
    bench_problem parsed = {.batch = 1, .q_len = 1, .type = CLFD_TYPE_F32};
    bool seen[sizeof(bench_problem)] = {false};
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

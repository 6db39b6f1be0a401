#include "device/spec.h"
#include <stdio.h>
#include <string.h>

/* The sentence for a broken rule begins with the SPEC. */
#define SPEC_FAIL(logger, whole, format, ...)                                                                          \
    clfd_fail(logger, CLFD_ERROR_DEVICE_SPEC, "device SPEC '%.*s': " format, CLFD_SLICE_ARGUMENTS(whole), __VA_ARGS__)

#define ONE_OF_THE_TERMS "type=, vendor=, name=, platform=, mem>=, index= or the word gpu, cpu or accelerator"

/* Readers of the value of a term; false where it breaks the term's rule. */

static bool read_type(clfd_slice value, void *field)
{
    static const struct {
        const char *word;
        cl_device_type type;
    } types[] = {
        {"gpu", CL_DEVICE_TYPE_GPU},
        {"cpu", CL_DEVICE_TYPE_CPU},
        {"accelerator", CL_DEVICE_TYPE_ACCELERATOR},
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (clfd_slice_is(value, types[i].word)) {
            *(cl_device_type *)field = types[i].type;
            return true;
        }
    }
    return false;
}

static bool read_fragment(clfd_slice value, void *field)
{
    *(clfd_slice *)field = value;
    return value.length > 0;
}

static bool read_memory(clfd_slice value, void *field)
{
    static const char *const units[] = {"K", "M", "G", "T"};
    unsigned shift = 0;
    uint64_t number;

    for (unsigned i = 0; i < sizeof units / sizeof units[0] && value.length > 0; i++)
        if (clfd_slice_is((clfd_slice){value.text + value.length - 1, 1}, units[i]))
            shift = 10 * (i + 1);
    if (shift > 0)
        value.length--;
    if (!clfd_slice_number(value, &number) || number > UINT64_MAX >> shift)
        return false;
    *(uint64_t *)field = number << shift;
    return true;
}

static bool read_index(clfd_slice value, void *field)
{
    uint64_t number;

    if (!clfd_slice_number(value, &number) || number > UINT32_MAX)
        return false;
    *(int64_t *)field = (int64_t)number;
    return true;
}

static const struct {
    const char *key;
    bool (*read)(clfd_slice value, void *field);
    size_t field;
    const char *rule;
} terms[] = {
    {"type=", read_type, offsetof(clfd_spec, type), "gpu, cpu or accelerator"},
    {"vendor=", read_fragment, offsetof(clfd_spec, vendor), "a part of the vendor's name"},
    {"name=", read_fragment, offsetof(clfd_spec, name), "a part of the device's name"},
    {"platform=", read_fragment, offsetof(clfd_spec, platform), "a part of the platform's name"},
    {"mem>=", read_memory, offsetof(clfd_spec, min_memory), "a whole number of bytes below 2^64, or of K, M, G or T"},
    {"index=", read_index, offsetof(clfd_spec, index), "a whole number from 0 to 4294967295"},
};
#define NUM_TERMS (sizeof terms / sizeof terms[0])

/* One term of a list. `seen` has a bit for each row of the table that was used. */
static clfd_status parse_term(clfd_slice whole, clfd_slice term, clfd_spec *spec, unsigned *seen,
                              const clfd_logger *logger)
{
    clfd_slice value = term;
    cl_device_type type;
    size_t row = 0;

    if (term.length == 0)
        return SPEC_FAIL(logger, whole, "a term is empty; commas stand only between terms: %s", ONE_OF_THE_TERMS);
    /* A type word alone is the value of the first row. */
    if (!read_type(term, &type))
        while (row < NUM_TERMS && !clfd_slice_after(term, terms[row].key, &value))
            row++;
    if (row == NUM_TERMS)
        return SPEC_FAIL(logger, whole, "'%.*s' is no term; a term is %s", CLFD_SLICE_ARGUMENTS(term),
                         ONE_OF_THE_TERMS);
    if ((*seen & 1u << row) != 0)
        return SPEC_FAIL(logger, whole, "%s is given twice; each term may stand once", terms[row].key);
    *seen |= 1u << row;
    if (!terms[row].read(value, (char *)spec + terms[row].field))
        return SPEC_FAIL(logger, whole, "%s is followed by '%.*s'; it takes %s", terms[row].key,
                         CLFD_SLICE_ARGUMENTS(value), terms[row].rule);
    return CLFD_SUCCESS;
}

static clfd_status parse_pair(clfd_slice whole, clfd_spec *spec, const clfd_logger *logger)
{
    clfd_slice device = whole, platform;
    int64_t platform_index, device_index;

    clfd_slice_cut(&device, ':', &platform);
    if (!read_index(platform, &platform_index) || !read_index(device, &device_index))
        return SPEC_FAIL(logger, whole, "%s",
                         "an index pair is platform:device, two whole numbers from 0 to 4294967295");
    snprintf(spec->pair, sizeof spec->pair, "%u:%u", (unsigned)platform_index, (unsigned)device_index);
    return CLFD_SUCCESS;
}

/* Meant as an index pair: nothing but digits and signs before a colon. Names hold colons too ("gfx90a:sramecc+"). */
static bool looks_like_pair(clfd_slice whole)
{
    size_t i = 0;

    while (i < whole.length && strchr("+-0123456789", whole.text[i]) != NULL)
        i++;
    return i < whole.length && whole.text[i] == ':';
}

clfd_status clfd_spec_parse(const char *text, clfd_spec *spec, const clfd_logger *logger)
{
    const clfd_slice whole = clfd_slice_of(text);
    clfd_slice rest = whole, term;
    clfd_status status = CLFD_SUCCESS;
    unsigned seen = 0;
    bool more = true;

    *spec = (clfd_spec){.whole = whole, .index = -1};
    if (whole.length == 0)
        return SPEC_FAIL(logger, whole, "%s", "it is empty; it must name a device");
    if (looks_like_pair(whole))
        return parse_pair(whole, spec, logger);
    if (strpbrk(text, "=<>") == NULL && whole.text[0] != ',' && whole.text[whole.length - 1] != ',') {
        if (!read_type(whole, &spec->type))
            spec->fragment = whole;
        return CLFD_SUCCESS;
    }
    while (more && status == CLFD_SUCCESS) {
        more = clfd_slice_cut(&rest, ',', &term);
        status = parse_term(whole, term, spec, &seen, logger);
    }
    return status;
}

bool clfd_spec_matches(const clfd_spec *spec, const clfd_device_info *info)
{
    const clfd_slice any = spec->fragment;

    return (spec->pair[0] == '\0' || strcmp(spec->pair, info->spec) == 0) &&
           (spec->type == 0 || (spec->type & info->type) != 0) &&
           (clfd_text_contains(info->vendor, any) || clfd_text_contains(info->name, any) ||
            clfd_text_contains(info->platform_name, any)) &&
           clfd_text_contains(info->vendor, spec->vendor) && clfd_text_contains(info->name, spec->name) &&
           clfd_text_contains(info->platform_name, spec->platform) && info->memory_bytes >= spec->min_memory;
}

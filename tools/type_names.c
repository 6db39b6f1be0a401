#include "type_names.h"
#include <string.h>

static const struct {
    const char *name;
    clfd_type type;
} aliases[] = {
    {"fp8", CLFD_TYPE_FP8_E4M3},
    {"e4m3", CLFD_TYPE_FP8_E4M3},
    {"e5m2", CLFD_TYPE_FP8_E5M2},
};

static bool same(const char *known, const char *name, size_t length)
{
    return strlen(known) == length && memcmp(known, name, length) == 0;
}

clfd_type type_find(const char *name, size_t length)
{
    for (clfd_type type = CLFD_TYPE_F32; clfd_type_name(type) != NULL; type++)
        if (same(clfd_type_name(type), name, length))
            return type;
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (same(aliases[i].name, name, length))
            return aliases[i].type;
    return CLFD_TYPE_DEFAULT;
}

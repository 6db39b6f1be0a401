#include "device/caps.h"
#include "device/text.h"
#include <stddef.h>
#include <stdio.h>

/* The words of CLFD_DISABLE. `base` is the upgrade without which this one cannot be; itself where there is none. */
static const struct {
    const char *word;
    size_t member, base;
} upgrades[] = {
    {"subgroups", offsetof(clfd_caps, sub_groups), offsetof(clfd_caps, sub_groups)},
    {"shuffle", offsetof(clfd_caps, shuffle), offsetof(clfd_caps, sub_groups)},
    {"ptx", offsetof(clfd_caps, ptx), offsetof(clfd_caps, ptx)},
    {"matrix", offsetof(clfd_caps, matrix), offsetof(clfd_caps, ptx)},
    {"fused_merge", offsetof(clfd_caps, fused_merge), offsetof(clfd_caps, ptx)},
    {"cache_hints", offsetof(clfd_caps, cache_hints), offsetof(clfd_caps, ptx)},
    {"prefetch", offsetof(clfd_caps, prefetch), offsetof(clfd_caps, prefetch)},
    {"fp16", offsetof(clfd_caps, fp16), offsetof(clfd_caps, fp16)},
};
#define NUM_UPGRADES (sizeof upgrades / sizeof upgrades[0])

static bool *flag_at(clfd_caps *caps, size_t member) { return (bool *)((char *)caps + member); }

static clfd_status refuse(clfd_slice word, const clfd_logger *logger)
{
    char words[128] = "";
    size_t used = 0;

    for (size_t i = 0; i < NUM_UPGRADES; i++)
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", i > 0 ? ", " : "", upgrades[i].word);
    return clfd_fail(logger, CLFD_ERROR_DISABLE_LIST, "CLFD_DISABLE names '%.*s'; it takes, separated by commas: %s",
                     CLFD_SLICE_ARGUMENTS(word), words);
}

clfd_status clfd_caps_disable(clfd_caps *caps, const char *list, const clfd_logger *logger)
{
    clfd_caps left = *caps;
    clfd_slice rest = clfd_slice_of(list != NULL ? list : ""), word;
    bool more = rest.length > 0;

    while (more) {
        size_t i = 0;

        more = clfd_slice_cut(&rest, ',', &word);
        while (i < NUM_UPGRADES && !clfd_slice_is(word, upgrades[i].word))
            i++;
        if (i == NUM_UPGRADES)
            return refuse(word, logger);
        *flag_at(&left, upgrades[i].member) = false;
    }
    for (size_t i = 0; i < NUM_UPGRADES; i++)
        if (!*flag_at(&left, upgrades[i].base))
            *flag_at(&left, upgrades[i].member) = false;
    *caps = left;
    return CLFD_SUCCESS;
}

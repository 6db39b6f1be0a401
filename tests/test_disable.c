#include "device/caps.h"
#include "support/log.h"
#include "support/suite.h"
#include <string.h>

static const clfd_caps everything = {
    .fp16 = true,
    .sub_groups = true,
    .shuffle = true,
    .ptx = true,
    .matrix = true,
    .fused_merge = true,
    .cache_hints = true,
    .prefetch = true,
    .buffers_over_4g = true,
};

/* The upgrades as one letter each, in the order of the struct; '-' where it is off. */
static const char *letters(const clfd_caps *caps)
{
    static char text[9];

    text[0] = caps->fp16 ? 'h' : '-';
    text[1] = caps->sub_groups ? 'g' : '-';
    text[2] = caps->shuffle ? 's' : '-';
    text[3] = caps->ptx ? 'x' : '-';
    text[4] = caps->matrix ? 'm' : '-';
    text[5] = caps->fused_merge ? 'f' : '-';
    text[6] = caps->cache_hints ? 'c' : '-';
    text[7] = caps->prefetch ? 'p' : '-';
    return text;
}

START_TEST(each_word_turns_off_its_upgrade_and_what_stands_on_it)
{
    static const struct {
        const char *list, *left;
    } cases[] = {
        {NULL, "hgsxmfcp"},
        {"", "hgsxmfcp"},
        {"  ", "hgsxmfcp"},
        {"subgroups", "h--xmfcp"},
        {"shuffle", "hg-xmfcp"},
        {"ptx", "hgs----p"},
        {"matrix", "hgsx-fcp"},
        {"fused_merge", "hgsxm-cp"},
        {"cache_hints", "hgsxmf-p"},
        {"prefetch", "hgsxmfc-"},
        {"fp16", "-gsxmfcp"},
        {"fp16,ptx", "-gs----p"},
        {" fp16 ,\tshuffle ", "-g-xmfcp"},
        {"matrix,matrix", "hgsx-fcp"},
        {"subgroups,shuffle,ptx,matrix,fused_merge,cache_hints,prefetch,fp16", "--------"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        clfd_caps caps = everything;
        ck_assert_int_eq(clfd_caps_disable(&caps, cases[i].list, NULL), CLFD_SUCCESS);
        ck_assert_str_eq(letters(&caps), cases[i].left);
        ck_assert(caps.buffers_over_4g);
    }
}
END_TEST

START_TEST(nothing_is_turned_on)
{
    clfd_caps caps = {0};

    ck_assert_int_eq(clfd_caps_disable(&caps, "matrix", NULL), CLFD_SUCCESS);
    ck_assert_str_eq(letters(&caps), "--------");
}
END_TEST

START_TEST(unknown_word_is_refused_with_the_legal_ones_and_changes_nothing)
{
    static const struct {
        const char *list, *piece;
    } cases[] = {
        {"warp", "'warp'"}, {"fp16,warp", "'warp'"},    {"fp16,", "''"},      {",fp16", "''"}, {"fp16,,ptx", "''"},
        {"fp1", "'fp1'"},   {"fp16 ptx", "'fp16 ptx'"}, {"fp16;", "'fp16;'"}, {",", "''"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_log heard = {0};
        const clfd_logger logger = test_logger(&heard);
        const char *said = heard.last[CLFD_LOG_ERROR];
        clfd_caps caps = everything;

        ck_assert_msg(clfd_caps_disable(&caps, cases[i].list, &logger) == CLFD_ERROR_DISABLE_LIST,
                      "'%s' was not refused", cases[i].list);
        ck_assert_str_eq(letters(&caps), "hgsxmfcp");
        ck_assert_ptr_nonnull(strstr(said, cases[i].piece));
        ck_assert_ptr_nonnull(
            strstr(said, "subgroups, shuffle, ptx, matrix, fused_merge, cache_hints, prefetch, fp16"));
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_word_turns_off_its_upgrade_and_what_stands_on_it,
        nothing_is_turned_on,
        unknown_word_is_refused_with_the_legal_ones_and_changes_nothing,
    };
    return run_suite("disable", tests, sizeof tests / sizeof tests[0]);
}

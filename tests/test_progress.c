#include "progress.h"
#include "support/suite.h"
#include <string.h>

START_TEST(a_line_shows_how_far_it_is_and_covers_the_one_before)
{
    static const struct {
        size_t done, total, filled;
    } cases[] = {{0, 7, 0}, {1, 2, 12}, {6, 7, 20}, {7, 7, 24}, {9, 7, 24}, {0, 1, 0}};
    char line[PROGRESS_COLUMNS + 1];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        progress_line(line, cases[i].done, cases[i].total, "a note");
        ck_assert_uint_eq(strlen(line), PROGRESS_COLUMNS);
        ck_assert_int_eq(line[0], '[');
        ck_assert_uint_eq(strspn(line + 1, "#"), cases[i].filled);
        ck_assert_uint_eq(strcspn(line, "]"), 25);
        ck_assert_ptr_nonnull(strstr(line, " a note "));
    }
    progress_line(line, 3, 72, "");
    ck_assert_int_eq(strncmp(line + 26, " 3/72 ", 6), 0);
}
END_TEST

START_TEST(a_long_note_is_cut)
{
    char line[PROGRESS_COLUMNS + 1], note[300];

    memset(note, 'x', sizeof note - 1);
    note[sizeof note - 1] = '\0';
    progress_line(line, 1, 2, note);
    ck_assert_uint_eq(strlen(line), PROGRESS_COLUMNS);
    ck_assert_int_eq(line[PROGRESS_COLUMNS - 1], 'x');
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_line_shows_how_far_it_is_and_covers_the_one_before, a_long_note_is_cut};
    return run_suite("progress", tests, sizeof tests / sizeof tests[0]);
}

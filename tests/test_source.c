#include "program/embedded.h"
#include "program/program.h"
#include "support/folder.h"
#include "support/log.h"
#include "support/suite.h"
#include <string.h>

static char folder[64];
static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    memset(&heard, 0, sizeof heard);
    logger = test_logger(&heard);
    test_folder_create(folder);
}

static void tear_down(void) { test_folder_remove(folder); }

/* Loads root.cl of the folder, which must succeed and give `expected`. */
static void expect_text(const char *expected)
{
    char *text = NULL;

    ck_assert_int_eq(clfd_source_load("root.cl", folder, &text, &logger), CLFD_SUCCESS);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(file_without_includes_is_only_marked)
{
    test_folder_write(folder, "root.cl", "int a;\nint b;\n");
    expect_text("#line 1 \"root.cl\"\nint a;\nint b;\n");
}
END_TEST

START_TEST(missing_last_line_break_is_added)
{
    test_folder_write(folder, "root.cl", "#include \"part.cl\"\nint b;");
    test_folder_write(folder, "part.cl", "int a;");
    expect_text("#line 1 \"root.cl\"\n#line 1 \"part.cl\"\nint a;\n#line 2 \"root.cl\"\nint b;\n");
}
END_TEST

START_TEST(file_included_twice_stands_once)
{
    test_folder_write(folder, "root.cl", "#include \"a.cl\"\n#include \"b.cl\"\nroot\n");
    test_folder_write(folder, "a.cl", "#include \"b.cl\"\na\n");
    test_folder_write(folder, "b.cl", "b\n");
    expect_text("#line 1 \"root.cl\"\n#line 1 \"a.cl\"\n#line 1 \"b.cl\"\nb\n#line 2 \"a.cl\"\na\n"
                "#line 2 \"root.cl\"\n#line 3 \"root.cl\"\nroot\n");
}
END_TEST

START_TEST(name_that_begins_another_is_another_file)
{
    test_folder_write(folder, "root.cl", "#include \"part.cl\"\n#include \"part\"\n");
    test_folder_write(folder, "part.cl", "long\n");
    test_folder_write(folder, "part", "short\n");
    expect_text("#line 1 \"root.cl\"\n#line 1 \"part.cl\"\nlong\n#line 2 \"root.cl\"\n#line 1 \"part\"\nshort\n"
                "#line 3 \"root.cl\"\n");
}
END_TEST

START_TEST(files_that_include_each_other_end)
{
    test_folder_write(folder, "root.cl", "#include \"other.cl\"\nroot\n");
    test_folder_write(folder, "other.cl", "#include \"root.cl\"\n#include \"other.cl\"\nother\n");
    expect_text("#line 1 \"root.cl\"\n#line 1 \"other.cl\"\n#line 2 \"other.cl\"\n#line 3 \"other.cl\"\nother\n"
                "#line 2 \"root.cl\"\nroot\n");
}
END_TEST

START_TEST(only_a_quoted_include_directive_is_replaced)
{
    static const char text[] =
        "#include <part.cl>\n// #include \"part.cl\"\n#include \"part.cl\n#includes \"part.cl\"\n"
        "#include\n#include \"\"\n#";
    char expected[256];

    test_folder_write(folder, "root.cl", text);
    snprintf(expected, sizeof expected, "#line 1 \"root.cl\"\n%s\n", text);
    expect_text(expected);
}
END_TEST

START_TEST(blanks_comments_and_carriage_returns_are_allowed)
{
    test_folder_write(folder, "root.cl", " \t# \tinclude \t\"part.cl\" // why\r\n#include\"part.cl\"\n");
    test_folder_write(folder, "part.cl", "part\r\n");
    expect_text("#line 1 \"root.cl\"\n#line 1 \"part.cl\"\npart\r\n#line 2 \"root.cl\"\n#line 3 \"root.cl\"\n");
}
END_TEST

START_TEST(missing_file_is_named_with_its_folder)
{
    char *text = (char *)"untouched";

    test_folder_write(folder, "root.cl", "#include \"absent.cl\"\n");
    ck_assert_int_eq(clfd_source_load("root.cl", folder, &text, &logger), CLFD_ERROR_KERNEL_SOURCE);
    ck_assert_str_eq(text, "untouched");
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "\"absent.cl\""));
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], folder));
    ck_assert_int_eq(clfd_source_load("absent.cl", NULL, &text, NULL), CLFD_ERROR_KERNEL_SOURCE);
    ck_assert_str_eq(text, "untouched");
}
END_TEST

/* What the build embedded is, byte for byte, what the project's cl/ holds: both ways of loading agree. */
START_TEST(embedded_kernels_equal_their_files)
{
    size_t count = 0;

    for (const struct clfd_embedded *kernel = clfd_kernels; kernel->name != NULL; kernel++, count++) {
        char path[512], *file, *embedded = NULL, *from_folder = NULL;
        size_t bytes = 0;

        ck_assert_int_lt(snprintf(path, sizeof path, "%s/%s", TEST_KERNEL_DIR, kernel->name), (int)sizeof path);
        file = clfd_read_file(path, &bytes);
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(kernel->bytes, bytes);
        ck_assert_mem_eq(kernel->text, file, bytes + 1);
        ck_assert_int_eq(clfd_source_load(kernel->name, NULL, &embedded, &logger), CLFD_SUCCESS);
        ck_assert_int_eq(clfd_source_load(kernel->name, TEST_KERNEL_DIR, &from_folder, &logger), CLFD_SUCCESS);
        ck_assert_str_eq(embedded, from_folder);
        ck_assert_ptr_null(strstr(embedded, "#include \""));
        free(file);
        free(embedded);
        free(from_folder);
    }
    ck_assert_uint_gt(count, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        file_without_includes_is_only_marked,
        missing_last_line_break_is_added,
        file_included_twice_stands_once,
        name_that_begins_another_is_another_file,
        files_that_include_each_other_end,
        only_a_quoted_include_directive_is_replaced,
        blanks_comments_and_carriage_returns_are_allowed,
        missing_file_is_named_with_its_folder,
        embedded_kernels_equal_their_files,
    };

    return run_suite_around("source", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
}

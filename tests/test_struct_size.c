#include "struct_size.h"
#include "support/log.h"
#include "support/suite.h"
#include <stdint.h>
#include <string.h>

/* A struct in three versions: what an older caller, this library and a newer caller know of it. */
typedef struct older {
    size_t struct_size;
    uint32_t first;
} older;
typedef struct known {
    size_t struct_size;
    uint32_t first, second;
    double third;
} known;
typedef struct newer {
    known all;
    unsigned char fourth[16];
} newer;

static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    memset(&heard, 0, sizeof heard);
    logger = test_logger(&heard);
}

static clfd_status read(const void *given, known *copy)
{
    memset(copy, 0x5A, sizeof *copy);
    return clfd_read_struct(given, copy, sizeof *copy, "known", &logger);
}

static void expect_refused(const void *given, clfd_status expected, const char *value, const char *rule)
{
    known copy, untouched;
    const char *const said = heard.last[CLFD_LOG_ERROR];

    set_up();
    memset(&untouched, 0x5A, sizeof untouched);
    ck_assert_int_eq(read(given, &copy), expected);
    ck_assert_mem_eq(&copy, &untouched, sizeof copy);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_msg(strstr(said, value) != NULL && strstr(said, rule) != NULL, "\"%s\" lacks \"%s\" or \"%s\"", said,
                  value, rule);
}

START_TEST(a_struct_of_this_version_is_copied)
{
    const known given = {sizeof given, 1, 2, 3.0};
    known copy;

    ck_assert_int_eq(read(&given, &copy), CLFD_SUCCESS);
    ck_assert_mem_eq(&copy, &given, sizeof copy);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
}
END_TEST

/* Whatever stands behind the caller's struct is not his. */
START_TEST(a_shorter_struct_is_extended_with_zeros)
{
    known given = {offsetof(known, second), 1, 2, 3.0}, copy;

    ck_assert_int_eq(read(&given, &copy), CLFD_SUCCESS);
    ck_assert_uint_eq(copy.struct_size, sizeof copy);
    ck_assert_uint_eq(copy.first, 1);
    ck_assert_uint_eq(copy.second, 0);
    ck_assert(copy.third == 0.0);
    given.struct_size = sizeof given.struct_size;
    ck_assert_int_eq(read(&given, &copy), CLFD_SUCCESS);
    ck_assert_uint_eq(copy.first, 0);
}
END_TEST

START_TEST(an_older_callers_struct_is_read)
{
    const older given = {sizeof given, 7};
    known copy;

    ck_assert_int_eq(read(&given, &copy), CLFD_SUCCESS);
    ck_assert_uint_eq(copy.first, 7);
    ck_assert(copy.third == 0.0);
}
END_TEST

START_TEST(a_longer_struct_with_a_zero_tail_is_copied)
{
    const newer given = {{sizeof given, 1, 2, 3.0}, {0}};
    known copy;

    ck_assert_int_eq(read(&given, &copy), CLFD_SUCCESS);
    ck_assert_uint_eq(copy.struct_size, sizeof copy);
    ck_assert_uint_eq(copy.second, 2);
    ck_assert(copy.third == 3.0);
}
END_TEST

START_TEST(a_byte_that_is_not_zero_anywhere_in_the_tail_is_refused)
{
    for (size_t i = 0; i < sizeof((newer *)0)->fourth; i++) {
        newer given = {{sizeof given, 1, 2, 3.0}, {0}};
        given.fourth[i] = 1;
        expect_refused(&given, CLFD_ERROR_STRUCT_SIZE, "known.struct_size is", "newer version");
    }
}
END_TEST

START_TEST(a_size_that_cannot_hold_itself_is_refused)
{
    for (size_t bytes = 0; bytes < sizeof(size_t); bytes++) {
        const known given = {bytes, 1, 2, 3.0};
        expect_refused(&given, CLFD_ERROR_STRUCT_SIZE, "known.struct_size is", "sizeof(known)");
    }
}
END_TEST

START_TEST(no_struct_is_refused) { expect_refused(NULL, CLFD_ERROR_NULL_ARGUMENT, "known", "is NULL"); }
END_TEST

/* A caller may hold its struct in a buffer of its own. */
START_TEST(a_struct_at_any_address_is_read)
{
    const known given = {sizeof given, 1, 2, 3.0};
    unsigned char memory[sizeof given + 1];
    known copy;

    memcpy(memory + 1, &given, sizeof given);
    ck_assert_int_eq(read(memory + 1, &copy), CLFD_SUCCESS);
    ck_assert_mem_eq(&copy, &given, sizeof copy);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_struct_of_this_version_is_copied,
        a_shorter_struct_is_extended_with_zeros,
        an_older_callers_struct_is_read,
        a_longer_struct_with_a_zero_tail_is_copied,
        a_byte_that_is_not_zero_anywhere_in_the_tail_is_refused,
        a_size_that_cannot_hold_itself_is_refused,
        no_struct_is_refused,
        a_struct_at_any_address_is_read,
    };
    return run_suite_around("struct_size", tests, sizeof tests / sizeof tests[0], set_up, NULL);
}

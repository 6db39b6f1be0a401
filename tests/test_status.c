#include "os.h"
#include "report.h"
#include "support/log.h"
#include "support/suite.h"
#include <CL/cl.h>
#include <clfd/clfd.h>
#include <stdbool.h>
#include <string.h>

/* ---- Names ------------------------------------------------------------------------------------------------------- */

/* An enumerator of the public header: "CLFD_ERROR_Q_LEN = CLFD_ERROR_BASE - 201". */
typedef struct enumerator {
    char name[64];
    int below_base;
} enumerator;

enum { MAX_ENUMERATORS = 200 };

/* Reads them from the header itself, so that a new one cannot be forgotten here. Returns how many there are. */
static size_t read_enumerators(enumerator *found)
{
    size_t bytes = 0, count = 0;
    char *const text = clfd_read_file(TEST_STATUS_HEADER, &bytes);

    ck_assert_msg(text != NULL, "cannot read %s", TEST_STATUS_HEADER);
    for (const char *at = text; (at = strstr(at, "CLFD_ERROR_")) != NULL; at++) {
        ck_assert_uint_lt(count, MAX_ENUMERATORS);
        if (sscanf(at, "%63[A-Z0-9_] = CLFD_ERROR_BASE - %d", found[count].name, &found[count].below_base) == 2)
            count++;
    }
    free(text);
    return count;
}

START_TEST(every_enumerator_has_its_own_name_and_number)
{
    static enumerator found[MAX_ENUMERATORS];
    const size_t count = read_enumerators(found);

    ck_assert_uint_ge(count, 40);
    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(clfd_status_string(CLFD_ERROR_BASE - found[i].below_base), found[i].name);
        ck_assert_int_gt(found[i].below_base, 0);
        for (size_t j = 0; j < i; j++)
            ck_assert_int_ne(found[i].below_base, found[j].below_base);
    }
    ck_assert_str_eq(clfd_status_string(CLFD_SUCCESS), "CLFD_SUCCESS");
}
END_TEST

START_TEST(a_code_between_two_enumerators_is_unknown)
{
    static enumerator found[MAX_ENUMERATORS];
    const size_t count = read_enumerators(found);
    bool used[1000] = {false};
    int named = 0;

    for (size_t i = 0; i < count; i++) {
        ck_assert_int_lt(found[i].below_base, 1000);
        used[found[i].below_base] = true;
    }
    for (int below = 0; below < 1000; below++) {
        const bool known = strcmp(clfd_status_string(CLFD_ERROR_BASE - below), "unknown status") != 0;
        ck_assert_msg(known == used[below], "%d: %s", CLFD_ERROR_BASE - below,
                      clfd_status_string(CLFD_ERROR_BASE - below));
        named += known;
    }
    ck_assert_int_eq(named, (int)count);
}
END_TEST

START_TEST(opencls_codes_have_opencls_names)
{
    static const struct {
        clfd_status status;
        const char *name;
    } cases[] = {
        {-1, "CL_DEVICE_NOT_FOUND"},
        {-3, "CL_COMPILER_NOT_AVAILABLE"},
        {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
        {-5, "CL_OUT_OF_RESOURCES"},
        {-6, "CL_OUT_OF_HOST_MEMORY"},
        {-11, "CL_BUILD_PROGRAM_FAILURE"},
        {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
        {-30, "CL_INVALID_VALUE"},
        {-33, "CL_INVALID_DEVICE"},
        {-34, "CL_INVALID_CONTEXT"},
        {-38, "CL_INVALID_MEM_OBJECT"},
        {-43, "CL_INVALID_BUILD_OPTIONS"},
        {-46, "CL_INVALID_KERNEL_NAME"},
        {-52, "CL_INVALID_KERNEL_ARGS"},
        {-54, "CL_INVALID_WORK_GROUP_SIZE"},
        {-57, "CL_INVALID_EVENT_WAIT_LIST"},
        {-61, "CL_INVALID_BUFFER_SIZE"},
        {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_str_eq(clfd_status_string(cases[i].status), cases[i].name);
}
END_TEST

START_TEST(any_other_number_is_an_unknown_status)
{
    static const clfd_status others[] = {1, 77, INT32_MAX, -29, -999, -9999, CLFD_ERROR_BASE, INT32_MIN};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_str_eq(clfd_status_string(others[i]), "unknown status");
}
END_TEST

/* ---- Sentences ---------------------------------------------------------------------------------------------------- */

static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    memset(&heard, 0, sizeof heard);
    logger = test_logger(&heard);
}

START_TEST(a_failure_returns_its_status_and_says_one_sentence)
{
    ck_assert_int_eq(clfd_fail(&logger, CLFD_ERROR_Q_LEN, "q_len is %u; it must be 1 to %u", 17u, 16u),
                     CLFD_ERROR_Q_LEN);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_str_eq(heard.last[CLFD_LOG_ERROR], "q_len is 17; it must be 1 to 16");
    ck_assert_int_eq(clfd_fail_cl(&logger, CL_INVALID_DEVICE, "clGetDeviceInfo(CL_DEVICE_NAME)"), CL_INVALID_DEVICE);
    ck_assert_str_eq(heard.last[CLFD_LOG_ERROR], "clGetDeviceInfo(CL_DEVICE_NAME) failed: CL_INVALID_DEVICE (-33)");
}
END_TEST

START_TEST(notes_keep_their_level)
{
    clfd_note(&logger, CLFD_LOG_WARNING, "row %d is refused", 3);
    clfd_note(&logger, CLFD_LOG_INFO, "building %s", "merge");
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    ck_assert_str_eq(heard.last[CLFD_LOG_WARNING], "row 3 is refused");
    ck_assert_str_eq(heard.last[CLFD_LOG_INFO], "building merge");
}
END_TEST

START_TEST(without_a_logger_a_failure_is_silent)
{
    const clfd_logger zeroed = {NULL, NULL};

    ck_assert_int_eq(clfd_fail(NULL, CLFD_ERROR_SCALE, "unheard"), CLFD_ERROR_SCALE);
    ck_assert_int_eq(clfd_fail(&zeroed, CLFD_ERROR_SCALE, "unheard"), CLFD_ERROR_SCALE);
    ck_assert_int_eq(clfd_fail_cl(NULL, CL_INVALID_VALUE, "unheard"), CL_INVALID_VALUE);
    clfd_note(NULL, CLFD_LOG_WARNING, "unheard");
    clfd_note(&zeroed, CLFD_LOG_WARNING, "unheard");
}
END_TEST

START_TEST(a_message_is_one_line)
{
    clfd_fail(&logger, CLFD_ERROR_OPTION, "%s", "one\ntwo\r\nthree\n");
    ck_assert_str_eq(heard.last[CLFD_LOG_ERROR], "one two  three ");
}
END_TEST

START_TEST(a_long_message_is_cut_and_terminated)
{
    char text[3 * CLFD_MESSAGE_BYTES];

    for (size_t length = CLFD_MESSAGE_BYTES - 2; length <= CLFD_MESSAGE_BYTES + 1; length++) {
        const size_t most = CLFD_MESSAGE_BYTES - 1;
        memset(text, 'x', sizeof text);
        text[length] = '\0';
        clfd_fail(&logger, CLFD_ERROR_OPTION, "%s", text);
        ck_assert_uint_eq(strlen(heard.last[CLFD_LOG_ERROR]), length < most ? length : most);
    }
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    clfd_note(&logger, CLFD_LOG_INFO, "%s", text);
    ck_assert_uint_eq(strlen(heard.last[CLFD_LOG_INFO]), CLFD_MESSAGE_BYTES - 1);
}
END_TEST

/* ---- Version ------------------------------------------------------------------------------------------------------- */

START_TEST(the_library_is_of_the_headers_version)
{
    ck_assert_uint_eq(clfd_version(), CLFD_VERSION);
    ck_assert_uint_eq(clfd_version() / 1000000, CLFD_VERSION_MAJOR);
    ck_assert_uint_eq(clfd_version() / 1000 % 1000, CLFD_VERSION_MINOR);
    ck_assert_uint_eq(clfd_version() % 1000, CLFD_VERSION_PATCH);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_enumerator_has_its_own_name_and_number,
        a_code_between_two_enumerators_is_unknown,
        opencls_codes_have_opencls_names,
        any_other_number_is_an_unknown_status,
        a_failure_returns_its_status_and_says_one_sentence,
        notes_keep_their_level,
        without_a_logger_a_failure_is_silent,
        a_message_is_one_line,
        a_long_message_is_cut_and_terminated,
        the_library_is_of_the_headers_version,
    };
    return run_suite_around("status", tests, sizeof tests / sizeof tests[0], set_up, NULL);
}

/* The file that a tuner writes and continues from. */
#include "os.h"
#include "support/folder.h"
#include "support/log.h"
#include "support/suite.h"
#include "tune.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64], path[128];
static tool_fault fault;
static tune_file file;
static tune_class some = {.shared = {CLFD_TYPE_F16, CLFD_TYPE_INT8, 192, 128, 4}, .num_problems = 1};
static const tune_owner owner = {CLFD_SCOPE_DEVICE, "Acme One", "1.0", false};

static void set_up(void)
{
    test_folder_create(folder);
    snprintf(path, sizeof path, "%s/tuning.json", folder);
    fault_clear(&fault);
    ck_assert(problem_parse("hq4 hkv1 d192 dv128 kv64 f16 vtype=int8", &some.problems[0], &fault));
}

static void tear_down(void)
{
    tune_file_close(&file);
    test_folder_remove(folder);
}

static void open_file(void)
{
    tune_file_close(&file);
    ck_assert_msg(tune_file_open(&file, path, &fault), "%s", fault.sentence);
}

static tune_result result_of(const char *words)
{
    tune_result result = {
        .class = &some, .is_tuned = true, .speedup = 1.5, .tried = 7, .shipped = "family=decode_lanes"};

    result.seconds[0][0] = 3e-6;
    result.seconds[1][0] = 2e-6;
    snprintf(result.words, sizeof result.words, "%s", words);
    return result;
}

static void put(const tune_owner *whose, const char *words)
{
    const tune_result result = result_of(words);

    ck_assert_msg(tune_file_put(&file, whose, &result, &fault), "%s", fault.sentence);
}

/* What the library reads of the file; rows is the caller's to free. */
static clfd_file_rows read_back(void)
{
    test_log heard = {0};
    const clfd_logger logger = test_logger(&heard);
    size_t bytes = 0;
    char *const text = clfd_read_file(path, &bytes);
    clfd_file_rows rows;

    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(clfd_tuning_file_read(text, bytes, path, &rows, &logger), CLFD_SUCCESS);
    ck_assert_msg(heard.count[CLFD_LOG_WARNING] == 0, "%s", heard.last[CLFD_LOG_WARNING]);
    free(text);
    return rows;
}

START_TEST(what_is_written_is_what_the_library_reads)
{
    clfd_file_rows rows;

    open_file();
    put(&owner, "family=decode_lanes wg=64");
    rows = read_back();
    ck_assert_uint_eq(rows.count, 1);
    ck_assert_int_eq(rows.rows[0].scope, CLFD_SCOPE_DEVICE);
    ck_assert_str_eq(rows.rows[0].name, "Acme One");
    ck_assert_str_eq(rows.rows[0].words, "family=decode_lanes wg=64");
    ck_assert(clfd_tuning_class_equal(&rows.rows[0].problems, &some.shared));
    free(rows.rows);
}
END_TEST

START_TEST(a_class_without_gain_is_a_blank_row)
{
    tune_result result = result_of("family=decode_lanes wg=64");
    clfd_file_rows rows;

    open_file();
    result.is_tuned = false;
    ck_assert(tune_file_put(&file, &owner, &result, &fault));
    rows = read_back();
    ck_assert_uint_eq(rows.count, 1);
    ck_assert_str_eq(rows.rows[0].words, "");
    free(rows.rows);
    open_file();
    ck_assert(tune_file_has(&file, &owner, &some.shared));
}
END_TEST

START_TEST(a_class_is_measured_for_its_device_driver_and_care)
{
    tune_owner other = owner, quick = owner;
    clfd_tuning_class wider = some.shared;

    open_file();
    ck_assert(!tune_file_has(&file, &owner, &some.shared));
    put(&owner, "family=decode_lanes wg=64");
    open_file();
    ck_assert(tune_file_has(&file, &owner, &some.shared));
    wider.ratio = 8;
    ck_assert(!tune_file_has(&file, &owner, &wider));
    other.name = "Acme Two";
    ck_assert(!tune_file_has(&file, &other, &some.shared));
    other = owner;
    other.driver = "1.1";
    ck_assert(!tune_file_has(&file, &other, &some.shared));
    other = owner;
    other.scope = CLFD_SCOPE_ARCHITECTURE;
    ck_assert(!tune_file_has(&file, &other, &some.shared));
    /* What was measured with care will do for a quick run, not the other way round. */
    quick.quick = true;
    ck_assert(tune_file_has(&file, &quick, &some.shared));
    put(&quick, "family=decode_lanes wg=64");
    ck_assert(tune_file_has(&file, &quick, &some.shared));
    ck_assert(!tune_file_has(&file, &owner, &some.shared));
}
END_TEST

START_TEST(a_new_result_replaces_the_old_one_and_leaves_others)
{
    tune_owner other = owner;
    clfd_file_rows rows;

    other.name = "Acme Two";
    open_file();
    put(&owner, "family=decode_lanes wg=64");
    put(&other, "family=decode_lanes wg=32");
    open_file();
    put(&owner, "family=decode_lanes wg=128");
    rows = read_back();
    ck_assert_uint_eq(rows.count, 2);
    ck_assert_str_eq(rows.rows[0].words, "family=decode_lanes wg=128");
    ck_assert_str_eq(rows.rows[1].words, "family=decode_lanes wg=32");
    free(rows.rows);
}
END_TEST

START_TEST(folders_are_made_and_nothing_temporary_stays)
{
    char line[512];

    snprintf(path, sizeof path, "%s/a/b/tuning.json", folder);
    open_file();
    put(&owner, "family=decode_lanes wg=64");
    free(read_back().rows);
    snprintf(line, sizeof line, "rm %s && rmdir %s/a/b %s/a", path, folder, folder);
    ck_assert_int_eq(system(line), 0);
}
END_TEST

START_TEST(a_file_that_is_none_is_not_overwritten)
{
    size_t bytes = 0;

    test_folder_write(folder, "tuning.json", "{\"mine\": 1}");
    ck_assert(!tune_file_open(&file, path, &fault));
    ck_assert_ptr_nonnull(strstr(fault.sentence, "is no tuning file"));
    char *const text = clfd_read_file(path, &bytes);
    ck_assert_str_eq(text, "{\"mine\": 1}");
    free(text);
}
END_TEST

START_TEST(a_place_that_cannot_be_written_is_a_fault)
{
    const tune_result result = result_of("family=decode_lanes wg=64");

    test_folder_write(folder, "file", "");
    snprintf(path, sizeof path, "%s/file/tuning.json", folder);
    open_file();
    ck_assert(!tune_file_put(&file, &owner, &result, &fault));
    ck_assert_ptr_nonnull(strstr(fault.sentence, "/file"));
}
END_TEST

/* What is there and cannot be read holds somebody's rows. */
START_TEST(what_cannot_be_read_is_not_written_over)
{
    tune_file_close(&file);
    ck_assert(!tune_file_open(&file, folder, &fault));
    ck_assert_ptr_nonnull(strstr(fault.sentence, "cannot be read"));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        what_cannot_be_read_is_not_written_over,
        what_is_written_is_what_the_library_reads,
        a_class_without_gain_is_a_blank_row,
        a_class_is_measured_for_its_device_driver_and_care,
        a_new_result_replaces_the_old_one_and_leaves_others,
        folders_are_made_and_nothing_temporary_stays,
        a_file_that_is_none_is_not_overwritten,
        a_place_that_cannot_be_written_is_a_fault,
    };
    return run_suite_around("tune_file", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
}

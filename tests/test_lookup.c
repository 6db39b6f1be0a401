/* The order in which rows are looked up. Devices and files are made up. */
#include "plan/check.h"
#include "plan/lookup.h"
#include "support/log.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const clfd_caps gpu = {.type = CL_DEVICE_TYPE_GPU,
                              .compute_units = 16,
                              .float_width = 1,
                              .max_work_group = 1024,
                              .local_mem_bytes = 48 << 10,
                              .name = "Acme One",
                              .vendor = "The ACME Company",
                              .architecture = "acme_9"};

static test_log heard;
static clfd_logger logger;
static clfd_file_row user_rows[8], shipped_rows[8];
static clfd_tuning_files files;

static void set_up(void)
{
    memset(&heard, 0, sizeof heard);
    logger = test_logger(&heard);
    files.sources[CLFD_SOURCE_USER] = (clfd_file_rows){user_rows, 0};
    files.sources[CLFD_SOURCE_SHIPPED] = (clfd_file_rows){shipped_rows, 0};
}

static void add(clfd_tuning_source source, clfd_tuning_scope scope, const char *name, const char *words)
{
    clfd_file_row *row = &files.sources[source].rows[files.sources[source].count++];

    *row = (clfd_file_row){.scope = scope, .problems = {CLFD_TYPE_F16, CLFD_TYPE_F16, 128, 128, 4}};
    strcpy(row->name, name);
    strcpy(row->words, words);
}

static size_t find(uint32_t head_dim, uint32_t ratio, const char *tuning, clfd_tuning rows[CLFD_MAX_LOOKUP])
{
    const clfd_attention given = {.struct_size = sizeof given,
                                  .num_q_heads = 2 * ratio,
                                  .num_kv_heads = 2,
                                  .head_dim = head_dim,
                                  .q_type = CLFD_TYPE_F16,
                                  .max_kv_len = 4096,
                                  .tuning = tuning};
    clfd_attention a;
    size_t count = 0;

    ck_assert_int_eq(clfd_complete_attention(&given, &a, NULL), CLFD_SUCCESS);
    ck_assert_msg(clfd_tuning_lookup(&gpu, &a, &files, rows, &count, &logger) == CLFD_SUCCESS, "%s",
                  heard.last[CLFD_LOG_ERROR]);
    return count;
}

/* min_split marks a row and is none of the table's. */
#define MARK(number) "family=decode_lanes min_split=" #number

START_TEST(the_users_rows_come_first_then_the_shipped_then_the_table)
{
    clfd_tuning rows[CLFD_MAX_LOOKUP], table[CLFD_MAX_LOOKUP];
    const size_t num_table = find(128, 4, NULL, table);

    /* In the file they stand the other way round. */
    add(CLFD_SOURCE_SHIPPED, CLFD_SCOPE_VENDOR, "acme", MARK(1006));
    add(CLFD_SOURCE_SHIPPED, CLFD_SCOPE_ARCHITECTURE, "acme_9", MARK(1005));
    add(CLFD_SOURCE_SHIPPED, CLFD_SCOPE_DEVICE, "Acme One", MARK(1004));
    add(CLFD_SOURCE_USER, CLFD_SCOPE_VENDOR, "company", MARK(1003));
    add(CLFD_SOURCE_USER, CLFD_SCOPE_ARCHITECTURE, "acme_9", MARK(1002));
    add(CLFD_SOURCE_USER, CLFD_SCOPE_DEVICE, "Acme One", MARK(1001));
    ck_assert_uint_eq(find(128, 4, NULL, rows), 6 + num_table);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_uint_eq(rows[i].min_split, 1001 + i);
    for (size_t i = 0; i < num_table; i++)
        ck_assert_mem_eq(&rows[6 + i], &table[i], sizeof table[i]);
}
END_TEST

START_TEST(an_override_comes_before_every_file)
{
    clfd_tuning rows[CLFD_MAX_LOOKUP];

    add(CLFD_SOURCE_USER, CLFD_SCOPE_DEVICE, "Acme One", MARK(1001));
    ck_assert_uint_eq(find(128, 4, "min_split=77", rows), 1);
    ck_assert_uint_eq(rows[0].min_split, 77);
    ck_assert_uint_gt(find(128, 4, " ", rows), 1);
    ck_assert_uint_eq(rows[0].min_split, 1001);
}
END_TEST

START_TEST(rows_of_other_devices_and_problems_do_not_count)
{
    static const struct {
        clfd_tuning_scope scope;
        const char *name;
    } others[] = {{CLFD_SCOPE_DEVICE, "Acme"},         {CLFD_SCOPE_DEVICE, "acme one"},   {CLFD_SCOPE_DEVICE, "acme_9"},
                  {CLFD_SCOPE_ARCHITECTURE, "acme_8"}, {CLFD_SCOPE_ARCHITECTURE, "acme"}, {CLFD_SCOPE_VENDOR, "Ajax"}};
    clfd_tuning rows[CLFD_MAX_LOOKUP], table[CLFD_MAX_LOOKUP];
    const size_t num_table = find(128, 4, NULL, table);

    for (size_t i = 0; i < COUNT(others); i++)
        add(CLFD_SOURCE_USER, others[i].scope, others[i].name, MARK(1001));
    ck_assert_uint_eq(find(128, 4, NULL, rows), num_table);
    set_up();
    add(CLFD_SOURCE_USER, CLFD_SCOPE_DEVICE, "Acme One", MARK(1001));
    find(64, 4, NULL, rows);
    ck_assert_uint_ne(rows[0].min_split, 1001);
    find(128, 2, NULL, rows);
    ck_assert_uint_ne(rows[0].min_split, 1001);
    find(128, 3, NULL, rows);
    ck_assert_uint_eq(rows[0].min_split, 1001);
}
END_TEST

START_TEST(a_blank_row_leaves_what_stands_after_it)
{
    clfd_tuning rows[CLFD_MAX_LOOKUP];

    add(CLFD_SOURCE_USER, CLFD_SCOPE_DEVICE, "Acme One", "");
    add(CLFD_SOURCE_SHIPPED, CLFD_SCOPE_ARCHITECTURE, "acme_9", MARK(1005));
    find(128, 4, NULL, rows);
    ck_assert_uint_eq(rows[0].min_split, 1005);
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 0);
}
END_TEST

/* The kernel that one compiler refuses is not built a second time. */
START_TEST(equal_rows_are_tried_once)
{
    clfd_tuning rows[CLFD_MAX_LOOKUP];
    size_t count;

    add(CLFD_SOURCE_USER, CLFD_SCOPE_DEVICE, "Acme One", MARK(1001));
    count = find(128, 4, NULL, rows);
    add(CLFD_SOURCE_SHIPPED, CLFD_SCOPE_VENDOR, "acme", MARK(1001));
    ck_assert_uint_eq(find(128, 4, NULL, rows), count);
}
END_TEST

START_TEST(a_row_that_cannot_run_is_left_out_and_only_the_users_is_a_warning)
{
    clfd_tuning rows[CLFD_MAX_LOOKUP], table[CLFD_MAX_LOOKUP];
    const size_t num_table = find(128, 4, NULL, table);

    add(CLFD_SOURCE_SHIPPED, CLFD_SCOPE_DEVICE, "Acme One", "family=decode_lanes exchange=ptx");
    ck_assert_uint_eq(find(128, 4, NULL, rows), num_table);
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 0);
    ck_assert_int_eq(heard.count[CLFD_LOG_INFO], 1);
    add(CLFD_SOURCE_USER, CLFD_SCOPE_DEVICE, "Acme One", "family=decode_lanes wg=16 lanes=32");
    ck_assert_uint_eq(find(128, 4, NULL, rows), num_table);
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 1);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_WARNING], "the tuning row of the device Acme One is left out: "));
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_WARNING], "lanes times parts exceeds wg"));
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
}
END_TEST

START_TEST(without_files_the_table_is_all)
{
    const clfd_attention given = {
        .struct_size = sizeof given, .num_q_heads = 2, .head_dim = 64, .max_kv_len = 64, .tuning = NULL};
    clfd_tuning rows[CLFD_MAX_LOOKUP], table[CLFD_MAX_CANDIDATES];
    size_t count, num_table;
    clfd_attention a;

    ck_assert_int_eq(clfd_complete_attention(&given, &a, NULL), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_tuning_lookup(&gpu, &a, NULL, rows, &count, &logger), CLFD_SUCCESS);
    ck_assert_int_eq(clfd_tuning_candidates(&gpu, &a, table, &num_table, &logger), CLFD_SUCCESS);
    ck_assert_uint_eq(count, num_table);
    ck_assert_mem_eq(rows, table, count * sizeof rows[0]);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_users_rows_come_first_then_the_shipped_then_the_table,
        an_override_comes_before_every_file,
        rows_of_other_devices_and_problems_do_not_count,
        a_blank_row_leaves_what_stands_after_it,
        equal_rows_are_tried_once,
        a_row_that_cannot_run_is_left_out_and_only_the_users_is_a_warning,
        without_files_the_table_is_all,
    };
    return run_suite_around("lookup", tests, COUNT(tests), set_up, NULL);
}

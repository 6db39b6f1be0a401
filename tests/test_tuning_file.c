/* Tuning rows as JSON text. No device, no file. */
#include "plan/check.h"
#include "plan/tuning_file.h"
#include "program/embedded.h"
#include "support/log.h"
#include "support/suite.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    memset(&heard, 0, sizeof heard);
    logger = test_logger(&heard);
}

static clfd_status read_text(const char *text, clfd_file_rows *rows)
{
    return clfd_tuning_file_read(text, strlen(text), "own.json", rows, &logger);
}

/* A file with one row: `first` are its first keys, `last` its last. */
static clfd_file_rows read_row(const char *first, const char *last)
{
    clfd_file_rows rows;
    char text[2048];

    snprintf(text, sizeof text,
             "{\"clfd_tuning\": 1, \"rows\": [{%s, \"k_type\": \"f16\", \"v_type\": \"int8\", \"head_dim\": 192, "
             "\"head_dim_v\": 128, %s}]}",
             first, last);
    ck_assert_msg(read_text(text, &rows) == CLFD_SUCCESS, "%s", heard.last[CLFD_LOG_ERROR]);
    return rows;
}

START_TEST(a_row_is_read_with_all_that_it_says)
{
    static const struct {
        const char *key;
        clfd_tuning_scope scope;
    } scopes[] = {
        {"device", CLFD_SCOPE_DEVICE}, {"architecture", CLFD_SCOPE_ARCHITECTURE}, {"vendor", CLFD_SCOPE_VENDOR}};

    for (size_t i = 0; i < COUNT(scopes); i++) {
        char first[64];
        snprintf(first, sizeof first, "\"%s\": \"Acme One\"", scopes[i].key);
        clfd_file_rows rows = read_row(first, "\"ratio\": 8, \"tuning\": \"family=decode_lanes wg=64\", "
                                              "\"measured\": {\"driver\": \"1.0\", \"anything\": []}");
        ck_assert_uint_eq(rows.count, 1);
        ck_assert_int_eq(rows.rows[0].scope, scopes[i].scope);
        ck_assert_str_eq(rows.rows[0].name, "Acme One");
        ck_assert_int_eq(rows.rows[0].problems.k_type, CLFD_TYPE_F16);
        ck_assert_int_eq(rows.rows[0].problems.v_type, CLFD_TYPE_INT8);
        ck_assert_uint_eq(rows.rows[0].problems.head_dim, 192);
        ck_assert_uint_eq(rows.rows[0].problems.head_dim_v, 128);
        ck_assert_uint_eq(rows.rows[0].problems.ratio, 8);
        ck_assert_str_eq(rows.rows[0].words, "family=decode_lanes wg=64");
        free(rows.rows);
    }
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 0);
}
END_TEST

START_TEST(a_blank_tuning_is_a_row)
{
    clfd_file_rows rows = read_row("\"device\": \"Acme One\"", "\"ratio\": 1, \"tuning\": \" \"");

    ck_assert_uint_eq(rows.count, 1);
    free(rows.rows);
}
END_TEST

START_TEST(a_row_that_breaks_a_rule_is_skipped_with_file_row_and_rule)
{
    static const char device[] = "\"device\": \"Acme One\"",
                      end[] = "\"ratio\": 1, \"tuning\": \"family=decode_vector\"";
    static const struct {
        const char *first, *last, *fragment;
    } cases[] = {
        {"\"devise\": \"Acme One\"", end, "\"devise\" is no key of a row"},
        {"\"device\": \"a\", \"vendor\": \"b\"", end, "it has 2 of device, architecture and vendor"},
        {"\"measured\": {}", end, "it has 0 of device, architecture and vendor"},
        {"\"device\": 7", end, "device is no string"},
        {"\"device\": \" \"", end, "device is blank"},
        {device, "\"tuning\": \"\"", "ratio is no number"},
        {device, "\"ratio\": 3, \"tuning\": \"\"", "ratio is 3; it must be a power of two"},
        {device, "\"ratio\": 128, \"tuning\": \"\"", "ratio is 128; it must be a whole number from 1 to 64"},
        {device, "\"ratio\": 1.5, \"tuning\": \"\"", "ratio is 1.5"},
        {device, "\"ratio\": \"1\", \"tuning\": \"\"", "ratio is no number"},
        {device, "\"ratio\": 1", "tuning is no string"},
        {device, "\"ratio\": 1, \"tuning\": \"wg=64\"", "names no family: \"wg=64\""},
        {device, "\"ratio\": 1, \"tuning\": \"family=decode_magic\"", "decode_magic"},
        {device, "\"ratio\": 1, \"tuning\": \"family=decode_lanes wg=63\"", "wg=63; it must be a power of two"},
        {device, "\"ratio\": 1, \"tuning\": \"family=decode_lanes wg=2048\"", "from 1 to 1024"},
        {device, "\"ratio\": 1, \"tuning\": \"family=decode_lanes speed=9\"", "\"speed=9\""},
        {device, "\"ratio\": 1, \"tuning\": \"family=decode_vector lanes=8\"", "decode_vector has no lanes"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        set_up();
        clfd_file_rows rows = read_row(cases[i].first, cases[i].last);
        const char *const said = heard.last[CLFD_LOG_WARNING];
        ck_assert_msg(rows.count == 0, "%s, %s is a row", cases[i].first, cases[i].last);
        ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 1);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
        ck_assert_msg(strstr(said, "own.json: row 1 is skipped: ") == said, "\"%s\"", said);
        ck_assert_msg(strstr(said, cases[i].fragment) != NULL, "\"%s\" lacks \"%s\"", said, cases[i].fragment);
        free(rows.rows);
    }
}
END_TEST

#define ROW(types, dims, device) "{\"device\": \"" device "\", " types ", " dims ", \"ratio\": 1, \"tuning\": \"\"}"
#define TYPES "\"k_type\": \"f16\", \"v_type\": \"f16\""
#define DIMS "\"head_dim\": 128, \"head_dim_v\": 128"

START_TEST(types_and_dims_must_be_possible)
{
    static const struct {
        const char *row, *fragment;
    } cases[] = {
        {ROW("\"k_type\": \"f8\", \"v_type\": \"f16\"", DIMS, "a"), "k_type is \"f8\""},
        {ROW("\"k_type\": \"f16\"", DIMS, "a"), "v_type is no string"},
        {ROW(TYPES, "\"head_dim\": 100, \"head_dim_v\": 128", "a"), "head_dim is 100"},
        {ROW(TYPES, "\"head_dim\": 128, \"head_dim_v\": 584", "a"), "head_dim_v is 584"},
        {"17", "it is no object"},
    };
    clfd_file_rows rows;
    char text[1024];

    for (size_t i = 0; i < COUNT(cases); i++) {
        set_up();
        snprintf(text, sizeof text, "{\"clfd_tuning\": 1, \"rows\": [%s]}", cases[i].row);
        ck_assert_int_eq(read_text(text, &rows), CLFD_SUCCESS);
        ck_assert_uint_eq(rows.count, 0);
        ck_assert_msg(strstr(heard.last[CLFD_LOG_WARNING], cases[i].fragment) != NULL, "\"%s\" lacks \"%s\"",
                      heard.last[CLFD_LOG_WARNING], cases[i].fragment);
        free(rows.rows);
    }
}
END_TEST

START_TEST(good_rows_stay_where_others_are_skipped)
{
    clfd_file_rows rows;

    ck_assert_int_eq(read_text("{\"clfd_tuning\": 1, \"rows\": [" ROW(TYPES, DIMS, "a") ", 17, " ROW(
                                   TYPES, DIMS, "a") ", " ROW(TYPES, DIMS, "b") "]}",
                               &rows),
                     CLFD_SUCCESS);
    ck_assert_uint_eq(rows.count, 2);
    ck_assert_str_eq(rows.rows[0].name, "a");
    ck_assert_str_eq(rows.rows[1].name, "b");
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 2);
    ck_assert_ptr_nonnull(
        strstr(heard.last[CLFD_LOG_WARNING], "row 3 is skipped: an earlier row is for the same device"));
    free(rows.rows);
}
END_TEST

START_TEST(what_is_no_tuning_file_is_refused_by_name)
{
    static const struct {
        const char *text, *fragment;
    } cases[] = {
        {"", "line 1 is no JSON"},
        {"{\n\"clfd_tuning\": 1,\n\"rows\": [}\n", "line 3 is no JSON"},
        {"{\"clfd_tuning\": 1, \"rows\": []} more", "line 1 is no JSON"},
        {"[]", "\"clfd_tuning\" must be 1"},
        {"{\"rows\": []}", "\"clfd_tuning\" must be 1"},
        {"{\"clfd_tuning\": 2, \"rows\": []}", "\"clfd_tuning\" must be 1"},
        {"{\"clfd_tuning\": 1}", "\"rows\" must be an array"},
        {"{\"clfd_tuning\": 1, \"rows\": {}}", "\"rows\" must be an array"},
    };
    clfd_file_rows rows;

    for (size_t i = 0; i < COUNT(cases); i++) {
        set_up();
        ck_assert_int_eq(read_text(cases[i].text, &rows), CLFD_ERROR_TUNING_FILE);
        ck_assert_ptr_null(rows.rows);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
        ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "own.json"));
        ck_assert_msg(strstr(heard.last[CLFD_LOG_ERROR], cases[i].fragment) != NULL, "\"%s\" lacks \"%s\"",
                      heard.last[CLFD_LOG_ERROR], cases[i].fragment);
    }
}
END_TEST

START_TEST(ratios_fall_into_classes)
{
    static const struct {
        uint32_t ratio, q_len, shared_kv, expected;
    } cases[] = {{1, 1, 0, 1},  {2, 1, 0, 2},   {3, 1, 0, 4}, {4, 1, 0, 4},  {5, 1, 0, 8}, {8, 1, 0, 8},
                 {9, 1, 0, 16}, {71, 1, 0, 64}, {1, 3, 0, 4}, {4, 5, 0, 32}, {1, 1, 1, 64}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const clfd_attention given = {.struct_size = sizeof given,
                                      .q_len = cases[i].q_len,
                                      .num_q_heads = 3 * cases[i].ratio,
                                      .num_kv_heads = 3,
                                      .head_dim = 64,
                                      .head_dim_v = 32,
                                      .max_kv_len = 100,
                                      .k_type = CLFD_TYPE_INT8,
                                      .shared_kv = cases[i].shared_kv};
        clfd_attention a;
        ck_assert_int_eq(clfd_complete_attention(&given, &a, NULL), CLFD_SUCCESS);
        const clfd_tuning_class found = clfd_tuning_class_of(&a);
        ck_assert_uint_eq(found.ratio, cases[i].expected);
        ck_assert_int_eq(found.k_type, CLFD_TYPE_INT8);
        ck_assert_int_eq(found.v_type, a.v_type);
        ck_assert_uint_eq(found.head_dim, 64);
        ck_assert_uint_eq(found.head_dim_v, 32);
    }
}
END_TEST

START_TEST(the_shipped_rows_break_no_rule)
{
    clfd_file_rows rows;

    ck_assert_int_eq(
        clfd_tuning_file_read(clfd_shipped[0].text, clfd_shipped[0].bytes, clfd_shipped[0].name, &rows, &logger),
        CLFD_SUCCESS);
    ck_assert_msg(heard.count[CLFD_LOG_WARNING] == 0, "%s", heard.last[CLFD_LOG_WARNING]);
    free(rows.rows);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_row_is_read_with_all_that_it_says,
        a_blank_tuning_is_a_row,
        a_row_that_breaks_a_rule_is_skipped_with_file_row_and_rule,
        types_and_dims_must_be_possible,
        good_rows_stay_where_others_are_skipped,
        what_is_no_tuning_file_is_refused_by_name,
        ratios_fall_into_classes,
        the_shipped_rows_break_no_rule,
    };
    return run_suite_around("tuning_file", tests, COUNT(tests), set_up, NULL);
}

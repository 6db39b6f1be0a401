/* The program from outside: exit codes, sentences and files. */
#include "npy.h"
#include "support/folder.h"
#include "support/suite.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define LINE_BYTES 4096

static char folder[64];

/* What the last run of the program left behind. */
static int ended_with;
static char out[1 << 18], err[65536];

static void set_up(void) { test_folder_create(folder); }

static void tear_down(void) { test_folder_remove(folder); }

static void read_text(const char *name, char *text, size_t bytes)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, bytes - 1, file)] = '\0';
    ck_assert_msg(fgetc(file) == EOF, "%s has more than %zu bytes", name, bytes - 1);
    fclose(file);
}

static bool exists(const char *name)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (file != NULL)
        fclose(file);
    return file != NULL;
}

/* Runs `environment clfd arguments` through the shell. */
static void run_in(const char *environment, const char *arguments)
{
    char line[LINE_BYTES];
    int status;

    ck_assert_int_lt(snprintf(line, sizeof line, "%s '%s' %s >%s/stdout 2>%s/stderr </dev/null", environment,
                              TEST_PROGRAM, arguments, folder, folder),
                     LINE_BYTES);
    status = system(line);
    ck_assert_msg(WIFEXITED(status), "the program was killed: %s", line);
    ended_with = WEXITSTATUS(status);
    read_text("stdout", out, sizeof out);
    read_text("stderr", err, sizeof err);
}

static void run(const char *format, ...)
{
    char arguments[LINE_BYTES];
    va_list values;

    va_start(values, format);
    vsnprintf(arguments, sizeof arguments, format, values);
    va_end(values);
    run_in("", arguments);
}

/* The last run must have ended so, and have said one sentence that holds `fragment`. */
static void expect(int code, const char *fragment)
{
    ck_assert_msg(ended_with == code, "exit code %d instead of %d: %s", ended_with, code, err);
    ck_assert_msg(strstr(err, fragment) != NULL, "'%s' does not hold '%s'", err, fragment);
    ck_assert_msg(strchr(err, '\n') == err + strlen(err) - 1, "not one line: '%s'", err);
}

static void expect_success(void) { ck_assert_msg(ended_with == 0, "exit code %d: %s", ended_with, err); }

START_TEST(malformed_arguments_exit_2)
{
    static const struct {
        const char *arguments, *fragment;
    } cases[] = {
        {"nonsense", "'nonsense' is no verb"},
        {"cache", "not implemented yet"},
        {"devices --nonsense", "there is no option --nonsense"},
        {"devices word", "'word' is no option"},
        {"devices --device 'mem>=much'", "much"},
        {"run", "--q is missing"},
        {"run --q a.npy", "--k is missing"},
        {"run --q a.npy --k b.npy", "--v is missing"},
        {"run --q a.npy --k b.npy --v c.npy --v-from-k 8", "--v and --v-from-k exclude each other"},
        {"run --q a.npy --k b.npy --v c.npy --splits 2 --split-tokens 2", "exclude each other"},
        {"run --q a.npy --k b.npy --v c.npy --scale 0", "--scale is 0"},
        {"run --q a.npy --k b.npy --v c.npy --tolerance -1", "--tolerance is -1"},
        {"run --q a.npy --k b.npy --v c.npy --out same.npy --lse same.npy", "same.npy"},
        {"run --type f64", "--type is 'f64'"},
        {"run --window 0", "--window is 0; it must be 1 to"},
        {"run --q a.npy --k b.npy --v c.npy --softcap 0", "--softcap is 0; it must be positive"},
        {"run --q a.npy --k b.npy --v c.npy --mask m.npy --tree-mask t.npy",
         "--mask and --tree-mask exclude each other"},
        {"run --q a.npy --k b.npy --v c.npy --page-indptr p.npy", "--page-indptr is given without --block-table"},
        {"run --q a.npy --k b.npy --v c.npy --csr", "--csr is given without --page-size"},
        {"run --q a.npy --k b.npy --v c.npy --page-seed 4", "--page-seed is given without --page-size"},
        {"run --q a.npy --k b.npy --v c.npy --block-table t.npy --csr", "--csr and --block-table exclude each other"},
        {"run --q a.npy --k b.npy --v c.npy --kv-group 32", "--kv-group is given without --kvtype"},
        {"run --q a.npy --k b.npy --v c.npy --kv-zeros", "--kv-zeros is given without --kvtype"},
        {"run --page-size 0", "--page-size is 0; it must be 1 to"},
        {"verify --problems 0", "--problems is 0"},
        {"verify --max-programs x", "--max-programs is 'x'"},
        {"bench b1 hq8 d128", "lacks kv"},
        {"bench 'b1 hq8 d128 kv64 page=none'", "page=none is 'none'; it must be a whole number"},
        {"bench --repeats 19", "--repeats is 19"},
        {"bench --json --csv -", "cannot both go to standard output"},
        {"tune --budget 0", "--budget is 0"},
        {"tune --scope planet", "--scope is 'planet'; it must be one of device|architecture|vendor"},
        {"tune --output /nonexistent/t.json b1 hq8 d128", "lacks kv"},
        {"tune --output /nonexistent/t.json b1 hq8 d128 kv64 prefix=8", "prefix=8 is two problems at once"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run("%s", cases[i].arguments);
        expect(2, cases[i].fragment);
        ck_assert_str_eq(out, "");
    }
    run("");
    ck_assert_int_eq(ended_with, 2);
}
END_TEST

START_TEST(help_lists_every_option_of_a_verb)
{
    static const struct {
        const char *verb, *options;
    } cases[] = {
        {"devices", "--json --device"},
        {"run",
         "--q --k --v --v-from-k --kv-lens --alibi --sinks --mask --tree-mask --bias --query-positions --kv-start "
         "--cache-batch-idx --shared-kv --block-table --page-indptr --page-size --page-seed --csr --kvtype --kv-group "
         "--kv-zeros --scale --causal --window --softcap --type --out-type --partial --splits --split-tokens --out "
         "--lse --expect --expect-lse --tolerance --status --json --device"},
        {"verify", "--problems --seed --start --max-programs --tuning --json --device"},
        {"bench", "--roofline-only --repeats --tuning --json --csv --device"},
        {"tune", "--output --quick --budget --max-rows --again --scope --json --device"},
    };
    char options[512], line[64];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run("%s --help", cases[i].verb);
        expect_success();
        strcpy(options, cases[i].options);
        for (const char *option = strtok(options, " "); option != NULL; option = strtok(NULL, " ")) {
            snprintf(line, sizeof line, "\n  %s ", option);
            ck_assert_msg(strstr(out, line) != NULL, "%s --help lacks %s", cases[i].verb, option);
        }
    }
    run("--help");
    expect_success();
    run("--version");
    expect_success();
}
END_TEST

/* The arguments of one golden case, without the expectations. */
static const char *golden_inputs(const char *name, char text[LINE_BYTES])
{
    snprintf(text, LINE_BYTES, "--q %s/%s/q.npy --k %s/%s/k.npy --v %s/%s/v.npy --kv-lens %s/%s/kv_lens.npy",
             TEST_GOLDEN, name, TEST_GOLDEN, name, TEST_GOLDEN, name, TEST_GOLDEN, name);
    return text;
}

START_TEST(no_platform_is_a_sentence_from_every_verb)
{
    static const char *const verbs[] = {"devices", "devices --json", "verify --problems 1", "bench hq1 d8 kv9",
                                        "tune hq1 d8 kv9 --output /nonexistent/t.json"};
    char inputs[LINE_BYTES], arguments[LINE_BYTES + 8];

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        run_in("OCL_ICD_VENDORS=/nonexistent", verbs[i]);
        expect(1, "latform");
    }
    snprintf(arguments, sizeof arguments, "run %s", golden_inputs("causal_short_f16_d64", inputs));
    run_in("OCL_ICD_VENDORS=/nonexistent", arguments);
    expect(1, "latform");
}
END_TEST

START_TEST(unknown_device_exits_1_and_names_the_candidates)
{
    static const char *const verbs[] = {"devices", "verify --problems 1", "bench hq1 d8 kv9",
                                        "tune hq1 d8 kv9 --output /nonexistent/t.json"};

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        run("%s --device no-such-device", verbs[i]);
        expect(1, "no-such-device");
        ck_assert_ptr_nonnull(strstr(err, "0:0"));
        run_in("CLFD_DEVICE=no-such-device", verbs[i]);
        expect(1, "no-such-device");
    }
}
END_TEST

START_TEST(devices_json_names_everything_and_its_spec_selects_the_device)
{
    static const char *const names[] = {"spec",   "platform",   "vendor",        "name",         "type",
                                        "driver", "opencl_c",   "compute_units", "memory_bytes", "max_alloc_bytes",
                                        "fp16",   "sub_groups", "family"};
    cJSON *devices, *again;

    run("devices --json");
    expect_success();
    devices = cJSON_Parse(out);
    ck_assert(cJSON_IsArray(devices));
    ck_assert_int_gt(cJSON_GetArraySize(devices), 0);
    for (const cJSON *device = devices->child; device != NULL; device = device->next) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(device, "name"));
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            ck_assert_msg(cJSON_HasObjectItem(device, names[i]), "%s is missing", names[i]);
        run("devices --json --device %s", cJSON_GetStringValue(cJSON_GetObjectItem(device, "spec")));
        expect_success();
        again = cJSON_Parse(out);
        ck_assert_int_eq(cJSON_GetArraySize(again), 1);
        ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(again->child, "name")), name);
        cJSON_Delete(again);
    }
    cJSON_Delete(devices);
}
END_TEST

/* Runs a golden case with options, in which @ stands for the folder of the case, and compares with its arrays. */
static void run_golden(const char *name, const char *options)
{
    char inputs[LINE_BYTES], line[LINE_BYTES];
    size_t used = 0;

    for (const char *c = options; *c != '\0'; c++)
        used += (size_t)snprintf(line + used, sizeof line - used, *c == '@' ? "%s/%s" : "%.1s",
                                 *c == '@' ? TEST_GOLDEN : c, name);
    line[used] = '\0';
    run("run %s --expect %s/%s/out.npy --expect-lse %s/%s/lse.npy %s", golden_inputs(name, inputs), TEST_GOLDEN, name,
        TEST_GOLDEN, name, line);
    ck_assert_msg(ended_with == 0, "%s %s: %s", name, options, err);
}

/* test_golden runs all of them; these are the options of the command line. */
START_TEST(golden_cases_come_out_within_the_tolerance)
{
    static const struct {
        const char *name, *options;
    } cases[] = {
        {"gqa4_f16_d128", "--causal --out-type f32 --partial mlo --splits 7"},
        {"gqa7_bf16_d128", "--causal --type bf16"},
        {"spec5_f16_d128", "--causal --split-tokens 16 --page-size 48 --page-seed 7"},
        {"hot_f32_d128", "--causal --tolerance 2e-3"},
        {"mla_f16_576_512", "--causal --scale 0.07216878364870323"},
        {"window128_f16_d128", "--causal --window 128"},
        {"window_spec5_f16_d64", "--causal --window 16 --page-size 16 --csr --status"},
        {"softcap50_f16_d256", "--causal --softcap 50"},
        {"alibi_f32_d64", "--causal --alibi @/alibi_slopes.npy"},
        {"sinks_window_bf16_d64", "--causal --window 128 --sinks @/sinks.npy --type bf16 --page-size 1"},
        {"tree_mask_f16_d128", "--mask @/mask.npy"},
        {"sinks_empty_f32_d64", "--sinks @/sinks.npy"},
        {"gqa4_f16_d128", "--kvtype f32 --tolerance 1e-3"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        run_golden(cases[i].name, cases[i].options);
}
END_TEST

/* Without --tolerance rounding to the type of the output is no error; with one it is. */
START_TEST(default_tolerance_allows_the_rounding_of_the_output)
{
    char inputs[LINE_BYTES];

    run_golden("gqa7_bf16_d128", "--causal --type bf16 --out-type bf16");
    run("run %s --causal --type bf16 --expect %s/gqa7_bf16_d128/out.npy --tolerance 1e-4",
        golden_inputs("gqa7_bf16_d128", inputs), TEST_GOLDEN);
    expect(1, "the tolerance is 0.0001");
}
END_TEST

/* The error against unquantised K and V stands beside the comparison, and grows as bits get fewer. */
START_TEST(kvtype_reports_the_error_against_unquantised_arrays)
{
    static const char *const types[] = {"q8_0", "int4 --kv-group 32", "q4_0", "int8,int4 --kv-zeros"};
    char inputs[LINE_BYTES];
    double errors[4];

    for (size_t i = 0; i < 4; i++) {
        run("run %s --kvtype %s --out-type f32 --json", golden_inputs("gqa4_f16_d128", inputs), types[i]);
        expect_success();
        cJSON *const report = cJSON_Parse(out), *const error = cJSON_GetObjectItem(report, "unquantised");
        errors[i] = cJSON_GetNumberValue(cJSON_GetObjectItem(error, "rms_error"));
        ck_assert_msg(errors[i] > 1e-5 && errors[i] < 0.02, "%s: rms error %g", types[i], errors[i]);
        ck_assert_double_ge(cJSON_GetNumberValue(cJSON_GetObjectItem(error, "max_error")), errors[i]);
        cJSON_Delete(report);
    }
    ck_assert_double_lt(4 * errors[0], errors[1]);
    ck_assert_double_lt(4 * errors[0], errors[2]);
    run("run %s --kvtype q6_k", golden_inputs("gqa4_f16_d128", inputs));
    expect(2, "--kvtype is 'q6_k'");
    run("run %s --kvtype q8_0", golden_inputs("d80_f16", inputs));
    expect(1, "the head dim is 80; in q8_0 it must be a multiple of 32");
}
END_TEST

START_TEST(value_from_key_equals_the_same_value_given)
{
    char inputs[LINE_BYTES];

    run("run %s --scale 0.07 --out %s/out.npy --lse %s/lse.npy", golden_inputs("mla_f16_576_512", inputs), folder,
        folder);
    expect_success();
    /* V of this case is the first 512 elements of K. */
    run("run --q %s/mla_f16_576_512/q.npy --k %s/mla_f16_576_512/k.npy --v-from-k 512 --scale 0.07 --out-type f32 "
        "--expect-lse %s/lse.npy --json",
        TEST_GOLDEN, TEST_GOLDEN, folder);
    expect_success();
}
END_TEST

static void read_array(const char *name, npy_array *array)
{
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert_msg(npy_read(path, array, &fault), "%s", fault.sentence);
}

static bool file_exists(const char *name)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (file != NULL)
        fclose(file);
    return file != NULL;
}

/* Where one of two outputs cannot be written, neither is, and nothing temporary stays. */
START_TEST(outputs_appear_together_or_not_at_all)
{
    char inputs[LINE_BYTES];

    run("run %s --causal --out %s/whole.npy --lse %s", golden_inputs("causal_short_f16_d64", inputs), folder, folder);
    ck_assert_int_eq(ended_with, 1);
    ck_assert_ptr_nonnull(strstr(err, "must name a file"));
    ck_assert(!file_exists("whole.npy"));
    ck_assert(!file_exists("whole.npy.tmp0"));
}
END_TEST

START_TEST(two_outputs_cannot_be_one_file_by_another_name)
{
    char inputs[LINE_BYTES];

    run("run %s --causal --out %s/one.npy --lse %s/./one.npy", golden_inputs("causal_short_f16_d64", inputs), folder,
        folder);
    ck_assert_int_eq(ended_with, 2);
    ck_assert_ptr_nonnull(strstr(err, "name one file"));
    ck_assert(!file_exists("one.npy"));
}
END_TEST

START_TEST(written_files_have_the_shape_and_type_asked_for)
{
    static const struct {
        const char *option, *type;
    } cases[] = {{"", "f2"}, {"--out-type f32", "f4"}, {"--out-type f16", "f2"}, {"--out-type bf16", "u2"}};
    char inputs[LINE_BYTES], shape[NPY_SHAPE_BYTES];
    npy_array array = {0};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run("run %s --causal %s --out %s/out.npy --lse %s/lse.npy", golden_inputs("causal_short_f16_d64", inputs),
            cases[i].option, folder, folder);
        expect_success();
        read_array("out.npy", &array);
        ck_assert_str_eq(npy_type(&array).text, cases[i].type);
        ck_assert_str_eq(npy_shape(&array, shape), "(2, 4, 2, 64)");
        npy_free(&array);
        read_array("lse.npy", &array);
        ck_assert_str_eq(npy_type(&array).text, "f4");
        ck_assert_str_eq(npy_shape(&array, shape), "(2, 4, 2)");
        npy_free(&array);
    }
}
END_TEST

START_TEST(rows_without_keys_are_exactly_zero_and_minus_infinity)
{
    char inputs[LINE_BYTES];
    npy_array values = {0}, lse = {0};

    /* Lengths 2 and 0 for 4 causal queries: queries 0 and 1 of the first sequence and all of the second see nothing. */
    run("run %s --causal --out-type f32 --out %s/out.npy --lse %s/lse.npy",
        golden_inputs("causal_short_f16_d64", inputs), folder, folder);
    expect_success();
    read_array("out.npy", &values);
    read_array("lse.npy", &lse);
    for (size_t row = 0; row < lse.count; row++) {
        const bool empty = row < 4 || row >= 8;
        const float s = ((const float *)lse.data)[row];
        ck_assert_msg(empty ? s == -INFINITY : isfinite(s), "lse of row %zu is %g", row, s);
        for (size_t d = 0; d < 64 && empty; d++)
            ck_assert_float_eq(((const float *)values.data)[row * 64 + d], 0.0f);
    }
    npy_free(&values);
    npy_free(&lse);
}
END_TEST

/* Writes an array of 4-byte elements: `values`, or zeros. */
static void write_array(const char *name, char kind, uint32_t num_dims, const uint64_t *shape, const int32_t *values)
{
    npy_array array = {.kind = kind, .item_bytes = 4, .num_dims = num_dims, .count = 1};
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    output_file output;
    char path[128];

    for (uint32_t i = 0; i < num_dims; i++) {
        array.shape[i] = shape[i];
        array.count *= shape[i];
    }
    array.data = calloc(array.count, array.item_bytes);
    ck_assert_ptr_nonnull(array.data);
    if (values != NULL)
        memcpy(array.data, values, array.count * sizeof values[0]);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ck_assert(output_open(&output, path, &fault) && npy_write(&output, &array, &fault) &&
              output_close(&output, &fault) && output_commit(&output, &fault));
    output_discard(&output);
    npy_free(&array);
}

/* Tables that name no page, and rows that there are not: --status lists the flags, without it they are warnings. */
START_TEST(status_word_names_what_was_hidden)
{
    static const int32_t entries[] = {1, 9, 0, 1}, rows[] = {0, 7}, five[] = {5, 300};
    const char *const arrays = "--q %s/q.npy --k %s/k.npy --v %s/v.npy";
    char inputs[LINE_BYTES];

    write_array("q.npy", 'f', 4, (const uint64_t[]){2, 1, 2, 8}, NULL);
    write_array("k.npy", 'f', 4, (const uint64_t[]){2, 4, 1, 8}, NULL);
    write_array("v.npy", 'f', 4, (const uint64_t[]){2, 4, 1, 8}, NULL);
    write_array("table.npy", 'i', 2, (const uint64_t[]){2, 2}, entries);
    write_array("rows.npy", 'i', 1, (const uint64_t[]){2}, rows);
    write_array("lens.npy", 'i', 1, (const uint64_t[]){2}, five);
    snprintf(inputs, sizeof inputs, arrays, folder, folder, folder);
    run("run %s --block-table %s/table.npy --status", inputs, folder);
    expect_success();
    ck_assert_ptr_nonnull(strstr(out, "\nstatus     page"));
    ck_assert_str_eq(err, "");
    run("run %s --cache-batch-idx %s/rows.npy --status --json", inputs, folder);
    expect_success();
    ck_assert_ptr_nonnull(strstr(out, "\"status\":\t[\"cache_row\"]"));
    run("run %s --cache-batch-idx %s/rows.npy", inputs, folder);
    expect(0, "clfd: warning: a cache_batch_idx names no cache row");
    run("run %s --status", inputs);
    expect_success();
    ck_assert_ptr_nonnull(strstr(out, "\nstatus     no flag"));
    run("run %s --kv-lens %s/lens.npy", inputs, folder);
    expect(0, "clfd: warning: --kv-lens[0] is 5; 2 such lengths are clamped to 0 to 4");
}
END_TEST

START_TEST(arrays_that_do_not_fit_together_exit_1)
{
    static const struct {
        uint64_t q[4], k[4], v[4];
        const char *fragment;
    } cases[] = {
        {{1, 1, 3, 8}, {1, 5, 2, 8}, {1, 5, 2, 8}, "3"},     /* heads: no multiple */
        {{1, 1, 2, 12}, {1, 5, 2, 12}, {1, 5, 2, 12}, "12"}, /* head_dim: no multiple of 8 */
        {{1, 17, 2, 8}, {1, 5, 2, 8}, {1, 5, 2, 8}, "17"},   /* q_len */
        {{2, 1, 2, 8}, {1, 5, 2, 8}, {1, 5, 2, 8}, "the batch is 2 in --q and 1 in --k"},
        {{1, 1, 2, 16}, {1, 5, 2, 8}, {1, 5, 2, 8}, "head_dim is 16 in --q and 8 in --k"},
        {{1, 1, 2, 8}, {1, 5, 2, 8}, {1, 4, 2, 8}, "the number of tokens is 5 in --k and 4 in --v"},
        {{1, 1, 2, 8}, {1, 5, 2, 8}, {1, 5, 1, 8}, "the number of KV heads is 2 in --k and 1 in --v"},
        {{1, 1, 2, 8}, {1, 0, 2, 8}, {1, 0, 2, 8}, "every dimension must be 1 to"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_array("q.npy", 'f', 4, cases[i].q, NULL);
        write_array("k.npy", 'f', 4, cases[i].k, NULL);
        write_array("v.npy", 'f', 4, cases[i].v, NULL);
        run("run --q %s/q.npy --k %s/k.npy --v %s/v.npy --out %s/out.npy", folder, folder, folder, folder);
        expect(1, cases[i].fragment);
        ck_assert_msg(!exists("out.npy"), "an output was written");
    }
}
END_TEST

START_TEST(types_come_from_the_arrays_or_from_the_option)
{
    char inputs[LINE_BYTES];

    run("run %s", golden_inputs("gqa7_bf16_d128", inputs));
    expect(1, "--type bf16 must say that they are bf16");
    run("run %s --type f32", golden_inputs("gqa4_f16_d128", inputs));
    expect(1, "--type is f32");
    run("run --q %s/gqa4_f16_d128/lse.npy --k a.npy --v b.npy", TEST_GOLDEN);
    expect(1, "it must have 4 dimensions");
    run("run %s --expect %s/gqa4_f16_d128/q.npy", golden_inputs("gqa4_f16_d128", inputs), TEST_GOLDEN);
    expect(1, "expected values must be f8 or f4");
    run("run %s --expect %s/mha_f32_d64/out.npy", golden_inputs("gqa4_f16_d128", inputs), TEST_GOLDEN);
    expect(1, "what is computed has shape (1, 1, 8, 128)");
}
END_TEST

START_TEST(exceeded_tolerance_exits_1_names_the_element_and_still_writes)
{
    char inputs[LINE_BYTES];
    npy_array array = {0};

    /* Without --causal the queries see keys that the expected values exclude. */
    run("run %s --out-type f32 --out %s/out.npy --expect %s/spec5_f16_d128/out.npy --json",
        golden_inputs("spec5_f16_d128", inputs), folder, TEST_GOLDEN);
    expect(1, "out[");
    ck_assert_ptr_nonnull(strstr(out, "\"passed\":\tfalse"));
    read_array("out.npy", &array);
    npy_free(&array);
    run("run %s --causal --out-type f32 --expect-lse %s/spec5_f16_d128/lse.npy --tolerance 0",
        golden_inputs("spec5_f16_d128", inputs), TEST_GOLDEN);
    expect(1, "lse[");
}
END_TEST

START_TEST(file_that_cannot_be_written_leaves_all_outputs_alone)
{
    char inputs[LINE_BYTES], text[16];

    test_folder_write(folder, "out.npy", "before");
    run("run %s --out %s/out.npy --lse %s/no/folder/lse.npy", golden_inputs("causal_short_f16_d64", inputs), folder,
        folder);
    expect(1, "no/folder/lse.npy");
    read_text("out.npy", text, sizeof text);
    ck_assert_str_eq(text, "before");
}
END_TEST

START_TEST(verify_passes_and_reports_every_feature)
{
    cJSON *report;

    run("verify --problems 4 --max-programs 2 --json");
    expect_success();
    report = cJSON_Parse(out);
    ck_assert_double_eq(cJSON_GetNumberValue(cJSON_GetObjectItem(report, "problems")), 4);
    ck_assert_double_eq(cJSON_GetNumberValue(cJSON_GetObjectItem(report, "failures")), 0);
    ck_assert_int_gt(cJSON_GetArraySize(cJSON_GetObjectItem(report, "features")), 30);
    cJSON_Delete(report);
    run("verify --problems 1 --max-programs 2 --tuning nonsense=1");
    expect(1, "none of the 1 problems allows the tuning override: ");
    expect(1, "nonsense");
}
END_TEST

/* A kernel with a fault, through CLFD_KERNEL_DIR: verify must see it, and its command must repeat it. */
START_TEST(verify_fails_on_a_wrong_kernel_and_prints_the_command_that_repeats_it)
{
    char environment[LINE_BYTES], line[LINE_BYTES], *command, *end;

    snprintf(line, sizeof line,
             "cp %s/*.cl %s/*.h %s/ && sed -i 's/m + state_log(l);/m + state_log(l) + 0.001f;/' %s/state.cl",
             TEST_KERNEL_DIR, TEST_KERNEL_DIR, folder, folder);
    ck_assert_int_eq(system(line), 0);
    snprintf(environment, sizeof environment, "CLFD_KERNEL_DIR=%s", folder);
    run_in(environment, "verify --problems 4 --max-programs 2");
    ck_assert_int_eq(ended_with, 1);
    command = strstr(err, "repeat: clfd ");
    ck_assert_msg(command != NULL, "no command in '%s'", err);
    command += strlen("repeat: clfd ");
    end = strchr(command, '\n');
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    snprintf(line, sizeof line, "%s", command);
    run_in(environment, line);
    ck_assert_int_eq(ended_with, 1);
    ck_assert_ptr_nonnull(strstr(err, "1 of 1 problems failed"));
    run("%s", line);
    expect_success();
}
END_TEST

START_TEST(bench_writes_json_and_csv)
{
    static const char *const numbers[] = {"read_single_us", "read_steady_us", "single_us",      "steady_us",
                                          "single_gbs",     "steady_gbs",     "single_percent", "steady_percent",
                                          "split_us",       "host_us"};
    static const char *const parts[] = {"prefix_us", "suffix_us", "combine_us"};
    char text[4096];
    cJSON *report;

    run("bench b2 hq2 hkv1 d64 kv256 f32 ragged=1..256 --json --csv %s/bench.csv", folder);
    expect_success();
    report = cJSON_Parse(out);
    const cJSON *result = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "results"), 0);
    ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(result, "problem")),
                     "b2 q1 hq2 hkv1 d64 kv256 f32 ragged=1..256");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        ck_assert_msg(cJSON_GetNumberValue(cJSON_GetObjectItem(result, numbers[i])) > 0, "%s is not above 0",
                      numbers[i]);
    cJSON_Delete(report);
    read_text("bench.csv", text, sizeof text);
    ck_assert_int_eq(strncmp(text, "problem,plan,read_bytes,", 24), 0);
    ck_assert_ptr_nonnull(strstr(text, "\nb2 q1 hq2 hkv1 d64 kv256 f32 ragged=1..256,decode_"));
    run("bench b2 hq2 d64 kv64 kvtype=q8_0 page=16 prefix=128 --json");
    expect_success();
    report = cJSON_Parse(out);
    result = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "results"), 0);
    /* The prefix once, and 2 suffixes, of 2 heads' K and V in 2 blocks of 34 bytes. */
    ck_assert_double_eq(cJSON_GetNumberValue(cJSON_GetObjectItem(result, "read_bytes")), (128 + 2 * 64) * 2 * 2 * 68);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        ck_assert_msg(cJSON_GetNumberValue(cJSON_GetObjectItem(result, parts[i])) > 0, "%s is not above 0", parts[i]);
    cJSON_Delete(report);
    run("bench --roofline-only hq2 d64 kv256");
    expect_success();
    ck_assert_ptr_null(strstr(out, "decode"));
    run("bench hq3 hkv2 d64 kv256");
    expect(1, "3");
}
END_TEST

/* The first row of the tuning file `name` of the folder; *whole is the caller's to delete. */
static const cJSON *read_row(const char *name, cJSON **whole)
{
    char text[16384];

    read_text(name, text, sizeof text);
    *whole = cJSON_Parse(text);
    const cJSON *const rows = cJSON_GetObjectItem(*whole, "rows");
    ck_assert_int_ge(cJSON_GetArraySize(rows), 1);
    return rows->child;
}

#define TUNED "b1 hq2 hkv1 d64 kv16384 f32"

/* Interrupted or not, a second run goes on where the first one stopped. */
START_TEST(tune_writes_its_file_class_by_class_and_continues)
{
    char before[16384], after[16384];
    cJSON *whole;

    run("tune " TUNED " --max-rows 1 --output %s/sub/t.json", folder);
    expect_success();
    ck_assert_str_eq(err, "");
    const cJSON *const row = read_row("sub/t.json", &whole);
    ck_assert_double_eq(cJSON_GetNumberValue(cJSON_GetObjectItem(row, "ratio")), 2);
    ck_assert_double_eq(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetObjectItem(row, "measured"), "rows_tried")),
                        2);
    cJSON_Delete(whole);
    read_text("sub/t.json", before, sizeof before);
    run("tune " TUNED " b1 hq1 d64 kv256 f16 --max-rows 1 --output %s/sub/t.json", folder);
    expect_success();
    ck_assert_ptr_nonnull(strstr(out, "f32 d64 ratio 2            in the file already"));
    read_text("sub/t.json", after, sizeof after);
    /* All but the end of the array is as it was. */
    ck_assert_int_eq(strncmp(before, after, strlen(before) - 8), 0);
    ck_assert_uint_gt(strlen(after), strlen(before) + 100);
    run("tune " TUNED " --again --json --max-rows 0 --output %s/sub/t.json", folder);
    expect_success();
    whole = cJSON_Parse(out);
    ck_assert_int_eq(cJSON_GetArraySize(cJSON_GetObjectItem(whole, "rows")), 1);
    cJSON_Delete(whole);
    snprintf(before, sizeof before, "rm -r %s/sub", folder);
    ck_assert_int_eq(system(before), 0);
}
END_TEST

START_TEST(tune_writes_where_the_library_reads)
{
    char environment[256], line[256];
    cJSON *whole;

    snprintf(environment, sizeof environment, "CLFD_TUNING=%s/named.json", folder);
    run_in(environment, "tune " TUNED " --max-rows 0");
    expect_success();
    read_row("named.json", &whole);
    cJSON_Delete(whole);
    run_in("CLFD_TUNING=none", "tune " TUNED " --max-rows 0");
    expect(2, "CLFD_TUNING is none");
    run_in(environment, "devices --device no-such-device");
    expect(1, "no-such-device");
    snprintf(environment, sizeof environment, "CLFD_TUNING= XDG_CONFIG_HOME=%s", folder);
    run_in(environment, "tune " TUNED " --max-rows 0");
    expect_success();
    read_row("clfd/tuning.json", &whole);
    cJSON_Delete(whole);
    snprintf(line, sizeof line, "rm -r %s/clfd", folder);
    ck_assert_int_eq(system(line), 0);
    test_folder_write(folder, "named.json", "{\"mine\": 1}");
    snprintf(environment, sizeof environment, "CLFD_TUNING=%s/named.json", folder);
    run_in(environment, "tune " TUNED);
    expect(1, "named.json is no tuning file");
    run_in(environment, "bench hq1 d8 kv9");
    expect(1, "named.json is no tuning file");
}
END_TEST

/* Kernels with a fault, through CLFD_KERNEL_DIR: one whose plain form does nothing, and is fast; then all of them. */
START_TEST(tune_takes_no_row_that_computes_wrong_results)
{
    static const char *const faults[] = {
        "s/    float8 sum = 0.0f;/    if (HEAD_DIM > 0) return; &/' %s/decode_vector.cl",
        "s/m + state_log(l);/m + state_log(l) + 0.001f;/' %s/state.cl"};
    char environment[LINE_BYTES], line[LINE_BYTES], edit[256];
    cJSON *whole;

    snprintf(environment, sizeof environment, "CLFD_KERNEL_DIR=%s", folder);
    for (size_t i = 0; i < 2; i++) {
        snprintf(edit, sizeof edit, faults[i], folder);
        snprintf(line, sizeof line, "cp %s/*.cl %s/*.h %s/ && sed -i '%s", TEST_KERNEL_DIR, TEST_KERNEL_DIR, folder,
                 edit);
        ck_assert_int_eq(system(line), 0);
        snprintf(line, sizeof line, "tune " TUNED " --max-rows 1 --output %s/t%zu.json", folder, i);
        run_in(environment, line);
        if (i == 0)
            expect_success();
    }
    expect(1, "gives right results");
    ck_assert(!file_exists("t1.json"));
    const cJSON *const row = read_row("t0.json", &whole);
    ck_assert_str_eq(cJSON_GetStringValue(cJSON_GetObjectItem(row, "tuning")), "");
    ck_assert_double_eq(cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetObjectItem(row, "measured"), "rows_wrong")),
                        1);
    cJSON_Delete(whole);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        malformed_arguments_exit_2,
        help_lists_every_option_of_a_verb,
        no_platform_is_a_sentence_from_every_verb,
        unknown_device_exits_1_and_names_the_candidates,
        devices_json_names_everything_and_its_spec_selects_the_device,
        golden_cases_come_out_within_the_tolerance,
        default_tolerance_allows_the_rounding_of_the_output,
        kvtype_reports_the_error_against_unquantised_arrays,
        value_from_key_equals_the_same_value_given,
        outputs_appear_together_or_not_at_all,
        two_outputs_cannot_be_one_file_by_another_name,
        written_files_have_the_shape_and_type_asked_for,
        rows_without_keys_are_exactly_zero_and_minus_infinity,
        status_word_names_what_was_hidden,
        arrays_that_do_not_fit_together_exit_1,
        types_come_from_the_arrays_or_from_the_option,
        exceeded_tolerance_exits_1_names_the_element_and_still_writes,
        file_that_cannot_be_written_leaves_all_outputs_alone,
        verify_passes_and_reports_every_feature,
        verify_fails_on_a_wrong_kernel_and_prints_the_command_that_repeats_it,
        bench_writes_json_and_csv,
        tune_writes_its_file_class_by_class_and_continues,
        tune_writes_where_the_library_reads,
        tune_takes_no_row_that_computes_wrong_results,
    };

    /* The program is a process of its own: it finds the tests' device through the environment. */
    setenv("CLFD_DEVICE", "platform=Portable", 0);
    return run_suite_around("cli", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
}

/* The golden cases: attention computed elsewhere in double precision and stored as arrays. Every case of manifest.json
 * through the kernels and through the reference, as it lies, and cut into shuffled pages. */
#include "compare.h"
#include "run.h"
#include "support/suite.h"
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_CASES = 20, PATH_BYTES = 512 };

/* Absolute; hot cases have scores in the hundreds. */
#define TOLERANCE 1e-4
#define HOT_TOLERANCE 2e-3

static cJSON *manifest;
static tool_session session;

static void read_manifest(void)
{
    char *text = NULL;
    long bytes;
    FILE *const file = fopen(TEST_GOLDEN "/manifest.json", "rb");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    bytes = ftell(file);
    ck_assert_int_gt(bytes, 0);
    rewind(file);
    text = malloc((size_t)bytes + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(fread(text, 1, (size_t)bytes, file), (size_t)bytes);
    text[bytes] = '\0';
    fclose(file);
    manifest = cJSON_Parse(text);
    free(text);
    ck_assert_msg(cJSON_IsArray(manifest), "manifest.json is no JSON array");
}

static void forget_manifest(void) { cJSON_Delete(manifest); }

/* ---- A case as the manifest describes it ------------------------------------------------------------------------- */

static double number(const cJSON *entry, const char *key)
{
    const cJSON *const value = cJSON_GetObjectItemCaseSensitive(entry, key);

    ck_assert_msg(cJSON_IsNumber(value), "manifest.json: %s is no number", key);
    return value->valuedouble;
}

static bool flag(const cJSON *entry, const char *key)
{
    const cJSON *const value = cJSON_GetObjectItemCaseSensitive(entry, key);

    ck_assert_msg(cJSON_IsBool(value), "manifest.json: %s is no boolean", key);
    return cJSON_IsTrue(value) != 0;
}

static const char *text(const cJSON *entry, const char *key)
{
    const char *const value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, key));

    ck_assert_msg(value != NULL, "manifest.json: %s is no string", key);
    return value;
}

static bool is_named(const cJSON *entry, const char *start)
{
    return strncmp(text(entry, "name"), start, strlen(start)) == 0;
}

/* How a case is run. */
typedef struct golden_form {
    uint32_t page_size; /* 0: as it lies */
    bool csr, v_from_k;
    uint64_t split_tokens;
    const char *tuning;
} golden_form;

/* The case as the tool would be given it on its command line. */
static run_input load(const cJSON *entry, const golden_form *form)
{
    const struct {
        run_operand operand;
        bool wanted;
        const char *name;
    } files[] = {
        {RUN_Q, true, "q"},
        {RUN_K, true, "k"},
        {RUN_V, !form->v_from_k, "v"},
        {RUN_KV_LENS, true, "kv_lens"},
        {RUN_ALIBI, flag(entry, "alibi"), "alibi_slopes"},
        {RUN_SINKS, flag(entry, "sinks"), "sinks"},
        {RUN_MASK, flag(entry, "mask"), "mask"},
    };
    const double window = number(entry, "window"), softcap = number(entry, "softcap");
    static char paths[sizeof files / sizeof files[0]][PATH_BYTES];
    run_options options = {.v_from_k = form->v_from_k ? (uint64_t)number(entry, "head_dim_v") : RUN_NOT_GIVEN,
                           .num_splits = RUN_NOT_GIVEN,
                           .split_tokens = form->split_tokens,
                           .window = window > 0 ? (uint64_t)window : RUN_NOT_GIVEN,
                           .page_size = RUN_NOT_GIVEN,
                           .page_seed = RUN_NOT_GIVEN,
                           .kv_group = RUN_NOT_GIVEN,
                           .scale = number(entry, "scale"),
                           .softcap = softcap > 0 ? softcap : (double)NAN,
                           .tolerance = (double)NAN,
                           .causal = flag(entry, "causal"),
                           .out_type = CLFD_TYPE_F32,
                           .type = strcmp(text(entry, "dtype"), "bf16") == 0 ? CLFD_TYPE_BF16 : 0};
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    run_input input;

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (files[i].wanted) {
            snprintf(paths[i], PATH_BYTES, "%s/%s/%s.npy", TEST_GOLDEN, text(entry, "name"), files[i].name);
            options.files[files[i].operand] = paths[i];
        }
    ck_assert_msg(run_input_load(&options, &input, &fault), "%s", fault.sentence);
    ck_assert_uint_eq(input.attention.max_batch, (uint32_t)number(entry, "batch"));
    ck_assert_uint_eq(input.attention.max_kv_len, (uint32_t)number(entry, "kv_capacity"));
    ck_assert_str_eq(clfd_type_name(input.attention.k_type), text(entry, "dtype"));
    if (form->page_size > 0)
        ck_assert_msg(run_cut_pages(&input, form->page_size, 1, form->csr, &fault), "%s", fault.sentence);
    input.attention.tuning = form->tuning;
    return input;
}

static npy_array read_expected(const cJSON *entry, const char *name)
{
    char path[PATH_BYTES];
    npy_array array;
    tool_fault fault = {.exit_code = EXIT_CODE_OK};

    snprintf(path, sizeof path, "%s/%s/%s.npy", TEST_GOLDEN, text(entry, "name"), name);
    ck_assert_msg(npy_read(path, &array, &fault), "%s", fault.sentence);
    return array;
}

/* ---- Running it -------------------------------------------------------------------------------------------------- */

static void expect(const cJSON *entry, const golden_form *form, const npy_array *actual, const char *name,
                   compare_rule rule)
{
    const double tolerance = is_named(entry, "hot") ? HOT_TOLERANCE : TOLERANCE;
    npy_array expected = read_expected(entry, name);

    ck_assert_uint_eq(expected.count, actual->count);
    ck_assert_mem_eq(expected.shape, actual->shape, actual->num_dims * sizeof actual->shape[0]);
    const comparison c = compare_array(actual->data, &expected, rule, CLFD_TYPE_DEFAULT, tolerance);
    ck_assert_msg(c.passed, "%s, pages of %u, splits of %u: %s[%zu] is %.9g instead of %.9g", text(entry, "name"),
                  form->page_size, (unsigned)form->split_tokens, name, c.worst, c.actual, c.expected);
    npy_free(&expected);
}

static void expect_golden(const cJSON *entry, const golden_form *form)
{
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    run_input input = load(entry, form);
    run_result result;

    ck_assert_msg(run_execute(&session, &input, &result, &fault), "%s: %s", text(entry, "name"), fault.sentence);
    if (form->tuning != NULL)
        ck_assert_ptr_nonnull(strstr(result.plan, "decode_lanes "));
    ck_assert_uint_eq(result.status, 0);
    expect(entry, form, &result.out, "out", COMPARE_ABSOLUTE);
    expect(entry, form, &result.lse, "lse", COMPARE_LSE);
    run_result_free(&result);
    run_input_free(&input);
}

/* In splits of 50 tokens, then in one. */
static void expect_golden_in_splits(const cJSON *entry, golden_form form)
{
    form.split_tokens = 50;
    expect_golden(entry, &form);
    form.split_tokens = 10000;
    expect_golden(entry, &form);
}

/* Every case in one form; `start`: those whose name begins so. Returns how many. */
static int expect_all(const char *start, golden_form form)
{
    const cJSON *entry;
    int count = 0;

    cJSON_ArrayForEach(entry, manifest)
    {
        if (!is_named(entry, start))
            continue;
        expect_golden_in_splits(entry, form);
        count++;
    }
    return count;
}

START_TEST(cases_match_their_arrays) { ck_assert_int_eq(expect_all("", (golden_form){.page_size = 0}), NUM_CASES); }
END_TEST

START_TEST(cases_match_from_pages_of_one_token)
{
    ck_assert_int_eq(expect_all("", (golden_form){.page_size = 1}), NUM_CASES);
}
END_TEST

START_TEST(cases_match_from_pages_of_16_tokens)
{
    ck_assert_int_eq(expect_all("", (golden_form){.page_size = 16}), NUM_CASES);
}
END_TEST

START_TEST(cases_match_from_pages_of_48_tokens_in_csr_form)
{
    ck_assert_int_eq(expect_all("", (golden_form){.page_size = 48, .csr = true}), NUM_CASES);
}
END_TEST

START_TEST(mla_matches_its_arrays_with_values_from_keys)
{
    ck_assert_int_eq(expect_all("mla", (golden_form){.v_from_k = true}), 1);
    ck_assert_int_eq(expect_all("mla", (golden_form){.v_from_k = true, .page_size = 16}), 1);
}
END_TEST

/* Those of head_dim 128 in f16. */
START_TEST(lanes_family_matches_the_arrays)
{
    const cJSON *entry;
    int count = 0;

    cJSON_ArrayForEach(entry, manifest)
    {
        if (number(entry, "head_dim") != 128 || strcmp(text(entry, "dtype"), "f16") != 0)
            continue;
        expect_golden_in_splits(entry, (golden_form){.tuning = "family=decode_lanes rows=1"});
        expect_golden_in_splits(entry, (golden_form){.tuning = "family=decode_lanes rows=1", .page_size = 16});
        count++;
    }
    ck_assert_int_eq(count, 5);
}
END_TEST

START_TEST(reference_matches_the_arrays)
{
    const cJSON *entry;

    cJSON_ArrayForEach(entry, manifest)
    {
        for (uint32_t page_size = 0; page_size <= 48; page_size += 48) {
            const golden_form form = {.page_size = page_size, .split_tokens = RUN_NOT_GIVEN};
            tool_fault fault = {.exit_code = EXIT_CODE_OK};
            run_input input = load(entry, &form);
            npy_array expected = read_expected(entry, "out");
            double *out;
            ck_assert_msg(run_reference(&input.attention, input.arrays, &out, &fault), "%s", fault.sentence);
            /* The arrays come from double precision, too; their ALiBi slopes, sinks and scale are those of float. */
            for (size_t i = 0; i < expected.count; i++)
                EXPECT(fabs(out[i] - ((const double *)expected.data)[i]) <= 1e-6,
                       "%s: out[%zu] is %.9g instead of %.9g", text(entry, "name"), i, out[i],
                       ((const double *)expected.data)[i]);
            free(out);
            npy_free(&expected);
            run_input_free(&input);
        }
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        cases_match_their_arrays,
        cases_match_from_pages_of_one_token,
        cases_match_from_pages_of_16_tokens,
        cases_match_from_pages_of_48_tokens_in_csr_form,
        mla_matches_its_arrays_with_values_from_keys,
        lanes_family_matches_the_arrays,
        reference_matches_the_arrays,
    };
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    int result = 1;

    if (session_open(&session, getenv("CLFD_DEVICE") != NULL ? NULL : "platform=Portable,type=cpu", &fault))
        result = run_suite_around("golden", tests, sizeof tests / sizeof tests[0], read_manifest, forget_manifest);
    else
        fprintf(stderr, "%s\n", fault.sentence);
    session_close(&session);
    return result;
}

/* The golden cases: attention computed elsewhere in double precision and stored as arrays. Every case of manifest.json
 * that needs no more than the library has so far, through the kernels and through the reference. */
#include "npy.h"
#include "support/attention.h"
#include "support/compare.h"
#include "support/suite.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_CASES = 12, MAX_BATCH = 8 };

static cJSON *manifest;

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

static uint32_t count_of(const cJSON *entry, const char *key) { return (uint32_t)number(entry, key); }

static bool flag(const cJSON *entry, const char *key)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(entry, key)) != 0;
}

static const char *name_of(const cJSON *entry)
{
    const char *const name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "name"));

    ck_assert_ptr_nonnull(name);
    return name;
}

static bool needs_more(const cJSON *entry)
{
    return number(entry, "window") > 0.0 || number(entry, "softcap") > 0.0 || flag(entry, "alibi") ||
           flag(entry, "sinks") || flag(entry, "mask");
}

static clfd_type type_of(const cJSON *entry)
{
    const char *const name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "dtype"));

    for (clfd_type type = CLFD_TYPE_F32; name != NULL && type <= CLFD_TYPE_BF16; type++)
        if (strcmp(name, clfd_type_name(type)) == 0)
            return type;
    ck_abort_msg("manifest.json: %s has no known dtype", name_of(entry));
    return CLFD_TYPE_DEFAULT;
}

/* kv_lens: room for MAX_BATCH lengths that live as long as the problem. */
static attention_problem describe(const cJSON *entry, int32_t *kv_lens)
{
    const cJSON *const lens = cJSON_GetObjectItemCaseSensitive(entry, "kv_lens");
    const uint32_t batch = count_of(entry, "batch");

    ck_assert_uint_le(batch, MAX_BATCH);
    ck_assert_int_eq(cJSON_GetArraySize(lens), (int)batch);
    for (uint32_t b = 0; b < batch; b++)
        kv_lens[b] = cJSON_GetArrayItem(lens, (int)b)->valueint;
    return (attention_problem){
        .attention = {.max_batch = batch,
                      .q_len = count_of(entry, "q_len"),
                      .num_q_heads = count_of(entry, "num_q_heads"),
                      .num_kv_heads = count_of(entry, "num_kv_heads"),
                      .head_dim = count_of(entry, "head_dim"),
                      .head_dim_v = count_of(entry, "head_dim_v"),
                      .q_type = type_of(entry),
                      .out_type = CLFD_TYPE_F32,
                      .max_kv_len = count_of(entry, "kv_capacity"),
                      .scale = (float)number(entry, "scale"),
                      .causal = flag(entry, "causal")},
        .kv_lens = kv_lens,
        .hot = strncmp(name_of(entry), "hot", 3) == 0,
    };
}

/* ---- Its arrays -------------------------------------------------------------------------------------------------- */

static npy_array load(const cJSON *entry, const char *array_name)
{
    char path[512];
    npy_array array;
    tool_fault fault = {.exit_code = EXIT_CODE_OK};

    snprintf(path, sizeof path, "%s/%s/%s.npy", TEST_GOLDEN, name_of(entry), array_name);
    ck_assert_msg(npy_read(path, &array, &fault), "%s", fault.sentence);
    return array;
}

/* The tensors are stored as they lie in a dense buffer. */
static void load_tensor(const cJSON *entry, const char *array_name, tensor_image *image)
{
    npy_array array = load(entry, array_name);

    ck_assert_uint_eq(array.count * array.item_bytes, image->bytes);
    memcpy(image->data, array.data, image->bytes);
    npy_free(&array);
}

/* Runs a case as `problem` has it and compares out and lse. */
static void expect_golden(const cJSON *entry, const attention_problem *problem)
{
    attention_call *const call = attention_open(problem);
    npy_array out = load(entry, "out"), lse = load(entry, "lse");

    ck_assert_uint_eq(out.count, call->num_rows * call->complete.head_dim_v);
    ck_assert_uint_eq(lse.count, call->num_rows);
    ck_assert(out.item_bytes == sizeof(double) && lse.item_bytes == sizeof(double));
    load_tensor(entry, "q", &call->images[ATTENTION_Q]);
    load_tensor(entry, "k", &call->images[ATTENTION_K]);
    if (!call->complete.v_from_k)
        load_tensor(entry, "v", &call->images[ATTENTION_V]);
    attention_run(call);
    attention_expect(call, out.data, lse.data);
    attention_expect_reference(call);
    ASSERT_DOUBLES(call->expected_out, (const double *)out.data, out.count, TOLERANCE_STATE);
    ASSERT_DOUBLES(call->expected_lse, (const double *)lse.data, lse.count, TOLERANCE_STATE);
    npy_free(&out);
    npy_free(&lse);
    attention_close(call);
}

/* In splits of 50 tokens, then in one. */
static void expect_golden_in_splits(const cJSON *entry, attention_problem *problem)
{
    problem->attention.split_policy = CLFD_SPLIT_TOKENS;
    problem->attention.split_size = 50;
    expect_golden(entry, problem);
    problem->attention.split_size = 10000;
    expect_golden(entry, problem);
}

START_TEST(cases_match_their_arrays)
{
    const cJSON *entry;
    int32_t kv_lens[MAX_BATCH];
    int count = 0;

    cJSON_ArrayForEach(entry, manifest)
    {
        if (needs_more(entry))
            continue;
        attention_problem problem = describe(entry, kv_lens);
        expect_golden_in_splits(entry, &problem);
        count++;
    }
    ck_assert_int_eq(count, NUM_CASES);
}
END_TEST

START_TEST(mla_matches_its_arrays_with_values_from_keys)
{
    const cJSON *entry;
    int32_t kv_lens[MAX_BATCH];
    int count = 0;

    cJSON_ArrayForEach(entry, manifest)
    {
        if (strncmp(name_of(entry), "mla", 3) != 0)
            continue;
        attention_problem problem = describe(entry, kv_lens);
        problem.attention.v_from_k = 1;
        expect_golden_in_splits(entry, &problem);
        count++;
    }
    ck_assert_int_eq(count, 1);
}
END_TEST

/* Those of head_dim 128 in f16, for which one program serves. */
START_TEST(lanes_family_matches_the_arrays)
{
    const cJSON *entry;
    int32_t kv_lens[MAX_BATCH];
    int count = 0;

    cJSON_ArrayForEach(entry, manifest)
    {
        if (needs_more(entry) || count_of(entry, "head_dim") != 128 || type_of(entry) != CLFD_TYPE_F16)
            continue;
        attention_problem problem = describe(entry, kv_lens);
        problem.attention.tuning = "family=decode_lanes rows=1";
        expect_golden_in_splits(entry, &problem);
        count++;
    }
    ck_assert_int_eq(count, 3);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        cases_match_their_arrays,
        mla_matches_its_arrays_with_values_from_keys,
        lanes_family_matches_the_arrays,
    };
    const int result =
        run_suite_around("golden", tests, sizeof tests / sizeof tests[0], read_manifest, forget_manifest);

    test_session_close();
    return result;
}

/* clfd run - one attention over .npy files. */
#include "command.h"
#include "compare.h"
#include "json.h"
#include "options.h"
#include "run.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_TOLERANCE 1e-4
#define FIELD(name) offsetof(run_options, name)
#define TYPES "f32|f16|bf16"

static const option_row options[] = {
    {"--q", OPTION_TEXT, "FILE", "queries [B, q_len, Hq, D]: f4, f2, or u2 with --type bf16", FIELD(q), 0, 0},
    {"--k", OPTION_TEXT, "FILE", "keys [B, n, Hkv, D]", FIELD(k), 0, 0},
    {"--v", OPTION_TEXT, "FILE", "values [B, n, Hkv, Dv]", FIELD(v), 0, 0},
    {"--v-from-k", OPTION_COUNT, "DV", "V is the first DV elements of K; instead of --v", FIELD(v_from_k), 1,
     INT32_MAX},
    {"--kv-lens", OPTION_TEXT, "FILE", "i4 [B], keys of each sequence; default n", FIELD(kv_lens), 0, 0},
    {"--scale", OPTION_NUMBER, "X", "factor of q.k; default 1/sqrt(D)", FIELD(scale), 0, 0},
    {"--causal", OPTION_FLAG, NULL, "query i sees keys up to its own position, aligned to the last key", FIELD(causal),
     0, 0},
    {"--type", OPTION_CHOICE, TYPES, "what 16-bit integer arrays hold; default from the arrays", FIELD(type), 0, 0},
    {"--out-type", OPTION_CHOICE, TYPES, "type of the output; default q's", FIELD(out_type), 0, 0},
    {"--partial", OPTION_CHOICE, "lse|mlo", "partial format; default lse", FIELD(partial), 0, 0},
    {"--splits", OPTION_COUNT, "N", "N splits per sequence; default and 0: automatic", FIELD(num_splits), 0, INT32_MAX},
    {"--split-tokens", OPTION_COUNT, "N", "splits of N tokens", FIELD(split_tokens), 1, INT32_MAX},
    {"--out", OPTION_TEXT, "FILE", "write the output [B, q_len, Hq, Dv]; bf16 as u2", FIELD(out), 0, 0},
    {"--lse", OPTION_TEXT, "FILE", "write the log-sum-exp [B, q_len, Hq], f4", FIELD(lse), 0, 0},
    {"--expect", OPTION_TEXT, "FILE", "compare the output with f8 or f4 values", FIELD(expect), 0, 0},
    {"--expect-lse", OPTION_TEXT, "FILE", "compare the log-sum-exp with f8 or f4 values", FIELD(expect_lse), 0, 0},
    {"--tolerance", OPTION_NUMBER, "X", "absolute; default 1e-4; for LSE X * max(1, |LSE|/100)", FIELD(tolerance), 0,
     0},
    {"--json", OPTION_FLAG, NULL, "print the report as a JSON object", FIELD(json), 0, 0},
    {"--device", OPTION_TEXT, "SPEC", "the device; default CLFD_DEVICE, else the best one", FIELD(device), 0, 0},
    {"--window", OPTION_LATER, "N", "sliding windows come later", 0, 0, 0},
    {"--softcap", OPTION_LATER, "X", "softcap comes later", 0, 0, 0},
    {"--alibi", OPTION_LATER, "FILE", "ALiBi comes later", 0, 0, 0},
    {"--sinks", OPTION_LATER, "FILE", "attention sinks come later", 0, 0, 0},
    {"--mask", OPTION_LATER, "FILE", "masks come later", 0, 0, 0},
    {"--bias", OPTION_LATER, "FILE", "score biases come later", 0, 0, 0},
    {"--block-table", OPTION_LATER, "FILE", "paged K and V come later", 0, 0, 0},
    {"--page-size", OPTION_LATER, "N", "paged K and V come later", 0, 0, 0},
    {0},
};

static const option_set set = {
    .usage = "clfd run --q FILE --k FILE (--v FILE | --v-from-k DV) [options]",
    .description =
        "Computes decode attention over .npy files. Output buffers are filled with NaN beforehand. Files are\n"
        "written under a temporary name and renamed, also where a comparison fails. In comparisons equal\n"
        "infinities match, and NaN matches NaN alone. Exits 1 where a tolerance is exceeded.",
    .options = options,
};

/* One result: how it is called, written and compared. */
struct target {
    const char *name, *path, *expect;
    const npy_array *array;
    compare_rule rule;
    comparison comparison; /* of a target with `expect` */
    output_file output;
};

enum { TARGET_OUT, TARGET_LSE, NUM_TARGETS };

/* The elements as float, malloc'ed. */
static float *to_float(const npy_array *array, clfd_type type)
{
    float *values = malloc(array->count * sizeof values[0] + 1);

    if (values != NULL)
        clfd_convert_to_float(type, array->data, values, array->count);
    return values;
}

static bool compare(struct target *target, clfd_type type, double tolerance, tool_fault *fault)
{
    npy_array expected = {0};
    float *actual = NULL;
    bool good = false;

    if (!npy_read(target->expect, &expected, fault) ||
        !compare_check(&expected, target->expect, target->array->num_dims, target->array->shape, fault))
        goto done;
    actual = to_float(target->array, type);
    if (actual == NULL) {
        fault_failed(fault, "no memory for %zu values", target->array->count);
        goto done;
    }
    target->comparison = compare_array(actual, &expected, target->rule, tolerance);
    good = true;

done:
    free(actual);
    npy_free(&expected);
    return good;
}

/* Writes all files, then gives all of them their names, so that either all appear or none. */
static bool write_files(struct target targets[NUM_TARGETS], tool_fault *fault)
{
    for (int i = 0; i < NUM_TARGETS; i++)
        if (targets[i].path != NULL &&
            (!output_open(&targets[i].output, targets[i].path, fault) ||
             !npy_write(&targets[i].output, targets[i].array, fault) || !output_close(&targets[i].output, fault)))
            return false;
    for (int i = 0; i < NUM_TARGETS; i++)
        if (targets[i].path != NULL && !output_commit(&targets[i].output, fault))
            return false;
    return true;
}

static bool print_json(const run_result *result, const struct target targets[NUM_TARGETS], double tolerance,
                       tool_fault *fault)
{
    static const char *const error_names[NUM_TARGETS] = {"max_error", "max_lse_error"};
    cJSON *object = cJSON_CreateObject();
    bool compared = false, passed = true, printed;

    cJSON_AddStringToObject(object, "device", result->device);
    cJSON_AddStringToObject(object, "plan", result->plan);
    cJSON_AddNumberToObject(object, "workspace_bytes", (double)result->workspace_bytes);
    for (int i = 0; i < NUM_TARGETS; i++)
        if (targets[i].expect != NULL) {
            json_add_number(object, error_names[i], targets[i].comparison.max_error);
            compared = true;
            passed = passed && targets[i].comparison.passed;
        }
    if (compared) {
        cJSON_AddNumberToObject(object, "tolerance", tolerance);
        cJSON_AddBoolToObject(object, "passed", passed);
    }
    printed = json_print(object, stdout, fault);
    cJSON_Delete(object);
    return printed;
}

static void print_text(const run_result *result, const struct target targets[NUM_TARGETS], double tolerance)
{
    printf("device     %s\nplan       %s\nworkspace  %zu bytes\n", result->device, result->plan,
           result->workspace_bytes);
    for (int i = 0; i < NUM_TARGETS; i++) {
        if (targets[i].path != NULL)
            printf("%-11swritten to %s\n", targets[i].name, targets[i].path);
        if (targets[i].expect != NULL)
            printf("%-11smax error %.3g, tolerance %.3g: %s\n", targets[i].name, targets[i].comparison.max_error,
                   tolerance, targets[i].comparison.passed ? "passed" : "FAILED");
    }
}

/* Fails with the element that fits worst. */
static bool judge(const struct target *target, double tolerance, tool_fault *fault)
{
    const comparison *c = &target->comparison;
    size_t index[NPY_MAX_DIMS], rest = c->worst, used = 0;
    char place[NPY_SHAPE_BYTES] = "";

    if (target->expect == NULL || c->passed)
        return true;
    for (uint32_t i = target->array->num_dims; i-- > 0;) {
        index[i] = rest % target->array->shape[i];
        rest /= target->array->shape[i];
    }
    for (uint32_t i = 0; i < target->array->num_dims; i++)
        used += (size_t)snprintf(place + used, sizeof place - used, "%s%zu", i > 0 ? ", " : "", index[i]);
    return fault_failed(fault, "%s[%s] is %.9g and %s says %.9g; the tolerance is %.3g%s", target->name, place,
                        c->actual, target->expect, c->expected, tolerance,
                        target->rule == COMPARE_LSE ? " * max(1, |LSE|/100)" : "");
}

bool command_run(int argc, char **argv, tool_fault *fault)
{
    run_options values = {.v_from_k = RUN_NOT_GIVEN, .num_splits = RUN_NOT_GIVEN, .split_tokens = RUN_NOT_GIVEN};
    run_input input = {0};
    run_result result = {0};
    struct target targets[NUM_TARGETS] = {{0}};
    bool help, good = false;

    values.scale = NAN;
    values.tolerance = DEFAULT_TOLERANCE;
    if (!options_parse(&set, argc, argv, &values, NULL, &help, fault))
        return false;
    if (help)
        return true;
    targets[TARGET_OUT] = (struct target){
        .name = "out", .path = values.out, .expect = values.expect, .array = &result.out, .rule = COMPARE_ABSOLUTE};
    targets[TARGET_LSE] = (struct target){
        .name = "lse", .path = values.lse, .expect = values.expect_lse, .array = &result.lse, .rule = COMPARE_LSE};
    if (!run_input_load(&values, &input, fault) || !run_execute(values.device, &input, &result, fault))
        goto done;
    for (int i = 0; i < NUM_TARGETS; i++)
        if (targets[i].expect != NULL &&
            !compare(&targets[i], i == TARGET_OUT ? input.attention.out_type : CLFD_TYPE_F32, values.tolerance, fault))
            goto done;
    if (!write_files(targets, fault))
        goto done;
    if (!values.json)
        print_text(&result, targets, values.tolerance);
    else if (!print_json(&result, targets, values.tolerance, fault))
        goto done;
    good = judge(&targets[TARGET_OUT], values.tolerance, fault) && judge(&targets[TARGET_LSE], values.tolerance, fault);

done:
    for (int i = 0; i < NUM_TARGETS; i++)
        output_discard(&targets[i].output);
    run_result_free(&result);
    run_input_free(&input);
    return good;
}

#include "run_report.h"
#include "json.h"
#include <stdlib.h>

static const struct {
    cl_uint flag;
    const char *name, *meaning;
} flags[] = {
    {CLFD_FLAG_PAGE, "page", "the block table names no page for keys that are needed; they were hidden"},
    {CLFD_FLAG_CACHE_ROW, "cache_row", "a cache_batch_idx names no cache row; its sequence saw no key"},
    {CLFD_FLAG_CAPACITY, "capacity", "tokens were dropped"},
};

#define NUM_FLAGS (sizeof flags / sizeof flags[0])

/* The elements as float, malloc'ed. */
static float *to_float(const npy_array *array, clfd_type type)
{
    float *values = malloc(array->count * sizeof values[0] + 1);

    if (values != NULL)
        clfd_convert_to_float(type, array->data, values, array->count);
    return values;
}

static bool compare(run_target *target, double tolerance, tool_fault *fault)
{
    npy_array expected = {0};
    float *actual = NULL;
    bool good = false;

    if (!npy_read(target->expect, &expected, fault) ||
        !compare_check(&expected, target->expect, target->array->num_dims, target->array->shape, fault))
        goto done;
    actual = to_float(target->array, target->type);
    if (actual == NULL) {
        fault_failed(fault, "no memory for %zu values", target->array->count);
        goto done;
    }
    target->comparison = compare_array(actual, &expected, target->rule, target->rounded, tolerance);
    good = true;

done:
    free(actual);
    npy_free(&expected);
    return good;
}

bool run_report_compare(run_report *report, tool_fault *fault)
{
    for (int i = 0; i < RUN_TARGETS; i++)
        if (report->targets[i].expect != NULL && !compare(&report->targets[i], report->tolerance, fault))
            return false;
    return true;
}

bool run_report_write(run_report *report, tool_fault *fault)
{
    run_target *targets = report->targets;

    for (int i = 0; i < RUN_TARGETS; i++)
        if (targets[i].path != NULL &&
            (!output_open(&targets[i].output, targets[i].path, fault) ||
             !npy_write(&targets[i].output, targets[i].array, fault) || !output_close(&targets[i].output, fault)))
            return false;
    for (int i = 0; i < RUN_TARGETS; i++)
        if (targets[i].path != NULL && !output_commit(&targets[i].output, fault))
            return false;
    return true;
}

void run_report_discard(run_report *report)
{
    for (int i = 0; i < RUN_TARGETS; i++)
        output_discard(&report->targets[i].output);
}

static void add_comparisons(cJSON *object, const run_report *report)
{
    static const char *const error_names[RUN_TARGETS] = {"max_error", "max_lse_error"};
    bool compared = false, passed = true;

    for (int i = 0; i < RUN_TARGETS; i++)
        if (report->targets[i].expect != NULL) {
            json_add_number(object, error_names[i], report->targets[i].comparison.max_error);
            compared = true;
            passed = passed && report->targets[i].comparison.passed;
        }
    if (compared) {
        cJSON_AddNumberToObject(object, "tolerance", report->tolerance);
        cJSON_AddBoolToObject(object, "passed", passed);
    }
}

static bool print_json(const run_report *report, tool_fault *fault)
{
    cJSON *object = cJSON_CreateObject();
    bool printed;

    cJSON_AddStringToObject(object, "device", report->device);
    cJSON_AddStringToObject(object, "plan", report->result->plan);
    cJSON_AddNumberToObject(object, "workspace_bytes", (double)report->result->workspace_bytes);
    if (report->status) {
        cJSON *names = cJSON_AddArrayToObject(object, "status");
        for (size_t i = 0; i < NUM_FLAGS; i++)
            if ((report->result->status & flags[i].flag) != 0)
                cJSON_AddItemToArray(names, cJSON_CreateString(flags[i].name));
    }
    if (report->against != NULL) {
        cJSON *error = cJSON_AddObjectToObject(object, "unquantised");
        json_add_number(error, "max_error", report->against->max);
        json_add_number(error, "rms_error", report->against->rms);
    }
    add_comparisons(object, report);
    printed = json_print(object, stdout, fault);
    cJSON_Delete(object);
    return printed;
}

static void print_text(const run_report *report)
{
    printf("device     %s\nplan       %s\nworkspace  %zu bytes\n", report->device, report->result->plan,
           report->result->workspace_bytes);
    if (report->status) {
        printf("status    %s", report->result->status == 0 ? " no flag" : "");
        for (size_t i = 0; i < NUM_FLAGS; i++)
            if ((report->result->status & flags[i].flag) != 0)
                printf(" %s", flags[i].name);
        printf("\n");
    }
    if (report->against != NULL)
        printf("error      max %.3g, rms %.3g, against unquantised K and V\n", report->against->max,
               report->against->rms);
    for (int i = 0; i < RUN_TARGETS; i++) {
        const run_target *target = &report->targets[i];
        if (target->path != NULL)
            printf("%-11swritten to %s\n", target->name, target->path);
        if (target->expect != NULL)
            printf("%-11smax error %.3g, tolerance %.3g%s: %s\n", target->name, target->comparison.max_error,
                   report->tolerance, target->rounded != CLFD_TYPE_DEFAULT ? " and the rounding of the type" : "",
                   target->comparison.passed ? "passed" : "FAILED");
    }
}

bool run_report_print(const run_report *report, bool json, tool_fault *fault)
{
    /* Keys that were hidden without anybody asking for it are worth a line even where --status does not. */
    for (size_t i = 0; i < NUM_FLAGS && !report->status; i++)
        if ((report->result->status & flags[i].flag) != 0)
            fprintf(stderr, "clfd: warning: %s\n", flags[i].meaning);
    if (json)
        return print_json(report, fault);
    print_text(report);
    return true;
}

/* Fails with the element that fits worst. */
static bool judge(const run_target *target, double tolerance, tool_fault *fault)
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
    return fault_failed(fault, "%s[%s] is %.9g and %s says %.9g; the tolerance is %.3g%s%s", target->name, place,
                        c->actual, target->expect, c->expected, tolerance,
                        target->rule == COMPARE_LSE ? " * max(1, |LSE|/100)" : "",
                        target->rounded != CLFD_TYPE_DEFAULT ? " and the rounding of the type" : "");
}

bool run_report_judge(const run_report *report, tool_fault *fault)
{
    return judge(&report->targets[RUN_TARGET_OUT], report->tolerance, fault) &&
           judge(&report->targets[RUN_TARGET_LSE], report->tolerance, fault);
}

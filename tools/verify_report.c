#include "verify_report.h"
#include "system.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define MAX_PRINTED_FAILURES 20
#define MAX_PRINTED_PAIRS 20

static void add(verify_tally *tally, bool failed, const trial_errors *errors)
{
    tally->problems++;
    tally->failures += failed;
    tally->errors.out = fmax(tally->errors.out, errors->out);
    tally->errors.lse = fmax(tally->errors.lse, errors->lse);
    tally->errors.of_tolerance = fmax(tally->errors.of_tolerance, errors->of_tolerance);
}

void report_add(verify_report *report, const verify_trial *trial, bool failed, const trial_errors *errors)
{
    add(&report->all, failed, errors);
    for (int i = 0; i < NUM_FEATURES; i++)
        if (feature_has(&trial->features, (verify_feature)i))
            add(&report->features[i], failed, errors);
    feature_pairs_add(&report->pairs, &trial->features);
}

void report_failure(verify_report *report, const verify_trial *trial, const char *sentence, const char *repeat)
{
    char problem[TRIAL_BYTES];

    trial_print(trial, problem);
    if (report->all.failures <= MAX_PRINTED_FAILURES)
        fprintf(stderr, "%sproblem %" PRIu64 " failed: %s\n  %s\n  repeat: %s\n",
                system_is_terminal(stderr) ? "\r" : "", trial->number, sentence, problem, repeat);
    if (report->failed != NULL) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddNumberToObject(object, "number", (double)trial->number);
        cJSON_AddStringToObject(object, "problem", problem);
        cJSON_AddStringToObject(object, "error", sentence);
        cJSON_AddStringToObject(object, "repeat", repeat);
        cJSON_AddItemToArray(report->failed, object);
    }
}

static void print_line(const char *name, const verify_tally *tally)
{
    if (tally->problems == 0) {
        printf("%-30s %8d %8s  %9s  %9s  %5s\n", name, 0, "-", "-", "-", "-");
        return;
    }
    printf("%-30s %8" PRIu64 " %8" PRIu64 "  %9.2e  %9.2e  %5.2f\n", name, tally->problems, tally->failures,
           tally->errors.out, tally->errors.lse, tally->errors.of_tolerance);
}

/* "3915 of 3917 pairs of options were met in one problem; not met: k int4 and shared_kv, ..." */
static void print_pairs(const feature_pairs *pairs)
{
    verify_feature a = (verify_feature)0, b = (verify_feature)0;
    const char *separator = "; not met: ";
    uint32_t possible, met, printed = 0;

    feature_pairs_count(pairs, &possible, &met);
    printf("%" PRIu32 " of %" PRIu32 " pairs of options were met in one problem", met, possible);
    for (; printed < MAX_PRINTED_PAIRS && feature_pairs_next_missing(pairs, &a, &b); printed++) {
        printf("%s%s with %s", separator, feature_name(a), feature_name(b));
        separator = ", ";
    }
    if (possible - met > printed)
        printf(" and %" PRIu32 " more", possible - met - printed);
    printf("\n");
}

void report_print(const verify_report *report)
{
    printf(
        "Errors are absolute; the last column is the worst error as a part of its tolerance, which for f16 and bf16\n"
        "outputs is mostly the rounding to the type. A problem counts under every feature that it has.\n");
    printf("%-30s %8s %8s  %9s  %9s  %s\n", "feature", "problems", "failures", "max error", "max lse", "of tolerance");
    for (int i = 0; i < NUM_FEATURES; i++)
        print_line(feature_name((verify_feature)i), &report->features[i]);
    print_line("all", &report->all);
    print_pairs(&report->pairs);
    if (report->refused > 0)
        printf("%" PRIu64 " more problems do not allow the tuning override and were skipped\n", report->refused);
    printf("%" PRIu64 " of %" PRIu64 " problems passed\n", report->all.problems - report->all.failures,
           report->all.problems);
}

static cJSON *tally_json(const char *name, const verify_tally *tally)
{
    cJSON *object = cJSON_CreateObject();

    cJSON_AddStringToObject(object, "feature", name);
    cJSON_AddNumberToObject(object, "problems", (double)tally->problems);
    cJSON_AddNumberToObject(object, "failures", (double)tally->failures);
    json_add_number(object, "max_error", tally->errors.out);
    json_add_number(object, "max_lse_error", tally->errors.lse);
    json_add_number(object, "max_of_tolerance", tally->errors.of_tolerance);
    return object;
}

static cJSON *pairs_json(const feature_pairs *pairs)
{
    cJSON *object = cJSON_CreateObject(), *missing = cJSON_CreateArray();
    verify_feature a = (verify_feature)0, b = (verify_feature)0;
    uint32_t possible, met;

    feature_pairs_count(pairs, &possible, &met);
    while (feature_pairs_next_missing(pairs, &a, &b)) {
        cJSON *pair = cJSON_CreateArray();
        cJSON_AddItemToArray(pair, cJSON_CreateString(feature_name(a)));
        cJSON_AddItemToArray(pair, cJSON_CreateString(feature_name(b)));
        cJSON_AddItemToArray(missing, pair);
    }
    cJSON_AddNumberToObject(object, "possible", possible);
    cJSON_AddNumberToObject(object, "met", met);
    cJSON_AddItemToObject(object, "missing", missing);
    return object;
}

bool report_print_json(const tool_session *session, verify_report *report, tool_fault *fault)
{
    cJSON *object = cJSON_CreateObject(), *features = cJSON_CreateArray();
    char seed[24];
    bool printed;

    /* A seed has 64 bits, a number of cJSON 53. */
    snprintf(seed, sizeof seed, "%" PRIu64, report->seed);
    for (int i = 0; i < NUM_FEATURES; i++)
        cJSON_AddItemToArray(features, tally_json(feature_name((verify_feature)i), &report->features[i]));
    cJSON_AddItemToObject(object, "device", json_device(&session->device));
    cJSON_AddRawToObject(object, "seed", seed);
    cJSON_AddNumberToObject(object, "start", (double)report->start);
    cJSON_AddNumberToObject(object, "problems", (double)report->all.problems);
    cJSON_AddNumberToObject(object, "failures", (double)report->all.failures);
    cJSON_AddNumberToObject(object, "refused", (double)report->refused);
    cJSON_AddItemToObject(object, "features", features);
    cJSON_AddItemToObject(object, "pairs", pairs_json(&report->pairs));
    cJSON_AddItemToObject(object, "failed", report->failed);
    report->failed = NULL;
    printed = json_print(object, stdout, fault);
    cJSON_Delete(object);
    return printed;
}

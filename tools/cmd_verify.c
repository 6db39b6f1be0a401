/* clfd verify - random problems against the double-precision reference. */
#include "command.h"
#include "json.h"
#include "options.h"
#include "system.h"
#include "verify.h"
#include <inttypes.h>
#include <math.h>
#include <stddef.h>

#define DEFAULT_PROBLEMS 200
#define DEFAULT_SEED 1
#define DEFAULT_MAX_PROGRAMS 150
#define MAX_PRINTED_FAILURES 20

struct values {
    uint64_t problems, seed, start, max_programs;
    const char *tuning, *device;
    bool json;
};

#define FIELD(name) offsetof(struct values, name)

static const option_row options[] = {
    {"--problems", OPTION_COUNT, "N", "problems to draw; default 200", FIELD(problems), 1, INT64_MAX},
    {"--seed", OPTION_COUNT, "S", "seed of the problems; default 1", FIELD(seed), 0, 0},
    {"--start", OPTION_COUNT, "K", "number of the first problem; default 0", FIELD(start), 0, INT64_MAX},
    {"--max-programs", OPTION_COUNT, "P", "draw from P specialisations at most; default 150", FIELD(max_programs), 1,
     INT32_MAX},
    {"--tuning", OPTION_TEXT, "STR", "\"key=value ...\" replaces tuning fields, as the plan's line names them",
     FIELD(tuning), 0, 0},
    {"--json", OPTION_FLAG, NULL, "print the report as a JSON object", FIELD(json), 0, 0},
    {"--device", OPTION_TEXT, "SPEC", "the device; default CLFD_DEVICE, else the best one", FIELD(device), 0, 0},
    {0},
};

static const option_set set = {
    .usage = "clfd verify [--problems N] [--seed S] [--start K] [options]",
    .description =
        "Draws random problems, computes them on the device and compares them with the double-precision\n"
        "reference. Problem K depends on the seed, K and --max-programs alone. Every specialisation costs the\n"
        "builds of its kernels. Exits 1 where a problem fails.",
    .options = options,
};

/* One line of the report. */
struct tally {
    uint64_t problems, failures;
    trial_errors errors; /* the largest */
};

struct report {
    const struct values *values;
    struct tally features[NUM_FEATURES], all;
    uint64_t refused;
    tool_fault refusal; /* why the last of them was */
    cJSON *failed;      /* with --json: an object per failure */
};

#define FEATURE_NAME(identifier, name) name,
static const char *const feature_names[] = {FEATURE_LIST(FEATURE_NAME)};

static void add(struct tally *tally, bool failed, const trial_errors *errors)
{
    tally->problems++;
    tally->failures += failed;
    tally->errors.out = fmax(tally->errors.out, errors->out);
    tally->errors.lse = fmax(tally->errors.lse, errors->lse);
    tally->errors.of_tolerance = fmax(tally->errors.of_tolerance, errors->of_tolerance);
}

/* The command that repeats a problem. */
static void print_command(const struct values *values, uint64_t number, char *text, size_t bytes)
{
    int used =
        snprintf(text, bytes, "clfd verify --seed %" PRIu64 " --start %" PRIu64 " --problems 1", values->seed, number);

    if (values->max_programs != DEFAULT_MAX_PROGRAMS && (size_t)used < bytes)
        used += snprintf(text + used, bytes - (size_t)used, " --max-programs %" PRIu64, values->max_programs);
    if (values->tuning != NULL && (size_t)used < bytes)
        used += snprintf(text + used, bytes - (size_t)used, " --tuning \"%s\"", values->tuning);
    if (values->device != NULL && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, " --device \"%s\"", values->device);
}

static void report_failure(struct report *report, const verify_trial *trial, const char *sentence)
{
    char problem[TRIAL_BYTES], command[1024];

    trial_print(trial, problem);
    print_command(report->values, trial->number, command, sizeof command);
    if (report->all.failures <= MAX_PRINTED_FAILURES)
        fprintf(stderr, "%sproblem %" PRIu64 " failed: %s\n  %s\n  repeat: %s\n",
                system_is_terminal(stderr) ? "\r" : "", trial->number, sentence, problem, command);
    if (report->failed != NULL) {
        cJSON *object = cJSON_CreateObject();
        cJSON_AddNumberToObject(object, "number", (double)trial->number);
        cJSON_AddStringToObject(object, "problem", problem);
        cJSON_AddStringToObject(object, "error", sentence);
        cJSON_AddStringToObject(object, "repeat", command);
        cJSON_AddItemToArray(report->failed, object);
    }
}

static void verify_problem(tool_session *session, const draw_space *space, uint64_t number, struct report *report,
                           tool_fault *fault)
{
    verify_trial trial;
    trial_errors errors;
    trial_result result;

    draw_trial(space, number, &trial);
    result = trial_run(session, &trial, &errors, fault);
    if (result == TRIAL_REFUSED) {
        report->refused++;
        report->refusal = *fault;
        return;
    }
    add(&report->all, result == TRIAL_FAILED, &errors);
    for (int i = 0; i < NUM_FEATURES; i++)
        if ((trial.features >> i & 1) != 0)
            add(&report->features[i], result == TRIAL_FAILED, &errors);
    if (result == TRIAL_FAILED)
        report_failure(report, &trial, fault->sentence);
}

static void print_line(const char *name, const struct tally *tally)
{
    if (tally->problems == 0) {
        printf("%-22s %8d %8s  %9s  %9s  %5s\n", name, 0, "-", "-", "-", "-");
        return;
    }
    printf("%-22s %8" PRIu64 " %8" PRIu64 "  %9.2e  %9.2e  %5.2f\n", name, tally->problems, tally->failures,
           tally->errors.out, tally->errors.lse, tally->errors.of_tolerance);
}

static void print_text(const struct report *report)
{
    printf(
        "Errors are absolute; the last column is the worst error as a part of its tolerance, which for f16 and bf16\n"
        "outputs is mostly the rounding to the type. A problem counts under every feature that it has.\n");
    printf("%-22s %8s %8s  %9s  %9s  %s\n", "feature", "problems", "failures", "max error", "max lse", "of tolerance");
    for (int i = 0; i < NUM_FEATURES; i++)
        print_line(feature_names[i], &report->features[i]);
    print_line("all", &report->all);
    if (report->refused > 0)
        printf("%" PRIu64 " more problems do not allow the tuning override and were skipped\n", report->refused);
    printf("%" PRIu64 " of %" PRIu64 " problems passed\n", report->all.problems - report->all.failures,
           report->all.problems);
}

static cJSON *tally_json(const char *name, const struct tally *tally)
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

/* Takes over report->failed. */
static bool print_json(const tool_session *session, struct report *report, tool_fault *fault)
{
    cJSON *object = cJSON_CreateObject(), *features = cJSON_CreateArray();
    char seed[24];
    bool printed;

    /* A seed has 64 bits, a number of cJSON 53. */
    snprintf(seed, sizeof seed, "%" PRIu64, report->values->seed);

    for (int i = 0; i < NUM_FEATURES; i++)
        cJSON_AddItemToArray(features, tally_json(feature_names[i], &report->features[i]));
    cJSON_AddItemToObject(object, "device", json_device(&session->device));
    cJSON_AddRawToObject(object, "seed", seed);
    cJSON_AddNumberToObject(object, "start", (double)report->values->start);
    cJSON_AddNumberToObject(object, "problems", (double)report->all.problems);
    cJSON_AddNumberToObject(object, "failures", (double)report->all.failures);
    cJSON_AddNumberToObject(object, "refused", (double)report->refused);
    cJSON_AddItemToObject(object, "features", features);
    cJSON_AddItemToObject(object, "failed", report->failed);
    report->failed = NULL;
    printed = json_print(object, stdout, fault);
    cJSON_Delete(object);
    return printed;
}

static bool verify(tool_session *session, const struct values *values, tool_fault *fault)
{
    const draw_space space = {values->seed, (uint32_t)values->max_programs, values->tuning};
    const bool progress = system_is_terminal(stderr);
    struct report report = {.values = values, .failed = values->json ? cJSON_CreateArray() : NULL};

    if (!values->json)
        printf("device %s %s, seed %" PRIu64 ", problems %" PRIu64 " to %" PRIu64 "\n", session->device.spec,
               session->device.name, values->seed, values->start, values->start + values->problems - 1);
    fflush(stdout);
    for (uint64_t i = 0; i < values->problems; i++) {
        verify_problem(session, &space, values->start + i, &report, fault);
        if (progress)
            fprintf(stderr, "\r%" PRIu64 "/%" PRIu64 " problems, %" PRIu64 " failed ", i + 1, values->problems,
                    report.all.failures);
    }
    if (progress)
        fprintf(stderr, "\n");
    fault_clear(fault);
    if (!values->json)
        print_text(&report);
    else if (!print_json(session, &report, fault))
        return false;
    if (report.all.failures > 0)
        return fault_failed(fault, "%" PRIu64 " of %" PRIu64 " problems failed", report.all.failures,
                            report.all.problems);
    if (report.all.problems == 0)
        return fault_failed(fault, "none of the %" PRIu64 " problems allows the tuning override: %s", report.refused,
                            report.refusal.sentence);
    return true;
}

bool command_verify(int argc, char **argv, tool_fault *fault)
{
    struct values values = {.problems = DEFAULT_PROBLEMS, .seed = DEFAULT_SEED, .max_programs = DEFAULT_MAX_PROGRAMS};
    tool_session session = {0};
    bool help, good;

    if (!options_parse(&set, argc, argv, &values, NULL, &help, fault))
        return false;
    if (help)
        return true;
    good = session_open(&session, values.device, fault) && verify(&session, &values, fault);
    session_close(&session);
    return good;
}

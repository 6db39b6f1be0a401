/* clfd verify - random problems against the double-precision reference. */
#include "command.h"
#include "options.h"
#include "system.h"
#include "verify_report.h"
#include <inttypes.h>
#include <stddef.h>

#define DEFAULT_PROBLEMS 200
#define DEFAULT_SEED 1
#define MAX_PROGRAMS 10000 /* each is drawn before the first problem runs, in 0.1 ms */

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
     MAX_PROGRAMS},
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

/* The command that repeats a problem. */
static void print_command(const struct values *values, uint64_t number, char *text, size_t bytes)
{
    int used =
        snprintf(text, bytes, "clfd verify --seed %" PRIu64 " --start %" PRIu64 " --problems 1", values->seed, number);

    if (values->max_programs != DRAW_DEFAULT_PROGRAMS && (size_t)used < bytes)
        used += snprintf(text + used, bytes - (size_t)used, " --max-programs %" PRIu64, values->max_programs);
    if (values->tuning != NULL && (size_t)used < bytes)
        used += snprintf(text + used, bytes - (size_t)used, " --tuning \"%s\"", values->tuning);
    if (values->device != NULL && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, " --device \"%s\"", values->device);
}

static void verify_problem(tool_session *session, const draw_space *space, uint64_t number, const struct values *values,
                           verify_report *report, tool_fault *fault)
{
    char repeat[1024];
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
    report_add(report, &trial, result == TRIAL_FAILED, &errors);
    if (result == TRIAL_FAILED) {
        print_command(values, number, repeat, sizeof repeat);
        report_failure(report, &trial, fault->sentence, repeat);
    }
}

static void verify_problems(tool_session *session, const draw_space *space, const struct values *values,
                            verify_report *report, tool_fault *fault)
{
    const bool progress = system_is_terminal(stderr);

    for (uint64_t i = 0; i < values->problems; i++) {
        verify_problem(session, space, values->start + i, values, report, fault);
        if (progress)
            fprintf(stderr, "\r%" PRIu64 "/%" PRIu64 " problems, %" PRIu64 " failed ", i + 1, values->problems,
                    report->all.failures);
    }
    if (progress)
        fprintf(stderr, "\n");
}

static bool verify(tool_session *session, const struct values *values, tool_fault *fault)
{
    verify_report report = {
        .seed = values->seed, .start = values->start, .failed = values->json ? cJSON_CreateArray() : NULL};
    draw_space space;

    if (!draw_space_open(&space, values->seed, (uint32_t)values->max_programs, values->tuning)) {
        draw_space_close(&space);
        return fault_failed(fault, "no memory for %" PRIu64 " specialisations", values->max_programs);
    }
    if (!values->json)
        printf("device %s %s, seed %" PRIu64 ", problems %" PRIu64 " to %" PRIu64 "\n", session->device.spec,
               session->device.name, values->seed, values->start, values->start + values->problems - 1);
    fflush(stdout);
    verify_problems(session, &space, values, &report, fault);
    draw_space_close(&space);
    fault_clear(fault);
    if (!values->json)
        report_print(&report);
    else if (!report_print_json(session, &report, fault))
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
    struct values values = {.problems = DEFAULT_PROBLEMS, .seed = DEFAULT_SEED, .max_programs = DRAW_DEFAULT_PROGRAMS};
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

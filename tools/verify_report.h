/* verify_report.h - what `clfd verify` says about its problems. */
#ifndef TOOLS_VERIFY_REPORT_H
#define TOOLS_VERIFY_REPORT_H

#include "json.h"
#include "verify.h"

/* One line of the report. */
typedef struct verify_tally {
    uint64_t problems, failures;
    trial_errors errors; /* the largest */
} verify_tally;

typedef struct verify_report {
    uint64_t seed, start; /* of the problems */
    verify_tally features[NUM_FEATURES], all;
    feature_pairs pairs;
    uint64_t refused;
    tool_fault refusal; /* why the last of them was */
    cJSON *failed;      /* with --json: an object per failure */
} verify_report;

/* Adds a problem that ran. */
void report_add(verify_report *report, const verify_trial *trial, bool failed, const trial_errors *errors);

/* Prints a failure, or keeps it for the JSON object; repeat is the command that repeats it. */
void report_failure(verify_report *report, const verify_trial *trial, const char *sentence, const char *repeat);

void report_print(const verify_report *report);

/* Takes over report->failed. */
bool report_print_json(const tool_session *session, verify_report *report, tool_fault *fault);

#endif

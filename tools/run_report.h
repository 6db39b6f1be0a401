/* run_report.h - what `clfd run` does with results: compare, write, print. */
#ifndef TOOLS_RUN_REPORT_H
#define TOOLS_RUN_REPORT_H

#include "compare.h"
#include "run.h"

/* The absolute tolerance where none is given; out gets half a unit in the last place of its type besides. */
#define RUN_DEFAULT_TOLERANCE 1e-4

/* One result: how it is called, written and compared. */
typedef struct run_target {
    const char *name, *path, *expect;
    const npy_array *array;
    clfd_type type, rounded; /* of the array; whose rounding a comparison allows */
    compare_rule rule;
    comparison comparison; /* of a target with `expect` */
    output_file output;
} run_target;

enum { RUN_TARGET_OUT, RUN_TARGET_LSE, RUN_TARGETS };

typedef struct run_report {
    const char *device;
    const run_result *result;
    run_target targets[RUN_TARGETS];
    double tolerance;
    bool status;              /* the status word is asked for */
    const run_error *against; /* unquantised K and V; or NULL */
} run_report;

/* Compares every target that has an expectation. */
bool run_report_compare(run_report *report, tool_fault *fault);

/* Writes all files, then gives all of them their names, so that either all appear or none. run_report_discard removes
 * what was not finished, whatever happened. */
bool run_report_write(run_report *report, tool_fault *fault);
void run_report_discard(run_report *report);

/* Prints everything, as text or as a JSON object. */
bool run_report_print(const run_report *report, bool json, tool_fault *fault);

/* False, with the element that fits worst, where a comparison failed. */
bool run_report_judge(const run_report *report, tool_fault *fault);

#endif

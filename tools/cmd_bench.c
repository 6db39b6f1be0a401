/* clfd bench - measures problems against a plain read of the same bytes. */
#include "bench.h"
#include "command.h"
#include "options.h"
#include "problem_list.h"
#include "system.h"
#include <stdlib.h>
#include <string.h>

#define DEFAULT_REPEATS 20

struct values {
    uint64_t repeats;
    const char *tuning, *csv, *device;
    bool roofline_only, json, verbose;
};

#define FIELD(name) offsetof(struct values, name)

static const option_row options[] = {
    {"--roofline-only", OPTION_FLAG, NULL, "measure the plain read alone", FIELD(roofline_only), 0, 0},
    {"--repeats", OPTION_COUNT, "N", "single measurements per problem; default and least 20", FIELD(repeats), 20,
     1000000},
    {"--tuning", OPTION_TEXT, "STR", "\"key=value ...\" replaces tuning fields, as the plan's line names them",
     FIELD(tuning), 0, 0},
    {"--json", OPTION_FLAG, NULL, "print the results as JSON instead of the text", FIELD(json), 0, 0},
    {"--verbose", OPTION_FLAG, NULL, "say on stderr what is built; NVIDIA's compiler adds registers and spills",
     FIELD(verbose), 0, 0},
    {"--csv", OPTION_TEXT, "FILE", "write the results as CSV; - is standard output instead of the text", FIELD(csv), 0,
     0},
    {"--device", OPTION_TEXT, "SPEC", "the device; default CLFD_DEVICE, else the best one", FIELD(device), 0, 0},
    {0},
};

static const option_set set = {
    .usage = "clfd bench [PROBLEM...] [options]",
    .description =
        "Measures a plain read of the problem's K and V, then the decode, over copies in turn that exceed the caches.\n"
        "single: device time of one call, on a busy GPU, median; steady: wall time of 200 calls in a row, per call.\n"
        "Without a PROBLEM a few common ones are measured.\n"
        "A PROBLEM is one quoted argument, or its words as arguments of their own; b16 starts the next "
        "one:\n" PROBLEM_HELP,
    .options = options,
    .takes_words = true,
};

/* What is measured without PROBLEM; the CPU stops before `gpu`. */
static const struct {
    bool gpu;
    const char *text;
} default_problems[] = {
    {false, "b1 hq32 hkv8 d128 kv4096 f16"}, {false, "b1 hq8 hkv8 d128 kv16384 f16"},
    {false, "b8 hq32 hkv8 d128 kv2048 f16"}, {true, "b1 hq8 hkv8 d128 kv131072 f16"},
    {true, "b16 hq32 hkv8 d128 kv8192 f16"}, {true, "b64 hq8 hkv8 d128 kv4096 f16"},
};

#define NUM_DEFAULTS (sizeof default_problems / sizeof default_problems[0])

static bool use_defaults(const clfd_device_info *device, problem_list *list, tool_fault *fault)
{
    const bool gpu = (device->type & CL_DEVICE_TYPE_GPU) != 0;

    for (size_t i = 0; i < NUM_DEFAULTS; i++)
        if ((gpu || !default_problems[i].gpu) && !problem_list_add(list, default_problems[i].text, fault))
            return false;
    return true;
}

static bool is_stdout(const char *path) { return path != NULL && strcmp(path, "-") == 0; }

static bool write_csv(const char *path, const bench_result *results, size_t count, tool_fault *fault)
{
    output_file output = {.stream = stdout, .path = NULL, .temporary = NULL};
    bool good;

    if (path == NULL)
        return true;
    if (!is_stdout(path) && !output_open(&output, path, fault)) {
        output_discard(&output);
        return false;
    }
    good = bench_write_csv(&output, results, count, fault);
    if (!is_stdout(path)) {
        good = good && output_close(&output, fault) && output_commit(&output, fault);
        output_discard(&output);
    }
    return good;
}

static bool measure_all(bench_device *device, const struct values *values, const problem_list *list,
                        bench_result *results, tool_fault *fault)
{
    const bool progress = system_is_terminal(stderr);
    const bool text = !values->json && !is_stdout(values->csv);
    output_file standard = {.stream = stdout, .path = NULL, .temporary = NULL};

    if (text)
        printf("device %s %s\n", device->session.device.spec, device->session.device.name);
    for (size_t i = 0; i < list->count; i++) {
        if (progress)
            fprintf(stderr, "\rmeasuring problem %zu of %zu ", i + 1, list->count);
        if (!bench_measure(device, &list->problems[i], values->tuning, (uint32_t)values->repeats, values->roofline_only,
                           &results[i], fault))
            return false;
        if (progress)
            fprintf(stderr, "\r%40s\r", "");
        if (text)
            bench_print(&results[i]);
        fflush(stdout);
    }
    return (!values->json || bench_write_json(&standard, &device->session.device, results, list->count, fault)) &&
           write_csv(values->csv, results, list->count, fault);
}

static bool bench(const struct values *values, const option_words *words, tool_fault *fault)
{
    problem_list list = {NULL, 0};
    bench_result *results = NULL;
    bench_device device = {0};
    bool good = false;

    if (values->json && is_stdout(values->csv))
        return fault_usage(fault, "--json and --csv cannot both go to standard output");
    if (!problem_list_parse(words, &list, fault) || !bench_open(&device, values->device, fault) ||
        (list.count == 0 && !use_defaults(&device.session.device, &list, fault)))
        goto done;
    results = calloc(list.count, sizeof results[0]);
    if (results == NULL)
        fault_failed(fault, "no memory for %zu results", list.count);
    else
        good = measure_all(&device, values, &list, results, fault);

done:
    bench_close(&device);
    free(results);
    free(list.problems);
    return good;
}

bool command_bench(int argc, char **argv, tool_fault *fault)
{
    struct values values = {.repeats = DEFAULT_REPEATS};
    option_words words = {NULL, 0};
    bool help, good;

    good = options_parse(&set, argc, argv, &values, &words, &help, fault);
    fault->verbose = values.verbose;
    if (good && !help)
        good = bench(&values, &words, fault);
    free(words.words);
    return good;
}

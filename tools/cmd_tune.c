/* clfd tune - searches for faster tuning rows on the user's device. */
#include "command.h"
#include "os.h"
#include "progress.h"
#include "run/tuning_files.h"
#include "system.h"
#include "tune.h"
#include <stdlib.h>
#include <string.h>

#define REPEATS 15
#define QUICK_REPEATS 7
#define ROUNDS 3
#define QUICK_ROUNDS 1
#define MAX_PATH_BYTES 4096

struct values {
    const char *output, *device;
    uint64_t budget, max_rows;
    unsigned scope; /* 0, or 1 and a clfd_tuning_scope */
    bool quick, again, json;
};

#define FIELD(name) offsetof(struct values, name)

static const option_row options[] = {
    {"--output", OPTION_TEXT, "FILE",
     "the file of rows; default CLFD_TUNING, else your own, which clfd reads without it", FIELD(output), 0, 0},
    {"--quick", OPTION_FLAG, NULL, "a few classes of problems, with fewer rows and measurements", FIELD(quick), 0, 0},
    {"--budget", OPTION_COUNT, "SECONDS", "begin no further class after that time", FIELD(budget), 1, 0},
    {"--max-rows", OPTION_COUNT, "N", "rows that challenge the shipped one, per class; default no limit",
     FIELD(max_rows), 0, UINT32_MAX},
    {"--again", OPTION_FLAG, NULL, "measure, too, what the file has already", FIELD(again), 0, 0},
    {"--scope", OPTION_CHOICE, "device|architecture|vendor", "whom the rows are for; default this very device",
     FIELD(scope), 0, 0},
    {"--json", OPTION_FLAG, NULL, "print the rows as JSON instead of the text", FIELD(json), 0, 0},
    {"--device", OPTION_TEXT, "SPEC", "the device; default CLFD_DEVICE, else the best one", FIELD(device), 0, 0},
    {0},
};

static const option_set set = {
    .usage = "clfd tune [PROBLEM...] [options]",
    .description =
        "Searches for faster tuning rows: numbers of a kernel that change no result but how fast it is there. Starts\n"
        "from the shipped rows, changes one number at a time, measures, and checks every row that is faster against\n"
        "the double-precision reference. The file is written after each class of problems (types, dims, ratio), and\n"
        "classes that it has already for this device and driver are skipped: a run that was interrupted continues.\n"
        "Without a PROBLEM the classes of common models are tuned. PROBLEMs are written as for clfd bench; those of\n"
        "one class share a row.",
    .options = options,
    .takes_words = true,
};

/* A run of the tuner. */
typedef struct tuner {
    const struct values *values;
    bench_device bench;
    clfd_caps caps;
    clfd_tuning_files shipped;
    tune_owner owner;
    tune_file file;
    tune_list list;
    size_t done; /* classes */
    cJSON *rows; /* with --json */
} tuner;

static void show_progress(void *user, const tune_contest *contest)
{
    const tuner *t = user;
    char name[TUNE_CLASS_BYTES], note[TUNE_CLASS_BYTES + 64];

    snprintf(note, sizeof note, "%s: row %u", tune_class_print(&contest->class->shared, name), contest->tried);
    progress_draw(t->done, t->list.count, note);
}

static bool tune_one(tuner *t, const tune_class *class, tune_result *result, tool_fault *fault)
{
    const bool quick = t->values->quick;
    const tune_limits limits = {quick ? QUICK_ROUNDS : ROUNDS, (uint32_t)t->values->max_rows};
    tune_contest contest = {.device = &t->bench,
                            .class = class,
                            .repeats = quick ? QUICK_REPEATS : REPEATS,
                            .progress = show_progress,
                            .user = t};
    const bool good =
        tune_contest_open(&contest, fault) && tune_find_best(&contest, &t->caps, &t->shipped, &limits, result, fault);

    tune_contest_close(&contest);
    return good;
}

static bool tune_class_by_class(tuner *t, tool_fault *fault)
{
    const double start = system_seconds();
    tune_result result;
    char name[TUNE_CLASS_BYTES];

    for (t->done = 0; t->done < t->list.count; t->done++) {
        const tune_class *class = &t->list.classes[t->done];
        if (!t->values->again && tune_file_has(&t->file, &t->owner, &class->shared)) {
            if (!t->values->json)
                printf("%-26s in the file already\n", tune_class_print(&class->shared, name));
            continue;
        }
        if (t->values->budget > 0 && system_seconds() - start > (double)t->values->budget) {
            if (!t->values->json)
                printf("the budget is spent: %zu of %zu classes are left\n", t->list.count - t->done, t->list.count);
            return true;
        }
        if (!tune_one(t, class, &result, fault) || !tune_file_put(&t->file, &t->owner, &result, fault))
            return false;
        progress_clear();
        if (t->values->json)
            cJSON_AddItemToArray(t->rows, tune_file_row(&t->owner, &result));
        else
            tune_report_print(&result);
        fflush(stdout);
    }
    return true;
}

/* Device, shipped rows, and whom the rows are for. */
static bool open_device(tuner *t, tool_fault *fault)
{
    static const size_t names[CLFD_NUM_SCOPES] = {offsetof(clfd_caps, name), offsetof(clfd_caps, architecture),
                                                  offsetof(clfd_caps, vendor)};
    const clfd_logger logger = fault_logger(fault);
    clfd_status status;

    /* Rows are measured against what is shipped. */
    system_set_variable("CLFD_TUNING", "none");
    if (!bench_open(&t->bench, t->values->device, fault))
        return false;
    fault_clear(fault);
    status = clfd_caps_read(t->bench.session.device.device, clfd_environment("CLFD_DISABLE"), &t->caps, &logger);
    if (status == CLFD_SUCCESS)
        status = clfd_tuning_files_read(&t->shipped, &logger);
    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "reading the device's capabilities");
    t->owner.scope = t->values->scope > 0 ? (clfd_tuning_scope)(t->values->scope - 1) : CLFD_SCOPE_DEVICE;
    t->owner.name = (const char *)&t->caps + names[t->owner.scope];
    t->owner.driver = t->caps.driver;
    t->owner.quick = t->values->quick;
    return t->owner.name[0] != '\0' ||
           fault_failed(fault, "clfd knows no %s of %s", clfd_scope_names[t->owner.scope], t->caps.name);
}

/* Where the rows go. */
static bool find_output(const struct values *values, char path[MAX_PATH_BYTES], tool_fault *fault)
{
    const char *named = values->output != NULL ? values->output : clfd_environment("CLFD_TUNING");

    if (values->output == NULL && named != NULL && strcmp(named, "none") == 0)
        return fault_usage(fault, "CLFD_TUNING is none, so that no file is read or written; --output must name one");
    if (named == NULL)
        return clfd_config_path("tuning.json", path, MAX_PATH_BYTES) ||
               fault_failed(fault, "no folder for your own files is known; --output must name one");
    if (strlen(named) >= MAX_PATH_BYTES)
        return fault_usage(fault, "the path of the output has more than %d characters", MAX_PATH_BYTES - 1);
    strcpy(path, named);
    return true;
}

static bool print_json(const tuner *t, const char *path, tool_fault *fault)
{
    cJSON *const report = cJSON_CreateObject();
    bool good;

    cJSON_AddItemToObject(report, "device", json_device(&t->bench.session.device));
    cJSON_AddStringToObject(report, "file", path);
    cJSON_AddItemReferenceToObject(report, "rows", t->rows);
    good = json_print(report, stdout, fault);
    cJSON_Delete(report);
    return good;
}

static bool tune(const struct values *values, const option_words *words, tool_fault *fault)
{
    tuner t = {.values = values, .rows = values->json ? cJSON_CreateArray() : NULL};
    problem_list problems = {NULL, 0};
    char path[MAX_PATH_BYTES];
    bool good = problem_list_parse(words, &problems, fault) && find_output(values, path, fault) &&
                tune_file_open(&t.file, path, fault) && open_device(&t, fault) &&
                tune_list_make(&problems, &t.bench.session.device, values->quick, &t.list, fault);

    if (good && !values->json)
        printf("device %s %s, rows for the %s \"%s\" go to %s\n", t.bench.session.device.spec, t.caps.name,
               clfd_scope_names[t.owner.scope], t.owner.name, path);
    fflush(stdout);
    good = good && tune_class_by_class(&t, fault);
    progress_clear();
    good = good && (!values->json || print_json(&t, path, fault));
    clfd_tuning_files_free(&t.shipped);
    tune_file_close(&t.file);
    bench_close(&t.bench);
    cJSON_Delete(t.rows);
    free(t.list.classes);
    free(problems.problems);
    return good;
}

bool command_tune(int argc, char **argv, tool_fault *fault)
{
    struct values values = {.max_rows = UINT32_MAX};
    option_words words = {NULL, 0};
    bool help, good;

    good = options_parse(&set, argc, argv, &values, &words, &help, fault);
    if (good && !help)
        good = tune(&values, &words, fault);
    free(words.words);
    return good;
}

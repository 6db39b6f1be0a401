/* clfd - lists devices, runs, verifies, measures and tunes decode attention from the command line. */
#include "command.h"
#include <stdio.h>
#include <string.h>

static bool command_later(int argc, char **argv, tool_fault *fault)
{
    (void)argc;
    (void)argv;
    return fault_usage(fault, "this verb is not implemented yet");
}

static const struct verb {
    const char *name;
    bool (*command)(int argc, char **argv, tool_fault *fault);
    const char *help;
} verbs[] = {
    {"devices", command_devices, "list the OpenCL devices and the SPEC that selects each"},
    {"run", command_run, "compute one attention over .npy files"},
    {"verify", command_verify, "compare random problems on a device with the double-precision reference"},
    {"bench", command_bench, "measure problems against a plain read of the same bytes"},
    {"tune", command_tune, "search for faster tuning rows on a device"},
    {"cache", command_later, "(not implemented yet)"},
};

#define NUM_VERBS (sizeof verbs / sizeof verbs[0])

static void print_usage(FILE *stream)
{
    fprintf(stream, "usage: clfd VERB [options]\n\n");
    for (size_t i = 0; i < NUM_VERBS; i++)
        fprintf(stream, "  %-10s%s\n", verbs[i].name, verbs[i].help);
    fprintf(stream, "\n`clfd VERB --help` lists a verb's options. Every verb takes --device SPEC, or the environment\n"
                    "variable CLFD_DEVICE: an index pair 0:1, a type (gpu, cpu), a fragment of a vendor or name, or\n"
                    "pairs such as vendor=nvidia,type=gpu,name=H200,mem>=16G,index=1.\n"
                    "Exit codes: 0 success, 1 failure, 2 malformed arguments or something not implemented yet.\n");
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < NUM_VERBS; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

int main(int argc, char **argv)
{
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    const struct verb *verb;

    if (argc < 2) {
        print_usage(stderr);
        return EXIT_CODE_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return EXIT_CODE_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        const uint32_t version = clfd_version();
        printf("clfd %u.%u.%u\n", version / 1000000, version / 1000 % 1000, version % 1000);
        return EXIT_CODE_OK;
    }
    verb = find_verb(argv[1]);
    if (verb == NULL) {
        fprintf(stderr, "clfd: '%s' is no verb; it must be one of devices, run, verify, bench, tune\n", argv[1]);
        return EXIT_CODE_USAGE;
    }
    if (verb->command(argc - 2, argv + 2, &fault)) {
        /* A full disk behind stdout shows only here. */
        if (fflush(stdout) == 0 && ferror(stdout) == 0)
            return EXIT_CODE_OK;
        fault_failed(&fault, "cannot write to standard output");
    }
    fflush(stdout);
    fprintf(stderr, "clfd %s: %s\n", verb->name, fault.sentence);
    return fault.exit_code;
}

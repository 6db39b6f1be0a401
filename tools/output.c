#include "output.h"
#include "system.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ATTEMPTS 1000

/* Creates the first of path.tmp0, path.tmp1, ... that does not exist yet. */
static bool open_temporary(output_file *output)
{
    const size_t bytes = strlen(output->path) + sizeof ".tmp999";

    output->temporary = malloc(bytes);
    if (output->temporary == NULL)
        return false;
    for (int i = 0; i < MAX_ATTEMPTS && output->stream == NULL; i++) {
        snprintf(output->temporary, bytes, "%s.tmp%d", output->path, i);
        output->stream = fopen(output->temporary, "wbx");
        if (output->stream == NULL && errno != EEXIST)
            break;
    }
    if (output->stream != NULL)
        return true;
    free(output->temporary);
    output->temporary = NULL;
    return false;
}

bool output_open(output_file *output, const char *path, tool_fault *fault)
{
    *output = (struct output_file){.path = malloc(strlen(path) + 1)};
    if (output->path == NULL)
        return fault_failed(fault, "no memory for the name %s", path);
    strcpy(output->path, path);
    if (path[0] == '\0' || system_is_folder(path))
        return fault_failed(fault, "cannot write '%s': it is %s; it must name a file", path,
                            path[0] == '\0' ? "empty" : "a folder");
    if (system_is_special(path))
        output->stream = fopen(path, "wb");
    else
        open_temporary(output);
    if (output->stream == NULL)
        return fault_failed(fault, "cannot write %s: %s", path, strerror(errno));
    return true;
}

bool output_close(output_file *output, tool_fault *fault)
{
    const bool failed = ferror(output->stream) != 0;
    const bool closed = fclose(output->stream) == 0;

    output->stream = NULL;
    if (failed || !closed)
        return fault_failed(fault, "cannot write %s: %s", output->path,
                            errno != 0 ? strerror(errno) : "the write failed");
    return true;
}

bool output_commit(output_file *output, tool_fault *fault)
{
    if (output->temporary == NULL)
        return true;
    if (!system_replace(output->temporary, output->path))
        return fault_failed(fault, "cannot rename %s to %s: %s", output->temporary, output->path, strerror(errno));
    free(output->temporary);
    output->temporary = NULL;
    return true;
}

void output_discard(output_file *output)
{
    if (output->stream != NULL)
        fclose(output->stream);
    if (output->temporary != NULL) {
        remove(output->temporary);
        free(output->temporary);
    }
    free(output->path);
    *output = (struct output_file){0};
}

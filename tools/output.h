/* output.h - files that appear whole or not at all: written under a temporary name beside the final one, then renamed. */
#ifndef TOOLS_OUTPUT_H
#define TOOLS_OUTPUT_H

#include "fault.h"
#include <stdio.h>

typedef struct output_file {
    FILE *stream;
    char *path;      /* the final name */
    char *temporary; /* NULL where the path is a device or a pipe, which is written in place */
} output_file;

/* Opens the temporary file. *output needs output_discard whatever happens afterwards, and may be zeroed before. */
bool output_open(output_file *output, const char *path, tool_fault *fault);

/* Flushes and closes the temporary file: after this only output_commit is left that can fail. */
bool output_close(output_file *output, tool_fault *fault);

/* Gives the closed file its final name. */
bool output_commit(output_file *output, tool_fault *fault);

/* Removes the temporary file where it has not been committed, and frees what open allocated. */
void output_discard(output_file *output);

#endif

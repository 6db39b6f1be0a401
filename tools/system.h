/* system.h - what the tools need of the operating system beyond C11: clock, terminal, files. */
#ifndef TOOLS_SYSTEM_H
#define TOOLS_SYSTEM_H

#include "fault.h"
#include <stdbool.h>
#include <stdio.h>

/* Seconds of a clock that never steps. */
double system_seconds(void);

/* The stream is a terminal. */
bool system_is_terminal(FILE *stream);

/* `path` is something other than a regular file, a device or a pipe, that must be written in place, not replaced. */
bool system_is_special(const char *path);

/* There is something at `path`, or it cannot be told. */
bool system_exists(const char *path);

/* `path` is a folder. */
bool system_is_folder(const char *path);

/* Two paths name one place: the same name in the same folder. */
bool system_same_place(const char *a, const char *b);

/* Creates the folders that a path of a file lies in. False, with a sentence, where that does not work. */
bool system_make_folders(const char *path, tool_fault *fault);

/* Sets a variable of this process's environment. */
void system_set_variable(const char *name, const char *value);

/* Renames `from` to `to`, replacing it. Sets errno on failure. */
bool system_replace(const char *from, const char *to);

#endif

/* progress.h - a bar on standard error, where that is a terminal. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#define PROGRESS_COLUMNS 100

/* "[######------] 3/7 note", cut and padded with blanks to PROGRESS_COLUMNS characters, so that it covers the line before
 * it. total is at least 1. */
void progress_line(char line[PROGRESS_COLUMNS + 1], size_t done, size_t total, const char *note);

/* Draws the line over the last one; nothing where standard error is no terminal. */
void progress_draw(size_t done, size_t total, const char *note);

/* Leaves an empty line where the bar stood. */
void progress_clear(void);

#endif

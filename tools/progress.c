#include "progress.h"
#include "system.h"
#include <stdio.h>
#include <string.h>

#define BAR 24u

void progress_line(char line[PROGRESS_COLUMNS + 1], size_t done, size_t total, const char *note)
{
    char text[512], bar[BAR + 1];
    const size_t filled = done < total ? done * BAR / total : BAR;

    memset(bar, '-', BAR);
    memset(bar, '#', filled);
    bar[BAR] = '\0';
    snprintf(text, sizeof text, "[%s] %zu/%zu %s", bar, done, total, note);
    snprintf(line, PROGRESS_COLUMNS + 1, "%-*.*s", PROGRESS_COLUMNS, PROGRESS_COLUMNS, text);
}

void progress_draw(size_t done, size_t total, const char *note)
{
    char line[PROGRESS_COLUMNS + 1];

    if (!system_is_terminal(stderr))
        return;
    progress_line(line, done, total, note);
    fprintf(stderr, "\r%s", line);
    fflush(stderr);
}

void progress_clear(void)
{
    if (system_is_terminal(stderr))
        fprintf(stderr, "\r%*s\r", PROGRESS_COLUMNS, "");
}

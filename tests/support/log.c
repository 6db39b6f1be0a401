#include "support/log.h"
#include <stdio.h>
#include <string.h>

static void keep(void *user, clfd_log_level level, const char *message)
{
    test_log *log = user;

    if (level == CLFD_LOG_INFO && strncmp(message, "build log", 9) == 0)
        return; /* some compilers have something to say, others not */
    snprintf(log->last[level], sizeof log->last[level], "%s", message);
    log->count[level]++;
}

clfd_logger test_logger(test_log *log) { return (clfd_logger){keep, log}; }

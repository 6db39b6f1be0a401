#include "support/log.h"
#include <stdio.h>

static void keep(void *user, clfd_log_level level, const char *message)
{
    test_log *log = user;

    snprintf(log->last[level], sizeof log->last[level], "%s", message);
    log->count[level]++;
}

clfd_logger test_logger(test_log *log) { return (clfd_logger){keep, log}; }

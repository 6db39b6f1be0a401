/* log.h - a logger that keeps what it hears. */
#ifndef TEST_SUPPORT_LOG_H
#define TEST_SUPPORT_LOG_H

#include <clfd/status.h>

/* What reached the logger so far, but for what a compiler says of a build that succeeds: the last message of each level and
 * how many there were of each. Zero it first. */
typedef struct test_log {
    char last[CLFD_LOG_INFO + 1][2048];
    int count[CLFD_LOG_INFO + 1];
} test_log;

clfd_logger test_logger(test_log *log);

#endif

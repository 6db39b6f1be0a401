/* report.h - how a function says why it fails: one sentence to the logger, one status to the caller. */
#ifndef CLFD_REPORT_H
#define CLFD_REPORT_H

#include <clfd/status.h>

#define CLFD_MESSAGE_BYTES 1024

#if defined(__GNUC__)
#define CLFD_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLFD_PRINTF(text, first)
#endif

/* Formats the sentence, hands it to the logger at level ERROR, returns `status`. logger may be NULL.
 *
 *     return clfd_fail(logger, CLFD_ERROR_Q_LEN, "q_len is %u; it must be 1 to 16", q_len); */
clfd_status clfd_fail(const clfd_logger *logger, clfd_status status, const char *format, ...) CLFD_PRINTF(3, 4);

/* The same for a failed OpenCL call: "clGetDeviceInfo(CL_DEVICE_NAME) failed: CL_INVALID_DEVICE (-33)". */
clfd_status clfd_fail_cl(const clfd_logger *logger, clfd_status status, const char *call);

/* A warning or a piece of information; returns nothing. */
void clfd_note(const clfd_logger *logger, clfd_log_level level, const char *format, ...) CLFD_PRINTF(3, 4);

/* The last error sentence, kept for a caller that goes on without what failed. */
typedef struct clfd_sentence {
    char text[CLFD_MESSAGE_BYTES];
} clfd_sentence;

/* A logger that keeps it, and lets everything else go. *sentence becomes empty. */
clfd_logger clfd_keep_sentence(clfd_sentence *sentence);

/* Runs an OpenCL call in a function that returns clfd_status and has a clean-up label `done` and a variable `status`. */
#define CLFD_TRY_CL(logger, call, what)                                                                                \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != CL_SUCCESS) {                                                                                    \
            clfd_fail_cl(logger, status, what);                                                                        \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

#endif

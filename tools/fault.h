/* fault.h - how a tool says why it stops: one sentence and an exit code.
 *
 * Functions that can fail take a fault, return false after filling it in, and leave the printing to main.
 */
#ifndef TOOLS_FAULT_H
#define TOOLS_FAULT_H

#include <clfd/clfd.h>
#include <stdbool.h>

#if defined(__GNUC__)
#define FAULT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define FAULT_PRINTF(text, first)
#endif

typedef enum exit_code {
    EXIT_CODE_OK = 0,
    EXIT_CODE_FAILED = 1, /* no device, an I/O error, a descriptor that the library refuses, a tolerance exceeded */
    EXIT_CODE_USAGE = 2   /* malformed arguments, or a verb that is not implemented yet */
} exit_code;

typedef struct tool_fault {
    exit_code exit_code;
    char sentence[2048]; /* names the value and the rule; without a line break */
    bool verbose;        /* say on stderr what is built, and what the compiler says of it */
} tool_fault;

/* Fill in the sentence with exit code FAILED or USAGE; return false, so that a caller can return them. */
bool fault_failed(tool_fault *fault, const char *format, ...) FAULT_PRINTF(2, 3);
bool fault_usage(tool_fault *fault, const char *format, ...) FAULT_PRINTF(2, 3);

/* For a failed OpenCL call of the tool's own: "clFinish failed: CL_OUT_OF_RESOURCES (-5)". Returns false. */
bool fault_cl(tool_fault *fault, cl_int status, const char *call);

/* For a failed call of the library, whose sentence fault_logger has already put into the fault: adds the exit code, and
 * a sentence where the library had none. Returns false. */
bool fault_status(tool_fault *fault, clfd_status status, const char *call);

/* A logger that keeps the library's error sentence in the fault and prints its warnings on stderr. */
clfd_logger fault_logger(tool_fault *fault);

/* Forgets the last fault, so that the next failed call is not described by an old sentence. */
void fault_clear(tool_fault *fault);

#endif

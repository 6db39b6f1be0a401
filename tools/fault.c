#include "fault.h"
#include <stdarg.h>
#include <stdio.h>

static void say(tool_fault *fault, exit_code code, const char *format, va_list arguments)
{
    fault->exit_code = code;
    vsnprintf(fault->sentence, sizeof fault->sentence, format, arguments);
    /* Sentences quote what files and arguments hold; a terminal must not obey it. */
    for (char *c = fault->sentence; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

bool fault_failed(tool_fault *fault, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(fault, EXIT_CODE_FAILED, format, arguments);
    va_end(arguments);
    return false;
}

bool fault_usage(tool_fault *fault, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(fault, EXIT_CODE_USAGE, format, arguments);
    va_end(arguments);
    return false;
}

bool fault_cl(tool_fault *fault, cl_int status, const char *call)
{
    return fault_failed(fault, "%s failed: %s (%d)", call, clfd_status_string(status), (int)status);
}

bool fault_status(tool_fault *fault, clfd_status status, const char *call)
{
    if (fault->sentence[0] == '\0')
        return fault_cl(fault, status, call);
    /* These library inputs are arguments as the user typed them. */
    fault->exit_code =
        status == CLFD_ERROR_DEVICE_SPEC || status == CLFD_ERROR_TUNING ? EXIT_CODE_USAGE : EXIT_CODE_FAILED;
    return false;
}

static void write_message(void *user, clfd_log_level level, const char *message)
{
    tool_fault *fault = user;

    if (level == CLFD_LOG_ERROR)
        snprintf(fault->sentence, sizeof fault->sentence, "%s", message);
    else if (level == CLFD_LOG_WARNING)
        fprintf(stderr, "clfd: warning: %s\n", message);
    else if (fault->verbose)
        fprintf(stderr, "clfd: %s\n", message);
}

clfd_logger fault_logger(tool_fault *fault) { return (clfd_logger){.write = write_message, .user = fault}; }

void fault_clear(tool_fault *fault)
{
    fault->exit_code = EXIT_CODE_OK;
    fault->sentence[0] = '\0';
}

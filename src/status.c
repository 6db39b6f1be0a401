#include "report.h"
#include <CL/cl.h>
#include <clfd/clfd.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#define NAMED(code)                                                                                                    \
    {                                                                                                                  \
        code, #code                                                                                                    \
    }

static const struct {
    clfd_status status;
    const char *name;
} names[] = {
    NAMED(CLFD_SUCCESS),
    NAMED(CLFD_ERROR_NULL_ARGUMENT),
    NAMED(CLFD_ERROR_STRUCT_SIZE),
    NAMED(CLFD_ERROR_HOST_MEMORY),
    NAMED(CLFD_ERROR_OVERFLOW),
    NAMED(CLFD_ERROR_WAIT_LIST),
    NAMED(CLFD_ERROR_NO_PLATFORM),
    NAMED(CLFD_ERROR_DEVICE_SPEC),
    NAMED(CLFD_ERROR_NO_DEVICE_MATCH),
    NAMED(CLFD_ERROR_AMBIGUOUS_DEVICE),
    NAMED(CLFD_ERROR_DEVICE_UNSUPPORTED),
    NAMED(CLFD_ERROR_DEVICE_CONTEXT),
    NAMED(CLFD_ERROR_DISABLE_LIST),
    NAMED(CLFD_ERROR_TUNING_FILE),
    NAMED(CLFD_ERROR_BATCH),
    NAMED(CLFD_ERROR_Q_LEN),
    NAMED(CLFD_ERROR_HEADS),
    NAMED(CLFD_ERROR_HEAD_RATIO),
    NAMED(CLFD_ERROR_HEAD_DIM),
    NAMED(CLFD_ERROR_TYPE),
    NAMED(CLFD_ERROR_KV_LEN),
    NAMED(CLFD_ERROR_SCALE),
    NAMED(CLFD_ERROR_OPTION),
    NAMED(CLFD_ERROR_LAYOUT),
    NAMED(CLFD_ERROR_STRIDE),
    NAMED(CLFD_ERROR_ALIGNMENT_PROMISE),
    NAMED(CLFD_ERROR_V_FROM_K),
    NAMED(CLFD_ERROR_PARTIAL_FORMAT),
    NAMED(CLFD_ERROR_SPLIT_POLICY),
    NAMED(CLFD_ERROR_TUNING),
    NAMED(CLFD_ERROR_NUM_STATES),
    NAMED(CLFD_ERROR_SOFTCAP),
    NAMED(CLFD_ERROR_BIAS),
    NAMED(CLFD_ERROR_MASK),
    NAMED(CLFD_ERROR_WINDOW),
    NAMED(CLFD_ERROR_CACHE_ROWS),
    NAMED(CLFD_ERROR_PAGING),
    NAMED(CLFD_ERROR_QUANT),
    NAMED(CLFD_ERROR_SHARED_KV),
    NAMED(CLFD_ERROR_ROPE),
    NAMED(CLFD_ERROR_NUM_TOKENS),
    NAMED(CLFD_ERROR_KERNEL_SOURCE),
    NAMED(CLFD_ERROR_NO_KERNEL),
    NAMED(CLFD_ERROR_BUFFER_KIND),
    NAMED(CLFD_ERROR_BUFFER_MISSING),
    NAMED(CLFD_ERROR_BUFFER_UNEXPECTED),
    NAMED(CLFD_ERROR_BUFFER_SIZE),
    NAMED(CLFD_ERROR_BUFFER_ALIGNMENT),
    NAMED(CLFD_ERROR_BUFFER_CONTEXT),
    NAMED(CLFD_ERROR_BUFFER_OVERLAP),
    NAMED(CLFD_ERROR_BUFFER_ACCESS),
    NAMED(CLFD_ERROR_WORKSPACE_SIZE),
    NAMED(CLFD_ERROR_BATCH_RANGE),
    NAMED(CLFD_ERROR_QUEUE_CONTEXT),
    NAMED(CLFD_ERROR_QUEUE_DEVICE),
    NAMED(CL_DEVICE_NOT_FOUND),
    NAMED(CL_DEVICE_NOT_AVAILABLE),
    NAMED(CL_COMPILER_NOT_AVAILABLE),
    NAMED(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    NAMED(CL_OUT_OF_RESOURCES),
    NAMED(CL_OUT_OF_HOST_MEMORY),
    NAMED(CL_PROFILING_INFO_NOT_AVAILABLE),
    NAMED(CL_BUILD_PROGRAM_FAILURE),
    NAMED(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    NAMED(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    NAMED(CL_INVALID_VALUE),
    NAMED(CL_INVALID_DEVICE_TYPE),
    NAMED(CL_INVALID_PLATFORM),
    NAMED(CL_INVALID_DEVICE),
    NAMED(CL_INVALID_CONTEXT),
    NAMED(CL_INVALID_QUEUE_PROPERTIES),
    NAMED(CL_INVALID_COMMAND_QUEUE),
    NAMED(CL_INVALID_HOST_PTR),
    NAMED(CL_INVALID_MEM_OBJECT),
    NAMED(CL_INVALID_BINARY),
    NAMED(CL_INVALID_BUILD_OPTIONS),
    NAMED(CL_INVALID_PROGRAM),
    NAMED(CL_INVALID_PROGRAM_EXECUTABLE),
    NAMED(CL_INVALID_KERNEL_NAME),
    NAMED(CL_INVALID_KERNEL_DEFINITION),
    NAMED(CL_INVALID_KERNEL),
    NAMED(CL_INVALID_ARG_INDEX),
    NAMED(CL_INVALID_ARG_VALUE),
    NAMED(CL_INVALID_ARG_SIZE),
    NAMED(CL_INVALID_KERNEL_ARGS),
    NAMED(CL_INVALID_WORK_DIMENSION),
    NAMED(CL_INVALID_WORK_GROUP_SIZE),
    NAMED(CL_INVALID_WORK_ITEM_SIZE),
    NAMED(CL_INVALID_GLOBAL_OFFSET),
    NAMED(CL_INVALID_EVENT_WAIT_LIST),
    NAMED(CL_INVALID_EVENT),
    NAMED(CL_INVALID_OPERATION),
    NAMED(CL_INVALID_BUFFER_SIZE),
    NAMED(CL_INVALID_GLOBAL_WORK_SIZE),
    NAMED(CL_INVALID_PROPERTY),
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

const char *clfd_status_string(clfd_status status)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].status == status)
            return names[i].name;
    return "unknown status";
}

uint32_t clfd_version(void) { return CLFD_VERSION; }

static void say(const clfd_logger *logger, clfd_log_level level, const char *format, va_list arguments)
{
    char message[CLFD_MESSAGE_BYTES];

    if (logger == NULL || logger->write == NULL)
        return;
    vsnprintf(message, sizeof message, format, arguments);
    for (char *c = message; *c != '\0'; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    logger->write(logger->user, level, message);
}

clfd_status clfd_fail(const clfd_logger *logger, clfd_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(logger, CLFD_LOG_ERROR, format, arguments);
    va_end(arguments);
    return status;
}

clfd_status clfd_fail_cl(const clfd_logger *logger, clfd_status status, const char *call)
{
    return clfd_fail(logger, status, "%s failed: %s (%d)", call, clfd_status_string(status), (int)status);
}

void clfd_note(const clfd_logger *logger, clfd_log_level level, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say(logger, level, format, arguments);
    va_end(arguments);
}

static void keep(void *user, clfd_log_level level, const char *message)
{
    if (level == CLFD_LOG_ERROR)
        snprintf(((clfd_sentence *)user)->text, CLFD_MESSAGE_BYTES, "%s", message);
}

clfd_logger clfd_keep_sentence(clfd_sentence *sentence)
{
    sentence->text[0] = '\0';
    return (clfd_logger){keep, sentence};
}

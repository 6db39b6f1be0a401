/* session.h - the device of a tool's run: selected, with an OpenCL context, a queue and a clfd context. */
#ifndef TOOLS_SESSION_H
#define TOOLS_SESSION_H

#include "fault.h"

typedef struct tool_session {
    clfd_device_info device;
    cl_context context;
    cl_command_queue queue; /* in order, with profiling */
    clfd_context *clfd;
} tool_session;

/* Selects the device (spec NULL: CLFD_DEVICE, else the best one) and opens it. The library's sentences go to the fault
 * for as long as the session lives. *session needs session_close whatever happens. */
bool session_open(tool_session *session, const char *spec, tool_fault *fault);

void session_close(tool_session *session);

/* Creates a buffer that holds anything. 0 bytes give a small one. name is for the sentence. */
bool session_raw_buffer(tool_session *session, const char *name, size_t bytes, cl_mem *buffer, tool_fault *fault);

/* Creates a buffer and fills it: with `bytes` of contents, or with 0xFF where contents is NULL, so that whatever is read
 * before it is written shows as NaN. */
bool session_buffer(tool_session *session, const char *name, size_t bytes, const void *contents, cl_mem *buffer,
                    tool_fault *fault);

/* Reads a whole buffer, blocking. */
bool session_read(tool_session *session, cl_mem buffer, size_t bytes, void *contents, tool_fault *fault);

/* A clfd_buffer for a cl_mem and a byte offset; NONE for NULL. */
clfd_buffer session_operand(cl_mem buffer, size_t offset);

#endif

#include "session.h"
#include <string.h>

#define POISON_BYTES 16u

bool session_open(tool_session *session, const char *spec, tool_fault *fault)
{
    const clfd_context_options options = {.struct_size = sizeof options, .logger = fault_logger(fault)};
    clfd_status status;
    cl_int code;

    *session = (struct tool_session){0};
    fault_clear(fault);
    status = clfd_select_device(spec, &session->device, &options.logger);
    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_select_device");
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)session->device.platform,
                                                0};
    session->context = clCreateContext(properties, 1, &session->device.device, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        return fault_cl(fault, code, "clCreateContext");
    session->queue = clCreateCommandQueue(session->context, session->device.device, CL_QUEUE_PROFILING_ENABLE, &code);
    if (code != CL_SUCCESS)
        return fault_cl(fault, code, "clCreateCommandQueue");
    status = clfd_context_create(session->context, session->device.device, &options, &session->clfd);
    if (status != CLFD_SUCCESS)
        return fault_status(fault, status, "clfd_context_create");
    return true;
}

void session_close(tool_session *session)
{
    clfd_context_release(session->clfd);
    if (session->queue != NULL)
        clReleaseCommandQueue(session->queue);
    if (session->context != NULL)
        clReleaseContext(session->context);
    *session = (struct tool_session){0};
}

bool session_raw_buffer(tool_session *session, const char *name, size_t bytes, cl_mem *buffer, tool_fault *fault)
{
    cl_int code;

    *buffer = clCreateBuffer(session->context, CL_MEM_READ_WRITE, bytes > 0 ? bytes : POISON_BYTES, NULL, &code);
    return code == CL_SUCCESS ? true
                              : fault_failed(fault, "cannot create the buffer for %s of %zu bytes: %s (%d)", name,
                                             bytes, clfd_status_string(code), (int)code);
}

/* Fills a buffer with 0xFF: 16 bytes at a time, because some drivers fill byte by byte when told a byte. */
static cl_int poison(tool_session *session, cl_mem buffer, size_t bytes)
{
    cl_uchar pattern[POISON_BYTES];
    const size_t whole = bytes / POISON_BYTES * POISON_BYTES;
    cl_int code = CL_SUCCESS;

    memset(pattern, 0xff, sizeof pattern);
    if (whole > 0)
        code = clEnqueueFillBuffer(session->queue, buffer, pattern, sizeof pattern, 0, whole, 0, NULL, NULL);
    if (code == CL_SUCCESS && whole < bytes)
        code = clEnqueueFillBuffer(session->queue, buffer, pattern, 1, whole, bytes - whole, 0, NULL, NULL);
    return code;
}

bool session_buffer(tool_session *session, const char *name, size_t bytes, const void *contents, cl_mem *buffer,
                    tool_fault *fault)
{
    cl_int code;

    if (!session_raw_buffer(session, name, bytes, buffer, fault))
        return false;
    if (contents == NULL || bytes == 0)
        code = poison(session, *buffer, bytes);
    else
        code = clEnqueueWriteBuffer(session->queue, *buffer, CL_TRUE, 0, bytes, contents, 0, NULL, NULL);
    return code == CL_SUCCESS ? true
                              : fault_failed(fault, "cannot fill the buffer for %s of %zu bytes: %s (%d)", name, bytes,
                                             clfd_status_string(code), (int)code);
}

bool session_read(tool_session *session, cl_mem buffer, size_t bytes, void *contents, tool_fault *fault)
{
    const cl_int code = bytes == 0
                            ? CL_SUCCESS
                            : clEnqueueReadBuffer(session->queue, buffer, CL_TRUE, 0, bytes, contents, 0, NULL, NULL);
    return code == CL_SUCCESS ? true : fault_cl(fault, code, "clEnqueueReadBuffer");
}

clfd_buffer session_operand(cl_mem buffer, size_t offset)
{
    return (clfd_buffer){.kind = buffer != NULL ? CLFD_BUFFER_MEM : CLFD_BUFFER_NONE, .mem = buffer, .offset = offset};
}

#include "session.h"

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

bool session_buffer(tool_session *session, const char *name, size_t bytes, const void *contents, cl_mem *buffer,
                    tool_fault *fault)
{
    const cl_uchar poison = 0xff;
    const size_t size = bytes > 0 ? bytes : sizeof(cl_uint4);
    cl_int code;

    *buffer = clCreateBuffer(session->context, CL_MEM_READ_WRITE, size, NULL, &code);
    if (code != CL_SUCCESS)
        return fault_failed(fault, "cannot create the buffer for %s of %zu bytes: %s (%d)", name, bytes,
                            clfd_status_string(code), (int)code);
    if (contents == NULL || bytes == 0)
        code = clEnqueueFillBuffer(session->queue, *buffer, &poison, sizeof poison, 0, size, 0, NULL, NULL);
    else
        code = clEnqueueWriteBuffer(session->queue, *buffer, CL_TRUE, 0, bytes, contents, 0, NULL, NULL);
    if (code != CL_SUCCESS)
        return fault_failed(fault, "cannot fill the buffer for %s of %zu bytes: %s (%d)", name, bytes,
                            clfd_status_string(code), (int)code);
    return true;
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

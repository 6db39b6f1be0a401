#include "support/session.h"
#include "support/device.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

static test_session session;

test_session *test_session_get(void)
{
    clfd_context_options options = {.struct_size = sizeof options};
    clfd_status status;
    cl_int error;

    if (session.context != NULL)
        return &session;
    session.device = test_device();
    session.cl = clCreateContext(NULL, 1, &session.device, NULL, NULL, &error);
    ck_assert_int_eq(error, CL_SUCCESS);
    session.queue = clCreateCommandQueue(session.cl, session.device, CL_QUEUE_PROFILING_ENABLE, &error);
    ck_assert_int_eq(error, CL_SUCCESS);
    options.logger = test_logger(&session.heard);
    status = clfd_context_create(session.cl, session.device, &options, &session.context);
    ck_assert_msg(status == CLFD_SUCCESS, "%s", session.heard.last[CLFD_LOG_ERROR]);
    return &session;
}

void test_session_close(void)
{
    if (session.context == NULL)
        return;
    clfd_context_release(session.context);
    clReleaseCommandQueue(session.queue);
    clReleaseContext(session.cl);
    session.context = NULL;
}

cl_mem test_buffer_create(cl_mem_flags flags, size_t bytes, unsigned char fill)
{
    unsigned char *data = malloc(bytes);
    cl_mem buffer;

    ck_assert_ptr_nonnull(data);
    memset(data, fill, bytes);
    buffer = test_buffer_create_from(flags, data, bytes);
    free(data);
    return buffer;
}

cl_mem test_buffer_create_from(cl_mem_flags flags, const void *data, size_t bytes)
{
    test_session *const s = test_session_get();
    cl_int error;
    cl_mem buffer = clCreateBuffer(s->cl, flags, bytes, NULL, &error);

    ck_assert_msg(error == CL_SUCCESS, "a buffer of %zu bytes: %s", bytes, clfd_status_string(error));
    error = clEnqueueWriteBuffer(s->queue, buffer, CL_TRUE, 0, bytes, data, 0, NULL, NULL);
    ck_assert_int_eq(error, CL_SUCCESS);
    return buffer;
}

void test_buffer_read(cl_mem buffer, size_t offset, void *data, size_t bytes)
{
    const cl_int error =
        clEnqueueReadBuffer(test_session_get()->queue, buffer, CL_TRUE, offset, bytes, data, 0, NULL, NULL);
    ck_assert_msg(error == CL_SUCCESS, "reading %zu bytes: %s", bytes, clfd_status_string(error));
}

clfd_buffer test_buffer(cl_mem mem, size_t offset)
{
    return (clfd_buffer){.kind = CLFD_BUFFER_MEM, .mem = mem, .offset = offset};
}

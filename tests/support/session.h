/* session.h - the library opened on the test device, once per program, so that kernels are built once. */
#ifndef TEST_SUPPORT_SESSION_H
#define TEST_SUPPORT_SESSION_H

#include "support/log.h"
#include <clfd/clfd.h>

typedef struct test_session {
    cl_device_id device;
    cl_context cl;
    cl_command_queue queue; /* in order, with profiling */
    clfd_context *context;
    test_log heard; /* what the context's logger heard */
} test_session;

/* The session of this program; the first call opens it. Fails the running test where that does not work. */
test_session *test_session_get(void);

/* Closes it at the end of main(). Allowed where none was opened. */
void test_session_close(void);

/* A buffer of the session's context, every byte of it `fill`; to be released by the caller. */
cl_mem test_buffer_create(cl_mem_flags flags, size_t bytes, unsigned char fill);

/* The same holding a copy of `data`. */
cl_mem test_buffer_create_from(cl_mem_flags flags, const void *data, size_t bytes);

/* Reads `bytes` bytes from `offset` once all that the session's queue holds is done. */
void test_buffer_read(cl_mem buffer, size_t offset, void *data, size_t bytes);

/* mem, as the library wants it. */
clfd_buffer test_buffer(cl_mem mem, size_t offset);

#endif

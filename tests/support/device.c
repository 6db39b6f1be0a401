#include "support/device.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

static clfd_device_info select_device(void)
{
    const char *chosen = getenv("CLFD_DEVICE");
    const char *spec = chosen != NULL && chosen[0] != '\0' ? chosen : "platform=Portable,type=cpu";
    test_log log = {0};
    const clfd_logger logger = test_logger(&log);
    clfd_device_info info;

    ck_assert_msg(clfd_select_device(spec, &info, &logger) == CLFD_SUCCESS, "%s", log.last[CLFD_LOG_ERROR]);
    return info;
}

cl_device_id test_device(void) { return select_device().device; }

static cl_command_queue open_queue(const test_rig *rig, cl_command_queue_properties properties)
{
    cl_int status;
    const cl_command_queue queue =
        clCreateCommandQueue(rig->context, rig->info.device, properties | CL_QUEUE_PROFILING_ENABLE, &status);

    ck_assert_int_eq(status, CL_SUCCESS);
    return queue;
}

void test_rig_open(test_rig *rig)
{
    cl_command_queue_properties properties;
    cl_int status;

    memset(rig, 0, sizeof *rig);
    const clfd_context_options options = {.struct_size = sizeof options, .logger = test_logger(&rig->log)};
    rig->info = select_device();
    rig->context = clCreateContext(NULL, 1, &rig->info.device, NULL, NULL, &status);
    ck_assert_int_eq(status, CL_SUCCESS);
    ck_assert_int_eq(
        clGetDeviceInfo(rig->info.device, CL_DEVICE_QUEUE_PROPERTIES, sizeof properties, &properties, NULL),
        CL_SUCCESS);
    rig->queue = open_queue(rig, 0);
    if ((properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0)
        rig->unordered = open_queue(rig, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    ck_assert_msg(clfd_context_create(rig->context, rig->info.device, &options, &rig->clfd) == CLFD_SUCCESS, "%s",
                  rig->log.last[CLFD_LOG_ERROR]);
}

void test_rig_close(test_rig *rig)
{
    clfd_context_release(rig->clfd);
    if (rig->unordered != NULL) {
        ck_assert_int_eq(clFinish(rig->unordered), CL_SUCCESS);
        ck_assert_int_eq(clReleaseCommandQueue(rig->unordered), CL_SUCCESS);
    }
    ck_assert_int_eq(clFinish(rig->queue), CL_SUCCESS);
    ck_assert_int_eq(clReleaseCommandQueue(rig->queue), CL_SUCCESS);
    ck_assert_int_eq(clReleaseContext(rig->context), CL_SUCCESS);
}

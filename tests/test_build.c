#include "program/program.h"
#include "support/device.h"
#include "support/log.h"
#include "support/suite.h"
#include <string.h>

static cl_device_id device;
static cl_context context;
static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    device = test_device();
    context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(context);
    memset(&heard, 0, sizeof heard);
    logger = test_logger(&heard);
}

static void tear_down(void) { ck_assert_int_eq(clReleaseContext(context), CL_SUCCESS); }

static clfd_status build(const char *source, const char *options, clfd_log_level level, cl_program *program)
{
    return clfd_program_build(context, device, "probe", source, options, level, program, &logger);
}

START_TEST(built_program_has_its_kernel_and_its_options)
{
    static const char source[] = "#if ANSWER == 42\n__kernel void probe(__global int *a) { *a = ANSWER; }\n#endif\n";
    cl_program program = NULL;
    cl_kernel kernel;
    cl_int error;

    ck_assert_int_eq(build(source, "-DANSWER=42", CLFD_LOG_ERROR, &program), CLFD_SUCCESS);
    kernel = clCreateKernel(program, "probe", &error);
    ck_assert_int_eq(error, CL_SUCCESS);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_INFO], "-DANSWER=42"));
    ck_assert_int_eq(clReleaseKernel(kernel), CL_SUCCESS);
    ck_assert_int_eq(clReleaseProgram(program), CL_SUCCESS);
}
END_TEST

START_TEST(failed_build_returns_its_status_and_the_start_of_the_log)
{
    cl_program program = NULL;

    ck_assert_int_eq(build("__kernel void probe(void) { no_such_name; }\n", "", CLFD_LOG_ERROR, &program),
                     CL_BUILD_PROGRAM_FAILURE);
    ck_assert_ptr_null(program);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "probe"));
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "CL_BUILD_PROGRAM_FAILURE"));
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "no_such_name"));
}
END_TEST

START_TEST(failed_upgrade_is_reported_at_the_level_asked_for)
{
    cl_program program = NULL;

    ck_assert_int_eq(build("no_such_type x;\n", "", CLFD_LOG_WARNING, &program), CL_BUILD_PROGRAM_FAILURE);
    ck_assert_int_eq(heard.count[CLFD_LOG_WARNING], 1);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 0);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_WARNING], "no_such_type"));
}
END_TEST

/* Fifty warnings are longer than a message; the error after them is what matters. */
START_TEST(warnings_before_the_error_do_not_hide_it)
{
    char source[8192] = "";
    cl_program program = NULL;

    for (int i = 0; i < 50; i++)
        strcat(source, "#warning this line is a distraction that stands before the fault\n");
    strcat(source, "__kernel void probe(void) { no_such_name; }\n");
    ck_assert_int_eq(build(source, "", CLFD_LOG_ERROR, &program), CL_BUILD_PROGRAM_FAILURE);
    ck_assert_ptr_nonnull(strstr(heard.last[CLFD_LOG_ERROR], "no_such_name"));
}
END_TEST

START_TEST(refused_options_fail_without_a_program)
{
    cl_program program = NULL;

    ck_assert_int_ne(build("__kernel void probe(void) {}\n", "-no-such-option", CLFD_LOG_ERROR, &program),
                     CLFD_SUCCESS);
    ck_assert_ptr_null(program);
    ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        built_program_has_its_kernel_and_its_options,
        failed_build_returns_its_status_and_the_start_of_the_log,
        failed_upgrade_is_reported_at_the_level_asked_for,
        warnings_before_the_error_do_not_hide_it,
        refused_options_fail_without_a_program,
    };

    return run_suite_around("build", tests, sizeof tests / sizeof tests[0], set_up, tear_down);
}

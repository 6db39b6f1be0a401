/* build.c - from source and options to a built cl_program, and from a failed build to a sentence. */
#include "program/program.h"
#include <string.h>

/* The device's log of the last build, malloc'ed; NULL where it cannot be had. */
static char *read_log(cl_program program, cl_device_id device)
{
    size_t bytes = 0;
    char *log;

    if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) != CL_SUCCESS || bytes == 0)
        return NULL;
    log = malloc(bytes + 1);
    if (log == NULL)
        return NULL;
    if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log, NULL) != CL_SUCCESS) {
        free(log);
        return NULL;
    }
    log[bytes] = '\0';
    return log;
}

/* Where to start reading a log of which only the first lines are shown: at the first line that speaks of an error,
 * since hundreds of warnings may stand before it. */
static const char *first_error(const char *log)
{
    const char *line = strstr(log, "error");

    if (line == NULL)
        return log;
    while (line > log && line[-1] != '\n')
        line--;
    return line;
}

clfd_status clfd_program_build(cl_context context, cl_device_id device, const char *name, const char *source,
                               const char *options, clfd_log_level level, cl_program *program,
                               const clfd_logger *logger)
{
    clfd_status status;
    char *log;
    cl_program built = clCreateProgramWithSource(context, 1, &source, NULL, &status);

    if (built == NULL)
        return clfd_fail_cl(logger, status, "clCreateProgramWithSource");
    clfd_note(logger, CLFD_LOG_INFO, "building %s with %s", name, options[0] != '\0' ? options : "no options");
    status = clBuildProgram(built, 1, &device, options, NULL, NULL);
    log = read_log(built, device);
    if (status == CL_SUCCESS) {
        if (log != NULL && log[0] != '\0')
            clfd_note(logger, CLFD_LOG_INFO, "build log of %s: %s", name, log);
        *program = built;
    } else {
        clfd_note(logger, level, "%s does not build: %s (%d): %s", name, clfd_status_string(status), (int)status,
                  log != NULL ? first_error(log) : "no build log");
        clReleaseProgram(built);
    }
    free(log);
    return status;
}

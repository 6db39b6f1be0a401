/* Correctly rounded quotients in kernels (cl/quotient.cl): those of the host's division, whatever the device's own is
 * worth. */
#include "program/program.h"
#include "support/random.h"
#include "support/session.h"
#include "support/suite.h"
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { PAIRS = 1 << 16, MOST_ULP = 3, FORMS = 2 + 2 * MOST_ULP };

/* Form 0 divides, form 1 + MOST_ULP + u starts from an estimate that is u ulp off. */
static const char probe_text[] =
    "__kernel void probe(__global const float *a, __global const float *b, __global const float *exact,\n"
    "                    __global float *out, int most)\n"
    "{\n"
    "    const int i = (int)get_global_id(0), pairs = (int)get_global_size(0);\n"
    "    const bool moderate = fabs(a[i]) >= 0x1p-62f && fabs(exact[i]) > 1e-37f && fabs(exact[i]) < 1e38f;\n"
    "    out[i] = quotient(a[i], b[i]);\n"
    "    for (int u = -most; u <= most; u++) {\n"
    "        const float estimate = moderate ? as_float(as_int(exact[i]) + u) : exact[i];\n"
    "        out[(1 + most + u) * pairs + i] = moderate ? quotient_from(a[i], b[i], estimate) : exact[i];\n"
    "    }\n"
    "}\n";

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static float draw_scale(random_source *source)
{
    return ldexpf(random_uniform(source, 1.0f, 2.0f), (int)random_below(source, 100) - 50);
}

/* What an append divides, elements half-way between two codes among them; then everything that floats can be. */
static void draw(random_source *source, float *a, float *b)
{
    static const float special[16] = {0.0f,    -0.0f,    INFINITY,     -INFINITY, NAN,   1.0f,   -127.0f, FLT_MAX,
                                      FLT_MIN, 0x1p-62f, FLT_TRUE_MIN, 0x1p62f,   3e38f, 1e-30f, 1e-31f,  -2e-30f};

    for (uint32_t i = 0; i < PAIRS; i++) {
        if (i % 4 == 0) {
            b[i] = draw_scale(source);
            a[i] = b[i] * ((float)random_below(source, 256) - 127.5f);
        } else if (i % 4 == 1) {
            a[i] = draw_scale(source);
            b[i] = draw_scale(source);
        } else if (i % 4 == 2) {
            a[i] = float_of((uint32_t)random_bits(source));
            b[i] = float_of((uint32_t)random_bits(source));
        } else {
            a[i] = special[i / 4 % 16];
            b[i] = special[i / 64 % 16];
        }
    }
}

static void run_probe(cl_mem a, cl_mem b, cl_mem exact, cl_mem out)
{
    test_session *const session = test_session_get();
    const clfd_logger logger = test_logger(&session->heard);
    const size_t pairs = PAIRS;
    const cl_mem buffers[] = {a, b, exact, out};
    const cl_int most = MOST_ULP;
    char *functions, *source;
    cl_program program;
    cl_kernel kernel;

    ck_assert_int_eq(clfd_source_load("quotient.cl", NULL, &functions, &logger), CLFD_SUCCESS);
    source = malloc(strlen(functions) + sizeof probe_text);
    ck_assert_ptr_nonnull(source);
    memcpy(source, functions, strlen(functions));
    memcpy(source + strlen(functions), probe_text, sizeof probe_text);
    ck_assert_int_eq(
        clfd_program_build(session->cl, session->device, "probe", source, "", CLFD_LOG_ERROR, &program, &logger),
        CLFD_SUCCESS);
    free(source);
    free(functions);
    kernel = clCreateKernel(program, "probe", NULL);
    ck_assert_ptr_nonnull(kernel);
    for (cl_uint i = 0; i < 4; i++)
        ck_assert_int_eq(clSetKernelArg(kernel, i, sizeof buffers[i], &buffers[i]), CL_SUCCESS);
    ck_assert_int_eq(clSetKernelArg(kernel, 4, sizeof most, &most), CL_SUCCESS);
    ck_assert_int_eq(clEnqueueNDRangeKernel(session->queue, kernel, 1, NULL, &pairs, NULL, 0, NULL, NULL), CL_SUCCESS);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
}

static bool keeps_subnormals(void)
{
    cl_device_fp_config config = 0;

    ck_assert_int_eq(
        clGetDeviceInfo(test_session_get()->device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL),
        CL_SUCCESS);
    return (config & CL_FP_DENORM) != 0;
}

static bool is_subnormal(float x) { return fpclassify(x) == FP_SUBNORMAL; }

START_TEST(quotients_are_the_hosts_and_start_from_estimates_some_ulp_off)
{
    static float a[PAIRS], b[PAIRS], exact[PAIRS], out[FORMS][PAIRS];
    const bool subnormals = keeps_subnormals();
    random_source source = {23};

    draw(&source, a, b);
    for (uint32_t i = 0; i < PAIRS; i++)
        exact[i] = a[i] / b[i];
    const cl_mem buffers[4] = {test_buffer_create_from(CL_MEM_READ_ONLY, a, sizeof a),
                               test_buffer_create_from(CL_MEM_READ_ONLY, b, sizeof b),
                               test_buffer_create_from(CL_MEM_READ_ONLY, exact, sizeof exact),
                               test_buffer_create(CL_MEM_WRITE_ONLY, sizeof out, 0xff)};
    run_probe(buffers[0], buffers[1], buffers[2], buffers[3]);
    test_buffer_read(buffers[3], 0, out, sizeof out);
    for (int form = 0; form < FORMS; form++)
        for (uint32_t i = 0; i < PAIRS; i++)
            if (subnormals || !(is_subnormal(a[i]) || is_subnormal(b[i]) || is_subnormal(exact[i])))
                EXPECT(isnan(exact[i]) ? isnan(out[form][i]) : out[form][i] == exact[i],
                       "form %d: %a / %a is %a instead of %a", form, (double)a[i], (double)b[i], (double)out[form][i],
                       (double)exact[i]);
    for (int i = 0; i < 4; i++)
        clReleaseMemObject(buffers[i]);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {quotients_are_the_hosts_and_start_from_estimates_some_ulp_off};
    const int result = run_suite("quotient", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

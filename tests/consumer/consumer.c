/* consumer.c - computes one attention with an installed clfd and knows the answer: where q is zero every key weighs the
 * same, so that out is the mean of V and lse the logarithm of the number of keys. Compiles as C and as C++. */
#include <clfd/clfd.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define NUM_KEYS 100
#define HEAD_DIM 64

static void print_message(void *user, clfd_log_level level, const char *message)
{
    (void)user;
    if (level == CLFD_LOG_ERROR)
        fprintf(stderr, "%s\n", message);
}

static clfd_buffer make_buffer(cl_context context, void *host, size_t bytes)
{
    clfd_buffer buffer;

    memset(&buffer, 0, sizeof buffer);
    buffer.kind = CLFD_BUFFER_MEM;
    buffer.mem = clCreateBuffer(context, host != NULL ? CL_MEM_COPY_HOST_PTR : 0, bytes, host, NULL);
    return buffer;
}

/* Enqueues the attention of one head over NUM_KEYS keys, V[j] = j, and reads its results. */
static clfd_status compute(cl_context context, cl_command_queue queue, clfd_plan *plan, float out[HEAD_DIM], float *lse)
{
    static float q[HEAD_DIM], k[NUM_KEYS][HEAD_DIM], v[NUM_KEYS][HEAD_DIM];
    clfd_buffers buffers;
    clfd_status status;

    for (int j = 0; j < NUM_KEYS; j++)
        for (int d = 0; d < HEAD_DIM; d++) {
            k[j][d] = (float)(j + d);
            v[j][d] = (float)j;
        }
    memset(&buffers, 0, sizeof buffers);
    buffers.struct_size = sizeof buffers;
    buffers.batch = 1;
    buffers.q = make_buffer(context, q, sizeof q);
    buffers.k = make_buffer(context, k, sizeof k);
    buffers.v = make_buffer(context, v, sizeof v);
    buffers.out = make_buffer(context, NULL, HEAD_DIM * sizeof *out);
    buffers.lse = make_buffer(context, NULL, sizeof *lse);
    buffers.workspace = make_buffer(context, NULL, clfd_plan_workspace_bytes(plan));
    status = clfd_enqueue_workspace_init(plan, queue, &buffers.workspace, 0, NULL, NULL);
    if (status == CLFD_SUCCESS)
        status = clfd_enqueue_decode(plan, queue, &buffers, 0, NULL, NULL);
    if (status == CLFD_SUCCESS)
        status = clEnqueueReadBuffer(queue, buffers.out.mem, CL_TRUE, 0, HEAD_DIM * sizeof *out, out, 0, NULL, NULL);
    if (status == CLFD_SUCCESS)
        status = clEnqueueReadBuffer(queue, buffers.lse.mem, CL_TRUE, 0, sizeof *lse, lse, 0, NULL, NULL);
    clReleaseMemObject(buffers.q.mem);
    clReleaseMemObject(buffers.k.mem);
    clReleaseMemObject(buffers.v.mem);
    clReleaseMemObject(buffers.out.mem);
    clReleaseMemObject(buffers.lse.mem);
    clReleaseMemObject(buffers.workspace.mem);
    return status;
}

/* Makes context, queue and plan on the device, computes, and takes everything down again. */
static clfd_status compute_on(cl_device_id device, const clfd_logger *logger, float out[HEAD_DIM], float *lse)
{
    cl_context cl = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(cl, device, 0, NULL);
    clfd_context_options options;
    clfd_attention attention;
    clfd_context *context = NULL;
    clfd_plan *plan = NULL;
    clfd_status status;

    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.logger = *logger;
    memset(&attention, 0, sizeof attention);
    attention.struct_size = sizeof attention;
    attention.num_q_heads = 1;
    attention.head_dim = HEAD_DIM;
    attention.max_kv_len = NUM_KEYS;
    status = clfd_context_create(cl, device, &options, &context);
    if (status == CLFD_SUCCESS)
        status = clfd_plan_create(context, &attention, &plan);
    if (status == CLFD_SUCCESS)
        status = compute(cl, queue, plan, out, lse);
    clfd_plan_release(plan);
    clfd_context_release(context);
    clReleaseCommandQueue(queue);
    clReleaseContext(cl);
    return status;
}

int main(void)
{
    const clfd_logger logger = {print_message, NULL};
    const float mean = (NUM_KEYS - 1) / 2.0f;
    clfd_device_info device;
    float out[HEAD_DIM], lse = 0.0f;
    clfd_status status;

    if (clfd_version() != CLFD_VERSION)
        return 1;
    status = clfd_select_device(NULL, &device, &logger);
    if (status == CLFD_SUCCESS)
        status = compute_on(device.device, &logger, out, &lse);
    if (status != CLFD_SUCCESS) {
        fprintf(stderr, "%s\n", clfd_status_string(status));
        return 1;
    }
    for (int d = 0; d < HEAD_DIM; d++)
        if (!(fabsf(out[d] - mean) < 1e-4f)) {
            fprintf(stderr, "out[%d] is %g; it should be %g\n", d, (double)out[d], (double)mean);
            return 1;
        }
    if (!(fabsf(lse - logf(NUM_KEYS)) < 1e-5f)) {
        fprintf(stderr, "lse is %g; it should be %g\n", (double)lse, log(NUM_KEYS));
        return 1;
    }
    return 0;
}

/* layer_count.h - an OpenCL layer that counts references, so that a test can show that none is leaked.
 *
 * Run the program with OPENCL_LAYERS=<path of the module> and ask the module itself what it saw. Watched are the
 * functions that make, retain and release contexts, queues, buffers, programs, kernels and events, as far as a program
 * of this project calls them: no images, no samplers, no shared virtual memory. */
#ifndef TEST_SUPPORT_LAYER_COUNT_H
#define TEST_SUPPORT_LAYER_COUNT_H

typedef enum layer_kind {
    LAYER_CONTEXT,
    LAYER_QUEUE,
    LAYER_MEM,
    LAYER_PROGRAM,
    LAYER_KERNEL,
    LAYER_EVENT,
    LAYER_NUM_KINDS
} layer_kind;

/* Of one kind since the program started. Live references: created + retained - released. */
typedef struct layer_count {
    long created, retained, released;
} layer_count;

/* The module's one function besides those that the loader calls: fills counts. Its name is for dlsym. */
#define LAYER_COUNT_READ "layer_count_read"
typedef void (*layer_count_read_function)(layer_count counts[LAYER_NUM_KINDS]);

#endif

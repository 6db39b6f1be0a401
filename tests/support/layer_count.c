#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "support/layer_count.h"
#include <CL/cl_layer.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static const cl_icd_dispatch *target;
static cl_icd_dispatch layer;
static atomic_long created[LAYER_NUM_KINDS], retained[LAYER_NUM_KINDS], released[LAYER_NUM_KINDS];

EXPORTED void layer_count_read(layer_count counts[LAYER_NUM_KINDS]);

void layer_count_read(layer_count counts[LAYER_NUM_KINDS])
{
    for (int kind = 0; kind < LAYER_NUM_KINDS; kind++)
        counts[kind] = (layer_count){created[kind], retained[kind], released[kind]};
}

/* A function that returns a new object, or NULL. */
#define CREATE(kind, type, name, parameters, arguments)                                                                \
    static type CL_API_CALL count_##name parameters                                                                    \
    {                                                                                                                  \
        const type object = target->name arguments;                                                                    \
        created[kind] += object != NULL;                                                                               \
        return object;                                                                                                 \
    }

/* The two functions that change an object's reference count. */
#define REFERENCES(kind, type, name)                                                                                   \
    static cl_int CL_API_CALL count_clRetain##name(type object)                                                        \
    {                                                                                                                  \
        const cl_int error = target->clRetain##name(object);                                                           \
        retained[kind] += error == CL_SUCCESS;                                                                         \
        return error;                                                                                                  \
    }                                                                                                                  \
    static cl_int CL_API_CALL count_clRelease##name(type object)                                                       \
    {                                                                                                                  \
        const cl_int error = target->clRelease##name(object);                                                          \
        released[kind] += error == CL_SUCCESS;                                                                         \
        return error;                                                                                                  \
    }

/* A function that makes an event where its last parameter, `event`, asks for one. */
#define ENQUEUE(name, parameters, arguments)                                                                           \
    static cl_int CL_API_CALL count_##name parameters                                                                  \
    {                                                                                                                  \
        const cl_int error = target->name arguments;                                                                   \
        created[LAYER_EVENT] += error == CL_SUCCESS && event != NULL;                                                  \
        return error;                                                                                                  \
    }

typedef void(CL_CALLBACK *context_callback)(const char *, const void *, size_t, void *);

REFERENCES(LAYER_CONTEXT, cl_context, Context)
REFERENCES(LAYER_QUEUE, cl_command_queue, CommandQueue)
REFERENCES(LAYER_MEM, cl_mem, MemObject)
REFERENCES(LAYER_PROGRAM, cl_program, Program)
REFERENCES(LAYER_KERNEL, cl_kernel, Kernel)
REFERENCES(LAYER_EVENT, cl_event, Event)

CREATE(LAYER_CONTEXT, cl_context, clCreateContext,
       (const cl_context_properties *properties, cl_uint num_devices, const cl_device_id *devices,
        context_callback notify, void *user, cl_int *error),
       (properties, num_devices, devices, notify, user, error))
CREATE(LAYER_CONTEXT, cl_context, clCreateContextFromType,
       (const cl_context_properties *properties, cl_device_type type, context_callback notify, void *user,
        cl_int *error),
       (properties, type, notify, user, error))
CREATE(LAYER_QUEUE, cl_command_queue, clCreateCommandQueue,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int *error),
       (context, device, properties, error))
CREATE(LAYER_QUEUE, cl_command_queue, clCreateCommandQueueWithProperties,
       (cl_context context, cl_device_id device, const cl_queue_properties *properties, cl_int *error),
       (context, device, properties, error))
CREATE(LAYER_MEM, cl_mem, clCreateBuffer,
       (cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error),
       (context, flags, bytes, host, error))
CREATE(LAYER_MEM, cl_mem, clCreateSubBuffer,
       (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *error),
       (buffer, flags, type, info, error))
CREATE(LAYER_PROGRAM, cl_program, clCreateProgramWithSource,
       (cl_context context, cl_uint count, const char **strings, const size_t *lengths, cl_int *error),
       (context, count, strings, lengths, error))
CREATE(LAYER_PROGRAM, cl_program, clCreateProgramWithBinary,
       (cl_context context, cl_uint num_devices, const cl_device_id *devices, const size_t *lengths,
        const unsigned char **binaries, cl_int *statuses, cl_int *error),
       (context, num_devices, devices, lengths, binaries, statuses, error))
CREATE(LAYER_KERNEL, cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *error),
       (program, name, error))
CREATE(LAYER_EVENT, cl_event, clCreateUserEvent, (cl_context context, cl_int *error), (context, error))

ENQUEUE(clEnqueueReadBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes, void *to,
         cl_uint num_wait, const cl_event *wait, cl_event *event),
        (queue, buffer, blocking, offset, bytes, to, num_wait, wait, event))
ENQUEUE(clEnqueueWriteBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes, const void *from,
         cl_uint num_wait, const cl_event *wait, cl_event *event),
        (queue, buffer, blocking, offset, bytes, from, num_wait, wait, event))
ENQUEUE(clEnqueueCopyBuffer,
        (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t bytes,
         cl_uint num_wait, const cl_event *wait, cl_event *event),
        (queue, from, to, from_offset, to_offset, bytes, num_wait, wait, event))
ENQUEUE(clEnqueueFillBuffer,
        (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_bytes, size_t offset, size_t bytes,
         cl_uint num_wait, const cl_event *wait, cl_event *event),
        (queue, buffer, pattern, pattern_bytes, offset, bytes, num_wait, wait, event))
ENQUEUE(clEnqueueUnmapMemObject,
        (cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint num_wait, const cl_event *wait, cl_event *event),
        (queue, buffer, mapped, num_wait, wait, event))
ENQUEUE(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint num_dims, const size_t *offset, const size_t *global,
         const size_t *local, cl_uint num_wait, const cl_event *wait, cl_event *event),
        (queue, kernel, num_dims, offset, global, local, num_wait, wait, event))
ENQUEUE(clEnqueueMarkerWithWaitList, (cl_command_queue queue, cl_uint num_wait, const cl_event *wait, cl_event *event),
        (queue, num_wait, wait, event))
ENQUEUE(clEnqueueBarrierWithWaitList, (cl_command_queue queue, cl_uint num_wait, const cl_event *wait, cl_event *event),
        (queue, num_wait, wait, event))

/* The one enqueue that returns a pointer instead of a status. */
static void *CL_API_CALL count_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                                  cl_map_flags flags, size_t offset, size_t bytes, cl_uint num_wait,
                                                  const cl_event *wait, cl_event *event, cl_int *error)
{
    void *mapped =
        target->clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, bytes, num_wait, wait, event, error);

    created[LAYER_EVENT] += mapped != NULL && event != NULL;
    return mapped;
}

EXPORTED cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t bytes, void *value, size_t *value_bytes)
{
    static const char layer_name[] = "count";
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    const void *from = name == CL_LAYER_NAME ? (const void *)layer_name : &version;
    const size_t from_bytes = name == CL_LAYER_NAME ? sizeof layer_name : sizeof version;

    if (name != CL_LAYER_NAME && name != CL_LAYER_API_VERSION)
        return CL_INVALID_VALUE;
    if (value != NULL) {
        if (bytes < from_bytes)
            return CL_INVALID_VALUE;
        memcpy(value, from, from_bytes);
    }
    if (value_bytes != NULL)
        *value_bytes = from_bytes;
    return CL_SUCCESS;
}

#define WATCH(name) layer.name = count_##name
#define WATCH_REFERENCES(name)                                                                                         \
    layer.clRetain##name = count_clRetain##name, layer.clRelease##name = count_clRelease##name

EXPORTED cl_int CL_API_CALL clInitLayer(cl_uint num_entries, const cl_icd_dispatch *target_dispatch,
                                        cl_uint *num_layer_entries, const cl_icd_dispatch **layer_dispatch)
{
    if (num_entries < sizeof layer / sizeof(void *))
        return CL_INVALID_VALUE;
    target = target_dispatch;
    layer = *target_dispatch;
    WATCH_REFERENCES(Context);
    WATCH_REFERENCES(CommandQueue);
    WATCH_REFERENCES(MemObject);
    WATCH_REFERENCES(Program);
    WATCH_REFERENCES(Kernel);
    WATCH_REFERENCES(Event);
    WATCH(clCreateContext);
    WATCH(clCreateContextFromType);
    WATCH(clCreateCommandQueue);
    WATCH(clCreateCommandQueueWithProperties);
    WATCH(clCreateBuffer);
    WATCH(clCreateSubBuffer);
    WATCH(clCreateProgramWithSource);
    WATCH(clCreateProgramWithBinary);
    WATCH(clCreateKernel);
    WATCH(clCreateUserEvent);
    WATCH(clEnqueueReadBuffer);
    WATCH(clEnqueueWriteBuffer);
    WATCH(clEnqueueCopyBuffer);
    WATCH(clEnqueueFillBuffer);
    WATCH(clEnqueueMapBuffer);
    WATCH(clEnqueueUnmapMemObject);
    WATCH(clEnqueueNDRangeKernel);
    WATCH(clEnqueueMarkerWithWaitList);
    WATCH(clEnqueueBarrierWithWaitList);
    *num_layer_entries = sizeof layer / sizeof(void *);
    *layer_dispatch = &layer;
    return CL_SUCCESS;
}

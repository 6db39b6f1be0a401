#include "run/buffers.h"

/* Where a range lies: in the parent of a sub-buffer, so that two sub-buffers compare. */
typedef struct place {
    cl_mem root;
    uint64_t begin, end;
} place;

cl_mem clfd_buffer_mem(const clfd_buffer *buffer) { return buffer->kind == CLFD_BUFFER_MEM ? buffer->mem : NULL; }

/* The properties of a cl_mem that the rules need. */
typedef struct mem_info {
    cl_context context;
    cl_mem parent;
    cl_mem_flags flags;
    cl_mem_object_type type;
    size_t bytes, origin;
    void *host;
} mem_info;

static clfd_status read_mem(cl_mem mem, const char *name, mem_info *info, const clfd_logger *logger)
{
    const struct {
        cl_mem_info what;
        size_t bytes;
        void *value;
    } queries[] = {
        {CL_MEM_TYPE, sizeof info->type, &info->type},
        {CL_MEM_CONTEXT, sizeof info->context, &info->context},
        {CL_MEM_SIZE, sizeof info->bytes, &info->bytes},
        {CL_MEM_FLAGS, sizeof info->flags, &info->flags},
        {CL_MEM_ASSOCIATED_MEMOBJECT, sizeof info->parent, &info->parent},
        {CL_MEM_OFFSET, sizeof info->origin, &info->origin},
        {CL_MEM_HOST_PTR, sizeof info->host, &info->host},
    };

    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        const clfd_status status = clGetMemObjectInfo(mem, queries[i].what, queries[i].bytes, queries[i].value, NULL);
        if (status != CL_SUCCESS)
            return clfd_fail(logger, status, "%s is no usable cl_mem: %s (%d)", name, clfd_status_string(status),
                             (int)status);
    }
    return CLFD_SUCCESS;
}

static clfd_status check_mem(const clfd_context *context, const clfd_range *range, place *where)
{
    const clfd_logger *const logger = &context->logger;
    const size_t offset = range->buffer->offset;
    mem_info mem;
    const clfd_status status = read_mem(range->buffer->mem, range->name, &mem, logger);

    if (status != CLFD_SUCCESS)
        return status;
    if (mem.type != CL_MEM_OBJECT_BUFFER)
        return clfd_fail(logger, CLFD_ERROR_BUFFER_KIND, "%s is an image or a pipe; it must be a buffer", range->name);
    if (mem.context != context->cl)
        return clfd_fail(logger, CLFD_ERROR_BUFFER_CONTEXT, "%s is of another cl_context than the plan", range->name);
    if (range->written && (mem.flags & CL_MEM_READ_ONLY) != 0)
        return clfd_fail(logger, CLFD_ERROR_BUFFER_ACCESS, "%s was created CL_MEM_READ_ONLY; kernels must write it",
                         range->name);
    if ((!range->written || range->scratch) && (mem.flags & CL_MEM_WRITE_ONLY) != 0)
        return clfd_fail(logger, CLFD_ERROR_BUFFER_ACCESS, "%s was created CL_MEM_WRITE_ONLY; kernels must read it",
                         range->name);
    if (offset > mem.bytes || range->bytes > mem.bytes - offset)
        return clfd_fail(logger, range->too_small, "%s needs %llu bytes from offset %zu; the buffer has %zu",
                         range->name, (unsigned long long)range->bytes, offset, mem.bytes);
    /* The base is the host pointer under the buffer, or as good as page-aligned; a sub-buffer's starts at its origin. */
    const uintptr_t base = (mem.flags & CL_MEM_USE_HOST_PTR) != 0 ? (uintptr_t)mem.host : mem.origin;
    if ((base + offset) % range->alignment != 0)
        return clfd_fail(logger, CLFD_ERROR_BUFFER_ALIGNMENT, "%s starts at offset %zu%s; it must be a multiple of %zu",
                         range->name, offset,
                         base % range->alignment == 0             ? ""
                         : (mem.flags & CL_MEM_USE_HOST_PTR) != 0 ? " of an unaligned host pointer"
                                                                  : " of an unaligned sub-buffer",
                         range->alignment);
    if (offset % range->element != 0)
        return clfd_fail(logger, CLFD_ERROR_BUFFER_ALIGNMENT,
                         "%s has offset %zu; it must be whole elements of %zu bytes", range->name, offset,
                         range->element);
    where->root = mem.parent != NULL ? mem.parent : range->buffer->mem;
    where->begin = (uint64_t)mem.origin + offset;
    where->end = where->begin + range->bytes;
    return CLFD_SUCCESS;
}

static clfd_status check_range(const clfd_context *context, const clfd_range *range, place *where)
{
    const clfd_logger *const logger = &context->logger;

    where->root = NULL;
    where->begin = where->end = 0;
    switch (range->buffer->kind) {
    case CLFD_BUFFER_NONE:
        if (range->required)
            return clfd_fail(logger, CLFD_ERROR_BUFFER_MISSING, "%s is CLFD_BUFFER_NONE; it is required", range->name);
        return CLFD_SUCCESS;
    case CLFD_BUFFER_MEM:
        if (range->buffer->mem == NULL)
            return clfd_fail(logger, CLFD_ERROR_BUFFER_MISSING, "%s has kind CLFD_BUFFER_MEM and mem NULL",
                             range->name);
        return check_mem(context, range, where);
    default:
        return clfd_fail(logger, CLFD_ERROR_BUFFER_KIND, "%s has kind %d; only CLFD_BUFFER_MEM (%d) is implemented",
                         range->name, (int)range->buffer->kind, (int)CLFD_BUFFER_MEM);
    }
}

/* Whether two ranges of one buffer have no byte in common. */
static bool ranges_apart(const place *a, const place *b, const clfd_footprint *footprint_a,
                         const clfd_footprint *footprint_b)
{
    return b->root != a->root || b->end <= a->begin || a->end <= b->begin ||
           (footprint_a != NULL &&
            clfd_footprints_apart(footprint_a, footprint_b, (int64_t)b->begin - (int64_t)a->begin));
}

clfd_status clfd_check_footprints(const clfd_context *context, const clfd_range *ranges,
                                  const clfd_footprint *footprints, size_t count)
{
    place places[CLFD_MAX_RANGES];

    for (size_t i = 0; i < count; i++) {
        const clfd_status status = check_range(context, &ranges[i], &places[i]);
        if (status != CLFD_SUCCESS)
            return status;
    }
    for (size_t i = 0; i < count; i++) {
        if (!ranges[i].written || places[i].root == NULL)
            continue;
        for (size_t j = 0; j < count; j++) {
            const bool apart = ranges_apart(&places[i], &places[j], footprints != NULL ? &footprints[i] : NULL,
                                            footprints != NULL ? &footprints[j] : NULL);
            const bool equal = places[j].begin == places[i].begin && places[j].end == places[i].end;
            const bool alike = ranges[i].may_equal != 0 && ranges[j].may_equal == ranges[i].may_equal;
            if (i == j || apart || (equal && alike && !ranges[j].written))
                continue;
            return clfd_fail(&context->logger, CLFD_ERROR_BUFFER_OVERLAP, "%s is written and overlaps %s",
                             ranges[i].name, ranges[j].name);
        }
    }
    return CLFD_SUCCESS;
}

clfd_status clfd_check_ranges(const clfd_context *context, const clfd_range *ranges, size_t count)
{
    return clfd_check_footprints(context, ranges, NULL, count);
}

/* Not every OpenCL implementation looks at the events that it is to wait for. */
static clfd_status check_wait_list(const clfd_context *context, cl_uint num_wait, const cl_event *wait)
{
    const clfd_logger *const logger = &context->logger;
    cl_context of_event;
    clfd_status status = CLFD_SUCCESS;

    if ((num_wait == 0) != (wait == NULL))
        return clfd_fail(logger, CLFD_ERROR_WAIT_LIST, "num_wait is %u and wait is %s; both or neither must be there",
                         num_wait, wait == NULL ? "NULL" : "not NULL");
    for (cl_uint i = 0; i < num_wait; i++) {
        if (wait[i] == NULL)
            return clfd_fail(logger, CLFD_ERROR_WAIT_LIST, "wait[%u] is NULL; num_wait is %u", i, num_wait);
        CLFD_TRY_CL(logger, clGetEventInfo(wait[i], CL_EVENT_CONTEXT, sizeof of_event, &of_event, NULL),
                    "clGetEventInfo(CL_EVENT_CONTEXT)");
        if (of_event != context->cl)
            return clfd_fail(logger, CLFD_ERROR_WAIT_LIST, "wait[%u] is of another cl_context than the plan", i);
    }
done:
    return status;
}

clfd_status clfd_check_queue(const clfd_context *context, cl_command_queue queue, cl_uint num_wait,
                             const cl_event *wait, bool *out_of_order)
{
    const clfd_logger *const logger = &context->logger;
    cl_command_queue_properties properties;
    cl_context queue_context;
    cl_device_id device;
    clfd_status status;

    if (queue == NULL)
        return clfd_fail(logger, CLFD_ERROR_NULL_ARGUMENT, "queue is NULL");
    if ((status = check_wait_list(context, num_wait, wait)) != CLFD_SUCCESS)
        return status;
    CLFD_TRY_CL(logger, clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof queue_context, &queue_context, NULL),
                "clGetCommandQueueInfo(CL_QUEUE_CONTEXT)");
    CLFD_TRY_CL(logger, clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL),
                "clGetCommandQueueInfo(CL_QUEUE_DEVICE)");
    CLFD_TRY_CL(logger, clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL),
                "clGetCommandQueueInfo(CL_QUEUE_PROPERTIES)");
    if (queue_context != context->cl)
        return clfd_fail(logger, CLFD_ERROR_QUEUE_CONTEXT, "the queue is of another cl_context than the plan");
    if (device != context->device)
        return clfd_fail(logger, CLFD_ERROR_QUEUE_DEVICE, "the queue is of another device than the plan");
    *out_of_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
done:
    return status;
}

clfd_status clfd_enqueue_marker(const clfd_context *context, cl_command_queue queue, cl_uint num_wait,
                                const cl_event *wait, cl_event *event)
{
    const clfd_status status = clEnqueueMarkerWithWaitList(queue, num_wait, wait, event);

    return status == CL_SUCCESS ? status : clfd_fail_cl(&context->logger, status, "clEnqueueMarkerWithWaitList");
}

/* clfd/status.h - status codes and the log callback.
 *
 * Every clfd function that can fail returns a clfd_status. 0 is success. OpenCL's own negative codes
 * (CL_OUT_OF_RESOURCES = -5, CL_PLATFORM_NOT_FOUND_KHR = -1001, ...) pass through unchanged; clfd's own codes are
 * CLFD_ERROR_BASE and below, where no OpenCL implementation defines any. One code stands for one failed condition.
 * The offending value and the rule it broke go, as one sentence, to the logger of the call.
 */
#ifndef CLFD_STATUS_H
#define CLFD_STATUS_H

#include <stdint.h>

#if defined(CLFD_STATIC)
#define CLFD_API
#elif defined(_WIN32)
#if defined(CLFD_BUILDING)
#define CLFD_API __declspec(dllexport)
#else
#define CLFD_API __declspec(dllimport)
#endif
#else
#define CLFD_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t clfd_status;

#define CLFD_ERROR_BASE (-20000)

enum {
    CLFD_SUCCESS = 0,

    /* Any call. */
    CLFD_ERROR_NULL_ARGUMENT = CLFD_ERROR_BASE - 1, /* a required pointer is NULL */
    CLFD_ERROR_STRUCT_SIZE = CLFD_ERROR_BASE - 2,   /* struct_size is 0, or the unknown tail is not zero */
    CLFD_ERROR_HOST_MEMORY = CLFD_ERROR_BASE - 3,   /* the library could not allocate host memory */
    CLFD_ERROR_OVERFLOW = CLFD_ERROR_BASE - 4,      /* a size or an offset does not fit */
    CLFD_ERROR_WAIT_LIST = CLFD_ERROR_BASE - 5,     /* a length that contradicts it, or a foreign event in it */

    /* Device selection. */
    CLFD_ERROR_NO_PLATFORM = CLFD_ERROR_BASE - 100,        /* no OpenCL platform has a device */
    CLFD_ERROR_DEVICE_SPEC = CLFD_ERROR_BASE - 101,        /* the SPEC is malformed */
    CLFD_ERROR_NO_DEVICE_MATCH = CLFD_ERROR_BASE - 102,    /* no device matches the SPEC */
    CLFD_ERROR_AMBIGUOUS_DEVICE = CLFD_ERROR_BASE - 103,   /* several devices match the SPEC */
    CLFD_ERROR_DEVICE_UNSUPPORTED = CLFD_ERROR_BASE - 104, /* the device lacks what every clfd kernel needs */
    CLFD_ERROR_DEVICE_CONTEXT = CLFD_ERROR_BASE - 105,     /* the device is not in the cl_context */
    CLFD_ERROR_DISABLE_LIST = CLFD_ERROR_BASE - 106,       /* CLFD_DISABLE names no known upgrade */
    CLFD_ERROR_TUNING_FILE = CLFD_ERROR_BASE - 107, /* CLFD_TUNING names a file that is missing or no tuning file */

    /* The attention or merge descriptor. */
    CLFD_ERROR_BATCH = CLFD_ERROR_BASE - 200,      /* max_batch out of range */
    CLFD_ERROR_Q_LEN = CLFD_ERROR_BASE - 201,      /* q_len out of range */
    CLFD_ERROR_HEADS = CLFD_ERROR_BASE - 202,      /* a head count out of range */
    CLFD_ERROR_HEAD_RATIO = CLFD_ERROR_BASE - 203, /* num_q_heads is no multiple of num_kv_heads */
    CLFD_ERROR_HEAD_DIM = CLFD_ERROR_BASE - 204,   /* a head dim out of range, or no multiple of 8 or of a block */
    CLFD_ERROR_TYPE = CLFD_ERROR_BASE - 205,       /* an element type that is unknown or not allowed there */
    CLFD_ERROR_KV_LEN = CLFD_ERROR_BASE - 206,     /* max_kv_len or expected_kv_len out of range */
    CLFD_ERROR_SCALE = CLFD_ERROR_BASE - 207,      /* scale is not finite */
    CLFD_ERROR_OPTION = CLFD_ERROR_BASE - 208,     /* a flag is neither 0 nor 1 */
    CLFD_ERROR_LAYOUT = CLFD_ERROR_BASE - 209,     /* an unknown layout */
    CLFD_ERROR_STRIDE = CLFD_ERROR_BASE - 210,     /* a negative stride, or strides that overlap a written tensor */
    CLFD_ERROR_ALIGNMENT_PROMISE = CLFD_ERROR_BASE - 211, /* a promise that is no power of two, or below the element */
    CLFD_ERROR_V_FROM_K = CLFD_ERROR_BASE - 212,          /* v_from_k with a head_dim_v, type or stride of V's own */
    CLFD_ERROR_PARTIAL_FORMAT = CLFD_ERROR_BASE - 213,    /* an unknown partial format */
    CLFD_ERROR_SPLIT_POLICY = CLFD_ERROR_BASE - 214,      /* an unknown split policy, or a size it cannot have */
    CLFD_ERROR_TUNING = CLFD_ERROR_BASE - 215,            /* a malformed tuning override, or one the device refuses */
    CLFD_ERROR_NUM_STATES = CLFD_ERROR_BASE - 216,        /* a count of states or rows out of range */
    CLFD_ERROR_SOFTCAP = CLFD_ERROR_BASE - 217,           /* softcap is negative or not finite */
    CLFD_ERROR_BIAS = CLFD_ERROR_BASE - 218,              /* a bias type that is not allowed, or strides without one */
    CLFD_ERROR_MASK = CLFD_ERROR_BASE - 219,              /* an unknown mask, or strides that it cannot have */
    CLFD_ERROR_WINDOW = CLFD_ERROR_BASE - 220,            /* window out of range */
    CLFD_ERROR_CACHE_ROWS = CLFD_ERROR_BASE - 221,        /* num_cache_rows out of range, or without cache_batch_idx */
    CLFD_ERROR_PAGING = CLFD_ERROR_BASE - 222,            /* an unknown paging, or sizes that it cannot have */
    CLFD_ERROR_QUANT = CLFD_ERROR_BASE - 223,             /* a clfd_quant that the type cannot have */
    CLFD_ERROR_SHARED_KV = CLFD_ERROR_BASE - 224,         /* an option that shared_kv does not allow */
    CLFD_ERROR_ROPE = CLFD_ERROR_BASE - 225,              /* rotary dims or a style that RoPE cannot have */
    CLFD_ERROR_NUM_TOKENS = CLFD_ERROR_BASE - 226,        /* new tokens per sequence out of range */

    /* Programs. */
    CLFD_ERROR_KERNEL_SOURCE = CLFD_ERROR_BASE - 300, /* CLFD_KERNEL_DIR lacks a file, or a kernel includes none */
    CLFD_ERROR_NO_KERNEL = CLFD_ERROR_BASE - 301,     /* no tuning row could be built for this device */

    /* The buffers of one call. */
    CLFD_ERROR_BUFFER_KIND = CLFD_ERROR_BASE - 400,       /* a kind that is unknown or not implemented */
    CLFD_ERROR_BUFFER_MISSING = CLFD_ERROR_BASE - 401,    /* a required buffer is absent */
    CLFD_ERROR_BUFFER_UNEXPECTED = CLFD_ERROR_BASE - 402, /* a buffer that the plan has no use for */
    CLFD_ERROR_BUFFER_SIZE = CLFD_ERROR_BASE - 403,       /* the furthest byte touched lies past the end */
    CLFD_ERROR_BUFFER_ALIGNMENT = CLFD_ERROR_BASE - 404,  /* the base breaks the alignment promise */
    CLFD_ERROR_BUFFER_CONTEXT = CLFD_ERROR_BASE - 405,    /* the cl_mem is of another context */
    CLFD_ERROR_BUFFER_OVERLAP = CLFD_ERROR_BASE - 406,    /* a written buffer overlaps another one */
    CLFD_ERROR_BUFFER_ACCESS = CLFD_ERROR_BASE - 407,  /* a written buffer is read-only for kernels, or the reverse */
    CLFD_ERROR_WORKSPACE_SIZE = CLFD_ERROR_BASE - 408, /* the workspace is smaller than the plan needs */
    CLFD_ERROR_BATCH_RANGE = CLFD_ERROR_BASE - 409,    /* batch above the plan's max_batch */
    CLFD_ERROR_QUEUE_CONTEXT = CLFD_ERROR_BASE - 410,  /* the queue is of another context */
    CLFD_ERROR_QUEUE_DEVICE = CLFD_ERROR_BASE - 411    /* the queue is of another device */
};

/* The enumerator's name, "CLFD_ERROR_HEAD_RATIO", for one of clfd's codes; the name of the most common OpenCL
 * codes, "CL_OUT_OF_RESOURCES"; otherwise "unknown status". Never NULL; the string is static. Thread-safe. */
CLFD_API const char *clfd_status_string(clfd_status status);

typedef enum clfd_log_level {
    CLFD_LOG_ERROR = 1,   /* the sentence that belongs to a returned status */
    CLFD_LOG_WARNING = 2, /* something degraded: an upgrade refused by the compiler, a platform that cannot be read */
    CLFD_LOG_INFO = 3     /* a build, a quirk in force */
} clfd_log_level;

/* Where sentences go. A zeroed logger, or a NULL pointer to one, discards them. `message` is one line without a line
 * break, valid during the call. clfd may call `write` from any thread that calls clfd, and holds no lock meanwhile
 * except the one that serialises program builds of a context. */
typedef struct clfd_logger {
    void (*write)(void *user, clfd_log_level level, const char *message);
    void *user;
} clfd_logger;

#ifdef __cplusplus
}
#endif
#endif

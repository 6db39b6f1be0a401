/* bench.h - measuring one problem: memory (bench_memory.c), the plain read (roofline.c), the decode (bench_decode.c),
 * and what is printed of it (bench_report.c). Times are in seconds. */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

#include "output.h"
#include "problem.h"
#include "session.h"
#include <stddef.h>

/* A device with what every problem needs on it. */
typedef struct bench_device {
    tool_session session;
    cl_command_queue steady_queue; /* in order, without profiling, which slows some drivers down */
    cl_program program;
    cl_kernel read_strided, read_parts, fill_random;
    cl_mem sink;
} bench_device;

bool bench_open(bench_device *device, const char *spec, tool_fault *fault);
void bench_close(bench_device *device);

/* Copies of a problem's K and V, one behind the other in one buffer. Measurements go from copy to copy, so that each
 * finds the caches full of others: all copies together are at least four times the last-level cache. */
typedef struct bench_memory {
    cl_mem kv, q, kv_lens;     /* kv_lens NULL where all lengths are the capacity */
    uint32_t num_copies, next; /* next: the copy of the next measurement */
    size_t copy_bytes;         /* from one copy to the next */
    size_t v_offset;           /* from K to V within a copy */
    size_t read_bytes;         /* what one decode must read: K and V of the lengths that count; a multiple of 16 */
    size_t q_bytes, out_bytes;
} bench_memory;

/* Allocates and fills the tensors of a problem with random numbers. *memory needs bench_free whatever happens. */
bool bench_allocate(bench_device *device, const bench_problem *problem, bench_memory *memory, tool_fault *fault);
void bench_free(bench_memory *memory);

/* Byte offset of the copy whose turn it is. */
size_t bench_next_copy(bench_memory *memory);

/* 16-byte loads that a work-item of the plain read has in flight; bench.cl is built with it. */
#define READ_UNROLL 4

/* How the plain read is launched. */
typedef struct read_shape {
    bool parts; /* read_parts; else read_strided */
    size_t local, groups;
} read_shape;

/* The fastest launches of the sweep by either clock. */
typedef struct roofline {
    read_shape single, steady;
} roofline;

bool roofline_sweep(bench_device *device, bench_memory *memory, roofline *roofline, tool_fault *fault);

/* One read of the next copy, by its event; a row of `calls` reads, wall time of one. */
bool roofline_single(bench_device *device, bench_memory *memory, const read_shape *shape, double *seconds,
                     tool_fault *fault);
bool roofline_steady(bench_device *device, bench_memory *memory, const read_shape *shape, uint32_t calls,
                     double *seconds, tool_fault *fault);

typedef struct bench_result {
    char problem[PROBLEM_BYTES];
    char plan[512]; /* "" with --roofline-only */
    size_t read_bytes, workspace_bytes;
    uint32_t num_copies;
    double read_single, read_steady; /* the plain read */
    double single;                   /* first kernel start to last kernel end, median */
    double steady;                   /* wall time of many calls in a row, per call */
    double split, merge;             /* the two kernels by their events, medians; merge 0 where there is none */
    double host;                     /* time inside clfd_enqueue_decode, median */
    roofline roofline;
} bench_result;

/* Measures one problem. roofline_only: the plain read alone. repeats: single measurements. */
bool bench_measure(bench_device *device, const bench_problem *problem, const char *tuning, uint32_t repeats,
                   bool roofline_only, bench_result *result, tool_fault *fault);

/* Sorts the values and returns the middle one. */
double bench_median(double *values, size_t count);

/* Prints one result as text. */
void bench_print(const bench_result *result);

/* Write all results to an open output. */
bool bench_write_json(output_file *output, const clfd_device_info *device, const bench_result *results, size_t count,
                      tool_fault *fault);
bool bench_write_csv(output_file *output, const bench_result *results, size_t count, tool_fault *fault);

#endif

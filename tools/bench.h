/* bench.h - measuring one problem: its tables (bench_tables.c), where its tensors lie (bench_layout.c), memory
 * (bench_memory.c), the plain read (roofline.c), the decode (bench_decode.c), both clocks (bench_measure.c), and what is
 * printed of it (bench_report.c). Times are in seconds. */
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
    cl_kernel read_strided, read_parts, fill_random, fill_blocks;
    cl_kernel read_ahead; /* NULL where the device has no prefetch */
    cl_mem sink;
} bench_device;

bool bench_open(bench_device *device, const char *spec, tool_fault *fault);
void bench_close(bench_device *device);

/* ---- What a problem needs ---------------------------------------------------------------------------------------- */

/* The tensors that grow with the keys; each copy has its own. */
typedef enum bench_tensor {
    BENCH_K,
    BENCH_V,
    BENCH_K_SCALE,
    BENCH_V_SCALE,
    BENCH_K_ZERO,
    BENCH_V_ZERO,
    BENCH_BIAS,
    BENCH_MASK,
    BENCH_TENSORS
} bench_tensor;

/* The tables beside them, of int32 or float, which all copies share. */
typedef enum bench_table {
    BENCH_KV_LENS,
    BENCH_KV_START,
    BENCH_CACHE_BATCH_IDX,
    BENCH_QUERY_POSITIONS,
    BENCH_BLOCK_TABLE,
    BENCH_PAGE_INDPTR,
    BENCH_ALIBI,
    BENCH_SINKS,
    BENCH_TABLES
} bench_table;

/* One decode. A problem has one, or two with a prefix: that of the prefix, and that of the rest. */
typedef struct bench_part {
    clfd_attention attention; /* num_pages included */
    struct {
        void *data; /* malloc'ed; NULL: the call has no such table */
        size_t count;
        cl_mem mem;
    } tables[BENCH_TABLES];
    uint64_t visible; /* tokens that some query sees, of all sequences of K and V together */
    struct {
        size_t offset, bytes; /* within a copy; 0 bytes: there is none */
    } tensors[BENCH_TENSORS];
} bench_part;

/* Copies of a problem's tensors, one behind the other in one buffer. Measurements go from copy to copy, so that each
 * finds the caches full of others. */
typedef struct bench_memory {
    bench_part parts[2];
    uint32_t num_parts;
    cl_mem copies, q;
    uint32_t num_copies, next; /* next: the copy of the next measurement */
    size_t copy_bytes;         /* from one copy to the next */
    size_t read_bytes;         /* what one decode must read: K and V with their scales, bias and mask, where visible */
    size_t q_bytes, out_bytes;
    bool cached; /* all copies together read less than four times the last-level cache */
} bench_memory;

/* Draws lengths, positions, pages and the like of a part: seeded, the same for every run. Without a prefix the part is
 * the problem. */
bool bench_make_tables(const bench_problem *problem, bool prefix, bench_part *part, tool_fault *fault);

/* Makes the tables of all parts, and finds where the tensors lie, what must be read, and how many copies there are.
 * *memory needs bench_free whatever happens. */
bool bench_lay_out(const bench_problem *problem, const clfd_device_info *info, bench_memory *memory, tool_fault *fault);

/* Allocates everything and fills it with random numbers. */
bool bench_allocate(bench_device *device, const bench_problem *problem, bench_memory *memory, tool_fault *fault);
void bench_free(bench_memory *memory);

/* Byte offset of the copy whose turn it is. */
size_t bench_next_copy(bench_memory *memory);

/* ---- The plain read ---------------------------------------------------------------------------------------------- */

/* 16-byte loads that a work-item of the plain read has in flight; bench.cl is built with it. */
#define READ_UNROLL 4

/* How the plain read is launched. */
typedef struct read_shape {
    bool parts; /* read_parts, or read_ahead with `ahead`; else read_strided */
    size_t local, groups;
    cl_ulong ahead; /* elements of 16 bytes to prefetch ahead */
} read_shape;

/* The fastest launches of the sweep by either clock. */
typedef struct roofline {
    read_shape single, steady;
} roofline;

bool roofline_sweep(bench_device *device, bench_memory *memory, roofline *roofline, tool_fault *fault);

/* Reads copies other than the next one on the session's queue, for longer than the host takes to enqueue a call: what
 * comes behind has been launched when its turn comes, and finds the caches full of others. On an idle GPU the events of
 * a call take in a part of its launch (NVIDIA's driver: 3 us). CPUs have nothing to hide. */
bool roofline_occupy(bench_device *device, const bench_memory *memory, tool_fault *fault);

/* One read of the next copy, by its event, on a busy device; a row of `calls` reads, wall time of one. */
bool roofline_single(bench_device *device, bench_memory *memory, const read_shape *shape, double *seconds,
                     tool_fault *fault);
bool roofline_steady(bench_device *device, bench_memory *memory, const read_shape *shape, uint32_t calls,
                     double *seconds, tool_fault *fault);

/* ---- The decode -------------------------------------------------------------------------------------------------- */

/* The launches of a problem: split kernel and merge of each part, and the merge of the parts. */
#define BENCH_MAX_LAUNCHES (2 * CLFD_MAX_LAUNCHES + 1)

/* Plans and outputs of a problem's parts. */
typedef struct bench_decoder {
    struct {
        clfd_plan *plan;
        clfd_buffers buffers;
        cl_mem out, lse;
    } stages[2];
    uint32_t num_stages, rows;
    clfd_merge_plan *merge; /* of two parts */
    cl_mem workspace;
    size_t workspace_bytes;
    char plan[1024]; /* what the plans say of themselves */
} bench_decoder;

/* How long the launches of one problem took. */
typedef struct bench_times {
    double single;       /* first kernel start to last kernel end */
    double split, merge; /* split kernels; merge kernels, that of the parts included */
    double parts[2];     /* each part's launches; parts[1] of a single part is 0 */
    double combine;      /* the merge of the parts */
} bench_times;

/* Creates the plans, which check the problem; nothing is allocated yet. *decoder needs bench_decoder_close. */
bool bench_decoder_plan(bench_device *device, const bench_memory *memory, const char *tuning, bench_decoder *decoder,
                        tool_fault *fault);

/* Allocates outputs and workspace, names the buffers, warms up. */
bool bench_decoder_open(bench_device *device, const bench_memory *memory, bench_decoder *decoder, tool_fault *fault);
void bench_decoder_close(bench_decoder *decoder);

/* Points the calls at the next copy. */
void bench_decoder_rotate(bench_memory *memory, bench_decoder *decoder);

/* Enqueues all launches of one problem on an in-order queue. */
bool bench_decoder_enqueue(bench_decoder *decoder, cl_command_queue queue, tool_fault *fault);

/* The same with the next copy on the session's queue, which is busy, measured. */
bool bench_decoder_time(bench_device *device, bench_memory *memory, bench_decoder *decoder, bench_times *times,
                        tool_fault *fault);

/* ---- Results ----------------------------------------------------------------------------------------------------- */

typedef struct bench_result {
    char problem[PROBLEM_BYTES];
    char plan[1024]; /* "" with --roofline-only */
    size_t read_bytes, workspace_bytes;
    uint32_t num_copies, num_parts;
    bool cached;
    double read_single, read_steady; /* the plain read */
    bench_times times;               /* medians, each of its own */
    double steady;                   /* wall time of many calls in a row, per call */
    double host;                     /* time inside the enqueueing of one, median */
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

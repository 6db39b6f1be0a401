#include "tune.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of the check, where the problem has more: the reference takes one thread. */
#define MAX_BATCH 2u
#define MAX_KV_HEADS 2u
#define MAX_KEYS 1000u
/* What `clfd run --expect` allows, too. The values of V are at most 2. */
#define TOLERANCE 1e-4

#define TENSOR(name) offsetof(clfd_host_tensors, name)

static const size_t tensor_fields[BENCH_TENSORS] = {
    [BENCH_K] = TENSOR(k),
    [BENCH_V] = TENSOR(v),
    [BENCH_K_SCALE] = TENSOR(k_scale),
    [BENCH_V_SCALE] = TENSOR(v_scale),
    [BENCH_K_ZERO] = TENSOR(k_zero),
    [BENCH_V_ZERO] = TENSOR(v_zero),
    [BENCH_BIAS] = TENSOR(bias),
    [BENCH_MASK] = TENSOR(mask),
};
static const size_t table_fields[BENCH_TABLES] = {
    [BENCH_KV_LENS] = TENSOR(kv_lens),
    [BENCH_KV_START] = TENSOR(kv_start),
    [BENCH_CACHE_BATCH_IDX] = TENSOR(cache_batch_idx),
    [BENCH_QUERY_POSITIONS] = TENSOR(query_positions),
    [BENCH_BLOCK_TABLE] = TENSOR(block_table),
    [BENCH_PAGE_INDPTR] = TENSOR(page_indptr),
    [BENCH_ALIBI] = TENSOR(alibi),
    [BENCH_SINKS] = TENSOR(sinks),
};

static void set_field(clfd_host_tensors *tensors, size_t offset, const void *data)
{
    memcpy((char *)tensors + offset, &data, sizeof data);
}

bool tune_check_equal(const float *actual, const double *expected, size_t count, clfd_type type)
{
    const double unit = type == CLFD_TYPE_BF16 ? ldexp(1, -7) : type == CLFD_TYPE_F16 ? ldexp(1, -10) : 0;

    for (size_t i = 0; i < count; i++) {
        const bool close = fabs(actual[i] - expected[i]) <= TOLERANCE + unit * fabs(expected[i]);
        if (isinf(expected[i]) ? actual[i] != expected[i] : !close)
            return false;
    }
    return true;
}

/* The problem in small, for the schedule of equal lengths or, ragged, for that of lengths on the device. */
static bench_problem shrink(const bench_problem *problem, bool ragged)
{
    const uint32_t ratio = problem->num_q_heads / problem->num_kv_heads;
    bench_problem small = *problem;

    small.batch = problem->batch < MAX_BATCH ? problem->batch : MAX_BATCH;
    small.num_kv_heads = problem->num_kv_heads < MAX_KV_HEADS ? problem->num_kv_heads : MAX_KV_HEADS;
    small.num_q_heads = small.num_kv_heads * ratio;
    small.kv_len = problem->kv_len < MAX_KEYS ? problem->kv_len : MAX_KEYS;
    small.ragged = ragged;
    small.ragged_low = 1;
    small.ragged_high = small.kv_len;
    small.out_type = CLFD_TYPE_F32;
    return small;
}

/* Runs the reference on what the device holds. */
static bool compute_reference(bench_device *device, const bench_memory *memory, double *out, double *lse,
                              tool_fault *fault)
{
    const bench_part *part = &memory->parts[0];
    const clfd_logger logger = fault_logger(fault);
    clfd_host_tensors tensors = {
        .struct_size = sizeof tensors, .batch = part->attention.max_batch, .out = out, .lse = lse};
    unsigned char *cache = malloc(memory->copy_bytes), *q = malloc(memory->q_bytes);
    bool good = false;

    if (cache == NULL || q == NULL) {
        fault_failed(fault, "no memory for the %zu bytes of the check", memory->copy_bytes + memory->q_bytes);
    } else if (session_read(&device->session, memory->copies, memory->copy_bytes, cache, fault) &&
               session_read(&device->session, memory->q, memory->q_bytes, q, fault)) {
        tensors.q = q;
        for (int t = 0; t < BENCH_TENSORS; t++)
            if (part->tensors[t].bytes > 0)
                set_field(&tensors, tensor_fields[t], cache + part->tensors[t].offset);
        for (int t = 0; t < BENCH_TABLES; t++)
            set_field(&tensors, table_fields[t], part->tables[t].data);
        if (part->attention.paging == CLFD_PAGING_CSR)
            tensors.num_page_indices = (uint32_t)part->tables[BENCH_BLOCK_TABLE].count;
        const clfd_status status = clfd_reference_attention(&part->attention, &tensors, &logger);
        good = status == CLFD_SUCCESS || fault_status(fault, status, "clfd_reference_attention");
    }
    free(cache);
    free(q);
    return good;
}

bool tune_check_open(bench_device *device, const bench_problem *problem, tune_check *check, tool_fault *fault)
{
    for (int c = 0; c < TUNE_CHECKS; c++) {
        const bench_problem small = shrink(problem, c > 0);
        bench_memory *memory = &check->cases[c].memory;
        if (!bench_lay_out(&small, &device->session.device, memory, fault))
            return false;
        memory->num_copies = 1;
        const size_t rows = check->cases[c].rows = (size_t)small.batch * small.q_len * small.num_q_heads;
        check->cases[c].head_dim_v = small.head_dim_v;
        double *const out = check->cases[c].out = malloc(rows * small.head_dim_v * sizeof out[0]);
        double *const lse = check->cases[c].lse = malloc(rows * sizeof lse[0]);
        if (out == NULL || lse == NULL)
            return fault_failed(fault, "no memory for %zu rows of the check", rows);
        if (!bench_allocate(device, &small, memory, fault) || !compute_reference(device, memory, out, lse, fault))
            return false;
    }
    return true;
}

void tune_check_close(tune_check *check)
{
    for (int c = 0; c < TUNE_CHECKS; c++) {
        bench_free(&check->cases[c].memory);
        free(check->cases[c].out);
        free(check->cases[c].lse);
    }
    *check = (tune_check){0};
}

/* Runs the planned and opened decode and compares. */
static bool run_case(bench_device *device, bench_decoder *decoder, bench_memory *memory, const double *out,
                     const double *lse, size_t rows, size_t head_dim_v, bool *right, tool_fault *fault)
{
    const size_t count = rows * head_dim_v;
    float *const actual = malloc((count + rows) * sizeof actual[0]);
    tool_session *session = &device->session;
    bool good = actual != NULL || fault_failed(fault, "no memory for %zu results", count + rows);

    good = good && session_buffer(session, "lse", rows * sizeof actual[0], NULL, &decoder->stages[0].lse, fault);
    if (good) {
        decoder->stages[0].buffers.lse = session_operand(decoder->stages[0].lse, 0);
        bench_decoder_rotate(memory, decoder);
        good = bench_decoder_enqueue(decoder, session->queue, fault) &&
               session_read(session, decoder->stages[0].out, count * sizeof actual[0], actual, fault) &&
               session_read(session, decoder->stages[0].lse, rows * sizeof actual[0], actual + count, fault);
        *right = good && tune_check_equal(actual, out, count, CLFD_TYPE_F32) &&
                 tune_check_equal(actual + count, lse, rows, CLFD_TYPE_F32);
    }
    free(actual);
    return good;
}

bool tune_check_row(bench_device *device, const tune_check *check, const char *words, bool *right, tool_fault *fault)
{
    bool good = true;

    *right = true;
    for (int c = 0; c < TUNE_CHECKS && good && *right; c++) {
        bench_memory memory = check->cases[c].memory;
        bench_decoder decoder = {.num_stages = 0};
        if (bench_decoder_plan(device, &memory, words, &decoder, fault) &&
            bench_decoder_open(device, &memory, &decoder, fault)) {
            good = run_case(device, &decoder, &memory, check->cases[c].out, check->cases[c].lse, check->cases[c].rows,
                            check->cases[c].head_dim_v, right, fault);
        } else {
            fault_clear(fault);
            *right = false;
        }
        bench_decoder_close(&decoder);
    }
    return good;
}

/* kernel_variants.c - prints which kernels the library would build, one a line: the file, then its options. They come
 * from the tuning table and from the functions that plans use for tables of problems that cover every type, option
 * and class of dims; so what is compiled offline is what users get.
 *
 *     kernel_variants [sub_groups]     sub_groups: also the rows that need them
 */
#include "plan/append.h"
#include "plan/check.h"
#include "plan/describe.h"
#include <stdio.h>
#include <string.h>

#define F32 CLFD_TYPE_F32
#define F16 CLFD_TYPE_F16
#define BF16 CLFD_TYPE_BF16

static const clfd_attention problems[] = {
    {.num_q_heads = 1, .head_dim = 8, .q_type = F32},
    {.num_q_heads = 8, .head_dim = 64, .q_type = F32, .partial = CLFD_PARTIAL_MLO},
    {.num_q_heads = 32, .num_kv_heads = 8, .head_dim = 128, .q_type = F16},
    {.num_q_heads = 32, .num_kv_heads = 4, .head_dim = 128, .q_type = F16, .q_len = 5, .causal = 1},
    {.num_q_heads = 8, .head_dim = 128, .q_type = BF16, .partial = CLFD_PARTIAL_MLO},
    {.num_q_heads = 3, .num_kv_heads = 1, .head_dim = 80, .q_type = F32, .k_type = BF16, .out_type = F16},
    {.num_q_heads = 7, .num_kv_heads = 1, .head_dim = 192, .head_dim_v = 128, .q_type = F32, .k_type = F16},
    {.num_q_heads = 2, .head_dim = 104, .q_type = F16, .k_alignment = 2, .v_alignment = 2, .out_type = F32},
    {.num_q_heads = 16, .num_kv_heads = 1, .head_dim = 576, .head_dim_v = 512, .v_from_k = 1, .q_type = F16},
};

/* Every option and every type of K and of V, several at a time; those with max_batch have a balanced kernel, too. Of the
 * rows of a family that exchange alike one is enough. */
static const clfd_attention features[] = {
    {.num_q_heads = 32,
     .num_kv_heads = 8,
     .head_dim = 128,
     .q_type = F16,
     .k_type = CLFD_TYPE_INT8,
     .v_type = CLFD_TYPE_INT4,
     .k_quant = {.group = 32, .scale_type = F16, .zeros = 1},
     .v_quant = {.group = 64},
     .causal = 1,
     .window = 64,
     .softcap = 30.0f,
     .alibi = 1,
     .bias_type = F32,
     .mask = CLFD_MASK_BOOL,
     .kv_start = 1,
     .sinks = 1,
     .max_batch = 4,
     .paging = CLFD_PAGING_TABLE,
     .page_size = 16,
     .num_pages = 1},
    {.num_q_heads = 8,
     .head_dim = 64,
     .q_len = 4,
     .q_type = BF16,
     .k_type = CLFD_TYPE_FP8_E4M3,
     .v_type = CLFD_TYPE_FP8_E5M2,
     .k_quant = {.scale_type = F16},
     .bias_type = F16,
     .mask = CLFD_MASK_TREE,
     .query_positions = 1,
     .cache_batch_idx = 1,
     .paging = CLFD_PAGING_CSR,
     .page_size = 5,
     .num_pages = 1},
    {.num_q_heads = 8,
     .head_dim = 128,
     .q_type = F16,
     .k_type = CLFD_TYPE_Q8_0,
     .v_type = CLFD_TYPE_Q4_0,
     .window = 64,
     .alibi = 1,
     .query_positions = 1,
     .shared_kv = 1},
    {.num_q_heads = 8,
     .num_kv_heads = 1,
     .head_dim = 64,
     .q_type = F32,
     .k_type = CLFD_TYPE_INT4,
     .v_type = CLFD_TYPE_INT8,
     .v_quant = {.scale_type = F16, .zeros = 1},
     .max_batch = 4,
     .partial = CLFD_PARTIAL_MLO},
    {.num_q_heads = 4,
     .num_kv_heads = 2,
     .head_dim = 96,
     .q_type = BF16,
     .k_type = CLFD_TYPE_Q4_0,
     .v_type = CLFD_TYPE_Q8_0,
     .k_alignment = 2,
     .v_alignment = 2,
     .max_batch = 4,
     .sinks = 1},
    {.num_q_heads = 16,
     .num_kv_heads = 1,
     .head_dim = 576,
     .head_dim_v = 512,
     .v_from_k = 1,
     .q_type = F16,
     .k_type = CLFD_TYPE_INT8,
     .k_quant = {.group = 64},
     .paging = CLFD_PAGING_TABLE,
     .page_size = 64,
     .num_pages = 1},
    {.num_q_heads = 3,
     .num_kv_heads = 1,
     .head_dim = 80,
     .q_type = F16,
     .k_type = CLFD_TYPE_FP8_E5M2,
     .v_type = CLFD_TYPE_FP8_E4M3,
     .v_quant = {.scale_type = F16}},
    {.num_q_heads = 16, .num_kv_heads = 4, .head_dim = 128, .q_type = F16, .shared_kv = 1, .max_batch = 4},
    {.num_q_heads = 32,
     .num_kv_heads = 8,
     .head_dim = 128,
     .q_type = F16,
     .max_batch = 4,
     .paging = CLFD_PAGING_TABLE,
     .page_size = 16,
     .num_pages = 1},
};

/* Caches, and what is appended to them. */
static const struct {
    clfd_attention cache;
    clfd_append append;
} appends[] = {
    {{.head_dim = 128, .q_type = F16}, {.rope = CLFD_ROPE_NEOX, .rope_q = 1}},
    {{.head_dim = 80, .q_type = F32, .k_type = BF16}, {.rope = CLFD_ROPE_GPTJ, .rotary_dim = 20}},
    {{.head_dim = 128,
      .q_type = BF16,
      .k_type = CLFD_TYPE_INT8,
      .v_type = CLFD_TYPE_INT4,
      .k_quant = {.group = 32, .zeros = 1},
      .v_quant = {.scale_type = F16},
      .paging = CLFD_PAGING_TABLE,
      .page_size = 16,
      .num_pages = 1},
     {.rope = CLFD_ROPE_NONE}},
    {{.head_dim = 64,
      .q_type = F16,
      .k_type = CLFD_TYPE_FP8_E4M3,
      .v_type = CLFD_TYPE_FP8_E5M2,
      .paging = CLFD_PAGING_CSR,
      .page_size = 5,
      .num_pages = 1},
     {.rope = CLFD_ROPE_NEOX}},
    {{.head_dim = 64, .q_type = F16, .k_type = CLFD_TYPE_Q8_0, .v_type = CLFD_TYPE_Q4_0}, {.rope = CLFD_ROPE_GPTJ}},
    {{.head_dim = 576, .head_dim_v = 512, .v_from_k = 1, .q_type = F16},
     {.rope = CLFD_ROPE_GPTJ, .rotary_start = 512, .rope_q = 1}},
};

/* Devices as the tuning table tells them apart: one per type. None prefetches: the built-in is for the compiler of the
 * quirks table alone, and SPIR-V has none. */
static const clfd_caps devices[] = {
    {.type = CL_DEVICE_TYPE_GPU, .max_work_group = 256, .local_mem_bytes = 65536, .float_width = 1},
    {.type = CL_DEVICE_TYPE_CPU, .max_work_group = 4096, .local_mem_bytes = 65536, .float_width = 8, .blocking = true},
};

static void print_row(const clfd_caps *device, const clfd_attention *attention, const clfd_tuning *row,
                      const clfd_schedule *schedule)
{
    char options[1024];

    for (int balanced = 0; balanced <= (schedule->num_groups > 0); balanced++) {
        clfd_decode_options(device, attention, row, schedule, balanced != 0, options, sizeof options);
        printf("%s.cl %s\n", clfd_family_name(row->family), options);
    }
    clfd_merge_options(device, attention->partial, attention->head_dim_v, attention->out_type,
                       schedule->merge_work_group, options, sizeof options);
    printf("merge.cl %s\n", options);
}

/* every_row: of the rows of one family and exchange, all; else the first. */
static clfd_status print_variants(const clfd_caps *device, const clfd_attention *problem, bool every_row)
{
    clfd_attention complete = *problem;
    clfd_tuning rows[CLFD_MAX_CANDIDATES];
    clfd_schedule schedule;
    size_t count = 0;
    clfd_status status;

    complete.struct_size = sizeof complete;
    complete.max_kv_len = 4096;
    status = clfd_complete_attention(&complete, &complete, NULL);
    if (status == CLFD_SUCCESS)
        status = clfd_tuning_candidates(device, &complete, rows, &count, NULL);
    for (size_t i = 0; status == CLFD_SUCCESS && i < count; i++) {
        const bool alike = i > 0 && rows[i].family == rows[i - 1].family && rows[i].exchange == rows[i - 1].exchange;
        if (alike && !every_row)
            continue;
        status = clfd_schedule_make(device, &complete, &rows[i], &schedule, NULL);
        if (status == CLFD_SUCCESS)
            print_row(device, &complete, &rows[i], &schedule);
    }
    return status;
}

static clfd_status print_append(const clfd_caps *device, const clfd_attention *cache, const clfd_append *append)
{
    clfd_attention attention = *cache;
    clfd_append complete = *append;
    char options[1024];

    attention.struct_size = sizeof attention;
    attention.num_q_heads = 2;
    attention.max_kv_len = 4096;
    complete.struct_size = sizeof complete;
    complete.attention = &attention;
    const clfd_status status = clfd_complete_append(&complete, &complete, &attention, NULL);
    if (status != CLFD_SUCCESS)
        return status;
    const clfd_append_pieces pieces = clfd_append_cut(device, &complete);
    clfd_append_options(device, &complete, &pieces, options, sizeof options);
    printf("append.cl %s\n", options);
    return CLFD_SUCCESS;
}

int main(int argc, char **argv)
{
    const bool sub_groups = argc > 1 && strcmp(argv[1], "sub_groups") == 0;
    clfd_status status = CLFD_SUCCESS;

    for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
        clfd_caps device = devices[d];
        device.compute_units = 64;
        device.address_bits = 64;
        device.base_align_bytes = 128;
        device.memory_bytes = (uint64_t)16 << 30;
        device.max_alloc_bytes = (uint64_t)4 << 30;
        device.sub_groups = device.shuffle = sub_groups;
        for (size_t p = 0; status == CLFD_SUCCESS && p < sizeof problems / sizeof problems[0]; p++)
            status = print_variants(&device, &problems[p], true);
        for (size_t f = 0; status == CLFD_SUCCESS && f < sizeof features / sizeof features[0]; f++)
            status = print_variants(&device, &features[f], false);
        for (size_t a = 0; status == CLFD_SUCCESS && a < sizeof appends / sizeof appends[0]; a++)
            status = print_append(&device, &appends[a].cache, &appends[a].append);
    }
    if (status != CLFD_SUCCESS)
        fprintf(stderr, "kernel_variants: %s\n", clfd_status_string(status));
    return status != CLFD_SUCCESS;
}

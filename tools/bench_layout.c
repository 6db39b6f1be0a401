#include "bench.h"

/* What all copies together must read: four times the last-level cache, or four times 64 MiB where the driver tells less
 * than that (NVIDIA's tells the first level; the L2 of an H200 is 60 MB). */
#define MIN_ROTATION_BYTES ((uint64_t)256 << 20)
#define ROTATION_CACHES 4
/* Copies whose visible part is small add up to more; where the memory is the machine's own, to this many times as much at
 * most. */
#define MAX_HOST_ROTATIONS 8
#define COPY_ALIGNMENT 4096u
#define READ_UNIT 16u

/* Bytes of one tensor: for each token that is stored, and for each that a decode must read; and apart from tokens. */
struct tensor_size {
    double token, fixed;
};

static double row_bytes(clfd_type type, uint32_t dim)
{
    const uint32_t elements = clfd_type_elements(type);

    return (double)((dim + elements - 1) / elements) * (double)clfd_type_size(type);
}

/* Scales of a row of K or V, each 4 bytes. */
static struct tensor_size scale_size(const clfd_attention *a, clfd_type type, uint32_t dim, const clfd_quant *quant)
{
    const bool grouped = type == CLFD_TYPE_INT8 || type == CLFD_TYPE_INT4;
    const bool fp8 = type == CLFD_TYPE_FP8_E4M3 || type == CLFD_TYPE_FP8_E5M2;
    const double groups = quant->group > 0 ? (double)(dim / quant->group) : 1;

    return (struct tensor_size){.token = grouped ? sizeof(float) * groups * a->num_kv_heads : 0,
                                .fixed = fp8 ? sizeof(float) : 0};
}

/* Of bias and mask a "token" is one key of one sequence of K and V: with shared K and V all sequences of the batch look
 * at it. */
static void list_sizes(const clfd_attention *a, struct tensor_size sizes[BENCH_TENSORS])
{
    const double queries = (double)a->q_len * (a->shared_kv ? a->max_batch : 1);
    const struct tensor_size none = {0, 0};
    const struct tensor_size k_scale = scale_size(a, a->k_type, a->head_dim, &a->k_quant);
    const struct tensor_size v_scale = a->v_from_k ? none : scale_size(a, a->v_type, a->head_dim_v, &a->v_quant);

    sizes[BENCH_K] = (struct tensor_size){a->num_kv_heads * row_bytes(a->k_type, a->head_dim), 0};
    sizes[BENCH_V] = (struct tensor_size){a->v_from_k ? 0 : a->num_kv_heads * row_bytes(a->v_type, a->head_dim_v), 0};
    sizes[BENCH_K_SCALE] = k_scale;
    sizes[BENCH_V_SCALE] = v_scale;
    sizes[BENCH_K_ZERO] = a->k_quant.zeros ? k_scale : none;
    sizes[BENCH_V_ZERO] = a->v_quant.zeros ? v_scale : none;
    sizes[BENCH_BIAS] = (struct tensor_size){
        a->bias_type == CLFD_TYPE_DEFAULT ? 0 : queries * a->num_q_heads * (double)clfd_type_size(a->bias_type), 0};
    sizes[BENCH_MASK] =
        (struct tensor_size){a->mask == CLFD_MASK_BOOL ? queries : 0,
                             a->mask == CLFD_MASK_TREE ? sizeof(cl_uint) * (double)a->max_batch * a->q_len : 0};
}

/* Tokens that a tensor stores: pages or rows of the cache, but of bias and mask the sequences themselves. */
static double stored_tokens(const clfd_attention *a, int tensor)
{
    const uint32_t sequences = a->shared_kv ? 1 : a->max_batch;
    const bool cache = tensor < BENCH_BIAS;

    if (cache && a->paging != CLFD_PAGING_NONE)
        return (double)a->num_pages * a->page_size;
    return (double)(cache && a->num_cache_rows > 0 ? a->num_cache_rows : sequences) * a->max_kv_len;
}

static double round_up(double bytes)
{
    const double units = bytes / COPY_ALIGNMENT;
    const double whole = (double)(uint64_t)units;

    return (whole < units ? whole + 1 : whole) * COPY_ALIGNMENT;
}

/* Places all tensors behind each other. Sizes are exact in double: below 2^53, as what does not fit is refused. */
static bool place_tensors(const clfd_device_info *info, uint64_t most, bench_memory *memory, tool_fault *fault)
{
    struct tensor_size sizes[BENCH_TENSORS];
    double offset = 0, read = 0;

    for (uint32_t p = 0; p < memory->num_parts; p++) {
        bench_part *part = &memory->parts[p];
        list_sizes(&part->attention, sizes);
        for (int t = 0; t < BENCH_TENSORS; t++) {
            const double bytes = sizes[t].fixed + sizes[t].token * stored_tokens(&part->attention, t);
            if (offset + bytes > (double)most)
                return fault_failed(fault,
                                    "K and V, and what lies beside them, take more than %.4g bytes; %s allocates "
                                    "at most %.4g at once",
                                    offset + bytes, info->name, (double)most);
            part->tensors[t].offset = (size_t)offset;
            part->tensors[t].bytes = (size_t)bytes;
            offset += round_up(bytes);
            read += sizes[t].fixed + sizes[t].token * (double)part->visible;
        }
    }
    memory->copy_bytes = (size_t)offset;
    memory->read_bytes = (size_t)read / READ_UNIT * READ_UNIT;
    return true;
}

static void count_copies(const clfd_device_info *info, uint64_t most, bench_memory *memory)
{
    const uint64_t caches = info->cache_bytes * ROTATION_CACHES;
    const uint64_t wanted = caches > MIN_ROTATION_BYTES ? caches : MIN_ROTATION_BYTES;
    const uint64_t read = memory->read_bytes > 0 ? memory->read_bytes : memory->copy_bytes;
    uint64_t copies = wanted / read + 1;

    if ((info->type & CL_DEVICE_TYPE_CPU) != 0 && copies > MAX_HOST_ROTATIONS * wanted / memory->copy_bytes)
        copies = MAX_HOST_ROTATIONS * wanted / memory->copy_bytes;
    /* Never one copy alone, unless the device cannot hold two: a read would find the end of the last one cached. */
    if (copies < 2)
        copies = 2;
    if (copies > most / memory->copy_bytes)
        copies = most / memory->copy_bytes;
    memory->num_copies = copies > 0 ? (uint32_t)copies : 1;
    memory->cached = memory->num_copies * memory->read_bytes < wanted;
}

bool bench_lay_out(const bench_problem *problem, const clfd_device_info *info, bench_memory *memory, tool_fault *fault)
{
    const uint64_t half = info->memory_bytes / 2, most = info->max_alloc_bytes < half ? info->max_alloc_bytes : half;
    const double rows = (double)problem->batch * problem->q_len * problem->num_q_heads;
    const double q_bytes = rows * problem->head_dim * (double)clfd_type_size(problem->type);
    const double out_bytes = rows * problem->head_dim_v * sizeof(float);

    *memory = (bench_memory){.num_parts = problem->prefix > 0 ? 2 : 1};
    for (uint32_t p = 0; p < memory->num_parts; p++)
        if (!bench_make_tables(problem, p + 1 < memory->num_parts, &memory->parts[p], fault))
            return false;
    if (!place_tensors(info, most, memory, fault))
        return false;
    if (q_bytes > (double)most || out_bytes > (double)most)
        return fault_failed(fault, "q takes %.4g bytes and out %.4g; %s allocates at most %.4g at once", q_bytes,
                            out_bytes, info->name, (double)most);
    memory->q_bytes = (size_t)q_bytes;
    memory->out_bytes = (size_t)out_bytes;
    count_copies(info, most, memory);
    return true;
}

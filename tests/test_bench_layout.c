/* Where a bench problem's tensors lie, what one decode must read of them, and how many copies there are. */
#include "bench.h"
#include "support/suite.h"
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static const clfd_device_info gpu = {
    .type = CL_DEVICE_TYPE_GPU, .name = "a GPU", .memory_bytes = 64 * GIB, .max_alloc_bytes = 16 * GIB};
static const clfd_device_info cpu = {
    .type = CL_DEVICE_TYPE_CPU, .name = "a CPU", .memory_bytes = 64 * GIB, .max_alloc_bytes = 16 * GIB};

static bool lay_out(const char *text, const clfd_device_info *info, bench_memory *memory, tool_fault *fault)
{
    bench_problem problem;

    *fault = (tool_fault){.exit_code = EXIT_CODE_OK};
    ck_assert_msg(problem_parse(text, &problem, fault), "%s", fault->sentence);
    return bench_lay_out(&problem, info, memory, fault);
}

static bench_memory laid_out(const char *text, const clfd_device_info *info)
{
    bench_memory memory;
    tool_fault fault;

    ck_assert_msg(lay_out(text, info, &memory, &fault), "%s", fault.sentence);
    return memory;
}

/* Codes, scales, bias and mask of visible tokens; the bytes of a KV head's row, times what there is of them. */
START_TEST(read_bytes_are_what_one_decode_must_read)
{
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        {"b2 hq8 hkv4 d64 kv100 f16", 200 * 4 * (128 + 128)},
        {"b2 hq8 hkv4 d64 dv32 kv100 f32", 200 * 4 * (256 + 128)},
        {"b2 hq8 hkv4 d64 dv32 kv100 f32 v_from_k", 200 * 4 * 256},
        {"b2 hq8 hkv4 d64 kv100 f16 kvtype=q8_0", 200 * 4 * 2 * 68},
        {"b2 hq8 hkv4 d64 kv100 f16 ktype=q8_0 vtype=q4_0", 200 * 4 * (68 + 36)},
        {"b2 hq8 hkv4 d64 kv100 f16 kvtype=int8", 200 * 4 * 2 * (64 + 4)},
        {"b2 hq8 hkv4 d64 kv100 f16 kvtype=int8 kvgroup=16", 200 * 4 * 2 * (64 + 4 * 4)},
        {"b2 hq8 hkv4 d64 kv100 f16 kvtype=int4 kvgroup=32 kvzeros", 200 * 4 * 2 * (32 + 2 * 2 * 4)},
        {"b2 hq8 hkv4 d64 kv100 f16 kvtype=int4 v_from_k", 200 * 4 * (32 + 4)},
        {"b2 hq8 hkv4 d64 kv100 f16 kvtype=fp8", 200 * 4 * 2 * 64}, /* and 8 bytes of scales, below the unit of 16 */
        {"b2 hq8 hkv4 d64 kv100 f16 window=10 causal", 2 * 10 * 4 * 2 * 128},
        {"b2 hq8 hkv4 d64 kv100 f16 shared_kv", 100 * 4 * 2 * 128},
        {"b2 hq8 hkv4 d64 kv100 f16 page=16", 200 * 4 * 2 * 128},
        {"b2 hq8 hkv4 d64 kv100 f16 cache_rows=9", 200 * 4 * 2 * 128},
        {"b2 q2 hq8 hkv4 d64 kv100 f16 bias", 200 * (4 * 2 * 128 + 2 * 8 * 4)},
        {"b2 q2 hq8 hkv4 d64 kv100 f16 bias=f16 mask", 200 * (4 * 2 * 128 + 2 * 8 * 2 + 2)},
        {"b4 hq8 hkv4 d64 kv100 f16 shared_kv bias", 100 * (4 * 2 * 128 + 4 * 8 * 4)},
        {"b2 q2 hq8 hkv4 d64 kv100 f16 tree", 200 * 4 * 2 * 128 + 16},
        {"b2 hq8 hkv4 d64 kv100 f16 prefix=1000", (1000 + 200) * 4 * 2 * 128},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench_memory memory = laid_out(cases[i].text, &gpu);
        ck_assert_msg(memory.read_bytes == cases[i].bytes, "%s: %zu instead of %zu", cases[i].text, memory.read_bytes,
                      cases[i].bytes);
        ck_assert_uint_le(memory.read_bytes, memory.copy_bytes);
        bench_free(&memory);
    }
}
END_TEST

/* Tensors follow each other, aligned; pages hold their pool, rows of a cache all of them. */
START_TEST(tensors_lie_behind_each_other)
{
    static const struct {
        const char *text;
        size_t k_bytes;
    } cases[] = {
        {"b2 hq8 hkv4 d64 kv100 f16 kvtype=int8 kvzeros bias mask", 200 * 4 * 64},
        {"b2 hq8 hkv4 d64 kv100 f16 cache_rows=9", 900 * 4 * 128},
        {"b2 hq8 hkv4 d64 kv100 f16 page=16", 15 * 16 * 4 * 128}, /* 7 pages for each and one to spare */
        {"b2 hq8 hkv4 d64 kv100 f16 shared_kv", 100 * 4 * 128},
        {"b2 hq8 hkv4 d64 kv100 f16 prefix=50 ragged=1..9", 50 * 4 * 128},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench_memory memory = laid_out(cases[i].text, &gpu);
        size_t end = 0;
        ck_assert_uint_eq(memory.parts[0].tensors[BENCH_K].bytes, cases[i].k_bytes);
        for (uint32_t p = 0; p < memory.num_parts; p++)
            for (int t = 0; t < BENCH_TENSORS; t++) {
                ck_assert_uint_ge(memory.parts[p].tensors[t].offset, end);
                ck_assert_uint_eq(memory.parts[p].tensors[t].offset % 4096, 0);
                end = memory.parts[p].tensors[t].offset + memory.parts[p].tensors[t].bytes;
            }
        ck_assert_uint_ge(memory.copy_bytes, end);
        bench_free(&memory);
    }
}
END_TEST

START_TEST(copies_read_more_than_the_caches_hold)
{
    bench_memory small = laid_out("b2 hq8 hkv4 d64 kv1024 f16", &cpu),
                 large = laid_out("b64 hq8 hkv8 d128 kv8192 f16", &gpu);
    bench_memory window = laid_out("b1 hq8 hkv8 d128 kv131072 f16 window=4096 causal", &gpu);
    bench_memory on_cpu = laid_out("b1 hq8 hkv8 d128 kv131072 f16 window=4096 causal", &cpu);
    clfd_device_info cached = gpu;
    cached.cache_bytes = 128 * MIB;
    bench_memory big_cache = laid_out("b2 hq8 hkv4 d64 kv1024 f16", &cached);

    ck_assert_uint_ge(small.num_copies * small.read_bytes, 256 * MIB);
    ck_assert(!small.cached);
    ck_assert_uint_eq(large.num_copies, 2);
    /* 16 MiB of 512 are read; a GPU's memory is there for it, the machine's own is not. */
    ck_assert_uint_eq(window.num_copies, 17);
    ck_assert(!window.cached);
    ck_assert_uint_eq(on_cpu.num_copies, 4);
    ck_assert(on_cpu.cached);
    ck_assert_uint_ge(big_cache.num_copies * big_cache.read_bytes, 512 * MIB);
    bench_free(&small);
    bench_free(&large);
    bench_free(&window);
    bench_free(&on_cpu);
    bench_free(&big_cache);
}
END_TEST

START_TEST(what_does_not_fit_on_the_device_is_refused)
{
    static const char *const texts[] = {
        "b2147483647 hq1 d576 kv2147483647 shared_kv bias",
        "b1 hq1 hkv2147483647 d2147483647 kv2147483647",
        "b1 q2147483647 hq2147483647 hkv1 d8 kv8",
        "b64 hq8 hkv8 d128 kv131072",
    };
    bench_memory memory;
    tool_fault fault;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_msg(!lay_out(texts[i], &gpu, &memory, &fault), "accepted: %s", texts[i]);
        ck_assert_int_eq(fault.exit_code, EXIT_CODE_FAILED);
        ck_assert_ptr_nonnull(strstr(fault.sentence, "a GPU allocates at most"));
        bench_free(&memory);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        read_bytes_are_what_one_decode_must_read,
        tensors_lie_behind_each_other,
        copies_read_more_than_the_caches_hold,
        what_does_not_fit_on_the_device_is_refused,
    };
    return run_suite("bench_layout", tests, sizeof tests / sizeof tests[0]);
}

/* What clfd bench fills memory with: finite numbers of a sensible size in every type, others in every copy. */
#include "bench.h"
#include "support/suite.h"
#include <clfd/cache.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 64, KV_HEADS = 2, TOKENS = 64 };

static bench_device device;

/* The rows of one tensor as floats, malloc'ed. Without scales of its own a type has none; with them their first row serves
 * all, which is a matter of size alone. */
static float *read_rows(const bench_memory *memory, const char *copies, uint32_t copy, bool v)
{
    const bench_part *const part = &memory->parts[0];
    const clfd_type type = v ? part->attention.v_type : part->attention.k_type;
    const char *const base = copies + copy * memory->copy_bytes;
    const size_t rows = TOKENS * KV_HEADS, row_bytes = DIM / clfd_type_elements(type) * clfd_type_size(type);
    float *const values = malloc(rows * DIM * sizeof values[0]);

    ck_assert_ptr_nonnull(values);
    for (size_t row = 0; row < rows; row++) {
        const char *const codes = base + part->tensors[v ? BENCH_V : BENCH_K].offset + row * row_bytes;
        const void *const scales = base + part->tensors[v ? BENCH_V_SCALE : BENCH_K_SCALE].offset;
        const void *const zeros = base + part->tensors[v ? BENCH_V_ZERO : BENCH_K_ZERO].offset;
        const bool zeroed = part->tensors[v ? BENCH_V_ZERO : BENCH_K_ZERO].bytes > 0;
        ck_assert_int_eq(type <= CLFD_TYPE_BF16 ? clfd_convert_to_float(type, codes, values + row * DIM, DIM)
                                                : clfd_dequantise_row(type, DIM, 0, codes, scales,
                                                                      zeroed ? zeros : NULL, values + row * DIM),
                         CLFD_SUCCESS);
    }
    return values;
}

START_TEST(every_type_is_filled_with_numbers_of_a_sensible_size)
{
    static const char *const types[] = {"f32",          "f16", "bf16", "int8", "int8 kvzeros", "int4",
                                        "int4 kvzeros", "fp8", "e5m2", "q8_0", "q4_0"};
    char text[128];
    bench_problem problem;
    tool_fault fault = {.exit_code = EXIT_CODE_OK};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        bench_memory memory;
        snprintf(text, sizeof text, "hq2 d64 kv64 f16 kvtype=%s", types[i]);
        ck_assert_msg(problem_parse(text, &problem, &fault), "%s", fault.sentence);
        ck_assert(bench_lay_out(&problem, &device.session.device, &memory, &fault));
        memory.num_copies = 2;
        ck_assert_msg(bench_allocate(&device, &problem, &memory, &fault), "%s", fault.sentence);
        char *const copies = malloc(2 * memory.copy_bytes);
        ck_assert_ptr_nonnull(copies);
        ck_assert(session_read(&device.session, memory.copies, 2 * memory.copy_bytes, copies, &fault));
        float *const k = read_rows(&memory, copies, 0, false), *const v = read_rows(&memory, copies, 0, true);
        float *const other = read_rows(&memory, copies, 1, false);
        const size_t count = (size_t)TOKENS * KV_HEADS * DIM;
        double squares = 0, equal_to_v = 0, equal_to_other = 0;
        for (size_t e = 0; e < count; e++) {
            EXPECT(isfinite(k[e]) && isfinite(v[e]) && fabsf(k[e]) < 3.0f, "%s: element %zu is %g", types[i], e, k[e]);
            squares += (double)k[e] * k[e];
            equal_to_v += k[e] == v[e];
            equal_to_other += k[e] == other[e];
        }
        ck_assert_msg(sqrt(squares / (double)count) > 0.2, "%s: rms %g", types[i], sqrt(squares / (double)count));
        /* Of 4 or more bits no more than every eighth is equal by chance. */
        ck_assert_double_lt(equal_to_v / (double)count, 0.2);
        ck_assert_double_lt(equal_to_other / (double)count, 0.2);
        free(k);
        free(v);
        free(other);
        free(copies);
        bench_free(&memory);
    }
}
END_TEST

START_TEST(copies_take_turns)
{
    bench_memory memory = {.num_copies = 3, .copy_bytes = 100};

    for (int round = 0; round < 2; round++)
        for (size_t copy = 0; copy < 3; copy++)
            ck_assert_uint_eq(bench_next_copy(&memory), 100 * copy);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_type_is_filled_with_numbers_of_a_sensible_size,
        copies_take_turns,
    };
    tool_fault fault = {.exit_code = EXIT_CODE_OK};
    int result = 1;

    if (bench_open(&device, getenv("CLFD_DEVICE") != NULL ? NULL : "platform=Portable,type=cpu", &fault))
        result = run_suite("bench_memory", tests, sizeof tests / sizeof tests[0]);
    else
        fprintf(stderr, "%s\n", fault.sentence);
    bench_close(&device);
    return result;
}

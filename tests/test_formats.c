/* How K and V become floats (cl/formats.cl): every code of every type, at every position of eight and, in GGML's blocks,
 * at every position of a block of either parity, through load and unpack and through both at once, is the value that a
 * table of the host's own says; and so in aligned and in unaligned rows, of which the last ends with its buffer. */
#include "device/caps.h"
#include "program/program.h"
#include "support/session.h"
#include "support/suite.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- The host's own table ---------------------------------------------------------------------------------------- */

/* A floating-point code by its definition. Without infinities only the code of all ones is none: NaN. */
static float float_of_code(uint32_t code, int exponent_bits, int mantissa_bits, bool infinities)
{
    const uint32_t mantissa = code & ((1u << mantissa_bits) - 1), greatest = (1u << exponent_bits) - 1;
    const uint32_t exponent = code >> mantissa_bits & greatest;
    const int scale = (exponent > 0 ? (int)exponent : 1) - ((1 << (exponent_bits - 1)) - 1) - mantissa_bits;
    float magnitude = ldexpf((float)(mantissa + (exponent > 0 ? 1u << mantissa_bits : 0)), scale);

    if (exponent == greatest && infinities)
        magnitude = mantissa == 0 ? INFINITY : NAN;
    else if (exponent == greatest && mantissa + 1 == 1u << mantissa_bits)
        magnitude = NAN;
    return code >> (exponent_bits + mantissa_bits) & 1 ? -magnitude : magnitude;
}

static float f32_value(uint32_t code)
{
    float value;
    memcpy(&value, &code, sizeof value);
    return value;
}

static float f16_value(uint32_t code) { return float_of_code(code, 5, 10, true); }
static float bf16_value(uint32_t code) { return float_of_code(code, 8, 7, true); }
static float e4m3_value(uint32_t code) { return float_of_code(code, 4, 3, false); }
static float e5m2_value(uint32_t code) { return float_of_code(code, 5, 2, true); }
static float int8_value(uint32_t code) { return code < 128 ? (float)code : (float)code - 256.0f; }
static float int4_value(uint32_t code) { return code < 8 ? (float)code : (float)code - 16.0f; }
static float q4_0_value(uint32_t code) { return (float)code - 8.0f; }

/* Codes in the order in which a row holds them. Nibbles come in all pairs. */
static uint32_t itself(uint32_t n) { return n; }
static uint32_t scattered(uint32_t n) { return n * 2654435761u; }
static uint32_t nibble(uint32_t n) { return n % 2 == 0 ? n / 2 % 16 : n / 32; }

static void put_byte(unsigned char *row, uint32_t index, uint32_t code) { row[index] = (unsigned char)code; }

static void put_bytes2(unsigned char *row, uint32_t index, uint32_t code)
{
    put_byte(row, 2 * index, code & 255);
    put_byte(row, 2 * index + 1, code >> 8);
}

static void put_bytes4(unsigned char *row, uint32_t index, uint32_t code)
{
    put_bytes2(row, 2 * index, code & 65535);
    put_bytes2(row, 2 * index + 1, code >> 16);
}

static void put_nibble(unsigned char *byte, bool high, uint32_t code)
{
    *byte = (unsigned char)(high ? (*byte & 0x0f) | code << 4 : (*byte & 0xf0) | code);
}

static void put_int4(unsigned char *row, uint32_t index, uint32_t code)
{
    put_nibble(&row[index / 2], index % 2 == 1, code);
}

/* The scale of a GGML block: positive, and of another exponent and mantissa than its neighbours'. */
static uint32_t scale_of_block(uint32_t block) { return 0x0001u + block * 2777u % 0x7bffu; }

static void put_q8_0(unsigned char *row, uint32_t index, uint32_t code)
{
    unsigned char *const block = row + index / 32 * 34;
    put_bytes2(block, 0, scale_of_block(index / 32));
    block[2 + index % 32] = (unsigned char)code;
}

static void put_q4_0(unsigned char *row, uint32_t index, uint32_t code)
{
    unsigned char *const block = row + index / 32 * 18;
    put_bytes2(block, 0, scale_of_block(index / 32));
    put_nibble(&block[2 + index % 16], index % 32 >= 16, code);
}

typedef struct format {
    const char *name;
    clfd_type type;
    uint32_t num_codes;  /* in a row's order; a row of all has as many elements */
    uint32_t num_rows;   /* row s starts with code s */
    uint32_t short_dim;  /* a row as short as it may be, of an odd number of chunks or blocks */
    uint32_t aligned[3]; /* bytes that KV_ALIGNED 0, 1, 2 promise */
    uint32_t (*code)(uint32_t n);
    float (*value)(uint32_t code);
    void (*put)(unsigned char *row, uint32_t index, uint32_t code);
} format;

static const format formats[] = {
    {"f32", CLFD_TYPE_F32, 8192, 8, 8, {4, 16, 16}, scattered, f32_value, put_bytes4},
    {"f16", CLFD_TYPE_F16, 65536, 8, 8, {2, 16, 16}, itself, f16_value, put_bytes2},
    {"bf16", CLFD_TYPE_BF16, 65536, 8, 8, {2, 16, 16}, itself, bf16_value, put_bytes2},
    {"int8", CLFD_TYPE_INT8, 256, 8, 8, {1, 4, 8}, itself, int8_value, put_byte},
    {"int4", CLFD_TYPE_INT4, 512, 8, 8, {1, 4, 4}, nibble, int4_value, put_int4},
    {"e4m3", CLFD_TYPE_FP8_E4M3, 256, 8, 8, {1, 4, 8}, itself, e4m3_value, put_byte},
    {"e5m2", CLFD_TYPE_FP8_E5M2, 256, 8, 8, {1, 4, 8}, itself, e5m2_value, put_byte},
    {"q8_0", CLFD_TYPE_Q8_0, 256, 64, 96, {2, 4, 4}, itself, int8_value, put_q8_0},
    {"q4_0", CLFD_TYPE_Q4_0, 512, 64, 96, {2, 4, 4}, nibble, q4_0_value, put_q4_0},
};
#define NUM_FORMATS (sizeof formats / sizeof formats[0])

static uint32_t code_at(const format *f, uint32_t row, uint32_t index) { return f->code((row + index) % f->num_codes); }

static size_t row_bytes(const format *f, uint32_t dim)
{
    return dim / clfd_type_elements(f->type) * clfd_type_size(f->type);
}

/* ---- The kernel -------------------------------------------------------------------------------------------------- */

/* A work-item takes one chunk of eight of one row, and the next one with it where it is the first of two; facts are its
 * scale and the format's unit. */
static const char probe_source[] =
    "#define PROBE(name, type)                                                                                 \\\n"
    "    __kernel void probe_##name(const __global uchar *rows, ulong first, ulong stride, int chunks,         \\\n"
    "                               __global float *apart, __global float *at_once, __global float *sixteens, \\\n"
    "                               __global float2 *facts)                                                    \\\n"
    "    {                                                                                                     \\\n"
    "        const int id = (int)get_global_id(0), index = id % chunks * 8;                                    \\\n"
    "        const __global uchar *const row = rows + (first + id / chunks * stride);                          \\\n"
    "        const name##_raw8 raw = name##_load8(row, index);                                                 \\\n"
    "        facts[id] = (float2)(name##_scale(row, index), FORMAT_UNIT_##type);                               \\\n"
    "        vstore8(name##_unpack8(raw), id, apart);                                                          \\\n"
    "        vstore8(name##_floats8(row, index), id, at_once);                                                 \\\n"
    "        if (index % 16 == 0 && index + 16 <= chunks * 8)                                                  \\\n"
    "            vstore16(name##_floats16(row, index), 0, sixteens + id * 8);                                  \\\n"
    "    }\n"
    "PROBE(f32, 1) PROBE(f16, 2) PROBE(bf16, 3) PROBE(int8, 4) PROBE(int4, 5) PROBE(e4m3, 6) PROBE(e5m2, 7)\n"
    "PROBE(q8_0, 8) PROBE(q4_0, 9)\n"
    "__kernel void probe_names(const __global uchar *row, __global float *facts)\n"
    "{\n"
    "    facts[0] = K_ROW_BYTES(96), facts[1] = K_FORMAT(unpack8)(K_FORMAT(load8)(row, 0)).s0 * K_UNIT;\n"
    "    facts[2] = V_ROW_BYTES(96), facts[3] = V_FORMAT(floats8)(row, 0).s0 * V_UNIT;\n"
    "}\n";

static cl_program build(const char *options)
{
    test_session *const s = test_session_get();
    clfd_logger logger = test_logger(&s->heard);
    cl_program program = NULL;
    char *formats_text, *text;
    size_t bytes;

    ck_assert_int_eq(clfd_source_load("formats.cl", NULL, &formats_text, &logger), CLFD_SUCCESS);
    bytes = strlen(formats_text) + sizeof probe_source;
    text = malloc(bytes);
    ck_assert_ptr_nonnull(text);
    snprintf(text, bytes, "%s%s", formats_text, probe_source);
    ck_assert_msg(clfd_program_build(s->cl, s->device, "formats", text, options, CLFD_LOG_ERROR, &program, &logger) ==
                      CLFD_SUCCESS,
                  "%s", s->heard.last[CLFD_LOG_ERROR]);
    free(text);
    free(formats_text);
    return program;
}

/* Rows of one format in a buffer that ends with the last of them. */
typedef struct probe {
    const format *format;
    const char *options;
    cl_program program;
    uint32_t dim;
    size_t first, stride, bytes; /* of the first row, from row to row, of the buffer */
    float *apart, *at_once, *sixteens, *facts;
} probe;

static unsigned char *make_rows(const probe *p)
{
    unsigned char *const rows = malloc(p->bytes);

    ck_assert_ptr_nonnull(rows);
    memset(rows, 0xa5, p->bytes);
    for (uint32_t s = 0; s < p->format->num_rows; s++)
        for (uint32_t i = 0; i < p->dim; i++)
            p->format->put(rows + p->first + s * p->stride, i, code_at(p->format, s, i));
    return rows;
}

static float *read_floats(cl_mem buffer, size_t count)
{
    float *const floats = malloc(count * sizeof *floats);

    ck_assert_ptr_nonnull(floats);
    test_buffer_read(buffer, 0, floats, count * sizeof *floats);
    clReleaseMemObject(buffer);
    return floats;
}

static void run_probe(probe *p)
{
    const size_t elements = (size_t)p->format->num_rows * p->dim, chunks = elements / 8;
    unsigned char *const rows = make_rows(p);
    cl_mem in = test_buffer_create_from(CL_MEM_READ_ONLY, rows, p->bytes);
    cl_mem apart = test_buffer_create(CL_MEM_WRITE_ONLY, elements * sizeof(float), 0xee);
    cl_mem at_once = test_buffer_create(CL_MEM_WRITE_ONLY, elements * sizeof(float), 0xee);
    cl_mem sixteens = test_buffer_create(CL_MEM_WRITE_ONLY, elements * sizeof(float), 0xee);
    cl_mem facts = test_buffer_create(CL_MEM_WRITE_ONLY, chunks * 2 * sizeof(float), 0xee);
    const cl_ulong first = p->first, stride = p->stride;
    const cl_int row_chunks = (cl_int)(p->dim / 8);
    const struct {
        size_t bytes;
        const void *value;
    } arguments[] = {{sizeof in, &in},
                     {sizeof first, &first},
                     {sizeof stride, &stride},
                     {sizeof row_chunks, &row_chunks},
                     {sizeof apart, &apart},
                     {sizeof at_once, &at_once},
                     {sizeof sixteens, &sixteens},
                     {sizeof facts, &facts}};
    char name[32];
    cl_int error;

    snprintf(name, sizeof name, "probe_%s", p->format->name);
    cl_kernel kernel = clCreateKernel(p->program, name, &error);
    ck_assert_int_eq(error, CL_SUCCESS);
    for (cl_uint i = 0; i < sizeof arguments / sizeof arguments[0]; i++)
        ck_assert_int_eq(clSetKernelArg(kernel, i, arguments[i].bytes, arguments[i].value), CL_SUCCESS);
    error = clEnqueueNDRangeKernel(test_session_get()->queue, kernel, 1, NULL, &chunks, NULL, 0, NULL, NULL);
    ck_assert_int_eq(error, CL_SUCCESS);
    p->apart = read_floats(apart, elements);
    p->at_once = read_floats(at_once, elements);
    p->sixteens = read_floats(sixteens, elements);
    p->facts = read_floats(facts, 2 * chunks);
    clReleaseKernel(kernel);
    clReleaseMemObject(in);
    free(rows);
}

/* Equal bits, or both NaN: not even a zero changes its sign. */
static bool is_same(float actual, float expected)
{
    return isnan(expected) ? isnan(actual) : memcmp(&actual, &expected, sizeof actual) == 0;
}

static void expect_values(const probe *p)
{
    const format *const f = p->format;

    for (size_t x = 0; x < (size_t)f->num_rows * p->dim; x++) {
        const uint32_t row = (uint32_t)(x / p->dim), index = (uint32_t)(x % p->dim);
        const uint32_t code = code_at(f, row, index), block = index / clfd_type_elements(f->type);
        const float value = f->value(code), *const facts = p->facts + x / 8 * 2;
        const float scale = clfd_type_elements(f->type) == 32 ? f16_value(scale_of_block(block)) : 1.0f;
        const bool in_sixteen = index / 16 * 16 + 16 <= p->dim;
        EXPECT(is_same(p->apart[x] * facts[1], value) && is_same(p->at_once[x] * facts[1], value),
               "%s code %02x at %u of row %u, %a, loaded and unpacked is %a, both at once %a, times %g, with %s",
               f->name, code, index, row, value, p->apart[x], p->at_once[x], facts[1], p->options);
        EXPECT(!in_sixteen || is_same(p->sixteens[x] * facts[1], value),
               "%s code %02x at %u of row %u, %a, is %a among sixteen, times %g, with %s", f->name, code, index, row,
               value, p->sixteens[x], facts[1], p->options);
        EXPECT(facts[0] == scale, "the scale of %s at %u is %a instead of %a with %s", f->name, index, facts[0], scale,
               p->options);
    }
}

/* All rows of a format, long and short ones, where KV_ALIGNED promises what `aligned` says. */
static void expect_format(const format *f, cl_program program, const char *options, uint32_t aligned)
{
    const uint32_t boundary = f->aligned[aligned];
    const uint32_t dims[] = {f->num_codes, f->short_dim};

    for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++) {
        probe p = {.format = f, .options = options, .program = program, .dim = dims[d]};
        const size_t bytes = row_bytes(f, p.dim);
        p.first = boundary;
        p.stride = (bytes / boundary + 1) * boundary;
        p.bytes = p.first + (f->num_rows - 1) * p.stride + bytes;
        run_probe(&p);
        expect_values(&p);
        free(p.apart);
        free(p.at_once);
        free(p.sixteens);
        free(p.facts);
    }
}

/* What of NVIDIA's PTX the device takes: nothing, all but fp8, all. */
enum { NO_PTX, PTX, PTX_FP8 };

static int ptx_level(void)
{
    const cl_device_id device = test_session_get()->device;
    cl_uint major = 0, minor = 0;
    clfd_caps caps;

    ck_assert_int_eq(clfd_caps_read(device, NULL, &caps, NULL), CLFD_SUCCESS);
    if (!caps.ptx)
        return NO_PTX;
    ck_assert_int_eq(clGetDeviceInfo(device, 0x4000, sizeof major, &major, NULL), CL_SUCCESS);
    ck_assert_int_eq(clGetDeviceInfo(device, 0x4001, sizeof minor, &minor, NULL), CL_SUCCESS);
    return 10 * major + minor >= 89 ? PTX_FP8 : 10 * major + minor >= 80 ? PTX : NO_PTX;
}

static void expect_all_formats(uint32_t aligned)
{
    const int greatest = ptx_level();
    char options[96];

    for (int level = NO_PTX; level <= greatest; level++) {
        snprintf(options, sizeof options, "-DKV_ALIGNED=%u -DCLFD_PTX=%d -DCLFD_PTX_FP8=%d", aligned, level >= PTX,
                 level >= PTX_FP8);
        cl_program program = build(options);
        for (size_t f = 0; f < NUM_FORMATS; f++)
            expect_format(&formats[f], program, options, aligned);
        clReleaseProgram(program);
    }
}

START_TEST(every_code_of_unaligned_rows_is_exact) { expect_all_formats(0); }
END_TEST
START_TEST(every_code_of_aligned_rows_is_exact) { expect_all_formats(1); }
END_TEST
START_TEST(every_code_of_rows_aligned_to_eight_bytes_is_exact) { expect_all_formats(2); }
END_TEST

/* ---- Names of the types of K and of V ---------------------------------------------------------------------------- */

/* What probe_names should say of a row of 96 elements whose bytes are all 0x48. */
static void expect_names(const format *f, const float facts[2])
{
    const uint32_t bits = (uint32_t)clfd_type_size(f->type) * 8 / clfd_type_elements(f->type); /* scales hardly count */
    const float value = f->value(0x48484848 & (0xffffffff >> (32 - bits)));

    EXPECT(facts[0] == (float)row_bytes(f, 96) && facts[1] == value,
           "a row of 96 elements of %s has %g bytes and begins with %g instead of %g", f->name, facts[0], facts[1],
           value);
}

START_TEST(k_and_v_have_formats_of_their_own)
{
    const size_t one = 1;

    for (size_t k = 0; k < NUM_FORMATS; k++) {
        const format *const k_format = &formats[k], *const v_format = &formats[(k + 5) % NUM_FORMATS];
        cl_mem row = test_buffer_create(CL_MEM_READ_ONLY, 384, 0x48);
        cl_mem facts = test_buffer_create(CL_MEM_WRITE_ONLY, 4 * sizeof(float), 0xee);
        char options[64];
        float *read;
        cl_int error;

        snprintf(options, sizeof options, "-DK_TYPE=%d -DV_TYPE=%d", k_format->type, v_format->type);
        cl_program program = build(options);
        cl_kernel kernel = clCreateKernel(program, "probe_names", &error);
        ck_assert_int_eq(error, CL_SUCCESS);
        ck_assert_int_eq(clSetKernelArg(kernel, 0, sizeof row, &row), CL_SUCCESS);
        ck_assert_int_eq(clSetKernelArg(kernel, 1, sizeof facts, &facts), CL_SUCCESS);
        error = clEnqueueNDRangeKernel(test_session_get()->queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
        ck_assert_int_eq(error, CL_SUCCESS);
        read = read_floats(facts, 4);
        expect_names(k_format, read);
        expect_names(v_format, read + 2);
        free(read);
        clReleaseMemObject(row);
        clReleaseKernel(kernel);
        clReleaseProgram(program);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_code_of_unaligned_rows_is_exact,
        every_code_of_aligned_rows_is_exact,
        every_code_of_rows_aligned_to_eight_bytes_is_exact,
        k_and_v_have_formats_of_their_own,
    };
    const int result = run_suite("formats", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

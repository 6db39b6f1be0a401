#include "plan/check.h"
#include "plan/tuning.h"
#include "plan/words.h"
#include "support/log.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define LANES CLFD_FAMILY_LANES
#define VECTOR CLFD_FAMILY_VECTOR

#define GPU .type = CL_DEVICE_TYPE_GPU, .compute_units = 16, .float_width = 1
#define CPU .type = CL_DEVICE_TYPE_CPU, .compute_units = 2, .max_work_group = 4096, .local_mem_bytes = 2 << 20

/* Devices that a test makes up, and the row that each should try first for f16, head_dim 128 and ratio 4. */
static const struct device {
    const char *name;
    clfd_caps caps;
    clfd_family family;
    clfd_exchange exchange;
} devices[] = {
    {"PTX", {GPU, .max_work_group = 1024, .local_mem_bytes = 48 << 10, .ptx = true}, LANES, CLFD_EXCHANGE_PTX},
    {"sub-groups",
     {GPU, .max_work_group = 1024, .local_mem_bytes = 64 << 10, .sub_groups = true, .shuffle = true},
     LANES,
     CLFD_EXCHANGE_SUB_GROUP},
    {"sub-groups without shuffle",
     {GPU, .max_work_group = 1024, .local_mem_bytes = 64 << 10, .sub_groups = true},
     LANES,
     CLFD_EXCHANGE_LOCAL},
    {"plain", {GPU, .max_work_group = 256, .local_mem_bytes = 32 << 10}, LANES, CLFD_EXCHANGE_LOCAL},
    {"16 KiB", {GPU, .max_work_group = 256, .local_mem_bytes = 16 << 10}, LANES, CLFD_EXCHANGE_LOCAL},
    {"limit 64", {GPU, .max_work_group = 64, .local_mem_bytes = 32 << 10}, LANES, CLFD_EXCHANGE_LOCAL},
    {"limit 32", {GPU, .max_work_group = 32, .local_mem_bytes = 32 << 10}, LANES, CLFD_EXCHANGE_LOCAL},
    {"limit 32 with PTX",
     {GPU, .max_work_group = 32, .local_mem_bytes = 48 << 10, .ptx = true},
     LANES,
     CLFD_EXCHANGE_LOCAL},
    {"limit 1", {GPU, .max_work_group = 1, .local_mem_bytes = 32 << 10}, VECTOR, CLFD_EXCHANGE_LOCAL},
    {"no local memory", {GPU, .max_work_group = 256}, VECTOR, CLFD_EXCHANGE_LOCAL},
    {"CPU", {CPU, .float_width = 8, .prefetch = true, .blocking = true}, VECTOR, CLFD_EXCHANGE_LOCAL},
    {"CPU of width 16", {CPU, .float_width = 16, .prefetch = true, .blocking = true}, VECTOR, CLFD_EXCHANGE_LOCAL},
    {"CPU without prefetch", {CPU, .float_width = 16, .blocking = true}, VECTOR, CLFD_EXCHANGE_LOCAL},
    {"CPU without blocking", {CPU, .float_width = 16, .prefetch = true}, VECTOR, CLFD_EXCHANGE_LOCAL},
    {"accelerator",
     {.type = CL_DEVICE_TYPE_ACCELERATOR, .max_work_group = 1, .float_width = 1},
     VECTOR,
     CLFD_EXCHANGE_LOCAL},
};

static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    memset(&heard, 0, sizeof heard);
    logger = test_logger(&heard);
}

static const clfd_caps *find_device(const char *name)
{
    for (size_t i = 0; i < COUNT(devices); i++)
        if (strcmp(devices[i].name, name) == 0)
            return &devices[i].caps;
    ck_abort_msg("no device %s", name);
    return NULL;
}

static clfd_attention attention(uint32_t head_dim, uint32_t ratio, const char *tuning)
{
    const clfd_attention given = {
        .struct_size = sizeof given,
        .num_q_heads = 2 * ratio,
        .num_kv_heads = 2,
        .head_dim = head_dim,
        .q_type = CLFD_TYPE_F16,
        .max_kv_len = 4096,
        .tuning = tuning,
    };
    clfd_attention complete;

    ck_assert_int_eq(clfd_complete_attention(&given, &complete, NULL), CLFD_SUCCESS);
    return complete;
}

static size_t find_rows(const clfd_caps *caps, const clfd_attention *a, clfd_tuning rows[CLFD_MAX_CANDIDATES])
{
    size_t count = 0;

    ck_assert_msg(clfd_tuning_candidates(caps, a, rows, &count, &logger) == CLFD_SUCCESS, "%s",
                  heard.last[CLFD_LOG_ERROR]);
    ck_assert_uint_ge(count, 1);
    ck_assert_uint_le(count, CLFD_MAX_CANDIDATES);
    return count;
}

static const char *print(const clfd_tuning *row)
{
    static char text[256];

    ck_assert_int_lt(clfd_tuning_print(row, text, sizeof text), (int)sizeof text);
    return text;
}

/* ---- Candidates -------------------------------------------------------------------------------------------------- */

START_TEST(each_device_tries_its_best_exchange_first)
{
    for (size_t i = 0; i < COUNT(devices); i++) {
        const clfd_attention a = attention(128, 4, NULL);
        clfd_tuning rows[CLFD_MAX_CANDIDATES];
        find_rows(&devices[i].caps, &a, rows);
        ck_assert_msg(rows[0].family == devices[i].family, "%s: %s first", devices[i].name,
                      clfd_family_name(rows[0].family));
        ck_assert_msg(rows[0].exchange == devices[i].exchange, "%s: %s first", devices[i].name, print(&rows[0]));
    }
}
END_TEST

/* Work-group 1, no exchange, no prefetch: nothing that a device could refuse. */
static void expect_reference_row(const struct device *device, const clfd_tuning *row)
{
    EXPECT(row->family == VECTOR && row->work_group == 1 && row->prefetch == 0 && row->exchange == CLFD_EXCHANGE_LOCAL,
           "%s: the last row is %s %s", device->name, clfd_family_name(row->family), print(row));
}

static void expect_runs(const struct device *device, const clfd_attention *a, const clfd_tuning *row)
{
    const clfd_caps *const caps = &device->caps;

    EXPECT(row->work_group >= 1 && row->work_group <= caps->max_work_group, "%s: %s", device->name, print(row));
    EXPECT(row->rows >= 1 && row->rows <= 8, "%s: %s", device->name, print(row));
    EXPECT(row->groups_per_unit >= 1 && row->min_split >= 1 && row->split_tile >= 1, "%s: %s", device->name,
           print(row));
    if (row->family == LANES) {
        EXPECT(caps->local_mem_bytes > 0 && row->lanes * row->parts <= row->work_group, "%s: %s", device->name,
               print(row));
        EXPECT(row->exchange != CLFD_EXCHANGE_PTX || (caps->ptx && row->work_group >= 32), "%s: %s", device->name,
               print(row));
        EXPECT(row->exchange != CLFD_EXCHANGE_SUB_GROUP || (caps->sub_groups && caps->shuffle), "%s: %s", device->name,
               print(row));
    } else {
        const bool wide = caps->float_width >= 16 && a->head_dim % 16 == 0 && a->head_dim_v % 16 == 0;
        EXPECT(row->width == (wide ? 16 : 8), "%s: %s", device->name, print(row));
        EXPECT(row->tile == 1 || row->tile % row->width == 0, "%s: %s", device->name, print(row));
        EXPECT(row->prefetch == 0 || caps->prefetch, "%s: %s", device->name, print(row));
    }
}

START_TEST(every_candidate_fits_its_device_and_the_reference_row_is_last)
{
    static const uint32_t dims[] = {8, 64, 72, 128, 136, 256, 264, 576}, ratios[] = {1, 2, 3, 4, 5, 8, 9, 71};

    for (size_t i = 0; i < COUNT(devices); i++)
        for (size_t d = 0; d < COUNT(dims); d++)
            for (size_t r = 0; r < COUNT(ratios); r++) {
                const clfd_attention a = attention(dims[d], ratios[r], NULL);
                clfd_tuning rows[CLFD_MAX_CANDIDATES];
                const size_t count = find_rows(&devices[i].caps, &a, rows);
                expect_reference_row(&devices[i], &rows[count - 1]);
                for (size_t c = 0; c < count; c++) {
                    expect_runs(&devices[i], &a, &rows[c]);
                    for (size_t other = 0; other < c; other++)
                        EXPECT(memcmp(&rows[c], &rows[other], sizeof rows[c]) != 0, "%s: twice %s", devices[i].name,
                               print(&rows[c]));
                }
            }
}
END_TEST

static size_t count_exchange(const clfd_tuning *rows, size_t count, clfd_exchange exchange)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += rows[i].family == LANES && rows[i].exchange == exchange;
    return found;
}

/* One compiler's trouble with shuffles must not cost a GPU the whole family. */
START_TEST(a_gpu_falls_back_to_local_memory_before_the_reference_row)
{
    static const uint32_t dims[] = {64, 128, 256, 576}, ratios[] = {1, 4, 8};

    for (size_t d = 0; d < COUNT(dims); d++)
        for (size_t r = 0; r < COUNT(ratios); r++) {
            const clfd_attention a = attention(dims[d], ratios[r], NULL);
            clfd_tuning rows[CLFD_MAX_CANDIDATES];
            size_t count = find_rows(find_device("PTX"), &a, rows);
            ck_assert_uint_ge(count_exchange(rows, count, CLFD_EXCHANGE_PTX), 1);
            ck_assert_uint_ge(count_exchange(rows, count, CLFD_EXCHANGE_LOCAL), 1);
            count = find_rows(find_device("sub-groups"), &a, rows);
            ck_assert_uint_ge(count_exchange(rows, count, CLFD_EXCHANGE_SUB_GROUP), 1);
            ck_assert_uint_ge(count_exchange(rows, count, CLFD_EXCHANGE_LOCAL), 1);
        }
}
END_TEST

START_TEST(cpus_prefetch_where_their_compiler_can)
{
    const clfd_attention a = attention(128, 4, NULL);
    clfd_tuning with[CLFD_MAX_CANDIDATES], without[CLFD_MAX_CANDIDATES];

    find_rows(find_device("CPU of width 16"), &a, with);
    find_rows(find_device("CPU without prefetch"), &a, without);
    ck_assert_uint_gt(with[0].prefetch, 0);
    ck_assert_uint_eq(without[0].prefetch, 0);
    with[0].prefetch = 0;
    ck_assert_mem_eq(&with[0], &without[0], sizeof with[0]);
}
END_TEST

START_TEST(kernels_are_blocked_where_the_compiler_can)
{
    const clfd_attention a = attention(128, 4, NULL);
    clfd_tuning blocked[CLFD_MAX_CANDIDATES], plain[CLFD_MAX_CANDIDATES];
    const size_t count = find_rows(find_device("CPU without blocking"), &a, plain);

    find_rows(find_device("CPU"), &a, blocked);
    ck_assert_uint_gt(blocked[0].tile, 1);
    for (size_t i = 0; i < count; i++)
        ck_assert(plain[i].tile == 1 && plain[i].prefetch == 0);
}
END_TEST

static void change_max_batch(clfd_attention *a) { a->max_batch = 1000; }
static void change_max_kv_len(clfd_attention *a) { a->max_kv_len = 1; }
static void change_expected_kv_len(clfd_attention *a) { a->expected_kv_len = 1; }
static void change_partial(clfd_attention *a) { a->partial = CLFD_PARTIAL_MLO; }
static void change_policy_to_count(clfd_attention *a)
{
    a->split_policy = CLFD_SPLIT_COUNT;
    a->split_size = 100;
}
static void change_policy_to_tokens(clfd_attention *a)
{
    a->split_policy = CLFD_SPLIT_TOKENS;
    a->split_size = 1;
}
static void change_placement(clfd_attention *a)
{
    a->k_strides.token += 1;
    a->k_alignment = 2;
}

START_TEST(rows_depend_neither_on_batch_nor_on_lengths_nor_on_policy)
{
    static void (*const changes[])(clfd_attention *) = {
        change_max_batch, change_max_kv_len,      change_expected_kv_len,  change_partial,
        change_placement, change_policy_to_count, change_policy_to_tokens,
    };

    for (size_t i = 0; i < COUNT(devices); i++) {
        const clfd_attention a = attention(128, 4, NULL);
        clfd_tuning rows[CLFD_MAX_CANDIDATES], others[CLFD_MAX_CANDIDATES];
        const size_t count = find_rows(&devices[i].caps, &a, rows);
        for (size_t c = 0; c < COUNT(changes); c++) {
            clfd_attention changed = a;
            changes[c](&changed);
            ck_assert_uint_eq(find_rows(&devices[i].caps, &changed, others), count);
            for (size_t r = 0; r < count; r++)
                ck_assert_mem_eq(&others[r], &rows[r], sizeof rows[r]);
        }
    }
}
END_TEST

/* Where a warp cannot have all query rows, warps share tiles; of a shared sequence whatever the batch. */
START_TEST(many_rows_share_tiles_on_matrix_units)
{
    static const clfd_caps gpu = {GPU, .max_work_group = 1024, .local_mem_bytes = 48 << 10, .ptx = true,
                                  .matrix = true};
    static const struct {
        uint32_t head_dim, ratio, q_len, shared_kv, parts;
    } cases[] = {
        {128, 4, 1, 0, 0}, {128, 32, 1, 0, 0}, {128, 33, 1, 0, 1},  {128, 8, 5, 0, 1},  {128, 4, 1, 1, 1},
        {64, 71, 1, 0, 1}, {256, 71, 1, 0, 2}, {576, 128, 1, 0, 2}, {576, 16, 1, 0, 2},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        clfd_attention a = attention(cases[i].head_dim, cases[i].ratio, NULL);
        clfd_tuning rows[CLFD_MAX_CANDIDATES];
        a.q_len = cases[i].q_len;
        a.shared_kv = cases[i].shared_kv;
        if (cases[i].head_dim == 576) {
            a.v_from_k = 1;
            a.head_dim_v = 512;
        }
        find_rows(&gpu, &a, rows);
        ck_assert_msg(rows[0].family == CLFD_FAMILY_MATRIX && rows[0].parts == cases[i].parts, "case %zu: %s", i,
                      print(&rows[0]));
    }
}
END_TEST

/* What an H200 was fastest with, where the matrix family can: only q4_0 of one row is not its own. */
START_TEST(quantised_types_have_the_family_that_was_fastest)
{
    static const clfd_caps gpu = {GPU, .max_work_group = 1024, .local_mem_bytes = 200 << 10, .ptx = true,
                                  .matrix = true};
    static const struct {
        clfd_type type;
        uint32_t ratio, zeros;
        clfd_family family;
        uint32_t groups;
    } cases[] = {
        {CLFD_TYPE_INT8, 1, 0, CLFD_FAMILY_MATRIX, 2},
        {CLFD_TYPE_INT8, 1, 1, LANES, 4},
        {CLFD_TYPE_INT4, 1, 0, CLFD_FAMILY_MATRIX, 2},
        {CLFD_TYPE_INT4, 8, 0, CLFD_FAMILY_MATRIX, 3},
        {CLFD_TYPE_FP8_E4M3, 1, 0, CLFD_FAMILY_MATRIX, 2},
        {CLFD_TYPE_FP8_E5M2, 4, 0, CLFD_FAMILY_MATRIX, 2},
        {CLFD_TYPE_Q8_0, 1, 0, CLFD_FAMILY_MATRIX, 2},
        {CLFD_TYPE_Q8_0, 4, 0, CLFD_FAMILY_MATRIX, 2},
        {CLFD_TYPE_Q4_0, 1, 0, LANES, 4},
        {CLFD_TYPE_Q4_0, 4, 0, CLFD_FAMILY_MATRIX, 2},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const clfd_quant quant = {.zeros = cases[i].zeros};
        clfd_attention given = attention(128, cases[i].ratio, NULL), a;
        clfd_tuning rows[CLFD_MAX_CANDIDATES];
        given.k_type = given.v_type = cases[i].type;
        given.k_quant = given.v_quant = quant;
        given.k_strides = given.v_strides = (clfd_strides){0};
        ck_assert_int_eq(clfd_complete_attention(&given, &a, NULL), CLFD_SUCCESS);
        find_rows(&gpu, &a, rows);
        ck_assert_msg(rows[0].family == cases[i].family && rows[0].groups_per_unit == cases[i].groups,
                      "case %zu: %s %s", i, clfd_family_name(rows[0].family), print(&rows[0]));
    }
}
END_TEST

/* ---- Overrides --------------------------------------------------------------------------------------------------- */

static clfd_tuning override(const char *device, const char *text)
{
    const clfd_attention a = attention(128, 4, text);
    clfd_tuning rows[CLFD_MAX_CANDIDATES];

    ck_assert_uint_eq(find_rows(find_device(device), &a, rows), 1);
    return rows[0];
}

static clfd_tuning first_row(const char *device)
{
    const clfd_attention a = attention(128, 4, NULL);
    clfd_tuning rows[CLFD_MAX_CANDIDATES];

    find_rows(find_device(device), &a, rows);
    return rows[0];
}

START_TEST(an_override_replaces_its_fields_of_the_first_row_and_no_other)
{
    clfd_tuning expected = first_row("PTX"), actual;

    expected.work_group = 64;
    expected.rows = 3;
    expected.lanes = 32;
    expected.unroll = 1;
    expected.parts = 2;
    expected.groups_per_unit = 64;
    expected.min_split = 77;
    expected.split_tile = 32;
    actual = override("PTX", "wg=64 rows=3 lanes=32 unroll=1 parts=2 groups=64 min_split=77 split_tile=32");
    ck_assert_mem_eq(&actual, &expected, sizeof actual);
    expected = first_row("CPU");
    expected.tile = 256;
    expected.prefetch = 64;
    expected.width = 16;
    actual = override("CPU", "  tile=256   prefetch=64 width=16 ");
    ck_assert_mem_eq(&actual, &expected, sizeof actual);
}
END_TEST

/* What the device widens or cannot do holds for the row under an override too. */
START_TEST(an_override_of_one_field_keeps_the_devices_width_and_prefetch)
{
    static const char *const names[] = {"CPU", "CPU of width 16", "CPU without prefetch", "accelerator", "limit 1"};

    for (size_t i = 0; i < COUNT(names); i++) {
        clfd_tuning expected = first_row(names[i]);
        expected.min_split = 300;
        const clfd_tuning actual = override(names[i], "min_split=300");
        ck_assert_mem_eq(&actual, &expected, sizeof actual);
    }
    ck_assert_uint_eq(override("plain", "family=decode_vector").prefetch, 0);
}
END_TEST

START_TEST(family_and_exchange_choose_the_row_that_the_rest_changes)
{
    ck_assert_int_eq(override("PTX", "family=decode_vector").family, VECTOR);
    ck_assert_int_eq(override("PTX", "family=decode_lanes").exchange, CLFD_EXCHANGE_PTX);
    ck_assert_int_eq(override("PTX", "exchange=local").exchange, CLFD_EXCHANGE_LOCAL);
    ck_assert_int_eq(override("PTX", "exchange=local").family, LANES);
    ck_assert_int_eq(override("sub-groups", "exchange=local wg=64").exchange, CLFD_EXCHANGE_LOCAL);
    ck_assert_int_eq(override("CPU", "family=decode_lanes").family, LANES);
    ck_assert_int_eq(override("CPU", "exchange=local lanes=8 family=decode_lanes").lanes, 8);
}
END_TEST

START_TEST(a_key_that_one_family_has_chooses_that_family)
{
    ck_assert_int_eq(override("PTX", "width=8").family, VECTOR);
    ck_assert_int_eq(override("CPU", "unroll=1").family, LANES);
    ck_assert_int_eq(override("PTX", "wg=64").family, LANES);
    ck_assert_int_eq(override("CPU", "wg=1").family, VECTOR);
}
END_TEST

/* Of the rows that a word asks for, the first that the device runs. */
START_TEST(an_override_starts_from_a_row_that_fits_the_device)
{
    ck_assert_uint_eq(override("limit 64", "family=decode_lanes").work_group, 64);
    ck_assert_uint_eq(override("limit 32", "exchange=local").work_group, 32);
    ck_assert_uint_eq(override("limit 32", "unroll=2").work_group, 32);
    /* None fits, but with its help one does. */
    ck_assert_uint_eq(override("limit 32 with PTX", "exchange=ptx wg=32 lanes=8 parts=1").work_group, 32);
}
END_TEST

START_TEST(the_words_of_a_row_give_the_row_again)
{
    for (size_t i = 0; i < COUNT(devices); i++) {
        const clfd_attention a = attention(128, 4, NULL);
        clfd_tuning rows[CLFD_MAX_CANDIDATES];
        const size_t count = find_rows(&devices[i].caps, &a, rows);
        for (size_t c = 0; c < count; c++) {
            char words[256];
            snprintf(words, sizeof words, "%s", print(&rows[c]));
            const clfd_tuning again = override(devices[i].name, words);
            ck_assert_msg(memcmp(&again, &rows[c], sizeof again) == 0, "%s: %s gives %s", devices[i].name, words,
                          print(&again));
        }
    }
}
END_TEST

START_TEST(a_blank_override_is_none)
{
    static const char *const blanks[] = {"", " ", "    "};

    for (size_t i = 0; i < COUNT(blanks); i++) {
        const clfd_attention a = attention(128, 4, blanks[i]), plain = attention(128, 4, NULL);
        clfd_tuning rows[CLFD_MAX_CANDIDATES], others[CLFD_MAX_CANDIDATES];
        ck_assert_uint_eq(find_rows(find_device("PTX"), &a, rows), find_rows(find_device("PTX"), &plain, others));
        ck_assert_mem_eq(&rows[0], &others[0], sizeof rows[0]);
    }
}
END_TEST

static const struct {
    const char *device, *text, *value, *rule;
} refusals[] = {
    {"PTX", "wg=64 lanes=8 wg=64", "wg", "once"},
    {"PTX", "family=decode_lanes family=decode_lanes", "family", "once"},
    {"PTX", "wg=3", "wg=3", "a power of two from 1 to 1024"},
    {"PTX", "wg=0", "wg=0", "a power of two from 1 to 1024"},
    {"PTX", "wg=2048", "wg=2048", "a power of two from 1 to 1024"},
    {"PTX", "wg=-64", "wg=-64", "a power of two"},
    {"PTX", "wg=+64", "wg=+64", "a power of two"},
    {"PTX", "wg=64x", "wg=64x", "a power of two"},
    {"PTX", "wg=", "wg=", "a power of two"},
    {"PTX", "wg=18446744073709551680", "wg=18446744073709551680", "a power of two"},
    {"PTX", "rows=0", "rows=0", "a number from 1 to 8"},
    {"PTX", "rows=9", "rows=9", "a number from 1 to 8"},
    {"PTX", "lanes=2", "lanes=2", "a power of two from 4 to 32"},
    {"PTX", "lanes=64", "lanes=64", "a power of two from 4 to 32"},
    {"PTX", "unroll=16", "unroll=16", "from 1 to 8"},
    {"PTX", "parts=16", "parts=16", "from 1 to 8"},
    {"PTX", "groups=65", "groups=65", "from 1 to 64"},
    {"PTX", "min_split=1048577", "min_split=1048577", "from 1 to 1048576"},
    {"PTX", "split_tile=48", "split_tile=48", "a power of two"},
    {"CPU", "width=4", "width=4", "a power of two from 8 to 16"},
    {"CPU", "width=32", "width=32", "a power of two from 8 to 16"},
    {"CPU", "tile=512", "tile=512", "from 1 to 256"},
    {"CPU", "tile=4", "tile=4", "tile is neither 1 nor at least width"},
    {"CPU", "width=16", "width=16", "tile is neither 1 nor at least width"},
    {"CPU", "wg=2", "wg=2", "wg of decode_vector is not 1"},
    {"CPU", "heads=65", "heads=65", "a number from 1 to 64"},
    {"CPU", "prefetch=65", "prefetch=65", "from 0 to 64"},
    {"CPU without prefetch", "prefetch=8", "prefetch=8", "not available on the device, or disabled"},
    {"plain", "family=decode_vector prefetch=8", "prefetch=8", "not available on the device, or disabled"},
    {"PTX", "family=decode_lanes width=8", "width=8", "decode_lanes has no width"},
    {"CPU", "family=decode_vector lanes=8", "lanes=8", "decode_vector has no lanes"},
    {"PTX", "lanes=8 tile=8", "tile=8", "decode_lanes has no tile"},
    {"PTX", "family=vector", "\"vector\"", "decode_vector, decode_lanes or decode_matrix"},
    {"PTX", "exchange=shuffle", "\"shuffle\"", "local, sub_group or ptx"},
    {"CPU", "family=decode_vector exchange=local", "exchange=local", "no tuning row that this device can run"},
    {"plain", "exchange=ptx", "exchange=ptx", "no tuning row that this device can run"},
    {"sub-groups without shuffle", "exchange=sub_group", "exchange=sub_group",
     "no tuning row that this device can run"},
    {"PTX", "nonsense", "\"nonsense\"", "no key=value"},
    {"PTX", "wg=64 =64", "\"=64\"", "no key=value"},
    {"PTX", "block=64", "\"block=64\"", "no key=value"},
    {"PTX", "WG=64", "\"WG=64\"", "no key=value"},
    {"PTX", "a_key_that_is_longer_than_any_key_there_is=1", "\"a_key_that_is_longer", "no key=value"},
    {"plain", "wg=512", "wg=512", "exceeds the device's work-group limit"},
    {"PTX", "wg=16 lanes=8 parts=1", "wg=16", "exchange=ptx needs wg of at least 32"},
    {"PTX", "wg=32 lanes=32 parts=2", "parts=2", "lanes times parts exceeds wg"},
    {"16 KiB", "wg=256 lanes=8 unroll=8", "unroll=8", "local memory is too small"},
};

START_TEST(an_impossible_override_is_refused_with_value_and_rule)
{
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const clfd_attention a = attention(128, 4, refusals[i].text);
        const char *const said = heard.last[CLFD_LOG_ERROR];
        clfd_tuning rows[CLFD_MAX_CANDIDATES];
        size_t count = 7;
        set_up();
        ck_assert_msg(clfd_tuning_candidates(find_device(refusals[i].device), &a, rows, &count, &logger) ==
                          CLFD_ERROR_TUNING,
                      "%s: \"%s\" was not refused", refusals[i].device, refusals[i].text);
        ck_assert_uint_eq(count, 0);
        ck_assert_int_eq(heard.count[CLFD_LOG_ERROR], 1);
        ck_assert_msg(strstr(said, refusals[i].value) != NULL, "\"%s\" lacks \"%s\"", said, refusals[i].value);
        ck_assert_msg(strstr(said, refusals[i].rule) != NULL, "\"%s\" lacks \"%s\"", said, refusals[i].rule);
    }
}
END_TEST

/* ---- Printing ---------------------------------------------------------------------------------------------------- */

START_TEST(printing_stops_at_the_end_of_the_text_and_tells_its_length)
{
    const clfd_tuning row = first_row("PTX");
    const char *const whole = print(&row);
    const int length = (int)strlen(whole);
    char cut[256];

    ck_assert_int_gt(length, 60);
    for (int bytes = 1; bytes <= length + 1; bytes++) {
        memset(cut, '#', sizeof cut);
        ck_assert_int_eq(clfd_tuning_print(&row, cut, (size_t)bytes), length);
        ck_assert_int_eq(strlen(cut), bytes - 1);
        ck_assert_mem_eq(cut, whole, (size_t)bytes - 1);
        ck_assert_int_eq(cut[bytes], '#');
    }
}
END_TEST

START_TEST(families_have_the_names_of_their_files)
{
    ck_assert_str_eq(clfd_family_name(VECTOR), "decode_vector");
    ck_assert_str_eq(clfd_family_name(LANES), "decode_lanes");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        each_device_tries_its_best_exchange_first,
        every_candidate_fits_its_device_and_the_reference_row_is_last,
        a_gpu_falls_back_to_local_memory_before_the_reference_row,
        cpus_prefetch_where_their_compiler_can,
        kernels_are_blocked_where_the_compiler_can,
        rows_depend_neither_on_batch_nor_on_lengths_nor_on_policy,
        many_rows_share_tiles_on_matrix_units,
        quantised_types_have_the_family_that_was_fastest,
        an_override_replaces_its_fields_of_the_first_row_and_no_other,
        an_override_of_one_field_keeps_the_devices_width_and_prefetch,
        family_and_exchange_choose_the_row_that_the_rest_changes,
        a_key_that_one_family_has_chooses_that_family,
        an_override_starts_from_a_row_that_fits_the_device,
        the_words_of_a_row_give_the_row_again,
        a_blank_override_is_none,
        an_impossible_override_is_refused_with_value_and_rule,
        printing_stops_at_the_end_of_the_text_and_tells_its_length,
        families_have_the_names_of_their_files,
    };
    return run_suite_around("tuning", tests, COUNT(tests), set_up, NULL);
}

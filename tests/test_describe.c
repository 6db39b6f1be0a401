#include "plan/check.h"
#include "plan/describe.h"
#include "plan/words.h"
#include "support/log.h"
#include "support/option_cases.h"
#include "support/suite.h"
#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const clfd_caps cpu = {
    .type = CL_DEVICE_TYPE_CPU,
    .compute_units = 2,
    .max_work_group = 4096,
    .float_width = 8,
    .max_alloc_bytes = (uint64_t)1 << 30,
    .local_mem_bytes = 1 << 20,
    .prefetch = true,
    .blocking = true,
};

static const clfd_caps gpu = {
    .type = CL_DEVICE_TYPE_GPU,
    .compute_units = 100,
    .max_work_group = 1024,
    .float_width = 1,
    .max_alloc_bytes = (uint64_t)1 << 30,
    .local_mem_bytes = 48 << 10,
    .ptx = true,
};

static const clfd_attention plain = {
    .struct_size = sizeof(clfd_attention),
    .num_q_heads = 8,
    .num_kv_heads = 2,
    .head_dim = 128,
    .q_type = CLFD_TYPE_F16,
    .max_kv_len = 4096,
    .split_policy = CLFD_SPLIT_COUNT,
    .split_size = 33,
};

/* An attention on a device, as far as a plan without kernels goes. */
typedef struct paper_plan {
    clfd_attention attention;
    clfd_tuning tuning;
    clfd_schedule schedule;
    char line[512], options[768];
} paper_plan;

static test_log heard;
static clfd_logger logger;

static void set_up(void)
{
    memset(&heard, 0, sizeof heard);
    logger = test_logger(&heard);
}

static paper_plan plan_on(const clfd_caps *caps, const clfd_attention *given)
{
    clfd_tuning rows[CLFD_MAX_CANDIDATES];
    paper_plan p;
    size_t count;

    memset(&p, 0, sizeof p);
    ck_assert_msg(clfd_complete_attention(given, &p.attention, &logger) == CLFD_SUCCESS &&
                      clfd_tuning_candidates(caps, &p.attention, rows, &count, &logger) == CLFD_SUCCESS &&
                      clfd_schedule_make(caps, &p.attention, &rows[0], &p.schedule, &logger) == CLFD_SUCCESS,
                  "%s", heard.last[CLFD_LOG_ERROR]);
    p.tuning = rows[0];
    ck_assert_int_lt(clfd_describe(&p.attention, &p.tuning, &p.schedule, p.line, sizeof p.line), (int)sizeof p.line);
    ck_assert_int_lt(
        clfd_decode_options(caps, &p.attention, &p.tuning, &p.schedule, false, p.options, sizeof p.options),
        (int)sizeof p.options);
    return p;
}

/* ---- The line ----------------------------------------------------------------------------------------------------- */

static void expect_line(const clfd_caps *caps, const clfd_attention *a, const char *start)
{
    const paper_plan p = plan_on(caps, a);
    char expected[512], words[256];

    clfd_tuning_print(&p.tuning, words, sizeof words);
    snprintf(expected, sizeof expected, "%s %s", start, words);
    ck_assert_str_eq(p.line, expected);
}

START_TEST(the_line_names_family_types_dims_blocks_splits_and_the_row)
{
    clfd_attention a = plain;

    expect_line(&gpu, &a, "decode_lanes f16 d128 g4 q1 r4 passes1 splits33 lse");
    expect_line(&cpu, &a, "decode_vector f16 d128 g4 q1 r4 passes1 splits33 lse");
    a.head_dim_v = 64;
    a.q_len = 5;
    a.causal = 1;
    a.partial = CLFD_PARTIAL_MLO;
    expect_line(&cpu, &a, "decode_vector f16 d128 dv64 g4 q5 r7 passes3 splits33 mlo causal");
    a = plain;
    a.v_from_k = 1;
    a.head_dim_v = 64;
    a.split_policy = CLFD_SPLIT_TOKENS;
    a.split_size = 100;
    expect_line(&cpu, &a, "decode_vector f16 d128 dv64 g4 q1 r4 passes1 tokens100 splits41 lse v_from_k");
}
END_TEST

START_TEST(the_line_names_every_option_with_its_number)
{
    static const struct {
        clfd_attention set;
        const char *words;
    } cases[] = {
        {{.alibi = 1}, "alibi"},
        {{.bias_type = CLFD_TYPE_F32}, "bias"},
        {{.mask = CLFD_MASK_BOOL}, "mask"},
        {{.mask = CLFD_MASK_TREE}, "tree"},
        {{.sinks = 1}, "sinks"},
        {{.query_positions = 1}, "positions"},
        {{.kv_start = 1}, "kv_start"},
        {{.cache_batch_idx = 1}, "cache_rows"},
        {{.shared_kv = 1}, "shared_kv"},
        {{.window = 4096}, "window4096"},
        {{.softcap = 30.0f}, "softcap30"},
        {{.paging = CLFD_PAGING_TABLE, .page_size = 16, .num_pages = 999}, "page16"},
        {{.paging = CLFD_PAGING_CSR, .page_size = 48, .num_pages = 999}, "csr page48"},
        {{.causal = 1, .alibi = 1, .sinks = 1, .window = 7}, "causal alibi sinks window7"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        clfd_attention a = plain;
        char start[256];
        set_options(&a, &cases[i].set);
        snprintf(start, sizeof start, "decode_vector f16 d128 g4 q1 r%u passes1 splits%u lse %s", a.shared_kv ? 8 : 4,
                 a.window == 7 ? 1 : 33, cases[i].words);
        expect_line(&cpu, &a, start);
    }
}
END_TEST

START_TEST(the_line_names_groups_and_zeros)
{
    clfd_attention a = plain;

    a.k_type = CLFD_TYPE_INT8;
    a.v_type = CLFD_TYPE_INT4;
    a.k_quant.zeros = 1;
    a.v_quant.group = 32;
    expect_line(&cpu, &a,
                "decode_vector f16 kvint8 vint4 outf16 d128 g4 q1 r4 passes1 splits33 lse kgroup128 kzeros vgroup32");
    a.k_type = CLFD_TYPE_Q8_0;
    a.v_type = CLFD_TYPE_FP8_E4M3;
    a.k_quant = a.v_quant = (clfd_quant){0};
    expect_line(&cpu, &a, "decode_vector f16 kvq8_0 vfp8_e4m3 outf16 d128 g4 q1 r4 passes1 splits33 lse");
}
END_TEST

START_TEST(the_line_tells_the_groups_of_the_balanced_schedule)
{
    clfd_attention a = plain;

    a.max_batch = 4;
    a.split_policy = CLFD_SPLIT_AUTO;
    a.split_size = 0;
    const paper_plan p = plan_on(&cpu, &a);
    char word[32];
    snprintf(word, sizeof word, " balanced%u ", p.schedule.num_groups);
    ck_assert_ptr_nonnull(strstr(p.line, word));
    ck_assert_ptr_null(strstr(plan_on(&cpu, &plain).line, "balanced"));
}
END_TEST

START_TEST(the_line_names_the_types_where_they_differ)
{
    clfd_attention a = plain;

    a.k_type = CLFD_TYPE_BF16;
    expect_line(&cpu, &a, "decode_vector f16 kvbf16 outf16 d128 g4 q1 r4 passes1 splits33 lse");
    a = plain;
    a.out_type = CLFD_TYPE_F32;
    expect_line(&cpu, &a, "decode_vector f16 kvf16 outf32 d128 g4 q1 r4 passes1 splits33 lse");
}
END_TEST

/* Copies the words of the line that have the form key=value. */
static void copy_words(const char *line, char *words, size_t bytes)
{
    size_t used = 0;

    words[0] = '\0';
    for (const char *at = line; *at != '\0';) {
        const size_t length = strcspn(at, " ");
        if (memchr(at, '=', length) != NULL)
            used += (size_t)snprintf(words + used, bytes - used, "%.*s ", (int)length, at);
        at += length + strspn(at + length, " ");
    }
    ck_assert_uint_lt(used, bytes);
}

static void expect_same_row(const clfd_caps *caps, const clfd_attention *given)
{
    clfd_attention a = *given;
    const paper_plan p = plan_on(caps, &a);
    char words[512];

    copy_words(p.line, words, sizeof words);
    a.tuning = words;
    const paper_plan again = plan_on(caps, &a);
    ck_assert_mem_eq(&again.tuning, &p.tuning, sizeof p.tuning);
    ck_assert_str_eq(again.line, p.line);
    ck_assert_str_eq(again.options, p.options);
}

START_TEST(the_words_of_the_line_are_an_override_that_gives_the_row_again)
{
    static const char *const tunings[] = {NULL, "family=decode_vector", "family=decode_vector tile=1 min_split=100",
                                          "family=decode_lanes wg=64", "exchange=local parts=1 groups=7"};
    const clfd_caps *const devices[] = {&cpu, &gpu};

    for (size_t d = 0; d < COUNT(devices); d++)
        for (size_t t = 0; t < COUNT(tunings); t++) {
            clfd_attention a = plain;
            a.tuning = tunings[t];
            expect_same_row(devices[d], &a);
            a.k_type = CLFD_TYPE_BF16; /* whose name in the line is no word of an override */
            a.out_type = CLFD_TYPE_F32;
            a.head_dim_v = 64;
            expect_same_row(devices[d], &a);
        }
}
END_TEST

/* A cache that several work-groups read stays in the device's cache; so does one where hints are turned off. */
START_TEST(copies_are_marked_as_read_once_where_they_are)
{
    static const struct {
        clfd_attention set;
        uint32_t q_len;
        bool hints, once;
    } cases[] = {
        {{0}, 1, true, true},
        {{0}, 1, false, false},
        {{.causal = 1}, 8, true, false}, /* 32 rows in passes of 16 */
        {{.shared_kv = 1}, 1, true, false},
        {{.v_from_k = 1}, 1, true, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        clfd_attention a = plain;
        clfd_caps caps = gpu;
        set_options(&a, &cases[i].set);
        a.q_len = cases[i].q_len;
        a.tuning = "family=decode_matrix parts=0 rows=16";
        caps.matrix = true;
        caps.cache_hints = cases[i].hints;
        const paper_plan p = plan_on(&caps, &a);
        ck_assert_msg((strstr(p.options, "-DMATRIX_ONCE=1") != NULL) == cases[i].once, "case %zu: %s", i, p.options);
    }
}
END_TEST

/* ---- Alignment ---------------------------------------------------------------------------------------------------- */

START_TEST(rows_are_aligned_where_base_and_every_stride_are)
{
    static const struct {
        clfd_attention changed;
        bool aligned;
    } cases[] = {
        {{.k_alignment = 16}, true},
        {{.k_alignment = 64, .v_alignment = 32}, true},
        {{.k_alignment = 8}, false},
        {{.v_alignment = 8}, false},
        {{.v_alignment = 2, .v_from_k = 1}, true}, /* there is no base of V */
        {{.k_alignment = 2, .v_from_k = 1}, false},
        {{.k_strides.token = 264}, true}, /* 528 bytes of f16 */
        {{.k_strides.token = 129}, false},
        {{.k_strides.token = 260}, false},
        {{.k_strides.head = 132}, false},
        {{.k_strides.batch = 100000 * 8 + 4}, false},
        {{.v_strides.token = 257}, false},
        {{.v_strides.head = CLFD_STRIDE_BROADCAST}, true},
        {{.q_alignment = 2, .out_alignment = 2}, true}, /* they do not matter */
        {{.k_strides.token = 260, .k_type = CLFD_TYPE_F32}, true},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        clfd_attention a = cases[i].changed;
        a.struct_size = sizeof a;
        a.num_q_heads = 8;
        a.num_kv_heads = 2;
        a.head_dim = 128;
        a.q_type = CLFD_TYPE_F16;
        a.max_kv_len = 64;
        const paper_plan p = plan_on(&cpu, &a);
        ck_assert_msg((strstr(p.line, " unaligned ") == NULL) == cases[i].aligned, "case %zu: %s", i, p.line);
        ck_assert_msg((strstr(p.options, "-DKV_ALIGNED=1") != NULL) == cases[i].aligned, "case %zu: %s", i, p.options);
    }
}
END_TEST

/* ---- Options: plans share a program exactly where every constant agrees ------------------------------------------------- */

static void change_batch(clfd_attention *a) { a->max_batch = 7; }
static void change_kv_len(clfd_attention *a) { a->max_kv_len = 999; }
static void change_scale(clfd_attention *a) { a->scale = 3.0f; }
static void change_heads(clfd_attention *a) { a->num_q_heads *= 2, a->num_kv_heads *= 2; }
static void change_split_size(clfd_attention *a) { a->split_size = 2; }
static void change_policy(clfd_attention *a) { a->split_policy = CLFD_SPLIT_TOKENS; }
static void change_stride(clfd_attention *a) { a->k_strides.token = 512; }
static void change_layout(clfd_attention *a) { a->kv_layout = CLFD_LAYOUT_BHSD; }
static void change_q_promise(clfd_attention *a) { a->q_alignment = 2; }
static void change_splits_of_auto(clfd_attention *a) { a->tuning = "groups=9 min_split=32 split_tile=128"; }

START_TEST(plans_that_differ_in_run_time_values_share_a_program)
{
    static void (*const changes[])(clfd_attention *) = {
        change_batch,  change_kv_len, change_scale,  change_heads,     change_split_size,
        change_policy, change_stride, change_layout, change_q_promise, change_splits_of_auto,
    };
    const paper_plan p = plan_on(&cpu, &plain);

    for (size_t i = 0; i < COUNT(changes); i++) {
        clfd_attention a = plain;
        changes[i](&a);
        const paper_plan other = plan_on(&cpu, &a);
        ck_assert_msg(strcmp(other.options, p.options) == 0, "change %zu: %s", i, other.options);
    }
}
END_TEST

static void change_q_type(clfd_attention *a) { a->q_type = CLFD_TYPE_BF16, a->k_type = a->out_type = CLFD_TYPE_F16; }
static void change_kv_type(clfd_attention *a) { a->k_type = CLFD_TYPE_BF16; }
static void change_out_type(clfd_attention *a) { a->out_type = CLFD_TYPE_F32; }
static void change_dim(clfd_attention *a) { a->head_dim = 64, a->head_dim_v = 128; }
static void change_dim_v(clfd_attention *a) { a->head_dim_v = 64; }
static void change_ratio(clfd_attention *a) { a->num_kv_heads = 4; }
static void change_causal(clfd_attention *a) { a->causal = 1; }
static void change_v_from_k(clfd_attention *a) { a->v_from_k = 1; }
static void change_partial(clfd_attention *a) { a->partial = CLFD_PARTIAL_MLO; }
static void change_promise(clfd_attention *a) { a->k_alignment = 2; }
static void change_tile(clfd_attention *a) { a->tuning = "family=decode_vector tile=32"; }
static void change_width(clfd_attention *a) { a->tuning = "family=decode_vector width=16 tile=16"; }
static void change_prefetch(clfd_attention *a) { a->tuning = "family=decode_vector prefetch=1"; }
static void change_family(clfd_attention *a) { a->tuning = "family=decode_lanes exchange=local wg=128 parts=1"; }
static void change_work_group(clfd_attention *a) { a->tuning = "family=decode_lanes exchange=local wg=64 parts=1"; }
static void change_lanes(clfd_attention *a) { a->tuning = "family=decode_lanes exchange=local wg=128 lanes=8 parts=1"; }
static void change_unroll(clfd_attention *a)
{
    a->tuning = "family=decode_lanes exchange=local wg=128 unroll=2 parts=1";
}
static void change_parts(clfd_attention *a) { a->tuning = "family=decode_lanes exchange=local wg=128 parts=4"; }

START_TEST(plans_that_differ_in_a_constant_do_not)
{
    static void (*const changes[])(clfd_attention *) = {
        change_q_type,   change_kv_type,  change_out_type,   change_dim,     change_dim_v,  change_ratio,
        change_causal,   change_v_from_k, change_partial,    change_promise, change_tile,   change_width,
        change_prefetch, change_family,   change_work_group, change_lanes,   change_unroll, change_parts,
    };
    static paper_plan plans[COUNT(changes) + 1];

    plans[0] = plan_on(&cpu, &plain);
    for (size_t i = 0; i < COUNT(changes); i++) {
        clfd_attention a = plain;
        changes[i](&a);
        plans[i + 1] = plan_on(&cpu, &a);
        for (size_t j = 0; j <= i; j++)
            ck_assert_msg(strcmp(plans[i + 1].options, plans[j].options) != 0, "changes %zu and %zu: %s", i + 1, j,
                          plans[j].options);
    }
}
END_TEST

/* Pairs of options that share a program, and so differ from the plan without either. */
START_TEST(options_that_differ_in_run_time_values_share_a_program)
{
    static const struct {
        clfd_attention one, other;
    } cases[] = {
        {{.window = 1}, {.window = 4096}},
        {{.softcap = 1.0f}, {.softcap = 50.0f}},
        {{.bias_type = CLFD_TYPE_F32}, {.bias_type = CLFD_TYPE_F32, .bias_strides = {.key = 1}}},
        {{.mask = CLFD_MASK_BOOL}, {.mask = CLFD_MASK_BOOL, .mask_strides = {.query = 1}}},
        {{.paging = CLFD_PAGING_TABLE, .page_size = 1, .num_pages = 9},
         {.paging = CLFD_PAGING_TABLE, .page_size = 256, .num_pages = 1000, .block_table_stride = 5000}},
        {{.paging = CLFD_PAGING_CSR, .page_size = 3, .num_pages = 9},
         {.paging = CLFD_PAGING_CSR, .page_size = 48, .num_pages = 10}},
        {{.cache_batch_idx = 1}, {.cache_batch_idx = 1, .num_cache_rows = 77}},
        {{.k_type = CLFD_TYPE_INT8}, {.k_type = CLFD_TYPE_INT8, .k_quant = {.strides.token = 99}}},
        {{.k_type = CLFD_TYPE_FP8_E5M2}, {.k_type = CLFD_TYPE_FP8_E5M2, .k_quant = {.strides.head = 1}}},
    };
    const paper_plan bare = plan_on(&cpu, &plain);

    for (size_t i = 0; i < COUNT(cases); i++) {
        clfd_attention one = plain, other = plain;
        set_options(&one, &cases[i].one);
        set_options(&other, &cases[i].other);
        const paper_plan a = plan_on(&cpu, &one), b = plan_on(&cpu, &other);
        ck_assert_str_eq(a.options, b.options);
        ck_assert_str_ne(a.options, bare.options);
    }
}
END_TEST

START_TEST(every_option_is_a_program_of_its_own)
{
    static const clfd_attention options[] = {
        {.window = 16},
        {.softcap = 1.0f},
        {.alibi = 1},
        {.bias_type = CLFD_TYPE_F32},
        {.bias_type = CLFD_TYPE_F16},
        {.mask = CLFD_MASK_BOOL},
        {.mask = CLFD_MASK_TREE},
        {.sinks = 1},
        {.query_positions = 1},
        {.kv_start = 1},
        {.cache_batch_idx = 1},
        {.shared_kv = 1},
        {.paging = CLFD_PAGING_TABLE, .page_size = 16, .num_pages = 9},
        {.paging = CLFD_PAGING_TABLE, .page_size = 3, .num_pages = 9},
        {.paging = CLFD_PAGING_CSR, .page_size = 16, .num_pages = 9},
        {.paging = CLFD_PAGING_CSR, .page_size = 3, .num_pages = 9},
        {.k_type = CLFD_TYPE_INT8},
        {.k_type = CLFD_TYPE_INT8, .v_type = CLFD_TYPE_INT4},
        {.k_type = CLFD_TYPE_INT8, .k_quant = {.group = 32}},
        {.k_type = CLFD_TYPE_INT8, .v_quant = {.group = 32}},
        {.k_type = CLFD_TYPE_INT8, .k_quant = {.zeros = 1}},
        {.k_type = CLFD_TYPE_INT8, .v_quant = {.zeros = 1}},
        {.k_type = CLFD_TYPE_INT8, .k_quant = {.scale_type = CLFD_TYPE_F16}},
        {.k_type = CLFD_TYPE_INT8, .v_quant = {.scale_type = CLFD_TYPE_F16}},
    };
    static paper_plan plans[COUNT(options)];

    for (size_t i = 0; i < COUNT(options); i++) {
        clfd_attention a = plain;
        set_options(&a, &options[i]);
        plans[i] = plan_on(&cpu, &a);
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(strcmp(plans[i].options, plans[j].options) != 0, "options %zu and %zu: %s", i, j,
                          plans[j].options);
    }
}
END_TEST

/* What merges, and what writes partial states, is compiled in where the plan has splits. */
START_TEST(a_matrix_plan_of_one_split_writes_results_directly)
{
    static const struct {
        uint32_t splits;
        const char *options;
    } cases[] = {{1, "-DDECODE_DIRECT=1 -DDECODE_LOOPS=0 -DDECODE_FUSED=0"},
                 {2, "-DDECODE_DIRECT=0 -DDECODE_LOOPS=0 -DDECODE_FUSED=2"}};
    clfd_caps caps = gpu;

    caps.matrix = caps.fused_merge = true;
    for (size_t i = 0; i < COUNT(cases); i++) {
        clfd_attention a = plain;
        a.tuning = "family=decode_matrix parts=0 rows=16";
        a.split_policy = CLFD_SPLIT_COUNT;
        a.split_size = cases[i].splits;
        const paper_plan p = plan_on(&caps, &a);
        char balanced[768];
        ck_assert_msg(strstr(p.options, cases[i].options) != NULL, "%u splits: %s", cases[i].splits, p.options);
        clfd_decode_options(&caps, &p.attention, &p.tuning, &p.schedule, true, balanced, sizeof balanced);
        ck_assert_ptr_nonnull(strstr(balanced, "-DDECODE_DIRECT=0"));
    }
}
END_TEST

START_TEST(the_balanced_kernel_is_a_program_of_its_own)
{
    const paper_plan p = plan_on(&cpu, &plain);
    char balanced[768];

    clfd_decode_options(&cpu, &p.attention, &p.tuning, &p.schedule, true, balanced, sizeof balanced);
    ck_assert_str_ne(balanced, p.options);
    ck_assert_ptr_nonnull(strstr(balanced, "-DDECODE_BALANCED=1"));
}
END_TEST

START_TEST(ptx_is_for_rows_that_exchange_by_it)
{
    clfd_attention a = plain;

    ck_assert_ptr_nonnull(strstr(plan_on(&gpu, &a).options, "-DCLFD_PTX=1"));
    a.tuning = "exchange=local";
    ck_assert_ptr_nonnull(strstr(plan_on(&gpu, &a).options, "-DCLFD_PTX=0"));
    a.tuning = "family=decode_vector";
    ck_assert_ptr_nonnull(strstr(plan_on(&gpu, &a).options, "-DCLFD_PTX=0"));
}
END_TEST

START_TEST(options_of_the_device_come_last)
{
    clfd_caps caps = cpu;
    char text[256];
    const char *const option = " -cl-some-option";

    strcpy(caps.build_options, option + 1);
    const paper_plan p = plan_on(&caps, &plain), bare = plan_on(&cpu, &plain);
    ck_assert_uint_eq(strlen(p.options), strlen(bare.options) + strlen(option));
    ck_assert_str_eq(p.options + strlen(bare.options), option);
    clfd_merge_options(&caps, CLFD_PARTIAL_LSE, 64, CLFD_TYPE_F32, 1, text, sizeof text);
    ck_assert_str_eq(text + strlen(text) - strlen(option), option);
}
END_TEST

START_TEST(a_merges_options_hold_each_of_its_constants)
{
    char base[256], other[256];

    clfd_merge_options(&cpu, CLFD_PARTIAL_LSE, 64, CLFD_TYPE_F32, 1, base, sizeof base);
    ck_assert_ptr_null(strstr(base, "  "));
    clfd_merge_options(&cpu, CLFD_PARTIAL_MLO, 64, CLFD_TYPE_F32, 1, other, sizeof other);
    ck_assert_str_ne(other, base);
    clfd_merge_options(&cpu, CLFD_PARTIAL_LSE, 72, CLFD_TYPE_F32, 1, other, sizeof other);
    ck_assert_str_ne(other, base);
    clfd_merge_options(&cpu, CLFD_PARTIAL_LSE, 64, CLFD_TYPE_F16, 1, other, sizeof other);
    ck_assert_str_ne(other, base);
    clfd_merge_options(&cpu, CLFD_PARTIAL_LSE, 64, CLFD_TYPE_F32, 2, other, sizeof other);
    ck_assert_str_ne(other, base);
    clfd_merge_options(&gpu, CLFD_PARTIAL_LSE, 64, CLFD_TYPE_F32, 1, other, sizeof other);
    ck_assert_str_eq(other, base);
}
END_TEST

/* ---- Cut texts ------------------------------------------------------------------------------------------------------ */

START_TEST(a_text_that_is_too_short_is_cut_and_the_whole_length_told)
{
    const paper_plan p = plan_on(&gpu, &plain);
    char cut[32];

    ck_assert_int_eq(clfd_describe(&p.attention, &p.tuning, &p.schedule, cut, sizeof cut), (int)strlen(p.line));
    ck_assert_uint_eq(strlen(cut), sizeof cut - 1);
    ck_assert_mem_eq(cut, p.line, sizeof cut - 1);
    ck_assert_int_eq(clfd_decode_options(&gpu, &p.attention, &p.tuning, &p.schedule, false, cut, sizeof cut),
                     (int)strlen(p.options));
    ck_assert_uint_eq(strlen(cut), sizeof cut - 1);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_line_names_family_types_dims_blocks_splits_and_the_row,
        the_line_names_every_option_with_its_number,
        the_line_names_groups_and_zeros,
        the_line_tells_the_groups_of_the_balanced_schedule,
        the_line_names_the_types_where_they_differ,
        the_words_of_the_line_are_an_override_that_gives_the_row_again,
        copies_are_marked_as_read_once_where_they_are,
        rows_are_aligned_where_base_and_every_stride_are,
        plans_that_differ_in_run_time_values_share_a_program,
        plans_that_differ_in_a_constant_do_not,
        options_that_differ_in_run_time_values_share_a_program,
        every_option_is_a_program_of_its_own,
        a_matrix_plan_of_one_split_writes_results_directly,
        the_balanced_kernel_is_a_program_of_its_own,
        ptx_is_for_rows_that_exchange_by_it,
        options_of_the_device_come_last,
        a_merges_options_hold_each_of_its_constants,
        a_text_that_is_too_short_is_cut_and_the_whole_length_told,
    };
    return run_suite_around("describe", tests, COUNT(tests), set_up, NULL);
}

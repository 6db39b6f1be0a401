#include "support/decode_cases.h"
#include "support/compare.h"
#include "support/suite.h"
#include <string.h>

#define COUNT_OF(table) (sizeof(table) / sizeof(table)[0])
#define NUM_LENGTHS 28
#define CAPACITY 200

/* Neighbours of the powers of two, primes, the capacity and its neighbours, and what must be clamped. */
static const int32_t lengths[NUM_LENGTHS] = {
    0,  1,  2,  3,  7,   8,   9,   13,  15,  16,  17,        31,        32,           33,
    47, 63, 64, 65, 127, 128, 129, 191, 199, 200, INT32_MAX, INT32_MIN, CAPACITY + 1, -1};

/* A few of them where many problems follow. */
#define NUM_FEW 5
static const int32_t few[NUM_FEW] = {0, 1, 33, 97, 130};

const decode_family decode_forms[NUM_DECODE_FORMS] = {
    {.tuning = NULL, .ratio = 2},
    {.tuning = "family=decode_vector width=8 tile=1 prefetch=0", .ratio = 2},
    {.tuning = "family=decode_vector width=16 tile=16", .ratio = 2},
    {.tuning = "family=decode_lanes rows=2 unroll=2 ahead=1 parts=1", .ratio = 2},
};

attention_problem decode_case(const decode_family *family)
{
    return (attention_problem){
        .attention = {.max_batch = NUM_FEW,
                      .num_q_heads = 2 * family->ratio,
                      .num_kv_heads = 2,
                      .head_dim = 64,
                      .q_type = CLFD_TYPE_F16,
                      .out_type = CLFD_TYPE_F32,
                      .max_kv_len = CAPACITY,
                      .split_policy = CLFD_SPLIT_TOKENS,
                      .split_size = 32,
                      .tuning = family->tuning},
        .kv_lens = few,
    };
}

void verify_lengths(const decode_family *family)
{
    static const struct {
        clfd_split_policy policy;
        uint32_t size;
    } policies[] = {
        {CLFD_SPLIT_AUTO, 0},     {CLFD_SPLIT_COUNT, 1},    {CLFD_SPLIT_COUNT, 3},          {CLFD_SPLIT_COUNT, 10000},
        {CLFD_SPLIT_TOKENS, 1},   {CLFD_SPLIT_TOKENS, 16},  {CLFD_SPLIT_TOKENS, 37},        {CLFD_SPLIT_TOKENS, 64},
        {CLFD_SPLIT_TOKENS, 199}, {CLFD_SPLIT_TOKENS, 200}, {CLFD_SPLIT_TOKENS, INT32_MAX},
    };

    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        attention_problem p = decode_case(family);
        p.attention.max_batch = NUM_LENGTHS;
        p.attention.split_policy = policies[i].policy;
        p.attention.split_size = policies[i].size;
        p.kv_lens = lengths;
        p.seed = i;
        attention_verify(&p);
    }
}

/* The bound of a call clamps lengths, alone and together with kv_lens; sequences beyond the batch stay untouched. */
void verify_bounds(const decode_family *family)
{
    static const struct {
        uint32_t batch, bound;
        bool has_kv_lens;
    } calls[] = {{0, 0, false},   {0, 1, false},  {0, 32, false}, {0, 33, true}, {0, 100, true},
                 {0, 199, false}, {0, 500, true}, {1, 64, false}, {2, 64, true}, {4, 0, true}};

    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        attention_problem p = decode_case(family);
        p.batch = calls[i].batch;
        p.kv_len_bound = calls[i].bound;
        p.kv_lens = calls[i].has_kv_lens ? few : NULL;
        p.seed = i;
        attention_verify(&p);
    }
}

/* ---- Addressing -------------------------------------------------------------------------------------------------- */

void verify_layouts(const decode_family *family)
{
    enum { D = 64, HKV = 2 };
    const int64_t hq = (int64_t)2 * family->ratio;
    const struct {
        clfd_layout layout;
        clfd_strides q, k, v, out;
        size_t q_offset, kv_offset, out_offset;
    } layouts[] = {
        {.layout = CLFD_LAYOUT_BSHD},
        {.layout = CLFD_LAYOUT_BHSD},
        /* K and V interleaved, row by row and sequence by sequence: the other half is poison. */
        {.k = {.token = 2 * HKV * D}, .v = {.token = 2 * HKV * D}, .kv_offset = 256},
        {.k = {.batch = 2 * CAPACITY * HKV * D}, .v = {.batch = 2 * CAPACITY * HKV * D}},
        /* Rows apart by more than they are long; K and V unlike each other. */
        {.k = {.head = 72, .token = 152, .batch = CAPACITY * 152 + 8}, .v = {.head = CAPACITY * 64 + 64, .token = 64}},
        /* [token][batch][head], and [head][batch][token]. */
        {.k = {.batch = HKV * D, .token = NUM_FEW * HKV * D}, .v = {.batch = HKV * D, .token = NUM_FEW * HKV * D}},
        {.layout = CLFD_LAYOUT_BHSD, .k = {.head = NUM_FEW * CAPACITY * D, .batch = CAPACITY * D}},
        /* One cache for all sequences; one KV head for all heads; one token for ever. */
        {.k = {.batch = CLFD_STRIDE_BROADCAST}, .v = {.batch = CLFD_STRIDE_BROADCAST}},
        {.k = {.head = CLFD_STRIDE_BROADCAST, .token = D}, .v = {.head = CLFD_STRIDE_BROADCAST}},
        {.k = {.token = CLFD_STRIDE_BROADCAST}},
        /* Sequence b starts 8 tokens after sequence b - 1: a prefix that overlaps itself. */
        {.k = {.batch = 8 * HKV * D}, .v = {.batch = 8 * HKV * D}},
        /* q and out: odd strides, odd offsets where the promise allows, heads outermost. */
        {.q = {.head = 67, .token = 67 * hq, .batch = 67 * hq + 5},
         .out = {.head = 65, .token = 65 * hq, .batch = 65 * hq + 3}},
        {.q = {.head = NUM_FEW * D, .batch = D}, .out = {.head = NUM_FEW * D, .batch = D}},
        {.q_offset = 128, .kv_offset = 16, .out_offset = 16},
    };

    for (size_t i = 0; i < COUNT_OF(layouts); i++) {
        attention_problem p = decode_case(family);
        clfd_attention *const a = &p.attention;
        a->kv_layout = layouts[i].layout;
        a->q_strides = layouts[i].q;
        a->k_strides = layouts[i].k;
        a->v_strides = layouts[i].v;
        a->out_strides = layouts[i].out;
        p.q_offset = layouts[i].q_offset;
        p.kv_offset = layouts[i].kv_offset;
        p.out_offset = layouts[i].out_offset;
        p.seed = i;
        attention_verify(&p);
    }
}

void verify_unaligned(const decode_family *family)
{
    static const struct {
        clfd_type type;
        uint32_t promise;
        uint32_t head_dim;
        int64_t k_token, v_token;
    } rows[] = {
        {CLFD_TYPE_F16, 2, 64, 129, 131}, {CLFD_TYPE_F16, 16, 64, 129, 136}, {CLFD_TYPE_BF16, 2, 64, 129, 129},
        {CLFD_TYPE_F32, 4, 64, 129, 130}, {CLFD_TYPE_F16, 2, 8, 17, 19},     {CLFD_TYPE_F16, 4, 8, 18, 18},
        {CLFD_TYPE_BF16, 2, 8, 17, 17},   {CLFD_TYPE_F32, 4, 8, 17, 18},
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        attention_problem p = decode_case(family);
        clfd_attention *const a = &p.attention;
        const uint32_t promise = rows[i].promise;
        a->q_type = a->k_type = rows[i].type;
        a->head_dim = rows[i].head_dim;
        a->k_strides.token = rows[i].k_token;
        a->v_strides.token = rows[i].v_token;
        a->q_alignment = a->k_alignment = a->v_alignment = promise;
        a->out_alignment = 4;
        p.q_offset = p.kv_offset = promise;
        p.out_offset = 4;
        p.seed = i;
        attention_verify(&p);
    }
}

void verify_pages(const decode_family *family)
{
    static const uint32_t sizes[] = {1, 16, 48, 64};

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        attention_problem p = decode_case(family);
        p.attention.paging = CLFD_PAGING_TABLE;
        p.attention.page_size = sizes[i];
        attention_verify(&p);
    }
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

void verify_kv_heads(const decode_family *family)
{
    static const uint32_t heads[] = {1, 3, 4, 5, 8, 16, 17, 32, 34};

    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        attention_problem p = decode_case(family);
        p.attention.num_kv_heads = heads[i];
        p.attention.num_q_heads = heads[i] * family->ratio;
        p.seed = i;
        attention_verify(&p);
        p.attention.kv_layout = CLFD_LAYOUT_BHSD;
        attention_verify(&p);
    }
}

void verify_queries(const decode_family *family)
{
    static const uint32_t q_lens[] = {1, 2, 3, 4, 5, 8, 15, 16};
    static const int32_t lens[] = {0, 1, 2, 3, 15, 16, 17, 33, 64, 131};

    for (uint32_t causal = 0; causal <= 1; causal++)
        for (size_t i = 0; i < COUNT_OF(q_lens); i++) {
            attention_problem p = decode_case(family);
            p.attention.max_batch = COUNT_OF(lens);
            p.attention.q_len = q_lens[i];
            p.attention.causal = causal;
            p.kv_lens = lens;
            p.seed = i;
            attention_verify(&p);
        }
}

void verify_masked_queries(const decode_family *family, uint32_t q_len)
{
    attention_problem p = decode_case(family);

    p.attention.q_len = q_len;
    p.attention.causal = 1;
    attention_verify(&p);
    p.attention.split_policy = CLFD_SPLIT_COUNT;
    p.attention.split_size = 3;
    attention_verify(&p);
}

void verify_coarse_scores(const decode_family *family)
{
    attention_problem p = decode_case(family);
    attention_call *call;

    p.attention.scale = 22.18070978f; /* 32 ln 2 */
    p.attention.split_policy = CLFD_SPLIT_COUNT;
    p.attention.split_size = 1;
    call = attention_open(&p);
    for (uint32_t b = 0; b < call->batch; b++) {
        for (uint32_t h = 0; h < call->complete.num_q_heads; h++) {
            image_put_row(&call->images[ATTENTION_Q], b, 0, h, 0.0f);
            image_put(&call->images[ATTENTION_Q], b, 0, h, 0, 2048.0f);
            image_put(&call->images[ATTENTION_Q], b, 0, h, 1, 0.5f);
        }
        for (uint32_t j = 0; j < attention_kv_len(call, b); j++)
            for (uint32_t h = 0; h < call->complete.num_kv_heads; h++) {
                image_put_row(&call->images[ATTENTION_K], b, j, h, 0.0f);
                image_put(&call->images[ATTENTION_K], b, j, h, 0, 2440.0f);
                image_put(&call->images[ATTENTION_K], b, j, h, 1, (float)(j / 16));
                image_put_row(&call->images[ATTENTION_V], b, j, h, 1.5f);
            }
    }
    attention_run(call);
    for (size_t i = 0; i < call->num_rows * call->complete.head_dim_v; i++) {
        const bool seen = attention_kv_len(call, (uint32_t)(i / (call->num_rows / call->batch * 64))) > 0;
        EXPECT(compare_value(call->out[i], seen ? 1.5 : 0.0, TOLERANCE_OUT_F32), "out[%zu] of %s is %.9g", i,
               clfd_plan_describe(call->plan), call->out[i]);
    }
    attention_close(call);
}

void verify_row_blocks(const decode_family *family)
{
    static const uint32_t rows[] = {1, 8, 2, 3, 4, 5, 6, 7};

    for (size_t i = 0; i < (family->choice ? 2 : COUNT_OF(rows)); i++) {
        attention_problem p = decode_case(family);
        p.attention.num_q_heads = 2 * rows[i];
        p.seed = i;
        attention_verify(&p);
        p.attention.num_q_heads = 2;
        p.attention.q_len = rows[i];
        attention_verify(&p);
    }
}

void verify_ratios(const decode_family *family)
{
    static const struct {
        uint32_t ratio, q_len;
    } shapes[] = {{8, 1}, {9, 1}, {12, 1}, {16, 1}, {71, 1}, {128, 1}, {3, 7}, {8, 16}, {1, 16}};

    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        attention_problem p = decode_case(family);
        p.attention.num_q_heads = 2 * shapes[i].ratio;
        p.attention.q_len = shapes[i].q_len;
        p.seed = i;
        attention_verify(&p);
    }
}

void verify_dims(const decode_family *family)
{
    static const struct {
        uint32_t head_dim, head_dim_v, v_from_k;
    } dims[] = {{8, 8, 0},   {80, 80, 0}, {192, 128, 0}, {576, 512, 1}, {264, 136, 0}, {128, 128, 0}, {8, 576, 0},
                {16, 16, 0}, {24, 24, 0}, {72, 72, 0},   {96, 96, 0},   {112, 112, 0}, {256, 256, 0}, {576, 8, 1}};

    for (size_t i = 0; i < (family->choice ? 5 : COUNT_OF(dims)); i++) {
        attention_problem p = decode_case(family);
        p.attention.head_dim = dims[i].head_dim;
        p.attention.head_dim_v = dims[i].head_dim_v;
        p.attention.v_from_k = dims[i].v_from_k;
        p.seed = i;
        attention_verify(&p);
    }
}

void verify_types(const decode_family *family)
{
    static const clfd_type types[3] = {CLFD_TYPE_F32, CLFD_TYPE_F16, CLFD_TYPE_BF16};

    /* Nine of the 27 combinations, so that every pair of types comes once; the choice has every type in every place. */
    for (uint32_t i = 0; i < 9; i += family->choice ? 4 : 1) {
        attention_problem p = decode_case(family);
        p.attention.q_type = types[i / 3];
        p.attention.k_type = types[i % 3];
        p.attention.out_type = types[(i / 3 + i) % 3];
        p.attention.partial = i % 2 == 0 ? CLFD_PARTIAL_MLO : CLFD_PARTIAL_LSE;
        p.seed = i;
        attention_verify(&p);
        p.attention.split_size = CAPACITY; /* a direct write */
        attention_verify(&p);
    }
}

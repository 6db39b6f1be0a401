/* The matrix family with quantised K and V: K's codes are multiplied as integers with digits of q, V's as f16 under weights
 * that their scales are part of. What makes that go wrong is here: codes and elements of q at the ends of their ranges, rows
 * of q that are no numbers, blocks that share pieces of 16 bytes, scales of every kind. A program takes a CPU's compiler
 * many seconds: each serves all problems of its types. */
#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const decode_family matrix = {.tuning = "family=decode_matrix", .ratio = 2, .choice = true};

/* Dims of 0 are 128, of V those of K. */
typedef struct type_case {
    clfd_type k, v;
    clfd_quant k_quant, v_quant;
    uint32_t head_dim, head_dim_v, q_len, page_size;
} type_case;

static attention_problem problem_of(const type_case *types, uint64_t seed)
{
    attention_problem p = decode_case(&matrix);

    p.attention.head_dim = types->head_dim > 0 ? types->head_dim : 128;
    p.attention.head_dim_v = types->head_dim_v > 0 ? types->head_dim_v : p.attention.head_dim;
    p.attention.k_type = types->k;
    p.attention.v_type = types->v;
    p.attention.k_quant = types->k_quant;
    p.attention.v_quant = types->v_quant;
    p.attention.q_len = types->q_len > 0 ? types->q_len : 2;
    p.attention.causal = 1;
    p.attention.paging = types->page_size > 0 ? CLFD_PAGING_TABLE : CLFD_PAGING_NONE;
    p.attention.page_size = types->page_size;
    p.seed = seed;
    return p;
}

static void put_q(attention_call *call, uint32_t head, uint32_t d, float value)
{
    image_put(&call->images[ATTENTION_Q], 3, 0, head, d, value);
}

/* A row that is zero, one whose elements are far below one of them, and one of the smallest. */
static void put_unlike_magnitudes(attention_call *call)
{
    image_put_row(&call->images[ATTENTION_Q], 3, 0, 0, 0.0f);
    image_put_row(&call->images[ATTENTION_Q], 3, 0, 1, 0x1p-14f);
    put_q(call, 1, 5, 64.0f);
    image_put_row(&call->images[ATTENTION_Q], 3, 0, 2, 0x1p-24f);
}

/* Rows with one infinity, with two of both signs, with a NaN, and one like any other between them. */
static void put_no_numbers(attention_call *call)
{
    put_q(call, 0, 1, INFINITY);
    put_q(call, 1, 2, -INFINITY);
    put_q(call, 1, call->complete.head_dim - 1, INFINITY);
    put_q(call, 2, 7, NAN);
    image_put(&call->images[ATTENTION_Q], 4, 1, 3, 3, -INFINITY);
}

/* A token's codes of a head, scales of blocks apart, all alike. */
static void put_codes(attention_call *call, attention_tensor tensor, uint32_t token, unsigned char codes)
{
    const clfd_type type = tensor == ATTENTION_K ? call->complete.k_type : call->complete.v_type;
    const uint32_t dim = tensor == ATTENTION_K ? call->complete.head_dim : call->complete.head_dim_v;
    const uint32_t block = type == CLFD_TYPE_Q8_0 ? 32 : type == CLFD_TYPE_Q4_0 ? 16 : 0;

    if (type == CLFD_TYPE_INT8 || type == CLFD_TYPE_INT4)
        memset(image_at(&call->images[tensor], 3, token, 0, 0), codes, type == CLFD_TYPE_INT8 ? dim : dim / 2);
    for (uint32_t d = 0; block > 0 && d < dim; d += 32)
        memset(image_at(&call->images[tensor], 3, token, 0, d) + 2, codes, block);
}

static void put_extreme_codes(attention_call *call)
{
    static const unsigned char codes[] = {0x00, 0x80, 0x7f, 0x88, 0x77, 0xff, 0x08, 0xf7};

    for (uint32_t t = 0; t < COUNT(codes); t++) {
        put_codes(call, ATTENTION_K, 3 * t, codes[t]);
        put_codes(call, ATTENTION_V, 2 * t, codes[t]);
    }
    for (uint32_t d = 0; d < call->complete.head_dim; d++) /* products of one sign, as great as they get */
        put_q(call, 1, d, 0.25f);
}

/* Rows of q most of which is small beside some of it, for which every key has zeros. */
static void put_small_beside_great(attention_call *call)
{
    const uint32_t heads = call->complete.num_kv_heads, tokens = attention_kv_len(call, 3);
    float row[256] = {0.0f};

    for (uint32_t h = 0; h < call->complete.num_q_heads; h++)
        for (uint32_t d = 0; d < call->complete.head_dim; d++)
            put_q(call, h, d, d % 4 == h % 4 ? 60000.0f : 0.03f * (float)(d % 7 + 1));
    for (uint32_t t = 0; t < tokens; t++)
        for (uint32_t h = 0; h < heads; h++) {
            const uint32_t ratio = call->complete.num_q_heads / heads;
            for (uint32_t d = 0; d < call->complete.head_dim; d++)
                row[d] = d % 4 >= h * ratio && d % 4 < (h + 1) * ratio ? 0.0f : (float)((t * 5 + d) % 11) / 5.0f - 1.0f;
            attention_put_row(call, ATTENTION_K, &(key_place){3, t}, h, row);
        }
}

static void verify_changed(const attention_problem *problem, void (*change)(attention_call *))
{
    attention_call *const call = attention_open(problem);

    change(call);
    attention_run(call);
    attention_expect_reference(call);
    attention_close(call);
}

static void verify_types_of(const type_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        attention_problem p = problem_of(&cases[i], i);
        attention_verify(&p);
        verify_changed(&p, put_unlike_magnitudes);
        verify_changed(&p, put_no_numbers);
        if (p.attention.paging == CLFD_PAGING_NONE) {
            verify_changed(&p, put_extreme_codes);
            verify_changed(&p, put_small_beside_great);
        }
        p.attention.split_size = 200; /* a direct write */
        attention_verify(&p);
    }
}

START_TEST(bytes_match_the_reference)
{
    static const type_case cases[] = {
        {.k = CLFD_TYPE_INT8, .v = CLFD_TYPE_INT8},
        {.k = CLFD_TYPE_INT8,
         .v = CLFD_TYPE_INT8,
         .k_quant = {.group = 32, .scale_type = CLFD_TYPE_F16},
         .head_dim = 96},
        {.k = CLFD_TYPE_FP8_E4M3, .v = CLFD_TYPE_FP8_E5M2},
    };
    verify_types_of(cases, COUNT(cases));
}
END_TEST

START_TEST(nibbles_match_the_reference)
{
    static const type_case cases[] = {
        {.k = CLFD_TYPE_INT4, .v = CLFD_TYPE_INT4},
        {.k = CLFD_TYPE_FP8_E5M2,
         .v = CLFD_TYPE_INT4,
         .v_quant = {.group = 32, .scale_type = CLFD_TYPE_F16},
         .head_dim = 64},
    };
    verify_types_of(cases, COUNT(cases));
}
END_TEST

/* 34 and 18 bytes: each block begins elsewhere in a piece. Of 256 dims all places there are. */
START_TEST(blocks_match_the_reference)
{
    static const type_case cases[] = {
        {.k = CLFD_TYPE_Q8_0, .v = CLFD_TYPE_Q8_0},
        {.k = CLFD_TYPE_Q4_0, .v = CLFD_TYPE_Q4_0},
        {.k = CLFD_TYPE_Q8_0, .v = CLFD_TYPE_Q4_0, .head_dim = 64, .head_dim_v = 256},
        {.k = CLFD_TYPE_Q4_0, .v = CLFD_TYPE_Q8_0, .head_dim = 256, .head_dim_v = 192},
    };
    verify_types_of(cases, COUNT(cases));
}
END_TEST

/* Pages, and two blocks of eight rows. */
START_TEST(pages_and_blocks_of_rows_match_the_reference)
{
    static const type_case cases[] = {
        {.k = CLFD_TYPE_INT8, .v = CLFD_TYPE_INT8, .v_quant = {.group = 64}, .q_len = 5, .page_size = 16},
        {.k = CLFD_TYPE_INT4,
         .v = CLFD_TYPE_Q8_0,
         .k_quant = {.scale_type = CLFD_TYPE_F16},
         .q_len = 5,
         .page_size = 1},
    };
    verify_types_of(cases, COUNT(cases));
}
END_TEST

/* Codes and scales of what no row sees hold every bit pattern. */
START_TEST(poison_of_hidden_codes_changes_no_bit)
{
    static const type_case types = {.k = CLFD_TYPE_INT8, .v = CLFD_TYPE_INT8, .q_len = 3};
    attention_problem p = problem_of(&types, 0);

    expect_poison_unused(&p);
}
END_TEST

/* A scale of V that is greater than all before it, one that is none, and the smallest there are. */
START_TEST(scales_of_any_magnitude_match_the_reference)
{
    static const float scales[] = {0x1p-126f, 0x1p-149f, 0.0f, 0.25f, -0.5f, NAN};
    static const type_case types = {.k = CLFD_TYPE_INT8, .v = CLFD_TYPE_INT8};

    for (size_t i = 0; i < COUNT(scales); i++) {
        const attention_problem p = problem_of(&types, i);
        attention_call *const call = attention_open(&p);
        for (uint32_t token = 0; token <= 40; token += 40)
            image_put(&call->images[ATTENTION_V_SCALE], 4, token, 1, 0, scales[i]);
        attention_run(call);
        attention_expect_reference(call);
        attention_close(call);
    }
}
END_TEST

/* A key of no weight takes nothing from the others, however great its scale: first of all, and later. */
START_TEST(a_great_scale_of_a_key_without_weight_changes_nothing)
{
    static const type_case types = {.k = CLFD_TYPE_INT8, .v = CLFD_TYPE_INT8};
    float row[128];

    for (uint32_t token = 0; token <= 40; token += 40) {
        attention_problem p = problem_of(&types, token);
        p.attention.split_size = 200;
        attention_call *const call = attention_open(&p);
        for (uint32_t d = 0; d < 128; d++) {
            row[d] = -4.5f; /* a score of about -50 */
            for (uint32_t i = 0; i < 2 * call->complete.num_q_heads; i++)
                image_put(&call->images[ATTENTION_Q], 3, i % 2, i / 2, d, 1.0f);
        }
        for (uint32_t h = 0; h < call->complete.num_kv_heads; h++) {
            attention_put_row(call, ATTENTION_K, &(key_place){3, token}, h, row);
            image_put(&call->images[ATTENTION_V_SCALE], 3, token, h, 0, 0x1p28f);
        }
        attention_run(call);
        attention_expect_reference(call);
        attention_close(call);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        bytes_match_the_reference,
        nibbles_match_the_reference,
        blocks_match_the_reference,
        pages_and_blocks_of_rows_match_the_reference,
        poison_of_hidden_codes_changes_no_bit,
        scales_of_any_magnitude_match_the_reference,
        a_great_scale_of_a_key_without_weight_changes_nothing,
    };
    const int result = run_suite("decode_matrix_quantised", tests, COUNT(tests));

    test_session_close();
    return result;
}

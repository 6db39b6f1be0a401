/* Products of queries and codes in the lanes family. CTest runs these with LANES_DOT=1 (CMakeLists.txt), so that devices
 * without the instruction go the way of those that have it. */
#include "support/option_cases.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { HEAD_DIM = 128, KV_HEADS = 2, Q_HEADS = 4, KV_LEN = 60 };

static const clfd_type kv_types[] = {CLFD_TYPE_Q8_0, CLFD_TYPE_Q4_0, CLFD_TYPE_INT8, CLFD_TYPE_INT4};
static const clfd_type q_types[] = {CLFD_TYPE_F16, CLFD_TYPE_BF16, CLFD_TYPE_F32};

#define FOR_EACH_TYPE(type, types) for (const clfd_type *type = types; type < types + COUNT(types); type++)

static attention_problem dot_case(clfd_type q_type, clfd_type kv_type)
{
    static const int32_t kv_lens[1] = {KV_LEN};
    attention_problem p = option_case((clfd_attention){.head_dim = HEAD_DIM, .k_type = kv_type, .v_type = kv_type});

    p.attention.max_batch = p.batch = 1;
    p.attention.max_kv_len = 64;
    p.attention.q_type = q_type;
    p.attention.num_kv_heads = KV_HEADS; /* those of blocks begin on odd multiples of 8 bytes in the second one */
    p.attention.num_q_heads = Q_HEADS;
    p.attention.q_len = 1;
    p.attention.tuning = "family=decode_lanes wg=32 lanes=4 unroll=2 ahead=2 parts=1";
    p.kv_lens = kv_lens;
    return p;
}

/* The same numbers between -1 and 1 every time. */
static float number(uint32_t i, uint32_t d) { return (float)((i * 37 + d * 101 + i * d * 7) % 61) / 30.0f - 1.0f; }

static void put_key(attention_call *call, uint32_t key, const float *values)
{
    const key_place place = {0, key};

    for (uint32_t head = 0; head < KV_HEADS; head++)
        attention_put_row(call, ATTENTION_K, &place, head, values);
}

/* Keys whose element `d` is `value`; by what it is multiplied turns round the keys. */
static void put_keys(attention_call *call, uint32_t chosen, float value, const float *factors, uint32_t num_factors)
{
    float row[HEAD_DIM];

    for (uint32_t key = 0; key < KV_LEN; key++) {
        for (uint32_t d = 0; d < HEAD_DIM; d++)
            row[d] = d == chosen ? value * factors[key % num_factors] : number(key, d);
        put_key(call, key, row);
    }
}

static void put_query(attention_call *call, uint32_t head, uint32_t chosen, float value)
{
    for (uint32_t d = 0; d < HEAD_DIM; d++)
        image_put(&call->images[ATTENTION_Q], 0, 0, head, d, d == chosen ? value : number(head, d));
}

static void finish(attention_call *call)
{
    attention_run(call);
    attention_expect_reference(call);
    attention_close(call);
}

/* What it leaves of the bits of the others must do; no key has anything in its place that would drown them. */
START_TEST(an_element_far_above_the_others_takes_nothing_from_them)
{
    static const float none[] = {0.0f};

    FOR_EACH_TYPE(q_type, q_types)
    FOR_EACH_TYPE(kv_type, kv_types)
    {
        const attention_problem p = dot_case(*q_type, *kv_type);
        attention_call *const call = attention_open(&p);
        put_keys(call, 37, 0.0f, none, 1);
        for (uint32_t head = 0; head < Q_HEADS; head++)
            put_query(call, head, 37, head % 2 == 0 ? 4096.0f : -4096.0f);
        finish(call);
    }
}
END_TEST

/* The same of many of them: five of eight. */
START_TEST(many_elements_far_above_the_others_take_nothing_from_them)
{
    FOR_EACH_TYPE(q_type, q_types)
    FOR_EACH_TYPE(kv_type, kv_types)
    {
        const attention_problem p = dot_case(*q_type, *kv_type);
        attention_call *const call = attention_open(&p);
        float row[HEAD_DIM];
        for (uint32_t key = 0; key < KV_LEN; key++) {
            for (uint32_t d = 0; d < HEAD_DIM; d++)
                row[d] = d % 8 < 5 ? 0.0f : number(key, d);
            put_key(call, key, row);
        }
        for (uint32_t head = 0; head < Q_HEADS; head++)
            for (uint32_t d = 0; d < HEAD_DIM; d++)
                image_put(&call->images[ATTENTION_Q], 0, 0, head, d, d % 8 < 5 ? 60000.0f : 0.03f * number(head, d));
        finish(call);
    }
}
END_TEST

START_TEST(a_query_of_zeros_weighs_all_keys_alike)
{
    FOR_EACH_TYPE(q_type, q_types)
    FOR_EACH_TYPE(kv_type, kv_types)
    {
        const attention_problem p = dot_case(*q_type, *kv_type);
        attention_call *const call = attention_open(&p);
        image_put_row(&call->images[ATTENTION_Q], 0, 0, 0, 0.0f);
        image_put_row(&call->images[ATTENTION_Q], 0, 0, 1, -0.0f);
        attention_run(call);
        attention_expect_reference(call);
        ck_assert(fabs(call->lse[0] - log(KV_LEN)) < 1e-5 && fabs(call->lse[1] - log(KV_LEN)) < 1e-5);
        attention_close(call);
    }
}
END_TEST

/* Codes of both signs and of 0 make all three of what the product with an infinity can be. Rows beside it, of the same
 * block and of others, stay as they are. */
START_TEST(infinities_and_nan_in_a_query_match_the_reference)
{
    static const float elements[] = {INFINITY, -INFINITY, NAN};
    static const float factors[][3] = {
        {1.0f, 1.0f, 1.0f}, {-1.0f, -1.0f, -1.0f}, {1.0f, -1.0f, 1.0f}, {-1.0f, -1.0f, 0.0f}};

    FOR_EACH_TYPE(q_type, q_types)
    FOR_EACH_TYPE(kv_type, kv_types)
    for (size_t e = 0; e < COUNT(elements); e++)
        for (size_t f = 0; f < COUNT(factors); f++) {
            const attention_problem p = dot_case(*q_type, *kv_type);
            attention_call *const call = attention_open(&p);
            put_keys(call, 70, 1.0f, factors[f], 3);
            put_query(call, 1, 70, elements[e]);
            put_query(call, 2, 70, elements[e]);
            attention_run(call);
            attention_expect_reference(call);
            const bool hidden = f <= 1 && elements[e] == (f == 0 ? -INFINITY : INFINITY);
            ck_assert(hidden ? call->lse[1] == -INFINITY : isnan(call->lse[1]) != 0);
            ck_assert(isfinite(call->lse[0]) && isfinite(call->lse[3]));
            attention_close(call);
        }
}
END_TEST

/* The bytes of a row's codes, whatever the type. */
static void put_codes(attention_call *call, uint32_t key, uint32_t head, unsigned char byte)
{
    const tensor_image *const k = &call->images[ATTENTION_K];

    for (uint32_t d = 0; d < HEAD_DIM; d += 32) {
        unsigned char *const at = image_at(k, 0, key, head, d);
        if (k->type == CLFD_TYPE_Q8_0 || k->type == CLFD_TYPE_Q4_0)
            memset(at + 2, byte, k->type == CLFD_TYPE_Q8_0 ? 32 : 16);
        else
            memset(at, byte, k->type == CLFD_TYPE_INT8 ? 32 : 16);
    }
}

/* Sums of the greatest codes and the greatest digits, all of one sign: the furthest that they go. */
START_TEST(the_greatest_sums_match_the_reference)
{
    static const unsigned char bytes[][2] = {{0x80, 0x7f}, {0x00, 0xff}, {0x80, 0x7f}, {0x88, 0x77}}; /* by kv_types */
    static const float values[] = {65504.0f, -65504.0f, 65024.0f, -65280.0f};

    FOR_EACH_TYPE(q_type, q_types)
    FOR_EACH_TYPE(kv_type, kv_types)
    {
        attention_problem p = dot_case(*q_type, *kv_type);
        p.attention.scale = 1e-6f;
        attention_call *const call = attention_open(&p);
        float ones[HEAD_DIM];
        for (uint32_t d = 0; d < HEAD_DIM; d++)
            ones[d] = 1.0f;
        for (uint32_t key = 0; key < KV_LEN; key++) {
            put_key(call, key, ones);
            for (uint32_t head = 0; head < KV_HEADS; head++)
                put_codes(call, key, head, bytes[kv_type - kv_types][key % 2]);
        }
        for (uint32_t head = 0; head < Q_HEADS; head++)
            image_put_row(&call->images[ATTENTION_Q], 0, 0, head, values[head]);
        finish(call);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        an_element_far_above_the_others_takes_nothing_from_them,
        many_elements_far_above_the_others_take_nothing_from_them,
        a_query_of_zeros_weighs_all_keys_alike,
        infinities_and_nan_in_a_query_match_the_reference,
        the_greatest_sums_match_the_reference,
    };
    const int result = run_suite("lanes_dot", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

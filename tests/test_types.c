/* Element types in kernels (cl/types.cl): every code of f16 and of bf16 goes through q, K and V of a decode, and out rounds
 * as the host does. One key per head, 65,536 heads of their own: a head's out is its V, its lse is its score. */
#include "support/attention.h"
#include "support/suite.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { NUM_CODES = 65536, DIM = 16 };

static const char *const tunings[] = {
    NULL,
    "family=decode_vector width=8 tile=1 prefetch=0",
    "family=decode_vector width=16 tile=16",
    "family=decode_lanes exchange=local wg=8 lanes=8 parts=1",
};
#define NUM_FORMS (sizeof tunings / sizeof tunings[0])

/* q and K one-hot at dim 0, V zero. */
static attention_call *open_heads(const char *tuning, clfd_type q_type, clfd_type kv_type, clfd_type out_type)
{
    const attention_problem p = {.attention = {.num_q_heads = NUM_CODES,
                                               .head_dim = DIM,
                                               .q_type = q_type,
                                               .k_type = kv_type,
                                               .out_type = out_type,
                                               .max_kv_len = 1,
                                               .scale = 1.0f,
                                               .tuning = tuning}};
    attention_call *const call = attention_open(&p);
    tensor_image *const images = call->images;

    for (uint32_t h = 0; h < NUM_CODES; h++) {
        image_put_row(&images[ATTENTION_V], 0, 0, h, 0.0f);
        for (uint32_t d = 0; d < DIM; d++) {
            image_put(&images[ATTENTION_Q], 0, 0, h, d, d == 0 ? 1.0f : 0.0f);
            image_put(&images[ATTENTION_K], 0, 0, h, d, d == 0 ? 1.0f : 0.0f);
        }
    }
    return call;
}

/* Code h at [h][0] of a tensor whose type has 16 bits. */
static void put_codes(tensor_image *image)
{
    for (uint32_t h = 0; h < NUM_CODES; h++) {
        const uint16_t code = (uint16_t)h;
        *(uint16_t *)image_at(image, 0, 0, h, 0) = code;
    }
}

/* What a device without CL_FP_DENORM may make of a subnormal float. */
static bool is_flushed(float actual, double exact) { return fabs(exact) < (double)FLT_MIN && actual == 0.0f; }

/* A score is held in units of log2 and comes back in natural ones: two roundings, and beyond FLT_MAX * ln 2 it is
 * infinite. The matrix family's maximum lies a few units beside the greatest score, which costs the digits of small ones. */
static bool is_score(float lse, float code, const char *plan)
{
    const double beside = strstr(plan, "decode_matrix") != NULL ? 1e-6 : 0.0;
    static const float greatest = FLT_MAX * 0.6931471f;

    if (isnan(code) || code > greatest)
        return isnan(lse);
    if (code < -greatest)
        return lse == -INFINITY;
    return fabs((double)lse - (double)code) <= 3e-7 * fabs((double)code) + beside || is_flushed(lse, (double)code);
}

/* All codes in q or K, whose product with the other's 1 is the score. */
static void expect_codes_as_scores(attention_tensor tensor, clfd_type type)
{
    for (size_t f = 0; f < NUM_FORMS; f++) {
        attention_call *const call = open_heads(tunings[f], type, type, CLFD_TYPE_F32);
        put_codes(&call->images[tensor]);
        attention_run(call);
        for (uint32_t h = 0; h < NUM_CODES; h++) {
            const float code = image_get(&call->images[tensor], 0, 0, h, 0);
            EXPECT(is_score(call->lse[h], code, clfd_plan_describe(call->plan)),
                   "%s code %04x, %.9g, gives the score %.9g in %s", clfd_type_name(type), h, code, call->lse[h],
                   clfd_plan_describe(call->plan));
        }
        attention_close(call);
    }
}

START_TEST(all_f16_codes_of_q_are_exact) { expect_codes_as_scores(ATTENTION_Q, CLFD_TYPE_F16); }
END_TEST
START_TEST(all_bf16_codes_of_q_are_exact) { expect_codes_as_scores(ATTENTION_Q, CLFD_TYPE_BF16); }
END_TEST
START_TEST(all_f16_codes_of_keys_are_exact) { expect_codes_as_scores(ATTENTION_K, CLFD_TYPE_F16); }
END_TEST
START_TEST(all_bf16_codes_of_keys_are_exact) { expect_codes_as_scores(ATTENTION_K, CLFD_TYPE_BF16); }
END_TEST

static void expect_codes_as_values(clfd_type type)
{
    for (size_t f = 0; f < NUM_FORMS; f++) {
        attention_call *const call = open_heads(tunings[f], type, type, CLFD_TYPE_F32);
        put_codes(&call->images[ATTENTION_V]);
        attention_run(call);
        for (uint32_t h = 0; h < NUM_CODES; h++) {
            const float code = image_get(&call->images[ATTENTION_V], 0, 0, h, 0), out = attention_out(call, 0, 0, h)[0];
            EXPECT(isnan(code) ? isnan(out) : out == code || is_flushed(out, (double)code),
                   "%s code %04x, %.9g, comes out as %.9g in %s", clfd_type_name(type), h, code, out,
                   clfd_plan_describe(call->plan));
        }
        attention_close(call);
    }
}

START_TEST(all_f16_codes_of_values_are_exact) { expect_codes_as_values(CLFD_TYPE_F16); }
END_TEST
START_TEST(all_bf16_codes_of_values_are_exact) { expect_codes_as_values(CLFD_TYPE_BF16); }
END_TEST

/* Eight floats, twice, round a code of the 16-bit type: itself, where rounding turns, and the neighbours of both. */
static void floats_round_code(clfd_type type, uint16_t code, float floats[DIM])
{
    const uint16_t next_code = (uint16_t)(code + 1);
    float x, next;

    clfd_convert_to_float(type, &code, &x, 1);
    clfd_convert_to_float(type, &next_code, &next, 1);
    /* Past the greatest finite code rounding turns where a next one would lie half-way. */
    if (isinf(next))
        next = x + (x - nextafterf(x, 0.0f)) * (type == CLFD_TYPE_F16 ? 8192.0f : 65536.0f);
    const float middle = (float)((double)x / 2.0 + (double)next / 2.0);
    floats[0] = x;
    floats[1] = middle;
    floats[2] = nextafterf(middle, INFINITY);
    floats[3] = nextafterf(middle, -INFINITY);
    floats[4] = nextafterf(x, INFINITY);
    floats[5] = nextafterf(x, -INFINITY);
    floats[6] = next;
    floats[7] = x * 1.0001f;
    memcpy(floats + 8, floats, 8 * sizeof floats[0]);
}

static void expect_out_rounded(clfd_type type)
{
    for (size_t f = 0; f < NUM_FORMS; f++) {
        attention_call *const call = open_heads(tunings[f], CLFD_TYPE_F32, CLFD_TYPE_F32, type);
        float given[DIM], expected[DIM];
        uint16_t rounded[DIM];
        for (uint32_t h = 0; h < NUM_CODES; h++) {
            floats_round_code(type, (uint16_t)h, given);
            for (uint32_t d = 0; d < DIM; d++)
                image_put(&call->images[ATTENTION_V], 0, 0, h, d, given[d]);
        }
        attention_run(call);
        for (uint32_t h = 0; h < NUM_CODES; h++) {
            const float *const out = attention_out(call, 0, 0, h);
            floats_round_code(type, (uint16_t)h, given);
            clfd_convert_from_float(type, given, rounded, DIM);
            clfd_convert_to_float(type, rounded, expected, DIM);
            for (uint32_t d = 0; d < DIM; d++)
                EXPECT(isnan(expected[d]) ? isnan(out[d])
                                          : out[d] == expected[d] || is_flushed(out[d], (double)given[d]),
                       "%a becomes the %s %a instead of %a in %s", given[d], clfd_type_name(type), out[d], expected[d],
                       clfd_plan_describe(call->plan));
        }
        attention_close(call);
    }
}

START_TEST(f16_out_rounds_to_nearest_even) { expect_out_rounded(CLFD_TYPE_F16); }
END_TEST
START_TEST(bf16_out_rounds_to_nearest_even) { expect_out_rounded(CLFD_TYPE_BF16); }
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        all_f16_codes_of_q_are_exact,     all_bf16_codes_of_q_are_exact,     all_f16_codes_of_keys_are_exact,
        all_bf16_codes_of_keys_are_exact, all_f16_codes_of_values_are_exact, all_bf16_codes_of_values_are_exact,
        f16_out_rounds_to_nearest_even,   bf16_out_rounds_to_nearest_even,
    };
    const int result = run_suite("types", tests, sizeof tests / sizeof tests[0]);

    test_session_close();
    return result;
}

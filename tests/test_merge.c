/* Merging states on the device: N-way and pairwise, both formats, against the operators on the host; empty and invalid
 * states; accumulators. Every test runs with the work-group of this device and with the one that GPUs get. */
#include "run/context.h"
#include "support/compare.h"
#include "support/random.h"
#include "support/session.h"
#include "support/suite.h"
#include <math.h>
#include <string.h>

#define MAX_STATES 70
#define MAX_ROWS 5
#define MAX_DIM 576
#define GUARD 16 /* floats on either side of every array */

/* States of all rows on the host, [row][state], and the same on the device. */
typedef struct state_set {
    float o[MAX_ROWS * MAX_STATES * MAX_DIM];
    float lse[MAX_ROWS * MAX_STATES], m[MAX_ROWS * MAX_STATES], l[MAX_ROWS * MAX_STATES];
    size_t count; /* states in all */
    clfd_state_buffers device;
} state_set;

static state_set given, other, merged;

static struct merge_case {
    clfd_partial partial;
    uint32_t rows, num_states, dim;
    clfd_type out_type;
    clfd_merge_plan *plan;
} test;

/* ---- The library with either work-group -------------------------------------------------------------------------- */

static clfd_context *contexts[2];

static void open_contexts(void)
{
    test_session *const session = test_session_get();

    if (contexts[0] != NULL)
        return;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(clfd_context_create(session->cl, session->device, NULL, &contexts[i]), CLFD_SUCCESS);
    contexts[1]->caps.type = CL_DEVICE_TYPE_GPU; /* chooses the work-group */
}

static void open_case(int context, clfd_partial partial, uint32_t rows, uint32_t num_states, uint32_t dim,
                      clfd_type out_type)
{
    const clfd_merge merge = {.struct_size = sizeof merge,
                              .max_rows = rows + 1,
                              .num_states = num_states,
                              .head_dim_v = dim,
                              .partial = partial,
                              .out_type = out_type};

    open_contexts();
    test = (struct merge_case){partial, rows, num_states, dim, out_type, NULL};
    ck_assert_int_eq(clfd_merge_plan_create(contexts[context], &merge, &test.plan), CLFD_SUCCESS);
}

/* ---- States ------------------------------------------------------------------------------------------------------ */

/* Random states, every fifth one empty with NaN for its o. */
static void draw_states(state_set *set, size_t count, uint64_t seed)
{
    random_source source = {seed};

    set->count = count;
    random_fill_normal(&source, set->o, count * test.dim, 1.0f);
    for (size_t i = 0; i < count; i++) {
        const bool empty = random_below(&source, 5) == 0;
        set->m[i] = empty ? -INFINITY : 4.0f * random_normal(&source);
        set->l[i] = empty ? 0.0f : random_uniform(&source, 1.0f, 50.0f);
        set->lse[i] = clfd_state_lse(set->m[i], set->l[i]);
        for (size_t d = 0; empty && d < test.dim; d++)
            set->o[i * test.dim + d] = NAN;
    }
}

/* State i becomes (S, o) with S = m + log l, o[d] = o0 + d. */
static void put_state(state_set *set, size_t i, float m, float l, float o0)
{
    set->m[i] = m;
    set->l[i] = l;
    set->lse[i] = l == 0.0f ? -INFINITY : m + logf(l);
    for (size_t d = 0; d < test.dim; d++)
        set->o[i * test.dim + d] = o0 + (float)d;
}

/* An array of floats with guards of 0xFF bytes round it. */
static clfd_buffer upload(const float *values, size_t count)
{
    const size_t bytes = count * sizeof(float);
    const cl_mem mem = test_buffer_create(CL_MEM_READ_WRITE, bytes + 2 * GUARD * sizeof(float), 0xff);

    if (values != NULL)
        ck_assert_int_eq(clEnqueueWriteBuffer(test_session_get()->queue, mem, CL_TRUE, GUARD * sizeof(float), bytes,
                                              values, 0, NULL, NULL),
                         CL_SUCCESS);
    return test_buffer(mem, GUARD * sizeof(float));
}

static void upload_states(state_set *set)
{
    memset(&set->device, 0, sizeof set->device);
    set->device.o = upload(set->o, set->count * test.dim);
    if (test.partial == CLFD_PARTIAL_LSE) {
        set->device.lse = upload(set->lse, set->count);
    } else {
        set->device.m = upload(set->m, set->count);
        set->device.l = upload(set->l, set->count);
    }
}

/* Room for one state more than there are rows. */
static void create_result(void)
{
    memset(&merged.device, 0, sizeof merged.device);
    merged.device.o = upload(NULL, (test.rows + 1) * test.dim);
    if (test.partial == CLFD_PARTIAL_LSE) {
        merged.device.lse = upload(NULL, test.rows + 1);
    } else {
        merged.device.m = upload(NULL, test.rows + 1);
        merged.device.l = upload(NULL, test.rows + 1);
    }
}

static void release_states(state_set *set)
{
    const clfd_buffer *const all[] = {&set->device.o, &set->device.lse, &set->device.m, &set->device.l};

    for (size_t i = 0; i < 4; i++)
        if (all[i]->mem != NULL)
            clReleaseMemObject(all[i]->mem);
}

/* Reads count values of `bytes` each and requires the guards, and room that was not to be written, to hold 0xFF. */
static void download(const clfd_buffer *buffer, void *values, size_t count, size_t bytes)
{
    static unsigned char data[(MAX_ROWS * MAX_DIM + MAX_DIM + 2 * GUARD) * sizeof(float)];
    const size_t before = GUARD * sizeof(float);
    size_t all;

    if (buffer->mem == NULL)
        return;
    clGetMemObjectInfo(buffer->mem, CL_MEM_SIZE, sizeof all, &all, NULL);
    ck_assert_uint_le(all, sizeof data);
    test_buffer_read(buffer->mem, 0, data, all);
    if (count > 0) {
        memcpy(values, data + before, count * bytes);
        memset(data + before, 0xff, count * bytes);
    }
    for (size_t i = 0; i < all; i++)
        EXPECT(data[i] == 0xff, "byte %zu of a result was written", i);
}

static void download_state(state_set *set)
{
    static uint16_t narrow[MAX_ROWS * MAX_DIM];
    const size_t values = test.rows * test.dim;

    if (test.out_type == CLFD_TYPE_F32) {
        download(&set->device.o, set->o, values, sizeof(float));
    } else {
        download(&set->device.o, narrow, values, sizeof narrow[0]);
        clfd_convert_to_float(test.out_type, narrow, set->o, values);
    }
    download(&set->device.lse, set->lse, test.rows, sizeof(float));
    download(&set->device.m, set->m, test.rows, sizeof(float));
    download(&set->device.l, set->l, test.rows, sizeof(float));
}

/* ---- Merging both ways ------------------------------------------------------------------------------------------- */

/* Merges `given` on the device into `merged`. */
static void merge(void)
{
    upload_states(&given);
    create_result();
    ck_assert_int_eq(clfd_enqueue_merge(test.plan, test_session_get()->queue, test.rows, &given.device, &merged.device,
                                        0, NULL, NULL),
                     CLFD_SUCCESS);
    download_state(&merged);
    release_states(&given);
    release_states(&merged);
    clfd_merge_plan_release(test.plan);
}

typedef enum target { INTO_NEW, INTO_A, INTO_B } target;

/* Merges `given` (+) `other` on the device into `merged`, which may be one of them. */
static void merge_pair(target where)
{
    state_set *const into = where == INTO_NEW ? &merged : where == INTO_A ? &given : &other;

    upload_states(&given);
    upload_states(&other);
    create_result();
    ck_assert_int_eq(clfd_enqueue_merge_pair(test.plan, test_session_get()->queue, test.rows, &given.device,
                                             &other.device, &into->device, 0, NULL, NULL),
                     CLFD_SUCCESS);
    test.out_type = CLFD_TYPE_F32;
    const clfd_state_buffers results = into->device, spare = merged.device;
    merged.device = results;
    download_state(&merged);
    merged.device = spare;
    release_states(&given);
    release_states(&other);
    release_states(&merged);
    clfd_merge_plan_release(test.plan);
}

/* Requires row `row` of `merged` to be this state, to a tolerance. */
static void expect_row(size_t row, const float *o, float lse, float m, float l, compare_tolerance tolerance)
{
    const float *const out = merged.o + row * test.dim;

    for (size_t d = 0; d < test.dim; d++)
        EXPECT(compare_value(out[d], o[d], tolerance), "o[%zu][%zu] of %u states is %.9g instead of %.9g", row, d,
               test.num_states, out[d], o[d]);
    if (test.partial == CLFD_PARTIAL_LSE)
        EXPECT(compare_value(merged.lse[row], lse, tolerance), "lse[%zu] is %.9g instead of %.9g", row, merged.lse[row],
               lse);
    else
        EXPECT(compare_value(merged.m[row], m, tolerance) && compare_value(merged.l[row], l, tolerance),
               "(m, l)[%zu] is (%.9g, %.9g) instead of (%.9g, %.9g)", row, merged.m[row], merged.l[row], m, l);
}

/* Merges num_states states of `given` per row on the host and compares. */
static void expect_host_merge(compare_tolerance tolerance)
{
    static float o[MAX_DIM];
    float lse = 0.0f, m = 0.0f, l = 0.0f;

    for (size_t row = 0; row < test.rows; row++) {
        const size_t first = row * test.num_states;
        if (test.partial == CLFD_PARTIAL_LSE)
            clfd_merge_lse(test.num_states, given.o + first * test.dim, test.dim, given.lse + first, test.dim, o, &lse);
        else
            clfd_merge_mlo_sequential(test.num_states, given.o + first * test.dim, test.dim, given.m + first,
                                      given.l + first, test.dim, o, &m, &l);
        expect_row(row, o, lse, m, l, tolerance);
    }
}

#define FOR_BOTH                                                                                                       \
    for (int context = 0; context < 2; context++)                                                                      \
        for (clfd_partial partial = CLFD_PARTIAL_LSE; partial <= CLFD_PARTIAL_MLO; partial++)

START_TEST(merge_of_any_number_of_states_matches_the_host)
{
    static const uint32_t counts[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 70};

    FOR_BOTH
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        open_case(context, partial, 3, counts[i], 64, CLFD_TYPE_F32);
        draw_states(&given, 3 * counts[i], i);
        merge();
        expect_host_merge(TOLERANCE_STATE);
    }
}
END_TEST

START_TEST(merge_of_any_dim_matches_the_host)
{
    static const uint32_t dims[] = {8, 24, 264, 576};

    for (int context = 0; context < 2; context++)
        for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
            open_case(context, i % 2 == 0 ? CLFD_PARTIAL_LSE : CLFD_PARTIAL_MLO, 2, 11, dims[i], CLFD_TYPE_F32);
            draw_states(&given, 22, i);
            merge();
            expect_host_merge(TOLERANCE_STATE);
        }
}
END_TEST

START_TEST(merged_o_has_the_type_of_the_plan)
{
    for (int context = 0; context < 2; context++)
        for (clfd_type type = CLFD_TYPE_F16; type <= CLFD_TYPE_BF16; type++) {
            open_case(context, CLFD_PARTIAL_LSE, 5, 3, 64, type);
            draw_states(&given, 15, type);
            merge();
            expect_host_merge(type == CLFD_TYPE_F16 ? TOLERANCE_OUT_F16 : TOLERANCE_OUT_BF16);
        }
}
END_TEST

START_TEST(pairwise_merge_matches_the_host_and_may_be_an_accumulator)
{
    FOR_BOTH
    for (target where = INTO_NEW; where <= INTO_B; where++) {
        static float o[MAX_DIM];
        float lse = 0.0f, m = 0.0f, l = 0.0f;
        open_case(context, partial, 4, 2, 64, CLFD_TYPE_F32);
        draw_states(&given, 4, 1);
        draw_states(&other, 4, 2);
        merge_pair(where);
        for (size_t row = 0; row < 4; row++) {
            const float *const a = given.o + row * test.dim, *const b = other.o + row * test.dim;
            if (partial == CLFD_PARTIAL_LSE)
                clfd_merge_pair_lse(a, given.lse[row], b, other.lse[row], test.dim, o, &lse);
            else
                clfd_merge_pair_mlo(a, given.m[row], given.l[row], b, other.m[row], other.l[row], test.dim, o, &m, &l);
            expect_row(row, o, lse, m, l, TOLERANCE_STATE);
        }
    }
}
END_TEST

/* ---- Empty and invalid states ------------------------------------------------------------------------------------ */

/* Whether row `row` of `merged` is state i of `set`, bit for bit. */
static bool is_copy(size_t row, const state_set *set, size_t i)
{
    const size_t bytes = test.dim * sizeof(float);

    return memcmp(merged.o + row * test.dim, set->o + i * test.dim, bytes) == 0 &&
           (test.partial == CLFD_PARTIAL_LSE ? merged.lse[row] == set->lse[i]
                                             : merged.m[row] == set->m[i] && merged.l[row] == set->l[i]);
}

/* A state whose bits are easily lost: zeros of both signs, a subnormal, the greatest and the least float. */
static void put_delicate_state(state_set *set, size_t i)
{
    static const float values[] = {-0.0f, 0.0f, 1e-40f, 3.4028235e38f, -1.17549435e-38f, 0.333333343f, -65504.0f, 1.0f};

    put_state(set, i, -7.3f, 3.7f, 0.0f);
    for (size_t d = 0; d < test.dim; d++)
        set->o[i * test.dim + d] = values[d % 8];
}

static void put_empty_state(state_set *set, size_t i) { put_state(set, i, -INFINITY, 0.0f, NAN); }

/* One state at each place among empty ones; alone where there is one place. */
START_TEST(merge_of_one_state_is_a_copy_wherever_it_stands)
{
    static const uint32_t counts[] = {1, 2, 5, 20};

    FOR_BOTH
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
        for (size_t place = 0; place < counts[c]; place += 1 + counts[c] / 4) {
            open_case(context, partial, 1, counts[c], 64, CLFD_TYPE_F32);
            given.count = counts[c];
            for (size_t i = 0; i < counts[c]; i++)
                put_empty_state(&given, i);
            put_delicate_state(&given, place);
            merge();
            EXPECT(is_copy(0, &given, place), "state %zu of %u changed", place, counts[c]);
        }
}
END_TEST

START_TEST(pairwise_merge_with_an_empty_side_is_a_copy_in_both_orders)
{
    FOR_BOTH
    for (target where = INTO_NEW; where <= INTO_B; where++) {
        open_case(context, partial, 2, 2, 64, CLFD_TYPE_F32);
        given.count = other.count = 2;
        put_delicate_state(&given, 0);
        put_empty_state(&other, 0);
        put_empty_state(&given, 1);
        put_delicate_state(&other, 1);
        merge_pair(where);
        ck_assert(is_copy(0, &given, 0));
        ck_assert(is_copy(1, &other, 1));
    }
}
END_TEST

START_TEST(merge_of_empty_states_is_empty)
{
    static const float nothing[64] = {0.0f};

    FOR_BOTH
    for (uint32_t count = 1; count <= 9; count += 4) {
        open_case(context, partial, 2, count, 64, CLFD_TYPE_F32);
        draw_states(&given, 2 * count, count);
        for (size_t i = 0; i < 2 * count; i++)
            put_empty_state(&given, i);
        merge();
        for (size_t row = 0; row < 2; row++) {
            ck_assert_int_eq(memcmp(merged.o + row * 64, nothing, sizeof nothing), 0);
            expect_row(row, nothing, -INFINITY, -INFINITY, 0.0f, TOLERANCE_EXACT);
        }
        open_case(context, partial, 1, 2, 64, CLFD_TYPE_F32);
        given.count = other.count = 1;
        put_empty_state(&other, 0);
        merge_pair(INTO_A);
        ck_assert_int_eq(memcmp(merged.o, nothing, sizeof nothing), 0);
        expect_row(0, nothing, -INFINITY, -INFINITY, 0.0f, TOLERANCE_EXACT);
    }
}
END_TEST

/* Under MLO a state with either of m = -inf and l = 0 is empty. */
START_TEST(either_sign_of_an_empty_mlo_state_is_enough)
{
    for (int context = 0; context < 2; context++) {
        open_case(context, CLFD_PARTIAL_MLO, 1, 3, 64, CLFD_TYPE_F32);
        given.count = 3;
        put_state(&given, 0, -INFINITY, 5.0f, NAN);
        put_state(&given, 1, 1000.0f, 0.0f, NAN);
        put_delicate_state(&given, 2);
        merge();
        ck_assert(is_copy(0, &given, 2));
    }
}
END_TEST

/* NaN in S, m or l, and +inf, give NaN in all of the row's result, at any place, and leave the other row alone. */
START_TEST(invalid_state_gives_nan_in_its_row_and_no_other)
{
    static const float invalid[] = {NAN, -NAN, INFINITY};
    static float nan_o[64];

    for (size_t d = 0; d < 64; d++)
        nan_o[d] = NAN;
    FOR_BOTH
    for (size_t i = 0; i < 3; i++)
        for (size_t place = 0; place < 3; place++)
            for (int in_l = 0; in_l <= (partial == CLFD_PARTIAL_MLO); in_l++) {
                open_case(context, partial, 2, 3, 64, CLFD_TYPE_F32);
                given.count = 6;
                for (size_t s = 0; s < 6; s++)
                    put_state(&given, s, (float)s, 1.0f, 2.0f);
                put_empty_state(&given, place == 0 ? 1 : 0);
                given.lse[place] = invalid[i];
                if (in_l)
                    given.l[place] = invalid[i];
                else
                    given.m[place] = invalid[i];
                merge();
                expect_row(0, nan_o, NAN, NAN, NAN, TOLERANCE_EXACT);
                for (size_t d = 0; d < 64; d++)
                    EXPECT(compare_value(merged.o[64 + d], 2.0 + (double)d, TOLERANCE_STATE), "another row changed");
            }
}
END_TEST

/* +inf is invalid beside either sign of an empty state, too. */
START_TEST(infinite_statistic_beside_the_sign_of_an_empty_state_gives_nan)
{
    static const float pairs[][2] = {{-INFINITY, INFINITY}, {INFINITY, 0.0f}, {-INFINITY, NAN}, {NAN, 0.0f}};
    static float nan_o[64];

    for (size_t d = 0; d < 64; d++)
        nan_o[d] = NAN;
    for (int context = 0; context < 2; context++)
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
            open_case(context, CLFD_PARTIAL_MLO, 1, 2, 64, CLFD_TYPE_F32);
            given.count = 2;
            put_state(&given, 0, 0.0f, 1.0f, 2.0f);
            put_state(&given, 1, pairs[i][0], pairs[i][1], 2.0f);
            merge();
            expect_row(0, nan_o, NAN, NAN, NAN, TOLERANCE_EXACT);
        }
}
END_TEST

/* A weight that is too small for a float is not an empty state: a NaN in its o is seen. */
START_TEST(nan_in_a_state_of_vanishing_weight_reaches_its_element)
{
    FOR_BOTH
    {
        open_case(context, partial, 1, 2, 64, CLFD_TYPE_F32);
        given.count = 2;
        put_state(&given, 0, -500.0f, 1.0f, 2.0f);
        put_state(&given, 1, 0.0f, 1.0f, 2.0f);
        given.o[3] = NAN;
        merge();
        for (size_t d = 0; d < 64; d++)
            EXPECT(d == 3 ? isnan(merged.o[d]) : merged.o[d] == 2.0f + (float)d, "element %zu is %g", d,
                   (double)merged.o[d]);
    }
}
END_TEST

START_TEST(invalid_side_gives_nan_in_a_pairwise_merge)
{
    static const float invalid[] = {NAN, INFINITY};
    static float nan_o[64];

    for (size_t d = 0; d < 64; d++)
        nan_o[d] = NAN;
    FOR_BOTH
    for (size_t i = 0; i < 2; i++)
        for (int side = 0; side < 2; side++)
            for (int beside_empty = 0; beside_empty < 2; beside_empty++) {
                state_set *const bad = side == 0 ? &given : &other, *const good = side == 0 ? &other : &given;
                open_case(context, partial, 1, 2, 64, CLFD_TYPE_F32);
                given.count = other.count = 1;
                put_state(good, 0, beside_empty ? -INFINITY : 3.0f, beside_empty ? 0.0f : 1.0f, 2.0f);
                put_state(bad, 0, invalid[i], 1.0f, 2.0f);
                bad->lse[0] = invalid[i];
                merge_pair(INTO_NEW);
                expect_row(0, nan_o, NAN, NAN, NAN, TOLERANCE_EXACT);
            }
}
END_TEST

/* ---- Magnitudes and calls ---------------------------------------------------------------------------------------- */

START_TEST(states_far_apart_keep_the_heavier_one)
{
    static const float distances[] = {200.0f, 60000.0f, 1e30f};

    FOR_BOTH
    for (size_t i = 0; i < 3; i++)
        for (size_t heavier = 0; heavier < 2; heavier++) {
            open_case(context, partial, 1, 2, 64, CLFD_TYPE_F32);
            given.count = 2;
            put_state(&given, heavier, distances[i], 1.0f, 1.0f);
            put_state(&given, 1 - heavier, -distances[i], 1.0f, 1000.0f);
            merge();
            ck_assert(is_copy(0, &given, heavier));
        }
}
END_TEST

/* S = ln 2 and ln 8: a mistake of base 2 gives 0.723. */
START_TEST(weights_of_states_are_exponentials_to_the_base_e)
{
    FOR_BOTH
    {
        open_case(context, partial, 1, 2, 64, CLFD_TYPE_F32);
        given.count = 2;
        put_state(&given, 0, 0.693147181f, 1.0f, 0.0f);
        put_state(&given, 1, 2.07944154f, 1.0f, 1.0f);
        merge();
        ASSERT_VALUE(merged.o[0], 0.8, TOLERANCE_STATE);
        ASSERT_VALUE(partial == CLFD_PARTIAL_LSE ? merged.lse[0] : merged.m[0] + logf(merged.l[0]), log(10.0),
                     TOLERANCE_STATE);
    }
}
END_TEST

/* The same states merged in pairs, one after the other into an accumulator, and all at once. */
START_TEST(pairwise_merges_in_a_row_equal_the_merge_of_all)
{
    enum { N = 6, ROWS = 3, DIM = 64 };

    FOR_BOTH
    {
        static state_set all;
        open_case(context, partial, ROWS, N, DIM, CLFD_TYPE_F32);
        draw_states(&all, ROWS * N, 9);
        given = all;
        merge();
        const state_set at_once = merged;
        for (uint32_t i = 1; i < N; i++) {
            open_case(context, partial, ROWS, 2, DIM, CLFD_TYPE_F32);
            given.count = other.count = ROWS;
            for (size_t row = 0; row < ROWS; row++)
                for (int side = i == 1 ? 0 : 1; side < 2; side++) {
                    state_set *const to = side == 0 ? &given : &other;
                    const size_t from = row * N + (side == 0 ? 0 : i);
                    to->lse[row] = all.lse[from];
                    to->m[row] = all.m[from];
                    to->l[row] = all.l[from];
                    memcpy(to->o + row * DIM, all.o + from * DIM, DIM * sizeof(float));
                }
            merge_pair(INTO_A);
            given = merged;
        }
        for (size_t row = 0; row < ROWS; row++)
            expect_row(row, at_once.o + row * DIM, at_once.lse[row], at_once.m[row], at_once.l[row], TOLERANCE_STATE);
    }
}
END_TEST

START_TEST(statistics_that_nobody_wants_are_not_written)
{
    FOR_BOTH
    {
        open_case(context, partial, 3, 4, 64, CLFD_TYPE_F32);
        draw_states(&given, 12, 3);
        upload_states(&given);
        create_result();
        const clfd_state_buffers o_only = {.o = merged.device.o};
        ck_assert_int_eq(
            clfd_enqueue_merge(test.plan, test_session_get()->queue, 3, &given.device, &o_only, 0, NULL, NULL),
            CLFD_SUCCESS);
        static float o[MAX_DIM];
        float lse = 0.0f, m = 0.0f, l = 0.0f;
        download(&merged.device.o, merged.o, 3 * 64, sizeof(float));
        download(&merged.device.lse, NULL, 0, 0);
        download(&merged.device.m, NULL, 0, 0);
        download(&merged.device.l, NULL, 0, 0);
        if (partial == CLFD_PARTIAL_LSE)
            clfd_merge_lse(4, given.o, 64, given.lse, 64, o, &lse);
        else
            clfd_merge_mlo_sequential(4, given.o, 64, given.m, given.l, 64, o, &m, &l);
        for (size_t d = 0; d < 64; d++)
            EXPECT(compare_value(merged.o[d], o[d], TOLERANCE_STATE), "o[%zu] is %.9g", d, merged.o[d]);
        release_states(&given);
        release_states(&merged);
        clfd_merge_plan_release(test.plan);
    }
}
END_TEST

START_TEST(no_rows_complete_an_event_after_the_wait_list)
{
    cl_int state = CL_QUEUED;
    cl_event waited, done;

    open_case(0, CLFD_PARTIAL_LSE, 3, 2, 64, CLFD_TYPE_F32);
    waited = clCreateUserEvent(test_session_get()->cl, NULL);
    ck_assert_int_eq(
        clfd_enqueue_merge(test.plan, test_session_get()->queue, 0, &given.device, &merged.device, 1, &waited, &done),
        CLFD_SUCCESS);
    ck_assert_int_eq(clFlush(test_session_get()->queue), CL_SUCCESS);
    clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    ck_assert_int_gt(state, CL_COMPLETE);
    ck_assert_int_eq(clSetUserEventStatus(waited, CL_COMPLETE), CL_SUCCESS);
    ck_assert_int_eq(clWaitForEvents(1, &done), CL_SUCCESS);
    clReleaseEvent(waited);
    clReleaseEvent(done);
    clfd_merge_plan_release(test.plan);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        merge_of_any_number_of_states_matches_the_host,
        merge_of_any_dim_matches_the_host,
        merged_o_has_the_type_of_the_plan,
        pairwise_merge_matches_the_host_and_may_be_an_accumulator,
        merge_of_one_state_is_a_copy_wherever_it_stands,
        pairwise_merge_with_an_empty_side_is_a_copy_in_both_orders,
        merge_of_empty_states_is_empty,
        either_sign_of_an_empty_mlo_state_is_enough,
        invalid_state_gives_nan_in_its_row_and_no_other,
        infinite_statistic_beside_the_sign_of_an_empty_state_gives_nan,
        nan_in_a_state_of_vanishing_weight_reaches_its_element,
        invalid_side_gives_nan_in_a_pairwise_merge,
        states_far_apart_keep_the_heavier_one,
        weights_of_states_are_exponentials_to_the_base_e,
        pairwise_merges_in_a_row_equal_the_merge_of_all,
        statistics_that_nobody_wants_are_not_written,
        no_rows_complete_an_event_after_the_wait_list,
    };
    const int result = run_suite("merge", tests, sizeof tests / sizeof tests[0]);

    clfd_context_release(contexts[0]);
    clfd_context_release(contexts[1]);
    test_session_close();
    return result;
}

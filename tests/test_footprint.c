/* The bytes of strided tensors, against maps of bytes. */
#include "plan/footprint.h"
#include "support/random.h"
#include "support/suite.h"
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

enum { MAP_BYTES = 4096 };

/* Adds 1 to every byte of the map that the footprint covers with its first `axes` axes, from `at` on. */
static void cover(const clfd_footprint *footprint, int axes, size_t at, unsigned char *map)
{
    if (axes == 0) {
        ck_assert_uint_le(at + footprint->run, MAP_BYTES);
        for (uint64_t i = 0; i < footprint->run; i++)
            map[at + i]++;
        return;
    }
    for (uint64_t i = 0; i < footprint->count[axes - 1]; i++)
        cover(footprint, axes - 1, at + (size_t)(i * footprint->stride[axes - 1]), map);
}

static bool really_nested(const clfd_footprint *footprint)
{
    unsigned char map[MAP_BYTES] = {0};

    cover(footprint, footprint->num_axes, 0, map);
    for (size_t i = 0; i < MAP_BYTES; i++)
        if (map[i] > 1)
            return false;
    return true;
}

static bool really_apart(const clfd_footprint *a, const clfd_footprint *b, int distance)
{
    unsigned char map[2][MAP_BYTES] = {{0}};
    const size_t middle = MAP_BYTES / 2 - 512;

    cover(a, a->num_axes, middle, map[0]);
    cover(b, b->num_axes, (size_t)((int)middle + distance), map[1]);
    for (size_t i = 0; i < MAP_BYTES; i++)
        if (map[0][i] != 0 && map[1][i] != 0)
            return false;
    return true;
}

static clfd_footprint draw(random_source *source)
{
    clfd_footprint footprint = clfd_footprint_run(1 + random_below(source, 6));
    const uint32_t axes = random_below(source, 4);

    for (uint32_t i = 0; i < axes; i++)
        clfd_footprint_repeat(&footprint, 1 + random_below(source, 4), random_below(source, 60));
    return footprint;
}

START_TEST(a_footprint_ends_at_its_furthest_byte)
{
    clfd_footprint footprint = clfd_footprint_run(5);

    ck_assert_uint_eq(clfd_footprint_bytes(&footprint), 5);
    clfd_footprint_repeat(&footprint, 3, 10);
    clfd_footprint_repeat(&footprint, 1, 1u << 30);
    clfd_footprint_repeat(&footprint, 2, 100);
    clfd_footprint_repeat(&footprint, 4, 50);
    ck_assert_uint_eq(clfd_footprint_bytes(&footprint), 5 + 20 + 100 + 150);
    ck_assert_int_eq(footprint.num_axes, 3);
    ck_assert_uint_eq(footprint.stride[0], 100);
    ck_assert_uint_eq(footprint.stride[1], 50);
    ck_assert_uint_eq(footprint.stride[2], 10);
}
END_TEST

/* Nested is what steps over its inner axes; that never covers a byte twice. */
START_TEST(nested_tensors_cover_no_byte_twice)
{
    random_source source = {1};
    int nested = 0, all = 20000;

    for (int i = 0; i < all; i++) {
        const clfd_footprint footprint = draw(&source);
        if (!clfd_footprint_is_nested(&footprint))
            continue;
        nested++;
        EXPECT(really_nested(&footprint), "case %d covers a byte twice", i);
    }
    ck_assert_int_gt(nested, all / 10);
    ck_assert_int_lt(nested, all);
}
END_TEST

START_TEST(tensors_that_are_said_to_be_apart_have_no_byte_in_common)
{
    random_source source = {2};
    int apart = 0, entangled = 0;

    for (int i = 0; i < 50000; i++) {
        const clfd_footprint a = draw(&source), b = draw(&source);
        const int distance = (int)random_below(&source, 800) - 400;
        const bool inside = distance < (int)clfd_footprint_bytes(&a) && -distance < (int)clfd_footprint_bytes(&b);
        const bool said = clfd_footprints_apart(&a, &b, distance);
        EXPECT(said == clfd_footprints_apart(&b, &a, -distance), "case %d depends on the order", i);
        EXPECT(!said || really_apart(&a, &b, distance), "case %d is said to be apart", i);
        EXPECT(said || inside, "case %d is not said to be apart, and one ends before the other begins", i);
        apart += said && inside;
        entangled += !said;
    }
    ck_assert_int_gt(apart, 500);
    ck_assert_int_gt(entangled, 500);
}
END_TEST

/* The layouts that people have: found out exactly. */
START_TEST(tensors_that_interleave_alike_are_told_exactly)
{
    /* [page 3][K, V][token 4][head 2][6 bytes], heads 8 apart, and scales behind each page. */
    clfd_footprint cache = clfd_footprint_run(6), scales = clfd_footprint_run(2);

    clfd_footprint_repeat(&cache, 2, 8);
    clfd_footprint_repeat(&cache, 4, 16);
    clfd_footprint_repeat(&cache, 3, 150);
    clfd_footprint_repeat(&scales, 4, 2);
    clfd_footprint_repeat(&scales, 3, 150);
    for (int distance = -460; distance <= 460; distance++) {
        ck_assert_int_eq(clfd_footprints_apart(&cache, &cache, distance), really_apart(&cache, &cache, distance));
        ck_assert_int_eq(clfd_footprints_apart(&cache, &scales, distance), really_apart(&cache, &scales, distance));
    }
    ck_assert(clfd_footprints_apart(&cache, &cache, 64));
    ck_assert(clfd_footprints_apart(&cache, &scales, 128));
    ck_assert(clfd_footprints_apart(&cache, &scales, 62));
    ck_assert(!clfd_footprints_apart(&cache, &scales, 61));
}
END_TEST

/* Heads of q, K and V of one projection: strides of tokens equal, counts of heads not. */
START_TEST(heads_of_one_projection_are_told_apart)
{
    enum { ROW = 16, Q_HEADS = 4, KV_HEADS = 2, TOKEN = (Q_HEADS + 2 * KV_HEADS) * ROW };
    clfd_footprint q = clfd_footprint_run(ROW), k = clfd_footprint_run(ROW);

    clfd_footprint_repeat(&q, Q_HEADS, ROW);
    clfd_footprint_repeat(&q, 5, TOKEN);
    clfd_footprint_repeat(&k, KV_HEADS, ROW);
    clfd_footprint_repeat(&k, 5, TOKEN);
    for (int distance = -5 * TOKEN; distance <= 5 * TOKEN; distance++)
        ck_assert_int_eq(clfd_footprints_apart(&q, &k, distance), really_apart(&q, &k, distance));
    ck_assert(clfd_footprints_apart(&q, &k, Q_HEADS * ROW));
    ck_assert(!clfd_footprints_apart(&q, &k, Q_HEADS * ROW - 1));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_footprint_ends_at_its_furthest_byte,
        nested_tensors_cover_no_byte_twice,
        tensors_that_are_said_to_be_apart_have_no_byte_in_common,
        tensors_that_interleave_alike_are_told_exactly,
        heads_of_one_projection_are_told_apart,
    };

    return run_suite("footprint", tests, COUNT(tests));
}

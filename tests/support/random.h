/* random.h - a small seeded generator: the same numbers from the same seed on every platform. */
#ifndef SUPPORT_RANDOM_H
#define SUPPORT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* One stream of numbers; any seed will do. {.state = seed} starts it. */
typedef struct random_source {
    uint64_t state;
} random_source;

/* The next 64 random bits: splitmix64 (Steele, Lea and Flood, 2014). */
uint64_t random_bits(random_source *source);

/* 0 .. count - 1, each (for the small counts of tests) equally likely; count at least 1. */
uint32_t random_below(random_source *source, uint32_t count);

/* low <= x < high up to the rounding of the scaling; a multiple of 2^-24 of the interval. */
float random_uniform(random_source *source, float low, float high);

/* Mean 0, variance 1, never beyond +-6: the sum of twelve uniform numbers, which needs no libm. */
float random_normal(random_source *source);

/* values[i] = scale * random_normal */
void random_fill_normal(random_source *source, float *values, size_t count, float scale);

#endif

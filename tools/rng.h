/* rng.h - seeded random numbers, the same on every platform. */
#ifndef TOOLS_RNG_H
#define TOOLS_RNG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rng_state {
    uint64_t state;
} rng_state;

/* A generator that depends on the seed, on what it is for, and on a number, and on nothing else. */
rng_state rng_start(uint64_t seed, uint64_t purpose, uint64_t number);

/* 64 random bits: splitmix64 (Steele, Lea and Flood, 2014). */
uint64_t rng_bits(rng_state *rng);

/* 0 .. count - 1; count at least 1. The bias is below count / 2^64. */
uint32_t rng_below(rng_state *rng, uint32_t count);

/* low .. high, both included; low <= high. */
uint32_t rng_between(rng_state *rng, uint32_t low, uint32_t high);

/* low .. high with each power of two equally likely; low at least 1. */
uint32_t rng_log(rng_state *rng, uint32_t low, uint32_t high);

/* True in `percent` of 100 calls. */
bool rng_chance(rng_state *rng, uint32_t percent);

/* 0 <= x < 1, a multiple of 2^-24. */
float rng_uniform(rng_state *rng);

#endif

#include "rng.h"
#include <math.h>

uint64_t rng_bits(rng_state *rng)
{
    uint64_t bits = rng->state += 0x9e3779b97f4a7c15u;

    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return bits ^ bits >> 31;
}

rng_state rng_start(uint64_t seed, uint64_t purpose, uint64_t number)
{
    rng_state rng = {seed};

    rng.state = rng_bits(&rng) ^ purpose;
    rng.state = rng_bits(&rng) ^ number;
    rng.state = rng_bits(&rng);
    return rng;
}

uint32_t rng_below(rng_state *rng, uint32_t count) { return (uint32_t)(rng_bits(rng) % count); }

uint32_t rng_between(rng_state *rng, uint32_t low, uint32_t high)
{
    return (uint32_t)(low + rng_bits(rng) % ((uint64_t)high - low + 1));
}

uint32_t rng_log(rng_state *rng, uint32_t low, uint32_t high)
{
    const double value = low * exp2(log2((double)high / low) * rng_uniform(rng));
    return value < low ? low : value > high ? high : (uint32_t)value;
}

bool rng_chance(rng_state *rng, uint32_t percent) { return rng_below(rng, 100) < percent; }

float rng_uniform(rng_state *rng) { return (float)(rng_bits(rng) >> 40) * 0x1p-24f; }

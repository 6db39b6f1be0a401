#include "random.h"

uint64_t random_bits(random_source *source)
{
    uint64_t z = source->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t random_below(random_source *source, uint32_t count)
{
    return (uint32_t)((random_bits(source) >> 32) * count >> 32);
}

float random_uniform(random_source *source, float low, float high)
{
    const double unit = (double)(random_bits(source) >> 40) * 0x1p-24;
    return (float)(low + (high - low) * unit);
}

/* Twelve 16-bit numbers have the mean 12 * 65535 / 2 and, to 9 digits, the standard deviation 65536. */
float random_normal(random_source *source)
{
    int32_t sum = 0;

    for (int draw = 0; draw < 3; draw++) {
        const uint64_t bits = random_bits(source);
        for (int shift = 0; shift < 64; shift += 16)
            sum += (int32_t)(bits >> shift & 0xffff);
    }
    return (float)(sum - 12 * 65535 / 2) * 0x1p-16f;
}

void random_fill_normal(random_source *source, float *values, size_t count, float scale)
{
    for (size_t i = 0; i < count; i++)
        values[i] = scale * random_normal(source);
}

#include "core/rng.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

bm_rng bm_rng_make(uint64_t seed, const char *stream, uint64_t worker)
{
    uint64_t key = bm_rng_at(seed, 0);

    for (; *stream != '\0'; stream++)
        key = bm_rng_fork(key, (unsigned char)*stream);
    return (bm_rng){bm_rng_fork(key, worker), 0};
}

uint64_t bm_rng_bits(bm_rng *rng)
{
    return bm_rng_at(rng->key, rng->next++);
}

double bm_rng_uniform(bm_rng *rng)
{
    return (double)(bm_rng_bits(rng) >> 11) * 0x1p-53;
}

/* Box and Muller; the second number is dropped, so that there is no state. */
double bm_rng_normal(bm_rng *rng)
{
    double u = 1 - bm_rng_uniform(rng), v = bm_rng_uniform(rng);

    return sqrt(-2 * log(u)) * cos(2 * pi * v);
}

uint64_t bm_rng_below(bm_rng *rng, uint64_t n)
{
    uint64_t fair = UINT64_MAX - UINT64_MAX % n, x = bm_rng_bits(rng);

    while (x >= fair)
        x = bm_rng_bits(rng);
    return x % n;
}

void bm_rng_shuffle(bm_rng *rng, size_t *x, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)bm_rng_below(rng, i), kept = x[i - 1];
        x[i - 1] = x[j];
        x[j] = kept;
    }
}

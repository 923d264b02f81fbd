/* best_path.c - best path decoding. */
#include "models/decoding/best_path.h"

#include <math.h>

static size_t largest(size_t n, const float *x)
{
    size_t best = 0;

    for (size_t k = 1; k < n; k++)
        if (x[k] > x[best])
            best = k;
    return best;
}

/* log p of the class with the largest logit */
static double log_best(size_t n, const float *x, size_t best)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += exp((double)x[k] - (double)x[best]);
    return -log(sum);
}

size_t bm_decode_greedy(const float *y, size_t frames, size_t stride,
                        size_t n_classes, int32_t *labels, double *score)
{
    size_t n = 0, last = 0;
    double log_p = 0;

    for (size_t t = 0; t < frames; t++) {
        const float *x = y + t * stride;
        size_t best = largest(n_classes, x);

        if (best != 0 && best != last)
            labels[n++] = (int32_t)best;
        last = best;
        if (score != NULL)
            log_p += log_best(n_classes, x, best);
    }
    if (score != NULL)
        *score = log_p;
    return n;
}

void bm_decode_frames(const float *y, size_t frames, size_t stride,
                      size_t n_classes, int32_t *classes)
{
    for (size_t t = 0; t < frames; t++)
        classes[t] = (int32_t)largest(n_classes, y + t * stride);
}

#include "recognise/best_path_words.h"

#include <math.h>
#include <stdlib.h>

static bm_status reserve(bm_best_path *p, size_t n)
{
    if (n <= p->room)
        return BM_OK;
    bm_best_path_free(p);
    p->labels = malloc(n * sizeof *p->labels);
    p->words = malloc(n * sizeof *p->words);
    if (p->labels == NULL || p->words == NULL) {
        bm_best_path_free(p);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu labels", n);
    }
    p->room = n;
    return BM_OK;
}

void bm_best_path_free(bm_best_path *p)
{
    free(p->labels);
    free(p->words);
    *p = (bm_best_path){0};
}

/* Until it is complete, a label's confidence is a logarithm. */
static size_t find_labels(bm_found_label *labels, const float *y, size_t frames,
                          size_t classes, double *score)
{
    size_t n = 0;
    int32_t before = 0;

    *score = 0;
    for (size_t t = 0; t < frames; t++, y += classes) {
        int32_t best = 0;

        for (size_t c = 1; c < classes; c++)
            if (y[c] > y[best])
                best = (int32_t)c;
        *score += (double)y[best];
        if (best != 0 && best != before) {
            labels[n++] =
                (bm_found_label){best, (int32_t)t, (int32_t)t, y[best]};
        } else if (best != 0) {
            labels[n - 1].last = (int32_t)t;
            labels[n - 1].confidence = fmaxf(labels[n - 1].confidence, y[best]);
        }
        before = best;
    }
    return n;
}

static bm_found_word make_word(const bm_found_label *labels, size_t begin,
                               size_t end)
{
    double log_p = 0;

    for (size_t i = begin; i < end; i++)
        log_p += (double)labels[i].confidence;
    return (bm_found_word){.begin = begin,
                           .end = end,
                           .word = -1,
                           .first = labels[begin].first,
                           .last = labels[end - 1].last,
                           .confidence = (float)exp(log_p)};
}

static size_t find_words(bm_found_word *words, const bm_found_label *labels,
                         size_t n, int32_t space)
{
    size_t n_words = 0;

    for (size_t i = 0, end = 0; i < n; i = end) {
        end = i + 1;
        if (labels[i].label == space)
            continue;
        while (space >= 0 && end < n && labels[end].label != space)
            end++;
        words[n_words++] = make_word(labels, i, end);
    }
    return n_words;
}

bm_status bm_best_path_words(bm_best_path *p, const float *y, size_t frames,
                             size_t classes, int32_t space, bm_hypothesis *out)
{
    double score = 0;
    size_t n = 0, n_words = 0;

    BM_TRY(reserve(p, frames + 1));
    n = find_labels(p->labels, y, frames, classes, &score);
    n_words = find_words(p->words, p->labels, n, space);
    for (size_t i = 0; i < n; i++)
        p->labels[i].confidence = expf(p->labels[i].confidence);
    *out = (bm_hypothesis){.score = score,
                           .n_labels = n,
                           .n_words = n_words,
                           .labels = p->labels,
                           .words = p->words};
    return BM_OK;
}

/* matched_pairs.c - segments of sentences, and a normal test of their mean. */
#include "models/matched_pairs.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { GOOD_WORDS = 2 }; /* between two segments */

/* Errors of a system along a reference of n words. Place 2 i: insertions before
 * word i; place 2 i + 1: 1 if word i is wrong. */
typedef struct places {
    size_t *errors; /* [2 n + 1] */
    int32_t *words; /* [n] */
    size_t n, total;
} places;

static bm_status find_places(places *p, const bm_pair *pairs, size_t n)
{
    p->errors = calloc(2 * n + 1, sizeof *p->errors);
    p->words = calloc(n + 1, sizeof *p->words);
    if (p->errors == NULL || p->words == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to compare %zu words", n);
    for (size_t k = 0; k < n; k++) {
        bool wrong = pairs[k].ref != pairs[k].hyp;

        p->total += wrong;
        if (pairs[k].ref < 0) {
            p->errors[2 * p->n]++;
            continue;
        }
        p->errors[2 * p->n + 1] = wrong;
        p->words[p->n++] = pairs[k].ref;
    }
    return BM_OK;
}

static void places_free(places *p)
{
    free(p->errors);
    free(p->words);
}

static void add_segment(bm_matched_pairs *m, size_t a, size_t b)
{
    double difference = (double)a - (double)b;

    m->segments++;
    m->sum += difference;
    m->squares += difference * difference;
}

static bool same_words(const places *a, const places *b)
{
    bool same = a->n == b->n;

    for (size_t i = 0; same && i < a->n; i++)
        same = a->words[i] == b->words[i];
    return same;
}

static void cut(bm_matched_pairs *m, const places *a, const places *b)
{
    size_t of_a = 0, of_b = 0, good = 0;
    bool open = false;

    for (size_t k = 0; k < 2 * a->n + 1; k++) {
        if (a->errors[k] + b->errors[k] > 0) {
            of_a += a->errors[k];
            of_b += b->errors[k];
            open = true;
            good = 0;
        } else if (open && k % 2 == 1 && ++good == GOOD_WORDS) {
            add_segment(m, of_a, of_b);
            of_a = of_b = 0;
            open = false;
        }
    }
    if (open)
        add_segment(m, of_a, of_b);
}

bm_status bm_matched_pairs_add(bm_matched_pairs *m, const bm_pair *a,
                               size_t n_a, const bm_pair *b, size_t n_b)
{
    places of_a = {0}, of_b = {0};
    bm_status status = BM_OK;

    BM_TRY_DONE(find_places(&of_a, a, n_a));
    BM_TRY_DONE(find_places(&of_b, b, n_b));
    if (same_words(&of_a, &of_b))
        cut(m, &of_a, &of_b);
    else if (of_a.total + of_b.total > 0)
        add_segment(m, of_a.total, of_b.total);
done:
    places_free(&of_a);
    places_free(&of_b);
    return status;
}

void bm_matched_pairs_test(const bm_matched_pairs *m, double *z, double *p)
{
    double n = (double)m->segments;
    double spread = n * m->squares - m->sum * m->sum; /* n (n - 1) variance */

    *z = *p = NAN;
    if (m->segments < BM_LEAST_SEGMENTS || (spread <= 0 && m->sum != 0))
        return;
    *z = m->sum == 0 ? 0 : m->sum / sqrt(spread / (n - 1));
    *p = erfc(fabs(*z) / sqrt(2));
}

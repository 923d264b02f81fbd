/*
 * series.h - a setting that changes in the course of training: "0.9" or
 * "0.9@0 0.95@10", values and the epochs that they begin at. Each holds until the
 * next one begins.
 */
#ifndef BM_CORE_CONFIG_SERIES_H
#define BM_CORE_CONFIG_SERIES_H

#include <stdbool.h>

enum { BM_SERIES_MOST = 16 };

typedef struct bm_series {
    int n;                        /* values; 0: not set */
    double value[BM_SERIES_MOST]; /* NAN: auto */
    double from[BM_SERIES_MOST];  /* epochs, rising; the first is 0 */
} bm_series;

/* False if the text is no such list; `automatic`: the word auto is a value. */
bool bm_series_read(const char *text, bool automatic, bm_series *out);

bool bm_series_equal(const bm_series *a, const bm_series *b);

/* The value after this number of epochs, which may be a fraction, and its
 * index; 0 if n = 0. */
double bm_series_at(const bm_series *s, double epochs);
int bm_series_index(const bm_series *s, double epochs);

/* False if both together change more often than a series can. Else *out changes
 * whenever one of them does; its values are 0. */
bool bm_series_join(const bm_series *a, const bm_series *b, bm_series *out);

/* Does it change in the course of training? */
static inline bool bm_series_changes(const bm_series *s)
{
    return s->n > 1;
}

#endif

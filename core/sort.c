#include "core/sort.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void bm_sort(double *x, size_t n)
{
    if (n > 0)
        qsort(x, n, sizeof *x, compare);
}

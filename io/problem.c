#include "io/problem.h"

#include "core/finite.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void bm_problem_set(bm_problem *p, const char *kind, const char *format, ...)
{
    va_list args;

    p->kind = kind;
    va_start(args, format);
    vsnprintf(p->text, sizeof p->text, format, args);
    va_end(args);
}

void bm_problem_check_finite(const float *x, size_t n, size_t dim,
                             const char *path, bm_problem *p)
{
    size_t i = 0;

    if (bm_all_finite(x, n * dim))
        return;
    while (!bm_non_finite(x[i]))
        i++;
    bm_problem_set(p, "some numbers are NaN or infinite",
                   "%.300s: feature %zu of frame %zu, both counted from 0, is "
                   "%s; make the file again, or leave the sequence out",
                   path, i % dim, i / dim,
                   isnan(x[i]) ? "NaN"
                               : "infinite, or beyond the range of floats, "
                                 "3.4e38");
}

bm_status bm_problem_of(bm_status status, const char *path, bm_problem *p)
{
    if (status == BM_ERR_MISSING)
        bm_problem_set(p,
                       access(path, F_OK) != 0 ? "file not found"
                                               : "file cannot be opened",
                       "%s", bm_last_message());
    else if (status == BM_ERR_FORMAT)
        bm_problem_set(p, "file too large", "%s", bm_last_message());
    else
        return status;
    return BM_OK;
}

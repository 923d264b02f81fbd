/*
 * problem.h - why one recording, image or file of a data set cannot be used. A
 * problem is not a failure: it is reported, and the other files are processed.
 */
#ifndef BM_IO_PROBLEM_H
#define BM_IO_PROBLEM_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct bm_problem {
    const char *kind; /* "damaged or truncated", to be counted; static */
    char text[640];   /* what is wrong with which file; "": no problem */
} bm_problem;

/* Sets the kind, and the text, cut to its size. */
void bm_problem_set(bm_problem *p, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes a problem of the last failure, of opening or reading `path`, if that is
 * the file's fault, and returns BM_OK; else returns `status`: the disk failed,
 * or there is no memory. */
BM_CHECKED bm_status bm_problem_of(bm_status status, const char *path,
                                   bm_problem *p);

/* If some of the numbers x [n, dim] of a file are NaN or infinite, sets the kind to
 * that, and the text to the place of the first. */
void bm_problem_check_finite(const float *x, size_t n, size_t dim,
                             const char *path, bm_problem *p);

static inline bool bm_problem_is(const bm_problem *p)
{
    return p->text[0] != '\0';
}

#endif

/*
 * problem.h - why one recording, image or file of a data set cannot be used. A
 * problem is not a failure: it is reported, and the other files are processed.
 */
#ifndef BM_IO_IMPORT_PROBLEM_H
#define BM_IO_IMPORT_PROBLEM_H

#include <stdbool.h>

typedef struct bm_problem {
    char text[640]; /* "": no problem */
} bm_problem;

/* Sets the text, cut to its size. */
void bm_problem_set(bm_problem *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline bool bm_problem_is(const bm_problem *p)
{
    return p->text[0] != '\0';
}

#endif

#include "io/problem.h"

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

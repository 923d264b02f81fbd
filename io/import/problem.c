#include "io/import/problem.h"

#include <stdarg.h>
#include <stdio.h>

void bm_problem_set(bm_problem *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->text, sizeof p->text, format, args);
    va_end(args);
}

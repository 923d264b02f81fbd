#include "cli/doctor/check.h"

#include "core/text/printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

const char *bm_severity_word(bm_severity severity)
{
    static const char *const words[] = {
        [BM_FINE] = "ok",
        [BM_SKIPPED] = "skipped",
        [BM_DOUBTFUL] = "warning",
        [BM_FATAL] = "error",
    };

    return words[severity];
}

void bm_find(bm_check_context *e, bm_severity severity, const char *remedy,
             const char *format, ...)
{
    char text[2048], printable[2 * sizeof text];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    json_array_append_new(
        e->findings,
        json_pack("{s:s, s:s, s:s}", "severity", bm_severity_word(severity),
                  "text", bm_printable(text, printable, sizeof printable),
                  "remedy", remedy));
}

double bm_time_of_day(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/*
 * faults.h - what is wrong with a text that a person wrote, a line each, so
 * that all of it can be mended at once: "\n  run.ini:7: it is unknown".
 */
#ifndef BM_CORE_FAULTS_H
#define BM_CORE_FAULTS_H

#include <stdarg.h>
#include <stddef.h>

/* {0}: none yet. */
typedef struct bm_faults {
    size_t n, told; /* told: those that stand in text */
    size_t length;
    char text[3400]; /* what fits into a message */
} bm_faults;

/* Counts one more; it is told while there is room, and they are not many. */
void bm_fault_add(bm_faults *f, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void bm_fault_add_list(bm_faults *f, const char *where, const char *format,
                       va_list args);

/* For the end of the message: that there are more than were told. */
static inline const char *bm_faults_more(const bm_faults *f)
{
    return f->told < f->n ? "\n  ..." : "";
}

#endif

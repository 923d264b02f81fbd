#include "core/config/faults.h"

#include <stdio.h>

enum { MOST_LISTED = 20 };

void bm_fault_add_list(bm_faults *f, const char *where, const char *format,
                       va_list args)
{
    size_t room = sizeof f->text - f->length;
    char words[640];
    int length;

    f->n++;
    if (f->listed == MOST_LISTED)
        return;
    vsnprintf(words, sizeof words, format, args);
    length =
        snprintf(f->text + f->length, room, "\n  %s%s%s",
                 where != NULL ? where : "", where != NULL ? ": " : "", words);
    if (length > 0 && (size_t)length < room) {
        f->length += (size_t)length;
        f->listed++;
    } else {
        f->text[f->length] = '\0';
    }
}

void bm_fault_add(bm_faults *f, const char *where, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    bm_fault_add_list(f, where, format, args);
    va_end(args);
}

bm_faults_end bm_faults_more(const bm_faults *f)
{
    bm_faults_end end = {""};

    if (f->listed < f->n)
        snprintf(end.text, sizeof end.text, "\n  and %zu more",
                 f->n - f->listed);
    return end;
}

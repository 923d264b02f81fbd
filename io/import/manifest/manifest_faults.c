/*
 * manifest_faults.c - what is wrong with the rows of a manifest, counted and
 * listed with file and line, and which fields were not understood.
 */
#include "io/import/manifest/manifest_parts.h"

#include "core/log.h"
#include "core/text/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fault(bm_manifest *m, size_t line, const char *format, va_list args)
{
    char where[600];

    snprintf(where, sizeof where, "%.500s:%zu", m->file, line);
    bm_fault_add_list(&m->faults, where, format, args);
}

void bm_manifest_fault(bm_manifest *m, size_t line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fault(m, line, format, args);
    va_end(args);
}

void bm_manifest_fault_once(bm_manifest *m, size_t line, const char *format,
                            ...)
{
    size_t k = 0;
    va_list args;

    while (k < BM_MOST_CAUSES && m->listed[k] != NULL && m->listed[k] != format)
        k++;
    if (k < BM_MOST_CAUSES && m->listed[k] == format) {
        m->faults.n++;
        return;
    }
    if (k < BM_MOST_CAUSES)
        m->listed[k] = format;
    va_start(args, format);
    fault(m, line, format, args);
    va_end(args);
}

void bm_manifest_fault_utf8(bm_manifest *m, size_t line, size_t byte)
{
    bm_manifest_fault_once(m, line,
                           "byte %zu is not UTF-8; if the list is in Latin-1, "
                           "make UTF-8 of it: iconv -f LATIN1 -t UTF-8 LIST > "
                           "NEW",
                           byte);
}

bm_status bm_manifest_pass(bm_manifest *m, bm_status status)
{
    if (status != BM_ERR_FORMAT && status != BM_ERR_MISSING)
        return status;
    bm_fault_add(&m->faults, NULL, "%s", bm_last_message());
    return BM_OK;
}

bm_status bm_manifest_verdict(const bm_manifest *m, bm_status status,
                              const char *one, const char *many)
{
    const bm_faults *f = &m->faults;

    if (f->n == 0)
        return BM_OK;
    return BM_FAIL(status, "%s: %zu %s:%s%s", m->source, f->n,
                   f->n == 1 ? one : many, f->text, bm_faults_more(f).text);
}

void bm_manifest_count_unknown(bm_manifest *m, const char *key)
{
    bm_manifest_unknown *u = m->unknown;

    while (u < m->unknown + m->n_unknown &&
           strncmp(u->key, key, sizeof u->key - 1) != 0)
        u++;
    if (u == m->unknown + BM_MOST_UNKNOWN)
        return;
    if (u == m->unknown + m->n_unknown) {
        m->n_unknown++;
        snprintf(u->key, sizeof u->key, "%s", key);
    }
    u->n++;
}

void bm_manifest_warn_unknown(bm_manifest *m)
{
    for (bm_manifest_unknown *u = m->unknown; u < m->unknown + m->n_unknown;
         u++) {
        char near[64] = "", list[128];

        snprintf(list, sizeof list,
                 "id %s text speaker start offset duration end", m->kind);
        bm_nearest_word(u->key, list, near, sizeof near);
        for (char *c = u->key; *c != '\0'; c++)
            *c = (unsigned char)*c < ' ' ? '?' : *c;
        bm_log(BM_WARNING,
               "%s: field \"%s\", on %s, is not understood and was "
               "ignored%s%s%s",
               m->path, u->key, bm_count_noun((long long)u->n, "line").text,
               near[0] != '\0' ? "; did you mean \"" : "", near,
               near[0] != '\0' ? "\"?" : "");
    }
}

void bm_manifest_fault_row(bm_manifest *m, const bm_manifest_entry *e,
                           const char *format, ...)
{
    va_list args;

    m->file = m->text + e->file;
    va_start(args, format);
    fault(m, e->line, format, args);
    va_end(args);
    m->file = m->path;
}

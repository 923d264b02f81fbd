/* align_formats.h - writes aligned sequences as NIST's ctm, TextGrid of Praat,
 * JSON lines. */
#ifndef BM_CLI_ALIGN_ALIGN_FORMATS_H
#define BM_CLI_ALIGN_ALIGN_FORMATS_H

#include "cli/align/aligned.h"

#include <stdio.h>

#define BM_ALIGN_FORMATS(X)                                                    \
    X(ctm)                                                                     \
    X(textgrid)                                                                \
    X(json)

typedef struct bm_align_format {
    const char *name;
    bool file_each; /* a file for each sequence, NAME.TextGrid */
    /* Writes to `out`, whose state tells a failure. words: the pieces of a line
     * are words, else labels; formats with both ignore it. Fails with
     * BM_ERR_MEMORY. */
    bm_status (*write)(const bm_aligned *a, bool words, FILE *out);
    /* Writes that a sequence is left out. NULL: the format cannot tell. */
    void (*write_problem)(const char *id, const char *problem, FILE *out);
} bm_align_format;

/* A name of BM_ALIGN_FORMATS. */
const bm_align_format *bm_align_format_find(const char *name);

#endif

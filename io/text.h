/* text.h - makes texts comparable: Unicode's normalisation forms, lower case,
 * punctuation. */
#ifndef BM_IO_TEXT_H
#define BM_IO_TEXT_H

#include "core/status.h"

#include <stdbool.h>

typedef enum bm_text_form {
    BM_TEXT_AS_IS,
    BM_TEXT_NFC,
    BM_TEXT_NFKC
} bm_text_form;

typedef struct bm_text_rules {
    bm_text_form form;
    bool lower;       /* letters become lower case */
    bool punctuation; /* it becomes blanks (Unicode's categories P), but for an
                         apostrophe between two letters */
} bm_text_rules;

/* *out <- the text by these rules; free(*out). Fails with BM_ERR_FORMAT if it is
 * not UTF-8, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_text_apply(const bm_text_rules *rules, const char *text,
                                   char **out);

/* The first character that one cannot see in a text: a control character, white
 * space other than ' ', or a mark that only directs other programs, but not what
 * joins letters or keeps them apart. 0: there is none. */
long bm_text_unseen(const char *text);

#endif

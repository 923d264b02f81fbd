/*
 * symbol_table.h - lists of symbols of Kaldi (words.txt, phones.txt), PyLaia and
 * others: lines "SYMBOL NUMBER", in any order, numbered from 0, where the blank is:
 * <eps>, <blk>, <ctc> or <blank>.
 */
#ifndef BM_IO_SYMBOL_TABLE_H
#define BM_IO_SYMBOL_TABLE_H

#include "core/status.h"

#include <stdbool.h>

/* Does the text begin as one? */
bool bm_symbol_table_is(const char *text);

/* *out <- the symbols by their numbers, one a line, `blank` in place of the first;
 * free(*out). The last symbols that only graphs need are left out: "#0", "<s>",
 * "</s>". Without `words` <sp> becomes <space>, if that is not there. Fails with
 * BM_ERR_FORMAT, `path` and line if a line is another, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_symbol_table_convert(char **out, const char *text,
                                             const char *blank, bool words,
                                             const char *path);

#endif

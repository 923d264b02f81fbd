/*
 * kaldi_cmvn.h - cmvn.scp of a data directory of Kaldi: for each speaker, where
 * the statistics of compute-cmvn-stats are. They are a matrix of two rows of D + 1
 * numbers: D sums and the count of frames; D sums of squares and a zero.
 */
#ifndef BM_IO_IMPORT_FILES_KALDI_CMVN_H
#define BM_IO_IMPORT_FILES_KALDI_CMVN_H

#include "core/status.h"

#include <stddef.h>

/* Gets the moments [BM_MOMENTS(dim)] of speaker number `speaker`. */
typedef void bm_kaldi_cmvn_take(void *self, size_t speaker,
                                const double *moments);

/*
 * Reads the statistics of these speakers, names [n] in byte order; others are
 * passed over. Fails with BM_ERR_MISSING if there is no such list or archive,
 * with BM_ERR_FORMAT if they are of another number of features than `dim`, no
 * statistics, or missing for a speaker; or with BM_ERR_IO or BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_kaldi_cmvn_read(const char *path,
                                        const char *const *names, size_t n,
                                        size_t dim, bm_kaldi_cmvn_take *take,
                                        void *self);

#endif

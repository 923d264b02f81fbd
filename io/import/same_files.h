/*
 * same_files.h - whether all ranks, perhaps on several hosts, see the files of a
 * manifest alike. What only one host sees would be left out without a word, or
 * packed, as ranks and rows happen to meet.
 */
#ifndef BM_IO_IMPORT_SAME_FILES_H
#define BM_IO_IMPORT_SAME_FILES_H

#include "comm/comm.h"
#include "io/import/manifest/manifest.h"

/* Collective. Fails with BM_ERR_FORMAT on all ranks if a rank has another
 * manifest than rank 0, and with BM_ERR_MISSING if a file can be opened by some
 * ranks only; both name the rank's host. */
BM_CHECKED bm_status bm_same_files(bm_comm *comm, const bm_manifest *m);

#endif

/*
 * out_files.h - bmuf decode --out DIR: a file for each input. Files that are there
 * already are kept, replaced, or a reason to stop.
 */
#ifndef BM_CLI_DECODE_OUT_FILES_H
#define BM_CLI_DECODE_OUT_FILES_H

#include "cli/decode/format.h"

typedef struct bm_out_files {
    const char *folder; /* borrowed; NULL: there are no files */
    const bm_format *format;
    bool resume, force;
    size_t kept; /* inputs whose files were there, with resume */
    bool warned; /* of an id that two inputs have */
    void *names; /* of files of this job, or their ids: a tree of <search.h> */
} bm_out_files;

/* *skip <- the input has a file already, which is kept. An input whose file is that
 * of an earlier input of this job gets a fault; on stdout one whose id is. Fails with BM_ERR_CREATE if there
 * is a file, with neither resume nor force. Not thread-safe. */
BM_CHECKED bm_status bm_out_files_claim(bm_out_files *f, bm_input *input,
                                        bool *skip);

/* Writes "DIR/id.ending", where a slash in the id is "_". */
BM_CHECKED bm_status bm_out_files_write(const bm_out_files *f,
                                        const bm_decoded *result);

void bm_out_files_close(bm_out_files *f);

#endif

/*
 * command_output.h - what a shell command writes, in a temporary file: Kaldi's
 * lists have commands such as "sph2pipe -f wav a.sph |" in place of files. The
 * file has no name, so that none stays behind a program that is killed.
 */
#ifndef BM_IO_IMPORT_COMMAND_OUTPUT_H
#define BM_IO_IMPORT_COMMAND_OUTPUT_H

#include "core/status.h"
#include "io/problem.h"

/* The output of the last command. Starts as {0}; remove with
 * bm_command_output_remove. */
typedef struct bm_command_output {
    char *command;
    char path[64]; /* of its file, for this process alone; "": there is none */
    int fd;        /* of it, open */
} bm_command_output;

/* Limits of a command: it is killed after these seconds, or bytes of output. */
enum { BM_COMMAND_SECONDS = 600 };
#define BM_COMMAND_BYTES ((long long)4 << 30)

/*
 * Runs `command`, which may end with '|', by /bin/sh, and writes its output to a
 * file in TMPDIR, which out->path opens; nothing is run if it is that of the last
 * call. A command that fails, writes nothing or reaches a limit sets *problem.
 * Fails with BM_ERR_MISSING if there is no such program, as for all the other
 * rows, with BM_ERR_CREATE if there can be no file, or with BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_command_output_read(bm_command_output *out,
                                            const char *command,
                                            bm_problem *problem);
void bm_command_output_remove(bm_command_output *out);

#endif

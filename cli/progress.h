/*
 * progress.h - how far a long piece of work is. On a terminal one line that is
 * redrawn in place; elsewhere, for bm_progress_count, a note every 30 s.
 *
 *     epoch 3/10  34%|###       | 1:12<2:19  loss 1.93  error 41.2%
 *     12345/50000 sequences  25%|###       | 0:12<0:36  1028/s
 *
 * What does not fit into the terminal is left out on the right. Messages of
 * core/log.h are printed above the line. There is one line per process.
 */
#ifndef BM_CLI_PROGRESS_H
#define BM_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bm_progress {
    double done;        /* fraction of all work */
    const char *where;  /* "epoch 3/10" */
    const char *fields; /* "loss 1.93  error 41%": separated by two blanks */
} bm_progress;

/* Starts the line if `here` (one rank shows it), stderr is a terminal that
 * redraws, and notes are printed. Returns whether it does. A signal that kills
 * the process erases the line first. */
bool bm_progress_open(bool here);

/* Redraws the line, at most ten times a second. Without a line: no-op. */
void bm_progress_show(const bm_progress *p);

/* The same for `done` of `total` things, "sequences"; without a line a
 * note, at most every 30 s. No-op without bm_progress_open(true). */
void bm_progress_count(const char *things, size_t done, size_t total);

/* Erases the line. No-op if there is none; bm_job_end calls it, too. */
void bm_progress_close(void);

/* Erases the line before _exit; may be called by a signal handler. */
void bm_progress_erase(void);

#endif

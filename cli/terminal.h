/*
 * terminal.h - what stderr can show. The ranks of a job write to a pipe; the
 * supervisor tells them by environment variables about the terminal to which
 * it passes their output on.
 */
#ifndef BM_CLI_TERMINAL_H
#define BM_CLI_TERMINAL_H

#include "cli/arguments.h"

/* Sets the style of messages (core/log.h) for stderr: before the options are
 * known with `a` NULL, then by --color, --quiet and --verbose. With --color
 * auto there is colour on a terminal, unless NO_COLOR is set and not empty or
 * TERM is dumb. Fails with BM_ERR_ARG on another --color, or if both --quiet
 * and --verbose are given. */
BM_CHECKED bm_status bm_terminal_style(const bm_arguments *a);

/* Whether messages have colour. */
bool bm_terminal_colour(void);

/* Whether this process' stderr or stdout is a terminal, or the supervisor's. */
bool bm_terminal_stderr(void);
bool bm_terminal_stdout(void);

/* Whether stderr is a terminal that can redraw a line. */
bool bm_terminal_redraws(void);

/* The columns of the terminal now; 80: unknown. */
size_t bm_terminal_width(void);

/* In the supervisor's child, before its stderr is a pipe: sets the variables
 * for the ranks. */
void bm_terminal_export(void);

#endif

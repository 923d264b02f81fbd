/* stack.h - the stack of a rank that hangs, on a signal of the supervisor. */
#ifndef BM_CLI_LAUNCH_WATCH_STACK_H
#define BM_CLI_LAUNCH_WATCH_STACK_H

/* From now on SIGUSR2 prints the stack of the main thread to stderr. `rank` is
 * for the line above it. */
void bm_stack_on_signal(const char *rank);

#endif

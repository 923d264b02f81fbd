/*
 * stop_signal.h - the signals that ask a process to stop: SIGTERM, SIGINT and
 * SIGHUP. The first asks for a clean stop, a second one ends at once.
 *
 * systemd and Slurm send one signal to all processes of a job, and mpirun sends
 * one of its own to its ranks, so that a process gets two that mean one. A
 * second signal therefore counts if it has the sender of the first, or comes
 * some seconds after it.
 */
#ifndef BM_CLI_LAUNCH_STOP_SIGNAL_H
#define BM_CLI_LAUNCH_STOP_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

typedef struct bm_stop_signal {
    volatile sig_atomic_t first; /* its number; 0: none yet */
    pid_t sender;                /* 0: a terminal, or another namespace */
    double since;                /* when it came */
} bm_stop_signal;

/* Installs a handler for the signals, and for SIGUSR1; with SA_SIGINFO,
 * SA_RESTART and these flags. A signal that is ignored, as under nohup, stays
 * ignored. */
void bm_stop_signal_catch(void (*handler)(int, siginfo_t *, void *), int flags);

/* For the handler: notes a signal. True if it is a second one that counts. */
bool bm_stop_signal_note(bm_stop_signal *s, int number, const siginfo_t *info);

#endif

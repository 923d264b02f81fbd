/* timed_check.h - runs checks with a limit on their time. */
#ifndef BM_CLI_DOCTOR_TIMED_CHECK_H
#define BM_CLI_DOCTOR_TIMED_CHECK_H

#include "cli/doctor/check.h"

/*
 * Runs check->host in a thread of its own and adds what it says to `report`. A
 * check that does not end within check->seconds is left behind, with a finding
 * that says so: the process should end with _exit then. Returns false if one was
 * left behind, or no thread could be started.
 */
bool bm_timed_check_run(const bm_check *check, const bm_check_target *target,
                        json_t *report);

/*
 * Begins and ends a time in which ranks wait for each other. If it does not end
 * within `seconds`, a thread calls give_up(self), which does not return.
 * Times do not overlap.
 */
void bm_guard_begin(double seconds, void (*give_up)(void *self), void *self);
void bm_guard_end(void);

#endif

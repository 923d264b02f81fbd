/*
 * machine.h - whether this machine can do what the settings of a training run
 * say: the device, what computes on it, and how the ranks exchange. `train`,
 * `train --dry-run` and `explain` all ask here, so that they end alike.
 */
#ifndef BM_CLI_MACHINE_H
#define BM_CLI_MACHINE_H

#include "bmuf/strategy.h"
#include "cli/device.h"
#include "cli/settings.h"

/*
 * Collective; comm NULL: this process asks alone, for a job of `ranks` ranks.
 * Goes to the place of this rank on its host, opens the device, and replaces
 * `auto` of job.device and job.precision, and threads that are not given, by
 * what the run uses, also in the configuration that the run keeps. Close *out
 * with bm_device_close. Fails as bm_settings_fit and bm_device_open do, and
 * with BM_ERR_CONFIG if settings conflict with the device or the number of
 * ranks.
 */
BM_CHECKED bm_status bm_machine_open(bm_device *out, bm_comm *comm,
                                     bm_config *config, bm_settings *s,
                                     int ranks);

/* Calls warn() if the ranks on this host, comm NULL: one rank, need more memory
 * for `size` of so many weights than is free. */
void bm_machine_advise(const bm_footprint *size, size_t weights,
                       const bm_comm *comm,
                       void (*warn)(void *self, const char *text), void *self);

#endif

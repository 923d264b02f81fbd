/*
 * device.h - opens the backend that computes: settings device and precision of
 * [job], or options of these names.
 */
#ifndef BM_CLI_DEVICE_H
#define BM_CLI_DEVICE_H

#include "cli/placement/placement.h"
#include "comm/comm.h"
#include "compute/backend.h"

typedef struct bm_device {
    bm_backend *be;
    const char *name;      /* cpu or cuda */
    const char *precision; /* fp32, tf32 or bf16 */
    size_t threads;
    bm_placement place; /* of this rank; set by bm_machine_open */
    char why[2000];     /* why `auto` did not take cuda; else "" */
} bm_device;

/* Cores that this process may use. */
long bm_cores(void);

/*
 * Collective; comm NULL: this process alone. device: a word of BM_DEVICES; auto
 * is cuda if available, else cpu. precision: a word of BM_PRECISIONS; auto is
 * bf16 if that suits the devices of all ranks (bm_backend_precision), else
 * fp32. The ranks of a host take its devices in turn. Logs a note if there are
 * more CPU threads than cores. Free with bm_device_close.
 *
 * Fails on all ranks with BM_ERR_DEVICE if a rank has no such device, or if
 * with auto some ranks have one and others do not.
 */
BM_CHECKED bm_status bm_device_open(bm_device *out, bm_comm *comm,
                                    const char *device, const char *precision,
                                    long threads);
void bm_device_close(bm_device *d);

/* Logs device and precision, and why it is not cuda: a warning if there is a
 * GPU, else a detail. */
void bm_device_log(const bm_device *d);

#endif

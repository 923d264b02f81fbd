/*
 * device.h - what computes, and in what: [job] device and precision, or flags
 * of these names.
 */
#ifndef BM_CLI_DEVICE_H
#define BM_CLI_DEVICE_H

#include "comm/comm.h"
#include "compute/backend.h"

typedef struct bm_device {
    bm_backend *be;
    const char *name;      /* cpu or cuda */
    const char *precision; /* fp32, tf32 or bf16 */
    size_t threads;
    char why[2000]; /* it is not cuda; "" if it was not to be */
} bm_device;

/*
 * Collective. device: a word of BM_DEVICES; auto is cuda where there is one,
 * else cpu. precision: a word of BM_PRECISIONS; auto is bf16 on cuda and fp32
 * on the CPU. The ranks of a host take its devices in turn. Says so if there
 * are fewer cores than threads of the CPU. Fails on all ranks if one of them
 * has no such device, or if only some have one.
 */
BM_CHECKED bm_status bm_device_open(bm_device *out, bm_comm *comm,
                                    const char *device, const char *precision,
                                    long threads);
void bm_device_close(bm_device *d);

/* One line in the log: what it came to, and why. */
void bm_device_tell(const bm_device *d);

#endif

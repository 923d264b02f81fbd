/*
 * exchange_host.h - what the coded exchange uses of the exchange by way of the
 * host: transfers between the backend and the host's memory. All functions are
 * for an exchange whose ops are bm_exchange_host.
 */
#ifndef BM_BMUF_EXCHANGE_EXCHANGE_HOST_H
#define BM_BMUF_EXCHANGE_EXCHANGE_HOST_H

#include "bmuf/exchange/exchange.h"

/* n floats of scratch memory on the host, until the next bm_exchange_add. */
float *bm_exchange_host_room(const bm_exchange *e);

/*
 * room = x - from, or x with from = NULL, for x on the backend. `from` is the
 * vector that was fetched last. *good is false if an element is not finite.
 * Fails as bm_sync does. wanted = false: does nothing on a device, and only
 * waits for a CPU backend.
 */
BM_CHECKED bm_status bm_exchange_host_difference(bm_exchange *e, const float *x,
                                                 const float *from, bool wanted,
                                                 float *room, bool *good);

/* x on the backend = common [n] on the host. Queued. Sends it once to a device
 * that copies it afterwards, until bm_exchange_host_changed. */
void bm_exchange_host_fetch(bm_exchange *e, const float *common, float *x);
void bm_exchange_host_changed(bm_exchange *e);

#endif

/* fibers.h - the emulated threads, for the rest of the emulation. */
#ifndef BM_TESTS_EMULATION_FIBERS_H
#define BM_TESTS_EMULATION_FIBERS_H

#include "tests/emulation/device.h"

/* An instruction of all 32 lanes: the last lane to arrive does it, with the
 * operands of all. */
typedef void (*bm_warp_act)(void *const operands[32]);
void bm_warp_together(bm_warp_act act, void *operands);

bool bm_block_lives(unsigned block); /* of the cluster that runs */

/* The next number of a fixed pseudo-random series. */
unsigned bm_chance();

/* sm90.cpp. Delivers some of the messages between blocks; at least one if all
 * threads are `stuck`. */
bool bm_deliver(bool stuck);
void bm_deliver_no_more(); /* a kernel has ended: fails if messages are left */

#endif

/* fibers.h - what the emulation's parts share of the threads that run. */
#ifndef BM_TESTS_EMULATION_FIBERS_H
#define BM_TESTS_EMULATION_FIBERS_H

#include "tests/emulation/device.h"

/* An instruction of all 32 lanes together: done once, by the last to come, with
 * the operands of all. */
typedef void (*bm_warp_act)(void *const operands[32]);
void bm_warp_together(bm_warp_act act, void *operands);

bool bm_block_lives(unsigned block); /* of the cluster that runs */

/* The next of a series of numbers that look random; always the same series. */
unsigned bm_chance();

/* sm90.cpp. What is under way between blocks: some of it arrives; where threads
 * wait for nothing else, at least one piece, if there is one. */
bool bm_deliver(bool stuck);
void bm_deliver_no_more(); /* no kernel ends before all has arrived */

#endif

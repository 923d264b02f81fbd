/*
 * synthesis.h - speech by libespeak-ng, which has one state for the process: a
 * text sounds a little different after another text. Only the first synthesis
 * of a process that speaks the same texts in the same order repeats.
 */
#ifndef BM_TOOLS_SPEECH_SYNTHESIS_H
#define BM_TOOLS_SPEECH_SYNTHESIS_H

#include "core/status.h"
#include "tools/speech/speakers.h"

#include <stdint.h>

enum { BM_SYNTHESIS_RATE = 22050 }; /* samples per second */

/* Call once in a process. Fails with BM_ERR_MISSING without espeak-ng's data. */
BM_CHECKED bm_status bm_synthesis_open(void);
/* No-op if it is not open. */
void bm_synthesis_close(void);

/* The version of espeak-ng, "1.51". Static. */
const char *bm_synthesis_version(void);

/* Speaks a text of grammar.h with `speed` words a minute. *x [n]: borrowed until
 * the next call. Fails with BM_ERR_MISSING if the voice is missing, with
 * BM_ERR_MEMORY, or with BM_ERR_UNSUPPORTED if espeak-ng cannot speak it. */
BM_CHECKED bm_status bm_synthesis_speak(const bm_speaker *speaker, int speed,
                                        const char *text, const int16_t **x,
                                        size_t *n);

#endif

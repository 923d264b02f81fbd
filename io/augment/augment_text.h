/* augment_text.h - says what [augment] does to a data set, and what is doubtful
 * about it. */
#ifndef BM_IO_AUGMENT_AUGMENT_TEXT_H
#define BM_IO_AUGMENT_AUGMENT_TEXT_H

#include "io/augment/augment_settings.h"
#include "io/augment/layout.h"

/* "speed 0.9 1 1.1, 2 time masks of up to 40 frames and 20 %", or "" if nothing
 * is changed. */
void bm_augment_describe(const bm_augment_settings *s, const bm_layout *l,
                         char *out, size_t capacity);

/* Calls warn() for settings that change nothing, or do not suit the features of
 * data.train. */
void bm_augment_advise(const bm_augment_settings *s, const bm_layout *l,
                       void (*warn)(void *self, const char *text), void *self);

#endif

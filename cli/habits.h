/*
 * habits.h - what users of other programs write, and what it is called here: for
 * messages about unknown options and settings.
 */
#ifndef BM_CLI_HABITS_H
#define BM_CLI_HABITS_H

#include "cli/arguments.h"

/*
 * out [room] <- the setting that `word` means, "train.rate" for lr, learning-rate,
 * rate and train.rate, of `bmuf pack` or of the verbs that take those of `bmuf
 * train`. False, and out is "", if there is none, or a key of several sections.
 */
bool bm_habit_setting(const char *word, bool pack, char *out, size_t room);

/* For bm_arguments_read: -np, --resume and such, and names of settings. */
bool bm_habit_hint(const bm_verb *verb, const char *option, char *out,
                   size_t room);

#endif

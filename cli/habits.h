/*
 * habits.h - what users of other programs write, and what it is called here: for
 * messages about unknown options and settings.
 */
#ifndef BM_CLI_HABITS_H
#define BM_CLI_HABITS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * out [room] <- the setting that `word` means, "train.rate" for lr, learning-rate,
 * rate and train.rate, of `bmuf pack` or of the verbs that take those of `bmuf
 * train`. False, and out is "", if there is none, or a key of several sections.
 */
bool bm_habit_setting(const char *word, bool pack, char *out, size_t room);

/* What to do in place of an option of other programs, such as -np or --resume of
 * `bmuf train`; NULL: not known. */
const char *bm_habit_option(const char *verb, const char *option);

#endif

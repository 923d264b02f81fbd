/*
 * habits.h - what users of other programs write, and its name here: for messages
 * about unknown options and settings.
 */
#ifndef BM_CLI_HABITS_H
#define BM_CLI_HABITS_H

#include "cli/arguments.h"
#include "core/config/config.h"

extern const bm_foreign_word bm_habit_words[];

/*
 * out [room] <- the setting that `word` means: "train.rate" for lr, sgd.lr,
 * learning-rate, rate and train.rate. pack: of `bmuf pack`, else of training.
 * False, and out is "", if there is none, or several sections have the key.
 */
bool bm_habit_setting(const char *word, bool pack, char *out, size_t room);

/* For bm_arguments_read: -np, --resume and such, and names of settings. */
bool bm_habit_hint(const bm_verb *verb, const char *option, char *out,
                   size_t room);

#endif

/*
 * conditions.h - under which other setting a setting of `bmuf train` applies:
 * "sgd.beta1 applies only with sgd.update = adamw". A warning names each
 * setting that the user changed and that does not apply.
 *
 * The table is in conditions.c; a test fails for a setting without a row in it.
 */
#ifndef BM_CLI_CONDITIONS_H
#define BM_CLI_CONDITIONS_H

#include "core/config/config.h"

/* "sgd.update = adamw", as docs/options.md prints it; "": the setting always
 * applies; NULL: the table does not have it. Static. */
const char *bm_condition(const char *section, const char *key);

/* Does the setting apply with this configuration? */
bool bm_condition_holds(const bm_config *config, const char *section,
                        const char *key);

/* Calls warn() for every setting that was given a value other than its default
 * and has no effect, in the order of the sections, and for a pool:all that makes
 * a sequence one number. `config` must have passed bm_config_check. */
void bm_conditions_check(const bm_config *config,
                         void (*warn)(void *self, const char *text),
                         void *self);

#endif

/*
 * mpirun_command.h - the command line of mpirun that runs this program again.
 */
#ifndef BM_CLI_LAUNCH_MPIRUN_COMMAND_H
#define BM_CLI_LAUNCH_MPIRUN_COMMAND_H

#include "cli/arguments.h"
#include "cli/hosts/allocation.h"

/* An environment variable of the ranks: the command that started them. */
#define BM_LAUNCH_COMMAND "BMUF_LAUNCH_COMMAND"

/* *out <- the words, ending with NULL, with `scratch` as the folder for the
 * job's files; NULL: for a user, who makes none and needs no options that mpirun
 * replaces. resumed: a run that goes on with the settings in its config.ini, in
 * place of those of the arguments; NULL: none. Variables BMUF_* of the environment go to other hosts, too. Free with
 * bm_mpirun_command_free. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_mpirun_command(char ***out, const bm_arguments *a,
                                       const bm_allocation *allocation,
                                       const char *scratch,
                                       const char *resumed);
void bm_mpirun_command_free(char **words);

/* The words in one line, in quotes where a shell needs them; free() it. NULL: no
 * memory. */
char *bm_mpirun_command_text(char *const *words);

#endif

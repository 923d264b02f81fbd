/*
 * outputs.h - refuses to write a file over what the command reads, over a file of
 * a run, or twice.
 *
 *     const bm_output outputs[] = {{"--hyp", hyp}, {"--dump", dump}};
 *     const char *const inputs[] = {model, set, NULL};
 *
 *     BM_TRY(bm_outputs_check(outputs, 2, inputs));
 */
#ifndef BM_CLI_OUTPUTS_H
#define BM_CLI_OUTPUTS_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_output {
    const char *option; /* for the message: "--hyp" */
    const char *path;   /* of a file; NULL: the option is not given */
} bm_output;

/* `inputs`: files, and folders of packed sets or of Kaldi, ended by NULL. Fails
 * with BM_ERR_CREATE if an output would replace one of them, a file that bmuf
 * train or bmuf tune wrote in its folder, or another output. */
BM_CHECKED bm_status bm_outputs_check(const bm_output *outputs, size_t n,
                                      const char *const *inputs);

#endif

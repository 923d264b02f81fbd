/*
 * same_contents.h - all ranks of a job must read the same data and start from the
 * same model. Their files may differ: a host has an old copy, or a file was
 * replaced while ranks opened it.
 */
#ifndef BM_CLI_TRAIN_SAME_CONTENTS_H
#define BM_CLI_TRAIN_SAME_CONTENTS_H

#include "comm/comm.h"

/*
 * Collective. Compares what each rank has read for a setting with what rank 0
 * has. key: the setting; path: the file or folder of this rank; digest: of its
 * contents, at most 63 characters; "": there are none. Fails with BM_ERR_CONFIG
 * if they differ; the message names the ranks and hosts that do.
 */
BM_CHECKED bm_status bm_same_contents(bm_comm *comm, const char *key,
                                      const char *path, const char *digest);

#endif

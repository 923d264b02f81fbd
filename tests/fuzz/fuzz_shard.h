/* fuzz_shard.h - reads a shard in every way the program does. */
#ifndef BM_TESTS_FUZZ_FUZZ_SHARD_H
#define BM_TESTS_FUZZ_FUZZ_SHARD_H

void fuzz_read_shard(const char *path);

#endif

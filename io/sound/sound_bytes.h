/*
 * sound_bytes.h - the bytes of a recording: of a file, or of one recording in an
 * archive, "wav.ark:1234", as wav-copy of Kaldi (a WAV file after each key) and
 * kaldiio (also "AUDIO", a length and a file of any format) write them.
 */
#ifndef BM_IO_SOUND_SOUND_BYTES_H
#define BM_IO_SOUND_SOUND_BYTES_H

#include "core/status.h"
#include "io/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bm_sound_bytes {
    const char *path; /* borrowed */
    int fd, error;    /* error: errno of the first failed read */
    int64_t begin;    /* of the recording in the file */
    int64_t size; /* of the recording, by its own header; 0: up to the end */
    int64_t at;   /* position, from `begin` on */
} bm_sound_bytes;

/* path: a file, or a byte of an archive. Without a recording there it sets
 * *problem. Fails with BM_ERR_IO or BM_ERR_MEMORY. Close it in any case. */
BM_CHECKED bm_status bm_sound_bytes_open(bm_sound_bytes *b, const char *path,
                                         bm_problem *problem);
void bm_sound_bytes_close(bm_sound_bytes *b);

/* Reads up to n bytes from b->at on, which it moves; fewer at the end, or if the
 * disk fails, which b->error tells. */
size_t bm_sound_bytes_read(bm_sound_bytes *b, void *to, size_t n);

/* True if n bytes could be read at this position. */
bool bm_sound_bytes_get(bm_sound_bytes *b, int64_t at, void *to, size_t n);

/* How many bytes are there. */
int64_t bm_sound_bytes_length(const bm_sound_bytes *b);

/* The samples of a WAV file: where they begin, and how many bytes they are by its
 * header. */
typedef struct bm_wav_data {
    int64_t begin, size;
} bm_wav_data;

/* False: it is not a WAV file, or ends before its samples. Moves b->at. */
bool bm_wav_data_find(bm_sound_bytes *b, bm_wav_data *out);

/* Programs that write to a pipe put 0 or almost 2^31 or 2^32 for a size. SoX
 * rounds 0x7ffff000 down to whole blocks, which have up to 65535 bytes. */
static inline bool bm_wav_size_is_known(int64_t size)
{
    return size > 0 && size < 0x7fff0000;
}

/* The size of a WAV file by its first 8 bytes; 0: it is not a WAV file, or the
 * size is not known. */
int64_t bm_wav_size(const unsigned char head[8]);

#endif

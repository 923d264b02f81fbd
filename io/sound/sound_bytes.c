#include "io/sound/sound_bytes.h"

#include "core/file/file.h"
#include "io/place.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void bm_sound_bytes_close(bm_sound_bytes *b)
{
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
}

int64_t bm_sound_bytes_length(const bm_sound_bytes *b)
{
    struct stat info = {0};
    int64_t rest = 0;

    if (fstat(b->fd, &info) == 0 && info.st_size > b->begin)
        rest = info.st_size - b->begin;
    return b->size > 0 && b->size < rest ? b->size : rest;
}

size_t bm_sound_bytes_read(bm_sound_bytes *b, void *to, size_t n)
{
    size_t got = 0;

    if (b->size > 0 && b->at >= b->size)
        return 0;
    if (b->size > 0 && b->size - b->at < (int64_t)n)
        n = (size_t)(b->size - b->at);
    while (got < n) {
        ssize_t k = pread(b->fd, (char *)to + got, n - got,
                          b->begin + b->at + (int64_t)got);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && b->error == 0)
            b->error = errno;
        if (k <= 0)
            break;
        got += (size_t)k;
    }
    b->at += (int64_t)got;
    return got;
}

bool bm_sound_bytes_get(bm_sound_bytes *b, int64_t at, void *to, size_t n)
{
    b->at = at;
    return at >= 0 && bm_sound_bytes_read(b, to, n) == n;
}

/* More are no recording. */
enum { MOST_CHUNKS = 4096 };

/* The size of a chunk: its header is a name and this. */
static int64_t chunk_size(const unsigned char head[8])
{
    return head[4] | head[5] << 8 | head[6] << 16 | (int64_t)head[7] << 24;
}

bool bm_wav_data_find(bm_sound_bytes *b, bm_wav_data *out)
{
    unsigned char head[8] = {0};
    int64_t at = 12; /* after "RIFF", its size, "WAVE" */

    if (!bm_sound_bytes_get(b, 0, head, sizeof head) ||
        memcmp(head, "RIFF", 4) != 0)
        return false;
    for (int i = 0;
         i < MOST_CHUNKS && bm_sound_bytes_get(b, at, head, sizeof head); i++) {
        int64_t size = chunk_size(head);

        at += (int64_t)sizeof head;
        if (memcmp(head, "data", 4) == 0) {
            *out = (bm_wav_data){at, size};
            return true;
        }
        at += size + size % 2;
    }
    return false;
}

int64_t bm_wav_size(const unsigned char head[8])
{
    int64_t size = chunk_size(head);

    return memcmp(head, "RIFF", 4) == 0 && bm_wav_size_is_known(size) ? size + 8
                                                                      : 0;
}

/* ---- archives ------------------------------------------------------------ */

/* Moves b to the file after "AUDIO", the number of bytes of a length, and the
 * length. False: there is none. */
static bool skip_head(bm_sound_bytes *b, const unsigned char head[16])
{
    size_t n = head[5];
    int64_t size = 0;

    if (n < 1 || n > 7)
        return false;
    for (size_t i = n; i-- > 0;)
        size = size << 8 | head[6 + i];
    b->begin += 6 + (int64_t)n;
    b->size = size;
    return size > 0;
}

/* Finds out how long the recording at b->begin is. Without a length the next one
 * would be taken for a part of it; that of FLAC is in its samples. */
static bool find_size(bm_sound_bytes *b)
{
    unsigned char head[16] = {0};

    if (!bm_sound_bytes_get(b, 0, head, sizeof head))
        return false;
    if (memcmp(head, "AUDIO", 5) == 0)
        return skip_head(b, head);
    b->size = bm_wav_size(head);
    return b->size > 0 || memcmp(head, "fLaC", 4) == 0;
}

bm_status bm_sound_bytes_open(bm_sound_bytes *b, const char *path,
                              bm_problem *problem)
{
    bm_place place = {0};
    bool archive = access(path, F_OK) != 0 && bm_place_parse(&place, path) &&
                   !place.cut && strcmp(place.file, path) != 0;
    const char *file = archive ? place.file : path;
    bm_status status = BM_OK;

    *b = (bm_sound_bytes){.path = path, .fd = -1};
    status = bm_file_open_regular(&b->fd, file);
    if (status != BM_OK)
        return bm_problem_of(status, file, problem);
    if (!archive)
        return BM_OK;
    b->begin = (int64_t)place.offset;
    if (!find_size(b) && b->error == 0)
        bm_problem_set(problem, "not a recording",
                       "%s: there is no WAV or FLAC recording of known length "
                       "at this byte",
                       path);
    b->at = 0;
    return BM_OK;
}

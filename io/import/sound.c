/*
 * sound.c - recordings with libsndfile and libsamplerate. The length in a
 * header is not trusted: samples are read until the end of the file.
 */
#include "io/import/sound.h"

#include <math.h>
#include <samplerate.h>
#include <sndfile.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHUNK = 16384 }; /* floats read at once */

/* *frames: the number in the header; 0: unknown. */
static SNDFILE *open_file(bm_sound *s, const char *path, size_t *frames,
                          bm_problem *problem)
{
    SF_INFO info = {0};
    SNDFILE *file = sf_open(path, SFM_READ, &info);
    int family = info.format & SF_FORMAT_TYPEMASK;

    if (file == NULL) {
        bm_problem_set(problem, "%s: %s", path, sf_strerror(NULL));
        return NULL;
    }
    *frames = 0; /* of other formats it is an estimate */
    if (family == SF_FORMAT_FLAC && info.frames < SF_COUNT_MAX)
        *frames = (size_t)info.frames;
    s->rate = info.samplerate;
    s->channels = info.channels;
    if (s->rate < 1 || s->channels < 1 || s->channels > CHUNK) {
        bm_problem_set(problem, "%s: invalid header: %ld channels at %ld Hz",
                       path, s->channels, s->rate);
        sf_close(file);
        return NULL;
    }
    return file;
}

void bm_sound_probe(bm_sound *s, const char *path, bm_problem *problem)
{
    size_t frames = 0;
    SNDFILE *file = open_file(s, path, &frames, problem);

    if (file != NULL)
        sf_close(file);
}

static bm_status reserve(bm_sound *s, size_t n)
{
    size_t room = 2 * s->room > n ? 2 * s->room : n;
    float *grown = NULL;

    if (n <= s->room)
        return BM_OK;
    grown = realloc(s->x, room * sizeof *grown);
    if (grown == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu samples", room);
    s->x = grown;
    s->room = room;
    return BM_OK;
}

/* Appends the wanted channel of n frames of s->channels samples. */
static void pick(bm_sound *s, const float *chunk, size_t n, long channel)
{
    size_t channels = (size_t)s->channels;

    for (size_t i = 0; i < n; i++, chunk += channels) {
        double sum = 0;

        for (size_t c = 0; c < channels; c++)
            if (channel == 0 || c + 1 == (size_t)channel)
                sum += chunk[c];
        if (channel == 0)
            sum /= (double)channels;
        s->x[s->n++] = (float)(32768 * sum);
    }
}

/*
 * True if a WAV file is shorter than its header says, which libsndfile does not
 * report. Programs that write to a pipe set the size to 0 or to almost 2^31 or
 * 2^32.
 */
static bool is_cut_short(const char *path)
{
    unsigned char head[8] = {0};
    FILE *file = fopen(path, "rb");
    struct stat info = {0};
    bool cut = false;

    if (file == NULL)
        return false;
    if (fread(head, 1, sizeof head, file) == sizeof head &&
        fstat(fileno(file), &info) == 0 && memcmp(head, "RIFF", 4) == 0) {
        off_t size =
            head[4] | head[5] << 8 | head[6] << 16 | (off_t)head[7] << 24;
        cut = size < 0x7ffff000 && size + 8 > info.st_size;
    }
    fclose(file);
    return cut;
}

static void check(const bm_sound *s, const char *path, size_t expected,
                  bm_problem *problem)
{
    if ((expected != 0 && s->n != expected) || is_cut_short(path)) {
        bm_problem_set(problem, "%s: damaged or truncated after %zu samples",
                       path, s->n);
        return;
    }
    for (size_t i = 0; i < s->n; i++)
        if (!isfinite(s->x[i])) {
            bm_problem_set(problem, "%s: sample %zu is NaN or infinite", path,
                           i);
            return;
        }
}

bm_status bm_sound_read(bm_sound *s, const char *path, long channel,
                        bm_problem *problem)
{
    size_t expected = 0;
    SNDFILE *file = open_file(s, path, &expected, problem);
    float chunk[CHUNK];
    sf_count_t most, n = 0;
    bm_status status = BM_OK;

    if (file == NULL)
        return BM_OK;
    s->n = 0;
    if (channel > s->channels) {
        bm_problem_set(problem, "%s: no channel %ld; it has %ld", path, channel,
                       s->channels);
        goto done;
    }
    most = CHUNK / s->channels;
    while ((n = sf_readf_float(file, chunk, most)) > 0) {
        BM_TRY_DONE(reserve(s, s->n + (size_t)n));
        pick(s, chunk, (size_t)n, channel);
    }
    if (sf_error(file) != SF_ERR_NO_ERROR)
        bm_problem_set(problem, "%s: %s", path, sf_strerror(file));
    else
        check(s, path, expected, problem);
done:
    sf_close(file);
    return status;
}

bm_status bm_sound_resample(bm_sound *s, long rate, bm_problem *problem)
{
    double ratio = (double)rate / (double)s->rate;
    bm_sound out = {.rate = rate, .channels = s->channels};
    SRC_DATA data = {0};
    int error = 0;
    bm_status status = BM_OK;

    if (rate == s->rate || s->n == 0) {
        s->rate = rate;
        return BM_OK;
    }
    if (!src_is_valid_ratio(ratio)) {
        bm_problem_set(problem, "cannot be resampled from %ld to %ld Hz",
                       s->rate, rate);
        return BM_OK;
    }
    BM_TRY_DONE(reserve(&out, (size_t)((double)s->n * ratio) + 64));
    data.data_in = s->x;
    data.data_out = out.x;
    data.input_frames = (long)s->n;
    data.output_frames = (long)out.room;
    data.src_ratio = ratio;
    error = src_simple(&data, SRC_SINC_MEDIUM_QUALITY, 1);
    if (error != 0)
        BM_FAIL_DONE(BM_ERR_MEMORY, "resampling to %ld Hz: %s", rate,
                     src_strerror(error));
    out.n = (size_t)data.output_frames_gen;
    free(s->x);
    *s = out;
    out.x = NULL;
done:
    bm_sound_free(&out);
    return status;
}

void bm_sound_free(bm_sound *s)
{
    free(s->x);
    s->x = NULL;
    s->n = s->room = 0;
}

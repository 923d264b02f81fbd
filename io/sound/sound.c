/*
 * sound.c - recordings with libsndfile and libsamplerate. The length in a
 * header is not trusted: samples are read until the end of the file.
 */
#include "io/sound/sound.h"

#include "core/file/file_kind.h"
#include "core/text/words.h"
#include "io/sound/claimed_end.h"
#include "io/sound/mp3_head.h"
#include "io/sound/sound_bytes.h"
#include "io/sound/sound_end.h"

#include <math.h>
#include <samplerate.h>
#include <sndfile.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHUNK = 16384 }; /* floats read at once */

/* The end of messages on damaged files. */
#define COPY "; copy it again, or leave it out"

/* An open recording. libsndfile reads the file through the functions below: it
 * reports a disk that fails as a file that is damaged. */
typedef struct bm_sound_source {
    bm_sound_bytes bytes; /* must be first */
    bool endless;         /* its end may not be looked for */
    int64_t repaired;     /* where `size` replaces bytes; 0: nowhere */
    unsigned char size[4];
    SNDFILE *file;
    SF_INFO info;
    sf_count_t at; /* the frame that is read next, unless it was moved to */
} source;

static sf_count_t length(void *self)
{
    return bm_sound_bytes_length(self);
}

/* By the length of an MP3 its decoder estimates the number of samples, of which
 * no more are read, and it prints a warning if the header has another length. */
static sf_count_t seek(sf_count_t offset, int whence, void *self)
{
    const source *f = self;
    bm_sound_bytes *b = self;

    if (whence == SEEK_END && f->endless)
        return -1;
    if (whence == SEEK_CUR)
        offset += b->at;
    else if (whence == SEEK_END)
        offset += bm_sound_bytes_length(b);
    if (offset < 0)
        return -1;
    b->at = offset;
    return offset;
}

static sf_count_t tell(void *self)
{
    const bm_sound_bytes *b = self;

    return b->at;
}

static sf_count_t fetch(void *to, sf_count_t n, void *self)
{
    const source *f = self;
    int64_t from = f->bytes.at;
    size_t got = n > 0 ? bm_sound_bytes_read(self, to, (size_t)n) : 0;

    for (int64_t k = 0; f->repaired > 0 && k < 4; k++) {
        int64_t at = f->repaired + k - from;

        if (at >= 0 && at < (int64_t)got)
            ((unsigned char *)to)[at] = f->size[k];
    }
    return (sf_count_t)got;
}

/* Samples of size 0, of a program that writes to a pipe, are those up to the end.
 * A file without samples has the right size in its first header. */
static void repair(source *f)
{
    bm_sound_bytes *b = &f->bytes;
    int64_t length = bm_sound_bytes_length(b), size = 0;
    unsigned char head[8] = {0};
    bm_wav_data data = {0};

    if (!bm_wav_data_find(b, &data) || data.size > 0 ||
        !bm_sound_bytes_get(b, 0, head, sizeof head) ||
        bm_wav_size(head) == length || length - data.begin > UINT32_MAX)
        return;
    size = length - data.begin;
    f->repaired = data.begin - 4;
    for (int k = 0; k < 4; k++)
        f->size[k] = (unsigned char)(size >> 8 * k);
}

static void close_source(source *f)
{
    if (f->file != NULL)
        sf_close(f->file);
    bm_sound_bytes_close(&f->bytes);
}

/* Fails if the disk did. */
static bm_status check_disk(const source *f)
{
    if (f->bytes.error == 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_IO, "%s cannot be read: %s", f->bytes.path,
                   strerror(f->bytes.error));
}

/* After libsndfile did not open it. A cut within the header is told as one. */
static void refuse(source *f, bm_problem *problem)
{
    const char *why = sf_strerror(NULL), *path = f->bytes.path;
    const char *kind = bm_file_kind(path);
    const char *text = kind == NULL ? bm_text_kind(path) : NULL;

    if (bm_sphere_is_shortened(&f->bytes))
        bm_problem_set(problem, "compressed",
                       "%s is compressed with shorten, which is not read; make "
                       "a WAV file of it: sph2pipe -f wav %s OUT.wav",
                       path, path);
    else if (bm_sound_is_cut(&f->bytes, 0))
        bm_problem_set(problem, "damaged or truncated",
                       "%s: damaged or truncated within its %lld bytes" COPY,
                       path, (long long)bm_sound_bytes_length(&f->bytes));
    else if (kind == bm_kind_gzip)
        bm_problem_set(problem, "compressed",
                       "%s is %s; only lists may be compressed: unpack it",
                       path, kind);
    else if (bm_sound_bytes_length(&f->bytes) == 0)
        bm_problem_set(problem, "not a recording",
                       "%s: empty; make or fetch it again", path);
    else if (text != NULL)
        bm_problem_set(problem, "not a recording",
                       "%s: %s, not a recording; give the path of a recording",
                       path, text);
    else if (kind != NULL && kind != bm_kind_binary &&
             !bm_ends_with(kind, "recording"))
        bm_problem_set(problem, "not a recording",
                       "%s: %s, not a recording; %s", path, kind,
                       bm_file_kind_use(kind));
    else
        bm_problem_set(problem, "not a recording",
                       "%s: cannot be read as a recording (libsndfile: %s); "
                       "make it again, or WAV of it: ffmpeg -i FILE FILE.wav",
                       path, why);
}

static void describe(bm_sound *s, const SF_INFO *info)
{
    s->rate = info->samplerate;
    s->channels = info->channels;
    s->seconds = 0;
    if (info->frames > 0 && info->frames < SF_COUNT_MAX && s->rate > 0)
        s->seconds = (double)info->frames / (double)s->rate;
}

/* f->file stays NULL if there is a problem. Close with close_source, also after
 * a failure. */
static bm_status open_source(source *f, bm_sound *s, const char *path,
                             bm_problem *problem)
{
    SF_VIRTUAL_IO calls = {
        .get_filelen = length, .seek = seek, .read = fetch, .tell = tell};
    SNDFILE *file = NULL;

    *f = (source){0};
    BM_TRY(bm_sound_bytes_open(&f->bytes, path, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    if (bm_sound_is_joined(&f->bytes)) {
        bm_problem_set(problem, "several recordings in one file",
                       "%s: several recordings, one behind the other, of which "
                       "only the first would be read; make one of them with "
                       "ffmpeg -i FILE -c:a flac OUT.flac, or split the file",
                       path);
        return check_disk(f);
    }
    f->endless = bm_mp3_is(&f->bytes);
    repair(f);
    f->bytes.at = 0;
    file = sf_open_virtual(&calls, SFM_READ, &f->info, f);
    if (f->bytes.error != 0) {
        if (file != NULL)
            sf_close(file);
        return check_disk(f);
    }
    if (file == NULL) {
        refuse(f, problem);
        return BM_OK;
    }
    describe(s, &f->info);
    if (s->rate < 1 || s->channels < 1 || s->channels > CHUNK) {
        bm_problem_set(problem, "not a recording",
                       "%s: invalid header: %ld channels at %ld Hz", path,
                       s->channels, s->rate);
        sf_close(file);
        return BM_OK;
    }
    f->file = file;
    return BM_OK;
}

static void forget(bm_sound *s)
{
    if (s->open != NULL)
        close_source(s->open);
    free(s->open);
    s->open = NULL;
}

bm_status bm_sound_probe(bm_sound *s, const char *path, bm_problem *problem)
{
    source f;
    bm_status status = open_source(&f, s, path, problem);

    close_source(&f);
    return status;
}

bm_status bm_samples_reserve(float **x, size_t *capacity, size_t n)
{
    size_t wanted = 2 * *capacity > n ? 2 * *capacity : n;
    float *grown = NULL;

    if (n <= *capacity && *x != NULL)
        return BM_OK;
    grown = realloc(*x, (wanted + 1) * sizeof *grown);
    if (grown == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu samples", wanted);
    *x = grown;
    *capacity = wanted;
    return BM_OK;
}

/* Appends the wanted channel of n frames of s->channels samples. */
static void pick(bm_sound *s, const float *chunk, size_t n, long channel)
{
    size_t channels = (size_t)s->channels;

    if (channels == 1) { /* the same numbers, several at a time */
        for (size_t i = 0; i < n; i++)
            s->x[s->n + i] = 32768 * chunk[i];
        s->n += n;
        return;
    }
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

static int family(const source *f)
{
    return f->info.format & SF_FORMAT_TYPEMASK;
}

/* Of the whole recording. The number of samples in the header of other formats
 * than FLAC is an estimate. */
static void check_length(source *f, size_t n, bm_problem *problem)
{
    sf_count_t expected = family(f) == SF_FORMAT_FLAC ? f->info.frames : 0;
    bool wrong =
        expected > 0 && expected < SF_COUNT_MAX && n != (size_t)expected;

    if (wrong || bm_sound_is_cut(&f->bytes, n))
        bm_problem_set(problem, "damaged or truncated",
                       "%s: damaged or truncated after %zu samples" COPY,
                       f->bytes.path, n);
}

/* Of a recording of which `n` samples up to its end were read. */
static void check_end(source *f, size_t n, bm_problem *problem)
{
    if (sf_error(f->file) != SF_ERR_NO_ERROR)
        bm_problem_set(problem, "damaged or truncated",
                       "%s: damaged or truncated after %zu samples" COPY,
                       f->bytes.path, n);
    else
        check_length(f, n, problem);
}

static void check_samples(const source *f, const bm_sound *s,
                          bm_problem *problem)
{
    for (size_t i = 0; i < s->n; i++)
        if (!isfinite(s->x[i])) {
            bm_problem_set(problem, "NaN or infinite samples",
                           "%s: sample %zu is NaN or infinite", f->bytes.path,
                           i);
            return;
        }
}

/* Of an excerpt from `first` on of which no sample is there. */
static void check_start(source *f, bm_excerpt part, sf_count_t first,
                        bm_problem *problem)
{
    bool within = family(f) == SF_FORMAT_FLAC && first < f->info.frames;

    if (within || bm_sound_is_cut(&f->bytes, (size_t)f->at))
        bm_problem_set(problem, "damaged or truncated",
                       "%s: damaged or truncated before the excerpt from %g s",
                       f->bytes.path, part.start);
}

/* Of `wanted` samples from `first` on s->n were read. Kaldi, too, cuts excerpts
 * that overrun by up to half a second. */
static void check_part(source *f, bm_sound *s, bm_excerpt part,
                       sf_count_t first, sf_count_t wanted, bm_problem *problem)
{
    sf_count_t n = (sf_count_t)s->n, rate = f->info.samplerate;
    sf_count_t missing = part.duration > 0 ? wanted - n : 0;
    double length = n > 0 ? (double)(first + n) / (double)rate : s->seconds;
    char of[40] = ""; /* where the length is known */

    if (n > 0 && part.duration == 0) {
        check_end(f, (size_t)(first + n), problem);
        return;
    }
    if (n > 0 && missing <= rate / 100)
        return;
    if (n > 0)
        check_length(f, (size_t)(first + n), problem);
    else
        check_start(f, part, first, problem);
    if (bm_problem_is(problem))
        return;
    s->overrun =
        n > 0 && missing <= rate / 2 && sf_error(f->file) == SF_ERR_NO_ERROR;
    if (length > 0)
        snprintf(of, sizeof of, " of %g s", length);
    if (!s->overrun)
        bm_problem_set(problem, "excerpt outside the recording",
                       "%s: the excerpt from %g s%s to %g s is outside the "
                       "recording%s",
                       f->bytes.path, part.start,
                       part.duration > 0 ? "" : " on",
                       part.start + part.duration, of);
}

/* Reads up to `n` frames, or all if n < 0; returns how many. `dropped`: without
 * keeping them. */
static bm_status read_frames(source *f, bm_sound *s, long channel, bool dropped,
                             sf_count_t n, sf_count_t *total)
{
    float chunk[CHUNK];
    sf_count_t most = CHUNK / s->channels, got = 0;

    *total = 0;
    while (n < 0 || *total < n) {
        sf_count_t wanted = n < 0 || n - *total > most ? most : n - *total;

        got = sf_readf_float(f->file, chunk, wanted);
        if (got <= 0)
            break;
        *total += got;
        f->at += got;
        if (dropped)
            continue;
        BM_TRY(bm_samples_reserve(&s->x, &s->capacity, s->n + (size_t)got));
        pick(s, chunk, (size_t)got, channel);
    }
    return BM_OK;
}

/* libsndfile calls it seekable, but seeks only to its start. */
static bool is_dwvw(const source *f)
{
    int codec = f->info.format & SF_FORMAT_SUBMASK;

    return codec >= SF_FORMAT_DWVW_12 && codec <= SF_FORMAT_DWVW_N;
}

/* Formats without an index; and FLAC in an archive, whose seeking could find a
 * frame of the next recording. */
static bool must_be_read(const source *f)
{
    return !f->info.seekable || family(f) == SF_FORMAT_OGG ||
           family(f) == SF_FORMAT_MPEG || is_dwvw(f) ||
           (f->bytes.begin > 0 && f->bytes.size == 0);
}

/* Moves to a frame. */
static bm_status skip_to(source *f, bm_sound *s, sf_count_t frame)
{
    sf_count_t skipped = 0;

    if (must_be_read(f))
        return read_frames(f, s, 0, true, frame - f->at, &skipped);
    if (frame > 0)
        (void)sf_seek(f->file, frame, SEEK_SET);
    return BM_OK;
}

static sf_count_t first_of(const source *f, bm_excerpt part)
{
    return llround(part.start * (double)f->info.samplerate);
}

static bm_status read_part(source *f, bm_sound *s, long channel,
                           bm_excerpt part, bm_problem *problem)
{
    double rate = (double)f->info.samplerate;
    sf_count_t first = first_of(f, part), n = 0;
    sf_count_t end = llround((part.start + part.duration) * rate);
    sf_count_t wanted = part.duration > 0 ? end - first : -1;
    bool whole = first == 0 && wanted < 0;

    s->n = 0;
    s->overrun = false;
    BM_TRY(skip_to(f, s, first));
    if (sf_error(f->file) == SF_ERR_NO_ERROR)
        BM_TRY(read_frames(f, s, channel, false, wanted, &n));
    BM_TRY(check_disk(f));
    if (!whole)
        check_part(f, s, part, first, wanted, problem);
    else
        check_end(f, s->n, problem);
    if (!bm_problem_is(problem))
        check_samples(f, s, problem);
    return check_disk(f);
}

/* ---- the recording of the last excerpt ----------------------------------- */

/* Is it the file at this path, unchanged? */
static bool is_at(const source *f, const char *path)
{
    struct stat open = {0}, now = {0};

    return fstat(f->bytes.fd, &open) == 0 && stat(path, &now) == 0 &&
           open.st_dev == now.st_dev && open.st_ino == now.st_ino &&
           open.st_size == now.st_size &&
           open.st_mtim.tv_sec == now.st_mtim.tv_sec &&
           open.st_mtim.tv_nsec == now.st_mtim.tv_nsec;
}

/* s->open <- the recording, not beyond the start of the excerpt. It stays NULL if
 * there is a problem. */
static bm_status turn_to(bm_sound *s, const char *path, bm_excerpt part,
                         bm_problem *problem)
{
    source *f = s->open;
    bm_status status = BM_OK;

    if (f != NULL && is_at(f, path) && f->at <= first_of(f, part)) {
        f->bytes.path = path;
        describe(s, &f->info);
        return BM_OK;
    }
    forget(s);
    s->open = calloc(1, sizeof *s->open);
    if (s->open == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to read %s", path);
    status = open_source(s->open, s, path, problem);
    if (status != BM_OK || s->open->file == NULL)
        forget(s);
    return status;
}

/* Such a one is decoded from its start, unless the next excerpt of it goes on. */
static bool is_worth_keeping(const source *f)
{
    return must_be_read(f) && f->bytes.begin == 0 &&
           sf_error(f->file) == SF_ERR_NO_ERROR;
}

bm_status bm_sound_read(bm_sound *s, const char *path, long channel,
                        bm_excerpt part, bm_problem *problem)
{
    bm_status status = turn_to(s, path, part, problem);

    if (s->open == NULL)
        return status;
    channel = channel > 0 ? channel : part.channel;
    if (channel > s->channels)
        bm_problem_set(problem, "no such channel",
                       "%s: no channel %ld; it has %ld", path, channel,
                       s->channels);
    else
        status = read_part(s->open, s, channel, part, problem);
    if (status != BM_OK || !is_worth_keeping(s->open) || part.duration == 0)
        forget(s);
    return status;
}

const char *bm_sound_remark(const bm_sound *s)
{
    size_t equal = 0, full = 0;

    if (s->overrun)
        return "cut at the end of the recording";
    for (size_t i = 0; i < s->n; i++) {
        equal += s->x[i] == s->x[0];
        full += s->x[i] >= 32767 || s->x[i] <= -32768;
    }
    if (s->n > 0 && equal == s->n)
        return s->x[0] == 0 ? "digital silence" : "constant";
    return 1000 * full >= s->n && full > 1 ? "clipped" : NULL;
}

bm_status bm_sound_speed(bm_sound *s, double speed, long rate,
                         bm_problem *problem)
{
    double ratio = (double)rate / (double)s->rate / speed;
    bm_sound out = {.rate = rate, .channels = s->channels};
    SRC_DATA data = {0};
    int error = 0;
    bm_status status = BM_OK;

    if (ratio == 1 || s->n == 0) {
        s->rate = rate;
        return BM_OK;
    }
    if (!src_is_valid_ratio(ratio)) {
        bm_problem_set(problem, "cannot be resampled",
                       "cannot be resampled from %ld to %ld Hz", s->rate, rate);
        return BM_OK;
    }
    BM_TRY_DONE(bm_samples_reserve(&out.x, &out.capacity,
                                   (size_t)((double)s->n * ratio) + 64));
    data.data_in = s->x;
    data.data_out = out.x;
    data.input_frames = (long)s->n;
    data.output_frames = (long)out.capacity;
    data.src_ratio = ratio;
    error = src_simple(&data, SRC_SINC_MEDIUM_QUALITY, 1);
    if (error != 0)
        BM_FAIL_DONE(BM_ERR_MEMORY, "resampling to %ld Hz: %s", rate,
                     src_strerror(error));
    out.n = (size_t)data.output_frames_gen;
    free(s->x);
    out.open = s->open;
    *s = out;
    out = (bm_sound){0};
done:
    free(out.x);
    return status;
}

bm_status bm_sound_resample(bm_sound *s, long rate, bm_problem *problem)
{
    return bm_sound_speed(s, 1, rate, problem);
}

void bm_sound_free(bm_sound *s)
{
    forget(s);
    free(s->x);
    s->x = NULL;
    s->n = s->capacity = 0;
}

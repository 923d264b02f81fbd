/*
 * add_noise.c - adds noise to recordings, in place, for the speech of the quick
 * start.
 *
 *     bmuf_noise SEED LEAST MOST FILE.wav...
 *
 * Each file gets white or pink noise, LEAST to MOST dB below its speech. Kind,
 * level and noise depend on the seed and the file's name without its directory.
 */
#include "core/file/path.h"
#include "core/rng.h"
#include "core/status.h"
#include "io/sound/pink_noise.h"

#include <math.h>
#include <sndfile.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct range {
    uint64_t seed;
    double least, most; /* dB of speech over noise */
} range;

static double power(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return n > 0 ? sum / (double)n : 0;
}

/* Adds noise to x, then scales x down if it would be clipped. */
static void mix(float *x, float *noise, size_t n, bool is_pink, double decibels,
                bm_rng *rng)
{
    double state[3] = {0}, peak = 1, gain;

    for (size_t i = 0; i < n; i++) {
        double white = bm_rng_normal(rng);

        noise[i] = (float)(is_pink ? bm_pink_noise(state, white) : white);
    }
    gain = sqrt(power(x, n) / pow(10, decibels / 10) / power(noise, n));
    for (size_t i = 0; i < n; i++) {
        x[i] += (float)gain * noise[i];
        peak = fmax(peak, fabs((double)x[i]));
    }
    for (size_t i = 0; i < n; i++)
        x[i] /= (float)peak;
}

static bm_status write_wav(const char *path, SF_INFO *info, const float *x)
{
    sf_count_t n = info->frames * info->channels, written;
    SNDFILE *file = sf_open(path, SFM_WRITE, info);

    if (file == NULL)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", path, sf_strerror(NULL));
    written = sf_write_float(file, x, n);
    if (sf_close(file) != 0 || written != n)
        return BM_FAIL(BM_ERR_IO, "%s: cannot be written; is the disk full?",
                       path);
    return BM_OK;
}

static bm_status add_noise(const range *r, const char *path)
{
    const char *name = path + bm_path_folder_length(path);
    bm_rng rng = bm_rng_make(r->seed, name, 0);
    double decibels = r->least + (r->most - r->least) * bm_rng_uniform(&rng);
    bool is_pink = bm_rng_below(&rng, 2) == 1;
    SF_INFO info = {0};
    SNDFILE *file = sf_open(path, SFM_READ, &info);
    float *x = NULL, *noise = NULL;
    size_t n;
    bm_status status = BM_OK;

    if (file == NULL)
        BM_FAIL_DONE(access(path, F_OK) == 0 ? BM_ERR_FORMAT : BM_ERR_MISSING,
                     "%s: %s", path, sf_strerror(NULL));
    n = (size_t)info.frames * (size_t)info.channels;
    x = malloc((n + 1) * sizeof *x);
    noise = malloc((n + 1) * sizeof *noise);
    if (x == NULL || noise == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "%s: no memory for %zu samples", path, n);
    if (sf_read_float(file, x, (sf_count_t)n) != (sf_count_t)n)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: shorter than its header says", path);
    mix(x, noise, n, is_pink, decibels, &rng);
    BM_TRY_DONE(write_wav(path, &info, x));
done:
    sf_close(file);
    free(noise);
    free(x);
    return status;
}

/* Parses a number; false if there is anything else in the text. */
static bool number(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*out);
}

int main(int argc, char **argv)
{
    range r = {0};
    double seed;

    if (argc < 5 || !number(argv[1], &seed) || seed < 0 ||
        !number(argv[2], &r.least) || !number(argv[3], &r.most) ||
        r.least > r.most) {
        fprintf(stderr, "usage: bmuf_noise SEED LEAST MOST FILE.wav...\n");
        return bm_status_exit(BM_ERR_ARG);
    }
    r.seed = (uint64_t)seed;
    for (int i = 4; i < argc; i++) {
        bm_status status = add_noise(&r, argv[i]);

        if (status != BM_OK) {
            fprintf(stderr, "bmuf_noise: %s\n", bm_last_message());
            return bm_status_exit(status);
        }
    }
    return 0;
}

#include "io/sound/perturb.h"

#include "io/augment/draw.h"
#include "io/sound/convolution.h"
#include "io/sound/pink_noise.h"
#include "io/sound/sound_folder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_TALKERS = 3, MOST_TALKERS = 7 }; /* as Kaldi's recipes draw */

static const double longest_response = 10; /* s of an impulse response */

/* Kinds of noise. */
typedef enum kind { WHITE, PINK, BABBLE, FROM_FOLDER } kind;

struct bm_perturb {
    long rate;
    bool has_reverb, made_reverb;
    bm_sound_range t60, direct, snr;
    bm_sound_folder impulse_responses, noises;
    kind kinds[8];
    size_t n_kinds; /* 0: no noise */
};

struct bm_perturber {
    const bm_perturb *p;
    bm_convolver *convolver;
    bm_sound file; /* another recording, or an impulse response */
    float *noise;  /* [capacity] */
    size_t capacity;
};

/* ---- settings ------------------------------------------------------------ */

static bm_status read_noise(bm_perturb *p, const bm_sound_settings *s,
                            const char *setting)
{
    char word[16];
    size_t n = bm_noise_word(s->noise, 0, word);

    if (strcmp(s->noise, "no") == 0)
        return BM_OK;
    if (!bm_noise_made(s->noise)) {
        p->kinds[p->n_kinds++] = FROM_FOLDER;
        return bm_sound_folder_list(&p->noises, s->noise, setting, p->rate);
    }
    for (size_t i = 0; i < n && i < sizeof p->kinds / sizeof p->kinds[0]; i++) {
        bm_noise_word(s->noise, i, word);
        p->kinds[p->n_kinds++] = word[0] == 'w'   ? WHITE
                                 : word[0] == 'p' ? PINK
                                                  : BABBLE;
    }
    return BM_OK;
}

static bm_status read_reverb(bm_perturb *p, const bm_sound_settings *s,
                             const char *setting)
{
    p->has_reverb = strcmp(s->reverb, "no") != 0;
    p->made_reverb = strcmp(s->reverb, "made") == 0;
    if (!p->has_reverb || p->made_reverb)
        return BM_OK;
    BM_TRY(bm_sound_folder_list(&p->impulse_responses, s->reverb, setting,
                                p->rate));
    for (size_t i = 0; i < p->impulse_responses.n; i++)
        if (p->impulse_responses.files[i].seconds > longest_response)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: %s lasts %.1f s, more than the %g s "
                           "of an impulse response; give a folder with "
                           "impulse responses alone",
                           setting, p->impulse_responses.files[i].path,
                           p->impulse_responses.files[i].seconds,
                           longest_response);
    return BM_OK;
}

bool bm_perturb_babbles(const bm_perturb *p)
{
    for (size_t i = 0; i < p->n_kinds; i++)
        if (p->kinds[i] == BABBLE)
            return true;
    return false;
}

uint64_t bm_perturb_digest(const bm_perturb *p)
{
    return 3 * p->impulse_responses.digest + p->noises.digest;
}

bm_status bm_perturb_open(bm_perturb **out, const bm_perturb_settings *s)
{
    const bm_sound_settings *sound = &s->sound;
    bm_perturb *p = calloc(1, sizeof *p);
    bm_status status = BM_OK;

    if (p == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for rooms and noise");
    p->rate = s->rate;
    if (!bm_sound_range_read(sound->t60, &p->t60) ||
        !bm_sound_range_read(sound->direct, &p->direct) ||
        !bm_sound_range_read(sound->snr, &p->snr))
        BM_FAIL_DONE(BM_ERR_CONFIG, "%s, %s: a range is invalid", s->reverb,
                     s->noise);
    BM_TRY_DONE(read_reverb(p, sound, s->reverb));
    BM_TRY_DONE(read_noise(p, sound, s->noise));
    *out = p;
    p = NULL;
done:
    bm_perturb_close(p);
    return status;
}

void bm_perturb_close(bm_perturb *p)
{
    if (p == NULL)
        return;
    bm_sound_folder_free(&p->impulse_responses);
    bm_sound_folder_free(&p->noises);
    free(p);
}

bm_status bm_perturber_new(bm_perturber **out, const bm_perturb *p)
{
    bm_perturber *t = calloc(1, sizeof *t);
    bm_status status = BM_OK;

    if (t == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for rooms and noise");
    t->p = p;
    BM_TRY_DONE(bm_convolver_new(&t->convolver));
    *out = t;
    t = NULL;
done:
    bm_perturber_free(t);
    return status;
}

void bm_perturber_free(bm_perturber *t)
{
    if (t == NULL)
        return;
    bm_convolver_free(t->convolver);
    bm_sound_free(&t->file);
    free(t->noise);
    free(t);
}

/* ---- draws --------------------------------------------------------------- */

static double within(bm_rng *rng, bm_sound_range r)
{
    return r.least + (r.most - r.least) * bm_rng_uniform(rng);
}

static double power(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return n > 0 ? sum / (double)n : 0;
}

static void scale(float *x, size_t n, double factor)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(factor * x[i]);
}

/* Reads a part of a file to t->file, with the source's rate. */
static bm_status read_file(bm_perturber *t, const char *path, long channel,
                           bm_excerpt part, bm_problem *problem)
{
    BM_TRY(bm_sound_read(&t->file, path, channel, part, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    return bm_sound_resample(&t->file, t->p->rate, problem);
}

/* ---- reverb -------------------------------------------------------------- */

/*
 * h [taps] of a made impulse response (Polack 1988): the direct sound 1, and
 * Gaussian noise times exp(-d t), d = 3 ln 10 / T60, `direct` dB weaker.
 */
static bm_status make_impulse_response(bm_perturber *t, bm_rng *rng,
                                       size_t *taps)
{
    const bm_perturb *p = t->p;
    double t60 = within(rng, p->t60), direct = within(rng, p->direct);
    double fall = exp(-log(1000) / (t60 * (double)p->rate));
    double level = 1, energy = 0;

    *taps = (size_t)(t60 * (double)p->rate) + 2;
    BM_TRY(bm_samples_reserve(&t->noise, &t->capacity, *taps));
    t->noise[0] = 1;
    for (size_t i = 1; i < *taps; i++) {
        level *= fall;
        t->noise[i] = (float)(level * bm_draw_gauss(bm_rng_bits(rng)));
        energy += (double)t->noise[i] * t->noise[i];
    }
    scale(t->noise + 1, *taps - 1, sqrt(pow(10, -direct / 10) / energy));
    return BM_OK;
}

/* The first channel of a drawn impulse response; *direct: where it is
 * loudest. */
static bm_status read_impulse_response(bm_perturber *t, bm_rng *rng,
                                       size_t *direct, bm_problem *problem)
{
    const bm_sound_folder *f = &t->p->impulse_responses;
    const char *path = f->files[bm_rng_below(rng, f->n)].path;
    bm_sound *h = &t->file;
    size_t most = (size_t)(longest_response * (double)t->p->rate);

    *direct = 0;
    BM_TRY(read_file(t, path, 1, (bm_excerpt){0}, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    h->n = h->n < most ? h->n : most;
    for (size_t i = 1; i < h->n; i++)
        if (fabsf(h->x[i]) > fabsf(h->x[*direct]))
            *direct = i;
    if (h->n == 0 || h->x[*direct] == 0)
        bm_problem_set(problem, "impulse response that is 0",
                       "%s: all samples are 0", path);
    return BM_OK;
}

static bm_status add_reverb(bm_perturber *t, bm_rng rng, bm_sound *s,
                            bm_problem *problem)
{
    size_t taps = 0, direct = 0;
    const float *h = NULL;
    double before = power(s->x, s->n), after = 0;

    if (t->p->made_reverb) {
        BM_TRY(make_impulse_response(t, &rng, &taps));
        h = t->noise;
    } else {
        BM_TRY(read_impulse_response(t, &rng, &direct, problem));
        if (bm_problem_is(problem))
            return BM_OK;
        h = t->file.x;
        taps = t->file.n;
    }
    BM_TRY(bm_convolve(t->convolver, h, taps, direct, s->x, s->n));
    after = power(s->x, s->n);
    if (after > 0)
        scale(s->x, s->n, sqrt(before / after));
    return BM_OK;
}

/* ---- noise --------------------------------------------------------------- */

static void make_noise(float *x, size_t n, bool pink, bm_rng *rng)
{
    double state[3] = {0};

    for (size_t i = 0; i < n; i++) {
        double white = bm_draw_gauss(bm_rng_bits(rng));

        x[i] = (float)(pink ? bm_pink_noise(state, white) : white);
    }
}

/* x [n] += factor times the file, which is repeated, from sample `at` on. */
static void add_repeated(const bm_sound *file, size_t at, double factor,
                         float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] += (float)(factor * file->x[at]);
        at = at + 1 < file->n ? at + 1 : 0;
    }
}

/* Several of the other recordings, equally loud. One that cannot be read is left
 * out. */
static bm_status make_babble(bm_perturber *t, const bm_babble_source *others,
                             size_t n, bm_rng *rng)
{
    size_t talkers =
        FEWEST_TALKERS + bm_rng_below(rng, MOST_TALKERS - FEWEST_TALKERS + 1);

    memset(t->noise, 0, n * sizeof *t->noise);
    for (size_t k = 0; k < talkers;) {
        size_t other = bm_rng_below(rng, others->n);
        double start = bm_rng_uniform(rng), loud = 0;
        bm_problem problem = {0};

        if (other == others->own)
            continue;
        k++;
        BM_TRY(others->read(others->self, other, &t->file, &problem));
        if (!bm_problem_is(&problem))
            BM_TRY(bm_sound_resample(&t->file, t->p->rate, &problem));
        if (bm_problem_is(&problem) || t->file.n == 0)
            continue;
        loud = power(t->file.x, t->file.n);
        if (loud > 0)
            add_repeated(&t->file, (size_t)(start * (double)t->file.n),
                         1 / sqrt(loud), t->noise, n);
    }
    return BM_OK;
}

/* A drawn part of a drawn file, or all of it again and again. */
static bm_status read_noise_file(bm_perturber *t, size_t n, bm_rng *rng,
                                 bm_problem *problem)
{
    const bm_sound_folder *f = &t->p->noises;
    const bm_sound_file *file = &f->files[bm_rng_below(rng, f->n)];
    double seconds = (double)n / (double)t->p->rate;
    double start = bm_rng_uniform(rng), spare = file->seconds - seconds - 0.02;
    bool longer = spare > 0;
    bm_excerpt part = {longer ? start * spare : 0, longer ? seconds + 0.01 : 0,
                       0};

    memset(t->noise, 0, n * sizeof *t->noise);
    BM_TRY(read_file(t, file->path, 1, part, problem));
    if (bm_problem_is(problem) || t->file.n == 0)
        return BM_OK;
    add_repeated(&t->file, longer ? 0 : (size_t)(start * (double)t->file.n), 1,
                 t->noise, n);
    return BM_OK;
}

static bm_status add_noise(bm_perturber *t, const bm_perturb_draw *draw,
                           bm_sound *s, bm_problem *problem)
{
    bm_rng rng = draw->for_noise;
    double snr = within(&rng, t->p->snr), loud = 0, gain = 0;
    kind what = t->p->kinds[bm_rng_below(&rng, t->p->n_kinds)];

    BM_TRY(bm_samples_reserve(&t->noise, &t->capacity, s->n));
    if (what == BABBLE)
        BM_TRY(make_babble(t, draw->babble, s->n, &rng));
    else if (what == FROM_FOLDER)
        BM_TRY(read_noise_file(t, s->n, &rng, problem));
    else
        make_noise(t->noise, s->n, what == PINK, &rng);
    loud = power(t->noise, s->n);
    if (bm_problem_is(problem) || loud == 0)
        return BM_OK;
    gain = sqrt(power(s->x, s->n) / pow(10, snr / 10) / loud);
    for (size_t i = 0; i < s->n; i++)
        s->x[i] += (float)(gain * t->noise[i]);
    return BM_OK;
}

bm_status bm_perturb_apply(bm_perturber *t, const bm_perturb_draw *draw,
                           bm_sound *s, bm_problem *problem)
{
    const bm_perturb *p = t->p;

    if (s->n > 0 && draw->reverb && p->has_reverb)
        BM_TRY(add_reverb(t, draw->for_reverb, s, problem));
    if (s->n > 0 && draw->noise && p->n_kinds > 0 && !bm_problem_is(problem))
        BM_TRY(add_noise(t, draw, s, problem));
    return BM_OK;
}

/*
 * pitch.c - correlations are computed in double, so that windows with little
 * energy after loud ones keep their digits; costs of the path in float, as
 * Kaldi's are (pitch_path.c).
 */
#include "io/features/pitch.h"

#include "io/features/pitch_path.h"
#include "io/features/sinc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    RATE = 4000, /* Hz, at which the correlation is computed */
    LOW_HZ = 50,
    HIGH_HZ = 400,
    ZEROS = 5,     /* of the sinc that interpolates the correlation */
    FIRST_LAG = 8, /* samples; ZEROS / 2 below RATE / HIGH_HZ */
    LAST_LAG = 82, /* ZEROS / 2 above RATE / LOW_HZ */
    LAGS = LAST_LAG - FIRST_LAG + 1,
    BLOCK = 16, /* lags that are correlated together */
    BLOCKS = (LAGS + BLOCK - 1) / BLOCK,
    TAPS = 2 * ZEROS + 1,
    LATE = 2,      /* samples: half the width of low_pass */
    LEAST_MS = 10, /* of a window */
    SIDE = 75      /* frames on each side of a mean */
};

static const bm_sinc low_pass = {.cutoff = 1000, .zeros = 1};
static const bm_sinc between_lags = {.cutoff = 0.5 * RATE, .zeros = ZEROS};
static const double step = 0.005; /* from one lag to the next, relative */
static const double soft_low_hz = 10, penalty = 0.1, ballast = 7000;

/* A lag of the path, between those in whole samples. */
typedef struct state {
    double lag; /* s */
    float soft; /* soft_low_hz * lag */
    size_t first;
    double weight[TAPS]; /* of the correlations first .. */
} state;

struct bm_pitch {
    bm_pitch_settings s;
    size_t window, states;
    state *state; /* [states] */
    bm_sinc_resampler *resampler;
    bm_pitch_path *path;
    float *cost; /* [states] */

    double *x; /* [room_x]: the signal at RATE */
    size_t n, room_x;
    size_t early;          /* samples: all but the last LATE */
    double ballast[2];     /* of early samples, of all */
    double *cut;           /* [window + LAST_LAG + BLOCK]: of a frame */
    uint16_t *best;        /* [room] */
    bm_pitch_point *track; /* [room] */
    size_t room;           /* frames */
};

/* ---- opening ------------------------------------------------------------- */

static void fill_state(state *s, double lag)
{
    double at = lag * RATE - FIRST_LAG;
    double first = fmin(fmax(ceil(at - ZEROS), 0), LAGS - TAPS);

    s->lag = lag;
    s->soft = (float)soft_low_hz * (float)lag;
    s->first = (size_t)first;
    for (int i = 0; i < TAPS; i++)
        s->weight[i] =
            bm_sinc_at(&between_lags, (first + i - at) / RATE) / RATE;
}

static bm_status make(bm_pitch *p)
{
    double log_step = log(1 + step);

    p->states = 1 + (size_t)(log((double)HIGH_HZ / LOW_HZ) / log_step);
    p->window = (size_t)(p->s.window_ms * RATE / 1000);
    p->state = calloc(p->states, sizeof *p->state);
    p->cost = calloc(p->states, sizeof *p->cost);
    p->cut = calloc(p->window + LAST_LAG + BLOCK, sizeof *p->cut);
    if (p->state == NULL || p->cost == NULL || p->cut == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for pitch");
    for (size_t i = 0; i < p->states; i++)
        fill_state(&p->state[i], exp((double)i * log_step) / HIGH_HZ);
    BM_TRY(
        bm_pitch_path_new(&p->path, p->states, penalty * log_step * log_step));
    return bm_sinc_resampler_new(&p->resampler, &low_pass, p->s.rate, RATE);
}

bm_status bm_pitch_new(bm_pitch **out, const bm_pitch_settings *s)
{
    bm_pitch *p = NULL;
    bm_status status = BM_OK;

    if ((double)s->rate < 2 * low_pass.cutoff)
        return BM_FAIL(BM_ERR_CONFIG,
                       "features.pitch: a rate of %ld Hz is too low; %g Hz is "
                       "the least; set features.rate, or features.pitch=no",
                       s->rate, 2 * low_pass.cutoff);
    if (s->window_ms < LEAST_MS)
        return BM_FAIL(BM_ERR_CONFIG,
                       "features.pitch: a window of %g ms is too short; set "
                       "features.window_ms to %d at least",
                       s->window_ms, LEAST_MS);
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for pitch");
    p->s = *s;
    BM_TRY_DONE(make(p));
    *out = p;
    p = NULL;
done:
    bm_pitch_free(p);
    return status;
}

static void free_room(bm_pitch *p)
{
    free(p->best);
    free(p->track);
    p->best = NULL;
    p->track = NULL;
    p->room = 0;
}

void bm_pitch_free(bm_pitch *p)
{
    if (p == NULL)
        return;
    free_room(p);
    free(p->state);
    free(p->cost);
    free(p->cut);
    free(p->x);
    bm_pitch_path_free(p->path);
    bm_sinc_resampler_free(p->resampler);
    free(p);
}

/* ---- the path ------------------------------------------------------------ */

/* p->x <- x at RATE */
static bm_status resample(bm_pitch *p, const float *x, size_t n)
{
    p->n = bm_sinc_resampled(p->resampler, n);
    if (p->n > p->room_x) {
        free(p->x);
        p->room_x = 0;
        p->x = malloc(p->n * sizeof *p->x);
        if (p->x == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu samples", p->n);
        p->room_x = p->n;
    }
    bm_sinc_resample(p->resampler, x, n, p->x);
    return BM_OK;
}

static bm_status make_room(bm_pitch *p, size_t frames)
{
    BM_TRY(bm_pitch_path_start(p->path, frames));
    if (frames <= p->room)
        return BM_OK;
    free_room(p);
    p->best = malloc(frames * sizeof *p->best);
    p->track = malloc(frames * sizeof *p->track);
    if (p->best == NULL || p->track == NULL) {
        free_room(p);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the pitch of %zu frames",
                       frames);
    }
    p->room = frames;
    return BM_OK;
}

/* b of the first n samples of the signal; 0 if there are none */
static double ballast_of(const bm_pitch *p, size_t n)
{
    double sum = 0, squares = 0, mean, energy;

    for (size_t i = 0; i < n; i++) {
        sum += p->x[i];
        squares += p->x[i] * p->x[i];
    }
    if (n == 0)
        return 0;
    mean = sum / (double)n;
    energy = (double)p->window * (squares / (double)n - mean * mean);
    return ballast * energy * energy;
}

/* Where frame t begins, in samples at RATE. */
static ptrdiff_t start_of(const bm_pitch *p, size_t t)
{
    double shift = p->s.shift * RATE / (double)p->s.rate;
    size_t length = p->window + LAST_LAG;

    if (p->s.snip_edges)
        return (ptrdiff_t)floor((double)t * shift + 0.5);
    return (ptrdiff_t)floor(((double)t + 0.5) * shift) -
           (ptrdiff_t)(length / 2);
}

/* b of frame t. Kaldi's resampler holds the last samples back until the signal
 * ends: only frames that reach them are of the energy of all samples. */
static double ballast_at(const bm_pitch *p, size_t t)
{
    ptrdiff_t end = start_of(p, t) + (ptrdiff_t)(p->window + LAST_LAG);

    return p->ballast[end > (ptrdiff_t)p->early];
}

/* p->cut <- frame t, less the mean of its window */
static void cut(bm_pitch *p, size_t t)
{
    ptrdiff_t first = start_of(p, t), end = (ptrdiff_t)p->n;
    double mean = 0;

    for (size_t i = 0; i < p->window + LAST_LAG; i++) {
        ptrdiff_t at = first + (ptrdiff_t)i;
        p->cut[i] = at >= 0 && at < end ? p->x[at] : 0;
    }
    for (size_t i = 0; i < p->window; i++)
        mean += p->cut[i];
    mean /= (double)p->window;
    for (size_t i = 0; i < p->window + LAST_LAG; i++)
        p->cut[i] -= mean;
}

/* out[k] = sum over i < n of x[i] y[i + k]. The inner loop has a fixed length,
 * so that the sums stay in vector registers. */
static void correlate(const double *x, const double *y, size_t n,
                      double out[BLOCK])
{
    double sum[BLOCK] = {0};

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < BLOCK; k++)
            sum[k] += x[i] * y[i + k];
    memcpy(out, sum, sizeof sum);
}

/* nccf [lags] of the frame in p->cut, from FIRST_LAG + first on, with ballast b */
static void normalised_correlation(const bm_pitch *p, size_t first, size_t lags,
                                   double b, double *nccf)
{
    const double *x = p->cut, *y = x + FIRST_LAG + first;
    double product[BLOCKS * BLOCK], own = 0, energy = 0;

    for (size_t l = 0; l < lags; l += BLOCK)
        correlate(x, y + l, p->window, product + l);
    for (size_t i = 0; i < p->window; i++) {
        own += x[i] * x[i];
        energy += y[i] * y[i];
    }
    for (size_t l = 0; l < lags; l++) {
        double norm = own * fmax(energy, 0) + b, out = y[l],
               in = y[l + p->window];

        nccf[l] = norm > 0 ? product[l] / sqrt(norm) : 0;
        energy += in * in - out * out;
    }
}

/* nccf: the correlations from s->first on. Returns the one at the lag of s. */
static double at_state(const state *s, const double *nccf)
{
    double sum = 0;

    for (int i = 0; i < TAPS; i++)
        sum += s->weight[i] * nccf[i];
    return sum;
}

/* Adds the costs of frame t to the path. */
static void add_frame(bm_pitch *p, size_t t)
{
    double nccf[LAGS];

    cut(p, t);
    normalised_correlation(p, 0, LAGS, ballast_at(p, t), nccf);
    for (size_t i = 0; i < p->states; i++) {
        const state *s = &p->state[i];
        float c = (float)at_state(s, nccf + s->first);

        p->cost[i] = 1 - c + s->soft * c;
    }
    bm_pitch_path_add(p->path, p->cost);
}

/* Frame t of the path, in state s. */
static bm_pitch_point point_of(bm_pitch *p, size_t t, const state *s)
{
    double nccf[TAPS];

    cut(p, t);
    normalised_correlation(p, s->first, TAPS, 0, nccf);
    return (bm_pitch_point){at_state(s, nccf), -log(s->lag)};
}

bm_status bm_pitch_track(bm_pitch *p, const float *x, size_t n, size_t frames,
                         const bm_pitch_point **out)
{
    BM_TRY(resample(p, x, n));
    BM_TRY(make_room(p, frames));
    p->early = p->n > LATE ? p->n - LATE : 0;
    p->ballast[false] = ballast_of(p, p->early);
    p->ballast[true] = ballast_of(p, p->n);
    for (size_t t = 0; t < frames; t++)
        add_frame(p, t);
    bm_pitch_path_end(p->path, p->best);
    for (size_t t = 0; t < frames; t++)
        p->track[t] = point_of(p, t, &p->state[p->best[t]]);
    *out = p->track;
    return BM_OK;
}

/* ---- columns ------------------------------------------------------------- */

/* The probability that a frame is voiced; fitted by the paper's authors. */
static double voiced(double nccf)
{
    double a = fmin(fabs(nccf), 1);
    double r = -5.2 + 5.4 * exp(7.5 * (a - 1)) + 4.8 * a - 2 * exp(-10 * a) +
               4.2 * exp(20 * (a - 1));

    return 1 / (1 + exp(-r));
}

static double slope(const bm_pitch_point *track, size_t frames, size_t t)
{
    double sum = 0;

    for (size_t j = 1; j <= 2; j++) {
        size_t before = t > j ? t - j : 0;
        size_t after = t + j < frames ? t + j : frames - 1;
        sum += (double)j * (track[after].log_hz - track[before].log_hz);
    }
    return sum / 10; /* 2 (1 + 2^2) */
}

void bm_pitch_columns(const bm_pitch_point *track, size_t frames, float *y,
                      size_t stride)
{
    size_t begin = 0, end = 0; /* frames in the sums */
    double weight = 0, sum = 0;

    for (size_t t = 0; t < frames; t++, y += stride) {
        const bm_pitch_point *x = &track[t];

        for (; end < frames && end <= t + SIDE; end++) {
            weight += voiced(track[end].nccf);
            sum += voiced(track[end].nccf) * track[end].log_hz;
        }
        for (; begin + SIDE < t; begin++) {
            weight -= voiced(track[begin].nccf);
            sum -= voiced(track[begin].nccf) * track[begin].log_hz;
        }
        y[0] =
            (float)(2 * (pow(1.0001 - fmin(fmax(x->nccf, -1), 1), 0.15) - 1));
        y[1] = (float)(2 * (x->log_hz - sum / weight));
        y[2] = (float)(10 * slope(track, frames, t));
    }
}

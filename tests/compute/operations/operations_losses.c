/* operations_losses.c - CTC and cross entropy. */
#include "tests/compute/operations/subjects.h"
#include "tests/support/reference/support_ctc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* {T, B, C, tenths of label smoothing} */
enum { LOSS_Y, LOSS_DY, LOSS_SCORE };

static double smoothing_of(const trial *t)
{
    return (double)t->shape[3] / 10;
}

/* KL(u || p), with p the softmax of x [C] and u uniform. */
static double spread(size_t C, const double *x)
{
    double sum = 0, mean = 0;

    for (size_t k = 0; k < C; k++) {
        sum += exp(x[k]);
        mean += x[k] / (double)C;
    }
    return log(sum) - mean - log((double)C);
}

/* dy [C] <- (1 - e) dy + e share (the derivative of the spread, by
 * differences). */
static void smooth(const trial *t, const float *y, double share, double *dy)
{
    const double h = 1e-4, e = smoothing_of(t);
    size_t C = t->shape[2];
    double x[64];

    assert_true(C <= 64);
    for (size_t k = 0; k < C; k++)
        x[k] = y[k];
    for (size_t k = 0; k < C; k++) {
        double up = 0, down = 0;

        x[k] = y[k] + h;
        up = spread(C, x);
        x[k] = y[k] - h;
        down = spread(C, x);
        x[k] = y[k];
        dy[k] = (1 - e) * dy[k] + e * share * (up - down) / (2 * h);
    }
}

/* `per_frame`: a class for each frame; else so few labels that they fit. */
static void make_loss(trial *t, bool per_frame)
{
    size_t T = t->shape[0], B = t->shape[1], C = t->shape[2], n = 0;

    draw_frames(t, T, B, each_frame);
    for (size_t b = 0; b < B; b++) {
        size_t frames = (size_t)t->in_frames[b];

        t->count[b] = (int32_t)(per_frame ? frames : frames / 2);
        for (int32_t i = 0; i < t->count[b]; i++, n++)
            t->classes[n] =
                (int32_t)(per_frame ? n * 7 % C : 1 + n * 7 % (C - 1));
    }
    assert_true(n <= sizeof t->classes / sizeof t->classes[0]);
    t->targets = (bm_targets){t->classes, t->count};
    set_padding(&t->in, drawn(t, INPUT, T * B * C), C, NAN);
    output(t, T * B * C);
    zeroed(t, UPDATED, true, sizeof(bm_score) / sizeof(double));
}

static void make_cross_entropy(trial *t)
{
    make_loss(t, true);
}

static bm_tensor logits(const trial *t, float *x)
{
    return (bm_tensor){x, 3, {t->shape[0], t->shape[1], t->shape[2], 1}};
}

static void queue_cross_entropy(bm_backend *be, trial *t, float *const *x)
{
    bm_cross_entropy(be, t->in, t->targets, (float)smoothing_of(t),
                     logits(t, x[LOSS_Y]), logits(t, x[LOSS_DY]),
                     (bm_score *)(void *)x[LOSS_SCORE]);
}

/* The logits of sequence b, end to end; free them. */
static float *sequence(const trial *t, const double *y, size_t b)
{
    size_t B = t->shape[1], C = t->shape[2], T = (size_t)t->in_frames[b];
    float *x = zeros(T * C, sizeof *x);

    for (size_t i = 0; i < T * C; i++)
        x[i] = (float)y[(i / C * B + b) * C + i % C];
    return x;
}

static size_t best_class(const float *x, size_t C)
{
    size_t best = 0;

    for (size_t k = 1; k < C; k++)
        best = x[k] > x[best] ? k : best;
    return best;
}

/* Those without frames are skipped. */
static size_t count_with_frames(const trial *t)
{
    size_t n = 0;

    for (size_t b = 0; b < t->shape[1]; b++)
        n += t->in_frames[b] > 0;
    return n;
}

static void cross_entropy(const trial *t, double *const *x)
{
    size_t B = t->shape[1], C = t->shape[2], n = 0, all = 0;
    size_t counted = count_with_frames(t);
    bm_score score = {.sequences = (double)counted,
                      .skipped = (double)(B - counted)};
    double lp[64] = {0};

    assert_true(C <= 64);
    memset(x[LOSS_DY], 0, t->arrays[LOSS_DY].n * sizeof(double));
    for (size_t b = 0; b < B; b++)
        all += (size_t)t->in_frames[b];
    for (size_t b = 0; b < B; b++) {
        float *y = sequence(t, x[LOSS_Y], b);

        for (size_t i = 0; i < (size_t)t->in_frames[b]; i++, n++) {
            size_t class = (size_t)t->classes[n];

            log_softmax(C, y + i * C, lp);
            score.loss -= lp[class];
            score.errors += best_class(y + i * C, C) != class;
            for (size_t k = 0; k < C; k++)
                x[LOSS_DY][(i * B + b) * C + k] =
                    (exp(lp[k]) - (k == class)) / (double)all;
            smooth(t, y + i * C, 1 / (double)all, x[LOSS_DY] + (i * B + b) * C);
        }
        free(y);
    }
    score.frames = score.count = (double)all;
    score.chance = (double)all * log((double)C);
    memcpy(x[LOSS_SCORE], &score, sizeof score);
}

static void make_ctc(trial *t)
{
    make_loss(t, false);
}

static void queue_ctc(bm_backend *be, trial *t, float *const *x)
{
    float *work =
        scratch(be, t, bm_ctc_work(be, t->in, t->targets, t->shape[2]));

    bm_ctc(be, t->in, t->targets, BM_INFEASIBLE_SKIP, (float)smoothing_of(t),
           logits(t, x[LOSS_Y]), logits(t, x[LOSS_DY]), work,
           (bm_score *)(void *)x[LOSS_SCORE]);
}

/* Without the edit distance, which test_ctc.c has. */
static void ctc(const trial *t, double *const *x)
{
    size_t B = t->shape[1], C = t->shape[2], counted = count_with_frames(t);
    const int32_t *labels = t->classes;
    bm_score score = {.sequences = (double)counted,
                      .skipped = (double)(B - counted),
                      .errors = NAN};

    memset(x[LOSS_DY], 0, t->arrays[LOSS_DY].n * sizeof(double));
    for (size_t b = 0; b < B; b++) {
        size_t T = (size_t)t->in_frames[b], L = (size_t)t->count[b];
        float *y = sequence(t, x[LOSS_Y], b);
        double *dy = zeros(T * C, sizeof *dy), lp[64] = {0};

        assert_true(C <= 64);
        score.loss += T > 0 ? ctc_reference(T, C, y, labels, L, dy) : 0;
        for (size_t i = 0; i < T * C; i++)
            x[LOSS_DY][(i / C * B + b) * C + i % C] = dy[i] / (double)counted;
        for (size_t i = 0; i < T; i++) {
            log_softmax(C, y + i * C, lp);
            score.blank += exp(lp[0]);
            smooth(t, y + i * C, 1 / (double)(T * counted),
                   x[LOSS_DY] + (i * B + b) * C);
        }
        score.frames += (double)T;
        score.count += (double)L;
        labels += L;
        free(y);
        free(dy);
    }
    score.chance = NAN; /* see test_ctc.c */
    memcpy(x[LOSS_SCORE], &score, sizeof score);
}

static const subject rows[] = {
    {"ctc_work ctc",
     false,
     make_ctc,
     queue_ctc,
     ctc,
     0,
     0,
     {{0, 0}},
     1e-5,
     0x1p-7,
     {{8, 4, 5},
      {13, 3, 33},
      {1, 1, 2},
      {8, 4, 5, 1},
      {13, 3, 33, 4},
      {1, 1, 2, 9}}},
    {"cross_entropy",
     false,
     make_cross_entropy,
     queue_cross_entropy,
     cross_entropy,
     0,
     0,
     {{0, 0}},
     1e-5,
     0x1p-7,
     {{7, 4, 5},
      {9, 3, 33},
      {1, 1, 1},
      {7, 4, 5, 1},
      {9, 3, 33, 4},
      {1, 1, 1, 9}}},
};

const subjects losses_subjects = {rows, sizeof rows / sizeof *rows};

/* operations_normalisation.c - batch and layer normalisation. */
#include "tests/compute/operations/subjects.h"

#include <math.h>
#include <stdlib.h>

/* {T, B, H, C, frames and rows of a window, function}; SEEN: y with the given
 * mean and variance */
enum {
    NORM_X,
    NORM_DY,
    NORM_Y,
    NORM_DX,
    NORM_GAMMA,
    NORM_BETA,
    NORM_MEAN,
    NORM_VAR,
    NORM_DGAMMA,
    NORM_DBETA,
    NORM_OFF,
    NORM_SEEN
};

static void make_norm(trial *t)
{
    size_t C = t->shape[3];
    array *var = NULL;

    make_windows(t);
    for (int k = NORM_GAMMA; k <= NORM_VAR; k++)
        var = drawn(t, INPUT, C);
    for (size_t c = 0; c < C; c++)
        var->x[c] = fabs(var->x[c]);
    output(t, C);
    output(t, C);
    output(t, 2 * C);
    output(t, t->arrays[NORM_Y].n);
}

static void queue_norm(bm_backend *be, trial *t, float *const *x)
{
    const size_t *s = t->shape;
    bm_norm n = {s[2],
                 s[3],
                 x[NORM_GAMMA],
                 x[NORM_BETA],
                 x[NORM_MEAN],
                 x[NORM_VAR],
                 (bm_activation)s[6],
                 side_by_side(s[4]),
                 side_by_side(s[5])};
    float *kept = scratch(be, t, bm_norm_kept(be, &n, t->out));

    bm_norm_forward(be, &n, t->in, t->out, false, x[NORM_X], x[NORM_SEEN],
                    kept);
    bm_norm_forward(be, &n, t->in, t->out, true, x[NORM_X], x[NORM_Y], kept);
    bm_norm_backward(be, &n, t->in, t->out, x[NORM_X], x[NORM_Y], x[NORM_DY],
                     kept, x[NORM_DX], x[NORM_DGAMMA], x[NORM_DBETA],
                     x[NORM_OFF], x[NORM_OFF] + s[3]);
}

/* The mean over all places of channel c of (x - center)^power. */
static double moment(const trial *t, const double *x, size_t c, double center,
                     int power)
{
    size_t C = t->shape[3], n = 0;
    double sum = 0;

    for (size_t i = c; i < t->arrays[NORM_X].n; i += C)
        if (inside(&t->in, i, t->shape[2] * C)) {
            sum += pow(x[i] - center, power);
            n++;
        }
    return sum / (double)n;
}

static void normalise(const trial *t, double *const *x, const double *mean,
                      const double *var, double *y)
{
    size_t C = t->shape[3], n = C > 0 ? t->arrays[NORM_X].n : 0;
    double *z = zeros(n, sizeof *z);

    for (size_t i = 0; i < n; i++)
        z[i] = x[NORM_GAMMA][i % C] * (x[NORM_X][i] - mean[i % C]) /
                   sqrt(var[i % C] + BM_NORM_EPSILON) +
               x[NORM_BETA][i % C];
    expect_pooling(t, (bm_activation)t->shape[6], z, y, t->arrays[NORM_Y].n);
    free(z);
}

static void norm(const trial *t, double *const *x)
{
    enum { MOST = 40 };
    size_t C = t->shape[3];
    double mean[MOST], var[MOST];

    assert_true(C <= MOST);
    for (size_t c = 0; c < C; c++) {
        mean[c] = moment(t, x[NORM_X], c, 0, 1);
        var[c] = moment(t, x[NORM_X], c, mean[c], 2);
        x[NORM_OFF][c] = x[NORM_MEAN][c] - mean[c];
        x[NORM_OFF][C + c] = x[NORM_VAR][c] - var[c];
    }
    normalise(t, x, mean, var, x[NORM_Y]);
    normalise(t, x, x[NORM_MEAN], x[NORM_VAR], x[NORM_SEEN]);
}

/* {T, B, D}; padding of x and dy holds NaN */
enum {
    LAYERNORM_X,
    LAYERNORM_GAMMA,
    LAYERNORM_BETA,
    LAYERNORM_DY,
    LAYERNORM_Y,
    LAYERNORM_DX,
    LAYERNORM_DGAMMA,
    LAYERNORM_DBETA
};

static void make_layernorm(trial *t)
{
    size_t D = t->shape[2], n = t->shape[0] * t->shape[1] * D;

    draw_frames(t, t->shape[0], t->shape[1], each_frame);
    set_padding(&t->in, drawn(t, INPUT, n), D, NAN);
    drawn(t, INPUT, D);
    drawn(t, INPUT, D);
    set_padding(&t->in, drawn(t, INPUT, n), D, NAN);
    output(t, n);
    output(t, n);
    output(t, D);
    output(t, D);
}

static void queue_layernorm(bm_backend *be, trial *t, float *const *x)
{
    bm_layernorm n = {t->shape[2], x[LAYERNORM_GAMMA], x[LAYERNORM_BETA]};
    float *kept = scratch(be, t, bm_layernorm_kept(be, &n, t->in));

    bm_layernorm_forward(be, &n, t->in, x[LAYERNORM_X], x[LAYERNORM_Y], kept);
    bm_layernorm_backward(be, &n, t->in, x[LAYERNORM_X], x[LAYERNORM_DY], kept,
                          x[LAYERNORM_DX], x[LAYERNORM_DGAMMA],
                          x[LAYERNORM_DBETA]);
}

static void layernorm(const trial *t, double *const *x)
{
    size_t D = t->shape[2], n = t->arrays[LAYERNORM_X].n;

    for (size_t i = 0; i < n; i += D) {
        const double *from = x[LAYERNORM_X] + i;
        double *to = x[LAYERNORM_Y] + i, mean = 0, var = 0;

        for (size_t k = 0; k < D; k++)
            mean += from[k] / (double)D;
        for (size_t k = 0; k < D; k++)
            var += (from[k] - mean) * (from[k] - mean) / (double)D;
        for (size_t k = 0; k < D; k++)
            to[k] = inside(&t->in, i, D)
                        ? x[LAYERNORM_GAMMA][k] * (from[k] - mean) /
                                  sqrt(var + 1e-5) +
                              x[LAYERNORM_BETA][k]
                        : 0;
    }
}

static const subject rows[] = {
    {"norm_kept norm_forward norm_backward",
     false,
     make_norm,
     queue_norm,
     norm,
     NORM_Y,
     NORM_DY,
     {{NORM_X, NORM_DX}, {NORM_GAMMA, NORM_DGAMMA}, {NORM_BETA, NORM_DBETA}},
     2e-5,
     0x1p-7,
     {{4, 4, 5, 3, 1, 1, BM_IDENTITY},
      {5, 3, 4, 2, 2, 2, BM_RELU},
      {4, 4, 3, 17, 1, 2, BM_TANH},
      {4, 3, 6, 4, 3, 4, BM_LEAKY_RELU},
      {5, 4, 1, 1, 2, 1, BM_SIGMOID}}},
    {"layernorm_kept layernorm_forward layernorm_backward",
     false,
     make_layernorm,
     queue_layernorm,
     layernorm,
     LAYERNORM_Y,
     LAYERNORM_DY,
     {{LAYERNORM_X, LAYERNORM_DX},
      {LAYERNORM_GAMMA, LAYERNORM_DGAMMA},
      {LAYERNORM_BETA, LAYERNORM_DBETA}},
     2e-5,
     0x1p-6,
     {{4, 4, 5}, {5, 3, 16}, {3, 2, 37}, {2, 2, 270}, {70, 2, 3}, {2, 1, 1}}},
};

const subjects normalisation_subjects = {rows, sizeof rows / sizeof *rows};

#include "cli/tune/gauss.h"

#include "core/size.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Logarithms of the lengths, then of the noise's variance as a part of the
 * function's. */
typedef struct shape {
    double log[BM_GAUSS_AXES + 1];
} shape;

struct bm_gauss {
    size_t n, d;
    double *x;      /* [n, d] */
    double *y;      /* [n], of mean 0 and variance 1 */
    double *factor; /* [n, n]: the lower Cholesky factor of the kernel */
    double *weight; /* [n]: the kernel's inverse times y */
    double *column; /* [n], for predictions */
    double mean, scale, variance;
    shape s;
};

static double matern(const shape *s, size_t d, const double *a, const double *b)
{
    double sum = 0, r = 0;

    for (size_t k = 0; k < d; k++) {
        double step = (a[k] - b[k]) * exp(-s->log[k]);
        sum += step * step;
    }
    r = sqrt(5 * sum);
    return (1 + r + r * r / 3) * exp(-r);
}

/* g->factor <- the factor of the kernel of all points. False: not positive
 * definite. */
static bool factorise(bm_gauss *g)
{
    size_t n = g->n;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double *row = g->factor + i * n, *other = g->factor + j * n;
            double sum = matern(&g->s, g->d, g->x + i * g->d, g->x + j * g->d);

            if (i == j)
                sum += exp(g->s.log[g->d]);
            for (size_t k = 0; k < j; k++)
                sum -= row[k] * other[k];
            if (i == j && !(sum > 1e-12))
                return false;
            row[j] = i == j ? sqrt(sum) : sum / other[j];
        }
    return true;
}

/* x <- the inverse of the factor times x, then of its transpose if asked. */
static void solve(const bm_gauss *g, double *x, bool both)
{
    size_t n = g->n;

    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= g->factor[i * n + k] * x[k];
        x[i] /= g->factor[i * n + i];
    }
    for (size_t i = n; both && i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            x[i] -= g->factor[k * n + i] * x[k];
        x[i] /= g->factor[i * n + i];
    }
}

static double square(double x)
{
    return x * x;
}

/* Lengths near half the range, noise near a hundredth of the variance. */
static double log_prior(const bm_gauss *g)
{
    double sum = -0.5 * square((g->s.log[g->d] - log(0.01)) / 2);

    for (size_t k = 0; k < g->d; k++)
        sum -= 0.5 * square(g->s.log[k] - log(0.5));
    return sum;
}

/* The log posterior of g->s up to a constant, with the variance that maximises
 * it; sets factor, weight and variance. */
static double log_posterior(bm_gauss *g)
{
    double logs = 0, fit = 0;

    if (!factorise(g))
        return -INFINITY;
    memcpy(g->weight, g->y, g->n * sizeof *g->weight);
    solve(g, g->weight, true);
    for (size_t i = 0; i < g->n; i++) {
        logs += log(g->factor[i * g->n + i]);
        fit += g->weight[i] * g->y[i];
    }
    g->variance = fmax(fit / (double)g->n, 1e-12);
    return log_prior(g) - logs - 0.5 * (double)g->n * log(g->variance);
}

/* Changes one parameter at a time, by steps that become smaller. */
static void find_shape(bm_gauss *g)
{
    double best = 0;

    for (size_t k = 0; k < g->d; k++)
        g->s.log[k] = log(0.5);
    g->s.log[g->d] = log(0.01);
    best = log_posterior(g);
    for (double step = 1.5; step > 0.1;) {
        bool better = false;

        for (size_t k = 0; k <= 2 * g->d + 1; k++) {
            double *one = &g->s.log[k / 2], before = *one, now = 0;

            *one += k % 2 == 0 ? step : -step;
            now = log_posterior(g);
            better = better || now > best;
            if (now > best)
                best = now;
            else
                *one = before;
        }
        if (!better)
            step /= 2;
    }
    (void)log_posterior(g);
}

static void standardise(bm_gauss *g, const double *y)
{
    double sum = 0;

    for (size_t i = 0; i < g->n; i++)
        g->mean += y[i] / (double)g->n;
    for (size_t i = 0; i < g->n; i++)
        sum += square(y[i] - g->mean);
    g->scale = sum > 0 ? sqrt(sum / (double)g->n) : 1;
    for (size_t i = 0; i < g->n; i++)
        g->y[i] = (y[i] - g->mean) / g->scale;
}

bm_status bm_gauss_fit(bm_gauss **out, size_t n, size_t d, const double *x,
                       const double *y)
{
    bm_gauss *g = calloc(1, sizeof *g);

    BM_ASSERT(n >= 2 && d >= 1 && d <= BM_GAUSS_AXES);
    if (g == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a model of the trials");
    g->n = n;
    g->d = d;
    g->x = malloc(n * d * sizeof *g->x);
    g->y = malloc(n * sizeof *g->y);
    g->factor = malloc(n * n * sizeof *g->factor);
    g->weight = malloc(n * sizeof *g->weight);
    g->column = malloc(n * sizeof *g->column);
    if (g->x == NULL || g->y == NULL || g->factor == NULL ||
        g->weight == NULL || g->column == NULL) {
        bm_gauss_free(g);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a model of %zu trials", n);
    }
    memcpy(g->x, x, n * d * sizeof *g->x);
    standardise(g, y);
    find_shape(g);
    *out = g;
    return BM_OK;
}

void bm_gauss_free(bm_gauss *g)
{
    if (g == NULL)
        return;
    free(g->x);
    free(g->y);
    free(g->factor);
    free(g->weight);
    free(g->column);
    free(g);
}

void bm_gauss_predict(const bm_gauss *g, const double *x, double *mean,
                      double *deviation)
{
    double sum = 0, known = 0;

    for (size_t i = 0; i < g->n; i++) {
        g->column[i] = matern(&g->s, g->d, x, g->x + i * g->d);
        sum += g->column[i] * g->weight[i];
    }
    solve(g, g->column, false);
    for (size_t i = 0; i < g->n; i++)
        known += square(g->column[i]);
    *mean = g->mean + g->scale * sum;
    *deviation = g->scale * sqrt(g->variance * fmax(1 - known, 0));
}

double bm_gauss_length(const bm_gauss *g, size_t axis)
{
    return exp(g->s.log[axis]);
}

double bm_gauss_improvement(const bm_gauss *g, const double *x, double best)
{
    double mean = 0, deviation = 0, z = 0;

    bm_gauss_predict(g, x, &mean, &deviation);
    if (deviation <= 0)
        return fmax(best - mean, 0);
    z = (best - mean) / deviation;
    return (best - mean) * 0.5 * erfc(-z / sqrt(2)) +
           deviation * exp(-z * z / 2) / sqrt(2 * acos(-1));
}

#include "cli/plot/axis.h"

#include <math.h>
#include <stdio.h>

/* Larger numbers than these are no measurements, and ranges of them have no
 * width as a double. */
static const double most_shown = 1e100, least_shown = 1e-100;

bool bm_plot_axis_shows(const bm_plot_axis *a, double x)
{
    if (!(fabs(x) <= most_shown)) /* NaN, too */
        return false;
    if (a->scale == BM_PLOT_LOGIT)
        return x >= least_shown && x < 1;
    return a->scale == BM_PLOT_LINEAR || x >= least_shown;
}

/* Even distances on the axis are even differences of this. */
static double scaled(const bm_plot_axis *a, double x)
{
    switch (a->scale) {
    case BM_PLOT_LOG:
    case BM_PLOT_LOG2:
        return log2(x);
    case BM_PLOT_LOGIT:
        return log(x / (1 - x));
    default:
        return x;
    }
}

static double unscaled(const bm_plot_axis *a, double y)
{
    switch (a->scale) {
    case BM_PLOT_LOG:
    case BM_PLOT_LOG2:
        return exp2(y);
    case BM_PLOT_LOGIT:
        return 1 / (1 + exp(-y));
    default:
        return y;
    }
}

void bm_plot_axis_fit(bm_plot_axis *a, double least, double most)
{
    double low = 0, high = 0, margin = 0;

    if (a->least < a->most)
        return;
    if (a->names != NULL) {
        a->least = -0.5;
        a->most = (double)a->n_names - 0.5;
        return;
    }
    if (a->from_zero && a->scale == BM_PLOT_LINEAR)
        least = fmin(least, 0);
    if (!bm_plot_axis_shows(a, least) || !bm_plot_axis_shows(a, most)) {
        a->least = a->scale == BM_PLOT_LOGIT    ? 0.1
                   : a->scale == BM_PLOT_LINEAR ? 0
                                                : 1;
        a->most = a->scale == BM_PLOT_LOGIT    ? 0.9
                  : a->scale == BM_PLOT_LINEAR ? 1
                                               : 2;
        return;
    }
    low = scaled(a, least);
    high = scaled(a, most);
    margin = 0.03 * (high - low);
    if (high - low <= 1e-9 * fmax(fabs(low), fabs(high)))
        margin =
            a->scale == BM_PLOT_LINEAR && high != 0 ? 0.1 * fabs(high) : 0.5;
    a->least = unscaled(a, low - margin);
    a->most = unscaled(a, high + margin);
    if (a->from_zero && a->scale == BM_PLOT_LINEAR && least >= 0)
        a->least = 0;
}

double bm_plot_axis_place(const bm_plot_axis *a, double x)
{
    double low = scaled(a, a->least), high = scaled(a, a->most);

    return fmin(fmax((scaled(a, x) - low) / (high - low), 0), 1);
}

const char *bm_plot_axis_number(const bm_plot_axis *a, double x, char out[32])
{
    double size = fabs(x);

    if (a->percent)
        snprintf(out, 32, "%.4g %%", 100 * x);
    else if (size >= 1e6 && size < 1e15)
        snprintf(out, 32, "%.4g%s",
                 x / (size >= 1e12  ? 1e12
                      : size >= 1e9 ? 1e9
                                    : 1e6),
                 size >= 1e12  ? "T"
                 : size >= 1e9 ? "G"
                               : "M");
    else if (size >= 1e4 && size < 1e6)
        snprintf(out, 32, "%.4gk", x / 1e3);
    else
        snprintf(out, 32, "%.6g", x);
    return out;
}

typedef struct tick_list {
    const bm_plot_axis *axis;
    bm_plot_tick *out;
    size_t n;
} tick_list;

static void put(tick_list *t, double x)
{
    double slack = 1e-9 * (t->axis->most - t->axis->least);
    char label[32];

    if (t->n == BM_MOST_TICKS || x < t->axis->least - slack ||
        x > t->axis->most + slack)
        return;
    t->out[t->n].at = x;
    snprintf(t->out[t->n++].label, sizeof t->out->label, "%s",
             bm_plot_axis_number(t->axis, x, label));
}

static void put_linear(tick_list *t, size_t wanted)
{
    static const double nice[] = {1, 2, 5, 10};
    double range = t->axis->most - t->axis->least;
    double ten = pow(10, floor(log10(range / (double)wanted))), step = 10 * ten;
    long last = 0;

    for (size_t i = sizeof nice / sizeof nice[0]; i-- > 0;)
        if (nice[i] * ten * (double)wanted >= range)
            step = nice[i] * ten;
    last = (long)floor(t->axis->most / step + 1e-9);
    for (long k = (long)ceil(t->axis->least / step - 1e-9); k <= last; k++)
        put(t, (double)k * step);
}

/* Powers of `base`, every n-th of them if there are too many. */
static void put_powers(tick_list *t, double base, size_t wanted)
{
    int first = (int)ceil(log(t->axis->least) / log(base) - 1e-9);
    int last = (int)floor(log(t->axis->most) / log(base) + 1e-9);
    int every = (last - first) / (int)wanted + 1;

    for (int k = first; k <= last; k += every)
        put(t, pow(base, k));
}

static void put_log(tick_list *t, size_t wanted)
{
    static const double nice[] = {1, 2, 5};
    double decades = log10(t->axis->most / t->axis->least);
    int last = (int)floor(log10(t->axis->most));

    if (decades >= 3) {
        put_powers(t, 10, wanted);
        return;
    }
    if (decades < 1) {
        put_linear(t, wanted);
        return;
    }
    for (int k = (int)floor(log10(t->axis->least)); k <= last; k++)
        for (size_t i = 0; i < sizeof nice / sizeof nice[0]; i++)
            put(t, nice[i] * pow(10, k));
}

static void put_logit(tick_list *t, size_t wanted)
{
    static const double nice[] = {0.001, 0.01, 0.1,  0.25, 0.5,   0.75,
                                  0.9,   0.95, 0.98, 0.99, 0.995, 0.999};

    for (size_t i = 0; i < sizeof nice / sizeof nice[0]; i++)
        put(t, nice[i]);
    if (t->n < 2) {
        t->n = 0;
        put_linear(t, wanted);
    }
}

size_t bm_plot_axis_ticks(const bm_plot_axis *a, size_t wanted,
                          bm_plot_tick out[BM_MOST_TICKS])
{
    tick_list t = {a, out, 0};

    if (a->names != NULL) {
        for (size_t i = 0; i < a->n_names && i < BM_MOST_TICKS; i++, t.n++) {
            out[i].at = (double)i;
            snprintf(out[i].label, sizeof out[i].label, "%s", a->names[i]);
        }
        return t.n;
    }
    switch (a->scale) {
    case BM_PLOT_LOG:
        put_log(&t, wanted);
        break;
    case BM_PLOT_LOG2:
        put_powers(&t, 2, wanted);
        break;
    case BM_PLOT_LOGIT:
        put_logit(&t, wanted);
        break;
    default:
        put_linear(&t, wanted);
    }
    return t.n;
}

#include "io/augment/image_map.h"

#include "io/augment/draw.h"

#include <math.h>

enum { NEAR = 4 }; /* grid points along a side that a place depends on */

bm_image_map bm_image_map_draw(const bm_augment_settings *s, const bm_layout *l,
                               const bm_time_map *time, uint64_t key)
{
    bm_rng rng = bm_draw_stream(key, BM_DRAW_AFFINE);
    bm_image_map m = {.time = *time};

    m.slant = s->slant * bm_draw_sign(&rng);
    m.scale = 1 + s->height * bm_draw_sign(&rng);
    m.shift = s->shift * bm_draw_sign(&rng) * (double)l->bands;
    if (s->elastic > 0) {
        m.spacing = fmax(1, s->elastic_grid * (double)l->bands);
        m.rows = (size_t)((double)l->bands / m.spacing) + NEAR;
        m.columns = (size_t)((double)time->n_out / m.spacing) + NEAR;
    }
    return m;
}

size_t bm_image_map_work(const bm_image_map *m, const bm_layout *l)
{
    size_t grid = 2 * m->rows * (m->columns + 1);

    return m->spacing > 0 ? grid + (NEAR + 1) * l->bands : 0;
}

/* ---- displacements --------------------------------------------------------- */

/* The grid and what is computed from it, in `work`. */
typedef struct field {
    float *grid;    /* [columns, 2, rows]: along time, along the height */
    float *column;  /* [2, rows]: the grid at a strip */
    float *weights; /* [bands, NEAR] */
    float *first;   /* [bands]: the grid row that the weights begin at */
} field;

/* The weights of the four grid points around u in [0, 1). */
static void spline(double u, float w[NEAR])
{
    double v = 1 - u;

    w[0] = (float)(v * v * v / 6);
    w[1] = (float)((3 * u * u * u - 6 * u * u + 4) / 6);
    w[2] = (float)((3 * v * v * v - 6 * v * v + 4) / 6);
    w[3] = (float)(u * u * u / 6);
}

static field lay_out(const bm_image_map *m, const bm_layout *l, float *work)
{
    field f = {.grid = work};

    f.column = f.grid + 2 * m->rows * m->columns;
    f.weights = f.column + 2 * m->rows;
    f.first = f.weights + NEAR * l->bands;
    return f;
}

/* The mean of the sum of squared weights is (151 / 315)^2 over a square: the
 * deviation of what is drawn is larger by as much. */
static void fill(const field *f, const bm_image_map *m,
                 const bm_augment_settings *s, const bm_layout *l, uint64_t key)
{
    bm_rng rng = bm_draw_stream(key, BM_DRAW_ELASTIC);
    float size = (float)(s->elastic * (double)l->bands * 315 / 151);

    for (size_t i = 0; i < 2 * m->rows * m->columns; i++)
        f->grid[i] = size * bm_draw_gauss(bm_rng_bits(&rng));
    for (size_t j = 0; j < l->bands; j++) {
        double at = (double)j / m->spacing, whole = floor(at);

        spline(at - whole, f->weights + NEAR * j);
        f->first[j] = (float)whole;
    }
}

/* The grid at strip i. */
static void move_to(const field *f, const bm_image_map *m, size_t i)
{
    double at = (double)i / m->spacing, whole = floor(at);
    size_t n = 2 * m->rows;
    const float *g = f->grid + (size_t)whole * n;
    float w[NEAR];

    spline(at - whole, w);
    for (size_t k = 0; k < n; k++)
        f->column[k] = w[0] * g[k] + w[1] * g[n + k] + w[2] * g[2 * n + k] +
                       w[3] * g[3 * n + k];
}

/* The displacement of band j: along time and along the height. */
static void displace(const field *f, const bm_image_map *m, size_t j, double *i,
                     double *band)
{
    const float *w = f->weights + NEAR * j,
                *a = f->column + (size_t)f->first[j], *b = a + m->rows;

    *i += (double)(w[0] * a[0] + w[1] * a[1] + w[2] * a[2] + w[3] * a[3]);
    *band += (double)(w[0] * b[0] + w[1] * b[1] + w[2] * b[2] + w[3] * b[3]);
}

/* ---- pixels ---------------------------------------------------------------- */

/* Where values are taken from: one column of the layout in every strip. */
typedef struct source {
    const float *x;
    double strips, bands; /* sizes */
    size_t width;         /* floats from strip to strip */
    bool repeats;         /* the edge, else paper is beyond it */
    float paper;
} source;

/* The largest integer up to x; floor() is a call on machines without SSE 4.1. */
static double whole_of(double x)
{
    double towards_0 = (double)(int64_t)x;

    return towards_0 > x ? towards_0 - 1 : towards_0;
}

static float pixel(const source *s, double i, double j)
{
    bool inside = i >= 0 && i < s->strips && j >= 0 && j < s->bands;

    if (!inside && !s->repeats)
        return s->paper;
    i = i < 0 ? 0 : i >= s->strips ? s->strips - 1 : i;
    j = j < 0 ? 0 : j >= s->bands ? s->bands - 1 : j;
    return s->x[(size_t)i * s->width + (size_t)j];
}

static float between(const source *s, double i, double j)
{
    double i0 = whole_of(i), j0 = whole_of(j);
    float f = (float)(i - i0), g = (float)(j - j0);
    float a, b, c, d;

    if (i0 >= 0 && j0 >= 0 && i0 + 1 < s->strips && j0 + 1 < s->bands) {
        const float *x = s->x + (size_t)i0 * s->width + (size_t)j0;

        a = x[0];
        b = x[1];
        c = x[s->width];
        d = x[s->width + 1];
    } else {
        a = pixel(s, i0, j0);
        b = pixel(s, i0, j0 + 1);
        c = pixel(s, i0 + 1, j0);
        d = pixel(s, i0 + 1, j0 + 1);
    }
    a += g * (b - a);
    c += g * (d - c);
    return a + f * (c - a);
}

/* y <- the features without neighbours, resampled along time. */
static void move_extra(const bm_layout *l, const source *of, const float *x,
                       double at, float *y)
{
    source from = *of;

    from.bands = 1;
    for (size_t d = 0; d < l->features; d++)
        if (l->extra > 0 && d % bm_layout_stride(l) >= l->bands) {
            from.x = x + d;
            y[d] = between(&from, at, 0);
        }
}

void bm_image_map_apply(const bm_image_map *m, const bm_augment_settings *s,
                        const bm_layout *l, uint64_t key, const float *x,
                        float *y, float *work)
{
    bool image = l->kind == BM_FRAMES_IMAGE, elastic = m->spacing > 0;
    size_t width = bm_layout_width(l), columns = image ? 1 : l->columns;
    size_t stride = bm_layout_stride(l);
    double middle = ((double)l->bands - 1) / 2;
    source from = {
        x, (double)m->time.n_in, (double)l->bands, width, !image, m->paper};
    field f = {0};

    if (elastic) {
        f = lay_out(m, l, work);
        fill(&f, m, s, l, key);
    }
    for (size_t i = 0; i < m->time.n_out; i++, y += width) {
        double at = bm_time_map_at(&m->time, (double)i + 0.5) - 0.5;

        if (elastic)
            move_to(&f, m, i);
        for (size_t j = 0; j < l->bands; j++) {
            double below = (double)j - middle, strip = at + m->slant * below,
                   band = middle + (below - m->shift) / m->scale;

            if (elastic)
                displace(&f, m, j, &strip, &band);
            for (size_t c = 0; c < columns; c++) {
                from.x = x + c * stride;
                y[c * stride + j] = between(&from, strip, band);
            }
        }
        move_extra(l, &from, x, at, y);
    }
}

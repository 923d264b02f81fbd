#include "io/import/images/line_cut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Limit of a coordinate, in pixels. */
static const double farthest = 1e6;

/* How far the proportions of page and image may differ: rounding. */
static const double most_difference = 0.01;

/* A baseline, with lengths along it. */
typedef struct curve {
    bm_point *p;      /* [n], no two of them equal */
    bm_point *normal; /* [n], downwards, of length 1 */
    double *s;        /* [n], from the first point */
    size_t n;
} curve;

/* ---- shapes as texts ------------------------------------------------------ */

/* "10,20 30,20" up to a ';' or the end, to which *text goes. */
static bm_status read_points(const char **text, bm_point **out, size_t *n)
{
    size_t room = 0;
    const char *at = *text;
    bm_point *p = NULL;

    for (const char *c = at; *c != '\0' && *c != ';'; c++)
        room += *c == ',';
    *n = room;
    if (room > BM_MOST_POINTS)
        return BM_FAIL(BM_ERR_FORMAT, "%zu points; at most %d are possible",
                       room, BM_MOST_POINTS);
    p = *out = malloc((room + 1) * sizeof *p);
    if (p == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu points", room);
    for (size_t i = 0; i < room; i++) {
        char *end = NULL;

        p[i].x = strtod(at, &end);
        at = end + (*end == ',');
        p[i].y = strtod(at, &end);
        at = end;
        if (!(fabs(p[i].x) <= farthest && fabs(p[i].y) <= farthest))
            return BM_FAIL(BM_ERR_FORMAT, "point %zu is outside of any page",
                           i + 1);
    }
    while (*at == ' ')
        at++;
    if (*at != '\0' && *at != ';')
        return BM_FAIL(BM_ERR_FORMAT,
                       "its points are not written as \"x,y x,y\": %.20s", at);
    *text = at + (*at == ';');
    return BM_OK;
}

static bm_status read_shape(bm_line_shape *s, const char *text)
{
    char *end = NULL;

    s->width = strtod(text, &end);
    s->height = *end == ',' ? strtod(end + 1, &end) : -1;
    if (*end != ';' || !(s->width >= 0 && s->width <= farthest) ||
        !(s->height >= 0 && s->height <= farthest))
        return BM_FAIL(BM_ERR_FORMAT, "a page of invalid size: %.20s", text);
    text = end + 1;
    BM_TRY(read_points(&text, &s->polygon, &s->n_polygon));
    BM_TRY(read_points(&text, &s->baseline, &s->n_baseline));
    if (s->n_polygon < 3)
        return BM_FAIL(BM_ERR_FORMAT, "a polygon of %zu points", s->n_polygon);
    s->fault = *text != '\0' ? strdup(text) : NULL;
    if (*text != '\0' && s->fault == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the fault of a line");
    return BM_OK;
}

bm_status bm_line_shape_read(bm_line_shape *out, const char *text)
{
    bm_line_shape s = {0};
    bm_status status = read_shape(&s, text);

    if (status == BM_OK)
        *out = s;
    else
        bm_line_shape_free(&s);
    return status;
}

void bm_line_shape_free(bm_line_shape *shape)
{
    free(shape->polygon);
    free(shape->baseline);
    free(shape->fault);
    *shape = (bm_line_shape){0};
}

/* ---- the polygon ---------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Where the polygon crosses the height y, in order; returns how often. */
static size_t find_crossings(const bm_point *p, size_t n, double y, double *x)
{
    size_t found = 0;

    for (size_t i = 0, j = n - 1; i < n; j = i++)
        if ((p[i].y > y) != (p[j].y > y))
            x[found++] =
                p[j].x + (p[i].x - p[j].x) * (y - p[j].y) / (p[i].y - p[j].y);
    qsort(x, found, sizeof *x, compare);
    return found;
}

/* Marks the pixels of a row whose centres are between two positions. */
static void mark_span(bool *row, size_t width, double first, double last)
{
    double a = fmax(ceil(first - 0.5), 0);
    double b = fmin(ceil(last - 0.5), (double)width);

    if (a < b)
        memset(row + (size_t)a, true, (size_t)(b - a));
}

/* The rows [top, top + height) of a page, and which of their pixels the polygon
 * covers: [height, width], owned. */
typedef struct window {
    const uint8_t *grey;
    bool *inside;
    size_t top, width, height;
} window;

static bm_status find_window(const bm_line_image *page, const bm_point *p,
                             size_t n, window *w)
{
    double crossings[BM_MOST_POINTS], low = p[0].y, high = p[0].y;
    size_t bottom = 0;

    for (size_t i = 1; i < n; i++) {
        low = fmin(low, p[i].y);
        high = fmax(high, p[i].y);
    }
    w->top = (size_t)fmin(fmax(floor(low), 0), (double)page->height);
    bottom = (size_t)fmin(fmax(ceil(high), 0), (double)page->height);
    w->height = bottom > w->top ? bottom - w->top : 0;
    w->width = page->width;
    w->grey = page->grey + w->top * w->width;
    w->inside = calloc(w->height * w->width + 1, sizeof *w->inside);
    if (w->inside == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu rows of a page",
                       w->height);
    for (size_t y = 0; y < w->height; y++) {
        size_t k = find_crossings(p, n, (double)(y + w->top) + 0.5, crossings);

        for (size_t i = 0; i + 1 < k; i += 2)
            mark_span(w->inside + y * w->width, w->width, crossings[i],
                      crossings[i + 1]);
    }
    return BM_OK;
}

/* The grey of the paper; -1: the polygon covers no pixel. */
static int find_paper(const window *w)
{
    size_t count[BM_GREYS] = {0}, covered = 0;

    for (size_t i = 0; i < w->width * w->height; i++)
        if (w->inside[i]) {
            count[w->grey[i]]++;
            covered++;
        }
    return covered > 0 ? bm_median_grey(count) : -1;
}

/* ---- what is on the page -------------------------------------------------- */

/* The part of a polygon where sign * coordinate <= limit (Sutherland and
 * Hodgman 1974). An excursion adds a point at most, so that out has room for 3/2
 * n of them. */
static size_t clip(const bm_point *p, size_t n, bool vertical, double sign,
                   double limit, bm_point *out)
{
    size_t found = 0;

    for (size_t i = 0, j = n - 1; i < n; j = i++) {
        double a = sign * (vertical ? p[j].y : p[j].x) - limit;
        double b = sign * (vertical ? p[i].y : p[i].x) - limit;
        double t = a / (a - b);

        if ((a <= 0) != (b <= 0))
            out[found++] = (bm_point){p[j].x + t * (p[i].x - p[j].x),
                                      p[j].y + t * (p[i].y - p[j].y)};
        if (b <= 0)
            out[found++] = p[i];
    }
    return found;
}

/* The part of a polygon that is on the page; free(*out). */
static bm_status clip_to_page(const bm_point *p, size_t n,
                              const bm_line_image *page, bm_point **out,
                              size_t *n_out)
{
    size_t room = 6 * n; /* (3/2)^4 is less than 6 */
    bm_point *a = malloc(room * sizeof *a), *b = malloc(room * sizeof *b);
    bm_status status = BM_OK;

    *out = a;
    if (a == NULL || b == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu points", n);
    n = clip(p, n, false, -1, 0, b);
    n = clip(b, n, false, 1, (double)page->width, a);
    n = clip(a, n, true, -1, 0, b);
    *n_out = clip(b, n, true, 1, (double)page->height, a);
done:
    free(b);
    return status;
}

/* ---- the baseline --------------------------------------------------------- */

static double distance(bm_point a, bm_point b)
{
    return hypot(b.x - a.x, b.y - a.y);
}

/* Downwards from the way from a to b. */
static bm_point normal_of(bm_point a, bm_point b)
{
    double d = distance(a, b);
    return (bm_point){-(b.y - a.y) / d, (b.x - a.x) / d};
}

static void free_curve(curve *c)
{
    free(c->p);
    free(c->normal);
    free(c->s);
}

/* Points at least a pixel apart, so that corners are no larger than they look. A
 * baseline that goes to the left is turned around. */
static void take_points(curve *c, const bm_point *p, size_t n)
{
    double dx = p[n - 1].x - p[0].x, dy = p[n - 1].y - p[0].y;
    bool turned = dx < 0 && -dx > fabs(dy);

    for (size_t i = 0; i < n; i++) {
        bm_point next = turned ? p[n - 1 - i] : p[i];

        if (c->n == 0 || distance(c->p[c->n - 1], next) >= 1)
            c->p[c->n++] = next;
    }
}

/* The normal at an inner point is between those of both sides. */
static void find_normals(curve *c)
{
    for (size_t i = 0; i < c->n; i++) {
        size_t last = c->n - 1;
        bm_point a = normal_of(c->p[i > 0 ? i - 1 : 0], c->p[i > 0 ? i : 1]);
        bm_point b = normal_of(c->p[i < last ? i : last - 1],
                               c->p[i < last ? i + 1 : last]);
        bm_point sum = {a.x + b.x, a.y + b.y};
        double size = hypot(sum.x, sum.y);

        /* a baseline that turns back on itself has none there */
        c->normal[i] = size > 1e-6 ? (bm_point){sum.x / size, sum.y / size} : b;
        c->s[i] = i > 0 ? c->s[i - 1] + distance(c->p[i - 1], c->p[i]) : 0;
    }
}

/* c->n is less than 2 if there is no baseline. */
static bm_status make_curve(curve *c, const bm_point *p, size_t n)
{
    c->p = malloc((n + 1) * sizeof *c->p);
    c->normal = malloc((n + 1) * sizeof *c->normal);
    c->s = malloc((n + 1) * sizeof *c->s);
    if (c->p == NULL || c->normal == NULL || c->s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu points", n);
    if (n > 0)
        take_points(c, p, n);
    if (c->n > 1)
        find_normals(c);
    return BM_OK;
}

/* Point and normal at length s, which is in part i or at the ends of the
 * curve. */
static void look_up(const curve *c, double s, size_t i, bm_point *at,
                    bm_point *normal)
{
    const bm_point *p = c->p + i, *m = c->normal + i;
    double t = (s - c->s[i]) / (c->s[i + 1] - c->s[i]);
    double inside = fmin(fmax(t, 0), 1), size = 0;

    *at = (bm_point){p[0].x + t * (p[1].x - p[0].x),
                     p[0].y + t * (p[1].y - p[0].y)};
    *normal = (bm_point){m[0].x + inside * (m[1].x - m[0].x),
                         m[0].y + inside * (m[1].y - m[0].y)};
    size = hypot(normal->x, normal->y);
    if (size > 1e-6)
        *normal = (bm_point){normal->x / size, normal->y / size};
}

/* Length along the curve (x) and distance below it (y) of a point. */
static bm_point project(const curve *c, bm_point q)
{
    bm_point found = {0};
    double nearest = INFINITY;

    for (size_t i = 0; i + 1 < c->n; i++) {
        bm_point a = c->p[i], b = c->p[i + 1], m = normal_of(a, b), foot;
        double length = c->s[i + 1] - c->s[i];
        double t = (q.x - a.x) * m.y - (q.y - a.y) * m.x; /* along a to b */

        if (i > 0)
            t = fmax(t, 0);
        if (i + 2 < c->n)
            t = fmin(t, length);
        foot = (bm_point){a.x + t * m.y, a.y - t * m.x};
        if (distance(foot, q) < nearest) {
            double side = (q.x - foot.x) * m.x + (q.y - foot.y) * m.y;

            nearest = distance(foot, q);
            found = (bm_point){c->s[i] + t, copysign(nearest, side)};
        }
    }
    return found;
}

/* The range of the polygon along the curve and across it. */
static void find_range(const curve *c, const bm_point *p, size_t n,
                       bm_point *low, bm_point *high)
{
    *low = (bm_point){INFINITY, INFINITY};
    *high = (bm_point){-INFINITY, -INFINITY};
    for (size_t i = 0, j = n - 1; i < n; j = i++) {
        /* an edge beside a bend is nearer to it between its ends */
        double length = distance(p[i], p[j]);
        int parts = c->n > 2 ? 1 + (int)fmin(length / 8, 31) : 1;

        for (int k = 0; k < parts; k++) {
            double t = (double)k / parts;
            bm_point q = {p[i].x + t * (p[j].x - p[i].x),
                          p[i].y + t * (p[j].y - p[i].y)};

            if (c->n > 1)
                q = project(c, q);
            *low = (bm_point){fmin(low->x, q.x), fmin(low->y, q.y)};
            *high = (bm_point){fmax(high->x, q.x), fmax(high->y, q.y)};
        }
    }
}

/* ---- pixels --------------------------------------------------------------- */

/* A window's pixels, with paper in place of what is outside of the polygon. */
static double pixel(const window *w, int paper, double x, double y)
{
    size_t at = 0;

    if (x < 0 || y < 0 || x >= (double)w->width || y >= (double)w->height)
        return paper;
    at = (size_t)y * w->width + (size_t)x;
    return w->inside[at] ? w->grey[at] : paper;
}

/* Interpolates between the centres of pixels. */
static uint8_t sample(const window *w, int paper, double x, double y)
{
    double left = floor(x - 0.5), top = floor(y - 0.5);
    double a = x - 0.5 - left, b = y - 0.5 - top;
    double upper = (1 - a) * pixel(w, paper, left, top) +
                   a * pixel(w, paper, left + 1, top);
    double lower = (1 - a) * pixel(w, paper, left, top + 1) +
                   a * pixel(w, paper, left + 1, top + 1);

    return (uint8_t)((1 - b) * upper + b * lower + 0.5);
}

/* Along the curve from `low` on; without a curve upright. */
static void resample(const window *w, int paper, const curve *c, bm_point low,
                     const bm_line_image *out)
{
    size_t part = 0;

    for (size_t x = 0; x < out->width; x++) {
        bm_point at = {low.x + (double)x + 0.5, 0}, normal = {0, 1};

        while (c->n > 2 && part + 2 < c->n && c->s[part + 1] <= at.x)
            part++;
        if (c->n > 1)
            look_up(c, at.x, part, &at, &normal);
        for (size_t y = 0; y < out->height; y++) {
            double d = low.y + (double)y + 0.5;

            out->grey[y * out->width + x] =
                sample(w, paper, at.x + d * normal.x,
                       at.y + d * normal.y - (double)w->top);
        }
    }
}

/* The line's size along the curve and across it, from *low on. */
static bm_status measure(const bm_line_image *page, const bm_line_shape *s,
                         const curve *c, bm_point *low, double *width,
                         double *height)
{
    bm_point high, *p = NULL;
    size_t n = 0;
    bm_status status = clip_to_page(s->polygon, s->n_polygon, page, &p, &n);

    if (status == BM_OK && n > 0) {
        find_range(c, p, n, low, &high);
        *low = (bm_point){floor(low->x + 1e-6), floor(low->y + 1e-6)};
        *width = fmax(ceil(high.x - low->x - 1e-6), 0);
        *height = fmax(ceil(high.y - low->y - 1e-6), 0);
    }
    free(p);
    return status;
}

static bm_status cut(bm_line_image *out, const bm_line_image *page,
                     const bm_line_shape *s, const curve *c, const char *path,
                     bm_problem *problem)
{
    bm_point low = {0};
    window w = {0};
    double width = 0, height = 0;
    int paper = 0;
    bm_status status = BM_OK;

    BM_TRY_DONE(find_window(page, s->polygon, s->n_polygon, &w));
    paper = find_paper(&w);
    if (paper < 0) {
        bm_problem_set(problem, "without a pixel of its page",
                       "%s: the polygon covers none of the %zu x %zu pixels "
                       "of the image",
                       path, page->width, page->height);
        goto done;
    }
    BM_TRY_DONE(measure(page, s, c, &low, &width, &height));
    if (width < 1 || height < 1 ||
        width * height > (double)BM_MOST_LINE_PIXELS) {
        bm_problem_set(problem, "too small or too large",
                       "%s: a line of %zu x %zu pixels is too small or too "
                       "large",
                       path, (size_t)width, (size_t)height);
        goto done;
    }
    *out = (bm_line_image){malloc((size_t)(width * height)), (size_t)width,
                           (size_t)height};
    if (out->grey == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY,
                     "no memory for a line of %.0f x %.0f pixels", width,
                     height);
    resample(&w, paper, c, low, out);
done:
    free(w.inside);
    return status;
}

static bm_point *scaled(const bm_point *p, size_t n, double x, double y)
{
    bm_point *out = malloc((n + 1) * sizeof *out);

    for (size_t i = 0; out != NULL && i < n; i++)
        out[i] = (bm_point){p[i].x * x, p[i].y * y};
    return out;
}

bm_status bm_line_cut(bm_line_image *out, const bm_line_image *page,
                      const bm_line_shape *shape, const char *path,
                      bm_problem *problem)
{
    double x = shape->width > 0 ? (double)page->width / shape->width : 1;
    double y = shape->height > 0 ? (double)page->height / shape->height : 1;
    bm_line_shape s = {.n_polygon = shape->n_polygon,
                       .n_baseline = shape->n_baseline};
    curve c = {0};
    bm_status status = BM_OK;

    BM_ASSERT(s.n_polygon >= 3 && s.n_polygon <= BM_MOST_POINTS);
    if (shape->fault != NULL) {
        bm_problem_set(problem, "without a valid outline or baseline", "%s",
                       shape->fault);
        return BM_OK;
    }
    if (fabs(x / y - 1) > most_difference) {
        bm_problem_set(problem, "of another size than its page",
                       "%s: the image has %zu x %zu pixels, but its page %g x "
                       "%g; use the image that the page describes",
                       path, page->width, page->height, shape->width,
                       shape->height);
        return BM_OK;
    }
    s.polygon = scaled(shape->polygon, s.n_polygon, x, y);
    s.baseline = scaled(shape->baseline, s.n_baseline, x, y);
    if (s.polygon == NULL || s.baseline == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu points", s.n_polygon);
    BM_TRY_DONE(make_curve(&c, s.baseline, s.n_baseline));
    status = cut(out, page, &s, &c, path, problem);
done:
    free_curve(&c);
    bm_line_shape_free(&s);
    return status;
}

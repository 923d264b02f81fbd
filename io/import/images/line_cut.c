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

/* The pixels of a row whose centres are between two positions; returns how
 * many. */
static size_t copy_span(const uint8_t *from, uint8_t *to, size_t width,
                        double first, double last)
{
    double a = fmax(ceil(first - 0.5), 0);
    double b = fmin(ceil(last - 0.5), (double)width);

    if (!(a < b))
        return 0;
    memcpy(to + (size_t)a, from + (size_t)a, (size_t)(b - a));
    return (size_t)(b - a);
}

/* *out: the rows of the page from *top on that the polygon covers, white outside
 * of it. *covered: pixels in it. */
static bm_status mask(const bm_line_image *page, const bm_point *p, size_t n,
                      bm_line_image *out, size_t *top, size_t *covered)
{
    double crossings[BM_MOST_POINTS], low = p[0].y, high = p[0].y;
    size_t bottom = 0;

    *covered = 0;
    for (size_t i = 1; i < n; i++) {
        low = fmin(low, p[i].y);
        high = fmax(high, p[i].y);
    }
    *top = (size_t)fmin(fmax(floor(low), 0), (double)page->height);
    bottom = (size_t)fmin(fmax(ceil(high), 0), (double)page->height);
    *out = (bm_line_image){
        .width = page->width,
        .height = bottom > *top ? bottom - *top : 0,
    };
    out->grey = malloc(out->width * out->height + 1);
    if (out->grey == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu rows of a page",
                       out->height);
    memset(out->grey, 255, out->width * out->height);
    for (size_t y = 0; y < out->height; y++) {
        size_t k = find_crossings(p, n, (double)(y + *top) + 0.5, crossings);

        for (size_t i = 0; i + 1 < k; i += 2)
            *covered += copy_span(page->grey + (y + *top) * page->width,
                                  out->grey + y * out->width, out->width,
                                  crossings[i], crossings[i + 1]);
    }
    return BM_OK;
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

static double pixel(const bm_line_image *image, double x, double y)
{
    if (x < 0 || y < 0 || x >= (double)image->width ||
        y >= (double)image->height)
        return 255;
    return image->grey[(size_t)y * image->width + (size_t)x];
}

/* Interpolates between the centres of pixels. */
static uint8_t sample(const bm_line_image *image, double x, double y)
{
    double left = floor(x - 0.5), top = floor(y - 0.5);
    double a = x - 0.5 - left, b = y - 0.5 - top;
    double upper =
        (1 - a) * pixel(image, left, top) + a * pixel(image, left + 1, top);
    double lower = (1 - a) * pixel(image, left, top + 1) +
                   a * pixel(image, left + 1, top + 1);

    return (uint8_t)((1 - b) * upper + b * lower + 0.5);
}

/* Along the curve from `low` on; without a curve upright. */
static void resample(const bm_line_image *from, size_t top, const curve *c,
                     bm_point low, const bm_line_image *out)
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

            out->grey[y * out->width + x] = sample(
                from, at.x + d * normal.x, at.y + d * normal.y - (double)top);
        }
    }
}

static bm_status cut(bm_line_image *out, const bm_line_image *page,
                     const bm_line_shape *s, const curve *c, const char *path,
                     bm_problem *problem)
{
    bm_point low, high;
    bm_line_image masked = {0};
    double width = 0, height = 0;
    size_t top = 0, covered = 0;
    bm_status status = BM_OK;

    find_range(c, s->polygon, s->n_polygon, &low, &high);
    low = (bm_point){floor(low.x + 1e-6), floor(low.y + 1e-6)};
    width = fmax(ceil(high.x - low.x - 1e-6), 0);
    height = fmax(ceil(high.y - low.y - 1e-6), 0);
    if (width < 1 || height < 1 ||
        width * height > (double)BM_MOST_LINE_PIXELS) {
        bm_problem_set(problem, "too small or too large",
                       "%s: a line of %zu x %zu pixels is too small or too "
                       "large",
                       path, (size_t)width, (size_t)height);
        return BM_OK;
    }
    BM_TRY_DONE(mask(page, s->polygon, s->n_polygon, &masked, &top, &covered));
    if (covered == 0) {
        bm_problem_set(problem, "outside of its page",
                       "%s: the polygon is outside of the %zu x %zu pixels of "
                       "the image",
                       path, page->width, page->height);
        goto done;
    }
    *out = (bm_line_image){malloc((size_t)(width * height)), (size_t)width,
                           (size_t)height};
    if (out->grey == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY,
                     "no memory for a line of %.0f x %.0f pixels", width,
                     height);
    resample(&masked, top, c, low, out);
done:
    bm_line_image_free(&masked);
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

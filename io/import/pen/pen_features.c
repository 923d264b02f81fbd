#include "io/import/pen/pen_features.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A path while it is walked. */
typedef struct walk {
    float *y;      /* [room, BM_PEN_FEATURES]; NULL: count alone */
    size_t n;      /* frames */
    double step;   /* in the tablet's units */
    double middle; /* y of the segment's */
    double height;
    double mean_speed; /* 0: not known */
    double px, py;     /* the point before */
    bool any;          /* there is one */
} walk;

static double length(const bm_pen_point *a, const bm_pen_point *b)
{
    return hypot(b->x - a->x, b->y - a->y);
}

/* Smallest and largest y of the pen on the paper; false: it never was. */
static bool extent(const bm_unipen *u, const bm_pen_path *path, double *least,
                   double *most)
{
    bool any = false;

    for (size_t k = 0; k < path->n; k++) {
        const bm_pen_part *p = &path->parts[k];

        for (size_t i = 0; p->down && i < p->n; i++) {
            double y = u->points[p->first + i].y;

            *least = any ? fmin(*least, y) : y;
            *most = any ? fmax(*most, y) : y;
            any = true;
        }
    }
    return any;
}

double bm_pen_height(const bm_unipen *u, const bm_pen_path *path)
{
    double least = 0, most = 0;

    return extent(u, path, &least, &most) ? most - least : 0;
}

/* Way over time of the pen on the paper; 0: not known. */
static double mean_speed(const bm_unipen *u, const bm_pen_path *path)
{
    double way = 0, time = 0;

    for (size_t k = 0; k < path->n; k++) {
        const bm_pen_part *p = &path->parts[k];

        for (size_t i = 1; p->down && i < p->n; i++) {
            const bm_pen_point *b = &u->points[p->first + i], *a = b - 1;

            if (b->t > a->t) {
                way += length(a, b);
                time += b->t - a->t;
            }
        }
    }
    return time > 0 ? way / time : 0;
}

/* The frame of a point; the first point of all has none. */
static void put(walk *w, double x, double y, bool up, double speed)
{
    if (w->any && w->y != NULL) {
        float *f = w->y + w->n * BM_PEN_FEATURES;

        f[0] = (float)((x - w->px) / w->step);
        f[1] = (float)((y - w->py) / w->step);
        f[2] = (float)((y - w->middle) / w->height);
        f[3] = up ? 1 : 0;
        f[4] = (float)(up || w->mean_speed == 0 ? 0 : speed / w->mean_speed);
    }
    w->n += w->any;
    w->any = true;
    w->px = x;
    w->py = y;
}

/* A stroke: its first point, to which the pen was lifted; the points a step
 * apart; and its last. */
static void walk_part(walk *w, const bm_unipen *u, const bm_pen_part *p)
{
    const bm_pen_point *at = &u->points[p->first];
    double ahead = w->step, speed = 0;

    put(w, at->x, at->y, true, 0);
    for (size_t i = 1; i < p->n; i++) {
        const bm_pen_point *a = at + i - 1, *b = at + i;
        double way = length(a, b), time = b->t - a->t;

        speed = time > 0 ? way / time : 0;
        for (; ahead < way && w->n <= BM_MOST_PEN_STEPS; ahead += w->step) {
            double share = ahead / way;

            put(w, a->x + share * (b->x - a->x), a->y + share * (b->y - a->y),
                !p->down, speed);
        }
        ahead -= way;
    }
    if (p->n > 1)
        put(w, at[p->n - 1].x, at[p->n - 1].y, !p->down, speed);
}

static void walk_path(walk *w, const bm_unipen *u, const bm_pen_path *path)
{
    w->n = 0;
    w->any = false;
    for (size_t k = 0; k < path->n && w->n <= BM_MOST_PEN_STEPS; k++)
        walk_part(w, u, &path->parts[k]);
}

bm_status bm_pen_frames(const bm_unipen *u, const bm_pen_path *path,
                        double height, double step, bm_frames *out)
{
    double least = 0, most = 0;
    walk w = {.step = step * height,
              .height = height,
              .mean_speed = mean_speed(u, path)};

    BM_ASSERT(height > 0 && step > 0);
    extent(u, path, &least, &most);
    w.middle = (least + most) / 2;
    walk_path(&w, u, path);
    if (w.n > BM_MOST_PEN_STEPS)
        w.n = 0;
    BM_TRY(bm_frames_shape(out, w.n, BM_PEN_FEATURES));
    w.y = out->x;
    if (out->n > 0)
        walk_path(&w, u, path);
    return BM_OK;
}

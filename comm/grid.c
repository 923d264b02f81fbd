#include "comm/grid.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { LEAST_OF_LANE = 1 << 15, MOST_LANES = 8 }; /* floats of a slice */

/* Step i of a ring of `size` members whose numbers are `stride` apart. */
typedef struct step {
    int stride, size, i;
} step;

bm_grid bm_grid_ring(int members)
{
    return (bm_grid){.members = members, .dimensions = 1, .size = {members}};
}

bm_grid bm_grid_halving(int members)
{
    bm_grid g = {.members = members};

    for (int n = 1; n <= members / 2; n *= 2)
        g.size[g.dimensions++] = 2;
    g.folded = members - (1 << g.dimensions);
    return g;
}

bm_status bm_grid_read(const char *text, int members, bm_grid *out)
{
    bm_grid g = {.members = members};
    const char *at = text;
    int64_t product = 1;

    for (bool more = true; more; at++) {
        char *end = NULL;
        long size = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : 0;

        if (size < 1 || size > members || (*end != 'x' && *end != '\0'))
            return BM_FAIL(BM_ERR_CONFIG,
                           "topology '%s' is not of the form 4x8x8, with sizes "
                           "from 1 to the number of workers, %d",
                           text, members);
        if (g.dimensions == BM_GRID_DIMENSIONS)
            return BM_FAIL(BM_ERR_CONFIG,
                           "topology '%s' has more than %d dimensions", text,
                           BM_GRID_DIMENSIONS);
        g.size[g.dimensions++] = (int)size;
        product *= size;
        if (product > members)
            break;
        more = *end == 'x';
        at = end;
    }
    if (product != members)
        return BM_FAIL(BM_ERR_CONFIG,
                       "the sizes of topology '%s' multiply to %s%lld, but "
                       "there are %d workers",
                       text, product > members ? "at least " : "",
                       (long long)product, members);
    *out = g;
    return BM_OK;
}

int bm_grid_slices(const bm_grid *g)
{
    return g->members - g->folded;
}

int bm_grid_owner(const bm_grid *g, int slice)
{
    return slice < g->folded ? 2 * slice : slice + g->folded;
}

int bm_grid_below(const bm_grid *g, int member)
{
    return member < 2 * g->folded ? (member + 1) / 2 : member - g->folded;
}

static int steps(const bm_grid *g)
{
    int n = 0;

    for (int k = 0; k < g->dimensions; k++)
        n += g->size[k] - 1;
    return n;
}

int bm_grid_turns(const bm_grid *g)
{
    return steps(g) + (g->folded > 0);
}

int bm_grid_lanes(const bm_grid *g, size_t n)
{
    size_t lanes = n / (size_t)bm_grid_slices(g) / LEAST_OF_LANE;
    int rings = 0;

    for (int k = 0; k < g->dimensions; k++)
        rings += g->size[k] > 1;
    if (rings < 2 || lanes < 2)
        return 1;
    return lanes < MOST_LANES ? (int)lanes : MOST_LANES;
}

/* The scatter's step t. */
static step find(const bm_grid *g, int t)
{
    step s = {.stride = 1, .size = g->size[0], .i = t};

    for (int k = 1; s.i >= s.size - 1; k++) {
        s.i -= s.size - 1;
        s.stride *= s.size;
        s.size = g->size[k];
    }
    return s;
}

static int digit(const step *s, int v)
{
    return v / s->stride % s->size;
}

/* The member `by` places to the right of v, by >= -size. */
static int along(const step *s, int v, int by)
{
    int d = digit(s, v);
    return v + ((d + by + s->size) % s->size - d) * s->stride;
}

/* The slices with v's coordinates in the dimensions before this one, and in this
 * one the coordinate of the member `by` places to the right of v. */
static bm_slices at(const step *s, int v, int by)
{
    return (bm_slices){along(s, v, by) % (s->stride * s->size),
                       s->stride * s->size};
}

/* A member that sends and receives nothing. */
static bm_turn idle(const bm_grid *g)
{
    const bm_slices none = {bm_grid_slices(g), 1};

    return (bm_turn){-1, -1, none, none};
}

/* All slices go from an odd member to the even one before it, or back. */
static bm_turn fold(const bm_grid *g, int member, bool back)
{
    const bm_slices all = {0, 1}, none = {bm_grid_slices(g), 1};
    bool odd = member % 2 == 1;
    int other = odd ? member - 1 : member + 1;

    if (member >= 2 * g->folded)
        return idle(g);
    return odd == back ? (bm_turn){-1, other, none, all}
                       : (bm_turn){other, -1, all, none};
}

static bool is_folded(const bm_grid *g, int member)
{
    return member < 2 * g->folded && member % 2 == 1;
}

static bm_turn turn(const bm_grid *g, const step *s, int v, int out)
{
    return (bm_turn){bm_grid_owner(g, along(s, v, 1)),
                     bm_grid_owner(g, along(s, v, -1)), at(s, v, out),
                     at(s, v, out - 1)};
}

bm_turn bm_grid_scatter(const bm_grid *g, int member, int t)
{
    step s;

    if (g->folded > 0 && t-- == 0)
        return fold(g, member, false);
    if (is_folded(g, member))
        return idle(g);
    s = find(g, t);
    return turn(g, &s, bm_grid_below(g, member), -1 - s.i);
}

bm_turn bm_grid_gather(const bm_grid *g, int member, int t)
{
    step s;

    if (t == steps(g))
        return fold(g, member, true);
    if (is_folded(g, member))
        return idle(g);
    s = find(g, steps(g) - 1 - t);
    return turn(g, &s, bm_grid_below(g, member), -(s.size - 2 - s.i));
}

/* The weight of v's group (along the first dimensions) with digits [from, to). */
static double weigh(const bm_grid *g, const double *before, const step *s,
                    int v, int from, int to)
{
    int group = v - v % (s->stride * s->size);

    return before[bm_grid_owner(g, group + to * s->stride)] -
           before[bm_grid_owner(g, group + from * s->stride)];
}

void bm_grid_weigh(const bm_grid *g, const double *before, int member, int t,
                   double *own, double *coming)
{
    int v = bm_grid_below(g, member), d = 0, first = 0;
    step s;

    if (g->folded > 0 && t-- == 0) {
        *own = before[member + 1] - before[member];
        *coming = before[member + 2] - before[member + 1];
        return;
    }
    s = find(g, t);
    d = digit(&s, v);
    first = d - 1 - s.i;
    *own = weigh(g, before, &s, v, d, d + 1);
    *coming = weigh(g, before, &s, v, first < 0 ? 0 : first, d);
    if (first < 0)
        *coming += weigh(g, before, &s, v, first + s.size, s.size);
}

size_t bm_grid_count(const bm_grid *g, const size_t *edge, bm_slices p)
{
    size_t n = 0;

    for (int k = p.first; k < bm_grid_slices(g); k += p.step)
        n += edge[k + 1] - edge[k];
    return n;
}

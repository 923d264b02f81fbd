/*
 * cpu_layernorm.c - layer normalisation of each frame. Threads take groups of
 * frames. The number of groups is fixed, and their sums for dgamma and dbeta
 * are added in one order, so that the number of threads changes no bit.
 */
#include "compute/cpu/cpu.h"

#include <string.h>

enum { GROUPS = 16 };

/* The arguments, and views of `kept`. */
typedef struct pass {
    const bm_layernorm *n;
    const bm_loops *loops;
    bm_extent e;
    size_t threads;
    const float *x, *dy;
    float *y, *dx;
    float *moments; /* [T, B, 2] */
    float *sums;    /* [GROUPS, 2, D]: of dgamma, of dbeta */
} pass;

size_t bm_cpu_layernorm_kept(bm_backend *be, const bm_layernorm *n, bm_extent e)
{
    (void)be;
    return 2 * e.T * e.B + (size_t)GROUPS * 2 * n->width;
}

static pass view(bm_backend *be, const bm_layernorm *n, bm_extent e,
                 float *kept)
{
    return (pass){.n = n,
                  .loops = bm_cpu_isa(be)->loops,
                  .e = e,
                  .threads = bm_thread_pool_threads(bm_cpu_of(be)->pool),
                  .moments = kept,
                  .sums = kept + 2 * e.T * e.B};
}

static bool is_inside(bm_extent e, size_t frame)
{
    return frame / e.B < (size_t)e.frames[frame % e.B];
}

static void forward_part(void *self, size_t part)
{
    const pass *p = self;
    size_t D = p->n->width, all = p->e.T * p->e.B;
    size_t to = bm_part(all, 1, p->threads, part + 1);

    for (size_t i = bm_part(all, 1, p->threads, part); i < to; i++)
        if (is_inside(p->e, i))
            p->loops->layernorm(D, p->x + i * D, p->n->gamma, p->n->beta,
                                p->y + i * D, p->moments + 2 * i);
        else
            memset(p->y + i * D, 0, D * sizeof *p->y);
}

void bm_cpu_layernorm_forward(bm_backend *be, const bm_layernorm *n,
                              bm_extent e, const float *x, float *y,
                              float *kept)
{
    pass p = view(be, n, e, kept);

    p.x = x;
    p.y = y;
    bm_cpu_run(be, p.threads, forward_part, &p);
}

static void backward_group(const pass *p, size_t group)
{
    size_t D = p->n->width, all = p->e.T * p->e.B;
    size_t to = bm_part(all, 1, GROUPS, group + 1);
    float *dgamma = p->sums + group * 2 * D;

    memset(dgamma, 0, 2 * D * sizeof *dgamma);
    for (size_t i = bm_part(all, 1, GROUPS, group); i < to; i++) {
        float *dx = p->dx != NULL ? p->dx + i * D : NULL;

        if (is_inside(p->e, i))
            p->loops->layernorm_back(D, p->x + i * D, p->moments + 2 * i,
                                     p->n->gamma, p->dy + i * D, dx, dgamma,
                                     dgamma + D);
        else if (dx != NULL)
            memset(dx, 0, D * sizeof *dx);
    }
}

static void backward_part(void *self, size_t part)
{
    const pass *p = self;

    for (size_t g = part; g < GROUPS; g += p->threads)
        backward_group(p, g);
}

void bm_cpu_layernorm_backward(bm_backend *be, const bm_layernorm *n,
                               bm_extent e, const float *x, const float *dy,
                               float *kept, float *dx, float *dgamma,
                               float *dbeta)
{
    pass p = view(be, n, e, kept);
    size_t D = n->width;

    p.x = x;
    p.dy = dy;
    p.dx = dx;
    bm_cpu_run(be, p.threads, backward_part, &p);
    memset(dgamma, 0, D * sizeof *dgamma);
    memset(dbeta, 0, D * sizeof *dbeta);
    p.loops->add_rows(GROUPS, D, 2 * D, p.sums, dgamma);
    p.loops->add_rows(GROUPS, D, 2 * D, p.sums + D, dbeta);
}

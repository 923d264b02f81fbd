/* cpu_gate.c - swish and gated linear units, a number times a sigmoid, and gelu,
 * a number times the distribution function of normal numbers. */
#include "compute/cpu/cpu.h"

enum { GRAIN = 1 << 14 }; /* floats: fewer are not worth a second thread */

/* Rows of n numbers of y; of glu those of x are twice as long. */
typedef struct gate {
    const bm_loops *loops;
    size_t rows, n, parts;
    const float *x, *dy;
    float *to;
} gate;

static void run(bm_backend *be, gate *g, void (*part)(void *self, size_t i))
{
    size_t most = (g->rows * g->n + GRAIN - 1) / GRAIN;
    size_t threads = bm_thread_pool_threads(bm_cpu_of(be)->pool);

    g->loops = bm_cpu_isa(be)->loops;
    g->parts = most < threads ? most : threads;
    bm_cpu_run(be, g->parts, part, g);
}

static void swish_part(void *self, size_t i)
{
    const gate *g = self;
    size_t at = bm_part(g->n, GRAIN, g->parts, i);

    g->loops->gate(bm_part(g->n, GRAIN, g->parts, i + 1) - at, g->x + at,
                   g->x + at, g->to + at);
}

void bm_cpu_swish(bm_backend *be, size_t n, const float *x, float *y)
{
    gate g = {.rows = 1, .n = n, .x = x, .to = y};

    run(be, &g, swish_part);
}

static void swish_back_part(void *self, size_t i)
{
    const gate *g = self;
    size_t at = bm_part(g->n, GRAIN, g->parts, i);

    g->loops->swish_back(bm_part(g->n, GRAIN, g->parts, i + 1) - at, g->x + at,
                         g->dy + at, g->to + at);
}

void bm_cpu_swish_back(bm_backend *be, size_t n, const float *x,
                       const float *dy, float *dx)
{
    gate g = {.rows = 1, .n = n, .x = x, .dy = dy, .to = dx};

    run(be, &g, swish_back_part);
}

static void gelu_part(void *self, size_t i)
{
    const gate *g = self;
    size_t at = bm_part(g->n, GRAIN, g->parts, i);

    g->loops->gelu(bm_part(g->n, GRAIN, g->parts, i + 1) - at, g->x + at,
                   g->to + at);
}

void bm_cpu_gelu(bm_backend *be, size_t n, const float *x, float *y)
{
    gate g = {.rows = 1, .n = n, .x = x, .to = y};

    run(be, &g, gelu_part);
}

static void gelu_back_part(void *self, size_t i)
{
    const gate *g = self;
    size_t at = bm_part(g->n, GRAIN, g->parts, i);

    g->loops->gelu_back(bm_part(g->n, GRAIN, g->parts, i + 1) - at, g->x + at,
                        g->dy + at, g->to + at);
}

void bm_cpu_gelu_back(bm_backend *be, size_t n, const float *x, const float *dy,
                      float *dx)
{
    gate g = {.rows = 1, .n = n, .x = x, .dy = dy, .to = dx};

    run(be, &g, gelu_back_part);
}

static void glu_part(void *self, size_t i)
{
    const gate *g = self;
    size_t n = g->n, to = bm_part(g->rows, 1, g->parts, i + 1);

    for (size_t k = bm_part(g->rows, 1, g->parts, i); k < to; k++) {
        const float *x = g->x + 2 * n * k;
        g->loops->gate(n, x, x + n, g->to + n * k);
    }
}

void bm_cpu_glu(bm_backend *be, size_t rows, size_t n, const float *x, float *y)
{
    gate g = {.rows = rows, .n = n, .x = x, .to = y};

    run(be, &g, glu_part);
}

static void glu_back_part(void *self, size_t i)
{
    const gate *g = self;
    size_t n = g->n, to = bm_part(g->rows, 1, g->parts, i + 1);

    for (size_t k = bm_part(g->rows, 1, g->parts, i); k < to; k++) {
        const float *x = g->x + 2 * n * k;
        float *dx = g->to + 2 * n * k;

        g->loops->gate_back(n, x, x + n, g->dy + n * k, dx, dx + n);
    }
}

void bm_cpu_glu_back(bm_backend *be, size_t rows, size_t n, const float *x,
                     const float *dy, float *dx)
{
    gate g = {.rows = rows, .n = n, .x = x, .dy = dy, .to = dx};

    run(be, &g, glu_back_part);
}

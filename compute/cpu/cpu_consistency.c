/* cpu_consistency.c - two views of each sequence are to agree. The gradient of
 * KL(q || p) with respect to the logits of p is p - q. */
#include "compute/cpu/cpu.h"
#include "compute/cpu/cpu_loss.h"

#include <math.h>

typedef struct job {
    const bm_loss_loops *loops;
    bm_extent e;
    float factor;
    bm_tensor y, dy;
    float *terms; /* [parts, 2, C] */
    size_t parts;
} job;

/* Frame t of the sequence whose views are b and b + B / 2. */
static void frame(const job *j, size_t t, size_t b, float *terms)
{
    size_t C = j->y.dim[2];
    float *p[2] = {terms, terms + C}, *d[2], part[2];

    for (size_t v = 0; v < 2; v++) {
        size_t at = b + v * (j->e.B / 2);
        const float *x = bm_cpu_frame(j->y, t, at);

        part[v] = (float)(1 / bm_cpu_exp_sum(j->loops, C, x,
                                             j->loops->largest(C, x), p[v]));
        d[v] = bm_cpu_frame(j->dy, t, at);
    }
    if (!isfinite(part[0]) || !isfinite(part[1]))
        return;
    for (size_t k = 0; k < C; k++) {
        float off = j->factor * (p[0][k] * part[0] - p[1][k] * part[1]);

        d[0][k] += off;
        d[1][k] -= off;
    }
}

static void run_part(void *self, size_t part)
{
    const job *j = self;
    size_t to = bm_part(j->e.T, 1, j->parts, part + 1);

    for (size_t t = bm_part(j->e.T, 1, j->parts, part); t < to; t++)
        for (size_t b = 0; b < j->e.B / 2; b++)
            if (t < (size_t)j->e.frames[b])
                frame(j, t, b, j->terms + part * 2 * j->y.dim[2]);
}

void bm_cpu_consistency(bm_backend *be, bm_extent e, float weight, bm_tensor y,
                        bm_tensor dy)
{
    bm_cpu *cpu = bm_cpu_of(be);
    job j = {
        cpu->isa->loss, e, 0, y, dy, NULL, bm_thread_pool_threads(cpu->pool)};
    bm_status status =
        bm_reserve(&cpu->work, j.parts * 2 * y.dim[2] * sizeof *j.terms);
    size_t n = 0;

    if (status != BM_OK) {
        bm_remember(be, status);
        return;
    }
    for (size_t b = 0; b < e.B; b++)
        n += e.frames[b] > 0;
    j.factor = n > 0 ? (float)((double)weight / (double)n) : 0;
    j.terms = cpu->work.x;
    bm_cpu_run(be, j.parts, run_part, &j);
}

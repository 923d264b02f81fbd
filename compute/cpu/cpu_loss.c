/* cpu_loss.c - see cpu_loss.h. */
#include "compute/cpu/cpu_loss.h"

#include "compute/cpu/cpu.h"

#include <string.h>

void bm_cpu_clear_sequence(bm_tensor dy, size_t b)
{
    for (size_t t = 0; dy.data != NULL && t < dy.dim[0]; t++)
        memset(bm_cpu_frame(dy, t, b), 0, dy.dim[2] * sizeof *dy.data);
}

const int32_t *bm_cpu_labels(bm_targets t, size_t b)
{
    const int32_t *labels = t.classes;

    for (size_t i = 0; i < b; i++)
        labels += t.count[i];
    return labels;
}

typedef struct scoring {
    bm_score (*one)(const void *self, size_t part, size_t b);
    const void *self;
    size_t parts, B;
    bm_score *of; /* [B] */
} scoring;

static void score_part(void *self, size_t part)
{
    const scoring *s = self;

    for (size_t b = part; b < s->B; b += s->parts)
        s->of[b] = s->one(s->self, part, b);
}

bm_score bm_cpu_score(bm_backend *be, size_t B, const void *self,
                      bm_score (*one)(const void *self, size_t part, size_t b))
{
    bm_cpu *cpu = bm_cpu_of(be);
    bm_score all = {0};
    bm_status status = bm_reserve(&cpu->scores, B * sizeof(bm_score));
    scoring s = {one, self, bm_thread_pool_threads(cpu->pool), B,
                 cpu->scores.x};

    if (status != BM_OK) {
        bm_remember(be, status);
        return all;
    }
    bm_cpu_run(be, s.parts, score_part, &s);
    for (size_t b = 0; b < B; b++)
        bm_score_add(&all, &s.of[b]);
    return all;
}

typedef struct mean {
    bm_extent e;
    bm_tensor dy;
    float factor;
    size_t parts;
} mean;

static void mean_part(void *self, size_t part)
{
    const mean *m = self;
    size_t C = m->dy.dim[2], to = bm_part(m->e.T, 1, m->parts, part + 1);

    for (size_t t = bm_part(m->e.T, 1, m->parts, part); t < to; t++)
        for (size_t b = 0; b < m->e.B; b++) {
            float *row = bm_cpu_frame(m->dy, t, b);

            if (t >= (size_t)m->e.frames[b])
                memset(row, 0, C * sizeof *row);
            for (size_t k = 0; t < (size_t)m->e.frames[b] && k < C; k++)
                row[k] *= m->factor;
        }
}

void bm_cpu_mean_gradient(bm_backend *be, bm_extent e, bm_tensor dy,
                          double count)
{
    size_t threads = bm_thread_pool_threads(bm_cpu_of(be)->pool);
    mean m = {e, dy, count > 0 ? (float)(1 / count) : 0, threads};

    if (dy.data != NULL)
        bm_cpu_run(be, m.parts, mean_part, &m);
}

/* cpu_attention.c - the weights of attention, and encodings of distances.
 * Threads take rows, each of which is summed in one order. */
#include "compute/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* ---- positions ----------------------------------------------------------- */

/* Rows of one frequency: the angle of distance 1 turns (sin, cos) from row to
 * row, in doubles, whose error stays below 1e-12 for 4096 frames. */
static void turn(size_t T, size_t D, size_t i, float *y)
{
    size_t even = i / 2 * 2;
    double angle = pow(10000, -(double)even / (double)D);
    double s = 0, c = 1, sin1 = sin(angle), cos1 = cos(angle);

    for (size_t p = 0; p < T; p++) {
        double next = s * cos1 + c * sin1;

        y[(T - 1 - p) * D + i] = (float)(i % 2 == 0 ? s : c);
        y[(T - 1 + p) * D + i] = (float)(i % 2 == 0 ? -s : c);
        c = c * cos1 - s * sin1;
        s = next;
    }
}

void bm_cpu_positions(bm_backend *be, size_t T, size_t D, float *y)
{
    (void)be;
    for (size_t i = 0; i < D; i++)
        turn(T, D, i, y);
}

/* ---- weights ------------------------------------------------------------- */

typedef struct job {
    const bm_loops *loops;
    bm_extent e;
    size_t heads, threads;
    float scale;
    const float *r, *from;
    float *s, *dr;
} job;

static job job_of(bm_backend *be, const bm_attention *a, bm_extent e)
{
    return (job){.loops = bm_cpu_isa(be)->loops,
                 .e = e,
                 .heads = a->heads,
                 .threads = bm_thread_pool_threads(bm_cpu_of(be)->pool),
                 .scale = a->scale};
}

/* Row k of s: sequence b, head h, frame t, with n frames to attend to. */
typedef struct row {
    size_t n;
    size_t r; /* where its row of r begins */
    size_t t;
} row;

static row row_of(const job *j, size_t k)
{
    size_t T = j->e.T, t = k % T, h = k / T % j->heads, b = k / T / j->heads;
    size_t length = (size_t)j->e.frames[b];

    return (row){t < length ? length : 0,
                 ((h * T + t) * j->e.B + b) * (2 * T - 1), t};
}

static void weights_part(void *self, size_t part)
{
    const job *j = self;
    size_t T = j->e.T, all = j->e.B * j->heads * T;
    size_t to = bm_part(all, 1, j->threads, part + 1);

    for (size_t k = bm_part(all, 1, j->threads, part); k < to; k++) {
        row q = row_of(j, k);
        float *s = j->s + k * T;

        if (q.n > 0)
            j->loops->attend(q.n, j->scale, j->r + q.r + T - 1 - q.t, s);
        memset(s + q.n, 0, (T - q.n) * sizeof *s);
    }
}

void bm_cpu_attention_weights(bm_backend *be, const bm_attention *a,
                              bm_extent e, const float *r, float *s)
{
    job j = job_of(be, a, e);

    j.r = r;
    j.s = s;
    bm_cpu_run(be, j.threads, weights_part, &j);
}

static void back_part(void *self, size_t part)
{
    const job *j = self;
    size_t T = j->e.T, all = j->e.B * j->heads * T;
    size_t to = bm_part(all, 1, j->threads, part + 1);

    for (size_t k = bm_part(all, 1, j->threads, part); k < to; k++) {
        row q = row_of(j, k);
        float *d = j->s + k * T, *dr = j->dr + q.r;

        memset(dr, 0, (2 * T - 1) * sizeof *dr);
        if (q.n > 0)
            j->loops->attend_back(q.n, j->scale, j->from + k * T, d,
                                  dr + T - 1 - q.t);
        memset(d + q.n, 0, (T - q.n) * sizeof *d);
    }
}

void bm_cpu_attention_back(bm_backend *be, const bm_attention *a, bm_extent e,
                           const float *s, float *d, float *dr)
{
    job j = job_of(be, a, e);

    j.from = s;
    j.s = d;
    j.dr = dr;
    bm_cpu_run(be, j.threads, back_part, &j);
}

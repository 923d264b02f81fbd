/* cuda_ctc.c - CTC: describes the sequences to the device, and queues the
 * kernels of ctc.cu. */
#define _DEFAULT_SOURCE /* lgamma_r */
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/device/cuda_side.h"
#include "compute/cuda/loss/ctc_kernels.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums over the sequences. */
typedef struct totals {
    size_t frames, labels, pairs;
} totals;

static totals count(bm_extent e, bm_targets t)
{
    totals n = {0};

    for (size_t b = 0; b < e.B; b++) {
        size_t T = (size_t)e.frames[b], L = (size_t)t.count[b];
        n.frames += T;
        n.labels += L;
        n.pairs += T * (L + 1);
    }
    return n;
}

/* Takes n elements of `size` bytes; NULL if `work` is NULL. */
static void *take(float *work, size_t *used, size_t n, size_t size)
{
    void *x = work == NULL ? NULL : work + *used;

    *used += n * size / sizeof *work;
    return x;
}

/* Divides `work`, largest alignment first. Returns the floats that it takes. */
static size_t lay_out(bm_ctc_job *c, totals n, size_t B, float *work)
{
    size_t used = 0;

    c->states = take(work, &used, n.pairs, sizeof *c->states);
    c->frame = take(work, &used, n.frames, sizeof *c->frame);
    c->verdict = take(work, &used, B, sizeof *c->verdict);
    c->emit = take(work, &used, n.pairs, sizeof *c->emit);
    c->posterior = take(work, &used, 2 * n.pairs, sizeof *c->posterior);
    c->edges = take(work, &used, 2 * n.frames, sizeof *c->edges);
    c->sums = take(work, &used, B, sizeof *c->sums);
    c->own = take(work, &used, B, sizeof *c->own);
    c->path = take(work, &used, n.frames, sizeof *c->path);
    c->border = take(work, &used, n.frames, sizeof *c->border);
    return used;
}

size_t bm_cuda_ctc_work(bm_backend *be, bm_extent e, bm_targets t,
                        size_t n_classes)
{
    bm_ctc_job c = {0};

    (void)be;
    (void)n_classes;
    return lay_out(&c, count(e, t), e.B, NULL);
}

/* The loss of equal logits: T ln C - ln binomial(T + L - r, 2 L). */
static double chance(size_t T, size_t L, size_t repeats, size_t C)
{
    double n = (double)(T + L - repeats), k = 2 * (double)L;
    int sign = 0; /* lgamma stores it in a global variable */
    double paths = lgamma_r(n + 1, &sign) - lgamma_r(k + 1, &sign) -
                   lgamma_r(n - k + 1, &sign);

    return (double)T * log((double)C) - paths;
}

/* Chains equal labels; returns the number of heads. last [C] is zeros before
 * and after. */
static int32_t chain(const int32_t *labels, size_t L, int32_t *last,
                     int32_t *next, int32_t *heads)
{
    int32_t n = 0;

    for (size_t i = 0; i < L; i++) {
        int32_t *before = &last[labels[i]]; /* index + 1 */

        if (*before > 0)
            next[*before - 1] = (int32_t)i;
        else
            heads[n++] = (int32_t)i;
        next[i] = -1;
        *before = (int32_t)i + 1;
    }
    for (size_t i = 0; i < L; i++)
        last[labels[i]] = 0;
    return n;
}

/* Writes what goes to the device: sequences [B], then labels, next, heads. */
static void describe(bm_extent e, bm_targets t, size_t C, totals n,
                     bm_ctc_sequence *sequence, int32_t *last)
{
    int32_t *labels = (int32_t *)(void *)(sequence + e.B);
    int32_t *next = labels + n.labels, *heads = next + n.labels;
    totals at = {0};

    if (n.labels > 0)
        memcpy(labels, t.classes, n.labels * sizeof *labels);
    for (size_t b = 0; b < e.B; b++) {
        size_t T = (size_t)e.frames[b], L = (size_t)t.count[b];
        size_t repeats = bm_ctc_repeats(labels + at.labels, L);
        bool feasible = T > 0 && T >= L + repeats;

        sequence[b] = (bm_ctc_sequence){
            .frames = e.frames[b],
            .labels = t.count[b],
            .heads = chain(labels + at.labels, L, last, next + at.labels,
                           heads + at.labels),
            .feasible = feasible,
            .frame_at = at.frames,
            .label_at = at.labels,
            .pair_at = at.pairs,
            .chance = feasible ? chance(T, L, repeats, C) : 0,
        };
        at.frames += T;
        at.labels += L;
        at.pairs += T * (L + 1);
    }
}

static void send(bm_backend *be, bm_extent e, bm_targets t, totals n,
                 bm_ctc_job *c)
{
    size_t bytes = e.B * sizeof *c->sequence + 3 * n.labels * sizeof *c->labels;
    bm_ctc_sequence *host = malloc(bytes);
    int32_t *last = calloc(c->C, sizeof *last);

    if (host == NULL || last == NULL) {
        bm_remember(be, BM_FAIL(BM_ERR_MEMORY, "no memory for CTC"));
    } else {
        describe(e, t, c->C, n, host, last);
        c->sequence = bm_cuda_send(be, host, bytes);
    }
    free(last);
    free(host);
    if (c->sequence == NULL)
        return;
    c->labels = (const int32_t *)(const void *)(c->sequence + e.B);
    c->next = c->labels + n.labels;
    c->heads = c->next + n.labels;
}

static size_t most(const int32_t *x, size_t n)
{
    int32_t largest = 0;

    for (size_t i = 0; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    return (size_t)largest;
}

/* In the form that products read. */
static void gradient(bm_backend *be, const bm_ctc_job *c, bm_tensor dy)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bool half = cuda->precision == BM_BF16;
    size_t n = bm_count(dy);
    float *out = half ? NULL : bm_cuda_write(be, dy.data, n);
    bm_bf16 *out16 = half ? bm_cuda_write16(be, dy.data, n) : NULL;

    BM_CUDA(be, bm_kernel_ctc_gradient(cuda->stream, c, out, out16));
}

/* The edit distances, which take about as long as the walk, go to `side`. */
void bm_cuda_ctc(bm_backend *be, bm_extent e, bm_targets t,
                 bm_infeasible policy, float smoothing, bm_tensor y,
                 bm_tensor dy, float *work, bm_score *score)
{
    enum { SCORE_FLOATS = sizeof *score / sizeof(float) };
    bm_cuda *cuda = bm_cuda_of(be);
    float *sums = (float *)(void *)score;
    totals n = count(e, t);
    bm_ctc_job c = {.T = e.T,
                    .B = e.B,
                    .C = y.dim[2],
                    .most_labels = most(t.count, e.B),
                    .zero_infeasible = policy == BM_INFEASIBLE_ZERO,
                    .smoothing = smoothing,
                    .y = bm_cuda_read(be, y.data, bm_count(y))};
    size_t floats = lay_out(&c, n, e.B, NULL);

    if (e.B == 0)
        return;
    BM_ASSERT((uintptr_t)work % alignof(bm_ctc_pair) == 0);
    (void)lay_out(&c, n, e.B, bm_cuda_write(be, work, floats));
    (void)bm_cuda_read(be, sums, SCORE_FLOATS);
    (void)bm_cuda_write(be, sums, SCORE_FLOATS);
    send(be, e, t, n, &c);
    BM_CUDA(be, bm_kernel_ctc_look(cuda->stream, &c));
    bm_cuda_fork(be);
    BM_CUDA(be, bm_kernel_ctc_errors(cuda->side, &c));
    BM_CUDA(be, bm_kernel_ctc_walk(cuda->stream, &c, dy.data != NULL));
    if (dy.data != NULL)
        gradient(be, &c, dy);
    bm_cuda_join(be);
    BM_CUDA(be, bm_kernel_ctc_score(cuda->stream, &c, score));
}

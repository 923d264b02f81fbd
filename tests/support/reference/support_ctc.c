#include "tests/support/reference/support_ctc.h"

#include "models/loss.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *loss_backend = "cpu";
bm_precision loss_precision = BM_FP32;
static bm_backend *opened;

bm_backend *loss_open(void)
{
    if (opened == NULL)
        assert_ok(bm_backend_open(&opened, loss_backend, 0));
    return opened;
}

void loss_close(void)
{
    bm_backend_close(opened);
    opened = NULL;
}

size_t pick(uint64_t key, size_t n)
{
    return (size_t)(uniform(key) * (double)n);
}

double normal(uint64_t key)
{
    double r = sqrt(-2 * log(1 - uniform(2 * key)));
    return r * cos(2 * acos(-1) * uniform(2 * key + 1));
}

float *normals(uint64_t key, size_t n, double scale)
{
    float *x = zeros(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * normal((key << 32) + i));
    return x;
}

json_t *known_answers(void)
{
    const char *data = getenv("BMUF_DATA");
    char path[1024];
    json_t *known = NULL;

    snprintf(path, sizeof path, "%s/../reference/known_answers/ctc_kat.json",
             data ? data : BMUF_SOURCE "/../shared/data");
    known = json_load_file(path, 0, NULL);
    if (known == NULL)
        print_message("no known answers here: %s\n", path);
    return known;
}

batch batch_new(size_t T, size_t B, size_t C)
{
    batch b = {.T = T, .B = B, .C = C};

    assert_true(B <= SEQUENCES);
    b.y = zeros(T * B * C, sizeof *b.y);
    b.dy = zeros(T * B * C, sizeof *b.dy);
    for (size_t i = 0; i < T * B * C; i++)
        b.y[i] = b.dy[i] = NAN;
    return b;
}

void batch_free(batch *b)
{
    free(b->y);
    free(b->dy);
    free(b->classes);
}

void batch_put(batch *b, size_t n, size_t frames, const float *logits,
               const int32_t *labels, size_t n_labels)
{
    size_t all = b->n_classes + n_labels;

    b->frames[n] = (int32_t)frames;
    b->count[n] = (int32_t)n_labels;
    b->classes = realloc(b->classes, (all + 1) * sizeof *b->classes);
    assert_non_null(b->classes);
    for (size_t i = 0; i < n_labels; i++)
        b->classes[b->n_classes++] = labels[i];
    for (size_t t = 0; t < frames; t++)
        for (size_t k = 0; k < b->C; k++)
            batch_row(b, b->y, n, t)[k] = logits[t * b->C + k];
}

float *batch_row(const batch *b, float *x, size_t n, size_t t)
{
    return x + (t * b->B + n) * b->C;
}

static bm_tensor tensor(const batch *b, float *x)
{
    bm_tensor t = {x, 3, {b->T, b->B, b->C, 1}};
    return t;
}

void batch_run(batch *b, const char *loss, bm_infeasible policy)
{
    enum { floats = sizeof(bm_score) / sizeof(float) };
    const bm_loss_ops *ops = bm_loss_find(loss);
    bm_extent e = {b->T, b->B, b->frames};
    bm_targets t = {b->classes, b->count};
    size_t n = b->T * b->B * b->C;
    float *y = NULL, *dy = NULL, *work = NULL, *score[2] = {NULL, NULL};
    bm_backend *be = loss_open();
    bm_score blind;

    assert_ok(bm_backend_use(be, 1, loss_precision));
    assert_ok(bm_alloc(be, n, &y));
    assert_ok(bm_alloc(be, n, &dy));
    assert_ok(bm_alloc(be, ops->work ? ops->work(be, e, t, b->C) : 0, &work));
    assert_ok(bm_alloc(be, floats, &score[0]));
    assert_ok(bm_alloc(be, floats, &score[1]));
    bm_put(be, y, b->y, n);
    bm_put(be, dy, b->dy, n);
    ops->run(be, e, t, policy, 0, tensor(b, y), tensor(b, dy), work,
             (bm_score *)(void *)score[0]);
    ops->run(be, e, t, policy, 0, tensor(b, y), tensor(b, NULL), work,
             (bm_score *)(void *)score[1]);
    bm_get(be, b->dy, dy, n);
    bm_get(be, (float *)(void *)&b->score, score[0], floats);
    bm_get(be, (float *)(void *)&blind, score[1], floats);
    assert_ok(bm_sync(be));
    assert_memory_equal(&blind, &b->score, sizeof blind);
    bm_free(be, y);
    bm_free(be, dy);
    bm_free(be, work);
    bm_free(be, score[0]);
    bm_free(be, score[1]);
}

bm_score ctc_alone(size_t T, size_t C, const float *y, const int32_t *labels,
                   size_t L, float *dy)
{
    batch b = batch_new(T, 1, C);
    bm_score score;

    batch_put(&b, 0, T, y, labels, L);
    batch_run(&b, "ctc", BM_INFEASIBLE_SKIP);
    if (dy != NULL)
        memcpy(dy, b.dy, T * C * sizeof *dy);
    score = b.score;
    batch_free(&b);
    return score;
}

void log_softmax(size_t C, const float *x, double *out)
{
    double top = x[0], sum = 0;

    for (size_t k = 1; k < C; k++)
        top = fmax(top, x[k]);
    for (size_t k = 0; k < C; k++)
        sum += exp(x[k] - top);
    for (size_t k = 0; k < C; k++)
        out[k] = x[k] - top - log(sum);
}

static double log_add(double x, double y)
{
    double top = fmax(x, y);
    return top == -INFINITY ? top : top + log(exp(x - top) + exp(y - top));
}

/* All 2 L + 1 states in one row, as in the paper. */
typedef struct lattice {
    size_t T, C, L, S;
    const int32_t *labels;
    double *lp;    /* [T, C] */
    double *a, *b; /* [T, S] */
} lattice;

static size_t class_of(const lattice *l, size_t s)
{
    return s % 2 ? (size_t)l->labels[s / 2] : 0;
}

static double emitted(const lattice *l, size_t t, size_t s)
{
    return l->lp[t * l->C + class_of(l, s)];
}

/* May a path go from s - 2 to s? */
static bool skips(const lattice *l, size_t s)
{
    return s % 2 && s > 1 && l->labels[s / 2] != l->labels[s / 2 - 1];
}

static double forward(lattice *l, size_t t, size_t s)
{
    const double *before = l->a + (t - 1) * l->S;
    double from = before[s];

    if (s > 0)
        from = log_add(from, before[s - 1]);
    if (skips(l, s))
        from = log_add(from, before[s - 2]);
    return from;
}

static double backward(lattice *l, size_t t, size_t s)
{
    const double *after = l->b + (t + 1) * l->S;
    double to = after[s] + emitted(l, t + 1, s);

    if (s + 1 < l->S)
        to = log_add(to, after[s + 1] + emitted(l, t + 1, s + 1));
    if (s + 2 < l->S && skips(l, s + 2))
        to = log_add(to, after[s + 2] + emitted(l, t + 1, s + 2));
    return to;
}

static double fill(lattice *l)
{
    size_t T = l->T, S = l->S;

    for (size_t t = 0; t < T; t++)
        for (size_t s = 0; s < S; s++)
            l->a[t * S + s] = emitted(l, t, s) + (t > 0   ? forward(l, t, s)
                                                  : s < 2 ? 0
                                                          : -INFINITY);
    for (size_t t = T; t-- > 0;)
        for (size_t s = S; s-- > 0;)
            l->b[t * S + s] = t + 1 < T    ? backward(l, t, s)
                              : s + 2 >= S ? 0
                                           : -INFINITY;
    return log_add(l->a[T * S - 1], S > 1 ? l->a[T * S - 2] : -INFINITY);
}

double ctc_reference(size_t T, size_t C, const float *y, const int32_t *labels,
                     size_t L, double *dy)
{
    size_t S = 2 * L + 1;
    lattice l = {.T = T, .C = C, .L = L, .S = S, .labels = labels};
    double log_p = 0;

    assert_true(T > 0);
    l.lp = zeros(T * C, sizeof *l.lp);
    l.a = zeros(T * S, sizeof *l.a);
    l.b = zeros(T * S, sizeof *l.b);
    for (size_t t = 0; t < T; t++)
        log_softmax(C, y + t * C, l.lp + t * C);
    log_p = fill(&l);
    for (size_t i = 0; i < T * C; i++)
        dy[i] = exp(l.lp[i]);
    for (size_t t = 0; t < T; t++)
        for (size_t s = 0; s < S; s++)
            dy[t * C + class_of(&l, s)] -=
                exp(l.a[t * S + s] + l.b[t * S + s] - log_p);
    free(l.lp);
    free(l.a);
    free(l.b);
    return -log_p;
}

/* Does a path, one class per frame, say the labels? */
static bool says(size_t T, const size_t *path, const int32_t *labels, size_t L)
{
    size_t n = 0;

    for (size_t t = 0; t < T; t++) {
        if (path[t] == 0 || (t > 0 && path[t] == path[t - 1]))
            continue;
        if (n == L || path[t] != (size_t)labels[n])
            return false;
        n++;
    }
    return n == L;
}

/* The next of all paths; false after the last. */
static bool advance(size_t T, size_t C, size_t *path)
{
    for (size_t t = 0; t < T; t++) {
        if (++path[t] < C)
            return true;
        path[t] = 0;
    }
    return false;
}

double ctc_enumeration(size_t T, size_t C, const float *y,
                       const int32_t *labels, size_t L, double *dy)
{
    double lp[64] = {0}, through[64] = {0}, total = 0;
    size_t path[8] = {0};

    assert_true(T <= 8 && T * C <= 64);
    for (size_t t = 0; t < T; t++)
        log_softmax(C, y + t * C, lp + t * C);
    do {
        double p = 0;

        for (size_t t = 0; t < T; t++)
            p += lp[t * C + path[t]];
        if (!says(T, path, labels, L))
            continue;
        total += exp(p);
        for (size_t t = 0; t < T; t++)
            through[t * C + path[t]] += exp(p);
    } while (advance(T, C, path));
    for (size_t i = 0; i < T * C; i++)
        dy[i] = exp(lp[i]) - through[i] / total;
    return -log(total);
}

double distance(size_t n, const float *x, const double *y)
{
    double most = 0;

    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(x[i]));
        most = fmax(most, fabs((double)x[i] - y[i]));
    }
    return most;
}

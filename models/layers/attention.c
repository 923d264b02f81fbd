/*
 * attention.c - multi-head self-attention over the frames of each sequence,
 * with relative positions (Dai et al. 2019, section 3.3), as the Conformer has
 * it (Gulati et al. 2020). For each head, of d = D / H features:
 *
 *     q, k, v = wq x + bq, wk x + bk, wv x + bv      p = wr (encodings)
 *     a[t, w] = softmax over w of ((q[t] + u) k[w] + (q[t] + v') p[t - w]) /
 *               sqrt(d)
 *     c[t] = sum over w of a[t, w] v[w]              y = wo c + bo
 *
 * Frames lie as [T, B, H, d]: matrix b H + h of a batch of products begins d
 * numbers after the one before it, and its rows are B D apart.
 */
#include "models/layers/layer.h"

#include <math.h>
#include <string.h>

/* Weights, or their gradients. */
typedef struct weights {
    float *w, *b;   /* [3, D, D], [3, D]: of q, k, v */
    float *wr;      /* [D, D]: of encodings */
    float *u, *v;   /* [D] each: added to q for frames, for distances */
    float *wo, *bo; /* [D, D], [D] */
} weights;

static weights view(const bm_layer *l, float *w)
{
    size_t D = l->n_in;
    weights a = {.w = w};

    a.b = a.w + 3 * D * D;
    a.wr = a.b + 3 * D;
    a.u = a.wr + D * D;
    a.v = a.u + D;
    a.wo = a.v + D;
    a.bo = a.wo + D * D;
    return a;
}

static bm_status plan(bm_layer *l)
{
    size_t D = l->n_in;

    BM_TRY(bm_layer_count(l, "heads", l->args, &l->heads));
    if (D % l->heads != 0 && !l->assumed)
        return bm_layer_fail(l,
                             "%zu features are not divisible by %zu heads; "
                             "use a number of heads that divides them",
                             D, l->heads);
    l->n_out = D;
    l->most = BM_LAYER_ATTENDED;
    l->weights[0] = (bm_weight){
        .name = "w", .rank = 2, .dim = {3 * D, D, 1, 1}, .stacked = 3};
    l->weights[1] =
        (bm_weight){.name = "b", .rank = 1, .dim = {3 * D, 1, 1, 1}};
    l->weights[2] = (bm_weight){.name = "wr", .rank = 2, .dim = {D, D, 1, 1}};
    l->weights[3] = (bm_weight){
        .name = "uv", .rank = 2, .dim = {2, D, 1, 1}, .stacked = BM_NO_MATRIX};
    l->weights[4] = (bm_weight){.name = "wo", .rank = 2, .dim = {D, D, 1, 1}};
    l->weights[5] = (bm_weight){.name = "bo", .rank = 1, .dim = {D, 1, 1, 1}};
    l->n_weights = 6;
    return BM_OK;
}

static void init(const bm_layer *l, float *w, bm_rng *rng)
{
    size_t D = l->n_in;
    weights a = view(l, w);

    bm_layer_glorot(a.w, 3 * D * D, D, D, rng);
    memset(a.b, 0, 3 * D * sizeof *w);
    bm_layer_glorot(a.wr, D * D, D, D, rng);
    bm_layer_glorot(a.u, 2 * D, l->heads, D / l->heads, rng);
    bm_layer_glorot(a.wo, D * D, D, D, rng);
    memset(a.bo, 0, D * sizeof *w);
}

/* ---- scratch ------------------------------------------------------------- */

/* Numbers of a batch: frames T B D, a matrix of weights for each head and
 * sequence, distances for each head and frame. */
typedef struct sizes {
    size_t frames, weights, distances;
    size_t places; /* distances of two frames: 2 T - 1 */
} sizes;

static sizes sizes_of(const bm_layer *l, const bm_pass *p)
{
    size_t T = p->in.T, rows = T * p->in.B, places = T > 0 ? 2 * T - 1 : 0;

    return (sizes){rows * l->n_in, rows * l->heads * T,
                   rows * l->heads * places, places};
}

/* What backward needs of forward: q + u, q + v, k, v, c [T, B, D], encodings
 * and p [2 T - 1, D], a [B, H, T, T]. */
typedef struct memory {
    float *qu, *qv, *k, *v, *c, *encodings, *p, *a;
} memory;

/* What is needed only during a call: the scores by distance r [H, T, B, 2 T -
 * 1]; and gradients. */
typedef struct room {
    float *r, *a, *qu, *qv, *k, *v, *c, *p, *dx;
} room;

static float *take(float *from, size_t *used, size_t n)
{
    enum { LINE = 16 }; /* floats, as products like it */
    float *view = from != NULL ? from + *used : NULL;

    *used += (n + LINE - 1) / LINE * LINE;
    return view;
}

/* Views of l->kept, or NULLs; returns the floats that they take. */
static size_t carve_memory(const bm_layer *l, sizes n, memory *out)
{
    float **frames[] = {&out->qu, &out->qv, &out->k, &out->v, &out->c};
    size_t used = 0;

    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++)
        *frames[i] = take(l->kept, &used, n.frames);
    out->encodings = take(l->kept, &used, n.places * l->n_in);
    out->p = take(l->kept, &used, n.places * l->n_in);
    out->a = take(l->kept, &used, n.weights);
    return used;
}

/* Likewise, of l->work. */
static size_t carve_room(const bm_layer *l, sizes n, room *out)
{
    float **frames[] = {&out->qu, &out->qv, &out->k,
                        &out->v,  &out->c,  &out->dx};
    size_t used = 0;

    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++)
        *frames[i] = take(l->work, &used, n.frames);
    out->r = take(l->work, &used, n.distances);
    out->p = take(l->work, &used, n.places * l->n_in);
    out->a = take(l->work, &used, n.weights);
    return used;
}

static size_t kept(const bm_layer *l, const bm_pass *p)
{
    bm_layer counted = {.n_in = l->n_in};
    memory views;

    return carve_memory(&counted, sizes_of(l, p), &views);
}

static size_t work(const bm_layer *l, const bm_pass *p)
{
    bm_layer counted = {.n_in = l->n_in};
    room views;

    return carve_room(&counted, sizes_of(l, p), &views);
}

/* Those of frames with frames are products with the layer's own numbers. */
static bm_flops flops(const bm_layer *l, const bm_pass *p)
{
    sizes n = sizes_of(l, p);
    double D = (double)l->n_in, rows = (double)(p->in.T * p->in.B);

    return (bm_flops){.input = 2 * D * D * (4 * rows + (double)n.places),
                      .inner = 2 * rows * D *
                               (2 * (double)p->in.T + (double)n.places)};
}

/* ---- products ------------------------------------------------------------ */

/* Of frames with frames, for each sequence and head: [T, T] is one of a. */
static bm_gemms by_sequence(const bm_layer *l, const bm_pass *p)
{
    size_t T = p->in.T, B = p->in.B, D = l->n_in, d = D / l->heads;

    return (bm_gemms){.count = B * l->heads,
                      .m = T,
                      .n = d,
                      .k = T,
                      .alpha = 1,
                      .lda = T,
                      .ldb = B * D,
                      .ldc = B * D,
                      .apart_a = T * T,
                      .apart_b = d,
                      .apart_c = d};
}

/* out [T, B, D] = a x, or with `back` the transpose of a. */
static void mix(const bm_layer *l, const bm_pass *p, bool back, const float *a,
                const float *x, float *out)
{
    bm_gemms g = by_sequence(l, p);

    g.trans_a = back;
    bm_gemm_batch(l->be, &g, a, x, out);
}

/* out [B, H, T, T] = x y' */
static void compare(const bm_layer *l, const bm_pass *p, const float *x,
                    const float *y, float *out)
{
    size_t T = p->in.T, B = p->in.B, D = l->n_in, d = D / l->heads;
    bm_gemms g = {.count = B * l->heads,
                  .m = T,
                  .n = T,
                  .k = d,
                  .trans_b = true,
                  .alpha = 1,
                  .lda = B * D,
                  .ldb = B * D,
                  .ldc = T,
                  .apart_a = d,
                  .apart_b = d,
                  .apart_c = T * T};

    bm_gemm_batch(l->be, &g, x, y, out);
}

/* Of all frames with all distances, for each head: r [H, T B, 2 T - 1] = q p',
 * where q has T B rows of D, p 2 T - 1. */
static void measure(const bm_layer *l, size_t rows, size_t places,
                    const float *q, const float *p, float *r)
{
    size_t D = l->n_in, d = D / l->heads;
    bm_gemms g = {.count = l->heads,
                  .m = rows,
                  .n = places,
                  .k = d,
                  .trans_b = true,
                  .alpha = 1,
                  .lda = D,
                  .ldb = D,
                  .ldc = places,
                  .apart_a = d,
                  .apart_b = d,
                  .apart_c = rows * places};

    bm_gemm_batch(l->be, &g, q, p, r);
}

/* dq = dr p, dp = dr' q */
static void measure_back(const bm_layer *l, size_t rows, size_t places,
                         const float *dr, const float *q, const float *p,
                         float *dq, float *dp)
{
    size_t D = l->n_in, d = D / l->heads;
    bm_gemms g = {.count = l->heads,
                  .m = rows,
                  .n = d,
                  .k = places,
                  .alpha = 1,
                  .lda = places,
                  .ldb = D,
                  .ldc = D,
                  .apart_a = rows * places,
                  .apart_b = d,
                  .apart_c = d};

    bm_gemm_batch(l->be, &g, dr, p, dq);
    g.m = places;
    g.k = rows;
    g.trans_a = true;
    bm_gemm_batch(l->be, &g, dr, q, dp);
}

/* ---- forward and backward ------------------------------------------------ */

/* The i-th of the projections of x: of q, k, v. */
static bm_linear projection(const bm_layer *l, size_t i)
{
    size_t D = l->n_in;
    weights w = view(l, l->w);

    return (bm_linear){D, D, w.w + i * D * D, w.b + i * D, BM_IDENTITY};
}

static bm_attention attention(const bm_layer *l)
{
    size_t d = l->n_in / l->heads;

    return (bm_attention){l->heads, (float)(1 / sqrt((double)d))};
}

static void project(bm_layer *l, const bm_pass *p, const memory *m,
                    const float *x)
{
    float *to[] = {m->qu, m->k, m->v};
    size_t D = l->n_in, rows = p->in.T * p->in.B;
    weights w = view(l, l->w);

    for (size_t i = 0; i < 3; i++) {
        bm_linear f = projection(l, i);
        bm_linear_forward(l->be, &f, rows, x, to[i]);
    }
    bm_axpby(l->be, rows * D, 1, m->qu, 0, m->qv);
    bm_add_rows(l->be, bm_matrix(m->qu, rows, D), w.u);
    bm_add_rows(l->be, bm_matrix(m->qv, rows, D), w.v);
}

/* Past a sequence's end a is zero, and so is c. */
static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    size_t D = l->n_in, rows = p->in.T * p->in.B;
    sizes n = sizes_of(l, p);
    weights w = view(l, l->w);
    bm_attention a = attention(l);
    bm_linear out = {D, D, w.wo, w.bo, BM_IDENTITY};
    memory m;
    room r;

    if (rows == 0)
        return;
    (void)carve_memory(l, n, &m);
    (void)carve_room(l, n, &r);
    project(l, p, &m, x.data);
    bm_positions(l->be, p->in.T, D, m.encodings);
    bm_gemm(l->be, false, true, 1, bm_matrix(m.encodings, n.places, D),
            bm_matrix(w.wr, D, D), 0, bm_matrix(m.p, n.places, D));
    compare(l, p, m.qu, m.k, m.a);
    measure(l, rows, n.places, m.qv, m.p, r.r);
    bm_attention_weights(l->be, &a, p->in, r.r, m.a);
    mix(l, p, false, m.a, m.v, m.c);
    bm_linear_forward(l->be, &out, rows, m.c, y.data);
    bm_clear_padding(l->be, p->out, y);
}

/* From dq, dk, dv to their weights and to dx. */
static void project_back(bm_layer *l, const bm_pass *p, const room *r,
                         bm_tensor x, bm_tensor dx)
{
    float *from[] = {r->qu, r->k, r->v};
    size_t D = l->n_in, rows = p->in.T * p->in.B;
    weights g = view(l, l->g);

    for (size_t i = 0; i < 3; i++) {
        bm_linear f = projection(l, i);
        float *to = dx.data == NULL ? NULL : i == 0 ? dx.data : r->dx;

        bm_linear_backward(l->be, &f, rows, x.data, from[i], from[i], to,
                           g.w + i * D * D, g.b + i * D);
        if (i > 0 && to != NULL)
            bm_axpby(l->be, rows * D, 1, to, 1, dx.data);
    }
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    size_t D = l->n_in, rows = p->in.T * p->in.B;
    sizes n = sizes_of(l, p);
    weights w = view(l, l->w), g = view(l, l->g);
    bm_attention a = attention(l);
    bm_linear out = {D, D, w.wo, w.bo, BM_IDENTITY};
    memory m;
    room r;

    if (rows == 0) {
        bm_axpby(l->be, 5 * D * D + 6 * D, 0, l->g, 0, l->g);
        return;
    }
    (void)carve_memory(l, n, &m);
    (void)carve_room(l, n, &r);
    bm_linear_backward(l->be, &out, rows, m.c, y.data, dy.data, r.c, g.wo,
                       g.bo);
    compare(l, p, r.c, m.v, r.a);
    mix(l, p, true, m.a, r.c, r.v);
    bm_attention_back(l->be, &a, p->in, m.a, r.a, r.r);
    mix(l, p, false, r.a, m.k, r.qu);
    mix(l, p, true, r.a, m.qu, r.k);
    measure_back(l, rows, n.places, r.r, m.qv, m.p, r.qv, r.p);
    bm_gemm(l->be, true, false, 1, bm_matrix(r.p, n.places, D),
            bm_matrix(m.encodings, n.places, D), 0, bm_matrix(g.wr, D, D));
    bm_sum_rows(l->be, bm_matrix(r.qu, rows, D), g.u);
    bm_sum_rows(l->be, bm_matrix(r.qv, rows, D), g.v);
    bm_axpby(l->be, rows * D, 1, r.qv, 1, r.qu);
    project_back(l, p, &r, x, dx);
}

const bm_layer_ops bm_layer_attention = {
    .name = "attention",
    .others = "mha multiheadattention selfattention",
    .help = "attention:HEADS  self-attention with relative positions over the "
            "frames of a sequence",
    .plan = plan,
    .init = init,
    .kept = kept,
    .work = work,
    .flops = flops,
    .forward = forward,
    .backward = backward,
};

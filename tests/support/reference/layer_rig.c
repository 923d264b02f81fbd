#include "tests/support/reference/layer_rig.h"

#include "models/net.h"
#include "tests/support/program.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Between -1.1 and 1.1, and at least 0.1 from 0, where relu has a corner. */
static float draw(bm_rng *rng)
{
    float x = (float)(2 * bm_rng_uniform(rng) - 1);
    return x + (x < 0 ? -0.1f : 0.1f);
}

static float *draw_all(bm_rng *rng, size_t n)
{
    float *x = zeros(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = draw(rng);
    return x;
}

/* Of `size` numbers a frame; 0 in padding. */
static float *draw_frames(bm_rng *rng, const bm_extent *e, size_t size)
{
    size_t n = e->T * e->B * size;
    float *x = zeros(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = inside(e, i, size) ? draw(rng) : 0;
    return x;
}

static bm_layer *plan(const char *net, size_t n_in, size_t channels)
{
    bm_layer *l = NULL;
    size_t n = 0;

    assert_ok(bm_net_parse(net, &l, &n));
    l->be = cpu;
    for (size_t k = 0; k < n; k++) {
        l[k].n_in = k > 0 ? l[k - 1].n_out : n_in;
        l[k].channels_in = k > 0 ? l[k - 1].channels : channels;
        assert_ok(l[k].ops->plan(&l[k]));
    }
    bm_net_fuse(l, n);
    assert_int_equal(l->fused, n - 1);
    return l;
}

/* The frames of y; free them. */
static bm_extent shorten(const bm_layer *l, bm_extent in)
{
    int32_t *frames = zeros(in.B, sizeof *frames);
    size_t T = in.T;

    memcpy(frames, in.frames, in.B * sizeof *frames);
    for (const bm_layer *k = l; k <= l + l->fused; k++) {
        T = bm_windows(k->time, T);
        for (size_t b = 0; b < in.B; b++)
            frames[b] = (int32_t)bm_windows(k->time, (size_t)frames[b]);
    }
    return (bm_extent){T, in.B, frames};
}

static bm_tensor tensor(bm_extent e, size_t size, const float *host)
{
    return (bm_tensor){
        place(cpu, host, e.T * e.B * size), 3, {e.T, e.B, size, 1}};
}

rig rig_open(const char *net, bm_extent in, size_t n_in, size_t channels,
             uint64_t seed)
{
    bm_rng rng = bm_rng_make(seed, net, 0);
    bm_layer *l = plan(net, n_in, channels);
    bm_extent out = shorten(l, in);
    rig r = {.l = l, .pass = {in, out, true, 5}};
    size_t n_out = l[l->fused].n_out;
    size_t kept = l->ops->kept != NULL ? l->ops->kept(l, &r.pass) : 0;
    size_t work = l->ops->work != NULL ? l->ops->work(l, &r.pass) : 0;

    r.n_x = in.T * in.B * l->n_in;
    r.n_y = out.T * out.B * n_out;
    for (int i = 0; i < l->n_weights; i++) {
        const bm_weight *w = &l->weights[i];
        *(w->statistic ? &r.n_s : &r.n_w) +=
            w->dim[0] * w->dim[1] * w->dim[2] * w->dim[3];
    }
    r.x_host = draw_frames(&rng, &in, l->n_in);
    r.slope = draw_frames(&rng, &out, n_out);
    r.w_host = draw_all(&rng, r.n_w);
    r.s_host = draw_all(&rng, r.n_s);
    l->w = place(cpu, r.w_host, r.n_w);
    l->g = place(cpu, r.w_host, r.n_w); /* must be overwritten */
    l->s = place(cpu, r.s_host, r.n_s);
    l->gs = place(cpu, r.s_host, r.n_s);
    assert_ok(bm_alloc(cpu, kept, &l->kept));
    assert_ok(bm_alloc(cpu, work, &l->work));
    r.x = tensor(in, l->n_in, r.x_host);
    r.dx = tensor(in, l->n_in, r.x_host);
    r.y = tensor(out, n_out, r.slope);
    r.dy = tensor(out, n_out, r.slope);
    return r;
}

void rig_close(rig *r)
{
    float *all[] = {r->l->w,    r->l->g,   r->l->s,   r->l->gs,   r->l->kept,
                    r->l->work, r->x.data, r->y.data, r->dy.data, r->dx.data};

    FOR_EACH (i, all)
        bm_free(cpu, all[i]);
    free((void *)r->pass.out.frames);
    free(r->l);
    free(r->x_host);
    free(r->slope);
    free(r->w_host);
    free(r->s_host);
}

double rig_outcome(rig *r)
{
    double sum = 0;
    float *y = NULL;

    bm_put(cpu, r->x.data, r->x_host, r->n_x);
    bm_put(cpu, r->l->w, r->w_host, r->n_w);
    r->l->ops->forward(r->l, &r->pass, r->x, r->y);
    y = fetch(cpu, r->y.data, r->n_y);
    for (size_t i = 0; i < r->n_y; i++) {
        assert_true(isfinite(y[i]));
        if (inside(&r->pass.out, i, r->y.dim[2]))
            sum += (double)r->slope[i] * y[i];
        else
            assert_true(y[i] == 0);
    }
    free(y);
    return sum;
}

/* (L(v + step) - L(v - step)) / 2 step. */
static double slope_at(rig *r, float *value, float step)
{
    const float was = *value;
    double up = 0, down = 0;

    *value = was + step;
    up = rig_outcome(r);
    *value = was - step;
    down = rig_outcome(r);
    *value = was;
    return (up - down) / (2.0 * step);
}

/* The derivative by *value, a number of x or w, extrapolated from differences
 * with three steps (Romberg): the truncation error falls as h^6. With h^4 it is
 * 5e-4 where gates of an LSTM are steep. */
static double difference(rig *r, float *value)
{
    const float h = 0x1p-4f;
    double d[3];

    for (int k = 0; k < 3; k++)
        d[k] = slope_at(r, value, h / (float)(1 << k));
    for (int k = 0; k < 2; k++)
        d[k] = (4 * d[k + 1] - d[k]) / 3;
    return (16 * d[1] - d[0]) / 15;
}

void rig_check(rig *r, double tolerance)
{
    const size_t every = short_tests() ? 5 : 1;
    float *g = NULL, *dx = NULL;

    (void)rig_outcome(r);
    r->l->ops->backward(r->l, &r->pass, r->x, r->y, r->dy, r->dx);
    g = fetch(cpu, r->l->g, r->n_w);
    dx = fetch(cpu, r->dx.data, r->n_x);
    for (size_t i = 0; i < r->n_w; i += every)
        assert_true(near(g[i], difference(r, &r->w_host[i]), tolerance));
    for (size_t i = 0; i < r->n_x; i += every)
        assert_true(inside(&r->pass.in, i, r->l->n_in)
                        ? near(dx[i], difference(r, &r->x_host[i]), tolerance)
                        : dx[i] == 0);
    free(g);
    free(dx);
}

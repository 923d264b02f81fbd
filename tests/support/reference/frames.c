/* frames.c - see frames.h. */
#include "tests/support/reference/frames.h"

#include "core/rng.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Out of order, one empty, one of one frame, one of all. */
static const int32_t lengths[B] = {6, 0, 9, 1};

const char *frames_backend = "cpu";
bm_precision frames_precision = BM_FP32;

void frames_choose(int argc, char **argv)
{
    if (argc > 1)
        frames_backend = argv[1];
    if (argc > 2 && strstr(argv[2], "bf16") != NULL)
        frames_precision = BM_BF16;
    if (argc > 2 && strstr(argv[2], "cudnn") != NULL)
        setenv("BMUF_CONV", "cudnn", 1);
}

bm_backend *open_set(const char *name)
{
    bm_backend *be = NULL;

    if ((name[0] == '\0') != (strcmp(frames_backend, "cpu") != 0))
        return NULL;
    setenv("BMUF_ISA", name, 1);
    if (bm_backend_open(&be, frames_backend, 0) != BM_OK)
        be = NULL;
    unsetenv("BMUF_ISA");
    if (be != NULL)
        assert_ok(bm_backend_use(be, 1, frames_precision));
    return be;
}

/* A normal number, truncated to bf16. */
static float draw_one(bm_rng *rng)
{
    float x = (float)bm_rng_normal(rng);
    uint32_t bits = 0;

    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

size_t frames_count(const frames *f)
{
    return f->e.T * B * f->n;
}

frames *frames_draw(bm_window time, size_t n, uint64_t seed)
{
    bm_rng rng = bm_rng_make(seed, "image", 0);
    frames *f = calloc(1, sizeof *f);

    assert_non_null(f);
    for (int b = 0; b < B; b++)
        f->lengths[b] = (int32_t)bm_windows(time, (size_t)lengths[b]);
    f->e = (bm_extent){bm_windows(time, T), B, f->lengths};
    f->n = n;
    f->x = malloc((frames_count(f) + 1) * sizeof *f->x);
    assert_non_null(f->x);
    for (size_t i = 0; i < frames_count(f); i++)
        f->x[i] = inside(&f->e, i, n) ? draw_one(&rng) : NAN;
    return f;
}

void frames_free(frames *f)
{
    free(f->x);
    free(f);
}

float *draw_weights(size_t n)
{
    bm_rng rng = bm_rng_make(3, "weights", 0);
    float *w = malloc((n + 1) * sizeof *w);

    assert_non_null(w);
    for (size_t i = 0; i < n; i++)
        w[i] = draw_one(&rng);
    return w;
}

double *doubles(size_t n)
{
    double *x = calloc(n + 1, sizeof *x);

    assert_non_null(x);
    return x;
}

void check_frames(bm_backend *be, const frames *f, const float *x,
                  const double *expected, double tolerance)
{
    float *got = fetch(be, x, frames_count(f));

    for (size_t i = 0; i < frames_count(f); i++)
        assert_true(inside(&f->e, i, f->n)
                        ? near(got[i], expected[i], tolerance)
                        : got[i] == 0);
    free(got);
}

void check_numbers(bm_backend *be, size_t n, const float *x,
                   const double *expected, double tolerance)
{
    float *got = fetch(be, x, n);

    for (size_t i = 0; i < n; i++)
        assert_true(near(got[i], expected[i], tolerance));
    free(got);
}

/* n products of about one add up to about sqrt(n), and every addition rounds by
 * half an ulp of that. Products of bf16 are exact. */
double rounding(size_t n)
{
    return fmax(1e-5, 1.5e-7 * (double)n);
}

double stored(double tolerance)
{
    return frames_precision == BM_BF16 ? fmax(0x1p-8, tolerance) : tolerance;
}

double learned(double tolerance)
{
    const char *engine = getenv("BMUF_CONV");

    return engine != NULL && strcmp(engine, "cudnn") == 0 ? stored(tolerance)
                                                          : tolerance;
}

/*
 * The gradient of a mini-batch has the same bits in a model that has seen
 * mini-batches of other lengths, whose scratch had another layout, and in a new
 * one. On the backend that the first argument names, in bf16 if that is the
 * second.
 */
#include "core/rng.h"
#include "models/model.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <stdlib.h>
#include <string.h>

enum { D = 8, C = 4, B = 3, LONGEST = 45 };

static const char *const nets[] = {
    "linear:8 branches( linear:4 tanh | batchnorm ) linear:6 tanh linear",
    "linear:8 branches( linear:4 | layernorm ) linear:6 tanh linear",
    "linear:8 tanh branches( linear:4 | linear:6 layernorm ) batchnorm linear",
    "linear:8 batchnorm branches( | linear:4 ) linear",
    "linear:8 batchnorm splice:-1,1 layernorm stack:2 linear:4 batchnorm "
    "subsample:2 linear",
    "conv:2,3x3 instancenorm relu branches( conv:2,1x1 | batchnorm ) linear",
    "conv:2,3x3 relu pool:2x2 branches( conv:2,1x1 | pool:3x3,stride:1x1 ) "
    "linear",
    "linear:8 residual( layernorm linear:8 ) branches( layernorm | layernorm | "
    "layernorm ) linear",
    "linear:8 branches( linear:4 | depthwise:3 | swish ) glu linear",
    "linear:8 branches( attention:2 | lstm:5 ) layernorm linear",
    "branches( blstm:5 | bgru:4 | linear:3 sigmoid ) batchnorm linear",
};

/* The gradient of a mini-batch of T frames; free. *n: weights. */
static float *gradient(bm_model *m, size_t T, size_t *n)
{
    static float x[LONGEST * B * D];
    static const int32_t counts[B] = {1, 1, 1}, classes[B] = {1, 2, 3};
    int32_t frames[B] = {(int32_t)T, (int32_t)T - 3, (int32_t)T - 1};
    bm_rng rng = bm_rng_make(3, "x", T);
    bm_params *p = bm_model_params(m);
    bm_batch b = {.extent = {T, B, frames}, .targets = {classes, counts}};
    bm_score score;
    float *g = NULL;

    memset(x, 0, sizeof x);
    for (size_t t = 0; t < T; t++)
        for (size_t k = 0; k < B; k++)
            for (size_t d = 0; d < D && t < (size_t)frames[k]; d++)
                x[(t * B + k) * D + d] = (float)bm_rng_normal(&rng);
    b.x = (bm_tensor){place(chosen, x, T * B * D), 3, {T, B, D, 1}};
    bm_model_gradient(m, &b, 1, 0);
    *n = p->n;
    g = fetch(chosen, p->g, p->n);
    assert_ok(bm_model_score(m, 0, &score));
    bm_free(chosen, b.x.data);
    return g;
}

static void test_gradients_do_not_depend_on_earlier_batches(void **state)
{
    static const size_t before[] = {LONGEST, 14, 30, 9};

    (void)state;
    FOR_EACH (i, nets) {
        bm_model_settings set = {nets[i], "ctc", "skip"};
        bm_model_shape shape = {D, C, 1};
        bm_model *used = NULL, *fresh = NULL;
        float *a = NULL, *b = NULL;
        size_t n = 0;

        assert_ok(bm_model_new(&used, &set, &shape, chosen, 7));
        assert_ok(bm_model_new(&fresh, &set, &shape, chosen, 7));
        FOR_EACH (k, before)
            free(gradient(used, before[k], &n));
        a = gradient(used, 20, &n);
        b = gradient(fresh, 20, &n);
        if (memcmp(a, b, n * sizeof *a) != 0)
            fail_msg("%s: other bits after other batches", nets[i]);
        free(a);
        free(b);
        bm_model_free(used);
        bm_model_free(fresh);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_do_not_depend_on_earlier_batches),
    };

    return RUN_GROUP_ON(argc, argv, "history", tests);
}

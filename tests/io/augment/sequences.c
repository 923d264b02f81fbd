#include "tests/io/augment/sequences.h"

#include "core/rng.h"
#include "tests/support/support.h"

#include <stdio.h>

const char image[] = "{\"kind\": \"images\", \"height\": 9}";

const bm_fit any = {0};

bm_augment_settings settings_of(const char *const *set, size_t n)
{
    static bm_config *kept; /* the settings borrow a text of the last one */
    bm_augment_settings s;

    bm_config_free(kept);
    assert_ok(bm_config_new(&kept));
    for (size_t i = 0; i < n; i++) {
        char text[100];

        snprintf(text, sizeof text, "augment.%s", set[i]);
        assert_ok(bm_config_set(kept, text));
    }
    assert_ok(bm_config_fill(kept, "augment", bm_augment_options, &s));
    return s;
}

float *augmented(const bm_augment_settings *s, const char *description,
                 const float *x, size_t T, size_t D, uint64_t key,
                 size_t *frames)
{
    bm_layout l = bm_layout_of(description, D);
    bm_augmented in = {x, T, NULL, 0};
    bm_augmenter *a = NULL;
    float *y = NULL;

    assert_ok(bm_augmenter_new(&a, s, &l, false));
    *frames = bm_augment_frames(a, key, &in, &any);
    y = zeros(*frames * D, sizeof *y);
    assert_ok(bm_augment(a, key, &in, *frames, y, NULL));
    bm_augmenter_free(a);
    return y;
}

float *some(size_t n)
{
    float *x = zeros(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)uniform(i);
    return x;
}

uint64_t below(stream *s, uint64_t n)
{
    bm_rng rng = {s->key, s->k};
    uint64_t x = bm_rng_below(&rng, n);

    s->k = rng.next;
    return x;
}

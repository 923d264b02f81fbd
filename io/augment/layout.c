#include "io/augment/layout.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

enum { PITCH = 3 }; /* columns of io/features/pitch.h */

/* A setting of [features], at least `least`. */
static size_t setting(const json_t *all, const char *key, json_int_t least)
{
    json_int_t n = json_integer_value(json_object_get(all, key));

    return (size_t)(n > least ? n : least);
}

static bm_layout read(const json_t *all, size_t features)
{
    const char *kind = json_string_value(json_object_get(all, "kind"));
    size_t deltas = setting(all, "deltas", 0), stack = setting(all, "stack", 1);
    bm_layout l = {.features = features, .orders = deltas % 3 + 1};

    if (json_object_get(all, "mels") != NULL) {
        bool cepstra = setting(all, "cepstra", 0) > 0;

        l.kind = cepstra ? BM_FRAMES_CEPSTRA : BM_FRAMES_SPEECH;
        l.bands = setting(all, cepstra ? "cepstra" : "mels", 1);
        l.extra = json_is_true(json_object_get(all, "pitch")) ? PITCH : 0;
    } else if (json_object_get(all, "height") != NULL) {
        l.kind = BM_FRAMES_IMAGE;
        l.bands = setting(all, "height", 1);
    } else if (kind != NULL && strcmp(kind, "idx") == 0) {
        l.kind = BM_FRAMES_IMAGE;
        l.bands = features;
    } else if (stack <= features) {
        l.bands = features / (stack * l.orders);
    }
    return l;
}

bm_layout bm_layout_of(const char *description, size_t features)
{
    json_t *all = json_loads(description, 0, NULL);
    bm_layout l = read(all, features);

    json_decref(all);
    if (l.bands == 0 || features % bm_layout_stride(&l) != 0 ||
        features / bm_layout_stride(&l) % l.orders != 0)
        l = (bm_layout){.features = features, .bands = features, .orders = 1};
    l.columns = l.bands > 0 ? features / bm_layout_stride(&l) : 0;
    return l;
}

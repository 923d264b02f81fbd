#include "compute/cpu/cpu_held.h"

#include <stdlib.h>
#include <string.h>

struct bm_held_form {
    const float *b;
    size_t k, n;
    bool bytes;
    void *packed;
};

void bm_held_clear(bm_held *h)
{
    for (size_t i = 0; i < h->n_forms; i++)
        free(h->forms[i].packed);
    free(h->forms);
    *h = (bm_held){0};
}

static bool same(const bm_held_form *a, const bm_held_form *b)
{
    return a->b == b->b && a->k == b->k && a->n == b->n && a->bytes == b->bytes;
}

static bool pack(const bm_isa *isa, bm_held_form *f)
{
    enum { LINE = 64 };
    size_t size = f->bytes ? bm_packed_bytes(f->k, f->n)
                           : bm_packed(f->k, f->n) * sizeof(float);

    f->packed = aligned_alloc(LINE, size / LINE * LINE + LINE);
    if (f->packed == NULL)
        return false;
    if (f->bytes)
        isa->bytes->pack(f->k, f->n, f->b, f->packed);
    else
        isa->product->pack(true, f->k, f->n, f->b, f->packed);
    return true;
}

const void *bm_held_packed(bm_held *h, const bm_isa *isa, bool bytes, size_t k,
                           size_t n, const float *b)
{
    bm_held_form f = {b, k, n, bytes, NULL}, *more = NULL;

    if (h->x == NULL || b < h->x || b + n * k > h->x + h->n)
        return NULL;
    for (size_t i = 0; i < h->n_forms; i++)
        if (same(&h->forms[i], &f))
            return h->forms[i].packed;
    more = realloc(h->forms, (h->n_forms + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    h->forms = more;
    if (!pack(isa, &f))
        return NULL;
    h->forms[h->n_forms++] = f;
    return f.packed;
}

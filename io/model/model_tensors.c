#include "io/model/model_tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static size_t tensors_of(const bm_params *params)
{
    return params->n_segments > 0 ? params->n_segments : 1;
}

/* Tensor i, and its offset in the vector. */
static bm_status tensor_of(const bm_params *params, const char *prefix,
                           size_t i, bm_st_tensor *out, size_t *offset)
{
    bm_st_tensor t = {.dtype = BM_F32, .rank = 1, .dim = {params->n}};
    const bm_segment *s = params->n_segments > 0 ? &params->segments[i] : NULL;
    int length = 0;

    *offset = 0;
    if (s == NULL) {
        length = snprintf(t.name, sizeof t.name, "model");
    } else {
        *offset = s->offset;
        t.rank = s->rank;
        for (int k = 0; k < s->rank; k++)
            t.dim[k] = s->dim[k];
        length = snprintf(t.name, sizeof t.name, "%s%s", prefix, s->name);
    }
    if (length < 0 || (size_t)length >= sizeof t.name)
        return BM_FAIL(
            BM_ERR_ARG,
            "%.60s...: the name is too long for a file; the limit is "
            "%zu bytes",
            t.name, sizeof t.name - 1);
    t.count = 1;
    for (int k = 0; k < t.rank; k++)
        t.count *= t.dim[k];
    *out = t;
    return BM_OK;
}

bm_status bm_model_declare(bm_st_writer *w, const bm_params *params,
                           const char *prefix)
{
    size_t at = 0, offset = 0;

    for (size_t i = 0; i < tensors_of(params); i++) {
        bm_st_tensor t = {0};

        BM_TRY(tensor_of(params, prefix, i, &t, &offset));
        BM_ASSERT(offset == at); /* end to end, from 0 to n */
        at += t.count;
        BM_TRY(bm_st_declare(w, &t));
    }
    BM_ASSERT(at == params->n);
    return BM_OK;
}

/* "[320, 40]" */
static const char *shape(const bm_st_tensor *t, char *out, size_t room)
{
    size_t n = (size_t)snprintf(out, room, "[");

    for (int k = 0; k < t->rank && n < room; k++)
        n += (size_t)snprintf(out + n, room - n, "%s%" PRIu64,
                              k > 0 ? ", " : "", t->dim[k]);
    if (n < room)
        snprintf(out + n, room - n, "]");
    return out;
}

static bool same_shape(const bm_st_tensor *a, const bm_st_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

bm_status bm_model_match(const bm_st_file *f, const char *path,
                         const bm_params *params, const char *prefix)
{
    char has[200], needs[200];
    size_t offset = 0;

    for (size_t i = 0; i < tensors_of(params); i++) {
        const bm_st_tensor *found = NULL;
        bm_st_tensor t = {0};

        BM_TRY(tensor_of(params, prefix, i, &t, &offset));
        found = bm_st_find(f, t.name);
        if (found == NULL)
            return BM_FAIL(
                BM_ERR_FORMAT,
                "%s: tensor %s is missing: the file has another model", path,
                t.name);
        if (!same_shape(found, &t))
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: tensor %s is %s, but the network has %s of F32",
                           path, t.name, shape(found, has, sizeof has),
                           shape(&t, needs, sizeof needs));
    }
    return BM_OK;
}

bool bm_model_has(const bm_params *params, const char *prefix, const char *name)
{
    size_t n = strlen(prefix);

    if (params->n_segments == 0)
        return strcmp(name, "model") == 0;
    if (strncmp(name, prefix, n) != 0)
        return false;
    for (size_t i = 0; i < params->n_segments; i++)
        if (strcmp(params->segments[i].name, name + n) == 0)
            return true;
    return false;
}

bm_status bm_model_read(bm_st_file *f, const bm_params *params,
                        const char *prefix, size_t offset, size_t count,
                        float *x)
{
    size_t end = offset + count, start = 0;

    for (size_t i = 0; i < tensors_of(params); i++) {
        bm_st_tensor t = {0};
        size_t from = 0, to = 0;

        BM_TRY(tensor_of(params, prefix, i, &t, &start));
        from = start > offset ? start : offset;
        to = start + t.count < end ? start + t.count : end;
        if (from < to)
            BM_TRY(bm_st_read(f, bm_st_find(f, t.name), from - start, to - from,
                              x + (from - offset)));
    }
    return BM_OK;
}

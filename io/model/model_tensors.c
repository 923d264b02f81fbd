#include "io/model/model_tensors.h"

#include "core/finite.h"
#include "io/shard/store.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
    return a->rank == b->rank &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

/* ---- fewer bits ---------------------------------------------------------- */

/* Vectors, such as biases, are few and stay as they are. */
static bool is_matrix(const bm_st_tensor *t)
{
    return t->rank >= 2 && t->count > 0;
}

static size_t row_of(const bm_st_tensor *t)
{
    return (size_t)t->dim[t->rank - 1];
}

/* The tensor of the scales of t's rows. */
static bm_status scale_of(const bm_st_tensor *t, bm_st_tensor *out)
{
    bm_st_tensor s = {.dtype = BM_F32, .rank = 1};
    int n = snprintf(s.name, sizeof s.name, "%s.scale", t->name);

    if (n < 0 || (size_t)n >= sizeof s.name)
        return BM_FAIL(BM_ERR_ARG, "%.60s...: the name is too long for a file",
                       t->name);
    s.dim[0] = s.count = t->count / row_of(t);
    *out = s;
    return BM_OK;
}

/* The larger types come first in a file. */
static bm_status declare_narrow(bm_st_writer *w, const bm_params *params,
                                bm_weight_type type)
{
    size_t offset = 0;

    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < tensors_of(params); i++) {
            bm_st_tensor t = {0}, scale = {0};

            BM_TRY(tensor_of(params, "", i, &t, &offset));
            if (!is_matrix(&t)) {
                if (turn == 0)
                    BM_TRY(bm_st_declare(w, &t));
                continue;
            }
            BM_TRY(scale_of(&t, &scale));
            if (turn == 0 && type == BM_WEIGHTS_INT8)
                BM_TRY(bm_st_declare(w, &scale));
            t.dtype = type == BM_WEIGHTS_INT8 ? BM_I8 : BM_F16;
            if (turn == 1)
                BM_TRY(bm_st_declare(w, &t));
        }
    return BM_OK;
}

/* The step of a row: its largest number becomes 127. */
static float step_of(const float *x, size_t n)
{
    float most = 0;

    for (size_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most / 127;
}

/* To the nearest step; q may be x. */
static void round_row(const float *x, size_t n, float step, int8_t *q)
{
    for (size_t i = 0; i < n; i++) {
        float k = step > 0 ? nearbyintf(x[i] / step) : 0;

        q[i] = (int8_t)(k > 127 ? 127 : k < -127 ? -127 : k);
    }
}

/* A matrix as bytes or halves, into room for as many. */
static bm_status pack_matrix(const bm_st_tensor *t, bm_weight_type type,
                             const float *x, void *room)
{
    size_t n = t->count, row = row_of(t), bad = 0;

    if (type == BM_WEIGHTS_FP16) {
        bad = bm_store_pack(BM_STORE_F16, x, n, 0, 0, room);
        if (bad < n)
            return BM_FAIL(BM_ERR_NUMERIC,
                           "element %zu of %s is %g: too large for 16 bits; "
                           "choose int8",
                           bad, t->name, (double)x[bad]);
        return BM_OK;
    }
    for (size_t i = 0; i < n; i += row)
        round_row(x + i, row, step_of(x + i, row), (int8_t *)room + i);
    return BM_OK;
}

/* y <- what the reading of matrix x, packed into q, gives. */
static void unpack_matrix(const bm_st_tensor *t, bm_weight_type type,
                          const float *x, const void *q, float *y)
{
    size_t n = t->count, row = row_of(t);

    if (type == BM_WEIGHTS_FP16) {
        bm_store_unpack(BM_STORE_F16, q, y, 1, n, NULL, NULL);
        return;
    }
    for (size_t i = 0; i < n; i += row) {
        float step = step_of(x + i, row);

        for (size_t k = i; k < i + row; k++)
            y[k] = step * (float)((const int8_t *)q)[k];
    }
}

/* *room <- memory for the narrow weights of a matrix, which the caller frees, also
 * after a failure. */
static bm_status begin_narrow(const bm_params *params, const float *model,
                              void **room)
{
    *room = malloc(params->n * sizeof(uint16_t) + 1);
    if (*room == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu weights", params->n);
    if (!bm_all_finite(model, params->n))
        return BM_FAIL(BM_ERR_NUMERIC, "a weight is NaN or infinite");
    return BM_OK;
}

bm_status bm_model_narrow(const bm_params *params, bm_weight_type type,
                          const float *model, float *out)
{
    void *room = NULL;
    size_t at = 0;
    bm_status status = BM_OK;

    BM_TRY_DONE(begin_narrow(params, model, &room));
    for (size_t i = 0; i < tensors_of(params); i++) {
        bm_st_tensor t = {0};

        BM_TRY_DONE(tensor_of(params, "", i, &t, &at));
        if (!is_matrix(&t)) {
            memcpy(out + at, model + at, t.count * sizeof *out);
            continue;
        }
        BM_TRY_DONE(pack_matrix(&t, type, model + at, room));
        unpack_matrix(&t, type, model + at, room, out + at);
    }
done:
    free(room);
    return status;
}

static bm_status write_matrix(bm_st_writer *w, const bm_st_tensor *t,
                              bm_weight_type type, const float *x, void *room)
{
    BM_TRY(pack_matrix(t, type, x, room));
    return bm_st_write(
        w, room, t->count * (type == BM_WEIGHTS_FP16 ? sizeof(uint16_t) : 1));
}

static bm_status write_scales(bm_st_writer *w, const bm_st_tensor *t,
                              const float *x)
{
    size_t row = row_of(t);

    for (size_t i = 0; i < t->count; i += row) {
        float step = step_of(x + i, row);

        BM_TRY(bm_st_write(w, &step, sizeof step));
    }
    return BM_OK;
}

bm_status bm_model_write_narrow(bm_st_writer *w, const bm_params *params,
                                bm_weight_type type, const float *model)
{
    void *room = NULL;
    size_t at = 0;
    bm_status status = BM_OK;

    BM_TRY_DONE(begin_narrow(params, model, &room));
    BM_TRY_DONE(declare_narrow(w, params, type));
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < tensors_of(params); i++) {
            bm_st_tensor t = {0};

            BM_TRY_DONE(tensor_of(params, "", i, &t, &at));
            if (turn == 0 && !is_matrix(&t))
                BM_TRY_DONE(
                    bm_st_write(w, model + at, t.count * sizeof *model));
            else if (turn == 0 && type == BM_WEIGHTS_INT8)
                BM_TRY_DONE(write_scales(w, &t, model + at));
            else if (turn == 1 && is_matrix(&t))
                BM_TRY_DONE(write_matrix(w, &t, type, model + at, room));
        }
done:
    free(room);
    return status;
}

/* ---- matching ------------------------------------------------------------ */

static bm_status match_type(const bm_st_file *f, const char *path,
                            const bm_st_tensor *found)
{
    bm_st_tensor scale = {0};
    const bm_st_tensor *other = NULL;

    if (found->dtype == BM_F32 || (found->dtype == BM_F16 && is_matrix(found)))
        return BM_OK;
    if (found->dtype != BM_I8 || !is_matrix(found))
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s: tensor %s is not of floats; a matrix may also be of "
            "F16 or I8",
            path, found->name);
    BM_TRY(scale_of(found, &scale));
    other = bm_st_find(f, scale.name);
    if (other == NULL || other->dtype != BM_F32 || !same_shape(other, &scale))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: tensor %s, a float for each row of %s, is missing "
                       "or has another shape",
                       path, scale.name, found->name);
    return BM_OK;
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
                           "%s: tensor %s is %s, but the network has %s", path,
                           t.name, shape(found, has, sizeof has),
                           shape(&t, needs, sizeof needs));
        BM_TRY(match_type(f, path, found));
    }
    return BM_OK;
}

/* Is it "<name>.scale" of a matrix of bytes? */
static bool is_scale(const bm_st_file *f, const char *name)
{
    static const char ending[] = ".scale";
    size_t n = strlen(name), end = sizeof ending - 1;
    char of[BM_ST_NAME];
    const bm_st_tensor *t = NULL;

    if (n <= end || n >= sizeof of || strcmp(name + n - end, ending) != 0)
        return false;
    memcpy(of, name, n - end);
    of[n - end] = '\0';
    t = bm_st_find(f, of);
    return t != NULL && t->dtype == BM_I8;
}

bool bm_model_has(const bm_st_file *f, const bm_params *params,
                  const char *prefix, const char *name)
{
    size_t n = strlen(prefix);

    if (params->n_segments == 0)
        return strcmp(name, "model") == 0;
    if (strncmp(name, prefix, n) != 0)
        return false;
    for (size_t i = 0; i < params->n_segments; i++)
        if (strcmp(params->segments[i].name, name + n) == 0)
            return true;
    return is_scale(f, name);
}

/* ---- reading ------------------------------------------------------------- */

static bm_status read_halves(bm_st_file *f, const bm_st_tensor *t, size_t from,
                             size_t n, float *x)
{
    uint16_t some[1024];

    for (size_t at = 0; at < n; at += sizeof some / sizeof *some) {
        size_t left = n - at, room = sizeof some / sizeof *some;
        size_t k = left < room ? left : room;

        BM_TRY(bm_st_read(f, t, from + at, k, some));
        bm_store_unpack(BM_STORE_F16, some, x + at, 1, k, NULL, NULL);
    }
    return BM_OK;
}

/* Row by row, with the scales of the rows. */
static bm_status read_bytes(bm_st_file *f, const bm_st_tensor *t, size_t from,
                            size_t n, float *x)
{
    const size_t row = row_of(t), end = from + n;
    bm_st_tensor scale = {0};
    int8_t *q = malloc(row);
    bm_status status = BM_OK;

    if (q == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu weights", row);
    BM_TRY_DONE(scale_of(t, &scale));
    while (from < end) {
        size_t left = row - from % row,
               k = end - from < left ? end - from : left;
        float step = 0;

        BM_TRY_DONE(
            bm_st_read(f, bm_st_find(f, scale.name), from / row, 1, &step));
        BM_TRY_DONE(bm_st_read(f, t, from, k, q));
        for (size_t i = 0; i < k; i++)
            x[i] = step * (float)q[i];
        if (!bm_all_finite(x, k))
            BM_FAIL_DONE(BM_ERR_FORMAT, "%s: a scale is too large", t->name);
        from += k;
        x += k;
    }
done:
    free(q);
    return status;
}

static bm_status read_part(bm_st_file *f, const bm_st_tensor *t, size_t from,
                           size_t n, float *x)
{
    return t->dtype == BM_F32   ? bm_st_read(f, t, from, n, x)
           : t->dtype == BM_F16 ? read_halves(f, t, from, n, x)
                                : read_bytes(f, t, from, n, x);
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
            BM_TRY(read_part(f, bm_st_find(f, t.name), from - start, to - from,
                             x + (from - offset)));
    }
    return BM_OK;
}

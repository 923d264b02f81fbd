#include "bmuf/exchange/coded_device.h"

#include <stdlib.h>
#include <string.h>

enum { A_DOUBLE = sizeof(double) / sizeof(float) };

struct bm_coded_device {
    bm_backend *be; /* borrowed */
    bm_pieces pieces;
    int first, last;
    float **residual;  /* [last - first][n] */
    float *common;     /* [n] */
    float *change;     /* [n] */
    float *code;       /* on the device */
    float *host;       /* the code on the host */
    float *non_finite; /* [2] */
    float *square;     /* one double */
};

static bm_status prepare(bm_coded_device *d, const bm_code_plan *plan,
                         bm_code_kind kind)
{
    size_t hosted = (size_t)(d->last - d->first), n = plan->n, bytes = 0;

    BM_TRY(bm_device_code_cut(d->be, kind, plan->n_pieces, plan->start,
                              plan->byte, &d->pieces));
    bytes = bm_device_code_floats(&d->pieces) * sizeof *d->host;
    BM_TRY(bm_alloc(d->be, n, &d->common));
    BM_TRY(bm_alloc(d->be, n, &d->change));
    BM_TRY(bm_alloc(d->be, bm_device_code_floats(&d->pieces), &d->code));
    BM_TRY(bm_alloc(d->be, 2, &d->non_finite));
    BM_TRY(bm_alloc(d->be, A_DOUBLE, &d->square));
    d->host = calloc(1, bytes + 1);
    d->residual = (float **)calloc(hosted + 1, sizeof *d->residual);
    if (d->host == NULL || d->residual == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for codes of %zu floats", n);
    bm_pin(d->be, d->host, bytes);
    for (size_t i = 0; i < hosted; i++)
        BM_TRY(bm_alloc_idle(d->be, n, &d->residual[i]));
    return BM_OK;
}

bm_status bm_coded_device_open(bm_coded_device **out, bm_backend *be,
                               const bm_code_plan *plan, bm_code_kind kind,
                               int first, int last)
{
    bm_coded_device *d = calloc(1, sizeof *d);
    bm_status status = BM_OK;

    if (d == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for codes");
    d->be = be;
    d->first = first;
    d->last = last;
    BM_TRY_DONE(prepare(d, plan, kind));
    *out = d;
    d = NULL;
done:
    bm_coded_device_close(d);
    return status;
}

void bm_coded_device_close(bm_coded_device *d)
{
    if (d == NULL)
        return;
    for (int i = 0; d->residual != NULL && i < d->last - d->first; i++)
        bm_free(d->be, d->residual[i]);
    bm_unpin(d->be, d->host);
    bm_free(d->be, d->pieces.edges);
    bm_free(d->be, d->common);
    bm_free(d->be, d->change);
    bm_free(d->be, d->code);
    bm_free(d->be, d->non_finite);
    bm_free(d->be, d->square);
    free((void *)d->residual);
    free(d->host);
    free(d);
}

bm_status bm_coded_device_encode(bm_coded_device *d, const bm_coded_vector *v,
                                 double *square, const void **code, bool *good)
{
    float *residual = bm_coded_device_residual(d, v->worker);
    size_t n = d->pieces.elements;
    float non_finite[2] = {0};

    bm_difference(d->be, n, v->x, v->from_common ? d->common : NULL, d->change,
                  d->non_finite);
    bm_squares(d->be, v->measured, d->change, (double *)(void *)d->square);
    bm_device_code_carry(d->be, &d->pieces, residual, d->change,
                         d->non_finite + 1);
    bm_get(d->be, non_finite, d->non_finite, 2);
    bm_get(d->be, (float *)(void *)square, d->square, A_DOUBLE);
    BM_TRY(bm_sync(d->be));
    *good = non_finite[0] == 0 && non_finite[1] == 0;
    if (!*good)
        return BM_OK;
    bm_device_code_encode(d->be, &d->pieces, d->change, residual, d->code);
    bm_get(d->be, d->host, d->code, bm_device_code_floats(&d->pieces));
    *code = d->host;
    return bm_sync(d->be);
}

void bm_coded_device_decode(bm_coded_device *d, const void *code, bool adds)
{
    memcpy(d->host, code, d->pieces.bytes);
    bm_put(d->be, d->code, d->host, bm_device_code_floats(&d->pieces));
    bm_device_code_decode(d->be, &d->pieces, d->code, adds, d->common);
}

void bm_coded_device_replace(bm_coded_device *d, const float *x)
{
    bm_put(d->be, d->common, x, d->pieces.elements);
}

void bm_coded_device_fetch(bm_coded_device *d, float *x)
{
    bm_axpby(d->be, d->pieces.elements, 1, d->common, 0, x);
}

float *bm_coded_device_residual(const bm_coded_device *d, int worker)
{
    return d->residual[worker - d->first];
}

/* dispatch.c - the body of bm_<name>: it calls the backend's own, unless
 * something has failed before or the backend lacks the operation. */
#include "compute/backend_ops.h"

#include <string.h>

/* Whether the backend has this operation; if not, the next bm_sync fails. */
static bool offers(bm_backend *be, bool has, const char *operation)
{
    if (!has && be->failed == BM_OK)
        bm_remember(be, BM_FAIL(BM_ERR_UNSUPPORTED,
                                "%s is not available on backend %s", operation,
                                be->ops->name));
    return has;
}

static bool multiplies(bool trans_a, bool trans_b, bm_tensor a, bm_tensor b,
                       bm_tensor c)
{
    return a.rank == 2 && b.rank == 2 && c.rank == 2 &&
           a.dim[trans_a ? 1 : 0] == c.dim[0] &&
           b.dim[trans_b ? 0 : 1] == c.dim[1] &&
           a.dim[trans_a ? 0 : 1] == b.dim[trans_b ? 1 : 0];
}

static bool fits(bm_extent e, bm_tensor x)
{
    return x.rank == 3 && x.dim[0] == e.T && x.dim[1] == e.B;
}

static bool same_shape(bm_tensor x, bm_tensor y)
{
    return x.rank == y.rank && memcmp(x.dim, y.dim, sizeof x.dim) == 0;
}

static bool maps(bm_window time, bm_extent in, bm_extent out)
{
    return in.B == out.B && bm_windows(time, in.T) == out.T;
}

static bool recurs(const bm_recurrent *l)
{
    return (l->directions == 1 || l->directions == 2) &&
           (l->n_projected == 0 ||
            (l->cell == BM_LSTM && l->n_projected < l->n_hidden));
}

static bool projects(const bm_recurrent *l, const float *dwr)
{
    return recurs(l) && (dwr != NULL || l->n_projected == 0);
}

static bool starts_inside(bm_window w)
{
    return w.before < w.size;
}

static bool dilates(bm_window w, size_t dilation)
{
    return dilation > 0 && (w.size - 1) % dilation == 0;
}

static bool convolves(const bm_conv *c, bm_extent in, bm_extent out)
{
    return maps(c->time, in, out) && starts_inside(c->time) &&
           starts_inside(c->rows) && dilates(c->time, c->dilation[0]) &&
           dilates(c->rows, c->dilation[1]);
}

static bool covers(bm_window w)
{
    return starts_inside(w) && w.after < w.size;
}

#define BM_OPERATION(name, requirement, parameters, arguments)                 \
    void bm_##name parameters                                                  \
    {                                                                          \
        BM_ASSERT(requirement);                                                \
        BM_ASSERT(bm_used_here(be));                                           \
        be->turn++;                                                            \
        if (offers(be, be->ops->name != NULL, #name) && be->failed == BM_OK)   \
            be->ops->name arguments;                                           \
    }
#define BM_SIZE_OPERATION(name, requirement, parameters, arguments)            \
    size_t bm_##name parameters                                                \
    {                                                                          \
        BM_ASSERT(requirement);                                                \
        return offers(be, be->ops->name != NULL, #name)                        \
                   ? be->ops->name arguments                                   \
                   : 0;                                                        \
    }
#include "compute/operations.h"

/* onednn.c - see onednn.h. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "compute/cpu/libraries/onednn.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 512, TYPICAL_ROWS = 16 };

/* ---- differences between the versions ----------------------------------- */

/* A memory descriptor is a struct in version 2, a handle in version 3. */
#if DNNL_VERSION_MAJOR < 3
#define MD(md) (&(md))
typedef const dnnl_memory_desc_t *described;

static void free_descriptor(dnnl_memory_desc_t md)
{
    (void)md;
}

static dnnl_status_t describe(dnnl_memory_desc_t *md, const dnnl_dims_t dims,
                              dnnl_data_type_t type, const dnnl_dims_t strides)
{
    return strides != NULL
               ? dnnl_memory_desc_init_by_strides(md, 2, dims, type, strides)
               : dnnl_memory_desc_init_by_tag(md, 2, dims, type,
                                              dnnl_format_tag_any);
}

static dnnl_status_t copy_described(dnnl_memory_desc_t *md, described from)
{
    *md = *from;
    return dnnl_success;
}

static dnnl_status_t add_to(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1);
}

static dnnl_status_t plan(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                          dnnl_memory_desc_t a, dnnl_memory_desc_t b,
                          dnnl_memory_desc_t c, dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t op;
    dnnl_status_t s = dnnl_matmul_desc_init(&op, &a, &b, NULL, &c);

    return s != dnnl_success
               ? s
               : dnnl_primitive_desc_create(out, &op, attr, engine, NULL);
}
#else
#define MD(md) (md)
typedef const_dnnl_memory_desc_t described;

static void free_descriptor(dnnl_memory_desc_t md)
{
    if (md != NULL)
        dnnl_memory_desc_destroy(md);
}

static dnnl_status_t describe(dnnl_memory_desc_t *md, const dnnl_dims_t dims,
                              dnnl_data_type_t type, const dnnl_dims_t strides)
{
    return strides != NULL ? dnnl_memory_desc_create_with_strides(md, 2, dims,
                                                                  type, strides)
                           : dnnl_memory_desc_create_with_tag(
                                 md, 2, dims, type, dnnl_format_tag_any);
}

static dnnl_status_t copy_described(dnnl_memory_desc_t *md, described from)
{
    return dnnl_memory_desc_clone(md, from);
}

static dnnl_status_t add_to(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
}

static dnnl_status_t plan(dnnl_primitive_desc_t *out, dnnl_engine_t engine,
                          dnnl_memory_desc_t a, dnnl_memory_desc_t b,
                          dnnl_memory_desc_t c, dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(out, engine, a, b, NULL, c, attr);
}
#endif

/* ---- fp32 --------------------------------------------------------------- */

bool bm_onednn_has(void)
{
    return true;
}

const char *bm_onednn_version(void)
{
    static _Thread_local char text[64];
    const dnnl_version_t *v = dnnl_version();
    const char *isa = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());

    snprintf(text, sizeof text, "%d.%d.%d, kernels %s", v->major, v->minor,
             v->patch, isa + strlen("cpu_isa_"));
    return text;
}

/* If oneDNN was built with OpenMP, its number of threads is a setting of the
 * calling thread. Called before oneDNN computes. */
static void stay_on_this_thread(void)
{
    static _Thread_local bool done;
    void (*set)(int) = NULL;

    if (done)
        return;
    *(void **)&set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set != NULL)
        set(1);
    done = true;
}

static bm_status check(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return BM_OK;
    return BM_FAIL(status == dnnl_out_of_memory ? BM_ERR_MEMORY : BM_ERR_DEVICE,
                   "oneDNN %s: %s", bm_onednn_version(), what);
}

bm_status bm_onednn_sgemm(bool trans_a, bool trans_b, size_t m, size_t n,
                          size_t k, float alpha, const float *a, size_t lda,
                          const float *b, size_t ldb, float beta, float *c,
                          size_t ldc)
{
    stay_on_this_thread();
    return check(dnnl_sgemm(trans_a ? 'T' : 'N', trans_b ? 'T' : 'N',
                            (dnnl_dim_t)m, (dnnl_dim_t)n, (dnnl_dim_t)k, alpha,
                            a, (dnnl_dim_t)lda, b, (dnnl_dim_t)ldb, beta, c,
                            (dnnl_dim_t)ldc),
                 "a product in fp32");
}

static bool has(unsigned wanted)
{
    return ((unsigned)dnnl_get_effective_cpu_isa() & wanted) == wanted;
}

bm_onednn_units bm_onednn_bf16(void)
{
    return has(dnnl_cpu_isa_avx512_core_amx)    ? BM_DNN_MATRICES
           : has(dnnl_cpu_isa_avx512_core_bf16) ? BM_DNN_PAIRS
                                                : BM_DNN_NONE;
}

/* ---- bf16 --------------------------------------------------------------- */

/* A product ready to be computed. */
typedef struct ready {
    bm_onednn_product key;
    dnnl_memory_desc_t a, b, c, scratch;
    dnnl_primitive_t primitive;
} ready;

/* Creating a product takes up to a millisecond the first time, and some
 * microseconds while oneDNN caches it. So those with a packed B, one for each
 * step of a recurrence, are kept. */
struct bm_onednn {
    dnnl_engine_t engine;
    pthread_mutex_t mutex; /* protects what follows */
    ready kept[KEPT];
    size_t n;
};

static void drop(ready *r)
{
    free_descriptor(r->a);
    free_descriptor(r->b);
    free_descriptor(r->c);
    free_descriptor(r->scratch);
    if (r->primitive != NULL)
        dnnl_primitive_destroy(r->primitive);
}

bm_status bm_onednn_open(bm_onednn **out)
{
    bm_onednn *d = calloc(1, sizeof *d);
    bm_status status = BM_OK;

    if (d == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for oneDNN");
    pthread_mutex_init(&d->mutex, NULL);
    BM_TRY_DONE(
        check(dnnl_engine_create(&d->engine, dnnl_cpu, 0), "no engine"));
    *out = d;
    d = NULL;
done:
    bm_onednn_close(d);
    return status;
}

void bm_onednn_close(bm_onednn *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->n; i++)
        drop(&d->kept[i]);
    if (d->engine != NULL)
        dnnl_engine_destroy(d->engine);
    pthread_mutex_destroy(&d->mutex);
    free(d);
}

static dnnl_status_t describe_matrix(dnnl_memory_desc_t *md, size_t rows,
                                     size_t columns, dnnl_data_type_t type,
                                     bool transposed, size_t ld)
{
    dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)columns};
    dnnl_dims_t strides = {transposed ? 1 : (dnnl_dim_t)ld,
                           transposed ? (dnnl_dim_t)ld : 1};

    return describe(md, dims, type, strides);
}

/* B is packed as oneDNN prefers it for TYPICAL_ROWS rows of A. */
static dnnl_status_t describe_packed(const bm_onednn *d, dnnl_memory_desc_t *md,
                                     size_t k, size_t n)
{
    dnnl_dims_t dims = {(dnnl_dim_t)k, (dnnl_dim_t)n};
    dnnl_memory_desc_t a = {0}, any = {0}, c = {0};
    dnnl_primitive_desc_t planned = NULL;
    dnnl_status_t s = describe_matrix(&a, TYPICAL_ROWS, k, dnnl_bf16, false, k);

    if (s == dnnl_success)
        s = describe(&any, dims, dnnl_bf16, NULL);
    if (s == dnnl_success)
        s = describe_matrix(&c, TYPICAL_ROWS, n, dnnl_f32, false, n);
    if (s == dnnl_success)
        s = plan(&planned, d->engine, a, any, c, NULL);
    if (s == dnnl_success)
        s = copy_described(md, dnnl_primitive_desc_query_md(
                                   planned, dnnl_query_weights_md, 0));
    if (planned != NULL)
        dnnl_primitive_desc_destroy(planned);
    free_descriptor(a);
    free_descriptor(any);
    free_descriptor(c);
    return s;
}

/* With scratch of ours, since threads with the same product share oneDNN's. */
static dnnl_status_t attributes(bool add, dnnl_primitive_attr_t *out)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t s = dnnl_primitive_attr_create(out);

    if (s == dnnl_success)
        s = dnnl_primitive_attr_set_scratchpad_mode(*out,
                                                    dnnl_scratchpad_mode_user);
    if (s == dnnl_success && add)
        s = dnnl_post_ops_create(&ops);
    if (s == dnnl_success && add)
        s = add_to(ops);
    if (s == dnnl_success && add)
        s = dnnl_primitive_attr_set_post_ops(*out, ops);
    if (ops != NULL)
        dnnl_post_ops_destroy(ops);
    return s;
}

static bm_status make(const bm_onednn *d, const bm_onednn_product *p,
                      ready *out)
{
    ready r = {.key = *p};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t planned = NULL;
    dnnl_status_t s =
        describe_matrix(&r.a, p->m, p->k, dnnl_bf16, p->trans_a, p->lda);

    if (s == dnnl_success)
        s = p->packed ? describe_packed(d, &r.b, p->k, p->n)
                      : describe_matrix(&r.b, p->k, p->n, dnnl_bf16, p->trans_b,
                                        p->ldb);
    if (s == dnnl_success)
        s = describe_matrix(&r.c, p->m, p->n, dnnl_f32, false, p->ldc);
    if (s == dnnl_success)
        s = attributes(p->add, &attr);
    if (s == dnnl_success)
        s = plan(&planned, d->engine, r.a, r.b, r.c, attr);
    if (s == dnnl_success)
        s = copy_described(
            &r.scratch,
            dnnl_primitive_desc_query_md(planned, dnnl_query_scratchpad_md, 0));
    if (s == dnnl_success)
        s = dnnl_primitive_create(&r.primitive, planned);
    if (planned != NULL)
        dnnl_primitive_desc_destroy(planned);
    if (attr != NULL)
        dnnl_primitive_attr_destroy(attr);
    if (s == dnnl_success)
        *out = r;
    else
        drop(&r);
    return check(s, "no such product in bf16");
}

enum { ARGUMENTS = 4 };

/* Computes `primitive` with n arguments. */
static bm_status execute(const bm_onednn *d, dnnl_primitive_t primitive,
                         const int *names, const dnnl_memory_desc_t *mds,
                         void *const *data, int n)
{
    dnnl_exec_arg_t args[ARGUMENTS] = {{0}};
    dnnl_stream_t stream = NULL;
    dnnl_status_t s =
        dnnl_stream_create(&stream, d->engine, dnnl_stream_default_flags);

    stay_on_this_thread();
    for (int i = 0; i < n && s == dnnl_success; i++) {
        args[i].arg = names[i];
        s = dnnl_memory_create(&args[i].memory, MD(mds[i]), d->engine, data[i]);
    }
    if (s == dnnl_success)
        s = dnnl_primitive_execute(primitive, stream, n, args);
    if (s == dnnl_success)
        s = dnnl_stream_wait(stream);
    for (int i = 0; i < n; i++)
        if (args[i].memory != NULL)
            dnnl_memory_destroy(args[i].memory);
    if (stream != NULL)
        dnnl_stream_destroy(stream);
    return check(s, "a product in bf16 failed");
}

static bm_status compute(const bm_onednn *d, const ready *r, const uint16_t *a,
                         const void *b, float *c)
{
    enum { LINE = 64 };
    static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST,
                                DNNL_ARG_SCRATCHPAD};
    dnnl_memory_desc_t mds[] = {r->a, r->b, r->c, r->scratch};
    size_t bytes = dnnl_memory_desc_get_size(MD(r->scratch));
    void *scratch = aligned_alloc(LINE, bytes / LINE * LINE + LINE);
    void *data[] = {(void *)a, (void *)b, c, scratch};
    bm_status status = BM_OK;

    if (scratch == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a product in bf16");
    status = execute(d, r->primitive, names, mds, data, ARGUMENTS);
    free(scratch);
    return status;
}

static bool same(const bm_onednn_product *x, const bm_onednn_product *y)
{
    return x->m == y->m && x->n == y->n && x->k == y->k && x->lda == y->lda &&
           x->ldc == y->ldc && x->trans_a == y->trans_a && x->add == y->add;
}

/* A kept product with a packed B, created if new; NULL: no room for it. */
static bm_status look_up(bm_onednn *d, const bm_onednn_product *p,
                         const ready **out)
{
    bm_status status = BM_OK;
    size_t i = 0;

    pthread_mutex_lock(&d->mutex);
    while (i < d->n && !same(&d->kept[i].key, p))
        i++;
    if (i == d->n && d->n < KEPT)
        status = make(d, p, &d->kept[i]);
    if (i == d->n && d->n < KEPT && status == BM_OK)
        d->n++;
    *out = i < d->n ? &d->kept[i] : NULL;
    pthread_mutex_unlock(&d->mutex);
    return status;
}

bm_status bm_onednn_multiply(bm_onednn *d, const bm_onednn_product *p,
                             const uint16_t *a, const void *b, float *c)
{
    const ready *kept = NULL;
    ready made = {0};
    bm_status status = BM_OK;

    if (p->packed)
        BM_TRY(look_up(d, p, &kept));
    if (kept != NULL)
        return compute(d, kept, a, b, c);
    BM_TRY(make(d, p, &made));
    status = compute(d, &made, a, b, c);
    drop(&made);
    return status;
}

bm_status bm_onednn_packed(bm_onednn *d, size_t k, size_t n, size_t *bytes)
{
    dnnl_memory_desc_t md = {0};

    BM_TRY(check(describe_packed(d, &md, k, n), "no such product in bf16"));
    *bytes = dnnl_memory_desc_get_size(MD(md));
    free_descriptor(md);
    return BM_OK;
}

bm_status bm_onednn_pack(bm_onednn *d, bool transposed, size_t k, size_t n,
                         const uint16_t *b, void *packed)
{
    static const int names[] = {DNNL_ARG_FROM, DNNL_ARG_TO};
    dnnl_memory_desc_t mds[2] = {0};
    void *data[] = {(void *)b, packed};
    dnnl_primitive_desc_t planned = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_status_t s = describe_matrix(&mds[0], k, n, dnnl_bf16, transposed,
                                      transposed ? k : n);
    bm_status status = BM_OK;

    if (s == dnnl_success)
        s = describe_packed(d, &mds[1], k, n);
    if (s == dnnl_success)
        s = dnnl_reorder_primitive_desc_create(&planned, MD(mds[0]), d->engine,
                                               MD(mds[1]), d->engine, NULL);
    if (s == dnnl_success)
        s = dnnl_primitive_create(&reorder, planned);
    status = check(s, "cannot pack a matrix in bf16");
    if (status == BM_OK)
        status = execute(d, reorder, names, mds, data, 2);
    if (reorder != NULL)
        dnnl_primitive_destroy(reorder);
    if (planned != NULL)
        dnnl_primitive_desc_destroy(planned);
    free_descriptor(mds[0]);
    free_descriptor(mds[1]);
    return status;
}

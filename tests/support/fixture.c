#include "tests/support/fixture.h"

#include "tests/support/support.h"

#include <stdio.h>

fixture fixture_open(int workers, size_t n)
{
    fixture f = {.params = {.n = n, .n_learned = n}};
    char setting[32];

    snprintf(setting, sizeof setting, "job.workers=%d", workers);
    assert_ok(bm_comm_open(&f.comm));
    assert_ok(bm_config_new(&f.config));
    assert_ok(bm_config_set(f.config, setting));
    assert_ok(bm_backend_open(&f.params.be, "cpu", 0));
    assert_ok(bm_alloc(f.params.be, n, &f.params.w));
    assert_ok(bm_alloc(f.params.be, n, &f.params.g));
    return f;
}

void fixture_close(fixture *f)
{
    bm_free(f->params.be, f->params.w);
    bm_free(f->params.be, f->params.g);
    bm_backend_close(f->params.be);
    bm_config_free(f->config);
    bm_comm_close(f->comm);
}

void fixture_set(fixture *f, const char *assignment)
{
    assert_ok(bm_config_set(f->config, assignment));
}

void topology(int workers, char out[32])
{
    int size[3] = {workers, 1, 1};

    for (int k = 0; k < 2; k++)
        for (int a = 2; a < size[k]; a++)
            if (size[k] % a == 0) {
                size[k + 1] = size[k] / a;
                size[k] = a;
            }
    snprintf(out, 32, "%dx%dx%d", size[0], size[1], size[2]);
}

/* OpenBLAS with little address space, and oneDNN without memory. */
#include "compute/backend.h"
#include "compute/cpu/libraries/onednn.h"
#include "tests/support/support.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
static const bool limits = false; /* sanitizers need all address space */
#else
static const bool limits = true;
#endif

/* 0 if opening a backend in so much address space reports what is missing. */
static int open_within(rlim_t bytes)
{
    struct rlimit most = {bytes, bytes};
    bm_backend *be = NULL;

    if (setrlimit(RLIMIT_AS, &most) != 0)
        return 1;
    if (bm_backend_open(&be, "cpu", 0) != BM_ERR_MEMORY)
        return 2;
    return strstr(bm_last_error(), "128 MB of address space") == NULL ? 3 : 0;
}

/* Without the check OpenBLAS would retry forever. */
static void test_lack_of_address_space_is_reported(void **state)
{
    pid_t child = 0;
    int how = 0;

    (void)state;
    if (!limits) {
        print_message("skipped: address space cannot be limited here\n");
        skip();
    }
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        _exit(open_within((rlim_t)100 << 20));
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

/* dnnl_out_of_memory, whatever is asked; nothing else here multiplies. */
int __wrap_dnnl_sgemm(void);
int __wrap_dnnl_sgemm(void)
{
    return 1;
}

/* A training step must not go on with a product that was not computed. */
static void test_products_without_memory_fail(void **state)
{
    enum { N = 8, COUNT = 2 };
    bm_gemms many = {COUNT, N, N, N,     false, false, 1,
                     N,     N, N, N * N, N * N, N * N};
    bm_backend *be = NULL;
    float *x = NULL;

    (void)state;
    if (!bm_onednn_has())
        skip();
    for (int batch = 0; batch < 2; batch++) {
        assert_ok(bm_backend_open(&be, "cpu", 0));
        assert_ok(bm_alloc(be, (size_t)2 * COUNT * N * N, &x));
        if (batch)
            bm_gemm_batch(be, &many, x, x, x + COUNT * N * N);
        else
            bm_gemm(be, false, false, 1, bm_matrix(x, N, N), bm_matrix(x, N, N),
                    0, bm_matrix(x + N * N, N, N));
        assert_int_equal(bm_sync(be), BM_ERR_MEMORY);
        bm_free(be, x);
        bm_backend_close(be);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lack_of_address_space_is_reported),
        cmocka_unit_test(test_products_without_memory_fail),
    };
    return RUN_GROUP("blas", tests);
}

/*
 * The emulated instructions of a warp against the PTX manual: "Matrix fragments
 * for mma.m16n8k16 with floating point type" and "ldmatrix", in its own terms.
 * What tests of kernels say rests on these.
 */
#include "core/rng.h"
#include "tests/emulation/probe.h"
#include "tests/support.h"
#include "tests/support_backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cudaError_t (*multiply)(cudaStream_t, const uint32_t *, const uint32_t *,
                               float *);
static cudaError_t (*matrices)(cudaStream_t, const uint16_t *, uint32_t *,
                               uint32_t *, uint32_t *, uint16_t *);
static cudaError_t (*synchronize)(void);

/* A whole number as bf16. */
static uint32_t bf16(int x)
{
    float y = (float)x;
    uint32_t bits;

    memcpy(&bits, &y, sizeof bits);
    return bits >> 16;
}

/* -8 .. 7: products and their sums are exact. */
static int small(size_t i)
{
    return (int)(bm_rng_at(5, i) >> 60) - 8;
}

static void test_a_product_has_the_layout_of_the_manual(void **state)
{
    int A[16][16], B[16][8], C[16][8];
    uint32_t a[32][4] = {0}, b[32][2] = {0};
    float c[32][4];

    (void)state;
    for (size_t i = 0; i < 256; i++)
        A[i / 16][i % 16] = small(i);
    for (size_t i = 0; i < 128; i++) {
        B[i / 8][i % 8] = small(300 + i);
        C[i / 8][i % 8] = small(500 + i);
    }
    for (int lane = 0; lane < 32; lane++) {
        int group = lane >> 2, thread = lane % 4;

        for (int i = 0; i < 8; i++) {
            int row = i < 2 || (4 <= i && i < 6) ? group : group + 8;
            int col = thread * 2 + (i & 1) + (i < 4 ? 0 : 8);
            a[lane][i / 2] |= bf16(A[row][col]) << 16 * (i % 2);
        }
        for (int i = 0; i < 4; i++) {
            int row = thread * 2 + (i & 1) + (i < 2 ? 0 : 8);
            b[lane][i / 2] |= bf16(B[row][group]) << 16 * (i % 2);
        }
        for (int i = 0; i < 4; i++)
            c[lane][i] =
                (float)C[i < 2 ? group : group + 8][thread * 2 + (i & 1)];
    }
    assert_int_equal(multiply(0, a[0], b[0], c[0]), 0);
    assert_int_equal(synchronize(), 0);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            int row = (lane >> 2) + (i < 2 ? 0 : 8);
            int col = lane % 4 * 2 + (i & 1), sum = C[row][col];

            for (int k = 0; k < 16; k++)
                sum += A[row][k] * B[k][col];
            assert_true(c[lane][i] == (float)sum);
        }
}

static void test_matrices_have_the_layout_of_the_manual(void **state)
{
    uint16_t x[4][8][8], y[2][4][8][8];
    uint32_t r[32][4], transposed[32][4], one[32];

    (void)state;
    for (int i = 0; i < 256; i++)
        x[i / 64][i / 8 % 8][i % 8] = (uint16_t)(i * 251);
    assert_int_equal(matrices(0, x[0][0], r[0], transposed[0], one, y[0][0][0]),
                     0);
    assert_int_equal(synchronize(), 0);
    for (int lane = 0; lane < 32; lane++)
        for (int m = 0; m < 4; m++) {
            int row = lane / 4, col = lane % 4 * 2;

            assert_int_equal(r[lane][m],
                             x[m][row][col] | (uint32_t)x[m][row][col + 1]
                                                  << 16);
            assert_int_equal(transposed[lane][m],
                             x[m][col][row] | (uint32_t)x[m][col + 1][row]
                                                  << 16);
            if (m == 0)
                assert_int_equal(one[lane], transposed[lane][0]);
        }
    for (int i = 0; i < 256; i++) {
        int m = i / 64, row = i / 8 % 8, col = i % 8;
        bool added = m == 0;

        assert_int_equal(y[0][m][row][col], x[m][row][col]);
        assert_int_equal(y[1][m][row][col],
                         (uint16_t)(x[m][row][col] + (added ? 1 : 0)));
    }
}

static void *symbol(void *plugin, const char *name)
{
    void *x = dlsym(plugin, name);
    assert_non_null(x);
    return x;
}

static int load(void **state)
{
    char path[4096];
    void *plugin = NULL;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/libbmuf_cuda.so",
                   getenv("BMUF_PLUGINS"));
    plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(plugin);
    *(void **)&multiply = symbol(plugin, "bm_probe_multiply");
    *(void **)&matrices = symbol(plugin, "bm_probe_matrices");
    *(void **)&synchronize = symbol(plugin, "cudaDeviceSynchronize");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_product_has_the_layout_of_the_manual),
        cmocka_unit_test(test_matrices_have_the_layout_of_the_manual),
    };

    if (!have_backend("cuda")) /* which is loaded then */
        return SKIPPED;
    return cmocka_run_group_tests_name("emulation", tests, load, NULL);
}

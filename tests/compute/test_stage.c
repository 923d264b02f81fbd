/* A stage: input is sent while earlier input is still in use. */
#include "io/shard/store.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <stdlib.h>

static const char *backend = "cpu";

static bm_backend *open_backend(void)
{
    bm_backend *be = NULL;
    assert_ok(bm_backend_open(&be, backend, 0));
    return be;
}

/* Sends one sequence of n floats, each a frame. */
static float *send_floats(bm_stage *stage, const float *host, size_t n)
{
    int32_t frames = (int32_t)n;
    bm_extent e = {n, 1, &frames};
    bm_stored s = {.x = host, .bytes = sizeof *host};
    float *x = NULL;

    assert_ok(bm_stage_send(stage, e, 1, &s, &x));
    return x;
}

/* Mini-batch k of n numbers. */
static float value(size_t k, size_t i)
{
    return (float)(100 * k + i % 97);
}

/* sum += input for each mini-batch, without waiting: every number must have
 * arrived when it is added, and must not be overwritten before. */
static void add_up(bm_stage *stage, bm_backend *be, const size_t *sizes,
                   size_t count, float *sum)
{
    for (size_t k = 0; k < count; k++) {
        float *host = malloc((sizes[k] + 1) * sizeof *host), *x = NULL;

        for (size_t i = 0; i < sizes[k]; i++)
            host[i] = value(k, i);
        x = send_floats(stage, host, sizes[k]);
        for (size_t i = 0; i < sizes[k]; i++)
            host[i] = -1; /* it may change */
        free(host);
        bm_axpby(be, sizes[k], 1, x, 1, sum);
    }
}

static void assert_sums(bm_backend *be, const size_t *sizes, size_t count,
                        const float *sum, size_t most)
{
    float *got = fetch(be, sum, most);

    for (size_t i = 0; i < most; i++) {
        float expected = 0;
        for (size_t k = 0; k < count; k++)
            expected += i < sizes[k] ? value(k, i) : 0;
        assert_true(got[i] == expected);
    }
    free(got);
}

static void test_every_mini_batch_arrives_unchanged(void **state)
{
    enum { MOST = 5000 };
    static const size_t sizes[] = {1000, 1000, 7,    0,    1000, 2000, 1,
                                   4999, 5000, 3000, 3000, 3000, 64,   5000};
    bm_backend *be = open_backend();
    bm_stage *stage = NULL;
    float *sum = NULL;

    (void)state;
    assert_ok(bm_alloc(be, MOST, &sum));
    assert_ok(bm_stage_open(&stage, be));
    add_up(stage, be, sizes, sizeof sizes / sizeof *sizes, sum);
    assert_sums(be, sizes, sizeof sizes / sizeof *sizes, sum, MOST);
    bm_stage_close(stage);
    bm_free(be, sum);
    bm_backend_close(be);
}

static void test_two_stages_are_independent(void **state)
{
    enum { N = 300 };
    bm_backend *be = open_backend();
    bm_stage *stage[2] = {NULL, NULL};
    float *x[2], host[N], *sum = NULL, *got = NULL;

    (void)state;
    assert_ok(bm_alloc(be, N, &sum));
    for (size_t k = 0; k < 2; k++) {
        assert_ok(bm_stage_open(&stage[k], be));
        for (size_t i = 0; i < N; i++)
            host[i] = value(k, i);
        x[k] = send_floats(stage[k], host, N);
    }
    for (size_t k = 0; k < 2; k++)
        bm_axpby(be, N, k == 0 ? 2 : 3, x[k], 1, sum);
    got = fetch(be, sum, N);
    for (size_t i = 0; i < N; i++)
        assert_true(got[i] == 2 * value(0, i) + 3 * value(1, i));
    free(got);
    bm_stage_close(stage[0]);
    bm_stage_close(stage[1]);
    bm_stage_close(NULL);
    bm_free(be, sum);
    bm_backend_close(be);
}

/* A bf16 form of earlier input must not be used. */
static void test_new_input_replaces_all_forms_of_the_old(void **state)
{
    enum { N = 32, ROUNDS = 9 };
    bm_backend *be = open_backend();
    bm_stage *stage = NULL;
    float *w = NULL, *y = NULL, one[N], host[N];

    (void)state;
    for (size_t i = 0; i < N; i++)
        one[i] = 1;
    w = place(be, one, N);
    assert_ok(bm_backend_use(be, 1, BM_BF16));
    assert_ok(bm_alloc(be, ROUNDS, &y));
    assert_ok(bm_stage_open(&stage, be));
    for (size_t k = 0; k < ROUNDS; k++) {
        for (size_t i = 0; i < N; i++)
            host[i] = (float)k; /* exact in 8 bits */
        bm_gemm(be, false, true, 1,
                bm_matrix(send_floats(stage, host, N), 1, N),
                bm_matrix(w, 1, N), 0, bm_matrix(y + k, 1, 1));
    }
    for (size_t k = 0; k < ROUNDS; k++) {
        float *got = fetch(be, y + k, 1);
        assert_true(*got == (float)(N * k));
        free(got);
    }
    bm_stage_close(stage);
    bm_free(be, y);
    bm_free(be, w);
    bm_backend_close(be);
}

/* ---- stored numbers ----------------------------------------------------- */

enum { B = 7, LONGEST = 9, MOST_D = 12 };

/* Any finite half, with all exponents. */
static uint16_t half(size_t k)
{
    uint16_t h = (uint16_t)(k * 40503u);
    return (h & 0x7c00) == 0x7c00 ? (uint16_t)(h & 0x83ff) : h;
}

/* Sequence b in one of the stores; sequences of bytes are from two shards. */
static bm_stored sequence(size_t b, size_t D, bm_store store, void *x,
                          float quant[2][2][MOST_D])
{
    size_t n = LONGEST * D, shard = b / 3 % 2;

    for (size_t i = 0; i < n; i++) {
        size_t k = 1 + 1009 * b + 31 * i;
        if (store == BM_STORE_U8)
            ((uint8_t *)x)[i] = (uint8_t)(k * 151);
        else if (store == BM_STORE_F16)
            ((uint16_t *)x)[i] = half(k);
        else
            ((float *)x)[i] = (float)k / 7;
    }
    return (bm_stored){x, bm_store_size(store), quant[shard][0],
                       quant[shard][1]};
}

/* Each number on the device equals that of io/shard/store.c; `mixed`: sequences
 * alternate between stores. */
static void check_stores(bm_backend *be, bm_stage *stage, size_t D, bool mixed,
                         bm_store store)
{
    static const int32_t frames[B] = {9, 0, 1, 8, 9, 3, 5};
    const bm_extent e = {LONGEST + 2, B, frames};
    static float raw[B][LONGEST * MOST_D], floats[LONGEST * MOST_D];
    float quant[2][2][MOST_D], *x = NULL, *got = NULL;
    bm_stored of[B];
    bm_store stores[B];

    for (size_t i = 0; i < 2; i++)
        for (size_t d = 0; d < MOST_D; d++) {
            quant[i][0][d] = (float)(1 + d + 3 * i) / 255;
            quant[i][1][d] = (float)d / 3 - (float)i;
        }
    for (size_t b = 0; b < B; b++) {
        stores[b] = mixed ? (bm_store)(b % 3) : store;
        of[b] = sequence(b, D, stores[b], raw[b], quant);
    }
    assert_ok(bm_stage_send(stage, e, D, of, &x));
    got = fetch(be, x, e.T * B * D);
    for (size_t b = 0; b < B; b++) {
        bm_store_unpack(stores[b], of[b].x, floats, LONGEST, D, of[b].scale,
                        of[b].offset);
        for (size_t t = 0; t < e.T; t++)
            for (size_t d = 0; d < D; d++) {
                float expected = t < (size_t)frames[b] ? floats[t * D + d] : 0;
                assert_memory_equal(got + (t * B + b) * D + d, &expected,
                                    sizeof expected);
            }
    }
    free(got);
}

static void test_devices_convert_stored_numbers_as_the_host_does(void **state)
{
    static const size_t sizes[] = {1, 3, 4, 10, 12};
    static const bm_store stores[] = {BM_STORE_F32, BM_STORE_F16, BM_STORE_U8};
    bm_backend *be = open_backend();
    bm_stage *stage = NULL;

    (void)state;
    assert_ok(bm_stage_open(&stage, be));
    FOR_EACH (i, sizes) {
        FOR_EACH (k, stores)
            if (!bm_on_host(be) || stores[k] == BM_STORE_F32)
                check_stores(be, stage, sizes[i], false, stores[k]);
        if (!bm_on_host(be))
            check_stores(be, stage, sizes[i], true, BM_STORE_F32);
    }
    bm_stage_close(stage);
    bm_backend_close(be);
}

/* The same numbers from bytes with their bf16 twin as from floats without. */
static void test_both_forms_have_the_same_numbers(void **state)
{
    enum { D = 4, T = 5 };
    static const int32_t frames[] = {T};
    static const float scale[D] = {0.1f, 0.2f, 0.3f, 0.7f}, offset[D] = {1};
    bm_backend *be = open_backend();
    bm_stage *stage = NULL;
    uint8_t bytes[T * D];
    float floats[T * D], one[D] = {1, 1, 1, 1}, *x = NULL, *got[2];
    float *w = place(be, one, D), *y = NULL, *placed = NULL;
    bm_stored of = {bytes, 1, scale, offset};

    (void)state;
    for (size_t i = 0; i < T * D; i++)
        bytes[i] = (uint8_t)(i * 47);
    bm_store_unpack(BM_STORE_U8, bytes, floats, T, D, scale, offset);
    if (bm_on_host(be))
        of = (bm_stored){.x = floats, .bytes = sizeof *floats};
    assert_ok(bm_backend_use(be, 1, BM_BF16));
    assert_ok(bm_alloc(be, T, &y));
    assert_ok(bm_stage_open(&stage, be));
    assert_ok(bm_stage_send(stage, (bm_extent){T, 1, frames}, D, &of, &x));
    placed = place(be, floats, T * D);
    for (size_t i = 0; i < 2; i++) {
        bm_gemm(be, false, true, 1, bm_matrix(i == 0 ? x : placed, T, D),
                bm_matrix(w, 1, D), 0, bm_matrix(y, T, 1));
        got[i] = fetch(be, y, T);
    }
    assert_memory_equal(got[0], got[1], T * sizeof(float));
    free(got[0]);
    free(got[1]);
    bm_stage_close(stage);
    bm_free(be, placed);
    bm_free(be, y);
    bm_free(be, w);
    bm_backend_close(be);
}

static void test_nan_is_kept_in_every_store(void **state)
{
    const float inf = 1e38f * 10, good[2] = {1, 2}, bad[2] = {1, inf};
    const uint16_t halves[2] = {0x7bff, 0xfbff}, odd[2] = {0x3c00, 0xfe01};
    const uint8_t low[2] = {1, 3}, high[2] = {1, 255};
    const float scale[2] = {1, 3e38f / 100}, zero[2] = {0};

    (void)state;
    assert_true(bm_stored_finite(&(bm_stored){good, 4, NULL, NULL}, 1, 2));
    assert_false(bm_stored_finite(&(bm_stored){bad, 4, NULL, NULL}, 1, 2));
    assert_true(bm_stored_finite(&(bm_stored){halves, 2, NULL, NULL}, 1, 2));
    assert_false(bm_stored_finite(&(bm_stored){odd, 2, NULL, NULL}, 1, 2));
    assert_true(bm_stored_finite(&(bm_stored){low, 1, scale, zero}, 1, 2));
    assert_false(bm_stored_finite(&(bm_stored){high, 1, scale, zero}, 1, 2));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_mini_batch_arrives_unchanged),
        cmocka_unit_test(test_two_stages_are_independent),
        cmocka_unit_test(test_new_input_replaces_all_forms_of_the_old),
        cmocka_unit_test(test_devices_convert_stored_numbers_as_the_host_does),
        cmocka_unit_test(test_both_forms_have_the_same_numbers),
        cmocka_unit_test(test_nan_is_kept_in_every_store),
    };

    if (argc > 1)
        backend = argv[1];
    if (!have_backend(backend))
        return SKIPPED;
    return RUN_GROUP(backend, tests);
}

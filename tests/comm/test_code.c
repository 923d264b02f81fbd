/*
 * Every code against its definition: halves against a table of all halves in
 * double, the others against their formulas.
 */
#include "comm/code/code_plan.h"
#include "comm/sum/sum.h"
#include "compute/cpu/subnormals.h"
#include "compute/device_code.h"
#include "core/finite.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 5000 };

static const char *const names[] = {
#define X(name) #name,
    BM_CODES(X)
#undef X
};

/* Of both signs, with sizes from 2^-spread to 2^spread. */
static void fill(size_t n, double spread, uint64_t key, float *x)
{
    for (size_t i = 0; i < n; i++) {
        double size = exp2(spread * (2 * uniform(key + 3 * i) - 1));
        x[i] = (float)((2 * uniform(key + 3 * i + 1) - 1) * size);
    }
}

/* Encodes and decodes x; checks that bytes() bytes are written. */
static void pass(const bm_code *c, size_t n, const float *x, float *y)
{
    size_t bytes = c->ops->bytes(c, n);
    unsigned char *code = zeros(bytes + 1, 1);

    code[bytes] = 77;
    c->ops->encode(c, n, x, code);
    assert_int_equal(code[bytes], 77);
    c->ops->decode(c, n, code, y);
    free(code);
}

static void test_fp32_is_exact(void **state)
{
    bm_code c = bm_code_find("fp32", 0);
    float x[100], y[100];

    (void)state;
    fill(100, 100, 1, x);
    x[3] = -0.F;
    pass(&c, 100, x, y);
    assert_memory_equal(x, y, sizeof x);
}

/* All non-negative numbers of a format, in the order of their codes, from the
 * bits of its fraction and its smallest exponent. */
typedef struct format {
    const char *name;
    int fraction, lowest, codes;
} format;

static double level(const format *f, int code)
{
    int implied = 1 << f->fraction, exponent = code / implied;

    return exponent == 0
               ? ldexp(code, f->lowest)
               : ldexp(implied + code % implied, f->lowest + exponent - 1);
}

/* The nearest one; of two equally near ones the one with the even code. */
static double nearest(const format *f, double x)
{
    int low = 0, high = f->codes - 1;
    double to_low = 0, to_high = 0;

    if (fabs(x) >= level(f, high))
        return copysign(level(f, high), x);
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (level(f, middle) <= fabs(x))
            low = middle;
        else
            high = middle;
    }
    to_low = fabs(x) - level(f, low);
    to_high = level(f, high) - fabs(x);
    if (to_high < to_low || (to_high == to_low && high % 2 == 0))
        low = high;
    return copysign(level(f, low), x);
}

static const format formats[] = {{"fp16", 10, -24, 0x7c00},
                                 {"bf16", 7, -133, 0x7f80}};

static void check_rounding(const format *f, const float *x, size_t n)
{
    bm_code c = bm_code_find(f->name, 0);
    float y[LONGEST];

    pass(&c, n, x, y);
    for (size_t i = 0; i < n; i++) {
        assert_true((double)y[i] == nearest(f, x[i]));
        assert_true(!signbit(y[i]) == !signbit(x[i]));
    }
    assert_int_equal(c.ops->bytes(&c, n), 2 * n);
}

static void test_halves_are_rounded_to_nearest(void **state)
{
    static float x[LONGEST];

    (void)state;
    FOR_EACH (k, formats) {
        const format *f = &formats[k];

        for (uint64_t spread = 2; spread < 120; spread += 13) {
            fill(LONGEST, (double)spread, spread, x);
            check_rounding(f, x, LONGEST);
        }
        for (int code = 0; code + 2 < f->codes; code += LONGEST / 2) {
            int n = 0; /* every half, and what lies in the middle of two */

            for (int i = code; i + 2 < f->codes && n < LONGEST; i++) {
                x[n++] = (float)-level(f, i);
                x[n++] = (float)((level(f, i) + level(f, i + 1)) / 2);
            }
            check_rounding(f, x, (size_t)n);
        }
        x[0] = FLT_MAX;
        x[1] = -FLT_MAX;
        x[2] = 65519;
        x[3] = 65520;
        x[4] = FLT_TRUE_MIN;
        x[5] = -0.F;
        check_rounding(f, x, 6);
    }
}

/* q s with s = max |x| / 127, and q the nearest integer. */
static void test_int8_has_127_levels_per_256_numbers(void **state)
{
    static const size_t lengths[] = {1, 255, 256, 257, 1024};
    bm_code c = bm_code_find("int8", 0);
    float x[1024], y[1024];

    (void)state;
    FOR_EACH (k, lengths) {
        size_t n = lengths[k];

        assert_int_equal(c.ops->bytes(&c, n), n + 4 * ((n + 255) / 256));
        fill(n, 5, k, x);
        pass(&c, n, x, y);
        for (size_t i = 0; i < n; i++) {
            double most = 0, scale = 0;

            for (size_t j = i / 256 * 256; j < n && j / 256 == i / 256; j++)
                most = fmax(most, fabs((double)x[j]));
            scale = most / 127;
            assert_true(fabs(y[i] / scale - nearbyint(y[i] / scale)) < 1e-4);
            assert_true(fabs(y[i] - (double)x[i]) < 0.5001 * scale);
            assert_true(fabs((double)y[i]) < 1.0001 * most);
        }
    }
}

static void test_onebit_levels_are_the_means_of_both_signs(void **state)
{
    static const size_t lengths[] = {1, 31, 32, 33, 2048, 4999};
    bm_code c = bm_code_find("onebit", 0);
    float x[LONGEST], y[LONGEST];

    (void)state;
    FOR_EACH (k, lengths) {
        size_t n = lengths[k], words = (n + 31) / 32;
        double sum[2] = {0}, count[2] = {0};

        assert_int_equal(c.ops->bytes(&c, n), 8 + 4 * words);
        fill(n, 3, k, x);
        x[n / 2] = 0; /* is one of those that are not negative */
        pass(&c, n, x, y);
        for (size_t i = n; i-- > 0;) {
            sum[x[i] >= 0] += x[i];
            count[x[i] >= 0]++;
        }
        for (size_t i = 0; i < n; i++) {
            int bit = x[i] >= 0;
            assert_true(fabs(y[i] - sum[bit] / count[bit]) <=
                        1e-6 * fabs(sum[bit] / count[bit]));
        }
    }
}

/* Of a column of 2048 rows: 264 bytes instead of 8192. */
static void test_onebit_is_31_times_shorter(void **state)
{
    bm_code c = bm_code_find("onebit", 0);

    (void)state;
    assert_int_equal(c.ops->bytes(&c, 2048), 264);
    assert_int_equal(4 * 2048 / c.ops->bytes(&c, 2048), 31);
}

typedef struct entry {
    float x;
    size_t at;
} entry;

static int by_size(const void *left, const void *right)
{
    const entry *a = left, *b = right;

    if (fabsf(a->x) != fabsf(b->x))
        return fabsf(a->x) > fabsf(b->x) ? -1 : 1;
    return a->at < b->at ? -1 : 1;
}

static void test_topk_keeps_the_largest(void **state)
{
    static const size_t lengths[] = {1, 2, 49, 50, 1000, 1024};
    static const double shares[] = {0.0001, 0.01, 0.1, 0.5};
    float x[1024], y[1024];
    entry sorted[1024];

    (void)state;
    FOR_EACH (k, lengths)
        FOR_EACH (s, shares)
            for (int ties = 0; ties < 2; ties++) {
                bm_code c = bm_code_find("topk", shares[s]);
                size_t n = lengths[k], kept = 0;

                fill(n, 8, k, x);
                for (size_t i = 0; i < n; i++) {
                    if (ties) /* -3 .. 3 */
                        x[i] = (float)(int)(7 * uniform(i)) - 3;
                    sorted[i] = (entry){x[i], i};
                }
                qsort(sorted, n, sizeof *sorted, by_size);
                kept = (size_t)fmax(1, round(shares[s] * (double)n));
                assert_int_equal(c.ops->bytes(&c, n), 6 * kept);
                pass(&c, n, x, y);
                for (size_t i = 0; i < n; i++)
                    assert_true(y[sorted[i].at] ==
                                (i < kept ? sorted[i].x : 0));
            }
}

/* Otherwise error feedback would not converge. */
static void test_every_residual_is_smaller_than_its_input(void **state)
{
    static float x[1024], y[1024];

    (void)state;
    FOR_EACH (k, names)
        for (uint64_t t = 0; t < 20; t++) {
            bm_code c = bm_code_find(names[k], 0.01);
            double left = 0, all = 0;

            fill(1024, 0.5 * (double)t, 77 * t, x);
            pass(&c, 1024, x, y);
            for (int i = 0; i < 1024; i++) {
                left += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
                all += (double)x[i] * x[i];
            }
            assert_true(left < all);
        }
}

static void test_every_code_decodes_to_finite_numbers(void **state)
{
    static const float odd[] = {FLT_MAX,  FLT_TRUE_MIN, FLT_MIN, 65520,
                                1 - 1e7F, -FLT_MAX,     0,       -0.F};
    float y[8], rest[8];

    (void)state;
    FOR_EACH (k, names)
        for (size_t n = 0; n <= 8; n++)
            for (size_t from = 0; from + n <= 8; from++) {
                bm_code c = bm_code_find(names[k], 0.3);

                pass(&c, n, odd + from, y);
                for (size_t i = 0; i < n; i++)
                    rest[i] = odd[from + i] - y[i];
                assert_true(bm_all_finite(y, n));
                assert_true(bm_all_finite(rest, n));
            }
}

static void test_unknown_codes_are_not_found(void **state)
{
    (void)state;
    assert_null(bm_code_find("none", 0).ops);
}

/* ---- how a vector is cut ------------------------------------------------- */

/* Columns with these numbers of rows; after the last edge is one more. */
static const size_t edges[] = {1, 4, 504, 1004, 2004, 4052, 6100, 6107};
enum { N = 7001, LEARNED = 6107 };

static size_t onebit_bytes(size_t rows)
{
    size_t coded = 8 + 4 * ((rows + 31) / 32);
    return coded < 4 * rows ? coded : 4 * rows;
}

static void test_onebit_pieces_are_columns(void **state)
{
    bm_code_plan p = {0};
    size_t bytes = 0, own[8];

    (void)state;
    assert_ok(bm_code_plan_make(&p, bm_code_find("onebit", 0), N, LEARNED,
                                edges, sizeof edges / sizeof edges[0]));
    assert_int_equal(p.n_pieces, 9);
    for (size_t i = 0; i < 8; i++) {
        size_t rows = edges[i] - (i > 0 ? edges[i - 1] : 0);

        assert_int_equal(p.start[i + 1], edges[i]);
        bytes += onebit_bytes(rows);
        assert_int_equal(p.byte[i + 1], bytes);
        assert_int_equal(bm_code_plan_exact(&p, i), rows <= 3);
    }
    assert_true(bm_code_plan_exact(&p, 8)); /* statistics */
    assert_int_equal(p.byte[9], bytes + 4 * (size_t)(N - LEARNED));
    assert_int_equal(p.longest, 2048);
    for (int size = 1; size <= 7; size++) {
        assert_ok(bm_code_plan_cut(&p, size, "sharded", own));
        assert_int_equal(p.group[own[0]], 0);
        assert_int_equal(p.group[own[size]], p.n_pieces);
        for (int r = 0; r < size; r++)
            assert_true(p.group[own[r]] <= p.group[own[r + 1]]);
    }
    bm_code_plan_free(&p);
}

static void test_other_pieces_are_chunks(void **state)
{
    static const size_t lengths[] = {0, 1, 1023, 1024, 1025, N};

    (void)state;
    FOR_EACH (k, lengths)
        for (size_t learned = 0; learned <= lengths[k]; learned += 511) {
            size_t n = lengths[k], at = 0;
            bm_code_plan p = {0};

            assert_ok(bm_code_plan_make(&p, bm_code_find("int8", 0), n, learned,
                                        NULL, 0));
            for (size_t i = 0; i < p.n_pieces; i++, at = p.start[i]) {
                size_t to = p.start[i + 1], rows = to - at;
                bool coded = at < learned && rows > 1; /* 5 bytes are more */

                assert_int_equal(p.start[i], at);
                assert_true(to == n || to == learned || to % 1024 == 0);
                assert_int_equal(bm_code_plan_exact(&p, i), !coded);
                assert_int_equal(p.byte[i + 1] - p.byte[i],
                                 coded ? rows + 4 * ((rows + 255) / 256)
                                       : 4 * rows);
            }
            assert_int_equal(at, n);
            for (size_t c = 0; c < p.n_groups; c++)
                assert_int_equal(p.start[p.group[c]], c * 1024);
            bm_code_plan_free(&p);
        }
}

/* ---- on a device --------------------------------------------------------- */

enum { ALL = 3 * BM_SUM_CHUNK + 77, EXACT = 41 };

/* Numbers of all sizes; equal ones, both zeros, and the smallest and largest.
 * Called before subnormal numbers are zero. */
static float everything[ALL];

static int fill_all(void **state)
{
    float *x = everything;

    (void)state;
    fill(ALL, 120, 5, x);
    for (size_t i = 0; i < 300; i++)
        x[BM_SUM_CHUNK + 3 * i] = i % 2 ? 0.5F : -0.5F;
    for (size_t i = 0; i < 500; i++)
        x[2 * BM_SUM_CHUNK + i] = i % 3 ? -0.F : 0;
    for (size_t i = 600; i < 1000; i++)
        x[2 * BM_SUM_CHUNK + i] = (float)i * FLT_TRUE_MIN;
    x[7] = FLT_MAX;
    x[8] = -FLT_MAX;
    x[300] = FLT_MIN;
    for (size_t i = 1000; i < 1100; i++) /* and negative ones alone */
        x[2 * BM_SUM_CHUNK + i] = -(float)i * FLT_TRUE_MIN;
    x[ALL - 3] = -0.F;
    bm_subnormals_to_zero(); /* as in the program; not on the device */
    return 0;
}

/* What the host makes of x: its code, and what is lost. */
static void encode_all(const bm_code_plan *p, const float *x,
                       unsigned char *code, float *residual, float *y)
{
    for (size_t i = 0; i < p->n_pieces; i++) {
        bm_code_plan_encode(p, i, x + p->start[i], code + p->byte[i]);
        bm_code_plan_decode(p, i, code + p->byte[i], y + p->start[i]);
        for (size_t k = p->start[i]; k < p->start[i + 1]; k++)
            residual[k] = bm_code_plan_exact(p, i) ? 0 : x[k] - y[k];
    }
}

/* sum = x + y, or y in exact pieces. */
static void add_all(const bm_code_plan *p, const float *x, const float *y,
                    float *sum)
{
    for (size_t i = 0; i < p->n_pieces; i++)
        for (size_t k = p->start[i]; k < p->start[i + 1]; k++)
            sum[k] = bm_code_plan_exact(p, i) ? y[k] : x[k] + y[k];
}

static void assert_bits(bm_backend *be, const float *d_x, const float *x)
{
    float *got = fetch(be, d_x, ALL);

    assert_memory_equal(got, x, ALL * sizeof *got);
    free(got);
}

/* Carries, encodes and decodes on the device. */
static void check_on_device(bm_backend *be, bm_code_kind kind,
                            const bm_code_plan *p)
{
    static float x[ALL], y[ALL], residual[ALL], sum[ALL];
    size_t bytes = p->byte[p->n_pieces];
    unsigned char *code = zeros(bytes, 1);
    float *d_x = NULL, *d_code = NULL, *got = NULL, odd[1] = {1};
    float *d_residual = place(be, sum, ALL), *d_odd = place(be, odd, 1);
    bm_pieces pieces = {0};

    memcpy(x, everything, sizeof x);
    d_x = place(be, x, ALL);
    encode_all(p, x, code, residual, y);
    assert_ok(
        bm_device_code_cut(be, kind, p->n_pieces, p->start, p->byte, &pieces));
    d_code = place(be, x, bm_device_code_floats(&pieces));
    bm_device_code_encode(be, &pieces, d_x, d_residual, d_code);
    got = fetch(be, d_code, bm_device_code_floats(&pieces));
    assert_memory_equal(got, code, bytes);
    assert_bits(be, d_residual, residual);
    add_all(p, x, y, sum);
    bm_device_code_decode(be, &pieces, d_code, true, d_x);
    assert_bits(be, d_x, sum);
    bm_device_code_decode(be, &pieces, d_code, false, d_x);
    assert_bits(be, d_x, y);
    add_all(p, residual, y, sum);
    bm_device_code_carry(be, &pieces, d_residual, d_x, d_odd);
    assert_bits(be, d_x, sum);
    bm_get(be, odd, d_odd, 1);
    assert_ok(bm_sync(be));
    assert_true(odd[0] == (bm_all_finite(sum, ALL) ? 0 : 1));
    bm_free(be, d_x);
    bm_free(be, d_code);
    bm_free(be, d_residual);
    bm_free(be, d_odd);
    bm_free(be, pieces.edges);
    memset(sum, 0, sizeof sum);
    free(got);
    free(code);
}

static void test_a_device_makes_the_codes_of_the_host(void **state)
{
    static const size_t columns[] = {100, 1000, 1031, 3000};
    bm_backend *be = NULL;
    bm_code_kind kind = BM_CODE_FP32;

    (void)state;
    assert_ok(bm_backend_open(&be, "cuda", 0));
    FOR_EACH (i, names) {
        bm_code_plan p = {0};

        if (!bm_device_code_find(be, names[i], &kind))
            continue; /* the host encodes */
        assert_ok(bm_code_plan_make(&p, bm_code_find(names[i], 0.1), ALL,
                                    ALL - EXACT, columns, 4));
        check_on_device(be, kind, &p);
        bm_code_plan_free(&p);
    }
    bm_backend_close(be);
}

static void test_a_device_does_not_have_every_code(void **state)
{
    bm_backend *be = NULL;
    bm_code_kind kind = BM_CODE_FP32;

    (void)state;
    assert_ok(bm_backend_open(&be, "cuda", 0));
    assert_true(bm_device_code_find(be, "topk", &kind));
    assert_int_equal(kind, BM_CODE_TOPK);
    assert_false(bm_device_code_find(be, "no_such_code", &kind));
    bm_backend_close(be);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest of_device[] = {
        cmocka_unit_test(test_a_device_makes_the_codes_of_the_host),
        cmocka_unit_test(test_a_device_does_not_have_every_code),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp32_is_exact),
        cmocka_unit_test(test_halves_are_rounded_to_nearest),
        cmocka_unit_test(test_int8_has_127_levels_per_256_numbers),
        cmocka_unit_test(test_onebit_levels_are_the_means_of_both_signs),
        cmocka_unit_test(test_onebit_is_31_times_shorter),
        cmocka_unit_test(test_topk_keeps_the_largest),
        cmocka_unit_test(test_every_residual_is_smaller_than_its_input),
        cmocka_unit_test(test_every_code_decodes_to_finite_numbers),
        cmocka_unit_test(test_unknown_codes_are_not_found),
        cmocka_unit_test(test_onebit_pieces_are_columns),
        cmocka_unit_test(test_other_pieces_are_chunks),
    };
    if (argc > 1 && !have_backend(argv[1]))
        return SKIPPED;
    if (argc > 1)
        return cmocka_run_group_tests_name("code", of_device, fill_all, NULL);
    return RUN_GROUP("code", tests);
}

/* The cpu backend's loops, for every instruction set of this machine, against
 * double precision. */
#include "compute/cpu/libraries/blas.h"
#include "compute/cpu/loops/cpu_isa.h"
#include "core/rng.h"
#include "tests/support/support.h"

#include <cblas.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const set_names[] = {"baseline", "avx2", "avx512"};

/* NULL: this machine cannot run the set. */
static const bm_isa *find(const char *name)
{
    const bm_isa *isa = NULL;

    setenv("BMUF_ISA", name, 1);
    if (bm_isa_find(&isa) != BM_OK)
        isa = NULL;
    unsetenv("BMUF_ISA");
    return isa;
}

/* Runs the body for each set of this machine. */
#define FOR_EACH_ISA(isa)                                                      \
    FOR_EACH (isa##_number, set_names)                                         \
        for (const bm_isa *isa = find(set_names[isa##_number]); isa != NULL;   \
             isa = NULL)

static void fill(float *x, size_t n, uint64_t seed)
{
    bm_rng rng = bm_rng_make(seed, "test", 0);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(2 * bm_rng_uniform(&rng) - 1);
}

/* Units in the last place of the float nearest to `exact`. */
static double ulps(float got, double exact)
{
    double unit = ldexp(1, ilogb(exact) - (FLT_MANT_DIG - 1));
    return fabs(got - exact) / unit;
}

static double exact_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The largest error over floats of either sign up to `most`, among normal
 * results. f < 0: exp, of negative numbers. */
static double worst(const bm_isa *isa, int f, double (*exact)(double),
                    float most)
{
    enum { N = 1024, STRIDE = 1009 };
    float x[N], y[N], m[N], next = most;
    int32_t e[N];
    uint32_t bits = 0;
    double error = 0;

    while (next != 0) {
        for (int i = 0; i < N; i++) {
            memcpy(&bits, &next, sizeof bits);
            x[i] = f >= 0 && i % 2 == 0 ? next : -next;
            bits = bits > STRIDE ? bits - STRIDE : 0;
            memcpy(&next, &bits, sizeof bits);
        }
        if (f < 0)
            (void)isa->loss->exp(N, x, 0, (bm_wide){m, e}, y);
        else
            isa->loops->activate((bm_activation)f, N, x, y);
        for (int i = 0; i < N; i++) {
            double want = exact(x[i]);
            if (fabs(want) >= FLT_MIN)
                error = fmax(error, ulps(y[i], want));
            else
                assert_true(fabsf(y[i]) <= FLT_MIN);
            if (f < 0 && y[i] > 0)
                assert_true(y[i] == ldexpf(m[i], e[i]));
        }
    }
    return error;
}

static void test_functions_have_the_documented_accuracy(void **state)
{
    (void)state;
    FOR_EACH_ISA (isa) {
        double of_exp = worst(isa, -1, exp, 2e6f);
        double of_sigmoid = worst(isa, BM_SIGMOID, exact_sigmoid, FLT_MAX);
        double of_tanh = worst(isa, BM_TANH, tanh, FLT_MAX);

        print_message("%s: exp %.2f, sigmoid %.2f, tanh %.2f ulp\n", isa->name,
                      of_exp, of_sigmoid, of_tanh);
        assert_true(of_exp <= 2);
        assert_true(of_sigmoid <= 3);
        assert_true(of_tanh <= 3);
    }
}

/* Over numbers of either sign, 0.07 % apart. Near its zero at -0.75 the slope has
 * an absolute error. */
static void test_gelu_has_the_documented_accuracy(void **state)
{
    enum { N = 1024 };
    float x[N], y[N], dx[N], one[N];

    (void)state;
    for (int i = 0; i < N; i++)
        one[i] = 1;
    FOR_EACH_ISA (isa) {
        double error = 0, of_slope = 0;

        for (float next = FLT_MAX; next > 1e-30f;) {
            for (int i = 0; i < N; i++) {
                x[i] = i % 2 == 0 ? next : -next;
                next *= 0.9993f;
            }
            isa->loops->gelu(N, x, y);
            isa->loops->gelu_back(N, x, one, dx);
            for (int i = 0; i < N; i++) {
                double below = erfc(-x[i] / sqrt(2)) / 2, want = x[i] * below;
                double density = exp(-0.5 * x[i] * x[i]) / sqrt(2 * acos(-1));

                if (fabs(want) >= FLT_MIN)
                    error = fmax(error, ulps(y[i], want));
                else
                    assert_true(fabsf(y[i]) <= FLT_MIN);
                of_slope =
                    fmax(of_slope, fabs(dx[i] - (below + x[i] * density)));
            }
        }
        print_message("%s: gelu %.2f ulp, its slope %.2g\n", isa->name, error,
                      of_slope);
        assert_true(error <= 6);
        assert_true(of_slope <= 0x1p-22);
    }
}

static void test_functions_at_the_limits_of_floats(void **state)
{
    const float x[] = {INFINITY, -INFINITY, NAN, 0, -0.0f, 1000, -1000};
    const float one[] = {1, 1, 1, 1, 1, 1, 1};
    enum { N = sizeof x / sizeof x[0] };
    float y[N];

    (void)state;
    FOR_EACH_ISA (isa) {
        isa->loops->activate(BM_SIGMOID, N, x, y);
        assert_true(y[0] == 1 && y[1] < FLT_MIN && isnan(y[2]));
        assert_true(y[3] == 0.5f && y[5] == 1 && y[6] < FLT_MIN);
        isa->loops->activate(BM_TANH, N, x, y);
        assert_true(y[0] == 1 && y[1] == -1 && isnan(y[2]));
        assert_true(y[3] == 0 && signbit(y[4]) && y[5] == 1 && y[6] == -1);
        isa->loops->gelu(N, x, y);
        assert_true(isinf(y[0]) && fabsf(y[1]) <= FLT_MIN && isnan(y[2]));
        assert_true(y[3] == 0 && y[4] == 0 && y[5] == 1000);
        isa->loops->gelu_back(N, x, one, y);
        assert_true(y[0] == 1 && fabsf(y[1]) < 1e-35f && isnan(y[2]));
        assert_true(y[3] == 0.5f && y[4] == 0.5f && y[5] == 1);
        isa->loops->activate(BM_RELU, N, x, y);
        assert_true(isinf(y[0]) && y[1] == 0 && isnan(y[2]));
        assert_true(y[5] == 1000 && y[6] == 0);
    }
}

static void test_exp_below_the_range_of_floats(void **state)
{
    const float x[] = {-INFINITY, -3e6f, -1000, 0, -0.0f, NAN};
    enum { N = sizeof x / sizeof x[0] };
    float y[N], m[N];
    int32_t e[N];

    (void)state;
    FOR_EACH_ISA (isa) {
        assert_true(isa->loss->exp(N - 1, x, 0, (bm_wide){m, e}, y) == 2);
        assert_true(y[0] == 0 && y[1] == 0 && y[2] == 0);
        assert_true(y[3] == 1 && y[4] == 1);
        assert_true(e[0] == BM_NEVER && e[1] == BM_NEVER);
        assert_true(near(log((double)m[2]) + e[2] * log(2), -1000, 1e-9));
        assert_true(isnan(isa->loss->exp(N, x, 0, (bm_wide){m, e}, y)));
        assert_true(isnan(y[5]));
    }
}

/* A number has the same result alone and in a vector. */
static void test_result_does_not_depend_on_the_place_in_the_vector(void **state)
{
    enum { N = 77 };
    float x[N], y[N], alone = 0;

    (void)state;
    fill(x, N, 1);
    FOR_EACH_ISA (isa)
        for (int f = BM_IDENTITY; f <= BM_SIGMOID; f++) {
            isa->loops->activate((bm_activation)f, N, x, y);
            for (int i = 0; i < N; i++) {
                isa->loops->activate((bm_activation)f, 1, x + i, &alone);
                assert_memory_equal(&alone, y + i, sizeof alone);
            }
        }
}

static void test_squares_have_the_same_bits_everywhere(void **state)
{
    enum { N = 1000 };
    const size_t lengths[] = {0, 1, 15, 16, 17, 999};
    const bm_isa *plain = find("baseline");
    float x[N];

    (void)state;
    fill(x, N, 2);
    x[3] = 1e30f;
    x[500] = 1e-30f;
    FOR_EACH_ISA (isa)
        FOR_EACH (l, lengths) {
            double got = isa->loops->squares(lengths[l], x);
            double first = plain->loops->squares(lengths[l], x), exact = 0;

            for (size_t i = 0; i < lengths[l]; i++)
                exact += (double)x[i] * x[i];
            assert_memory_equal(&got, &first, sizeof got);
            assert_true(near(got, exact, 1e-14 * fmax(1, exact)));
        }
}

static void test_momentum_has_the_same_bits_everywhere(void **state)
{
    enum { N = 101 };
    float g[N], v0[N], w0[N], v[N], w[N], first_v[N], first_w[N];

    (void)state;
    fill(g, N, 3);
    fill(v0, N, 4);
    fill(w0, N, 5);
    for (int nesterov = 0; nesterov < 2; nesterov++)
        FOR_EACH_ISA (isa) {
            bm_momentum m = {0.1f, 0.9f, 0.01f, 0, nesterov};

            memcpy(v, v0, sizeof v);
            memcpy(w, w0, sizeof w);
            isa->loops->momentum(&m, 0.5f, N, g, v, w);
            if (strcmp(isa->name, "baseline") == 0) {
                memcpy(first_v, v, sizeof v);
                memcpy(first_w, w, sizeof w);
            }
            assert_memory_equal(v, first_v, sizeof v);
            assert_memory_equal(w, first_w, sizeof w);
        }
}

static void test_adam_and_rmsprop_have_the_same_bits_everywhere(void **state)
{
    enum { N = 101 };
    bm_adam_factors f = {.scale = 0.5f,
                         .old1 = 0.9f,
                         .new1 = 0.1f,
                         .old2 = 0.999f,
                         .new2 = 0.001f,
                         .keep = 0.99f,
                         .by = 0.3f,
                         .root = 7.0f,
                         .epsilon = 1e-8f,
                         .decay = 0.01f,
                         .rate = 0.1f};
    float g[N], start[3][N], x[3][N], first[3][N];

    (void)state;
    fill(g, N, 3);
    for (int k = 0; k < 3; k++)
        fill(start[k], N, 4 + (uint64_t)k);
    for (int i = 0; i < N; i++)
        start[1][i] = fabsf(start[1][i]); /* v */
    for (int rms = 0; rms < 2; rms++)
        FOR_EACH_ISA (isa) {
            f.rms = rms;
            memcpy(x, start, sizeof x);
            isa->loops->adam(&f, N, g, x[0], x[1], x[2]);
            if (strcmp(isa->name, "baseline") == 0)
                memcpy(first, x, sizeof x);
            assert_memory_equal(x, first, sizeof x);
        }
}

/* Each number against the definition; u has 24 bits. */
static void test_dropout_follows_the_stream(void **state)
{
    enum { N = 10007 };
    static float x[N], y[N];
    const uint64_t key = 0x123456789abcdefu;
    const float p = 0.3f;
    int kept = 0;

    (void)state;
    fill(x, N, 6);
    FOR_EACH_ISA (isa) {
        kept = 0;
        isa->loops->dropout(5001, p, key, 0, x, y);
        isa->loops->dropout(N - 5001, p, key, 5001, x + 5001, y + 5001);
        for (int i = 0; i < N; i++) {
            double u = (double)(bm_rng_at(key, (uint64_t)i) >> 40) / 16777216;
            assert_true(near(y[i], u < p ? 0 : x[i] / (1 - p), 1e-6));
            kept += u >= p;
        }
        /* 5 standard deviations of a binomial distribution */
        assert_true(fabs(kept - 0.7 * N) < 5 * sqrt(0.21 * N));
    }
}

/* The bf16 nearest to x, of two the even one, from both neighbours in double.
 */
static float nearest_bf16(float x)
{
    uint32_t bits = 0, near_zero = 0, far = 0;
    float low = 0, high = 0;
    double to_low = 0, to_high = 0;

    memcpy(&bits, &x, sizeof bits);
    near_zero = bits & 0xffff0000u;
    far = near_zero + 0x10000u;
    memcpy(&low, &near_zero, sizeof low);
    memcpy(&high, &far, sizeof high);
    to_low = fabs((double)x - low);
    to_high =
        isinf(high) ? ldexp(1, 128) - fabs((double)x) : fabs((double)high - x);
    if (to_low != to_high)
        return to_low < to_high ? low : high;
    return (near_zero & 0x10000u) == 0 ? low : high;
}

static void test_bf16_is_rounded_to_nearest_even(void **state)
{
    enum { N = 4096 };
    static float x[N], y[N];
    static uint16_t halves[N];
    const float special[] = {0.0f,      -0.0f,     INFINITY,   -INFINITY,
                             FLT_MAX,   -FLT_MAX,  FLT_MIN,    0x1p-149f,
                             0x1.01p0f, 0x1.03p0f, -0x1.01p0f, 0x1.010002p0f};
    bm_rng rng = bm_rng_make(8, "bf16", 0);

    (void)state;
    for (int i = 0; i < N; i++) {
        uint32_t bits = (uint32_t)bm_rng_below(&rng, UINT32_MAX);
        if (i % 4 == 0)
            bits = (bits & 0xffff0000u) | 0x8000u; /* half way */
        memcpy(&x[i], &bits, sizeof bits);
    }
    memcpy(x, special, sizeof special);
    FOR_EACH_ISA (isa) {
        isa->loops->round_bf16(N, x, y);
        isa->loops->to_bf16(N, x, halves);
        for (int i = 0; i < N; i++) {
            uint32_t bits = (uint32_t)halves[i] << 16;
            float half = 0, want = isinf(x[i]) ? x[i] : nearest_bf16(x[i]);

            memcpy(&half, &bits, sizeof half);
            assert_true(isnan(x[i]) ? isnan(y[i]) && isnan(half)
                                    : y[i] == want && half == want);
        }
    }
}

static void check_product(const bm_product *product, size_t m, size_t n,
                          size_t k, bool transposed, bool add)
{
    enum { MOST = 24, K = 70, LDA = K + 3, N = 300, LDC = N + 5 };
    static float a[MOST * LDA], b[K * N], c[MOST * LDC], got[MOST * LDC];
    float *packed = NULL;

    BM_ASSERT(m <= MOST && n <= N && k <= K);
    packed = malloc(bm_packed(k, n) * sizeof *packed);
    assert_non_null(packed);
    fill(a, MOST * LDA, 7);
    fill(b, K * N, 8);
    fill(c, MOST * LDC, 9);
    memcpy(got, c, sizeof got);
    product->pack(transposed, k, n, b, packed);
    product->multiply(m, n, k, a, LDA, packed, got, LDC, add);
    for (size_t i = 0; i < MOST; i++)
        for (size_t j = 0; j < LDC; j++) {
            double sum = add ? c[i * LDC + j] : 0;
            if (i >= m || j >= n) {
                assert_true(got[i * LDC + j] == c[i * LDC + j]);
                continue;
            }
            for (size_t l = 0; l < k; l++)
                sum += (double)a[i * LDA + l] *
                       (transposed ? b[j * k + l] : b[l * n + j]);
            assert_true(near(got[i * LDC + j], sum, 5e-6));
        }
    free(packed);
}

static void test_products_of_all_sizes(void **state)
{
    const size_t columns[] = {1, 7, 16, 31, 32, 33, 100, 128, 300};

    (void)state;
    FOR_EACH_ISA (isa)
        for (size_t m = 0; m <= 17; m++)
            FOR_EACH (n, columns)
                for (int t = 0; t < 4; t++)
                    check_product(isa->product, m, columns[n],
                                  m % 2 == 0 ? 70 : 1 + m, t & 1, t & 2);
}

/* Few rows are multiplied with more columns at a time. */
static void test_a_row_has_the_same_bits_alone_and_among_others(void **state)
{
    enum { M = 8, N = 300, K = 70 };
    static float a[M * K], b[K * N], all[M * N], some[M * N];
    float *packed = malloc(bm_packed(K, N) * sizeof *packed);

    (void)state;
    assert_non_null(packed);
    fill(a, M * K, 7);
    fill(b, K * N, 8);
    FOR_EACH_ISA (isa) {
        const bm_product *product = isa->product;

        product->pack(true, K, N, b, packed);
        product->multiply(M, N, K, a, K, packed, all, N, false);
        for (size_t rows = 1; rows < M; rows++)
            for (size_t i = 0; i + rows <= M; i += rows) {
                product->multiply(rows, N, K, a + i * K, K, packed, some, N,
                                  false);
                assert_memory_equal(some, all + i * N, rows * N * sizeof *some);
            }
    }
    free(packed);
}

/* a [m, k] and b [n, k] as bm_byte_product rounds them: each number is off by
 * half a step at most, and the sum is exact. Returns c [m, n]. */
static float *multiply_bytes(const bm_byte_product *bytes, size_t m, size_t n,
                             size_t k, const float *a, const float *b, bool add)
{
    size_t row = bm_row_of_bytes(k);
    uint8_t *q = zeros(m * row, sizeof *q);
    float *steps = zeros(m, sizeof *steps), *c = zeros(m * n, sizeof *c);
    void *packed = zeros(bm_packed_bytes(k, n), 1);

    for (size_t i = 0; i < m; i++)
        steps[i] = bytes->round(k, a + i * k, q + i * row);
    bytes->pack(k, n, b, packed);
    if (add)
        fill(c, m * n, 9);
    bytes->multiply(m, n, k, q, steps, packed, c, n, add);
    free(packed);
    free(steps);
    free(q);
    return c;
}

static double most_of(size_t n, const float *x)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)x[i]));
    return most;
}

static void check_bytes(const bm_byte_product *bytes, size_t m, size_t n,
                        size_t k, bool add)
{
    float *a = zeros(m * k, sizeof *a), *b = zeros(n * k, sizeof *b);
    float *before = zeros(m * n, sizeof *before), *c = NULL;

    fill(a, m * k, 7);
    fill(b, n * k, 8);
    if (add)
        fill(before, m * n, 9);
    c = multiply_bytes(bytes, m, n, k, a, b, add);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = before[i * n + j], error = 1e-5;
            double off_a = most_of(k, a + i * k) / 2 / 63 * 1.001;
            double off_b = most_of(k, b + j * k) / 2 / 127 * 1.001;

            for (size_t l = 0; l < k; l++) {
                double x = a[i * k + l], y = b[j * k + l];

                sum += x * y;
                error += fabs(x) * off_b + fabs(y) * off_a + off_a * off_b;
            }
            assert_true(fabs(c[i * n + j] - sum) <= error);
        }
    free(c);
    free(before);
    free(a);
    free(b);
}

static void test_products_of_bytes_are_off_by_half_a_step(void **state)
{
    const size_t columns[] = {1, 8, 31, 33, 128, 300};

    (void)state;
    FOR_EACH_ISA (isa)
        for (size_t m = 1; m <= 8; m++)
            FOR_EACH (n, columns)
                check_bytes(isa->bytes, m, columns[n], 3 * m + m % 4, m % 2);
}

/* The largest numbers of both factors: sums of two products do not saturate. */
static void test_products_of_bytes_have_the_same_bits_everywhere(void **state)
{
    enum { M = 5, N = 70, K = 1001 };
    static float a[M * K], b[N * K];
    float *first = NULL;

    (void)state;
    fill(a, M * K, 7);
    fill(b, N * K, 8);
    for (size_t j = 0; j < N; j++) /* all of one sign: the largest sum */
        b[j * K] = 127;
    for (size_t i = 0; i < K; i++)
        a[i] = b[i] = 1;
    FOR_EACH_ISA (isa) {
        float *c = multiply_bytes(isa->bytes, M, N, K, a, b, false);

        assert_true(near(c[0], K, 1e-5));
        if (first == NULL)
            first = c;
        else
            assert_memory_equal(c, first, M * N * sizeof *c);
        if (c != first)
            free(c);
    }
    free(first);
}

static void test_rows_without_a_step_are_zeros_or_nan(void **state)
{
    const float rows[3][5] = {
        {0}, {1, 2, (float)NAN, 3, 4}, {1, INFINITY, 2, 3, 4}};

    (void)state;
    FOR_EACH_ISA (isa)
        for (size_t i = 0; i < 3; i++) {
            const float b[5] = {1, 1, 1, 1, 1};
            float *c = multiply_bytes(isa->bytes, 1, 1, 5, rows[i], b, false);

            assert_true(i == 0 ? c[0] == 0 : isnan(c[0]));
            free(c);
        }
}

/* alpha op(A) op(B) + beta C with gaps between rows, against sums in double. */
static void check_matrices(const bm_matrix_loops *matrix, size_t m, size_t n,
                           size_t k, int way)
{
    enum { GAP = 3, LINE = 64 };
    bm_matrices p = {.m = m,
                     .n = n,
                     .k = k,
                     .alpha = way & 4 ? 0.5f : 1,
                     .beta = way & 8 ? -2.0f : 0,
                     .trans_a = way & 1,
                     .trans_b = way & 2};
    size_t rows_a = p.trans_a ? k : m, rows_b = p.trans_b ? n : k;
    float *a = NULL, *b = NULL, *c = NULL, *got = NULL, *work = NULL;

    p.lda = (p.trans_a ? m : k) + GAP;
    p.ldb = (p.trans_b ? k : n) + GAP;
    p.ldc = n + GAP;
    a = malloc(rows_a * p.lda * sizeof *a);
    b = malloc(rows_b * p.ldb * sizeof *b);
    c = malloc(m * p.ldc * sizeof *c);
    got = malloc(m * p.ldc * sizeof *got);
    work = aligned_alloc(LINE,
                         (matrix->room(&p) * sizeof *work / LINE + 1) * LINE);
    assert_true(a != NULL && b != NULL && c != NULL && got != NULL &&
                work != NULL);
    fill(a, rows_a * p.lda, 10);
    fill(b, rows_b * p.ldb, 11);
    fill(c, m * p.ldc, 12);
    if (p.beta == 0)
        c[0] = NAN; /* must not be read */
    memcpy(got, c, m * p.ldc * sizeof *got);
    p.a = a;
    p.b = b;
    p.c = got;
    matrix->multiply(&p, work);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < p.ldc; j++) {
            double sum = 0, size = 1;
            if (j >= n) {
                assert_true(got[i * p.ldc + j] == c[i * p.ldc + j]);
                continue;
            }
            for (size_t l = 0; l < k; l++) {
                double term =
                    (double)a[p.trans_a ? l * p.lda + i : i * p.lda + l] *
                    b[p.trans_b ? j * p.ldb + l : l * p.ldb + j];
                sum += term;
                size += fabs(term);
            }
            sum *= (double)p.alpha;
            if (p.beta != 0)
                sum += (double)p.beta * c[i * p.ldc + j];
            /* roundings of partial sums, at most `size` large */
            assert_true(fabs(got[i * p.ldc + j] - sum) < 2e-6 * size);
        }
    free(a);
    free(b);
    free(c);
    free(got);
    free(work);
}

/* Less than a tile, a whole one, several, more than a block. */
static void test_matrices_of_all_sizes(void **state)
{
    static const size_t sizes[][3] = {
        {1, 1, 1},     {3, 5, 2},      {8, 48, 16},   {6, 16, 33},
        {17, 33, 47},  {16, 95, 64},   {64, 64, 100}, {33, 97, 130},
        {300, 20, 40}, {257, 113, 18}, {9, 50, 1030}, {270, 49, 2100},
    };

    (void)state;
    FOR_EACH_ISA (isa)
        FOR_EACH (s, sizes)
            for (int way = 0; way < 16; way++)
                check_matrices(isa->matrix, sizes[s][0], sizes[s][1],
                               sizes[s][2], way);
}

/* The same bits however C is divided, at whole tiles of every set. */
static void test_block_of_a_product_has_the_bits_of_the_whole(void **state)
{
    enum { M = 300, N = 150, K = 1100, CUT = 96 };
    static float a[M * K], b[N * K], whole[M * N], parts[M * N];

    (void)state;
    fill(a, M * K, 13);
    fill(b, N * K, 14);
    FOR_EACH_ISA (isa)
        for (int way = 0; way < 8; way++) {
            bool ta = way & 1, tb = way & 2, down = way & 4;
            bm_matrices p = {M, N, K,          1,          0,     ta, tb,
                             a, b, ta ? M : K, tb ? K : N, whole, N};
            float *work =
                aligned_alloc(64, isa->matrix->room(&p) / 16 * 64 + 64);

            assert_non_null(work);
            isa->matrix->multiply(&p, work);
            p.c = parts;
            *(down ? &p.m : &p.n) = CUT;
            isa->matrix->multiply(&p, work);
            if (down) {
                p.m = M - CUT;
                p.a += ta ? CUT : CUT * K;
                p.c += CUT * N;
            } else {
                p.n = N - CUT;
                p.b += tb ? CUT * K : CUT;
                p.c += CUT;
            }
            isa->matrix->multiply(&p, work);
            assert_memory_equal(whole, parts, sizeof whole);
            free(work);
        }
}

static void test_unknown_instruction_set_is_reported(void **state)
{
    const bm_isa *isa = NULL;

    (void)state;
    setenv("BMUF_ISA", "mmx", 1);
    assert_int_equal(bm_isa_find(&isa), BM_ERR_CONFIG);
    unsetenv("BMUF_ISA");
    assert_non_null(strstr(bm_last_error(), "mmx"));
    assert_non_null(strstr(bm_last_error(), "baseline"));
    assert_null(isa);
    assert_ok(bm_isa_find(&isa));
    assert_non_null(isa);
}

/* The exit status of this program, with that argument and choice of kernels. */
static int run_again(const char *argument, const char *core)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        if (core != NULL)
            setenv("OPENBLAS_CORETYPE", core, 1);
        else
            unsetenv("OPENBLAS_CORETYPE");
        execl("/proc/self/exe", "test_kernels", argument, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The program that the tests below run: reports OpenBLAS's choice. */
enum { GOOD = 0, OLD = 1 };

static int judge(char **argv)
{
    bm_blas_restart(argv);
    return strcmp(openblas_get_corename(), "Prescott") == 0 ? OLD : GOOD;
}

static void test_old_kernels_of_openblas_are_replaced(void **state)
{
    (void)state;
    if (strcmp(bm_isa_best(), "baseline") == 0)
        skip();
    assert_int_equal(run_again("judge", NULL), GOOD);
}

static void test_kernels_chosen_by_the_user_are_kept(void **state)
{
    (void)state;
    assert_int_equal(run_again("judge", "Prescott"), OLD);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions_have_the_documented_accuracy),
        cmocka_unit_test(test_gelu_has_the_documented_accuracy),
        cmocka_unit_test(test_functions_at_the_limits_of_floats),
        cmocka_unit_test(test_exp_below_the_range_of_floats),
        cmocka_unit_test(
            test_result_does_not_depend_on_the_place_in_the_vector),
        cmocka_unit_test(test_squares_have_the_same_bits_everywhere),
        cmocka_unit_test(test_momentum_has_the_same_bits_everywhere),
        cmocka_unit_test(test_adam_and_rmsprop_have_the_same_bits_everywhere),
        cmocka_unit_test(test_dropout_follows_the_stream),
        cmocka_unit_test(test_bf16_is_rounded_to_nearest_even),
        cmocka_unit_test(test_products_of_all_sizes),
        cmocka_unit_test(test_a_row_has_the_same_bits_alone_and_among_others),
        cmocka_unit_test(test_products_of_bytes_are_off_by_half_a_step),
        cmocka_unit_test(test_products_of_bytes_have_the_same_bits_everywhere),
        cmocka_unit_test(test_rows_without_a_step_are_zeros_or_nan),
        cmocka_unit_test(test_matrices_of_all_sizes),
        cmocka_unit_test(test_block_of_a_product_has_the_bits_of_the_whole),
        cmocka_unit_test(test_unknown_instruction_set_is_reported),
        cmocka_unit_test(test_old_kernels_of_openblas_are_replaced),
        cmocka_unit_test(test_kernels_chosen_by_the_user_are_kept),
    };

    if (argc > 1)
        return judge(argv);
    return RUN_GROUP("kernels", tests);
}
